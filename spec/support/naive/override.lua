-- override.lua: what the function of an `override` answers.
--
--   a setting's value: { { when = condition or nil, answer = "retry" | …, delay =, queue =, note = }, … }; the first
--   whose condition holds answers. The answers: retry, redeliver, dead_letter, discard, keep (nothing), raises, and
--   those of `wrong` below, which are no answers at all. A condition is { kind =, … }, see `conditions`.

local chain = require "support.naive.chain"
local delay = require "support.naive.delay"
local facts = require "support.naive.facts"
local rules = require "support.naive.rules"
local saw = require "support.naive.counts".saw

local override = {}

-- The rule whose tiers config has: the one for Error in force that always passes.
local function default_rule(case)
    for _, rule in ipairs(case.rules) do
        if rule.type == "Error" and not rule.matcher then return rule end
    end
end

-- How many attempts of a tier the function is told: 0 where it is off, or the transport can't.
local function told_attempts(case, rule, name)
    local can = case.failure.can or {}
    if name == "retry" and can.retry == false or name == "redeliver" and can.delay == false then return 0 end
    local tier = rule and chain.tier(rule, name)
    return tier and tier.attempts or 0
end

local conditions = {
    error_is = function(w, case) return facts.has(case.lineage, w.value) end,
    error_field = function(w, case) return facts.raw(case.failure.error, w.name) == w.value end,
    counter = function(w, case) return facts.counter(case.failure, w.name) >= w.value end,
    consumer = function(w, case) return case.failure.consumer == w.value end,
    verdict = function(w, _, _, verdict) return verdict[w.name] == w.value end,
    rule_type = function(w, _, _, verdict) return verdict.rule.type == w.value end, -- raises where none decided
    queue = function(w, case) return case.queue == w.value end,
    max_age = function(w, case)
        local age = rules.setting(case.reading, case.failure, "max_age")
        return age and delay.milliseconds(age) >= w.value
    end,
    max_attempts = function(w, case)
        local most = rules.setting(case.reading, case.failure, "max_attempts")
        return most and most >= w.value
    end,
    attempts = function(w, case) return told_attempts(case, default_rule(case), w.name) >= w.value end,
    rule_attempts = function(w, case, rule)
        return told_attempts(case, assert(rule, "no rule decided"), w.name) >= w.value
    end,
    unrecoverable = function(w, case)
        for _, list in ipairs(rules.unrecoverable(case.reading, case.failure, case.rules)) do
            for _, declared in ipairs(list) do
                if declared.type == w.value then return true end
            end
        end
        return false
    end,
}

-- Values that are no answer.
local wrong = { number = true, text = true, table = true, word = true, no_delay = true }

local function verdict_of(answer)
    local verdict = { action = answer.answer, queue = answer.queue, note = answer.note }
    if answer.answer == "retry" or answer.answer == "redeliver" then
        verdict.tier = answer.answer
        local ms = answer.delay and delay.milliseconds(answer.delay) or 0
        verdict.delay = { ms, ms }
    end
    return verdict
end

local function chosen(list, case, rule, verdict)
    for _, answer in ipairs(list) do
        local when = answer.when
        if not when or conditions[when.kind](when, case, rule, verdict) then return answer end
    end
end

-- The verdict that the function of `list` gives instead, or nil where the verdict stands; and whether it failed.
function override.answer(case, list, rule, verdict)
    if not list then return nil, false end
    local good, answer = pcall(chosen, list, case, rule, verdict)
    if good and answer and answer.when then saw("override condition", answer.when.kind) end
    local name = good and (answer and answer.answer or "keep") or "raises"
    saw("override", name)
    if name == "keep" then return nil, false end
    if name == "raises" or wrong[name] then return nil, true end
    if verdict.reason == "max_deliveries" then
        saw("override", "after max_deliveries: " .. name)
        if name == "retry" or name == "redeliver" then return nil, true end
    end
    return verdict_of(answer), false
end

return override
