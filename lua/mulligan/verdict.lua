-- verdict.lua: a verdict as a line of `mulligan decide`: every key, in a fixed order.

local encode = require "mulligan.json".encode

local verdict = {}

local keys = { "action", "delay_ms", "queue", "reason", "note", "tier", "step", "of", "rule", "fallback", "generation" }
local rule_keys = { "file", "line", "scope", "type" }

local function in_order(of, names)
    local parts = {}
    for i, name in ipairs(names) do
        local value, text = of[name], "null"
        if type(value) == "table" then
            text = in_order(value, rule_keys)
        elseif value ~= nil then
            text = encode(value)
        end
        parts[i] = '"' .. name .. '": ' .. text
    end
    return "{" .. table.concat(parts, ", ") .. "}"
end

function verdict.text(of)
    return in_order(of, keys)
end

return verdict
