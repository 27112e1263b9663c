-- service.lua: the job as mulligan's users run it. policy.lua is written beside it by compare.py.
local m = require "mulligan"

local fails = os.getenv "PEERS_KIND" ~= "succeed"
local last, calls = tonumber(os.getenv "PEERS_LAST"), 0

m.policy "policy.lua"
m.transport("jobs", os.getenv "PEERS_PLACE")

m.consumer("Job", {
    transport = "jobs",
    queue = "jobs",
    concurrency = math.tointeger(os.getenv "PEERS_CONCURRENCY"),
    handler = function()
        calls = calls + 1
        if calls == 1 then
            io.stdout:write("start\n"):flush()
        end
        if calls == last then
            io.stdout:write("last\n"):flush()
        end
        if fails then
            m.error { type = "DatabaseError", message = "deadlock detected" }
        end
    end,
})
