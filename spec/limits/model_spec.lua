-- The engine against the model of limits: random schedules, each call, event and end held against what limits.md says.
-- MULL_LIMITS_SCHEDULES (300) says how many, MULL_LIMITS_SEED with which seed they begin.
local check = require "limits.check"
local drive = require "limits.drive"
local schedule = require "limits.schedule"
local testing = require "mulligan.testing"

local SCHEDULES = tonumber(os.getenv "MULL_LIMITS_SCHEDULES") or 300
local FIRST = tonumber(os.getenv "MULL_LIMITS_SEED") or 1

-- Every word and option that schedules use.
local EVERYTHING = {
    rate_limits = {
        { after = 2, messages = 2, within = 1000, only = { "Flaky" }, keep = true, wait = 20, max_wait = 40,
            successes = 2, ramp = 100, hint = "retry_after" },
        { ratio = 0.5, window = 1000, least = 4, except = { "Other" }, per = { header = "tenant" } },
        { after = 1, per = "key" },
        { after = 1, per = "type" },
    },
    limits = { { rate = "100/s", burst = 2 }, { rate = "300/m", per = "key" } },
    retries = 1, retry_ms = 10, redeliveries = 1, redeliver_ms = 100, max_attempts = 3, deadline = 1000,
}

-- without gives a schedule in which nothing is said of limits: it shows that the harness itself is right. Nor does
-- `max_attempts` change while messages are on their way, since that is held against each call only with limits.
local function without(plan)
    local most = plan.policy.max_attempts
    local function bare(policy)
        policy.rate_limits, policy.limits, policy.deadline, policy.max_attempts = {}, {}, nil, most
    end
    bare(plan.policy)
    for _, step in ipairs(plan.steps) do
        if step.policy then
            bare(step.policy)
        end
    end
    return plan
end

local function hold(plan, seed)
    local record, ended, log = drive.run(plan)
    local problem, number, undecided = check.problem(plan, record, ended)
    if problem then
        local other = check.other_reading(plan, record, ended)
        error(("seed %d: %s%s\n%s\n%s"):format(seed, problem,
            other and "\nIt would be right under another reading: " .. other or "",
            check.trace(plan, record, number), table.concat(log, "\n")), 0)
    end
    return record, undecided
end

describe("the engine, held against the model,", function()
    it("is right where nothing is limited", function()
        local begun = 0
        for seed = FIRST, FIRST + SCHEDULES // 3 - 1 do
            for _, entry in ipairs((hold(without(schedule.plan(testing.random(seed))), seed))) do
                begun = begun + (entry.what == "begin" and 1 or 0)
            end
        end
        assert.is_true(begun > SCHEDULES, begun)
    end)

    it("is found wrong where it goes by another policy, or with more handlers", function()
        for name, change in pairs {
            sooner = function(plan)
                plan.policy.retry_ms = math.max(plan.policy.retry_ms - 5, 0)
            end,
            later = function(plan)
                plan.policy.retry_ms = plan.policy.retry_ms + 5
            end,
            ["once more"] = function(plan)
                plan.policy.retries = plan.policy.retries + 1
            end,
            ["more at once"] = function(plan)
                plan.concurrency = plan.concurrency + 1
            end,
        } do
            local found = 0
            for seed = 1, 20 do
                local plan = without(schedule.plan(testing.random(seed)))
                local other = schedule.copy(plan)
                change(other)
                local record, ended = drive.run(other)
                plan.horizon = other.horizon
                found = found + (check.problem(plan, record, ended) and 1 or 0)
            end
            assert.is_true(found >= 5, name .. ": " .. found)
        end
    end)

    it("is right under limits", function()
        local refusal = drive.refusal(EVERYTHING)
        if refusal then
            io.stderr:write("\nspec/limits/model_spec.lua: SKIPPED: ", refusal, "\n")
            pending("the policy isn't accepted: " .. refusal)
            return
        end
        local undecided, limits = 0, 0
        for seed = FIRST, FIRST + SCHEDULES - 1 do
            local record, open = hold(schedule.plan(testing.random(seed)), seed)
            undecided = undecided + (open and 1 or 0)
            for _, entry in ipairs(record) do
                limits = limits + (entry.what == "event" and 1 or 0)
            end
        end
        assert.is_true(undecided <= SCHEDULES // 10, undecided)
        assert.is_true(limits >= SCHEDULES // 3, limits)
    end)
end)
