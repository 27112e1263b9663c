-- outside.lua: messages that mulligan didn't write: of other programs, and those that can't be
-- understood. The place's hooks put them there.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local reader, rig = stage.reader, stage.rig
local case = stage.group "a foreign message"

case("is handled, and gets an id that it keeps", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        mulligan.error { type = msg.redeliveries == 0 and "Soon" or "Dead" }
    end) }, collect = { "parked" } }
    stage.place.foreign "q"
    r:ends(2)
    local dead = r:collected("parked")[1]
    assert.are.same({ "from outside", "from outside", "from outside" }, { seen[1].body, seen[2].body, dead.body })
    assert.is_true(#seen[1].id > 0)
    assert.are.same({ seen[1].id, seen[1].id }, { seen[2].id, dead.id })
end, "foreign delay")

case("that can't be understood becomes a dead letter that says so, and holds up no other", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) }, start = false }
    r:send "a"
    stage.place.malformed(r, "q")
    assert(r.engine:start())
    r:ends(2)
    assert.are.equal("a", stage.ids(seen))
    local decided = r:events "decided"
    assert.are.same({ 1, "MessageDeserializationError", "dead_letter" },
        { #decided, decided[1].failure.error.type, decided[1].verdict.action })
end, "malformed")
