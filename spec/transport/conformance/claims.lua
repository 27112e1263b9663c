-- claims.lua: what is counted in a queue, and what becomes of a message whose handler takes too long, or
-- dies with its process.
local assert = require "luassert"
local mulligan = require "mulligan"
local process = require "support.process"
local stage = require "transport.conformance.stage"

local ids, of_time, reader, rig = stage.ids, stage.of_time, stage.reader, stage.rig
local case = stage.group "claims:"

case("depth tells ready, delayed and claimed apart", function()
    local r = rig { consumers = { C = {
        queue = "q", concurrency = 1, prefetch = 1, timeout = false,
        handler = function()
            mulligan.sleep "30m"
        end,
    } } }
    r:counted("q", 0, 0, 0)
    assert.is_nil(r:depth("q").next_due_ms)
    r:send "a b c d e"
    r:send("f", { delay = "2h" })
    r:send("g", { delay = "1h" })
    local depth = r:counted("q", 3, 2, 2)
    assert.are.equal(r.clock:wall() + 3600000, depth.next_due_ms)
    r:counted("another", 0, 0, 0)
end, "clock delay exact")

-- The place's claim_timeout is 30 s by a test's clock, 2 s in real time. No retry would outlast it.
local function timed(given)
    given.url, given.policy = stage.place.claim_timeout_url(), ""
    return rig(given)
end

case("one with a timeout is held as long as its handler works", function()
    local seen = {}
    local r = timed { consumers = { C = reader(seen, function()
        mulligan.sleep(of_time("10m", "5s"))
    end, { timeout = false }) } }
    r:send "a"
    r:ends(1)
    assert.are.equal("a", ids(seen))
    assert.are.equal(1, r:counts().done)
end, "claim_timeout hold")

-- first_too_long has the first call of each message last longer than its claim.
local function first_too_long(seen, more)
    local known = {}
    return reader(seen, function(msg)
        if not known[msg.id] then
            known[msg.id] = true
            mulligan.sleep(of_time("45s", "5s"))
        end
    end, more)
end

case("one that isn't held is lost: handed out again, counted, and the late end settles nothing", function()
    local seen = {}
    local r = timed { consumers = { C = first_too_long(seen, { timeout = false, concurrency = 4 }) } }
    r:fault("hold", { times = 3 })
    r:send "a"
    r:ends(1)
    assert.are.equal("a a", ids(seen))
    if stage.has.counts then
        assert.are.equal(2, seen[2].deliveries)
    end
    r:counted("q", 0, 0, 0)
end, "claim_timeout")

case("several that are lost come again", function()
    local seen = {}
    local r = timed { consumers = { C = first_too_long(seen, { timeout = false, concurrency = 8, prefetch = 1 }) } }
    r:fault("hold", { times = 30 })
    r:send "a b c"
    r:ends(3)
    if stage.has.old_place then
        assert.are.equal("a b c a b c", ids(seen))
    end
    assert.are.same({ 6, "a b c" }, { #seen, stage.all_ids(seen) })
end, "claim_timeout")

-- ---- A process that dies -----------------------------------------------------------------------

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", %q)
m.consumer("C", {
    transport = "orders", queue = "q", timeout = false,
    handler = function(msg)
        if msg.redeliveries == 0 then
            m.error { type = "Soon" }
        end
        io.open("at-work", "w"):close()
        m.sleep "1h"
    end,
})
]]

local SOON = 'require("mulligan.policy").bus():on("Soon"):redeliver(3, "200ms")\n'

case("a process that is killed loses no message and no counter", function()
    stage.in_real_time()
    local seen = {}
    rig({}):send "a b"
    local folder = stage.folder { ["service.lua"] = SERVICE:format(stage.place.url), ["policy.lua"] = SOON }
    local job = folder:start_mulligan { "run" }
    process.await("a handler", function()
        return folder:read "at-work"
    end)
    job.kill "KILL"
    job.wait()
    local r = rig { policy = SOON, consumers = { C = reader(seen) } }
    r:ends(2)
    local again = 0
    for _, msg in ipairs(seen) do
        if msg.redeliveries == 1 then
            assert.are.equal(1, msg.calls - (stage.has.deaths and msg.deliveries - 1 or 0))
            again = again + msg.deliveries - 1
        end
    end
    assert.are.equal("a b", stage.all_ids(seen))
    assert.is_true(not stage.has.counts or again >= 1)
end, "processes delay")
