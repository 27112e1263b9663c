-- options.lua: options by name, as in mulligan.engine { … }: what each may be, and what is wrong.
--
-- A table of what is allowed has for each option its kind, and "!" behind it where it is required:
-- { queue = "name!", timeout = "timeout" }. Spans of time are read into `timeout_ms`.

local core = require "mulligan.core"
local duration = require "mulligan.policy.duration"
local text = require "mulligan.policy.text"

local options = {}

options.NEVER = -1 -- MULL_NEVER

local UINT32_MAX = 0xFFFFFFFF
local TIMEOUT_MS = 30000 -- of a consumer that names none
local units = { B = 1, KiB = 1 << 10, MiB = 1 << 20, GiB = 1 << 30 }

-- bytes reads a number of bytes, or a text such as "16MiB", whole and at least 1.
function options.bytes(value)
    local bytes = value
    if type(value) == "string" then
        local number, unit = value:match("^(%d+)(%a+)$")
        bytes = unit and units[unit] and #number <= 9 and math.tointeger(number) * units[unit]
    end
    bytes = math.tointeger(bytes)
    if not bytes or bytes < 1 then
        return nil, 'must be a number of bytes or a text such as "16MiB", not ' .. text.show(value)
    end
    return bytes
end

local function of_type(name, words)
    return function(value)
        if type(value) == name then
            return value
        end
        return nil, ("must be %s, not %s"):format(words, text.show(value))
    end
end

local function with_methods(methods, words)
    return function(value)
        local meta = type(value) == "userdata" and getmetatable(value)
        if type(meta) == "table" and meta.__index == methods then
            return value
        end
        return nil, ("must be %s, not %s"):format(words, text.show(value))
    end
end

local kinds = {
    flag = of_type("boolean", "true or false"),
    table = of_type("table", "a table"),
    callback = of_type("function", "a function"),
    policy = with_methods(core.policy_methods, "a policy, as mulligan.load gives it"),
    clock = with_methods(core.clock_methods, "a clock, as testing.clock gives it"),
    text = of_type("string", "a string"),
    bytes = options.bytes,
    span = duration.read,
}

-- A policy, or the text of one.
function kinds.source(value)
    if type(value) == "string" then
        return value
    end
    local policy = kinds.policy(value)
    return policy, not policy and "must be a policy or the text of one, not " .. text.show(value) or nil
end

function kinds.name(value)
    if type(value) == "string" and value ~= "" and text.valid(value) then
        return value
    end
    return nil, "must be a name in UTF-8, not " .. text.show(value)
end

function kinds.path(value)
    if type(value) == "string" and value ~= "" and not value:find("\0", 1, true) then
        return value
    end
    return nil, "must be the path of a file, not " .. text.show(value)
end

function kinds.count(value)
    local number = math.type(value) and math.tointeger(value)
    if number and number >= 1 and number <= UINT32_MAX then
        return number
    end
    return nil, "must be a whole number from 1, not " .. text.show(value)
end

function kinds.seed(value)
    local number = math.type(value) and math.tointeger(value)
    if number then
        return number
    end
    return nil, "must be a whole number, not " .. text.show(value)
end

function kinds.timeout(value)
    if value == false then
        return options.NEVER
    end
    local ms, why = duration.read(value)
    if ms == 0 then
        return nil, "must be longer than 0, or false for none"
    end
    return ms, why
end

-- patterns reads whose string.find, match, gmatch and gsub handlers have.
function options.patterns(value)
    if value == "counted" or value == "lua" then
        return value
    end
    return nil, 'must be "counted" or "lua", not ' .. text.show(value)
end

kinds.patterns = options.patterns

function kinds.faults(value)
    if value == "mulligan" or value == "nservicebus" then
        return value
    end
    return nil, 'must be "mulligan" or "nservicebus", not ' .. text.show(value)
end

-- is_list says whether a table has the keys 1 … n and no others.
local function is_list(value)
    local keys = 0
    for _ in pairs(type(value) == "table" and value or {}) do
        keys = keys + 1
    end
    return type(value) == "table" and keys == #value
end

function kinds.names(value)
    if not is_list(value) then
        return nil, "must be a list of names, not " .. text.show(value)
    end
    for number, name in ipairs(value) do
        local _, why = kinds.name(name)
        if why then
            return nil, ("number %d %s"):format(number, why)
        end
    end
    return value
end

-- Types of messages that are a consumer's own, each once.
function kinds.types(value)
    local names, why = kinds.names(value)
    if not names or #names == 0 then
        return nil, why or "must name a type; leave it out to take what no other consumer of the queue names"
    end
    local seen = {}
    for _, name in ipairs(names) do
        if seen[name] then
            return nil, ("names %s twice"):format(text.show(name))
        end
        seen[name] = true
    end
    return names
end

-- What policy:check is told of a consumer: `url` is its transport's.
local checked_consumer = { name = "name!", transport = "name!", queue = "name!", url = "name!", timeout = "timeout" }

function kinds.consumers(value)
    if not is_list(value) then
        return nil, "must be a list, not " .. text.show(value)
    end
    local consumers = {}
    for number, consumer in ipairs(value) do
        local read, problems = options.read(consumer, checked_consumer)
        if #problems > 0 then
            return nil, ("number %d: %s"):format(number, table.concat(problems, "; "))
        end
        read.timeout_ms = read.timeout_ms or TIMEOUT_MS
        consumers[number] = read
    end
    return consumers
end

local is_span = { span = true, timeout = true }

-- The names of what is allowed, in order: what is called often is read by the same table each time.
local names_by_table = setmetatable({}, { __mode = "k" })

local function names_of(allowed)
    local names = names_by_table[allowed]
    if not names then
        names = {}
        for name in pairs(allowed) do
            names[#names + 1] = name
        end
        table.sort(names)
        names_by_table[allowed] = names
    end
    return names
end

local function unknown(name, allowed)
    local names = names_of(allowed)
    local near = text.nearest(name, names)
    if near then
        return ("unknown option %s; did you mean %q?"):format(text.show(name), near)
    end
    return ("unknown option %s; there are %s"):format(text.show(name), text.list(names, "and"))
end

-- read gives the options that are known and right, and the list of what is wrong with the rest.
function options.read(given, allowed)
    local read, problems = {}, {}
    if type(given) ~= "table" then
        return read, { "options must be a table, not " .. text.show(given) }
    end
    for _, name in ipairs(names_of(allowed)) do
        local kind, required = allowed[name]:match("^(%a+)(!?)$")
        local value = given[name]
        if value ~= nil then
            local good, why = kinds[kind](value)
            read[is_span[kind] and name .. "_ms" or name] = good
            if why then
                problems[#problems + 1] = name .. " " .. why
            end
        elseif required == "!" then
            problems[#problems + 1] = name .. " is missing"
        end
    end
    local strangers = {}
    for name in pairs(given) do
        if not allowed[name] then
            strangers[#strangers + 1] = unknown(name, allowed)
        end
    end
    table.sort(strangers)
    table.move(strangers, 1, #strangers, #problems + 1, problems)
    return read, problems
end

-- demand is read for a program that is wrong if anything is: it raises, `level` calls up.
function options.demand(what, given, allowed, level)
    local read, problems = options.read(given, allowed)
    if #problems > 0 then
        error(("%s: %s"):format(what, table.concat(problems, "; ")), level + 1)
    end
    return read
end

-- What a consumer may say, in service.lua and in engine:consumer.
options.consumer = {
    transport = "name!",
    queue = "name!",
    handler = "callback!",
    concurrency = "count",
    prefetch = "count",
    timeout = "timeout",
    max_body = "bytes",
    paused = "flag",
    fault_headers = "faults",
    types = "types",
}

return options
