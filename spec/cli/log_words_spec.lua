-- How lines of `run`'s log read, but for those of verdicts, which spec/unit/lua/log_words.c has.
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
