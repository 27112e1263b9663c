-- value.lua: what a matcher asks of a field: a literal, a list of literals, or what one of the words
-- of policy gives, such as policy.between(500, 599).

local value = {}

local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local offers = require "mulligan.sandbox.offers"
local options = require "mulligan.policy.options"
local key_order = require "mulligan.policy.key_order"
local text = require "mulligan.policy.text"
local dsl_object = require "mulligan.policy.dsl_object"

-- Reading ----------------------------------------------------------------------------------------
--
-- `at` is { context =, here =, prefix = }: what stands before a field's name where a mistake says it.

local function wrong(at, key, why)
    at.context:problem(at.here, ("the value of %s%s %s"):format(at.prefix, text.name(key), why))
end

local LITERAL = { string = true, number = true, boolean = true }

-- What is wrong with a string, number or boolean; nil: nothing.
local function literal_mistake(given)
    if given ~= given then
        return "is not a number (nan), which equals nothing"
    elseif type(given) == "string" and not text.valid(given) then
        return ("must be valid UTF-8 without a zero byte, which %s isn't"):format(text.show(given))
    end
end

local function read_item(at, key, i, item)
    local why
    if not LITERAL[type(item)] then
        why = ("has a list in which number %d must be a string, a number or a boolean, not %s"):format(i,
            opaque_value.show(item))
    else
        why = literal_mistake(item)
    end
    if why and item ~= error_value then
        wrong(at, key, why)
    end
    return not why
end

-- Fields that people look for in the error, and where they are.
local BEYOND = {
    ctx = "policy.ctx { redeliveries = 0 }",
    message = 'policy.ctx { message = { type = "OrderPlaced" } }',
    headers = 'policy.ctx { message = { headers = { tenant = "acme" } } }',
}

-- What would be right in the place of a table with names in it.
local function instead_of_names(at, key)
    local beyond = at.prefix == "" and BEYOND[key]
    return beyond and "what isn't of the error is asked for by " .. beyond
        or "a list of values has none: { 502, 503 }"
end

local function read_list(at, key, given)
    local keys = key_order.keys(given)
    local count = keys and #keys or 0
    if keys and count == 0 then
        return wrong(at, key, "is an empty table; a list needs a value at least: { 502, 503 }")
    elseif not keys or keys[count] ~= count then
        return wrong(at, key, "is a table with names in it; " .. instead_of_names(at, key))
    end
    local literals, good = {}, true
    for i = 1, count do
        good = read_item(at, key, i, given[i]) and good
        literals[i] = given[i]
    end
    return good and { kind = "one_of", literals = literals } or nil
end

-- read gives the VALUE of docs/plain-rules.md that a field is asked for; nil where it was wrong.
function value.read(at, key, given)
    if LITERAL[type(given)] then
        local why = literal_mistake(given)
        if why then
            return wrong(at, key, why)
        end
        return { kind = "one_of", literals = { given } }
    elseif given == error_value then
        return nil
    end
    local plain = opaque_value.plain("value", given)
    if plain then
        return plain
    elseif options.is_table(given) then
        return read_list(at, key, given)
    end
    wrong(at, key, ("must be a string, a number, a boolean, a list of these, or what such a word as policy.between "
        .. "gives, not %s%s"):format(opaque_value.show(given), type(given) == "function"
        and "; a function in the place of the whole table can look at anything" or ""))
end

-- The words -------------------------------------------------------------------------------------

local function number(context, here, word, which, given)
    if type(given) == "number" and given == given then
        return given
    elseif given ~= error_value then
        context:problem(here, ("%s: %s must be a number, not %s"):format(word, which, opaque_value.show(given)))
    end
end

local makers = {}

function makers.between(context, here, n, a, b)
    if dsl_object.too_many(context, here, "between", n, 2, "two numbers") then
        return nil
    end
    local low = number(context, here, "between", "the first", a)
    local high = number(context, here, "between", "the second", b)
    if low and high and low > high then
        return context:problem(here, ("between: %s is greater than %s, so nothing is between them; between(%s, %s)?")
            :format(text.show(low), text.show(high), text.show(high), text.show(low)))
    end
    return low and high and { kind = "between", low = low, high = high }
end

function makers.at_least(context, here, n, a)
    local low = not dsl_object.too_many(context, here, "at_least", n, 1, "one number")
        and number(context, here, "at_least", "the least", a)
    return low and { kind = "between", low = low }
end

function makers.at_most(context, here, n, a)
    local high = not dsl_object.too_many(context, here, "at_most", n, 1, "one number")
        and number(context, here, "at_most", "the most", a)
    return high and { kind = "between", high = high }
end

-- A text for contains or matches; nil where it was wrong.
local function read_text(context, here, word, what, n, given)
    if dsl_object.too_many(context, here, word, n, 1, "one " .. what) or given == error_value then
        return nil
    elseif type(given) ~= "string" then
        return context:problem(here,
            ("%s: the %s must be a string, not %s"):format(word, what, opaque_value.show(given)))
    end
    local why = literal_mistake(given)
    if why then
        return context:problem(here, ("%s: the %s %s"):format(word, what, why))
    end
    return given
end

function makers.contains(context, here, n, given)
    local part = read_text(context, here, "contains", "text", n, given)
    return part and { kind = "contains", text = part }
end

function makers.matches(context, here, n, given)
    local pattern = read_text(context, here, "matches", "pattern", n, given)
    local why = pattern and offers.pattern_mistake(pattern)
    if why then
        return context:problem(here, ("matches: the pattern %s is no Lua pattern: %s"):format(text.show(pattern), why))
    end
    return pattern and { kind = "matches", text = pattern }
end

function makers.is_not(context, here, n, given)
    if dsl_object.too_many(context, here, "is_not", n, 1, "one value") then
        return nil
    end
    local plain = value.read({ context = context, here = here, prefix = "" }, "is_not", given)
    local depth = plain and opaque_value.around(context, here, "is_not", { given }, 1)
    return depth and { kind = "not", value = plain }, depth
end

-- words gives the words of policy that make values.
function value.words(context)
    local acts = {}
    for word, make in next, makers do
        acts[word] = function(here, n, ...)
            local plain, depth = make(context, here, n, ...)
            return plain and opaque_value.new(context, "value", word .. "(...)", plain, depth) or error_value
        end
    end
    return acts
end

-- constants gives the values of policy that need no arguments.
function value.constants(context)
    return {
        present = opaque_value.new(context, "value", "present", { kind = "present" }),
        absent = opaque_value.new(context, "value", "absent", { kind = "absent" }),
    }
end

return value
