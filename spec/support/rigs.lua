-- rigs.lua: rigs with one consumer "C" on the queue "work", for specs of what the engine does.
local testing = require "mulligan.testing"

local rigs = {}

-- What rules may use: these two lines stand before them.
local WORDS = 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n'

local open = {}

local function with(given, more)
    for key, value in pairs(more or {}) do
        given[key] = value
    end
    return given
end

-- start gives a rig under a policy's rules, with more options of the rig, and of C.
function rigs.start(rules, handler, more, more_of_consumer)
    local rig = testing.rig(with({
        policy = WORDS .. rules,
        consumers = { C = with({ queue = "work", handler = handler }, more_of_consumer) },
        collect = { "error", "out" },
    }, more))
    open[#open + 1] = rig
    return rig
end

-- close closes all that a test started, those too that it closed itself.
function rigs.close()
    while #open > 0 do
        table.remove(open):close()
    end
end

return rigs
