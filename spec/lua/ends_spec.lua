-- How messages and engines end when something is in their way: settles that fail while the engine
-- stops, handlers that never end, headers that were spoiled, messages whose last owner died.
local mulligan = require "mulligan"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

describe("the engine", function()
    local rig

    local function start(...)
        rig = rigs.start(...)
    end

    after_each(rigs.close)

    describe("while it stops and can't settle", function()
        local path

        before_each(function()
            path = os.tmpname()
            os.remove(path)
        end)

        after_each(function()
            for _, ending in ipairs { "", "-wal", "-shm", "-lock" } do
                os.remove(path .. ending)
            end
        end)

        it("counts none of what it claimed as a failed call", function()
            local url = "sqlite:" .. path
            start("", function()
                mulligan.sleep("1h")
            end, { url = url, grace = "1s" })
            for number = 1, 3 do
                assert(rig:publish("work", "x", { id = "m-" .. number }))
            end
            rig:fault("settle", { times = 1000, code = "io" })
            rig:stop()
            rig:close()

            local seen = {}
            start("bus:max_attempts(1)\nbus:default():discard()", function(msg)
                seen[#seen + 1] = msg.id .. " " .. msg.deliveries
            end, { url = url })
            rig:run_until_empty()
            table.sort(seen)
            assert.same({ "m-1 1", "m-2 1", "m-3 1" }, seen)
            assert.equal(3, rig:counts().done)
            assert.equal(0, rig:counts().discarded)
        end)

        it("leaves the message to its transport, whose claim times out later", function()
            start("", function()
                error("no")
            end, { url = "memory:?claim_timeout=60s", grace = "1s" })
            rig:fault("settle", { times = 1000, code = "io" })
            assert(rig:publish("work", "x", { id = "m-1" }))
            rig:stop()
            rig:advance("10m")
            assert.equal(0, rig:counts().dead_lettered)
        end)

        it("closes all the same", function()
            start("", function()
                error("no")
            end)
            rig:fault("settle", { times = 1000, code = "io" })
            assert(rig:publish("work", "x", { id = "m-1" }))
            rig:close()
        end)
    end)

    describe("tells header_ignored, and goes on with", function()
        local far = "2099-01-01T00:00:00.000Z"
        for _, case in ipairs {
            { "mulligan-calls", "many", "a counter that is no number" },
            { "mulligan-redeliveries", "9999999999999999", "a counter beyond all numbers" },
            { "mulligan-redeliveries", "-1", "a counter below 0" },
            { "mulligan-first-failure", "yesterday", "a moment that can't be read" },
            { "mulligan-first-failure", far, "a moment that lies ahead" },
        } do
            local name, value, words = table.unpack(case)
            it(words, function()
                local seen
                start("", function(msg)
                    seen = { msg.attempt, msg.redeliveries, msg.calls }
                end)
                assert(rig:publish("work", "x", { id = "m-1", headers = { [name] = value } }))
                rig:run_until_empty()
                assert.same({ 1, 0, 0 }, seen)
                local event = rig:events()[1]
                assert.equal("header_ignored", event.name)
                assert.equal(name, event.text)
                assert.equal("m-1", event.failure.message.id)
            end)
        end
    end)

    it("hands no counters down to what a handler sends", function()
        local next_one
        start('bus:default():redeliver { "1m" }', function(msg)
            if msg.redeliveries == 0 then
                error("no")
            end
            mulligan.send("next", msg.body, { headers = msg.headers })
        end, {
            consumers = {
                C = {
                    queue = "work",
                    handler = function(msg)
                        if msg.redeliveries == 0 then
                            error("no")
                        end
                        mulligan.send("next", msg.body, { headers = msg.headers })
                    end,
                },
                D = {
                    queue = "next",
                    handler = function(msg)
                        next_one = msg
                    end,
                },
            },
        })
        assert(rig:publish("work", "x", { id = "m-1", headers = { tenant = "acme" } }))
        rig:run_until_empty()
        assert.same({ tenant = "acme" }, next_one.headers)
        assert.same({ 0, 0 }, { next_one.redeliveries, next_one.calls })
    end)

    it("gives a message one id for all its life", function()
        local ids = {}
        start('bus:default():redeliver { "1m" }', function(msg)
            ids[#ids + 1] = msg.id
            mulligan.send("error", "sent")
            if #ids < 2 then
                error("no")
            end
        end)
        assert(rig:publish("work", "x"))
        rig:run_until_empty()
        assert.equal(ids[1], ids[2])
        assert.is_truthy(ids[1]:find("^%x+$"))
        local sent = rig:collected("error")[1]
        assert.is_truthy(sent.id:find("^%x+$"))
        assert.not_equal(ids[1], sent.id)
    end)

    it("runs a message whose owner died alone, but doesn't wait for others without end", function()
        local began, clock = {}, testing.clock()
        start("", function(msg)
            began[#began + 1] = { clock:now(), msg.deliveries }
            if msg.deliveries == 1 then
                mulligan.sleep("2h")
            end
        end, { clock = clock, url = "memory:?claim_timeout=1m", start = false }, { timeout = false })
        assert(rig.engine:transport("other", "memory:"))
        assert(rig.engine:consumer("L", {
            transport = "other",
            queue = "long",
            timeout = false,
            handler = function()
                mulligan.sleep("10h")
            end,
        }))
        assert(rig.engine:start())
        assert(rig.engine:publish("other", "long", "x", { id = "l-1" }))
        rig:fault("hold", { times = 1000000 })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance("64s")
        assert.same({ { 0, 1 } }, began)
        rig:advance("2s")
        assert.same({ { 0, 1 }, { 65000, 2 } }, began)
    end)

    it("turns on where claims time out after a millisecond", function()
        local calls = 0
        start("", function()
            calls = calls + 1
        end, { url = "memory:?claim_timeout=1ms" })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance("1s")
        assert.equal(1, calls)
    end)
end)
