-- service.lua: the job as mulligan's users run it. policy.lua is written beside it by compare.py.
local m = require "mulligan"

local fails = os.getenv "PEERS_KIND" ~= "succeed"
local started = false

m.policy "policy.lua"
m.transport("jobs", os.getenv "PEERS_PLACE")

m.consumer("Job", {
    transport = "jobs",
    queue = "jobs",
    concurrency = math.tointeger(os.getenv "PEERS_CONCURRENCY"),
    handler = function()
        if not started then
            started = true
            io.stdout:write("start\n"):flush()
        end
        if fails then
            m.error { type = "DatabaseError", message = "deadlock detected" }
        end
    end,
})
