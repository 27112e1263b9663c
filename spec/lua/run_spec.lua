-- A message's life through the engine, on a test's clock: how often handlers are called, what a
-- failure looks like, what a dead letter says.
local mulligan = require "mulligan"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

-- fails gives a handler that always fails, and counts in `calls`.
local function failing(calls, words)
    return function(msg)
        calls[#calls + 1] = { attempt = msg.attempt, redeliveries = msg.redeliveries, calls = msg.calls }
        mulligan.error(words or { type = "PgError", message = "deadlock detected" })
    end
end

describe("the engine", function()
    local rig

    local function start(...)
        rig = rigs.start(...)
    end

    after_each(rigs.close)

    describe("calls an always failing handler", function()
        local function calls_of(rules)
            local calls = {}
            start(rules, failing(calls))
            assert(rig:publish("work", "x", { id = "m-1" }))
            rig:run_until_empty()
            assert.equal(1, #rig:collected("error"))
            return calls
        end

        it("24 times for retry(5, 0) and three redeliveries", function()
            local calls = calls_of 'bus:default():retry(5, 0):then_redeliver { "5m", "15m", "30m" }'
            assert.equal(24, #calls)
            for number, call in ipairs(calls) do
                assert.same({
                    attempt = (number - 1) % 6 + 1,
                    redeliveries = (number - 1) // 6,
                    calls = number - 1,
                }, call)
            end
        end)

        it("16 times for retry() and then_redeliver()", function()
            assert.equal(16, #calls_of "bus:default():retry():then_redeliver()")
        end)

        it("once where no rule matches", function()
            assert.equal(1, #calls_of 'bus:on("Other"):retry(5, 0)')
        end)

        it("no more often than max_attempts", function()
            assert.equal(7, #calls_of 'bus:default():retry(5, 0):then_redeliver { "5m" }\nbus:max_attempts(7)')
            assert.equal("max_attempts", rig:collected("error")[1].headers["mulligan-reason"])
        end)

        it("no longer than max_age lets it be redelivered", function()
            assert.equal(3, #calls_of 'bus:default():redeliver { "1h", "1h", "1h" }\nbus:max_age("100m")')
            assert.equal("max_age", rig:collected("error")[1].headers["mulligan-reason"])
        end)
    end)

    it("keeps to the delays, to the millisecond", function()
        local clock, at = testing.clock(), {}
        start('bus:default():retry { "100ms", "2s" } :then_redeliver { "1m" }', function()
            at[#at + 1] = clock:now()
            error("no")
        end, { clock = clock })
        assert(rig:publish("work", "x"))
        rig:advance("99ms")
        assert.same({ 0 }, at)
        rig:advance("1ms")
        assert.same({ 0, 100 }, at)
        rig:run_until_empty()
        assert.same({ 0, 100, 2100, 62100, 62200, 64200 }, at)
    end)

    it("hands a message over as it was sent", function()
        local got
        start("", function(msg)
            got = msg
        end)
        local body = "a\0b\xFF"
        assert(rig:publish("work", body, {
            id = "m-1",
            type = "Order",
            key = "42",
            headers = { tenant = "acme", ["x y"] = "ü" },
        }))
        assert.same({
            id = "m-1",
            type = "Order",
            key = "42",
            queue = "work",
            body = body,
            headers = { tenant = "acme", ["x y"] = "ü" },
            attempt = 1,
            redeliveries = 0,
            calls = 0,
            deliveries = 1,
        }, got)
        assert.same({ done = 1, retried = 0, redelivered = 0, dead_lettered = 0, discarded = 0, notify_failed = 0 },
            rig:counts())
    end)

    it("gives an id to a message without one, and keeps it over redeliveries", function()
        local ids = {}
        start('bus:default():redeliver { "1m" }', function(msg)
            ids[#ids + 1] = msg.id
            error("no")
        end)
        assert(rig:publish("work", "x"))
        rig:run_until_empty()
        assert.equal(2, #ids)
        assert.equal(ids[1], ids[2])
        assert.equal(ids[1], rig:collected("error")[1].id)
        assert.is_true(#ids[1] > 0)
    end)

    it("counts and tells a discard", function()
        start('bus:on("Duplicate"):discard("seen before")', failing({}, { type = "Duplicate" }))
        assert(rig:publish("work", "x", { id = "m-1" }))
        assert.equal(1, rig:counts().discarded)
        local event = rig:events("decided")[1]
        assert.equal("discard", event.verdict.action)
        assert.equal("seen before", event.verdict.note)
        assert.equal("m-1", event.failure.message.id)
        assert.same({}, rig:collected("error"))
    end)

    describe("writes on a dead letter", function()
        it("where and why it failed, and leaves its own parts as they were", function()
            start('bus:on("PgError"):retry(1, 0):then_redeliver { "1m" }', function()
                mulligan.error {
                    type = "PgError",
                    message = "deadlock detected",
                    stack = "at line 1",
                    cause = { type = "TimeoutError", cause = { type = "SocketError" } },
                }
            end, { clock = testing.clock(1767225600000) })
            local headers = { tenant = "acme" }
            assert(rig:publish("work", "a\0b", { id = "m-1", type = "Order", key = "42", headers = headers }))
            rig:run_until_empty()
            local letter = rig:collected("error")[1]
            assert.equal("a\0b", letter.body)
            assert.equal("m-1", letter.id)
            assert.equal("Order", letter.type)
            assert.equal("42", letter.key)
            local generation = letter.headers["mulligan-generation"]
            assert.equal(rig:events("decided")[1].verdict.generation, generation)
            letter.headers["mulligan-generation"] = nil
            assert.same({
                tenant = "acme",
                ["mulligan-redeliveries"] = "1",
                ["mulligan-calls"] = "4",
                ["mulligan-first-failure"] = "2026-01-01T00:00:00.000Z",
                ["mulligan-last-failure"] = "2026-01-01T00:01:00.000Z",
                ["mulligan-queue"] = "work",
                ["mulligan-consumer"] = "C",
                ["mulligan-error-type"] = "PgError",
                ["mulligan-error-message"] = "deadlock detected",
                ["mulligan-error-stack"] = "at line 1",
                ["mulligan-error-chain"] = "TimeoutError, SocketError",
                ["mulligan-rule"] = "policy.lua:3",
                ["mulligan-reason"] = "exhausted",
            }, letter.headers)
            -- In a queue that it didn't come from the counters start anew.
            assert.same({ 1, 0, 0 }, { letter.attempt, letter.redeliveries, letter.calls })
        end)

        it("no more than a broker takes, cut at a character", function()
            start("", failing({}, { type = "E", message = ("ü"):rep(40000), stack = ("ß"):rep(40000) }))
            assert(rig:publish("work", "x"))
            local headers = rig:collected("error")[1].headers
            local sum = 0
            for name, value in pairs(headers) do
                sum = sum + #name + #value
                assert.is_truthy(utf8.len(value), name)
            end
            assert.is_true(sum < 48 * 1024)
            assert.is_true(#headers["mulligan-error-message"] <= 16 * 1024)
            assert.is_true(#headers["mulligan-error-message"] > 15 * 1024)
        end)
    end)

    it("starts anew with a dead letter that is sent back to where it came from", function()
        local calls, headers = {}, {}
        start('bus:default():retry(1, 0):then_redeliver { "1m" }', function(msg)
            calls[#calls + 1] = ("%d/%d/%d"):format(msg.attempt, msg.redeliveries, msg.calls)
            headers[#headers + 1] = msg.headers
            error("no")
        end)
        assert(rig:publish("work", "x", { id = "m-1", headers = { tenant = "acme" } }))
        rig:run_until_empty()
        local letter = rig:collected("error")[1]
        rig:advance("2d")
        assert(rig:publish("work", letter.body, { id = letter.id, headers = letter.headers }))
        rig:run_until_empty()
        assert.same({ "1/0/0", "2/0/1", "1/1/2", "2/1/3", "1/0/0", "2/0/1", "1/1/2", "2/1/3" }, calls)
        assert.same({ tenant = "acme" }, headers[5])
        assert.equal(2, #rig:collected("error"))
        assert.equal("2026-01-03T00:01:00.000Z", rig:collected("error")[2].headers["mulligan-first-failure"])
    end)

    it("dead-letters a copy that was handed out too often, without calling its handler", function()
        local calls = {}
        start("bus:max_deliveries(2)\nbus:default():retry(1, 0)", function(msg)
            calls[#calls + 1] = msg.deliveries
            mulligan.sleep("1h")
        end, { url = "memory:?claim_timeout=1m" }, { timeout = false })
        rig:fault("hold", { times = 1000000 })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:run_until_empty()
        assert.same({ 1, 2 }, calls)
        local headers = rig:collected("error")[1].headers
        assert.equal("max_deliveries", headers["mulligan-reason"])
        assert.equal("HandlerCrashError", headers["mulligan-error-type"])
    end)

    describe("stops gracefully", function()
        it("lets a handler end within the grace time, and gives back what waits, uncounted", function()
            local clock, seen = testing.clock(), {}
            start('bus:default():retry(3, "1h")', function(msg)
                seen[#seen + 1] = msg.id .. " began"
                if msg.id == "m-2" then
                    error("no")
                end
                mulligan.sleep("5s")
                seen[#seen + 1] = msg.id .. " ended"
            end, { clock = clock, grace = "10s" })
            for number = 1, 3 do
                assert(rig:publish("work", "x", { id = "m-" .. number }))
            end
            rig:stop()
            assert.same({ "m-1 began", "m-1 ended" }, seen)
            assert.equal(1, rig:counts().done)
            assert.equal(5000, clock:now())
            assert.same({ ready = 2, delayed = 0, claimed = 0 }, (rig:depth("work")))
        end)

        it("cuts off a handler after the grace time, without a failure", function()
            local ended
            start("", function()
                mulligan.sleep("1h")
                ended = true
            end, { grace = "10s" })
            assert(rig:publish("work", "x", { id = "m-1" }))
            rig:stop()
            assert.is_nil(ended)
            assert.same({ done = 0, retried = 0, redelivered = 0, dead_lettered = 0, discarded = 0, notify_failed = 0 },
                rig:counts())
            assert.equal(1, rig:depth("work").ready)
        end)
    end)

    it("refuses a consumer whose dead letters go to the queue that it reads", function()
        start("", failing {}, { collect = {}, start = false })
        assert(rig.engine:consumer("D", { transport = "orders", queue = "error", handler = failing {} }))
        local started, message, code = rig.engine:start()
        assert.is_nil(started)
        assert.equal("refused", code)
        assert.is_truthy(message:find("consumer 'D' reads the queue 'error'", 1, true), message)
    end)

    it("refuses a rule that its transport can't carry out", function()
        start('bus:on("A"):retry(1)\nbus:on("B"):redeliver()', failing {}, {
            url = "memory:?retry=no&delay=no",
            collect = {},
            start = false,
        })
        local started, message, code, problems = rig.engine:start()
        assert.is_nil(started)
        assert.equal("refused", code)
        assert.same({ 3, 4 }, { problems[1].line, problems[2].line })
        assert.is_truthy(message:find("^policy.lua:3: "), message)
    end)

    it("refuses a round of retries that outlasts a claim which can't be held", function()
        -- Delays at their cap, 2 x 10 s, and three calls of 15 s each: 65 s.
        local rules = 'bus:on("A"):retry { attempts = 2, delay = "10s", backoff = "constant", jitter = 0 }'
        for limit, fits in pairs { ["64999ms"] = false, ["65s"] = true } do
            start(rules, failing {}, {
                url = "memory:?hold=no&claim_timeout=" .. limit,
                collect = {},
                start = false,
            }, { timeout = "15s" })
            local started, message, code = rig.engine:start()
            assert.equal(fits, started == true, message)
            assert.equal(not fits and "refused" or nil, code)
            assert.is_true(fits or message:find("^policy.lua:3: ") ~= nil, message)
        end
    end)

    it("makes a delay beyond the transport's longest of several, and counts one redelivery", function()
        local calls = {}
        start('bus:default():redeliver { "50m" }', function(msg)
            calls[#calls + 1] = { at = rig.clock:now(), redeliveries = msg.redeliveries, calls = msg.calls }
            if #calls == 1 then
                mulligan.error { type = "PgError" }
            end
        end, { url = "memory:?longest_delay=15m" })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance("49m")
        assert.equal(1, #calls)
        rig:run_until_empty()
        assert.equal(2, #calls)
        assert.equal(50 * 60000, calls[2].at - calls[1].at)
        assert.same({ 1, 1 }, { calls[2].redeliveries, calls[2].calls })
        assert.equal(1, rig:counts().redelivered)
        assert.equal(1, rig:counts().done)
    end)

    it("starts nothing new while a settle fails, and loses nothing", function()
        local order = {}
        start("", function(msg)
            order[#order + 1] = msg.id
        end)
        rig:fault("settle", { times = 3, code = "io" })
        assert(rig:publish("work", "x", { id = "m-1" }))
        assert(rig:publish("work", "x", { id = "m-2" }))
        assert.same({ "m-1" }, order)
        rig:run_until_empty()
        assert.same({ "m-1", "m-2" }, order)
        assert.equal(2, rig:counts().done)
    end)
end)
