-- queues.lua: looks into queues that another process used: their depth, and what is in them.

local mulligan = require "mulligan"

local queues = {}

-- Whoever empties a queue must not dead-letter into it.
local POLICY = 'require("mulligan.policy").bus():dead_letter_queue("lost by the spec")'

local function with_engine(url, act)
    local policy = assert(mulligan.load_text(POLICY))
    local engine = assert(mulligan.engine { policy = policy })
    assert(engine:transport("t", url))
    act(engine)
    assert(engine:run())
    engine:close()
    policy:close()
end

-- depth gives { ready =, delayed =, claimed = } of a queue.
function queues.depth(url, queue)
    local found
    with_engine(url, function(engine)
        assert(engine:depth("t", queue, function(depth)
            found = depth
            engine:stop()
        end))
    end)
    return found
end

-- take empties a queue: its messages, in the order in which they came.
function queues.take(url, queue)
    local messages = {}
    with_engine(url, function(engine)
        assert(engine:consumer("taker", {
            transport = "t",
            queue = queue,
            handler = function(msg)
                messages[#messages + 1] = msg
            end,
        }))
        engine:stop_when_empty()
    end)
    return messages
end

return queues
