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

-- The lines that tell of dead letters, in any order.
local function dead_letters()
    local lines = {}
    for number = 1, PAYMENTS do
        if number == PAYMENTS then
            lines[#lines + 1] = ("p-%d in 'error', for a MessageDeserializationError"):format(number)
        elseif number % 10 == 3 then
            lines[#lines + 1] = ("p-%d in 'declined', for a CardDeclined"):format(number)
        end
    end
    table.sort(lines)
    return lines
end

describe("examples/run.c", function()
    it("ends with the counts that its policy and its payments give", function()
        local counts, out = examples.counts "run.c"
        assert.same(expect(), counts)
        local told = {}
        for line in out:gmatch("dead letter: ([^\n]+)") do
            told[#told + 1] = line
        end
        table.sort(told)
        assert.same(dead_letters(), told)
    end)
end)
