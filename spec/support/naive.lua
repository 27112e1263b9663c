-- naive.lua: what a policy says of a failure, read straight from the language's page, slowly and without any of the
-- product's code. The policy comes as a tree (spec/support/generate.lua makes them):
--
--   { parents = { { child =, parent = }, … },
--     statements = { statement, … } }                 in the order in which they run
--
--   a statement has a `scope`, the `line` of its word, and one of these:
--     word = "on" | "on_cause", types = { … }, matcher =, chain = { { word =, args… }, … }
--     unrecoverable = { type, … }, matcher =
--     setting = "max_age", value = …                  an `override` has a list of answers: naive/override.lua
--     include = scope
--     preset = "nservicebus" | "mocha", options = { … }
--   a scope:    { kind = "consumer" | "transport" | "bus" | "host", name = … }
--   a matcher:  naive/matcher.lua;  the arguments of a step:  naive/chain.lua
--
-- The failure is one of `decide`'s objects. The answer has the keys of a verdict, with `delay = { low, high }` instead
-- of delay_ms, `failed`: the rules whose matchers raised, in order, and `override_failed`: whether the override did.
-- Where the jitter decides whether a call comes before the deadline, `open` is true, and the verdict is that of a call
-- that does; with `late` among the options, that of one that doesn't.

local chain = require "support.naive.chain"
local delay = require "support.naive.delay"
local facts = require "support.naive.facts"
local matcher = require "support.naive.matcher"
local override = require "support.naive.override"
local rules = require "support.naive.rules"
local saw = require "support.naive.counts".saw

local naive = { milliseconds = delay.milliseconds, lineage = facts.lineage, read = rules.read, setting = rules.setting }

local MAX_CAUSES = 16

-- Which rule decides --------------------------------------------------------------------------------------------------

-- Whether the matcher of a rule or declaration passes; where it raises, that is told, and it doesn't. Those that are
-- skipped are told at last, by the first of them.
local function passes(case, source, err)
    local answer = matcher.passes(case, source.matcher, err)
    if answer == "raised" then
        case.failed[#case.failed + 1] = rules.told(source)
        return false
    elseif answer == "skipped" then
        case.first_skipped = case.first_skipped or rules.told(source)
        return false
    end
    return answer
end

local function rule_for(case, list, name, err)
    for _, rule in ipairs(list) do
        if rule.type == name and passes(case, rule, err) then return rule end
    end
end

local function by_own_types(case)
    for i, name in ipairs(case.lineage) do
        local rule = name ~= "Error" and rule_for(case, case.rules, name, case.failure.error)
        if rule then
            saw("rule for", i == 1 and "own type" or "ancestor")
            return rule
        end
    end
end

local function by_causes(case)
    local cause, depth = case.failure.error.cause, 1
    while cause and depth <= MAX_CAUSES do
        for _, name in ipairs(facts.lineage(case.reading, cause)) do
            local rule = rule_for(case, case.cause_rules, name, cause)
            if rule then
                saw("rule for", name == "Error" and "Error as a cause" or "cause")
                saw("cause at depth", depth)
                return rule, cause
            end
        end
        cause, depth = cause.cause, depth + 1
    end
    if cause and #case.cause_rules > 0 then saw("cause at depth", "too deep to be looked at") end
end

local function deciding_rule(case)
    local rule = by_own_types(case)
    if rule then return rule end
    rule = by_causes(case)
    if rule then return rule end
    rule = rule_for(case, case.rules, "Error", case.failure.error)
    if rule then saw("rule for", "Error") end
    return rule
end

local function declared_in(case, list)
    for _, name in ipairs(case.lineage) do
        local declared = rule_for(case, list, name, case.failure.error)
        if declared then return declared end
    end
end

-- Declared ones of all scopes and the built-in one add up: scope by scope, in the order of the error's lineage.
local function unrecoverable(case)
    for _, list in ipairs(rules.unrecoverable(case.reading, case.failure, case.rules)) do
        local declared = declared_in(case, list)
        if declared then
            saw("unrecoverable by", declared.built_in and "the built-in one" or declared.scope.kind)
            saw("unrecoverable with", not declared.matcher and "type" or declared.matcher.form)
            if declared.listed then saw("unrecoverable with", "list") end
            return declared
        end
    end
end

-- Limits and ends -----------------------------------------------------------------------------------------------------

local function setting(case, name, default, off)
    return rules.setting(case.reading, case.failure, name, default, off)
end

local function limit(case, due)
    local max_attempts = setting(case, "max_attempts", math.huge, math.huge)
    if facts.counter(case.failure, "calls") >= max_attempts then return "max_attempts" end
    local max_age = due == "redeliver" and setting(case, "max_age")
    if max_age and facts.counter(case.failure, "age_ms") > delay.milliseconds(max_age) then return "max_age" end
end

-- Whether a call begins by the deadline, whose delay is in the range; what would be too late goes out of that.
local function in_time(case, range)
    local deadline = setting(case, "deadline")
    if not deadline then return true end
    local left = delay.milliseconds(deadline) - facts.counter(case.failure, "age_ms")
    if range[1] > left then return false end
    if range[2] // 1 <= left then return true end
    saw("deadline", "by jitter")
    case.open, range[2] = true, left
    return not case.options.late
end

local function dead_letter(reason, queue) return { action = "dead_letter", reason = reason, queue = queue } end

-- The chain's end; where no rule decided, a dead letter to the default queue.
local function finish(case, rule, reason)
    local last = rule and chain.last(rule) or {}
    if last.word == "discard" then return { action = "discard", reason = reason, note = last.note } end
    return dead_letter(reason, last.queue or case.queue)
end

local function by_rule(case, rule)
    local due, tier, step = chain.follow(rule, case.failure)
    if not due then return finish(case, rule, tier) end
    local reached = limit(case, due)
    if reached then return finish(case, rule, reached) end
    local range = delay.range(tier, step, case.failure.error, case.options.no_jitter)
    if not in_time(case, range) then return finish(case, rule, "deadline") end
    return {
        action = due, tier = due, step = step, of = tier.attempts ~= math.huge and tier.attempts or nil,
        delay = range,
    }
end

-- The override's answer, once more held to the limits; the verdict itself where there is none.
local function overridden(case, rule, verdict)
    local list = setting(case, "override")
    if list and case.steps <= 0 then
        saw("override", "not called")
        case.override_failed = true
        return verdict
    end
    local answer, failed = override.answer(case, list, rule, verdict)
    case.override_failed = failed
    if not answer then return verdict end
    local due = answer.tier
    local reached = due and (limit(case, due) or not in_time(case, answer.delay) and "deadline")
    if reached then
        saw("override", "answer ended by " .. reached)
        return finish(case, rule, reached)
    end
    if due then
        saw("override", due .. " carried out")
        answer.step = due == "retry" and facts.counter(case.failure, "attempt")
            or facts.counter(case.failure, "redeliveries") + 1
    elseif answer.action == "dead_letter" then
        answer.queue = answer.queue or case.queue
    end
    answer.reason = "override"
    return answer
end

local function fallback(case, verdict)
    local can = case.failure.can or {}
    local unable
    if verdict.action == "retry" and can.retry == false then unable = "no_retry" end
    if verdict.action == "redeliver" and can.delay == false then unable = "no_delay" end
    if not unable then return verdict end
    saw("fallback", unable)
    local instead = dead_letter("fallback", case.queue)
    instead.fallback = unable
    return instead
end

-- The decision --------------------------------------------------------------------------------------------------------

local function first_verdict(case)
    if facts.counter(case.failure, "deliveries") > setting(case, "max_deliveries", 20, math.huge) then
        return dead_letter("max_deliveries", case.queue)
    end
    local declared = unrecoverable(case)
    if declared then
        local verdict = dead_letter("unrecoverable", case.queue)
        verdict.rule = not declared.built_in and rules.told(declared) or nil
        return verdict
    end
    local rule = deciding_rule(case)
    if not rule then return dead_letter("no_rule", case.queue) end
    local verdict = by_rule(case, rule)
    verdict.rule = rules.told(rule)
    return verdict, rule
end

-- The verdict on a failure, by the reading of a tree (naive.read).
function naive.decide(reading, failure, options)
    local case = { reading = reading, failure = failure, options = options or {}, failed = {} }
    case.steps = matcher.DECISION
    case.lineage = facts.lineage(reading, failure.error)
    case.rules, case.cause_rules = rules.in_force(reading, failure)
    case.queue = setting(case, "dead_letter_queue", "error", "error")
    for _, name in ipairs { "rate_limit", "limit", "notify" } do -- they change no verdict
        if setting(case, name) then saw("present", name) end
    end
    local verdict, rule = first_verdict(case)
    local told = verdict.rule
    case.failed[#case.failed + 1] = case.first_skipped
    verdict = fallback(case, overridden(case, rule, verdict))
    verdict.rule = told
    verdict.open = case.open
    verdict.delay = verdict.delay or { 0, 0 }
    verdict.failed = case.failed
    verdict.override_failed = case.override_failed or false
    saw("action", verdict.action)
    saw("reason", verdict.reason or "none")
    if rule then
        rules.count(reading, failure, rule)
        chain.count(rule)
        matcher.count_decides(rule.matcher)
    end
    return verdict
end

return naive
