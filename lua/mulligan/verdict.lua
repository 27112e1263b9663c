-- verdict.lua: a verdict as a line of `mulligan decide`: every key, in a fixed order.

local encode = require "mulligan.json".encode

local verdict = {}

local LINE = '{"action": %s, "delay_ms": %s, "queue": %s, "reason": %s, "note": %s, "tier": %s, "step": %s, "of": %s, '
    .. '"rule": %s, "fallback": %s, "generation": %s}'
local RULE = '{"file": %s, "line": %s, "scope": %s, "type": %s}'

local function json(value)
    if value == nil then
        return "null"
    end
    return type(value) == "string" and encode(value) or value
end

function verdict.text(of)
    local rule = of.rule
    return LINE:format(json(of.action), of.delay_ms, json(of.queue), json(of.reason), json(of.note), json(of.tier),
        json(of.step), json(of.of),
        rule and RULE:format(json(rule.file), json(rule.line), json(rule.scope), json(rule.type)) or "null",
        json(of.fallback), json(of.generation))
end

return verdict
