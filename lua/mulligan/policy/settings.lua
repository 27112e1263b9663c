-- settings.lua: the words of a scope that set one value, or add one, which `false` switches off. Which ones there
-- are, and of what kind, is in src/policy/settings.h; here is what each kind takes.

local settings = {}

local duration = require "mulligan.policy.duration"
local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local limits = require "mulligan.policy.limits"
local unlimited = require "mulligan.policy.unlimited"
local vocabulary = require "mulligan.policy.vocabulary"
local dsl_object = require "mulligan.policy.dsl_object"

-- Each reads the value of a setting and gives it as docs/plain-rules.md has it; nil where it was
-- wrong.

local function read_whole(context, here, word, value)
    return dsl_object.whole(context, here, word, value, 1)
end

local function read_queue(context, here, word, value)
    return dsl_object.name(context, here, word .. ": the queue", value)
end

local function read_span(context, here, what, value)
    if value == error_value then
        return nil
    end
    local ms, why = duration.read(value)
    if not ms then
        context:problem(here, what .. " " .. why)
    end
    return ms
end

local function read_age(context, here, word, value)
    return read_span(context, here, word .. ":", value)
end

local function read_function(context, here, word, value)
    if type(value) == "function" then
        return context:number_of(value)
    elseif value ~= error_value then
        context:problem(here, ("%s must be a function, %s, or false, not %s"):format(word, settings.words[word].example,
            opaque_value.show(value)))
    end
end

local kinds = {
    queue = { read = read_queue, takes = "the name of a queue, or false" },
    span = { read = read_age, takes = 'a span of time such as "1d", or false' },
    count = { read = read_whole, takes = "a whole number, or false" },
    rate_limits = { read = limits.read_rate_limit, takes = ("a table, %s, or false"):format(limits.RATE_LIMIT),
        adds_up = true },
    call_limits = { read = limits.read_limit, takes = ("a table, %s, or false"):format(limits.LIMIT), adds_up = true },
    ["function"] = { read = read_function, takes = "a function, or false" },
}

settings.words = {} -- word -> its row
for _, row in ipairs(dispatch.settings) do
    local word = row.field:gsub("_ms$", "")
    settings.words[word] = row
    table.insert(vocabulary.words.scope, word)
end

-- set carries out a word of a scope's.
function settings.set(context, data, word, here, n, value)
    local setting = settings.words[word]
    local kind, read = kinds[setting.kind], nil
    here = context.pinned or here
    if dsl_object.too_many(context, here, word, n, 1, kind.takes) then
        read = nil
    elseif n == 0 then
        context:problem(here, ("%s needs a value: %s"):format(word, kind.takes))
    elseif value == false then
        read = false
    else
        read = kind.read(context, here, word, value)
    end
    unlimited.said(data, word, read, here)
    if read and kind.adds_up then
        read = limits.with(data.settings[setting.field], read)
    end
    if read ~= nil then
        data.settings[setting.field], data.places[setting.field] = read, here
    end
    return dsl_object.ended(context, "scope", word)
end

return settings
