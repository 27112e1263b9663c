-- order.lua: in which order messages come, and when those that were put off do.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "order:"

case("what is ready comes in the order in which it was published", function()
    local seen, list = {}, stage.numbered(100)
    local r = rig { consumers = { C = reader(seen) } }
    r:send(list)
    r:ends(100)
    assert.are.equal(list, ids(seen))
end)

-- Each delay is from its publish on, so a message is never early by the clock of who published it.
case("what is put off comes when it is due, never early", function()
    local seen, at, due = {}, {}, {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        at[msg.id] = stage.came_ms()
    end) } }
    local delays = { now = 0, early = of_time(3600000, 400), late = of_time(7200000, 900) }
    for _, id in ipairs { "now", "early", "late" } do -- each takes its time to be safe, and they stay in order
        local delay = delays[id]
        due[id] = r.clock:wall() + delay
        r:send(id, { delay = delay > 0 and delay .. "ms" or 0 })
    end
    r:ends(3)
    assert.are.equal("now early late", ids(seen))
    for id, moment in pairs(due) do
        assert.is_true(at[id] >= moment, id)
    end
end, "delay")

case("what is put off comes to the millisecond", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:send("late", { delay = "2h" })
    r:send("early", { delay = "1h" })
    r:send("now")
    r:counted("q", 0, 2, 0)
    r:pass "59m59.999s"
    assert.are.equal("now", ids(seen))
    r:pass "1ms"
    assert.are.equal("now early", ids(seen))
    r:pass "59m59.999s"
    assert.are.equal("now early", ids(seen))
    r:pass "1ms"
    assert.are.equal("now early late", ids(seen))
end, "clock delay")

case("what has come to be due goes first, by due time, then by sequence", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) }, start = false }
    r:send "x y"
    r:send("third", { delay = "2s" })
    r:send("first", { delay = "1s" })
    r:send("second", { delay = "1s" })
    r:send("never", { delay = "1h" })
    r:pass "3s"
    assert(r.engine:start())
    r:pass(0)
    assert.are.equal("first second third x y", ids(seen))
end, "clock delay")

case("what is redelivered at once goes to the end", function()
    local seen = {}
    local r = rig {
        policy = 'require("mulligan.policy").bus():default():redeliver(1, 0)',
        consumers = { C = reader(seen, function(msg)
            if msg.id == "a" and msg.redeliveries == 0 then
                mulligan.error "once more"
            end
        end, { concurrency = 1, prefetch = 1 }) },
        start = false,
    }
    r:send "a b c d e f"
    assert(r.engine:start())
    r:ends(6)
    assert.are.equal("a b c d e f a", ids(seen))
    assert.are.same({ 1, 1 }, { seen[7].redeliveries, seen[7].calls })
end)

case("a wall clock that is set back stalls nothing, and hurries nothing", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:send("before", { delay = "1h" })
    r.clock:step("24h", true)
    r:send("after", { delay = "2h" })
    r:send "now"
    r:pass "59m"
    assert.are.equal("now", ids(seen))
    r:pass "1m"
    assert.are.equal("now before", ids(seen))
    r:pass "59m"
    assert.are.equal("now before", ids(seen))
    r:pass "1m"
    assert.are.equal("now before after", ids(seen))
end, "clock delay")
