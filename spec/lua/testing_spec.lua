-- mulligan.testing itself: a clock that specs can rely on.
local blamed = require "support.blamed"
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

describe("testing.clock", function()
    it("stands still until it is told to move", function()
        local clock = testing.clock(5000)
        assert.same({ 0, 5000 }, { clock:now(), clock:wall() })
        clock:advance("1m30s")
        assert.same({ 90000, 95000 }, { clock:now(), clock:wall() })
        clock:step("10s")
        assert.same({ 90000, 105000 }, { clock:now(), clock:wall() })
        clock:step("20s", true)
        assert.same({ 90000, 85000 }, { clock:now(), clock:wall() })
        assert.has_error(function()
            clock:advance(5)
        end)
    end)

    it("fires every timer on the way, in order, at its moment", function()
        local clock = testing.clock()
        local engine = assert(mulligan.engine { policy = assert(mulligan.load_text ""), clock = clock })
        local fired = {}
        local function at(delay, more)
            engine:after(delay, function()
                fired[#fired + 1] = delay .. " at " .. clock:now()
                if more then
                    more()
                end
            end)
        end
        at "3s"
        at("1s", function()
            at "1s"
        end)
        at "2500ms"
        at "11s"
        clock:advance("10s")
        assert.same({ "1s at 1000", "1s at 2000", "2500ms at 2500", "3s at 3000" }, fired)
        assert.equal(10000, clock:now())
        engine:close()
        clock:advance("10s")
        assert.equal(4, #fired)
    end)

    it("moves several engines together", function()
        local clock, order = testing.clock(), {}
        local function rig(name)
            return testing.rig {
                clock = clock,
                consumers = {
                    C = {
                        queue = "q",
                        handler = function(msg)
                            mulligan.sleep(msg.body)
                            order[#order + 1] = name .. " at " .. clock:now()
                        end,
                    },
                },
            }
        end
        local a, b = rig "a", rig "b"
        assert(a:publish("q", "2s"))
        assert(b:publish("q", "1s"))
        assert(a:publish("q", "3s"))
        a:advance("1m")
        assert.same({ "b at 1000", "a at 2000", "a at 5000" }, order)
        a:close()
        b:close()
    end)

    it("runs thirty days of redeliveries in no time", function()
        local calls = 0
        local rig = testing.rig {
            policy = [[require("mulligan.policy").bus():default():redeliver { attempts = 720, delay = "1h",
                backoff = "constant", jitter = 0 }]],
            consumers = {
                C = {
                    queue = "q",
                    handler = function()
                        calls = calls + 1
                        error("no")
                    end,
                },
            },
            collect = { "error" },
        }
        assert(rig:publish("q", "x"))
        rig:advance("30d")
        assert.equal(721, calls)
        assert.equal(1, #rig:collected("error"))
        rig:close()
    end)
end)

describe("testing.random", function()
    it("is the same for a seed, and not for another", function()
        local function draw(seed)
            local random, numbers = testing.random(seed), {}
            for number = 1, 20 do
                numbers[number] = random(1000)
            end
            return numbers
        end
        assert.same(draw(1), draw(1))
        assert.not_same(draw(1), draw(2))
        -- The first of SplitMix64 with seed 0, as published.
        local random = testing.random(0)
        assert.equal((0xE220A8397B1DCDAF >> 1) % 1000000007 + 1, random(1000000007))
    end)

    it("draws evenly enough", function()
        local random, counts, heads = testing.random(42), {}, 0
        for _ = 1, 10000 do
            local number = random(10)
            counts[number] = (counts[number] or 0) + 1
            heads = heads + (random:chance(0.25) and 1 or 0)
        end
        for number = 1, 10 do
            assert.is_true(counts[number] > 850 and counts[number] < 1150, counts[number])
        end
        assert.is_true(heads > 2300 and heads < 2700, heads)
        assert.is_truthy(({ a = true, b = true })[random:pick { "a", "b" }])
    end)
end)

describe("testing.rig", function()
    it("gives the problems of a policy", function()
        assert.error_matches(function()
            testing.rig { policy = "x =" }
        end, "policy.lua:1:", 1, true)
    end)

    it("makes the same ids for the same seed", function()
        local function ids()
            local seen = {}
            local rig = testing.rig {
                consumers = {
                    C = {
                        queue = "q",
                        handler = function(msg)
                            seen[#seen + 1] = msg.id
                        end,
                    },
                },
            }
            for _ = 1, 3 do
                assert(rig:publish("q", "x"))
            end
            rig:close()
            return seen
        end
        assert.same(ids(), ids())
    end)
end)

describe("misuse of mulligan.testing", function()
    local rig, clock, random

    setup(function()
        rig, clock, random = testing.rig {}, testing.clock(), testing.random(1)
    end)

    teardown(function()
        rig:close()
    end)

    local function nothing() end

    for _, case in ipairs {
        { "testing.clock: wall_ms must be a whole number, not \"x\"", function() local _ = testing.clock "x" end },
        { "testing.random: the seed must be a whole number, not nil", function() local _ = testing.random() end },
        { "random(n) takes a whole number from 1", function() local _ = random(0) end },
        { "random:pick takes a list that has something in it", function() local _ = random:pick {} end },
        { "random:chance takes a number from 0 to 1, not 50", function() local _ = random:chance(50) end },
        { 'clock:advance: 5 has no unit; "5ms" or "5s"?', function() clock:advance(5) end },
        { 'clock:step: 5 has no unit; "5ms" or "5s"?', function() clock:step(5) end },
        { "bad argument #1 to 'advance' (mulligan.clock expected", function() clock.advance "5s" end },
        { "testing.rig: options must be a table, not nil", function() local _ = testing.rig() end },
        { 'testing.rig: unknown option "polcy"; did you mean "policy"?', function()
            local _ = testing.rig { polcy = "" }
        end },
        { "testing.rig: policy must be a policy or the text of one, not 5", function()
            local _ = testing.rig { policy = 5 }
        end },
        { "testing.rig: clock must be a clock, as testing.clock gives it", function()
            local _ = testing.rig { clock = io.stdout }
        end },
        { "testing.rig: collect must be a list of names", function() local _ = testing.rig { collect = "error" } end },
        { "testing.rig: consumers must be tables of options by name", function()
            local _ = testing.rig { consumers = { { queue = "q", handler = nothing } } }
        end },
        { 'testing.rig: consumer "C": queue is missing; unknown option "queu"; did you mean "queue"?', function()
            local _ = testing.rig { consumers = { C = { queu = "q", handler = nothing } } }
        end },
        { "policy.lua:1: unexpected symbol", function() local _ = testing.rig { policy = "x =" } end },
        { "transport 'orders': there is no 'pigeon:'", function() local _ = testing.rig { url = "pigeon:" } end },
        { "consumer 'C' reads the queue 'error', to which its dead letters go; name another: "
            .. 'policy.consumer("C"):dead_letter_queue(...)', function()
            local _ = testing.rig { consumers = { C = { queue = "error", handler = nothing } } }
        end },
        { "queue must be a name in UTF-8", function() local _ = rig:publish(5, "x") end },
        { 'unknown key "delya" in the message\'s options; did you mean "delay"?', function()
            local _ = rig:publish("q", "x", { delya = "1s" })
        end },
        { "queue must be a name in UTF-8", function() local _ = rig:depth() end },
        { "clock:advance: nil", function() rig:advance() end },
        { 'no operation "setle"', function() rig:fault("setle") end },
        { 'engine:fault: unknown option "tmies"', function() rig:fault("settle", { tmies = 1 }) end },
        { 'queue "q" is not in `collect`', function() local _ = rig:collected "q" end },
        { 'there is no event "decide"; did you mean "decided"?', function() local _ = rig:events "decide" end },
    } do
        it("is blamed on the line of the caller: " .. case[1], function()
            blamed(case[1], case[2])
        end)
    end
end)
