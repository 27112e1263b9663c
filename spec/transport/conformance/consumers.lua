-- consumers.lua: what an engine does to a consumer while it runs: pause, concurrency, removal, limits.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local of_time, reader, rig = stage.of_time, stage.reader, stage.rig
local case = stage.group "a consumer"

-- gated gives a consumer whose handlers wait for the gate, and how many are at work.
local function gated(more)
    local seen, gate, count = {}, {}, { now = 0, most = 0 }
    local consumer = reader(seen, function()
        count.now = count.now + 1
        count.most = math.max(count.most, count.now)
        stage.until_free(gate)
        count.now = count.now - 1
    end, more)
    return consumer, seen, gate, count
end

case("that is given more concurrency uses it, and never more", function()
    local consumer, seen, gate, count = gated { concurrency = 2, timeout = "5m" }
    local r = rig { consumers = { C = consumer } }
    assert(r.engine:concurrency("C", 1))
    r:send(stage.numbered(12))
    r:await("one handler", function()
        return count.now == 1
    end)
    assert(r.engine:concurrency("C", 2))
    r:await("two handlers", function()
        return count.now == 2
    end)
    assert(r.engine:concurrency("C", 5)) -- a new subscription, once these have ended
    gate.open = true
    r:await("the new subscription", function()
        return r.engine:why_not "C" ~= "queue_waiting"
    end)
    gate.open = false
    r:send((stage.numbered(9):gsub("m", "n")))
    r:await("five handlers", function()
        return count.now == 5
    end)
    assert.are.equal(5, count.most)
    gate.open = true
    r:ends(21)
    assert.are.equal(21, #seen)
end)

case("that is given less begins no call beyond it", function()
    local consumer, seen, gate, count = gated { concurrency = 5, timeout = "5m" }
    local r = rig { consumers = { C = consumer } }
    r:send(stage.numbered(5))
    r:await("five handlers", function()
        return count.now == 5
    end)
    assert(r.engine:concurrency("C", 1))
    count.most, gate.open = 0, true
    r:await("their ends", function()
        return r:ended() == 5
    end)
    r:send((stage.numbered(6):gsub("m", "n")))
    r:ends(11)
    assert.are.same({ 11, 1 }, { #seen, count.most })
end)

case("that is paused begins no call, gives back what waits, and goes on", function()
    local consumer, seen, gate = gated { concurrency = 1, timeout = "5m" }
    local r = rig { consumers = { C = consumer } }
    r:send "a b c d"
    r:await("a handler", function()
        return #seen == 1
    end)
    assert(r.engine:pause "C")
    gate.open = true
    r:await("its end", function()
        return r:ended() == 1
    end)
    r:pass(of_time("1s", "400ms"))
    assert.are.same({ 1, "paused" }, { #seen, (r.engine:why_not "C") })
    local others = {}
    local other = reader(others, nil, { transport = "orders" })
    assert(r.engine:consumer("D", other))
    r:await("what was given back", function()
        return #others == 3
    end)
    assert.are.equal("b c d", stage.all_ids(others))
    local removed
    assert(r.engine:remove_consumer("D", function()
        removed = true
    end))
    r:await("the removal", function()
        return removed
    end)
    assert(r.engine:resume "C")
    r:send "e"
    r:ends(5)
    assert.are.equal("a e", stage.all_ids(seen))
    for _, msg in ipairs(others) do
        assert.are.same({ 1, 0 }, { msg.attempt, msg.calls })
    end
end)

case("that a limit slows down begins its calls at that rate, and loses none", function()
    local at = {}
    local r
    r = rig {
        policy = 'require("mulligan.policy").bus():limit { rate = "10/s" }',
        consumers = { C = { queue = "q", concurrency = 4, handler = function()
            at[#at + 1] = r.clock:now()
        end } },
    }
    r:send(stage.numbered(6))
    r:ends(6)
    assert.is_true(at[6] - at[1] >= 490, at[6] - at[1])
end)

-- Messages of a value that is limited go back to the queue, due later, so that others pass them.
case("that has a limit for each value holds messages of one back, and others pass", function()
    local seen, at = {}, {}
    local r
    r = rig {
        policy = ('require("mulligan.policy").bus():limit { rate = "%s", per = "key" }'):format(of_time("1/m", "2/s")),
        consumers = { C = reader(seen, function(msg)
            at[msg.id] = r.clock:now()
        end) },
        start = false,
    }
    r:send("a b c", { key = "slow" })
    r:send("x", { key = "other" })
    r:send "y"
    assert(r.engine:start())
    r:ends(5)
    assert.are.equal("a b c x y", stage.all_ids(seen))
    local step = of_time(60000, 500)
    local slow = { at.a, at.b, at.c }
    table.sort(slow)
    assert.is_true(slow[2] - slow[1] >= step and slow[3] - slow[2] >= step)
    assert.is_true(at.x < slow[2] and at.y < slow[2])
    for _, msg in ipairs(seen) do
        assert.are.same({ 1, 0, 0 }, { msg.attempt, msg.calls, msg.redeliveries })
    end
end, "delay")

case("that all fails is held back by its rate limit, and then goes on", function()
    local seen, well = {}, false
    local r = rig {
        policy = ('local bus = require("mulligan.policy").bus()\nbus:rate_limit { after = 3, wait = "%s" }\n'
            .. 'bus:default():redeliver(20, "%s", "constant")'):format(of_time("5s", "300ms"), of_time("1s", "100ms")),
        consumers = { C = reader(seen, function()
            if not well then
                mulligan.error "not now"
            end
        end, { concurrency = 3 }) },
    }
    r:send(stage.numbered(5))
    r:await("the limit", function()
        return r.engine:why_not "C" == "limited"
    end)
    local before = #seen
    r:pass(of_time("1s", "100ms"))
    assert.is_true(#seen <= before + 1)
    well = true
    r:ends(5)
    assert.are.equal(5, r:counts().done)
end, "delay")
