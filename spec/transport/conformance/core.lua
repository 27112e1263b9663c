-- core.lua: the cases of any contract of retries: what is counted when, what a retry sees, and what
-- becomes of a message that can't be settled.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "a failure"

case("asks the policy once, with its counters at 1", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Dead" }
    end) }, collect = { "parked" } }
    r:send "a"
    r:ends(2)
    local decided = r:events "decided"
    assert.are.equal(1, #decided)
    local failure = decided[1].failure
    assert.are.same({ 1, 1, 0, 1 }, { failure.attempt, failure.calls, failure.redeliveries, failure.deliveries })
end)

case("keeps its counters between retries, and they begin anew after a delay", function()
    local seen = {}
    local r = rig {
        policy = ('require("mulligan.policy").bus():default():retry(2, "%s", "constant"):then_redeliver { "%s" }')
            :format(of_time("1s", "50ms"), of_time("5m", "300ms")),
        consumers = { C = reader(seen, function()
            error "always"
        end) },
        collect = { "error" },
    }
    r:send "a"
    r:ends(2)
    local got = {}
    for number, msg in ipairs(seen) do
        got[number] = ("%d %d %d"):format(msg.attempt, msg.redeliveries, msg.calls)
    end
    assert.are.same({ "1 0 0", "2 0 1", "3 0 2", "1 1 3", "2 1 4", "3 1 5" }, got)
end, "delay")

case("undoes what the handler did to the message, before each call and in each copy", function()
    local got = {}
    local r = rig {
        policy = ('require("mulligan.policy").bus():default():retry(1, "%s"):then_redeliver { "%s" }')
            :format(of_time("1s", "50ms"), of_time("5m", "300ms")),
        consumers = { C = { queue = "q", handler = function(msg)
            got[#got + 1] = { msg.headers.mine, msg.headers.more, msg.body, msg.key }
            msg.headers.mine, msg.headers.more, msg.body, msg.key = "changed", "added", "changed", nil
            error "always"
        end } },
        collect = { "error" },
    }
    assert(r:publish("q", "x", { id = "a", key = "k", headers = { mine = "1" } }))
    r:ends(2)
    local dead = r:collected("error")[1]
    got[#got + 1] = { dead.headers.mine, dead.headers.more, dead.body, dead.key }
    assert.are.equal(5, #got)
    for _, seen in ipairs(got) do
        assert.are.same({ "1", nil, "x", "k" }, seen)
    end
end, "delay")

case("whose settling fails leaves the message, says so, and is settled later", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function()
        mulligan.error { type = "Dead" }
    end) }, collect = { "parked" } }
    r:fault("settle", { times = 2, code = "io" })
    r:send "a"
    r:await("a settlement that fails", function()
        return r.engine:why_not "C" == "settling_fails"
    end)
    assert.are.equal("", ids(r:collected "parked"))
    assert.matches("\nwarning: [^\n]*settl", "\n" .. table.concat(r:log(), "\n"))
    r:counted("q", 0, 0, 1)
    r:ends(2)
    assert.are.same({ "a", "a", 1 }, { ids(seen), ids(r:collected "parked"), #r:events "decided" })
end)
