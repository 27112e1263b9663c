-- limits.md, "Static `config`": what an override is given of the scope's own rules.
local loading = require "support.loading"
local stage = require "limits.stage"

if stage.waits "config_spec.lua" then
    return
end

-- Its answer tells what it was given.
local OVERRIDE = [[
bus:override(function(failure, verdict, config)
    local function tier(t) return ("%d %s %s"):format(t.attempts, t.delay_ms, t.backoff) end
    return policy.discard(("retry %s, redeliver %s, rule %s"):format(tier(config.retry), tier(config.redeliver),
        config.rule and tier(config.rule.retry) or "none"))
end)
]]

describe("`config`", function()
    -- told gives what an override is told in C of an error's type, under rules.
    local function told(rules, error_type, can)
        local policy = loading.good(loading.statements('local C = policy.consumer "C" ' .. OVERRIDE .. rules))
        local verdict = policy:decide { error = { type = error_type or "Flaky" }, consumer = "C", can = can }
        policy:close()
        return verdict.note
    end

    it("has `retry` and `redeliver` of the unconditional rule for `Error`", function()
        local note = told [[bus:on("Flaky"):retry(2, "100ms", "constant") bus:default():retry(5, "200ms", "linear")]]
        assert.is_truthy(note:find "^retry 5 200 linear, redeliver 0 .*, rule 2 100 constant$", note)
    end)

    it("is the same for every failure", function()
        local rules = [[bus:on("Flaky"):retry(2, "100ms") bus:default():retry(5, "200ms"):then_redeliver(7, "1m")]]
        for _, error_type in ipairs { "Flaky", "Other", "MessageDeserializationError" } do
            local note = told(rules, error_type)
            assert.is_truthy(note:find("retry 5 200 exponential, redeliver 7 60000 linear", 1, true), note)
        end
    end)

    it("has those of the last `default()`", function()
        local note = told [[bus:default():retry(5, "200ms") bus:default():retry(3, "100ms")]]
        assert.is_truthy(note:find("retry 3 100 ", 1, true), note)
    end)

    it("doesn't have those of a rule for `Error` with a matcher", function()
        local note = told [[bus:on("Error", { transient = true }):retry(9, "100ms") bus:default():retry(3, "100ms")
            bus:on("Error", { grave = true }):retry(8, "100ms")]]
        assert.is_truthy(note:find("^retry 3 100 "), note)
    end)

    it("has those of an included rule", function()
        local note = told [[C:include(bus) C:on("Other"):dead_letter() bus:default():retry(4, "100ms")]]
        assert.is_truthy(note:find("^retry 4 100 "), note)
    end)

    it("has those of an own rule before an included one", function()
        local note = told [[C:include(bus) C:default():retry(2, "100ms") bus:default():retry(4, "100ms")]]
        assert.is_truthy(note:find("^retry 2 100 "), note)
    end)

    it("has those of the scope whose rules are in force", function()
        local note = told [[C:default():retry(2, "100ms") bus:default():retry(4, "100ms")]]
        assert.is_truthy(note:find("^retry 2 100 "), note)
        note = told [[C:max_attempts(99) bus:default():retry(4, "100ms")]]
        assert.is_truthy(note:find("^retry 4 100 "), note)
    end)

    it("has attempts 0 without one", function()
        local note = told [[C:on("Flaky"):retry(2, "100ms") bus:default():retry(4, "100ms")]]
        assert.is_truthy(note:find "^retry 0 .*redeliver 0 .*rule 2 100", note)
    end)

    it("has attempts 0 for a tier that isn't available here", function()
        local note = told([[bus:default():retry(4, "100ms"):then_redeliver(3, "1m")]], "Flaky", { delay = false })
        assert.is_truthy(note:find "^retry 4 .*redeliver 0 ", note)
    end)

    -- That `check` says so is in spec/cli/check_limits_spec.lua.

    it("has no `rule` where no rule decided", function()
        for _, error_type in ipairs { "MessageDeserializationError", "Unmatched" } do
            local note = told([[bus:on("Flaky"):retry(2, "100ms")]], error_type)
            assert.is_truthy(note:find("rule none", 1, true), note)
        end
    end)
end)
