-- settling.lua: what becomes of a message by each verdict, and of what a stop or a close finds.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "settling:"

case("a redelivery comes back when it is due, with new counters and the same content", function()
    local seen, came, failed = {}, {}, {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        came[#seen], failed[#seen] = stage.came_ms(), stage.clock:wall()
        if msg.redeliveries < 2 then
            mulligan.error { type = "Later" }
        end
    end) } }
    assert(r:publish("q", "x", { id = "a", key = "k", headers = { mine = "1" } }))
    r:ends(1)
    assert.are.equal("a a a", ids(seen))
    assert.is_true(came[2] - failed[1] >= of_time(300000, 400) and came[3] - failed[2] >= of_time(600000, 600))
    for number, msg in ipairs(seen) do
        assert.are.same({ number - 1, number - 1, 1, 1 }, { msg.redeliveries, msg.calls, msg.attempt, msg.deliveries })
        assert.are.same({ "1", "k" }, { msg.headers.mine, msg.key })
    end
    assert.is_nil(seen[3].headers["mulligan-reason"])
    assert.are.equal(2, r:counts().redelivered)
end, "delay")

case("a redelivery that waits is counted, and when it is due", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Later" }
    end) } }
    r:send "a"
    r:pass(0)
    local depth = r:counted("q", 0, 1, 0)
    assert.is_true(depth.next_due_ms > r.clock:wall())
end, "clock delay exact")

case("a dead letter is one copy elsewhere, and the original is gone", function()
    local r = rig {
        consumers = { C = reader({}, function()
            mulligan.error { type = "Dead", message = "because" }
        end) },
        collect = { "parked" },
    }
    assert(r:publish("q", "x", { id = "a", type = "T", key = "k", headers = { mine = "1" } }))
    r:ends(2)
    local dead = r:collected("parked")
    assert.are.equal("a", ids(dead))
    assert.are.same({ "T", "k", "x", "parked", 1 },
        { dead[1].type, dead[1].key, dead[1].body, dead[1].queue, dead[1].deliveries })
    assert.are.equal("1", dead[1].headers.mine)
    assert.are.equal("q", dead[1].headers["mulligan-queue"])
    assert.are.equal("Dead", dead[1].headers["mulligan-error-type"])
    assert.are.equal("because", dead[1].headers["mulligan-error-message"])
    r:counted("q", 0, 0, 0)
end)

case("a dead letter stays where nobody reads its queue, which is made for it", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Unknown" }
    end) } }
    r:send "a b"
    r:ends(2)
    r:counted("error", 2, 0, 0)
    local found = r:find "error"
    r:await("the dead letters", function()
        return #found == 2
    end)
    assert.are.equal("a b", stage.all_ids(found))
end)

case("a discarded message is gone", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Drop" }
    end) }, collect = { "error", "parked" } }
    r:send "a"
    r:ends(1)
    r:counted("q", 0, 0, 0)
    assert.are.same({ 0, 0 }, { #r:collected "error", #r:collected "parked" })
    assert.are.equal(1, r:counts().discarded)
end)

case("a retry is no new hand-out", function()
    local seen, gate = {}, {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        while msg.attempt == 2 and not gate.open do
            mulligan.sleep "1ms"
        end
        if msg.attempt < 3 then
            mulligan.error { type = "Again" }
        end
    end) } }
    r:send "a"
    r:await("the second call", function()
        return #seen == 2
    end)
    r:counted("q", 0, 0, 1)
    gate.open = true
    r:ends(1)
    assert.are.equal(3, #seen)
    assert.are.equal(1, seen[3].deliveries)
end)

-- asleep gives a consumer that is at work until the gate is open.
local function asleep(seen, gate, concurrency)
    return reader(seen, function()
        stage.until_free(gate)
    end, { concurrency = concurrency, prefetch = 3, timeout = "5m" })
end

case("a stop gives back what was claimed", function()
    local r = rig { consumers = { C = asleep({}, {}, 2) }, grace = "10s" }
    r:send "a b c d e f g"
    r:counted("q", 2, 0, 5)
    r:stop()
    r:counted("q", 7, 0, 0)
end, "clock exact")

case("a stop lets handlers at work end, and gives back the rest, uncounted", function()
    local seen, gate = {}, {}
    local consumer = asleep(seen, gate, 2)
    local first = rig { consumers = { C = consumer }, grace = "20s" }
    first:send "a b c d e f g"
    first:await("two handlers", function()
        return #seen == 2
    end)
    first.engine:stop()
    gate.open = true
    first:stop()
    assert.are.same({ "a b", 2 }, { ids(seen), first:counts().done })
    first:close()
    local second = rig { consumers = { C = consumer } }
    second:ends(5)
    assert.are.equal("a b c d e f g", stage.all_ids(seen))
    assert.are.equal(7, #seen)
    for _, msg in ipairs(seen) do
        assert.are.same({ 1, 0, 0 }, { msg.attempt, msg.calls, msg.redeliveries })
    end
end, "durable")

case("a stop gives back what its grace is too short for, uncounted", function()
    local seen, gate = {}, {}
    local consumer = asleep(seen, gate, 2)
    local first = rig { consumers = { C = consumer }, grace = "200ms" }
    first:send "a b c d e f g"
    first:await("two handlers", function()
        return #seen == 2
    end)
    first:stop()
    assert.are.equal(0, first:counts().done)
    first:close()
    seen[1], seen[2], gate.open = nil, nil, true
    consumer.concurrency = 1
    rig({ consumers = { C = consumer } }):ends(7)
    assert.are.equal("a b c d e f g", stage.all_ids(seen))
    for _, msg in ipairs(seen) do
        assert.are.same({ 1, 0 }, { msg.attempt, msg.calls })
    end
    if stage.has.old_place then
        assert.are.equal("a b c d e f g", ids(seen))
    end
    if stage.has.deaths then
        for _, msg in ipairs(seen) do
            assert.are.equal(1, msg.deliveries)
        end
    end
end, "durable")

case("what waits to be redelivered survives a stop, and its counters do", function()
    local seen, first = {}, nil
    local consumer = reader(seen, function(msg)
        if msg.redeliveries == 0 then
            first.engine:pause("C") -- it may be due before the stop, where a server is slow
            mulligan.error { type = "Later" }
        end
    end)
    first = rig { consumers = { C = consumer } }
    first:send "a"
    first:await("the redelivery", function()
        return first:counts().redelivered == 1
    end)
    first:stop()
    first:close()
    local second = rig { consumers = { C = consumer } }
    second:ends(1)
    assert.are.equal("a a", ids(seen))
    assert.are.same({ 1, 1, 1 }, { seen[2].redeliveries, seen[2].calls, seen[2].attempt })
end, "durable delay")

case("a close with a handler at work ends, and loses nothing", function()
    local seen, gate = {}, {}
    local consumer = asleep(seen, gate, 1)
    local first = rig { consumers = { C = consumer } }
    first:send "a b"
    first:await("a handler", function()
        return #seen == 1
    end)
    first:close()
    gate.open, seen[1] = true, nil
    rig({ consumers = { C = consumer } }):ends(2)
    assert.are.equal("a b", stage.all_ids(seen))
end, "durable")
