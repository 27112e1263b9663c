-- Spans of time are read in two places: by policy.lua in Lua, and by transports in C. Both must
-- take and refuse the same.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local function policy_takes(text)
    local source = ('require "mulligan.policy".bus():max_age(%q)'):format(text)
    local policy = mulligan.load_text(source)
    if policy then
        policy:close()
    end
    return policy ~= nil
end

local policy, engine, count

local function transport_takes(text)
    count = count + 1
    return (engine:transport("t" .. count, "memory:?claim_timeout=" .. text)) and true or false
end

local spans = { "1s", "90m", "1h", "2d", "250ms", "1.5s", "0.1ms" }
local pieces = { "1", "0", "25", "1.5", "0.001", ".5", "1.", "ms", "s", "m", "h", "d", "S", "min", " ", "-", "+" }

local function random_text(random)
    local text = {}
    for i = 1, random(4) do
        text[i] = random:chance(0.7) and random:pick(spans) or random:pick(pieces)
    end
    return table.concat(text)
end

describe("a span of time", function()
    before_each(function()
        policy = assert(mulligan.load_text(""))
        engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
        count = 0
    end)

    after_each(function()
        engine:close()
        policy:close()
    end)

    it("is read alike in policies and in URLs", function()
        local random = testing.random(20261120)
        local taken = 0
        for _ = 1, 500 do
            local text = random_text(random)
            local expected = policy_takes(text)
            assert.equal(expected, transport_takes(text), ("%q"):format(text))
            taken = taken + (expected and 1 or 0)
        end
        assert.is_true(taken > 50 and taken < 450, taken .. " of 500 were taken")
    end)
end)
