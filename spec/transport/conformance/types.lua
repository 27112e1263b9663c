-- types.lua: consumers that share a queue by the types of messages that they name.
local assert = require "luassert"
local stage = require "transport.conformance.stage"

local of_time, reader, rig = stage.of_time, stage.reader, stage.rig
local case = stage.group "types:"

-- send publishes a message of a type for each id.
local function send(r, type, list)
    r:send(list, { type = type })
end

local POLICY = [[
local policy = require "mulligan.policy"
local bus = policy.bus()
bus:on("NoConsumerError"):redeliver { "%s", "%s" }
for _, name in ipairs { "Orders", "Rest" } do
    policy.consumer(name):on("NoConsumerError"):discard("its consumer's rules don't hold")
end
policy.consumer("Finder of error"):dead_letter_queue("lost")
]]

local function policy()
    return POLICY:format(of_time("5m", "400ms"), of_time("10m", "400ms"))
end

case("each consumer gets its own, and one gets the rest", function()
    local orders, mails, rest = {}, {}, {}
    local r = rig { consumers = {
        Orders = reader(orders, nil, { types = { "Placed", "Cancelled" } }),
        Mails = reader(mails, nil, { types = { "Mail" } }),
        Rest = reader(rest),
    } }
    send(r, "Placed", "a1 a2")
    send(r, "Mail", "b1")
    send(r, "Cancelled", "a3")
    send(r, "Other", "c1")
    r:send "c2"
    r:ends(6)
    assert.are.equal("a1 a2 a3", stage.all_ids(orders))
    assert.are.equal("b1", stage.all_ids(mails))
    assert.are.equal("c1 c2", stage.all_ids(rest))
    for _, msg in ipairs(orders) do
        assert.are.same({ 1, 0, 0 }, { msg.attempt, msg.calls, msg.redeliveries })
    end
end, "delay")

case("what no consumer takes fails by the rules of all, and no handler is called", function()
    local seen = {}
    local r = rig { policy = policy(), consumers = { Orders = reader(seen, nil, { types = { "Placed" } }) } }
    local found = r:find "error"
    send(r, "Mail", "m1")
    r:send "m2"
    send(r, "Placed", "m3")
    r:await("its dead letters", function()
        return #found == 2
    end)
    assert.are.equal("m3", stage.all_ids(seen))
    assert.are.equal("m1 m2", stage.all_ids(found))
    local headers = found[1].headers
    assert.are.same({ "NoConsumerError", "exhausted", "2", "q" }, { headers["mulligan-error-type"],
        headers["mulligan-reason"], headers["mulligan-redeliveries"], headers["mulligan-queue"] })
    assert.is_nil(headers["mulligan-consumer"])
end, "delay")

case("what waits for a redelivery is taken by a consumer that came meanwhile", function()
    local seen, mails = {}, {}
    local r = rig {
        policy = ('require("mulligan.policy").bus():on("NoConsumerError"):redeliver(50, "%s", "constant")'):format(
            of_time("5m", "400ms")),
        consumers = { Orders = reader(seen, nil, { types = { "Placed" } }) },
    }
    send(r, "Mail", "m1")
    r:await("its redelivery", function()
        return r:counts().redelivered >= 1
    end)
    assert(r.engine:consumer("Mails", reader(mails, nil, { types = { "Mail" }, transport = "orders" })))
    r:ends(1)
    assert.are.equal("m1", stage.ids(mails))
    assert.is_true(mails[1].redeliveries >= 1)
end, "delay")

case("a retry of what no consumer takes looks for one again", function()
    local seen = {}
    local r = rig {
        policy = ('require("mulligan.policy").bus():on("NoConsumerError"):retry(40, "%s", "constant")'):format(
            of_time("1s", "200ms")),
        consumers = { Orders = reader({}, nil, { types = { "Placed" } }) },
    }
    send(r, "Mail", "m1")
    r:await("a retry", function()
        return r:counts().retried >= 2
    end)
    assert(r.engine:consumer("Mails", reader(seen, nil, { types = { "Mail" }, transport = "orders" })))
    r:ends(1)
    assert.are.equal("m1", stage.ids(seen))
    assert.is_true(seen[1].calls >= 2)
end, "delay")

case("one that has no room holds up no other, and gets its messages later, uncounted", function()
    local slow, quick, gate = {}, {}, {}
    local r = rig { consumers = {
        Slow = reader(slow, function()
            stage.until_free(gate)
        end, { types = { "Slow" }, concurrency = 1, prefetch = 1, timeout = "5m" }),
        Quick = reader(quick, nil, { types = { "Quick" }, concurrency = 1, prefetch = 1 }),
    } }
    send(r, "Slow", stage.numbered(6))
    send(r, "Quick", (stage.numbered(6):gsub("m", "n")))
    r:await("the others", function()
        return #quick == 6
    end)
    assert.are.equal(1, #slow)
    gate.open = true
    r:ends(12)
    assert.are.equal(stage.numbered(6), stage.all_ids(slow))
    for _, msg in ipairs(slow) do
        assert.are.same({ 1, 0, 0 }, { msg.attempt, msg.calls, msg.redeliveries })
    end
end, "delay")

case("one that is paused gets nothing, and what is its own when it goes on", function()
    local orders, rest = {}, {}
    local r = rig { consumers = {
        Orders = reader(orders, nil, { types = { "Placed" } }),
        Rest = reader(rest),
    } }
    assert(r.engine:pause "Orders")
    send(r, "Placed", "a1 a2")
    r:send "c1 c2"
    r:await("the others", function()
        return #rest == 2
    end)
    r:pass(of_time("10s", "1200ms"))
    assert.are.same({ 0, "paused" }, { #orders, (r.engine:why_not "Orders") })
    assert(r.engine:resume "Orders")
    r:ends(4)
    assert.are.equal("a1 a2", stage.all_ids(orders))
end, "delay")

case("those of one that is removed go to the rest, or fail", function()
    local orders, rest = {}, {}
    local r = rig { consumers = {
        Orders = reader(orders, nil, { types = { "Placed" } }),
        Rest = reader(rest),
    } }
    local removed = 0
    local function gone()
        removed = removed + 1
    end
    send(r, "Placed", "a1")
    r:await("a call", function()
        return #orders == 1
    end)
    assert(r.engine:remove_consumer("Orders", gone))
    r:await("the removal", function()
        return removed == 1
    end)
    send(r, "Placed", "a2")
    r:ends(2)
    assert.are.equal("a2", stage.ids(rest))
    assert(r.engine:consumer("Orders", reader(orders, nil, { types = { "Placed" }, transport = "orders" })))
    assert(r.engine:remove_consumer("Rest", gone))
    r:await("the removal", function()
        return removed == 2
    end)
    send(r, "Placed", "a3")
    r:ends(3)
    assert.are.equal("a1 a3", stage.all_ids(orders))
    assert(r.engine:remove_consumer("Orders", gone))
    r:await("the removal", function()
        return removed == 3
    end)
    send(r, "Placed", "a4") -- nobody reads the queue
    r:counted("q", 1, 0, 0)
    assert(r.engine:consumer("Mails", reader({}, nil, { types = { "Mail" }, transport = "orders" })))
    r:ends(4)
    assert.are.equal(1, r:counts().dead_lettered)
end, "delay")

case("one that reads a queue alone shares it with one that comes later", function()
    local orders, rest, gate = {}, {}, {}
    local r = rig { consumers = { Rest = reader(rest, function()
        stage.until_free(gate)
    end, { concurrency = 1, timeout = "5m" }) } }
    send(r, "Placed", "a1 a2 a3")
    r:await("a call", function()
        return #rest == 1
    end)
    assert(r.engine:consumer("Orders", reader(orders, nil, { types = { "Placed" }, transport = "orders" })))
    r:await("what waited for the first", function()
        return #orders == 2
    end)
    gate.open = true
    r:send "c1"
    r:ends(4)
    assert.are.same({ "a1 c1", "a2 a3" }, { stage.all_ids(rest), stage.all_ids(orders) })
end, "delay")

case("one that is given more concurrency uses it", function()
    local seen, gate, now = {}, {}, 0
    local r = rig { consumers = {
        Orders = reader(seen, function()
            now = now + 1
            stage.until_free(gate)
            now = now - 1
        end, { types = { "Placed" }, concurrency = 1, timeout = "5m" }),
        Rest = reader {},
    } }
    assert(r.engine:concurrency("Orders", 3))
    r:await("the new subscription", function()
        return r.engine:why_not "Orders" ~= "queue_waiting"
    end)
    send(r, "Placed", stage.numbered(8))
    r:await("three handlers", function()
        return now == 3
    end)
    assert.are.equal(3, #seen)
    gate.open = true
    r:ends(8)
end, "delay")
