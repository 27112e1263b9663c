-- verdict.lua: a verdict as a line of `mulligan decide`: every key, in a fixed order.

require "mulligan.json"
local encode = require("mulligan.core").json_text

local verdict = {}

local LINE = '{"action": %s, "delay_ms": %s, "queue": %s, "reason": %s, "note": %s, "tier": %s, "step": %s, "of": %s, '
    .. '"rule": %s, "fallback": %s, "generation": %s}'
local RULE = '{"file": %s, "line": %s, "scope": %s, "type": %s}'

-- Most texts of verdicts come again and again: those of a policy, and a few words. A long one is a note.
local known, count = {}, 0
local LONG = 100

local function json(value)
    if type(value) ~= "string" then
        return value == nil and "null" or value
    elseif #value > LONG then
        return encode(value)
    end
    local found = known[value]
    if not found then
        found, count = encode(value), count + 1
        if count > 1000 then
            known, count = {}, 0
        end
        known[value] = found
    end
    return found
end

function verdict.text(of)
    local rule = of.rule
    return LINE:format(json(of.action), of.delay_ms, json(of.queue), json(of.reason), json(of.note), json(of.tier),
        json(of.step), json(of.of),
        rule and RULE:format(json(rule.file), json(rule.line), json(rule.scope), json(rule.type)) or "null",
        json(of.fallback), json(of.generation))
end

return verdict
