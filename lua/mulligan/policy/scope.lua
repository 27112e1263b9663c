-- scope.lua: host, bus, transports and consumers: their rules and settings.

local scope = {}

local chain = require "mulligan.policy.chain"
local effective_rules = require "mulligan.policy.effective_rules"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local matcher = require "mulligan.policy.matcher"
local options = require "mulligan.policy.options"
local key_order = require "mulligan.policy.key_order"
local settings = require "mulligan.policy.settings"
local text = require "mulligan.policy.text"
local types = require "mulligan.policy.types"
local unlimited = require "mulligan.policy.unlimited"
local vocabulary = require "mulligan.policy.vocabulary"
local dsl_object = require "mulligan.policy.dsl_object"

local data_of = setmetatable({}, { __mode = "k" }) -- a scope's object -> what is known of it

-- Types -----------------------------------------------------------------------------------------

-- read_types gives the one type or the list of types that was given; neither where it was wrong.
local function read_types(context, here, given)
    if options.is_table(given) then
        return nil, types.read_list(context, here, "", given)
    end
    return dsl_object.name(context, here, "the error type", given)
end

-- Rules -----------------------------------------------------------------------------------------

-- add begins a rule and gives the stage that its chain is said to, and the rule. What a preset says
-- stands where the preset is called.
local function add(context, data, rules, here, type_name)
    local rule = chain.begin(type_name, data.label, context.pinned or here)
    rules[#rules + 1] = rule
    return context.rules.object(rule), rule
end

local function on(context, data, word, here, n, given_type, given_matcher)
    local rules = word == "on" and data.rules or data.cause_rules
    if n == 0 then
        context:problem(here, ('%s needs an error type: %s("TimeoutError")'):format(word, word))
        return (add(context, data, rules, here))
    end
    local type_name, list = read_types(context, here, given_type)
    dsl_object.too_many(context, here, word, n, 2, "a type and a matcher")
    local stage, rule = add(context, data, rules, here, type_name)
    rule.types = list
    if n >= 2 then
        rule.matcher = matcher.read(context, here, "the matcher", given_matcher)
    end
    return stage
end

local function default(context, data, _, here, n)
    dsl_object.too_many(context, here, "default", n, 0, 'none: it is on("Error")')
    return (add(context, data, data.rules, here, "Error"))
end

local function unrecoverable(context, data, word, here, n, given_type, given_matcher)
    if n == 0 then
        context:problem(here, 'unrecoverable needs an error type: unrecoverable("ValidationError")')
    elseif not dsl_object.too_many(context, here, word, n, 2, "a type and a matcher") then
        here = context.pinned or here
        local type_name, list = read_types(context, here, given_type)
        local declared = n >= 2 and matcher.read(context, here, "the matcher", given_matcher) or nil
        for _, name in ipairs(list or { type_name }) do
            table.insert(data.unrecoverable, { type = name, matcher = declared, file = here.file, line = here.line })
        end
    end
    return dsl_object.ended(context, "scope", word)
end

-- include ---------------------------------------------------------------------------------------

-- way gives the labels on a way from one scope to another over what each includes; nil: there is none.
local function way(from, to, seen)
    if from == to then
        return { from.label }
    end
    seen[from] = true
    for _, include in ipairs(from.includes) do
        local rest = not seen[include.data] and way(include.data, to, seen)
        if rest then
            table.insert(rest, 1, from.label)
            return rest
        end
    end
end

local function add_include(context, data, here, other)
    for _, include in ipairs(data.includes) do
        if include.data == other then
            return
        end
    end
    local back = way(other, data, {})
    if back then
        table.insert(back, 1, data.label)
        context:problem(here, ("%s can't include %s: that goes round in a circle (%s)"):format(text.name(data.label),
            other == data and "itself" or text.name(other.label), text.way(back, " > ")))
        return
    end
    here = context.pinned or here
    table.insert(data.includes, { scope = other.label, file = here.file, line = here.line, data = other })
end

local function include(context, data, word, here, n, given)
    local other = given ~= nil and data_of[given]
    if n == 0 then
        context:problem(here, "include needs a scope: include(policy.bus())")
    elseif dsl_object.too_many(context, here, word, n, 1, "one scope") or given == error_value then
        return dsl_object.ended(context, "scope", word)
    elseif not other then
        context:problem(here, ("include takes a scope, such as policy.bus(), not %s"):format(opaque_value.show(given)))
    elseif not other.stray then
        add_include(context, data, here, other)
    end
    return dsl_object.ended(context, "scope", word)
end

-- Scopes ----------------------------------------------------------------------------------------

local own_words = { on = on, on_cause = on, default = default, unrecoverable = unrecoverable, include = include }

-- The words of every scope.
local function scope_words(context)
    local acts = {}
    for _, word in ipairs(vocabulary.words.scope) do
        local act = own_words[word] or settings.set
        acts[word] = function(data, here, n, first, second)
            return act(context, data, word, here, n, first, second)
        end
    end
    context.rules = chain.kind(context)
    return dsl_object.kind(context, "scope", acts)
end

local function new(context, kind, name)
    context.scope_words = context.scope_words or scope_words(context)
    local data = {
        kind = kind,
        name = name,
        label = name and ("%s:%s"):format(kind, name) or kind,
        rules = {},
        cause_rules = {},
        unrecoverable = {},
        settings = {},
        places = {},
        includes = {},
    }
    data.object = context.scope_words.object(data)
    data_of[data.object] = data
    return data
end

-- get gives the object of a scope, the same for the same name.
function scope.get(context, kind, name)
    local known = context.scopes[kind] or {}
    context.scopes[kind] = known
    known[name or true] = known[name or true] or new(context, kind, name)
    return known[name or true].object
end

-- stray gives a scope that belongs to no table, so that what is said to it is checked all the same.
function scope.stray(context, kind)
    context.strays = context.strays or {}
    local data = new(context, kind)
    data.stray = true
    context.strays[#context.strays + 1] = data
    return data.object
end

-- is says whether a value is a scope.
function scope.is(value)
    return value ~= nil and data_of[value] ~= nil
end

-- in_order gives all scopes: host, bus, transports by name, consumers by name.
local function in_order(context)
    local list = {}
    for _, kind in ipairs({ "host", "bus", "transport", "consumer" }) do
        local known = context.scopes[kind] or {}
        for _, key in ipairs(key_order.keys(known)) do
            list[#list + 1] = known[key]
        end
    end
    return list
end

-- The End ---------------------------------------------------------------------------------------

local MOST_TYPES = 20

-- check_action looks at a rule to which no word was said that could stand there.
local function check_action(context, rule, stopped)
    if rule.touched or stopped and context.begun == rule then
        return
    end
    local shown = {}
    for i, name in ipairs(rule.types or { rule.type }) do
        shown[i] = text.show(name)
    end
    context:problem(rule, ("the rule for %s has no action; :retry, :redeliver, :dead_letter or :discard "
        .. "must follow"):format(#shown > 0 and text.list(text.some(shown, MOST_TYPES), "and") or "this type"))
end

-- told gives what another policy has to know of a scope of this one; nil: nothing was said to it.
function scope.told(context, kind)
    local data = context.scopes[kind] and context.scopes[kind][true]
    return data and unlimited.told(context, data)
end

-- check notes what can only be seen at the end: a rule without an action, one that never ends. Where
-- an error ended the policy, `stopped` is true: the rule at which a word was begun then isn't at fault,
-- and what would have come after it isn't missed. What ends the rules of a host policy may be said in
-- the other, which looks at both.
function scope.check(context, stopped)
    local all = in_order(context)
    table.move(context.strays or {}, 1, #(context.strays or {}), #all + 1, all)
    for _, data in ipairs(all) do
        for _, rules in ipairs({ data.rules, data.cause_rules }) do
            for i = 1, #rules do
                local rule = rules[i]
                if #rule == 1 then
                    check_action(context, rule, stopped)
                end
            end
        end
    end
    local host = context.host
    if host and host.scope then
        all[#all + 1] = unlimited.heard(context, host.scope)
    end
    if not (stopped or context.is_host or host and host.stopped) then
        unlimited.check(context, all)
    end
end

-- list gives the scopes as docs/plain-rules.md has them; only for a policy without mistakes.
function scope.list(context)
    local list = {}
    for i, data in ipairs(in_order(context)) do
        local rules = effective_rules.of(data)
        list[i] = {
            kind = data.kind,
            name = data.name,
            rules = rules.rules,
            cause_rules = rules.cause_rules,
            unrecoverable = data.unrecoverable,
            settings = data.settings,
            places = data.places,
            includes = data.includes,
            replaced = rules.replaced,
        }
    end
    return list
end

return scope
