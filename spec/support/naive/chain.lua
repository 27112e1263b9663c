-- chain.lua: what the chain of a rule says: which tier is due, and how it ends.
--
--   a step:     { word = "retry", args = arguments, form = how it is written }
--               { word = "then_dead_letter", queue = name or nil },  { word = "discard", note = text or nil }
--   arguments:  { attempts =, delay =, backoff =, factor =, max_delay =, jitter =, hint = }, or { delays = { … },
--               max_delay =, jitter =, hint = }; all as written, each may be missing. attempts may be "unlimited", a
--               delay is 0, "1m30s" or { seconds = 1.5 }, jitter a fraction, "full" or "decorrelated".

local facts = require "support.naive.facts"
local saw = require "support.naive.counts".saw

local chain = {}

local DEFAULTS = {
    retry = { delay = "200ms", backoff = "exponential", max_delay = "30s" },
    redeliver = { delay = "5m", backoff = "linear", max_delay = "1h" },
}

local function step_of(steps, name)
    for _, step in ipairs(steps) do
        if step.word == name or step.word == "then_" .. name then return step end
    end
end

-- A tier: its attempts (math.huge: unlimited), and what its delays are made of; nil where the chain doesn't have it.
function chain.tier(rule, name)
    local step = step_of(rule.chain, name)
    if not step then return nil end
    local a = step.args or {}
    if a.delays then
        return {
            attempts = #a.delays, delays = a.delays, jitter = a.jitter or 0, max_delay = a.max_delay, hint = a.hint,
        }
    end
    local default = DEFAULTS[name]
    local tier = {
        attempts = a.attempts == "unlimited" and math.huge or a.attempts or 3,
        delay = a.delay or default.delay,
        backoff = a.backoff or default.backoff,
        factor = a.factor or 2,
        max_delay = a.max_delay or default.max_delay,
        jitter = a.jitter or 0.25,
        hint = a.hint,
    }
    if name == "redeliver" and not (a.attempts or a.delay or a.backoff or a.jitter == "decorrelated") then
        tier.delays = { "5m", "15m", "30m" }
    end
    return tier
end

local OPTIONS = { "attempts", "delay", "backoff", "factor", "max_delay", "jitter", "hint" }

local function count_step(name, step)
    local args = step.args or {}
    saw("arguments of " .. name, step.form or "()")
    for _, option in ipairs(OPTIONS) do
        if args[option] ~= nil then saw("option of " .. name, option) end
    end
    if args.backoff then saw("backoff of " .. name, args.backoff) end
    if type(args.jitter) == "string" then saw("jitter of " .. name, args.jitter) end
    if args.attempts == "unlimited" then saw("option of " .. name, "unlimited") end
end

-- The chain's word, before limits: the tier that is due, and its step; or nil, and why the chain ends.
function chain.follow(rule, failure)
    local retry, redeliver = chain.tier(rule, "retry"), chain.tier(rule, "redeliver")
    local attempt, redeliveries = facts.counter(failure, "attempt"), facts.counter(failure, "redeliveries")
    if retry and attempt <= retry.attempts then
        count_step("retry", step_of(rule.chain, "retry"))
        return "retry", retry, attempt
    end
    if redeliver and redeliveries < redeliver.attempts then
        count_step("redeliver", step_of(rule.chain, "redeliver"))
        return "redeliver", redeliver, redeliveries + 1
    end
    return nil, (retry or redeliver) and "exhausted" or "rule"
end

-- How it ends: { word = "dead_letter" | "discard", queue =, note = }.
function chain.last(rule)
    local last = rule.chain[#rule.chain]
    local word = last.word:gsub("^then_", "")
    if word == "discard" then return { word = word, note = last.note } end
    return { word = "dead_letter", queue = word == "dead_letter" and last.queue or nil }
end

-- Counts the shape of the chain of a rule that decided.
function chain.count(rule)
    local words = {}
    for i, step in ipairs(rule.chain) do
        words[i] = step.word .. ((step.queue and "(queue)") or (step.note and "(note)") or "")
    end
    saw("chain", table.concat(words, ":"))
end

return chain
