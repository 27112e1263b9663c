-- sends.lua: what a handler sends goes out with its acknowledgement, and never without.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "what a handler sends"

local function sender(fails)
    return reader({}, function(msg)
        mulligan.send("next", "to " .. msg.id, { id = "s-" .. msg.id, headers = { from = msg.id } })
        mulligan.send("next", "later", { id = "l-" .. msg.id, delay = of_time("1h", "400ms") })
        if msg.attempt <= fails then
            mulligan.error { type = fails < 9 and "Again" or "Dead" }
        end
    end)
end

case("goes out with the acknowledgement", function()
    local r = rig { consumers = { C = sender(0) }, collect = { "next" } }
    r:send "a"
    r:ends(3)
    local sent = r:collected("next")
    assert.are.equal("s-a l-a", ids(sent))
    assert.are.same({ "to a", "a" }, { sent[1].body, sent[1].headers.from })
end, "delay")

case("goes out once, after the retry that succeeds", function()
    local r = rig { consumers = { C = sender(2) }, collect = { "next" } }
    r:send "a"
    r:await("the second retry", function()
        return r:counts().retried == 2
    end)
    assert.are.equal("", ids(r:collected("next")))
    r:ends(3)
    assert.are.equal("s-a l-a", ids(r:collected("next")))
end, "delay")

case("never goes out where it fails", function()
    local r = rig { consumers = { C = sender(9) }, collect = { "next", "parked" } }
    r:send "a"
    r:ends(2)
    assert.are.equal("a", ids(r:collected("parked")))
    assert.are.equal("", ids(r:collected("next")))
end, "delay")
