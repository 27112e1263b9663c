-- declare.lua: makes the queues of a run on RabbitMQ. One that is new may refuse messages, and keep
-- them all the same, until its leader is elected; one that is read has a leader.
local m = require "mulligan"

m.policy "declare_policy.lua"
m.transport("jobs", os.getenv "PEERS_PLACE")

for _, queue in ipairs { "jobs", "error" } do
    m.consumer(queue, { transport = "jobs", queue = queue, handler = function() end })
end
