-- scope.lua: host, bus, transports and consumers: their rules and settings.

local scope = {}

local chain = require "mulligan.policy.chain"
local force = require "mulligan.policy.force"
local lost = require "mulligan.policy.lost"
local made = require "mulligan.policy.made"
local matcher = require "mulligan.policy.matcher"
local options = require "mulligan.policy.options"
local order = require "mulligan.policy.order"
local settings = require "mulligan.policy.settings"
local text = require "mulligan.policy.text"
local unlimited = require "mulligan.policy.unlimited"
local vocabulary = require "mulligan.policy.vocabulary"
local words = require "mulligan.policy.words"

local data_of = setmetatable({}, { __mode = "k" }) -- a scope's object -> what is known of it

-- Types -----------------------------------------------------------------------------------------

local LIST = '{ "TimeoutError", "HttpError" }'

-- read_list reads a list of types; nil where something in it was wrong. `prefix` begins a mistake.
function scope.read_list(book, here, prefix, given)
    local keys = order.keys(given)
    local count = keys and #keys or 0
    if count == 0 or keys[count] ~= count then
        book:problem(here, ("%sa list of types must be names and nothing else, %s"):format(prefix, LIST))
        return nil
    end
    local seen, good = {}, true
    for i = 1, count do
        local name = words.name(book, here, ("%stype %d of the list"):format(prefix, i), given[i])
        if name and seen[name] then
            book:problem(here, ("%s%s is in the list of types twice"):format(prefix, text.show(name)))
        end
        good = good and name ~= nil and not seen[name]
        seen[name or 0] = true
    end
    return good and table.move(given, 1, count, 1, {}) or nil
end

-- read_types gives the one type or the list of types that was given; neither where it was wrong.
local function read_types(book, here, given)
    if options.is_table(given) then
        return nil, scope.read_list(book, here, "", given)
    end
    return words.name(book, here, "the error type", given)
end

-- Rules -----------------------------------------------------------------------------------------

-- add begins a rule and gives the stage that its chain is said to, and the rule. What a preset says
-- stands where the preset is called.
local function add(book, data, rules, here, type_name)
    local rule = chain.begin(type_name, data.label, book.pinned or here)
    rules[#rules + 1] = rule
    return book.rules.object(rule), rule
end

local function on(book, data, word, here, n, given_type, given_matcher)
    local rules = word == "on" and data.rules or data.cause_rules
    if n == 0 then
        book:problem(here, ('%s needs an error type: %s("TimeoutError")'):format(word, word))
        return (add(book, data, rules, here))
    end
    local type_name, types = read_types(book, here, given_type)
    words.too_many(book, here, word, n, 2, "a type and a matcher")
    local stage, rule = add(book, data, rules, here, type_name)
    rule.types = types
    if n >= 2 then
        rule.matcher = matcher.read(book, here, "the matcher", given_matcher)
    end
    return stage
end

local function default(book, data, _, here, n)
    words.too_many(book, here, "default", n, 0, 'none: it is on("Error")')
    return (add(book, data, data.rules, here, "Error"))
end

local function unrecoverable(book, data, word, here, n, given_type, given_matcher)
    if n == 0 then
        book:problem(here, 'unrecoverable needs an error type: unrecoverable("ValidationError")')
    elseif not words.too_many(book, here, word, n, 2, "a type and a matcher") then
        here = book.pinned or here
        local type_name, types = read_types(book, here, given_type)
        local declared = n >= 2 and matcher.read(book, here, "the matcher", given_matcher) or nil
        for _, name in ipairs(types or { type_name }) do
            table.insert(data.unrecoverable, { type = name, matcher = declared, file = here.file, line = here.line })
        end
    end
    return words.ended(book, "scope", word)
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

local function add_include(book, data, here, other)
    for _, include in ipairs(data.includes) do
        if include.data == other then
            return
        end
    end
    local back = way(other, data, {})
    if back then
        table.insert(back, 1, data.label)
        book:problem(here, ("%s can't include %s: that goes round in a circle (%s)"):format(text.name(data.label),
            other == data and "itself" or text.name(other.label), text.way(back, " > ")))
        return
    end
    here = book.pinned or here
    table.insert(data.includes, { scope = other.label, file = here.file, line = here.line, data = other })
end

local function include(book, data, word, here, n, given)
    local other = given ~= nil and data_of[given]
    if n == 0 then
        book:problem(here, "include needs a scope: include(policy.bus())")
    elseif words.too_many(book, here, word, n, 1, "one scope") or given == lost then
        return words.ended(book, "scope", word)
    elseif not other then
        book:problem(here, ("include takes a scope, such as policy.bus(), not %s"):format(made.show(given)))
    elseif not other.stray then
        add_include(book, data, here, other)
    end
    return words.ended(book, "scope", word)
end

-- Scopes ----------------------------------------------------------------------------------------

local own_words = { on = on, on_cause = on, default = default, unrecoverable = unrecoverable, include = include }

-- The words of every scope.
local function scope_words(book)
    local acts = {}
    for _, word in ipairs(vocabulary.words.scope) do
        local act = own_words[word] or settings.set
        acts[word] = function(data, here, n, first, second)
            return act(book, data, word, here, n, first, second)
        end
    end
    book.rules = chain.kind(book)
    return words.kind(book, "scope", acts)
end

local function new(book, kind, name)
    book.scope_words = book.scope_words or scope_words(book)
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
    data.object = book.scope_words.object(data)
    data_of[data.object] = data
    return data
end

-- get gives the object of a scope, the same for the same name.
function scope.get(book, kind, name)
    local known = book.scopes[kind] or {}
    book.scopes[kind] = known
    known[name or true] = known[name or true] or new(book, kind, name)
    return known[name or true].object
end

-- stray gives a scope that belongs to no table, so that what is said to it is checked all the same.
function scope.stray(book, kind)
    book.strays = book.strays or {}
    local data = new(book, kind)
    data.stray = true
    book.strays[#book.strays + 1] = data
    return data.object
end

-- is says whether a value is a scope.
function scope.is(value)
    return value ~= nil and data_of[value] ~= nil
end

-- in_order gives all scopes: host, bus, transports by name, consumers by name.
local function in_order(book)
    local list = {}
    for _, kind in ipairs({ "host", "bus", "transport", "consumer" }) do
        local known = book.scopes[kind] or {}
        for _, key in ipairs(order.keys(known)) do
            list[#list + 1] = known[key]
        end
    end
    return list
end

-- The End ---------------------------------------------------------------------------------------

local MOST_TYPES = 20

-- check_action looks at a rule to which no word was said that could stand there.
local function check_action(book, rule, stopped)
    if rule.touched or stopped and book.begun == rule then
        return
    end
    local shown = {}
    for i, name in ipairs(rule.types or { rule.type }) do
        shown[i] = text.show(name)
    end
    book:problem(rule, ("the rule for %s has no action; :retry, :redeliver, :dead_letter or :discard "
        .. "must follow"):format(#shown > 0 and text.list(text.some(shown, MOST_TYPES), "and") or "this type"))
end

-- check notes what can only be seen at the end: a rule without an action, one that never ends. Where
-- an error ended the policy, `stopped` is true: the rule at which a word was begun then isn't at fault,
-- and what would have come after it isn't missed.
function scope.check(book, stopped)
    local all = in_order(book)
    table.move(book.strays or {}, 1, #(book.strays or {}), #all + 1, all)
    for _, data in ipairs(all) do
        for _, rules in ipairs({ data.rules, data.cause_rules }) do
            for i = 1, #rules do
                local rule = rules[i]
                if #rule == 1 then
                    check_action(book, rule, stopped)
                end
            end
        end
    end
    if not stopped then
        unlimited.check(book, all)
    end
end

-- list gives the scopes as docs/plain-rules.md has them; only for a policy without mistakes.
function scope.list(book)
    local list = {}
    for i, data in ipairs(in_order(book)) do
        local rules = force.of(data)
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
