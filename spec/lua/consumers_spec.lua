-- Consumers while an engine runs: added, removed, paused, resumed, with another concurrency; and what
-- a snapshot says of all that.
local mulligan = require "mulligan"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

describe("a consumer, while its engine runs,", function()
    local rig, engine

    local function start(...)
        rig = rigs.start(...)
        engine = rig.engine
    end

    after_each(rigs.close)

    local function publish(ids, queue)
        for _, id in ipairs(ids) do
            assert(rig:publish(queue or "work", "x", { id = id }))
        end
    end

    -- at_work gives a handler that takes a second, and the calls so far.
    local function at_work(span)
        local calls = { most = 0, now = 0 }
        return function(msg)
            table.insert(calls, { msg.id, msg.attempt, msg.calls })
            calls.now = calls.now + 1
            calls.most = math.max(calls.most, calls.now)
            mulligan.sleep(span or "1s")
            calls.now = calls.now - 1
        end, calls
    end

    local function of_consumer(name)
        for _, consumer in ipairs(engine:snapshot().consumers) do
            if consumer.name == name then
                return consumer
            end
        end
    end

    it("gives back what waits when it is paused, uncounted, and goes on when it is resumed", function()
        local handler, calls = at_work()
        start("", handler)
        publish { "m-1", "m-2", "m-3" }
        assert.equal(1, #calls)
        assert.is_true(engine:pause "C")
        assert.is_true(engine:pause "C")
        rig:advance "1m"
        assert.equal(1, #calls) -- and that one has ended as usual
        assert.equal(1, rig:counts().done)
        assert.same({ ready = 2, delayed = 0, claimed = 0 }, (rig:depth "work"))
        assert.equal("paused", engine:why_not "C")
        assert.is_true(engine:resume "C")
        assert.is_true(engine:resume "C")
        rig:run_until_empty()
        assert.same({ { "m-1", 1, 0 }, { "m-2", 1, 0 }, { "m-3", 1, 0 } }, { table.unpack(calls) })
        assert.equal("nothing_there", engine:why_not "C")
    end)

    it("gives back what waits for a retry with its calls counted", function()
        local calls = {}
        start('bus:default():retry { "1m", "1m", "1m", "1m", "1m" }', function(msg)
            table.insert(calls, { msg.attempt, msg.calls })
            if msg.calls < 3 then
                error "no"
            end
        end)
        publish { "m-1" }
        rig:advance "1m"
        assert.same({ { 1, 0 }, { 2, 1 } }, calls)
        assert(engine:pause "C")
        rig:advance "1h"
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth "work"))
        assert.equal(2, #calls)
        assert(engine:resume "C")
        rig:run_until_empty()
        -- A new hand-out begins its attempts anew, and has its calls.
        assert.same({ { 1, 2 }, { 2, 3 } }, { table.unpack(calls, 3) })
    end)

    it("whose handler fails while it is paused gives its message back, the call counted", function()
        local seen = {}
        start('bus:default():retry(5, "1s")', function(msg)
            seen[#seen + 1] = msg.calls
            mulligan.sleep "1s"
            assert(msg.calls > 0, "no")
        end)
        publish { "m-1" }
        assert(engine:pause "C")
        rig:advance "1m"
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth "work"))
        assert(engine:resume "C")
        rig:run_until_empty()
        assert.same({ 0, 1 }, seen)
    end)

    it("may begin paused, and holds up no other of its queue", function()
        local handler, calls = at_work()
        start("", handler, nil, { paused = true })
        publish { "m-1" }
        assert.same({ "paused", 0 }, { engine:why_not "C", #calls })
        assert.is_true(of_consumer("C").paused)
        assert(engine:consumer("D", { transport = "orders", queue = "work", handler = handler }))
        rig:run_until_empty()
        assert.equal(1, #calls)
    end)

    it("has more handlers at work, and fewer, and never more than it may", function()
        local handler, calls = at_work()
        start("", handler)
        local ids = {}
        for number = 1, 60 do
            ids[number] = "m-" .. number
        end
        publish(ids)
        rig:advance "2500ms"
        assert.equal(1, calls.most)
        assert.is_true(engine:concurrency("C", 8))
        rig:advance "500ms" -- the handler at work has ended, and a new subscription is there
        assert.equal(8, calls.now)
        rig:advance "1500ms"
        assert.equal(8, calls.most)
        assert.is_true(engine:concurrency("C", 2))
        rig:advance "600ms"
        calls.most = calls.now
        assert.equal(2, calls.now)
        rig:run_until_empty()
        assert.equal(2, calls.most)
        assert.equal(60, rig:counts().done)
        assert.equal(60, #calls) -- none of them twice
        assert.equal(2, of_consumer("C").concurrency)
    end)

    it("holds its retries to a lower concurrency, too", function()
        local now, most = 0, 0
        start('bus:default():retry { "1m" }', function(msg)
            now = now + 1
            most = msg.attempt == 2 and math.max(most, now) or most
            mulligan.sleep "1s"
            now = now - 1
            assert(msg.attempt == 2, "no")
        end, nil, { concurrency = 4 })
        publish { "m-1", "m-2", "m-3", "m-4" }
        rig:advance "30s"
        assert.equal(4, of_consumer("C").retrying)
        assert(engine:concurrency("C", 1))
        rig:run_until_empty()
        assert.same({ 1, 4 }, { most, rig:counts().done })
    end)

    it("is removed once the handler at work has ended, and its name is free", function()
        local handler, calls = at_work()
        local answers = {}
        local function gone(...)
            answers[#answers + 1] = table.pack(...)
        end
        start("", handler)
        publish { "m-1", "m-2" }
        assert.is_true(engine:remove_consumer("C", gone))
        assert.equal("stopping", engine:why_not "C")
        assert.same({ nil, "not possible in the state that the engine is in", "state", {}, n = 4 },
            table.pack(engine:remove_consumer "C"))
        assert.equal("state", (select(3, engine:pause "C")))
        assert.equal("invalid", (select(3, engine:consumer("C", { transport = "orders", queue = "work",
            handler = handler }))))
        rig:advance "900ms"
        assert.same({}, answers)
        rig:advance "100ms"
        assert.same({ { true, n = 1 } }, answers)
        assert.equal(1, #calls)
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth "work"))
        assert.is_nil(of_consumer "C")
        assert.equal("invalid", (select(3, engine:why_not "C")))
        assert(engine:consumer("C", { transport = "orders", queue = "work", handler = handler }))
        rig:run_until_empty()
        assert.equal("m-2", calls[2][1])
        assert.is_true(engine:remove_consumer "C") -- without a function
        rig:advance "1ms"
        assert.is_nil(of_consumer "C")
    end)

    it("may remove itself, and add another, in its handler", function()
        local taken = {}
        start("", function(msg)
            taken[#taken + 1] = "C " .. msg.id
            assert(engine:remove_consumer("C", function(removed)
                assert(removed)
                assert(engine:consumer("C", { transport = "orders", queue = "work", handler = function(next_msg)
                    taken[#taken + 1] = "new C " .. next_msg.id
                end }))
            end))
        end)
        publish { "m-1", "m-2" }
        rig:run_until_empty()
        assert.same({ "C m-1", "new C m-2" }, taken)
    end)

    it("lets go of its handler when it is gone, or was never added", function()
        local kept = setmetatable({}, { __mode = "k" })
        local function handler_of_its_own()
            local handler = load "return function() end" ()
            kept[handler] = true
            return { transport = "orders", queue = "other", handler = handler }
        end
        start("", function() end)
        assert(engine:consumer("D", handler_of_its_own()))
        assert(engine:remove_consumer "D")
        assert.is_nil(engine:consumer("C", handler_of_its_own()))
        rig:advance "1ms"
        collectgarbage()
        collectgarbage()
        assert.is_nil(next(kept))
    end)

    it("is held against the policy in force when it is added", function()
        start('policy.consumer("D"):default():dead_letter("into")', function() end)
        local added, message, code, problems = engine:consumer("D", { transport = "orders", queue = "into",
            handler = print })
        assert.same({ nil, "refused" }, { added, code })
        assert.is_truthy(message:find("into", 1, true))
        assert.equal(1, #problems)
        assert.is_nil(of_consumer "D")
        assert(engine:consumer("D", { transport = "orders", queue = "elsewhere", handler = print }))
    end)

    it("is stopped in the midst of its removal as any other", function()
        local handler, calls = at_work("1h")
        local answer
        start("", handler, { grace = "10s" }, { timeout = false })
        publish { "m-1", "m-2" }
        assert(engine:remove_consumer("C", function(...)
            answer = table.pack(...)
        end))
        rig:stop()
        assert.is_nil(answer)
        assert.equal(1, #calls)
        engine:close()
        assert.same({ nil, "not possible in the state that the engine is in", "state", n = 3 }, answer)
    end)

    it("raises for what is no name, no number and no function, and answers what isn't there", function()
        start("", function() end)
        for name, call in pairs {
            pause = function() engine:pause(1) end,
            resume = function() engine:resume "" end,
            why_not = function() engine:why_not() end,
            remove_consumer = function() engine:remove_consumer("C", "now") end,
            concurrency = function() engine:concurrency("C", "many") end,
        } do
            assert.has_error(call, nil, name)
        end
        for _, call in ipairs { "pause", "resume", "why_not", "remove_consumer" } do
            local done, message, code = engine[call](engine, "D")
            assert.same({ nil, "there is no consumer 'D'", "invalid" }, { done, message, code })
        end
        assert.equal("invalid", (select(3, engine:concurrency("D", 1))))
        local done, message, code = engine:concurrency("C", 0)
        assert.same({ nil, "invalid" }, { done, code })
        assert.is_truthy(message:find("at least 1", 1, true))
        rig:close()
        for _, call in ipairs { "pause", "resume", "why_not", "remove_consumer", "snapshot" } do
            assert.has_error(function()
                engine[call](engine, "C")
            end, "the engine is closed")
        end
    end)

    it("that is paused leaves a stop until empty with what it would take", function()
        local handler, calls = at_work()
        start("", handler, { collect = {} })
        publish { "m-1", "m-2" }
        assert(engine:pause "C")
        assert(engine:stop_when_empty())
        rig:advance "1m"
        assert.is_true(engine:stopped())
        assert.is_false(engine:emptied())
        assert.equal("refused", (select(3, engine:status())))
        assert.equal(1, #calls)
    end)

    it("that takes a new subscription doesn't end a stop until empty early", function()
        local handler, calls = at_work()
        start("", handler, { collect = {} })
        publish { "m-1", "m-2", "m-3", "m-4" }
        assert(engine:stop_when_empty())
        assert(engine:concurrency("C", 4))
        rig:advance "1m"
        assert.is_true(engine:emptied())
        assert.is_true(engine:status())
        assert.same({ 4, 3 }, { #calls, calls.most })
    end)

    it("that is paused doesn't keep a stop until empty from what others take", function()
        local handler, calls = at_work()
        start("", handler, { collect = {} })
        publish { "m-1", "m-2" }
        assert(engine:pause "C")
        assert(engine:consumer("D", { transport = "orders", queue = "work", handler = handler }))
        assert(engine:stop_when_empty())
        rig:advance "1m"
        assert.is_true(engine:emptied())
        assert.equal(2, #calls)
    end)
end)

describe("a snapshot", function()
    after_each(rigs.close)

    it("says how transports, consumers and rules are", function()
        local clock = testing.clock(1000000000000)
        local rig = rigs.start([[
            bus:on("Late"):redeliver(2, "1m")
            bus:on("Bad"):discard()
            bus:default():retry { "10s" }
        ]], function(msg)
            mulligan.sleep(msg.headers.span or 0)
            if msg.body ~= "" then
                mulligan.error { type = msg.body, message = "m" .. ("ü"):rep(200) }
            end
        end, { clock = clock, collect = {} }, { concurrency = 2 })
        local engine = rig.engine
        local before = engine:snapshot()
        assert.equal(32, #before.generation)
        assert.same({ name = "orders", health = "up", since_ms = 1000000000000, claimed = 0, parked = 0,
            abandoned = 0 }, before.transports[1])
        assert.same({ name = "C", transport = "orders", queue = "work", concurrency = 2, paused = false,
            in_flight = 0, waiting = 0, retrying = 0, settling = 0, taken = 0, why_not = "nothing_there",
            why_not_since_ms = 1000000000000, done = 0, retried = 0, redelivered = 0, dead_lettered = 0,
            discarded = 0, reasons = {}, times = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 }, limits = {},
            limited_values = 0 }, before.consumers[1])
        assert.same({}, before.rules)

        clock:advance "1s"
        for _, body in ipairs { "", "Late", "Bad", "Odd" } do
            assert(rig:publish("work", body, { headers = { span = body == "Bad" and "3s" or "0ms" } }))
        end
        clock:advance "1s"
        local amid = engine:snapshot().consumers[1]
        assert.same({ 1, 1, 0 }, { amid.in_flight, amid.retrying, amid.waiting })
        assert.same({ "concurrency", 1000000001000 }, { amid.why_not, amid.why_not_since_ms })
        assert.equal(2, engine:snapshot().transports[1].claimed)
        assert.same({ "Odd", 1000000001000 }, { amid.last_error.type, amid.last_error.time_ms })
        assert.equal("m" .. ("ü"):rep(127), amid.last_error.message)

        clock:advance "59s"
        local after = engine:snapshot()
        assert.equal(1000000061000, after.time_ms)
        local consumer = after.consumers[1]
        assert.same({ 1, 1, 2, 1, 1 }, { consumer.done, consumer.retried, consumer.redelivered,
            consumer.dead_lettered, consumer.discarded })
        assert.same({ exhausted = 1, rule = 1 }, consumer.reasons)
        assert.equal(5, consumer.taken)
        -- 3 s are in the bucket that ends at 4.1 s.
        assert.same({ 5, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0 }, consumer.times)
        assert.same({
            { file = "policy.lua", line = 3, retried = 0, redelivered = 2, dead_lettered = 0, discarded = 0 },
            { file = "policy.lua", line = 4, retried = 0, redelivered = 0, dead_lettered = 0, discarded = 1 },
            { file = "policy.lua", line = 5, retried = 1, redelivered = 0, dead_lettered = 1, discarded = 0 },
        }, after.rules)
    end)

    it("keeps the counts of rules through reloads, by file and line", function()
        local text = 'local policy = require "mulligan.policy"\n\npolicy.bus():default():%s'
        local policy = assert(mulligan.load_text(text:format 'discard "x"'))
        local rig = testing.rig { policy = policy, consumers = { C = { queue = "work", handler = function()
            error "no"
        end } } }
        finally(function()
            rig:close()
            policy:close()
        end)
        assert(rig:publish("work", "x"))
        rig:run_until_empty()
        local first = rig.engine:snapshot()
        assert.is_true(policy:reload(text:format 'dead_letter "error"'))
        assert(rig:publish("work", "x"))
        rig:run_until_empty()
        local second = rig.engine:snapshot()
        assert.not_equal(first.generation, second.generation)
        assert.same({ { file = "policy.lua", line = 3, retried = 0, redelivered = 0, dead_lettered = 1,
            discarded = 1 } }, second.rules)
    end)

    it("says why settlements fail, and since when", function()
        local clock = testing.clock(1000000000000)
        local rig = rigs.start("", function() end, { clock = clock })
        rig:fault("settle", { times = 3, code = "io" })
        clock:advance "1s"
        assert(rig:publish("work", "x"))
        clock:advance "100ms"
        local consumer = rig.engine:snapshot().consumers[1]
        assert.same({ "settling_fails", "the transport could not carry it out", 1000000001000, 1 },
            { consumer.why_not, consumer.why_not_text, consumer.why_not_since_ms, consumer.settling })
        rig:run_until_empty()
        consumer = rig.engine:snapshot().consumers[1]
        assert.same({ "nothing_there" }, { consumer.why_not, consumer.why_not_text })
    end)
end)
