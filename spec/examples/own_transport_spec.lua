-- Runs examples/own_transport.c: payments on the program's own board. What they come to is worked out here from
-- their numbers. That its transport does what every transport does is shown by spec/transport/board_spec.lua.
local examples = require "support.examples"

local PAYMENTS = 40

local function expect()
    local sum = { done = 1, retried = 0, redelivered = 0, ["dead-lettered"] = 0, discarded = 0 } -- closing time
    local function count(what, n)
        sum[what] = sum[what] + n
    end
    for number = 1, PAYMENTS do
        local last = number % 10
        count(last == 3 and "dead-lettered" or last == 4 and "discarded" or "done", 1)
        count("retried", last == 1 and 2 or 0)
        count("redelivered", last == 2 and 1 or 0)
    end
    return sum
end

describe("examples/own_transport.c", function()
    it("loses no payment, and leaves on the board what was declined", function()
        local expected = expect()
        expected.declined = expected["dead-lettered"]
        local counts, out = examples.counts "own_transport.c"
        assert.same(expected, counts)
        assert.is_truthy(out:find("\nleft: payments 0, "), out)
    end)
end)
