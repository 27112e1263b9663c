-- How lines of `run`'s log read where the answer was an override's, which names no number of steps.
require "mulligan"
local log = require "mulligan.log"

describe("a line of the log", function()
    -- line_of is what is logged of an event, without its time.
    local function line_of(event)
        local line
        log.new("text", "debug", function(written)
            line = written:match("^%S+ (.*)\n$")
        end).event(event)
        return line
    end

    local function decided(verdict)
        verdict.rule = { file = "policy.lua", line = 7 }
        return line_of {
            name = "decided",
            verdict = verdict,
            failure = {
                consumer = "C",
                message = { id = "m" },
                error = { type = "E", message = "" },
                attempt = 5,
                redeliveries = 3,
                calls = 8,
            },
        }
    end

    -- says compares a line of message m, but for what all have in common.
    local function says(level_and_deed, middle, verdict)
        assert.equal(level_and_deed .. ": message m, consumer C: E; " .. middle .. "; policy.lua:7", decided(verdict))
    end

    it("counts the steps of a chain", function()
        says("info    retry", "attempt 5 of 6, again in 1s", { action = "retry", delay_ms = 1000, step = 5, of = 5 })
        says("warning redelivery", "attempt 5 of 5, redelivery 4 of 9 in 1m",
            { action = "redeliver", delay_ms = 60000, step = 4, of = 9 })
        says("warning redelivery", "attempt 5 of 5, redelivery 4 of unlimited at once",
            { action = "redeliver", delay_ms = 0, step = 4 })
    end)

    it("doesn't invent how many an override allows", function()
        says("info    retry", "attempt 5, again in 1s: override",
            { action = "retry", delay_ms = 1000, step = 5, reason = "override" })
        says("warning redelivery", "attempt 5 of 5, redelivery 4 in 1m: override",
            { action = "redeliver", delay_ms = 60000, step = 4, reason = "override" })
        says("error   dead letter", "attempt 5 of 5, to parked after 8 calls and 3 redeliveries: override",
            { action = "dead_letter", queue = "parked", delay_ms = 0, reason = "override" })
    end)

    it("warns of what a policy's functions fail at", function()
        for _, name in ipairs { "override_failed", "notify_failed" } do
            assert.equal(("warning %s: message m, consumer C: policy.lua:3: oh"):format(name), line_of {
                name = name,
                text = "policy.lua:3: oh",
                failure = { consumer = "C", message = { id = "m" } },
            })
        end
    end)
end)
