-- json.lua: mulligan.json. Reading is C (src/lua/values/json.c); writing is here. Tables are read raw.

local core = require "mulligan.core"

local json = core.json
local find, format, gsub = string.find, string.format, string.gsub
local getmetatable, utf8_len = debug.getmetatable, utf8.len
local is_before = json.is_before -- by bytes, whatever the locale is
json.is_before = nil
local marked = getmetatable(json.list {})

local LEVELS = 128 -- as reading has

local escapes = { ['"'] = '\\"', ["\\"] = "\\\\", ["\b"] = "\\b", ["\f"] = "\\f", ["\n"] = "\\n", ["\r"] = "\\r",
    ["\t"] = "\\t" }
for byte = 0, 31 do
    local character = string.char(byte)
    escapes[character] = escapes[character] or format("\\u%04x", byte)
end

local function string_text(value)
    if not find(value, '[\0-\31"\\\127-\255]') then
        return '"' .. value .. '"'
    elseif not utf8_len(value) then
        error("a text that isn't UTF-8 can't be JSON", 0)
    end
    return '"' .. gsub(value, '[\0-\31"\\]', escapes) .. '"'
end

-- As few digits as read back to the same; 2.0 isn't 2. The locale may have another point.
local function number_text(value)
    if math.type(value) == "integer" then
        return format("%d", value)
    elseif value ~= value or value == math.huge or value == -math.huge then
        error("a number that isn't finite can't be JSON", 0)
    end
    local text
    for digits = 15, 17 do
        text = format("%." .. digits .. "g", value)
        if tonumber(text) == value then
            break
        end
    end
    text = gsub(text, "[^%de+-]+", ".")
    return find(text, "[.e]") and text or text .. ".0"
end

-- is_list says whether the keys of a table are 1 ... n; an empty one is a list if json.list made it.
local function is_list(value)
    local keys = 0
    for key in next, value do
        if math.type(key) ~= "integer" then
            return false
        end
        keys = keys + 1
    end
    if keys == 0 then
        return getmetatable(value) == marked
    end
    return keys == rawlen(value)
end

local function keys_of(value)
    local keys = {}
    for key in next, value do
        if type(key) ~= "string" then
            error("the keys of a table must be 1 ... n or all strings to be JSON", 0)
        elseif find(key, "\0", 1, true) then
            error("a key with a NUL can't be JSON", 0)
        end
        keys[#keys + 1] = key
    end
    table.sort(keys, is_before)
    return keys
end

local text_of

local function table_text(value, level)
    if level > LEVELS then
        error(format("a table nested deeper than %d levels, or in itself, can't be JSON", LEVELS), 0)
    end
    local parts = {}
    if is_list(value) then
        for i = 1, rawlen(value) do
            parts[i] = text_of(rawget(value, i), level)
        end
        return "[" .. table.concat(parts, ",") .. "]"
    end
    for i, key in ipairs(keys_of(value)) do
        parts[i] = string_text(key) .. ":" .. text_of(rawget(value, key), level)
    end
    return "{" .. table.concat(parts, ",") .. "}"
end

function text_of(value, level)
    local kind = type(value)
    if kind == "string" then
        return string_text(value)
    elseif kind == "number" then
        return number_text(value)
    elseif kind == "table" then
        return table_text(value, level + 1)
    elseif value == nil or value == json.null then
        return "null"
    elseif kind == "boolean" then
        return tostring(value)
    end
    error(format("a %s can't be JSON", kind), 0)
end

function json.encode(...)
    if select("#", ...) == 0 then
        error("bad argument #1 to 'encode' (value expected)", 2)
    end
    local well, text = pcall(text_of, (...), 0)
    if not well then
        error(text, 2)
    end
    return text
end

return json
