-- Chains: every row of the table of chains, which words may follow which, and what refuses the rest.
local loading = require "support.loading"

local chain, statements = loading.chain, loading.statements

local RETRIES = "retry 200 400 800"
local REDELIVERIES = { "redeliver 300000", "redeliver 900000", "redeliver 1800000" }

-- The timeline with a round of retries before and between all redeliveries.
local function rounds(last)
    local steps = { RETRIES }
    for _, redelivery in ipairs(REDELIVERIES) do
        steps[#steps + 1] = redelivery
        steps[#steps + 1] = RETRIES
    end
    steps[#steps + 1] = last
    return table.concat(steps, ", ")
end

describe("a chain", function()
    local rows = {
        { ":discard()", "discard rule" },
        { ":dead_letter()", "dead_letter error rule" },
        { ":retry()", RETRIES .. ", dead_letter error exhausted" },
        { ":redeliver()", "redeliver 300000 900000 1800000, dead_letter error exhausted" },
        { ":retry(3):then_redeliver()", rounds("dead_letter error exhausted") },
        { ':retry(3):then_dead_letter("parked")', RETRIES .. ", dead_letter parked exhausted" },
        { ':retry(3):then_redeliver():then_discard("stale")', rounds("discard exhausted (stale)") },
        { ":retry(3):then_redeliver():then_dead_letter()", rounds("dead_letter error exhausted") },
        { ':retry(3):then_discard("stale")', RETRIES .. ", discard exhausted (stale)" },
        { ':redeliver():then_dead_letter("parked")', "redeliver 300000 900000 1800000, dead_letter parked exhausted" },
        { ":redeliver():then_discard()", "redeliver 300000 900000 1800000, discard exhausted" },
        { ':dead_letter("parked")', "dead_letter parked rule" },
        { ':discard("already processed")', "discard rule (already processed)" },
    }
    for _, row in ipairs(rows) do
        it(row[1] .. " does what it says", function()
            assert.equal(row[2], chain(row[1]))
        end)
    end

    it("makes as many calls as retries and redeliveries say", function()
        local function calls(text)
            local policy = loading.good(statements("bus:default()" .. text))
            local count = #loading.timeline(policy)
            policy:close()
            return count
        end
        assert.equal(24, calls ':retry(5, 0):then_redeliver { "5m", "15m", "30m" }')
        assert.equal(16, calls ":retry():then_redeliver()")
    end)
end)

describe("the words of a chain", function()
    local first = { "retry", "redeliver", "dead_letter", "discard" }
    local later = { "then_redeliver", "then_dead_letter", "then_discard" }
    local follow = {
        [""] = first,
        [":retry()"] = later,
        [":redeliver()"] = { "then_dead_letter", "then_discard" },
        [":retry():then_redeliver()"] = { "then_dead_letter", "then_discard" },
        [":dead_letter()"] = {},
        [":discard()"] = {},
        [":retry():then_dead_letter()"] = {},
        [":retry():then_discard()"] = {},
        [":redeliver():then_discard()"] = {},
        [":retry():then_redeliver():then_dead_letter()"] = {},
    }

    local function allowed(list, word)
        for _, other in ipairs(list) do
            if other == word then return true end
        end
        return false
    end

    for before, list in pairs(follow) do
        for _, word in ipairs({ table.unpack(first), table.unpack(later) }) do
            local text = statements(('bus:on("X")%s:%s()'):format(before, word))
            if allowed(list, word) then
                it(("allow :%s after %q"):format(word, before), function()
                    loading.good(text):close()
                end)
            else
                it(("refuse :%s after %q and name what may stand there"):format(word, before), function()
                    local lines = loading.refused(text)
                    assert.equal(1, #lines)
                    assert.matches("^policy.lua:1: :" .. word .. " ", lines[1])
                    for _, other in ipairs(list) do
                        assert.matches(":" .. other, lines[1], 1, true)
                    end
                    if #list == 0 then assert.matches("nothing may follow", lines[1], 1, true) end
                end)
            end
        end
    end

    it("are refused through a kept variable, in the line of the word", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
local rule = policy.bus():on("X")
rule:retry(3)
rule:discard()
local stage = policy.bus():on("Y"):retry(3)
stage:then_discard()
stage:then_dead_letter()
stage:then_discard()
]]
        assert.equal(3, #lines)
        assert.matches("^policy.lua:4: :discard can't follow :retry in line 3; here may stand", lines[1])
        assert.matches("^policy.lua:7: :then_dead_letter can't follow :then_discard in line 6", lines[2])
        assert.matches("^policy.lua:8: :then_discard is said already, in line 6", lines[3])
    end)

    it("are refused in the line of the call, where the word itself was kept", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
local bus = policy.bus()
local on, rule = bus.on, bus:on("X"):retry()
local discard = rule.discard
on(bus, 5):discard()
discard(rule)
]]
        assert.equal(2, #lines)
        assert.matches("^policy.lua:5: the error type", lines[1])
        assert.matches("^policy.lua:6: :discard can't follow :retry", lines[2])
    end)

    it("are refused inside the policy's own pcall", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
local rule = policy.bus():on("X"):dead_letter()
pcall(function() rule:retry() end)
pcall(rule.discard, rule)
pcall(pcall, error, "swallowed, as it should be")
]]
        assert.equal(2, #lines)
        assert.matches("^policy.lua:3: :retry can't follow :dead_letter", lines[1])
        assert.matches("^policy.lua:4: :discard can't follow :dead_letter", lines[2])
    end)

    it("may be said one by one to a kept rule, in order", function()
        local policy = loading.good(statements [[
local rule = bus:on("TimeoutError")
local word = rule.retry
word(rule, 1, "1s")
rule:then_redeliver(1, "1m", "constant")
rule:then_discard("late")]])
        assert.same({ "retry 1000", "redeliver 60000", "retry 1000", "discard exhausted (late)" },
            loading.timeline(policy))
        policy:close()
    end)

    it("say each action once", function()
        local lines = loading.refused(statements 'bus:on("X"):retry(1):retry(2)')
        assert.matches(":retry is said already, in line 1", lines[1], 1, true)
    end)

    it("are told which may stand there where one is unknown", function()
        local lines = loading.refused(statements [[

bus:on("A"):again()
bus:on("B"):retry():then_retry()
bus:on("C"):redeliver():then_retry()
bus:on("D"):discard():park()]])
        assert.same({
            'policy.lua:2: "again" is no word of a rule; here may stand :retry, :redeliver, :dead_letter or :discard',
            'policy.lua:3: "then_retry" is no word of a rule; here may stand :then_redeliver, :then_dead_letter or '
                .. ":then_discard",
            'policy.lua:4: "then_retry" is no word of a rule; here may stand :then_dead_letter or :then_discard',
            'policy.lua:5: "park" is no word of a rule; nothing may follow here',
        }, lines)
    end)

    it("must be there: a rule without an action is refused, even where it is replaced", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
policy.bus():on("X")
policy.bus():on("X"):retry()
local half = policy.consumer("C"):default()
local _ = half.retry
]]
        assert.equal(2, #lines)
        assert.matches('^policy.lua:2: the rule for "X" has no action; :retry,', lines[1])
        assert.matches('^policy.lua:4: the rule for "Error" has no action', lines[2])
    end)

    it("are called with a colon", function()
        local lines = loading.refused(statements [[

bus.on("X")
bus:on("Y").retry(3)
policy:bus()
bus.default(policy.host())]])
        assert.matches("^policy.lua:2: on is called with a colon", lines[1])
        assert.matches("^policy.lua:3: retry is called with a colon", lines[2])
        assert.matches("^policy.lua:4: bus is called with a point: policy.bus", lines[3])
        assert.matches("^policy.lua:5: default is called with a colon", lines[4])
        assert.equal(4, #lines)
    end)
end)
