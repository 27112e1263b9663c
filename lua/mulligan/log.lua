-- log.lua: what `run` writes to stderr: one line an event, as text for people or as JSON.

local core = require "mulligan.core"
local json = require "mulligan".json
local text = require "mulligan.policy.text"

local log = {}

local ranks = { debug = 1, info = 2, warning = 3, error = 4 }

local levels = {
    retry = "info",
    discard = "info",
    redeliver = "warning",
    dead_letter = "error",
    matcher_failed = "warning",
    override_failed = "warning",
    notify_failed = "warning",
    header_ignored = "warning",
    policy_loaded = "info",
    policy_refused = "error",
}

local deeds = { retry = "retry", discard = "discard", redeliver = "redelivery", dead_letter = "dead letter" }

-- ---- As text -----------------------------------------------------------------------------------

local LONGEST = 500

-- Milliseconds as people write them: "1m30s".
local function span(ms)
    local parts = {}
    for _, unit in ipairs { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } } do
        if ms >= unit[2] then
            parts[#parts + 1] = ("%d%s"):format(ms // unit[2], unit[1])
            ms = ms % unit[2]
        end
    end
    return table.concat(parts)
end

-- When what follows begins.
local function begins(ms)
    return ms > 0 and "in " .. span(ms) or "at once"
end

-- A retry is one of as many as the rule allows; an override says of none how many follow; anything
-- else ends the round of attempts.
local function attempts_of(event)
    local attempt, verdict = event.failure.attempt, event.verdict
    if verdict.action == "retry" and not verdict.of then
        return ("attempt %d"):format(attempt)
    end
    local of = verdict.action == "retry" and verdict.of + 1 or attempt
    return ("attempt %d of %d"):format(attempt, math.max(of, attempt))
end

local function redelivery(verdict)
    local by_override = verdict.reason == "override"
    return ("redelivery %d%s"):format(verdict.step, by_override and "" or " of " .. (verdict.of or "unlimited"))
end

local function what_follows(event)
    local verdict, failure = event.verdict, event.failure
    local by = verdict.reason == "override" and ": override" or ""
    if verdict.action == "retry" then
        return "again " .. begins(verdict.delay_ms) .. by
    elseif verdict.action == "redeliver" then
        return redelivery(verdict) .. " " .. begins(verdict.delay_ms) .. by
    end
    local before = ("after %s and %s"):format(text.count(failure.calls, "call", "calls"),
        text.count(failure.redeliveries, "redelivery", "redeliveries"))
    if verdict.action == "discard" then
        return ("discarded %s: %s"):format(before, verdict.note or verdict.reason)
    end
    return ("to %s %s: %s%s"):format(verdict.queue, before, verdict.reason,
        verdict.fallback and " (" .. verdict.fallback .. ")" or "")
end

local function decided(event)
    local failure, verdict = event.failure, event.verdict
    local err, rule = failure.error, verdict.rule
    local why = err.message ~= "" and err.type .. ": " .. err.message or err.type
    return ("%s: message %s, consumer %s: %s; %s, %s; %s"):format(deeds[verdict.action], failure.message.id,
        failure.consumer, text.cut(why, LONGEST), attempts_of(event), what_follows(event),
        rule and ("%s:%d"):format(rule.file, rule.line) or "no rule")
end

local function other(event)
    local failure, words = event.failure, {}
    if event.name ~= "log" then
        words[1] = event.name
    end
    if failure and failure.message.id then
        words[#words + 1] = ("message %s, consumer %s"):format(failure.message.id, failure.consumer)
    end
    local place = event.rule and ("%s:%d"):format(event.rule.file, event.rule.line)
    -- What Lua says of a matcher begins with a place, often the rule's.
    if place and (event.text or ""):sub(1, #place + 1) ~= place .. ":" then
        words[#words + 1] = place
    end
    words[#words + 1] = event.text
    return table.concat(words, ": ")
end

local function as_text(moment, level, event)
    local words = event.verdict and event.name == "decided" and decided(event) or other(event)
    return ("%s %-7s %s"):format(moment, level, text.clean(words))
end

-- ---- As JSON -----------------------------------------------------------------------------------

local keys = {
    "time", "level", "event", "text", "message", "consumer", "transport", "attempt", "redeliveries", "calls",
    "deliveries", "age_ms", "error", "action", "delay_ms", "queue", "reason", "note", "tier", "step", "of", "rule",
    "fallback", "generation",
}

-- Another program may have put bytes into a message that are no text.
local function mended(value)
    return type(value) == "string" and text.mend(value) or value
end

local function some_of(from, names)
    if not from then
        return nil
    end
    local some = {}
    for _, name in ipairs(names) do
        some[name] = from[name] == nil and json.null or mended(from[name])
    end
    return some
end

-- Every key is always there, in this order.
local function as_json(moment, level, event)
    local failure, verdict = event.failure or {}, event.verdict or {}
    local fields = { time = moment, level = level, event = event.name, text = event.text }
    for _, from in ipairs { failure, verdict } do
        for name, value in pairs(from) do
            fields[name] = value
        end
    end
    fields.message = some_of(failure.message, { "id", "type", "key", "size" })
    fields.error = some_of(failure.error, { "type", "message" })
    fields.rule = some_of(verdict.rule or event.rule, { "file", "line", "scope", "type" })
    fields.generation = verdict.generation or event.generation
    local parts = {}
    for number, key in ipairs(keys) do
        local value = fields[key]
        parts[number] = ("%s:%s"):format(json.encode(key), value == nil and "null" or json.encode(mended(value)))
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

local formats = { text = as_text, json = as_json }

-- ---- The log -----------------------------------------------------------------------------------

-- lost is the line, in which a writer puts "@time@" and "@count@", that tells how many are lost.
function log.lost(format)
    return formats[format]("@time@", "warning", {
        name = "log",
        text = "lines of this log that could not be written, and are lost: @count@",
    })
end

-- new gives a log that writes lines of at least `level` with write(line).
function log.new(format, level, write)
    local shape, least = formats[format], ranks[level]
    local made = {}

    local function line(of_level, event)
        if ranks[of_level] >= least then
            write(shape(core.moment(), of_level, event) .. "\n")
        end
    end

    -- What the engine or the policy says in words.
    function made.line(of_level, words)
        line(of_level, { name = "log", text = words })
    end

    function made.event(event)
        if event.name == "policy_refused" then
            event.text = ("%s; generation %s runs on"):format(event.text, event.generation)
        end
        local verdict = event.name == "decided" and event.verdict
        line(levels[verdict and verdict.action or event.name] or "info", event)
    end

    return made
end

return log
