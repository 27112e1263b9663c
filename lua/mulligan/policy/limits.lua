-- limits.lua: what rate_limit and limit take. Each statement becomes one table with every default
-- filled in; docs/plain-rules.md has its fields.

local limits = {}

local duration = require "mulligan.policy.duration"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local options = require "mulligan.policy.options"
local text = require "mulligan.policy.text"
local types = require "mulligan.policy.types"
local dsl_object = require "mulligan.policy.dsl_object"

limits.RATE_LIMIT, limits.LIMIT = '{ after = 10, wait = "5s" }', '{ rate = "100/s" }'

-- No count that C works out of these overflows, and what is kept for each value stays small.
local MOST, MOST_MESSAGES = 1000000, 1000
local WAIT, WINDOW, LEAST = "1s", "30s", 20

-- `at` is { context =, here =, word =, given =, wrong = false }: the table and whether anything in it
-- was a mistake. Each of these reads an option of it.

local function wrong(at, why, ...)
    at.wrong = true
    if why then
        at.context:problem(at.here, ("%s: " .. why):format(at.word, ...))
    end
end

local function whole(at, name, most, otherwise)
    local given = at.given[name]
    if given == nil then
        return otherwise
    end
    local number = dsl_object.whole(at.context, at.here, at.word .. ": " .. name, given, 1, most)
    at.wrong = at.wrong or not number
    return number
end

local function span(at, name, otherwise)
    local given = at.given[name]
    if given == nil then
        given = otherwise
    end
    if given == nil then
        return nil
    end
    local ms, why = duration.read(given)
    if ms == 0 then
        return wrong(at, "%s must be longer than 0", name)
    elseif not ms then
        wrong(at, given ~= error_value and "%s %s" or nil, name, why)
    end
    return ms
end

local function fraction(at, name)
    local given = at.given[name]
    if given == nil then
        return nil
    elseif type(given) ~= "number" or not (given > 0 and given <= 1) then
        return wrong(at, given ~= error_value and "%s must be above 0 and at most 1, not %s" or nil, name,
            opaque_value.show(given))
    end
    return given
end

local function boolean(at, name)
    local given = at.given[name]
    if given ~= nil and type(given) ~= "boolean" then
        return wrong(at, given ~= error_value and "%s must be true or false, not %s" or nil, name,
            opaque_value.show(given))
    end
    return given == true
end

local function field(at, name)
    local given = at.given[name]
    if given == nil then
        return nil
    end
    local good = dsl_object.name(at.context, at.here, ("%s: the field that %s names"):format(at.word, name), given)
    at.wrong = at.wrong or not good
    return good
end

local function type_list(at, name)
    local given = at.given[name]
    if given == nil then
        return nil
    end
    local list
    if options.is_table(given) then
        list = types.read_list(at.context, at.here, ("%s: %s: "):format(at.word, name), given)
    else
        list = { dsl_object.name(at.context, at.here, ("%s: the error type in %s"):format(at.word, name), given) }
    end
    at.wrong = at.wrong or not list or #list == 0
    return list
end

-- per adds to a statement what it counts for.
local function add_per(at, statement)
    local given = at.given.per
    local header = opaque_value.plain("per", given)
    statement.per, statement.header = given or "consumer", header
    if header then
        statement.per = "header"
    elseif given ~= nil and given ~= "key" and given ~= "type" then
        local near = text.nearest(given, { "key", "type" })
        wrong(at, given ~= error_value and 'per must be "key", "type" or policy.header("tenant"), not %s%s' or nil,
            opaque_value.show(given), near and ('; did you mean "%s"?'):format(near) or "")
    end
end

-- rate_limit -------------------------------------------------------------------------------------

local rate_limit_names = {
    "after", "ratio", "window", "least", "messages", "within", "only", "except", "wait", "max_wait", "hint",
    "successes", "keep", "ramp", "per",
}

-- What speaks against options that stand beside each other; nil: nothing.
local function clash(given)
    if given.after ~= nil and given.ratio ~= nil then
        return "after and ratio can't stand together; after counts failures in a row, ratio their part of all calls"
    end
    for _, name in ipairs(given.after ~= nil and { "window", "least" } or {}) do
        if given[name] ~= nil then
            return name .. " goes with ratio; within is how far apart the failures of after may lie"
        end
    end
    if given.within ~= nil and given.ratio ~= nil then
        return "within goes with after; window is how far back ratio looks"
    end
end

-- never says why a statement could never begin; nil: it can.
local function never(statement)
    local name = statement.after and "after" or "least"
    local most = statement[name]
    if statement.messages > most then
        return ("messages must be at most %s, which is %d, not %d"):format(name, most, statement.messages)
    end
    local kept = {}
    for _, type_name in ipairs(statement.only or {}) do
        kept[type_name] = true
    end
    for _, type_name in ipairs(statement.except or {}) do
        if type_name == "Error" then
            return 'except = "Error" leaves no failure to count; every error is one'
        elseif kept[type_name] then
            return ("%s can't stand in only and in except"):format(text.show(type_name))
        end
    end
end

local function read_start(at, statement)
    statement.after, statement.ratio = whole(at, "after", MOST), fraction(at, "ratio")
    statement.within_ms = span(at, "within")
    if at.given.ratio ~= nil then
        statement.window_ms, statement.least = span(at, "window", WINDOW), whole(at, "least", MOST, LEAST)
    end
    statement.messages = whole(at, "messages", MOST_MESSAGES, 1)
    statement.only, statement.except = type_list(at, "only"), type_list(at, "except")
end

local function read_waits(at, statement)
    local wait = at.given.wait
    if wait == nil then
        wait = WAIT
    end
    statement.wait_ms = span(at, "wait", WAIT)
    statement.max_wait_ms = at.given.max_wait == nil and statement.wait_ms or span(at, "max_wait")
    if statement.wait_ms and statement.max_wait_ms and statement.max_wait_ms < statement.wait_ms then
        wrong(at, "max_wait must be at least wait, which is %s, not %s", text.show(wait),
            text.show(at.given.max_wait))
    end
    statement.hint = field(at, "hint")
end

-- needs notes that an option is missing without which there is no statement.
local function needs(at, what, example)
    at.wrong = true
    at.context:problem(at.here, ("%s needs %s: %s"):format(at.word, what, example))
end

local function read_rate_limit(at)
    local statement = {}
    local why = clash(at.given)
    if at.given.after == nil and at.given.ratio == nil then
        needs(at, "after, the failures in a row that begin it, or ratio, their part of all calls", limits.RATE_LIMIT)
    elseif why then
        wrong(at, why)
    end
    read_start(at, statement)
    read_waits(at, statement)
    statement.successes = whole(at, "successes", MOST, 1)
    statement.keep, statement.ramp_ms = boolean(at, "keep"), span(at, "ramp")
    add_per(at, statement)
    why = not at.wrong and never(statement)
    if why then
        wrong(at, why)
    end
    return statement
end

-- limit ------------------------------------------------------------------------------------------

local limit_names = { "rate", "burst", "per" }
local units = { s = 1000, m = 60000, h = 3600000 }

-- guess is what a rate was probably meant to be; "" where that isn't clear.
local function guess(given)
    local count, unit = text.show(given):lower():gsub('[%s"]', ""):match "^(%d+)/?(%l*)$"
    unit = count and (unit == "" and "s" or unit:match "^[smh]")
    return unit and #count < 10 and ('; "%s/%s"?'):format(count, unit) or ""
end

local function read_rate(at, statement)
    local given = at.given.rate
    if given == nil then
        return needs(at, "rate, so many calls in a second, a minute or an hour", limits.LIMIT)
    elseif given == error_value then
        return wrong(at)
    end
    local digits, unit = (type(given) == "string" and given or ""):match "^(%d+)/([smh])$"
    if not digits then
        return wrong(at, 'rate must be a whole number of calls and a unit, "100/s", "100/m" or "100/h", not %s%s',
            opaque_value.show(given), guess(given))
    end
    local count = #digits < 10 and math.tointeger(digits) or MOST + 1
    if count < 1 or count > MOST then
        return wrong(at, "rate must be from 1 to %d calls, not %s", MOST, text.show(given))
    end
    statement.count, statement.unit_ms = count, units[unit]
end

local function read_limit(at)
    local statement = {}
    read_rate(at, statement)
    statement.burst = whole(at, "burst", MOST, 1)
    add_per(at, statement)
    return statement
end

-- Both -------------------------------------------------------------------------------------------

-- reader gives what reads the table of a word: the statement as docs/plain-rules.md has it, nil where
-- it was wrong.
local function reader(names, example, read)
    return function(context, here, word, given)
        local at = { context = context, here = here, word = word, given = given, wrong = false }
        if given == error_value then
            return nil
        elseif not options.is_table(given) then
            return context:problem(here,
                ("%s must be a table, %s, or false, not %s"):format(word, example, opaque_value.show(given)))
        end
        at.wrong = not options.check(context, here, word, given, names)
        local statement = read(at)
        statement.file, statement.line = here.file, here.line
        return not at.wrong and statement or nil
    end
end

limits.read_rate_limit = reader(rate_limit_names, limits.RATE_LIMIT, read_rate_limit)
limits.read_limit = reader(limit_names, limits.LIMIT, read_limit)

-- with gives the statements of a scope once one more is said; it stands for an earlier one with the
-- same `per`. `before` may be nil or false.
function limits.with(before, statement)
    local all = {}
    for _, other in ipairs(before or {}) do
        if other.per ~= statement.per or other.header ~= statement.header then
            all[#all + 1] = other
        end
    end
    all[#all + 1] = statement
    return all
end

-- words gives policy.header, which names a header for `per`.
function limits.words(context)
    return {
        header = function(here, n, value)
            dsl_object.too_many(context, here, "header", n, 1, "one name")
            local name = dsl_object.name(context, here, "header: the name of the header", value)
            return name and opaque_value.new(context, "per", ("header(%s)"):format(text.show(name)), name)
                or error_value
        end,
    }
end

return limits
