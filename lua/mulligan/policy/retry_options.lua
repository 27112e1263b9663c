-- retry_options.lua: the arguments of retry and redeliver, in all their forms, and the defaults.
--
--   ()  (n)  (n, delay)  (n, delay, backoff)          by position
--   { "100ms", "500ms", jitter =, max_delay =, hint = }       exactly these delays
--   { attempts =, delay =, backoff =, factor =, max_delay =, jitter =, hint = }

local tier = {}

local duration = require "mulligan.policy.duration"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local options = require "mulligan.policy.options"
local key_order = require "mulligan.policy.key_order"
local text = require "mulligan.policy.text"
local unlimited = require "mulligan.policy.unlimited"
local dsl_object = require "mulligan.policy.dsl_object"

local MOST_ATTEMPTS = 1000
local MINUTE = 60000

local defaults = {
    retry = { attempts = 3, base_ms = 200, backoff = "exponential", max_delay_ms = 30000, jitter = 0.25 },
    redeliver = {
        attempts = 3,
        base_ms = 5 * MINUTE,
        backoff = "linear",
        max_delay_ms = 60 * MINUTE,
        jitter = 0.25,
        delays = { 5 * MINUTE, 15 * MINUTE, 30 * MINUTE }, -- until attempts, delay or backoff is named
    },
}

local FACTOR = 2

local backoffs = { "constant", "linear", "exponential" }
local jitters = { "full", "decorrelated" }
local names = { "attempts", "delay", "backoff", "factor", "max_delay", "jitter", "hint" }
local list_names = { "jitter", "max_delay", "hint" }
local by_place = { "attempts", "delay", "backoff" }

-- Reading: each of these checks one value and gives it, or notes what is wrong and marks the tier.
-- `at` is { context =, here =, word =, tier = "retry" or "redeliver", wrong = false }.

local function wrong(at, why)
    at.wrong = true
    if why then
        at.context:problem(at.here, at.word .. ": " .. why)
    end
end

local read = {}

-- What is wrong with a number of attempts.
local function attempts_mistake(at, value)
    if value == "unlimited" then
        return 'attempts = "unlimited" is for redeliver; a retry keeps its message in memory and takes a whole number '
            .. "from 0 to 1000"
    elseif type(value) == "string" and duration.read(value) then
        return ("attempts must be a whole number, not %s; the delay comes second: %s(3, %s)"):format(text.show(value),
            at.word, text.show(value))
    end
    local near = at.tier == "redeliver" and text.nearest(value, { "unlimited" })
    return ("attempts must be a whole number from 0 to %d, not %s%s"):format(MOST_ATTEMPTS, opaque_value.show(value),
        near and '; did you mean "unlimited"?' or "")
end

function read.attempts(at, value)
    local number = math.type(value) and math.tointeger(value)
    if number and number >= 0 and number <= MOST_ATTEMPTS then
        return number
    elseif value == "unlimited" and at.tier == "redeliver" then
        return value
    end
    wrong(at, value ~= error_value and attempts_mistake(at, value) or nil)
end

local function read_delay(at, what, value)
    local ms, why = duration.read(value)
    if not ms then
        wrong(at, value ~= error_value and what .. " " .. why or nil)
    end
    return ms
end

-- lone says how a list of delays is written.
local function lone(at)
    return ('a list of delays stands alone: %s { "1s", "5s" }'):format(at.word)
end

function read.delay(at, value)
    if options.is_table(value) then
        return wrong(at, "delay is one span of time; " .. lone(at))
    end
    return read_delay(at, "delay", value)
end

function read.max_delay(at, value)
    return read_delay(at, "max_delay", value)
end

function read.backoff(at, value)
    if value == error_value then
        return wrong(at)
    elseif options.has(backoffs, value) then
        return value
    end
    local near = text.nearest(value, backoffs)
    wrong(at, ("backoff must be %s, not %s%s"):format('"constant", "linear" or "exponential"', opaque_value.show(value),
        near and ('; did you mean "%s"?'):format(near) or ""))
end

function read.factor(at, value)
    if value == error_value then
        return wrong(at)
    elseif type(value) ~= "number" or not (value >= 1 and value < math.huge) then
        return wrong(at, "factor must be a number from 1, not " .. text.show(value))
    end
    return value
end

function read.jitter(at, value)
    if value == error_value then
        return wrong(at)
    elseif type(value) == "number" and value >= 0 and value <= 1 or options.has(jitters, value) then
        return value
    end
    local near = text.nearest(value, jitters)
    wrong(at, ('jitter must be a fraction from 0 to 1, "full" or "decorrelated", not %s%s'):format(
        opaque_value.show(value), near and ('; did you mean "%s"?'):format(near) or ""))
end

function read.hint(at, value)
    local name = dsl_object.name(at.context, at.here, at.word .. ": the field that hint names", value)
    at.wrong = at.wrong or not name
    return name
end

-- The forms --------------------------------------------------------------------------------------

-- What speaks against options that stand beside each other; nil: nothing.
local function clash(named, backoff)
    if named.jitter == "decorrelated" and (named.backoff or named.factor) then
        return ('%s can\'t stand beside jitter = "decorrelated", whose delays grow by chance from delay'):format(
            named.backoff and "backoff" or "factor")
    elseif named.factor and not backoff then
        return 'factor is for backoff = "exponential", which must be named with it'
    elseif named.factor and backoff ~= "exponential" then
        return ('factor is for backoff = "exponential"; this one is "%s"'):format(backoff)
    end
end

-- computed fills in the defaults around what was named.
local function computed(at, named)
    local default = defaults[at.tier]
    local decorrelated = named.jitter == "decorrelated"
    local delays = not (named.attempts or named.delay or named.backoff or decorrelated) and default.delays or nil
    local backoff = not delays and (named.backoff or default.backoff) or nil
    local why = clash(named, backoff)
    if why then
        return wrong(at, why)
    end
    local result = {
        attempts = named.attempts or default.attempts,
        delays = delays,
        max_delay_ms = named.max_delay or default.max_delay_ms,
        jitter = named.jitter or default.jitter,
        hint = named.hint,
    }
    if not delays then
        result.base_ms = named.delay or default.base_ms
        result.backoff = decorrelated and "constant" or backoff
        result.factor = named.factor or result.backoff == "exponential" and FACTOR or 1
    end
    if named.attempts == "unlimited" then
        unlimited.note(at.context, result, at.here)
    end
    return result
end

local function by_position(at, n, ...)
    if dsl_object.too_many(at.context, at.here, at.word, n, 3, "attempts, delay and backoff; the rest by name") then
        return wrong(at)
    end
    local named = {}
    for i = 1, n do
        local name = by_place[i]
        named[name] = read[name](at, (select(i, ...)))
    end
    return not at.wrong and computed(at, named) or nil
end

-- read_options reads the keys of a table from the `first`-th on, each of which must be `allowed`.
local function read_options(at, given, keys, first, allowed)
    local named = {}
    for i = first, #keys do
        local key = keys[i]
        if options.has(allowed, key) then
            named[key] = read[key](at, given[key])
        elseif options.has(names, key) then
            wrong(at, ("%s can't stand beside a list of delays; %s can"):format(key, text.list(allowed, "and")))
        elseif math.type(key) then
            wrong(at, ("a list of delays has the keys 1, 2, ... without a hole, not %s"):format(text.show(key)))
        else
            local listed = key == "delays" and options.is_table(given[key])
            wrong(at, listed and "there is no option delays; " .. lone(at) or options.unknown(key, allowed))
        end
    end
    return named
end

-- listed reads a table whose first `count` keys are 1 ... count.
local function listed(at, given, keys, count)
    local delays = {}
    for i = 1, count do
        local ms, why = duration.read(given[i])
        if not ms then
            wrong(at, given[i] ~= error_value and ("delay %d: %s"):format(i, why) or nil)
        end
        delays[i] = ms
    end
    if count > MOST_ATTEMPTS then
        wrong(at, ("a list has at most %d delays, not %d"):format(MOST_ATTEMPTS, count))
    end
    local named = read_options(at, given, keys, count + 1, list_names)
    if named.jitter == "decorrelated" then
        wrong(at, 'jitter = "decorrelated" can\'t stand beside a list of delays; a fraction and "full" can')
    end
    return {
        attempts = count,
        delays = delays,
        max_delay_ms = named.max_delay,
        jitter = named.jitter or 0,
        hint = named.hint,
    }
end

local function by_table(at, n, given)
    if dsl_object.too_many(at.context, at.here, at.word, n, 1, "nothing beside a table") then
        return wrong(at)
    end
    local keys, strange = key_order.keys(given)
    if not keys then
        return wrong(at, ("unknown option: a %s; there are %s"):format(strange, text.list(names, "and")))
    elseif #keys == 0 then
        return wrong(at, ('an empty table; %s() has the defaults, a list such as { "1s", "5s" } its delays'):format(
            at.word))
    end
    local count = 0
    while keys[count + 1] == count + 1 do
        count = count + 1
    end
    if count > 0 then
        return listed(at, given, keys, count)
    end
    local named = read_options(at, given, keys, 1, names)
    return not at.wrong and computed(at, named) or nil
end

-- read gives the tier that the n arguments of `word` ask for; nil where they are wrong.
function tier.read(context, here, word, n, ...)
    local at = { context = context, here = here, word = word, tier = word == "retry" and "retry" or "redeliver" }
    local first = ...
    local result
    if first == error_value then
        return nil
    elseif options.is_table(first) then
        result = by_table(at, n, ...)
    else
        result = by_position(at, n, ...)
    end
    return not at.wrong and result or nil
end

return tier
