-- credit.lua: how much a consumer takes: handlers at work, claims beside them, and what that leaves to
-- others.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local ids, reader, rig = stage.ids, stage.reader, stage.rig
local case = stage.group "credit"

-- crowd gives a consumer whose handlers last 30 ms, and a table with the most of them at work at a time.
local function crowd(more)
    local seen, count = {}, { now = 0, most = 0 }
    local consumer = reader(seen, function()
        count.now = count.now + 1
        count.most = math.max(count.most, count.now)
        mulligan.sleep "30ms"
        count.now = count.now - 1
    end, more)
    return consumer, count, seen
end

case("has never more handlers at work than the concurrency", function()
    local consumer, count = crowd { concurrency = 3, prefetch = 5 }
    local r = rig { consumers = { C = consumer }, start = false }
    r:send(stage.numbered(30))
    assert(r.engine:start())
    r:ends(30)
    assert.are.equal(3, count.most)
end)

case("bounds what is out", function()
    local at_work, most = 0, 0
    local r = rig { consumers = { C = {
        queue = "q", concurrency = 2, prefetch = 3, timeout = false,
        handler = function()
            at_work = at_work + 1
            most = math.max(most, at_work)
            mulligan.sleep "1m"
            at_work = at_work - 1
        end,
    } } }
    r:send(("m "):rep(20))
    r:counted("q", 15, 0, 5)
    r:pass "59s"
    r:counted("q", 15, 0, 5)
    -- From then on as many again as the prefetch, for those that are being settled.
    for _ = 1, 4 do
        r:pass "1m"
        local claimed = r:depth("q").claimed
        assert.is_true(claimed <= 2 + 3 + 3, claimed)
    end
    r:ends(20)
    assert.are.equal(2, most)
end, "clock exact")

-- What one that is stuck has claimed is its handlers at work and twice its prefetch, at most.
case("leaves to others what is beyond the prefetch", function()
    local gate, seen, others = {}, {}, {}
    local stuck = reader(seen, function()
        stage.until_free(gate)
    end, { concurrency = 2, prefetch = 3, timeout = "5m" })
    local r = rig { consumers = { C = stuck } }
    r:send(stage.numbered(20))
    r:await("two handlers", function()
        return #seen == 2
    end)
    local other = reader(others)
    other.transport = "orders"
    assert(r.engine:consumer("D", other))
    r:await("what is left to others", function()
        return #others >= 20 - (2 + 2 * 3)
    end)
    assert.are.equal(2, #seen)
    gate.open = true
    r:ends(20)
    assert.are.equal(20, #seen + #others)
end)

case("is each consumer's own, and no message is handed to two", function()
    local seen, by = {}, { C = 0, D = 0 }
    local function consumer(which)
        return {
            queue = "q", concurrency = 3, prefetch = 1,
            handler = function(msg)
                assert(not seen[msg.id], "handed out twice")
                seen[msg.id] = true
                by[which] = by[which] + 1
                mulligan.sleep(stage.of_time("1s", "20ms"))
            end,
        }
    end
    local r = rig { consumers = { C = consumer "C", D = consumer "D" }, start = false }
    r:send(stage.numbered(60))
    assert(r.engine:start())
    r:ends(60)
    assert.are.equal(60, by.C + by.D)
    assert.is_true(by.C > 10 and by.D > 10, "both had their share")
    assert.are.same({}, r:events("decided"))
end)

case("of one queue isn't used up by another", function()
    local seen, gate = {}, {}
    local r = rig { consumers = {
        Stuck = { queue = "stuck", concurrency = 1, timeout = "5m", handler = function()
            stage.until_free(gate)
        end },
        C = reader(seen),
    } }
    for _ = 1, 20 do
        assert(r:publish("stuck", "x"))
    end
    r:send "a b c"
    r:await("the other queue", function()
        return #seen == 3
    end)
    assert.are.equal("a b c", ids(seen))
    gate.open = true
    r:ends(23)
end)
