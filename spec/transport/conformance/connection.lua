-- connection.lua: the connection is cut while something is under way, and the server is killed. Nothing
-- is lost: what was answered as safe comes to its end, once or more often.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"

local of_time, reader, rig = stage.of_time, stage.reader, stage.rig
local case = stage.group "a connection"

local function is_down(r)
    return r.engine:snapshot().transports[1].health ~= "up"
end

-- cut breaks it until it is noticed.
local function cut(r)
    stage.place.cut()
    r:await("the cut", function()
        return is_down(r)
    end)
end

local function come_back(r)
    stage.place.come_back()
    r:await_up()
end

-- all waits until each of these was handled, and nothing is left; some may be handled more than once.
local function all(r, seen, list)
    r:await("all messages", function()
        return stage.all_ids(seen) == list
    end)
    r:rest()
    r:counted("q", 0, 0, 0)
    assert.are.equal(list, stage.all_ids(seen))
end

case("lost while idle is said to be down, and comes back", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:send "a"
    r:ends(1)
    cut(r)
    assert.are.equal("transport_down", (r.engine:why_not "C"))
    local done, _, code = r:publish("q", "x", { id = "b" })
    assert.are.same({ nil, "down" }, { done, code })
    come_back(r)
    r:send "c"
    all(r, seen, "a c")
    assert.are.equal(2, #seen)
end, "cut")

case("that isn't there yet when the engine starts is waited for", function()
    local seen = {}
    rig({}):send "a"
    stage.place.cut()
    local r = rig { consumers = { C = reader(seen) }, start = false, down = true }
    assert(r.engine:start())
    r:pass(of_time("5s", "500ms"))
    assert.is_true(is_down(r))
    come_back(r)
    all(r, seen, "a")
end, "cut durable")

case("lost while messages are received loses none", function()
    local seen, list = {}, stage.numbered(200)
    local r = rig { consumers = { C = reader(seen, nil, { concurrency = 8, prefetch = 20 }) }, start = false }
    r:send(list)
    assert(r.engine:start())
    r:await("some of them", function()
        return #seen >= 20
    end)
    cut(r)
    come_back(r)
    all(r, seen, list)
end, "cut")

case("lost while a handler works hands the message out again, and its late end settles nothing", function()
    local seen, gate = {}, {}
    local r = rig { consumers = { C = reader(seen, function()
        if #seen == 1 then
            stage.until_free(gate)
        end
    end, { concurrency = 2, timeout = "5m" }) } }
    r:send "a"
    r:await("the handler", function()
        return #seen == 1
    end)
    cut(r)
    come_back(r)
    r:await("the message again", function()
        return #seen == 2
    end)
    gate.open = true
    all(r, seen, "a")
    assert.are.same({ 2, 1 }, { #seen, r:counts().done })
    assert.are.same({ 1, 1 }, { seen[2].attempt, seen[2].redeliveries + 1 })
end, "cut")

-- What a handler was the last to see before the cut is settled on a connection that isn't there.
local function settles_while_cut(act)
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        if #seen == 1 then
            stage.place.cut()
        end
        act(msg)
    end) }, collect = { "parked", "next" }, start = false }
    r:send "a b"
    assert(r.engine:start())
    r:await("the cut", function()
        return #seen >= 1 and is_down(r)
    end)
    come_back(r)
    all(r, seen, "a b")
    return r, seen
end

case("lost while a message is acknowledged leaves it, or ends it", function()
    settles_while_cut(function(msg)
        mulligan.send("next", msg.body, { id = msg.id })
    end)
end, "cut")

case("lost while a message is redelivered loses none, and it isn't early", function()
    local at = {}
    local r
    r = settles_while_cut(function(msg)
        if msg.redeliveries == 0 then
            at[msg.id] = stage.clock:wall()
            mulligan.error { type = "Later" }
        end
        assert(stage.came_ms() - at[msg.id] >= of_time(300000, 400), "early")
    end)
    r:await("both, redelivered", function()
        return r:counts().done >= 2
    end)
    assert.are.same({}, r:collected "parked")
end, "cut delay")

case("lost while a message is dead-lettered keeps the message until its copy is safe", function()
    local r = settles_while_cut(function()
        mulligan.error { type = "Dead" }
    end)
    r:await("the dead letters", function()
        return stage.all_ids(r:collected "parked") == "a b"
    end)
end, "cut")

case("lost while messages are published answers each, and keeps those that it said were safe", function()
    local seen, answers, safe = {}, 0, {}
    local r = rig { consumers = { C = reader(seen) } }
    local list = stage.numbered(50)
    for id in list:gmatch "%S+" do
        local taken = r.engine:publish("orders", "q", "x", { id = id }, function(well)
            answers, safe[id] = answers + 1, well
        end)
        answers = answers + (taken and 0 or 1)
        if id == "m25" then
            stage.place.cut()
        end
    end
    r:await("an answer for each", function()
        return answers == 50
    end)
    come_back(r)
    for id in list:gmatch "%S+" do
        if safe[id] then
            r:await(id, function()
                return stage.all_ids(seen):find(id, 1, true)
            end)
        end
    end
end, "cut")

case("lost while messages wait to be due costs none of them, and none is early", function()
    local seen, at = {}, {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        at[msg.id] = stage.came_ms()
    end) } }
    local due = r.clock:wall() + of_time(3600000, 900)
    r:send("a b", { delay = of_time("1h", "900ms") })
    cut(r)
    come_back(r)
    all(r, seen, "a b")
    assert.is_true(at.a >= due and at.b >= due)
end, "cut delay")

-- ---- The server --------------------------------------------------------------------------------

local server = stage.group "a server"

server("that is killed and started again has all that was safe", function()
    local seen, gate, known = {}, {}, {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        stage.until_free(gate)
        if not known[msg.id] then
            known[msg.id] = true
            mulligan.error { type = "Later" }
        end
    end, { concurrency = 2, prefetch = 2, timeout = "5m" }) } }
    r:send "a b c d e f"
    r:send("g", { delay = of_time("1h", "500ms") })
    r:await("two handlers", function()
        return #seen == 2
    end)
    stage.place.restart()
    gate.open = true
    r:await("the server", function()
        return is_down(r) or #seen > 2
    end)
    r:await_up()
    r:await("all messages, twice", function()
        local times = {}
        for _, msg in ipairs(seen) do
            times[msg.id] = (times[msg.id] or 0) + 1
        end
        for id in ("a b c d e f g"):gmatch "%a" do
            if (times[id] or 0) < 2 then
                return false
            end
        end
        return true
    end)
    r:send "h"
    r:await("a message after that", function()
        return stage.all_ids(seen):find("h", 1, true)
    end)
end, "restart delay")

server("that is killed keeps dead letters and what handlers sent", function()
    local seen = {}
    local first = rig { consumers = { C = reader(seen, function(msg)
        mulligan.send("next", "x", { id = "s-" .. msg.id })
        if msg.id == "b" then
            mulligan.error { type = "Dead" }
        end
    end) } }
    first:send "a b"
    first:ends(2)
    first:stop()
    first:close()
    stage.place.restart()
    local r = rig { collect = { "next", "parked" } }
    r:await("both", function()
        return #r:collected "next" >= 1 and #r:collected "parked" >= 1
    end)
    assert.are.same({ "s-a", "b" }, { stage.ids(r:collected "next"), stage.ids(r:collected "parked") })
end, "restart")

-- ---- Queues ------------------------------------------------------------------------------------

local queue = stage.group "a queue"

queue("that is deleted under its consumer is read again, and holds up no other", function()
    local seen, others = {}, {}
    local r = rig { consumers = { C = reader(seen), D = reader(others, nil, { queue = "other" }) } }
    r:send "a"
    r:ends(1)
    stage.place.delete_queue "q"
    assert(r:publish("other", "x", { id = "o" }))
    r:await("the other queue", function()
        return #others == 1
    end)
    r:await("the queue again", function()
        return r:publish("q", "x", { id = "b" }) and stage.all_ids(seen):find("b", 1, true)
    end)
end, "delete_queue")

-- Where "parked" takes none, the message stays, or the default queue has it.
queue("for dead letters that is full costs no dead letter", function()
    local seen = {}
    stage.place.full "parked"
    local r = rig { consumers = { C = reader(seen, function()
        mulligan.error { type = "Dead" }
    end) } }
    r:send "a"
    r:await("the failure, and what comes of it", function()
        return #seen >= 1 and (r:ended() == 1 or r.engine:why_not "C" == "settling_fails"
            or r.engine:snapshot().transports[1].parked == 1)
    end)
    stage.place.room "parked"
    local parked, unparked = r:find "parked", r:find "error"
    r:await("the dead letter", function()
        return #parked + #unparked == 1
    end)
end, "full")

queue("for dead letters that isn't there, and isn't made, has the default one take its place", function()
    local first = rig { consumers = { C = reader({}) }, collect = { "error" } } -- the queues that are there
    first:stop()
    first:close()
    local r = rig {
        url = stage.place.undeclared_url,
        policy = 'require("mulligan.policy").bus():on("Dead"):dead_letter("parked")',
        consumers = { C = reader({}, function()
            mulligan.error { type = "Dead" }
        end) },
        collect = { "error" },
    }
    r:send "a"
    r:await("the dead letter", function()
        return #r:collected "error" >= 1
    end)
    assert.are.equal("a", stage.ids(r:collected "error"))
end, "undeclared")
