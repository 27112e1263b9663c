-- faults.lua: whatever fails when, each message comes to one end.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"
local testing = require "mulligan.testing"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "faults:"

case("a settle that fails is tried again, and nothing is done twice", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        mulligan.send("next", "x", { id = "s-" .. msg.id })
    end) }, collect = { "next" } }
    r:fault("settle", { times = 3, code = "io" })
    r:send "a b"
    r:ends(4)
    assert.are.equal("a b", ids(seen))
    assert.are.equal("s-a s-b", ids(r:collected("next")))
    assert.are.equal(0, #r:events("decided"))
end)

case("a publish that fails says so, and the next one works", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:fault("publish", { times = 1, code = "io" })
    local done, _, code = r:publish("q", "x", { id = "a" })
    assert.is_nil(done)
    assert.are.equal("io", code)
    r:send "b"
    r:ends(1)
    assert.are.equal("b", ids(seen))
end)

-- The body's size says how often a message is redelivered, and how it ends.
local function worker(random)
    return {
        queue = "q", concurrency = 7, prefetch = 4,
        handler = function(msg)
            if random:chance(0.3) then
                mulligan.sleep(of_time("700ms", "7ms"))
            end
            if msg.redeliveries < #msg.body % 4 then
                mulligan.error { type = "Soon" }
            end
            local last = #msg.body // 4
            if last == 1 then
                mulligan.error { type = "Drop" }
            elseif last == 2 then
                mulligan.error { type = "Dead" }
            end
            mulligan.send("next", "x", { id = msg.id })
        end,
    }
end

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Soon"):redeliver(50, "%s", "constant")
bus:on("Drop"):discard()
bus:on("Dead"):dead_letter("parked")
bus:default():dead_letter()
]]

case("whatever fails when, each message comes to one end", function()
    local random = testing.random(7)
    local ends, expected, discarded = {}, {}, 0
    local r = rig {
        policy = POLICY:format(of_time("1s", "100ms")),
        consumers = { C = worker(random) },
        collect = { "next", "parked" },
    }
    local count = of_time(300, 60)
    for number = 1, count do
        local id, size = "m" .. number, random(12) - 1
        if random:chance(0.1) then
            r:fault("settle", { skip = random(3) - 1, times = random(4) })
        end
        assert(r:publish("q", ("x"):rep(size), { id = id }))
        if size // 4 == 1 then
            discarded = discarded + 1
        else
            expected[id] = size // 4 == 2 and "parked" or "next"
        end
    end
    r:ends(2 * count - discarded)
    for _, queue in ipairs { "next", "parked" } do
        for _, msg in ipairs(r:collected(queue)) do
            assert.is_nil(ends[msg.id], msg.id .. " has two ends")
            ends[msg.id] = queue
        end
    end
    assert.are.same(expected, ends)
    assert.are.equal(discarded, r:counts().discarded)
end, "delay")
