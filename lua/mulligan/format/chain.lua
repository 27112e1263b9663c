-- chain.lua: tiers, chains and verdicts in words.

local duration = require "mulligan.format.duration"
local text = require "mulligan.policy.text"

local chain = {}

local MOST_DELAYS = 6

-- ---- Tiers -------------------------------------------------------------------------------------

-- delays gives the delays of a tier before jitter: "200ms, 400ms, …"; "30s each" where all are alike.
local function delays(tier)
    if tier.jitter == "decorrelated" then
        return ("%s to 3 times the one before"):format(duration.exact(tier.steps[1].delay_ms))
    end
    local out, alike = {}, tier.backoff ~= "list"
    for number, step in ipairs(tier.steps) do
        alike = alike and step.delay_ms == tier.steps[1].delay_ms
        out[number] = step.delay_ms == 0 and "at once" or duration.exact(step.delay_ms)
    end
    local goes_on = tier.attempts == "unlimited" or tier.attempts > #out
    if alike and (#out > 1 or goes_on) then
        return out[1] == "at once" and out[1] or out[1] .. " each"
    elseif #out > MOST_DELAYS or goes_on then
        return table.concat(out, ", ", 1, math.min(#out, MOST_DELAYS)) .. ", …"
    end
    return table.concat(out, ", ")
end

local function jitter(tier)
    if tier.jitter == "full" then
        return ", full jitter"
    elseif tier.jitter == "decorrelated" then
        return ""
    end
    return tier.jitter > 0 and (" ±%.4g%%"):format(tier.jitter * 100) or ""
end

-- tier gives a tier in words: "3: 200ms, 400ms, 800ms ±25%, at most 30s".
function chain.tier(tier)
    if tier.attempts == 0 then
        return "none"
    end
    local last = tier.steps[#tier.steps]
    local are_all = tier.backoff ~= "list" or #tier.steps == tier.attempts
    if last.longest_ms == 0 and are_all then
        return ("%s: at once"):format(tier.attempts)
    end
    local hint = tier.hint and (", longer where %s says so"):format(text.name(tier.hint)) or ""
    local cap = tier.max_delay_ms and ", at most " .. duration.exact(tier.max_delay_ms) or ""
    return ("%s: %s%s%s%s"):format(tier.attempts, delays(tier), jitter(tier), hint, cap)
end

-- ---- Ends --------------------------------------------------------------------------------------

-- ending gives where a message ends: "dead letter to error".
function chain.ending(action, queue, note)
    if action == "discard" then
        return note and "discard: " .. text.show(note) or "discard"
    end
    return "dead letter to " .. text.name(queue)
end

-- steps gives what a rule does, a line each.
function chain.steps(rule)
    local out = {}
    if rule.retry then
        out[#out + 1] = "retry " .. chain.tier(rule.retry)
    end
    if rule.redeliver then
        out[#out + 1] = "redeliver " .. chain.tier(rule.redeliver)
    end
    out[#out + 1] = chain.ending(rule.action, rule.queue, rule.note)
    return out
end

-- bounds gives the most calls, and when it ends: "4 calls at most, ends after 1s … 2m".
function chain.bounds(of)
    local calls = of.calls and text.count(of.calls, "call", "calls") .. " at most" or "any number of calls"
    if not of.shortest_ms then
        return calls .. ", never ends"
    elseif not of.longest_ms then
        return ("%s, ends after %s or any time later"):format(calls, duration.about(of.shortest_ms))
    elseif of.longest_ms == 0 then
        return calls .. ", ends at once"
    end
    return ("%s, ends after %s"):format(calls, duration.between(of.shortest_ms, of.longest_ms))
end

-- ---- Verdicts ----------------------------------------------------------------------------------

local reasons = {
    max_deliveries = "it was handed out more often than max_deliveries allows",
    unrecoverable = "the type is unrecoverable",
    no_rule = "no rule in force matches",
    rule = "the rule says so",
    exhausted = "its attempts are used up",
    max_attempts = "max_attempts is reached",
    max_age = "max_age is over",
    deadline = "the next call would come after the deadline",
    override = "the override says so",
}

local fallbacks = {
    no_retry = "the transport can't hold a message while its handler runs again",
    no_delay = "the transport has no delayed delivery",
}

-- why gives the reason of an end in words.
function chain.why(verdict)
    return fallbacks[verdict.fallback] or reasons[verdict.reason]
end

-- of_how_many gives "retry 2 of 5".
local function of_how_many(verdict)
    local name = verdict.tier == "retry" and "retry" or "redelivery"
    local of = verdict.of and " of " .. verdict.of or ""
    local by = verdict.reason == "override" and ", as the override says" or ""
    return ("%s %d%s%s"):format(name, verdict.step, of, by)
end

-- verdict gives a verdict in one line; `wait` is its delay in words.
function chain.verdict(verdict, wait)
    if verdict.tier then
        return ("%s %s (%s)"):format(verdict.action, wait, of_how_many(verdict))
    end
    return ("%s (%s)"):format(chain.ending(verdict.action, verdict.queue, verdict.note), chain.why(verdict))
end

-- wait gives a delay of which both ends are known: "in 150ms … 250ms".
function chain.wait(low, high)
    return high == 0 and "at once" or "in " .. duration.between(low, high)
end

return chain
