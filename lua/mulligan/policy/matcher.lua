-- matcher.lua: the second argument of on: a function, a table of fields and what they must be, or
-- what policy.ctx, policy.all, policy.any or policy.none gave.

local matcher = {}

local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local options = require "mulligan.policy.options"
local key_order = require "mulligan.policy.key_order"
local value = require "mulligan.policy.value"
local dsl_object = require "mulligan.policy.dsl_object"

-- named gives the keys of a table of names; nil, noted, where it has none or others.
local function named(at, what, given, example)
    local keys, strange = key_order.keys(given)
    if not keys then
        return at.context:problem(at.here, ("%s has a %s for the name of a field; names are strings"):format(what,
            strange))
    elseif #keys == 0 then
        return at.context:problem(at.here, ("%s is an empty table; leave it out, or name a field: %s"):format(what,
            example))
    end
    return keys
end

-- add_tests adds a test for each key that may be any name; false where one was wrong.
local function add_tests(at, what, subject, given, tests, example)
    local keys = named(at, what, given, example)
    local good = keys ~= nil
    for _, key in ipairs(keys or {}) do
        if type(key) ~= "string" then
            good = false
            at.context:problem(at.here, ("%s must name its fields, %s; %s has no name"):format(what, example,
                opaque_value.show(given[key])))
        else
            local name = dsl_object.name(at.context, at.here, "the name of a field", key)
            local plain = name and value.read(at, name, given[key])
            good = good and plain ~= nil
            tests[#tests + 1] = { subject = subject, name = name, value = plain }
        end
    end
    return good
end

-- What can be asked of ctx ----------------------------------------------------------------------

local levels = {
    ctx = {
        prefix = "ctx.",
        names = { "attempt", "redeliveries", "deliveries", "calls", "age_ms", "consumer", "transport", "message" },
        below = "message",
        example = "{ redeliveries = 0 }",
    },
    message = {
        prefix = "ctx.message.",
        names = { "id", "type", "key", "size", "headers" },
        below = "headers",
        example = '{ type = "OrderPlaced" }',
    },
}

local HEADERS = '{ tenant = "acme" }'

-- A table that stands below another one in ctx; false, noted, where it is none.
local function is_table(at, what, given, example)
    if options.is_table(given) then
        return true
    elseif given ~= error_value then
        at.context:problem(at.here, ("%s must be a table, %s, not %s"):format(what, example, opaque_value.show(given)))
    end
    return false
end

local function add_headers(at, given, tests)
    at.prefix = "the header "
    return is_table(at, "ctx.message.headers", given, HEADERS)
        and add_tests(at, "ctx.message.headers", "header", given, tests, HEADERS)
end

-- instead says what is right in the place of a key that a level doesn't have.
local function instead(subject, key)
    if subject == "ctx" and options.has(levels.message.names, key) then
        return ("it is the message's: ctx { message = { %s = ... } }"):format(key)
    end
    return options.instead(key, levels[subject].names)
end

-- add_level adds the tests of ctx or, below it, of its message; false where something was wrong.
local function add_level(at, subject, given, tests)
    local level = levels[subject]
    local what = level.prefix:sub(1, -2)
    at.prefix = level.prefix
    local keys = is_table(at, what, given, level.example) and named(at, what, given, level.example)
    local good = keys and true or false
    for _, key in ipairs(keys or {}) do
        if not options.has(level.names, key) then
            good = false
            at.context:problem(at.here,
                ("%s has no %s; %s"):format(what, opaque_value.show(key), instead(subject, key)))
        elseif key ~= level.below then
            local plain = value.read(at, key, given[key])
            good = good and plain ~= nil
            tests[#tests + 1] = { subject = subject, name = key, value = plain }
        end
    end
    local below
    if keys then
        below = given[level.below]
    end
    if below ~= nil and subject == "ctx" then
        good = add_level(at, "message", below, tests) and good
    elseif below ~= nil then
        good = add_headers(at, below, tests) and good
    end
    return good
end

local function ctx(context, here, n, given)
    if dsl_object.too_many(context, here, "ctx", n, 1, "one table: ctx { redeliveries = 0 }")
        or given == error_value then
        return error_value
    end
    local tests = {}
    local good = add_level({ context = context, here = here }, "ctx", given, tests)
    return good and opaque_value.new(context, "matcher", "ctx(...)", { kind = "tests", tests = tests }) or error_value
end

-- all, any, none --------------------------------------------------------------------------------

local function is_list(given)
    return options.is_table(given) and type(given[1]) == "table"
end

local function combined(word)
    return function(context, here, n, ...)
        if n == 0 then
            context:problem(here, ("%s is empty; it needs a matcher at least: %s({ status = 503 })"):format(word, word))
            return error_value
        elseif n == 1 and is_list((...)) then
            context:problem(here, ("%s takes its matchers side by side, %s(a, b), not in a table"):format(word, word))
            return error_value
        end
        local given, parts, good = table.pack(...), {}, true
        for i = 1, n do
            parts[i] = matcher.read(context, here, ("%s: matcher %d"):format(word, i), given[i])
            good = good and parts[i] ~= nil
        end
        local depth = good and opaque_value.around(context, here, word, given, n)
        local kept = { kind = word, parts = parts }
        return depth and opaque_value.new(context, "matcher", word .. "(...)", kept, depth) or error_value
    end
end

-- words gives the words of policy that make matchers.
function matcher.words(context)
    local acts = {}
    for word, make in next, { ctx = ctx, all = combined("all"), any = combined("any"), none = combined("none") } do
        acts[word] = function(...)
            return make(context, ...)
        end
    end
    return acts
end

-- The same fields give the same matcher, so many rules may share one.
local function of_fields(context, here, what, given)
    local known, key = dispatch.recall(context.matchers, given)
    if known then
        return known
    end
    local tests = {}
    local at = { context = context, here = here, prefix = "" }
    local good = add_tests(at, what, "error", given, tests, "{ status = 503 }")
    local read = good and { kind = "tests", tests = tests } or nil
    if read and key then
        context.matchers[key] = read
    end
    return read
end

-- read gives a matcher as docs/plain-rules.md has it; nil where it was wrong. `what` is how a mistake
-- calls it.
function matcher.read(context, here, what, given)
    if given == error_value then
        return nil
    elseif type(given) == "function" then
        return { kind = "function", number = context:number_of(given) }
    end
    local plain = opaque_value.plain("matcher", given)
    if plain then
        return plain
    elseif options.is_table(given) then
        return of_fields(context, here, what, given)
    end
    local called = opaque_value.show(given)
    context:problem(here, ("%s must be a table, { status = 503 }, or a function, not %s%s"):format(what, called,
        opaque_value.plain("value", given) and ("; it needs its field: { status = %s }"):format(called) or ""))
end

return matcher
