-- Runs examples/run.c and compares what it prints with what its policy and its handler say.
local examples = require "support.examples"

local PAYMENTS = 30

-- What must come out, from the number of a payment alone.
local function expect()
    local sum = { done = 0, retried = 0, redelivered = 0, ["dead-lettered"] = 0, discarded = 0 }
    local function count(what, n)
        sum[what] = sum[what] + n
    end
    for number = 1, PAYMENTS do
        if number == PAYMENTS or number % 10 == 3 then -- unreadable; declined
            count("dead-lettered", 1)
        elseif number % 10 == 8 then -- a duplicate
            count("discarded", 1)
        else
            count("done", 1)
            if number % 5 == 1 then -- two timeouts of the three that are retried
                count("retried", 2)
            elseif number % 5 == 2 then -- down for the first delivery
                count("redelivered", 1)
            end
        end
    end
    return sum
end

describe("examples/run.c", function()
    it("ends with the counts that its policy and its payments give", function()
        assert.same(expect(), (examples.counts "run.c"))
    end)
end)
