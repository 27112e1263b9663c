-- docs/from-mocha.md: each sample is loaded as it stands there, and what is worked out beside it comes out; and what
-- the page says in words of delays by chance.
local loading = require "support.loading"
local worked = require "support.worked"

local PAGE = "docs/from-mocha.md"

worked.describe(PAGE, 70)

describe("the delays of " .. PAGE, function()
    -- The least and the most that a step waits, over many messages.
    local function span(chain, redeliveries)
        local policy = loading.good(loading.statements('bus:on("T")' .. chain))
        local least, most = math.huge, 0
        for i = 1, 400 do
            local delay_ms = policy:decide({
                error = { type = "T" }, message = { id = "m-" .. i }, redeliveries = redeliveries,
            }).delay_ms
            least, most = math.min(least, delay_ms), math.max(most, delay_ms)
        end
        policy:close()
        return least, most
    end

    local function between(low, high, chain, redeliveries)
        local least, most = span(chain, redeliveries)
        local width = high - low
        assert.is_true(least >= low and least <= low + width / 10, ("%s: from %d"):format(chain, least))
        assert.is_true(most <= high and most >= high - width / 10, ("%s: to %d"):format(chain, most))
    end

    it("have a jitter of a quarter", function()
        between(150, 250, ":retry()")
        between(375, 625, ':retry(3, "500ms")')
        between(225000, 375000, ":redeliver()")
        between(675000, 1125000, ":redeliver()", 1)
    end)

    it("never exceed the cap", function()
        between(22500, 30000, ':retry(1, "1m")')
        between(45 * 60000, 3600000, ':redeliver(1, "5h")')
    end)

    it("are exact in a list", function()
        between(100, 100, ':retry { "100ms", "500ms", "2s" }')
        between(27000, 33000, ':redeliver { "30s", "5m", jitter = 0.1 }')
    end)
end)

describe("the words of " .. PAGE, function()
    it("refuse the chains that Mocha's compiler does", function()
        for chain, why in pairs {
            [":redeliver():then_redeliver()"] = "then_redeliver",
            [":retry():then_redeliver():retry()"] = "retry",
            [":retry():redeliver()"] = "redeliver",
            [":dead_letter():retry()"] = "retry",
        } do
            local lines = loading.refused(loading.statements('bus:on("T")' .. chain))
            assert.equal(1, #lines)
            assert.is_truthy(lines[1]:find("^policy.lua:1: .*" .. why), lines[1])
        end
    end)
end)
