-- What is left when a limit has ended: an outage of a minute, of one key among two, with many messages.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local OUTAGE_MS = 60000

-- outage gives when the last message of each key was done, in milliseconds, and how many calls there were.
local function outage(count, options)
    local clock, last, calls, done = testing.clock(), {}, 0, 0
    local policy = assert(mulligan.load_text(([[
        local policy = require "mulligan.policy"
        policy.consumer("C"):default():retry(3, "100ms"):then_redeliver(3, "10s")
        policy.consumer("C"):rate_limit { after = 3, per = "key", keep = true, %s }
    ]]):format(options)))
    local engine = assert(mulligan.engine { policy = policy, clock = clock, log = function() end })
    assert(engine:transport("orders", "memory:"))
    assert(engine:consumer("C", { transport = "orders", queue = "work", concurrency = 10, handler = function(msg)
        calls = calls + 1
        mulligan.sleep "10ms"
        if msg.key == "down" and clock:now() < OUTAGE_MS then
            mulligan.error { type = "Down", message = "an outage" }
        end
        last[msg.key], done = clock:now(), done + 1
    end }))
    assert(engine:start())
    for number = 1, count do
        for _, key in ipairs { "down", "up" } do
            assert(engine:publish("orders", "work", "x", { id = key .. number, key = key }))
        end
    end
    clock:turn()
    repeat
        clock:advance "10s"
    until done == 2 * count or clock:now() > 10 * OUTAGE_MS
    engine:close()
    policy:close()
    return last, calls
end

describe("an outage of one key", function()
    for _, case in ipairs {
        { name = "with a short wait", count = 300, options = 'wait = "1s"', probes = 60 },
        { name = "with a long wait", count = 300, options = 'wait = "30s"', probes = 3 },
    } do
        it(case.name .. ": its messages are there again soon, and others never waited", function()
            local last, calls = outage(case.count, case.options)
            assert.is_true(last.up < 1000, last.up)
            assert.is_true(last.down > OUTAGE_MS and last.down < 3 * OUTAGE_MS, last.down)
            assert.is_true(calls >= 2 * case.count and calls <= 2 * case.count + case.probes + 15, calls)
        end)
    end
end)
