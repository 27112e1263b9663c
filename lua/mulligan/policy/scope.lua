-- scope.lua: host, bus, transports and consumers: their rules and settings.

local scope = {}

local chain = require "mulligan.policy.chain"
local duration = require "mulligan.policy.duration"
local lost = require "mulligan.policy.lost"
local matcher = require "mulligan.policy.matcher"
local order = require "mulligan.policy.order"
local text = require "mulligan.policy.text"
local words = require "mulligan.policy.words"

local function read_type(book, here, given)
    if type(given) == "table" and given ~= lost then
        book:problem(here, "a list of types is not in this version yet; a statement for each does the same")
        return nil
    end
    return words.name(book, here, "the error type", given)
end

-- add begins a rule and gives the stage that its chain is said to.
local function add(book, data, here, type_name, has_matcher, given)
    local rule = { type = type_name, file = here.file, line = here.line, scope = data.label }
    if has_matcher then
        rule.matcher = matcher.read(book, here, given)
    end
    data.rules[#data.rules + 1] = rule
    book.latest = rule
    return chain.of(book, rule)
end

local function on(book, data, here, n, ...)
    if n == 0 then
        book:problem(here, 'on needs an error type: on("TimeoutError")')
        return add(book, data, here, nil, false)
    end
    local type_name = read_type(book, here, (...))
    if words.too_many(book, here, "on", n, 2, "a type and a matcher") then
        type_name = nil
    end
    return add(book, data, here, type_name, n >= 2, (select(2, ...)))
end

local function default(book, data, here, n)
    local extra = words.too_many(book, here, "default", n, 0, 'none: it is on("Error")')
    return add(book, data, here, not extra and "Error" or nil, false)
end

-- Settings: each reads its one value; nil where it was wrong. `false` switches one off.

local function read_whole(book, here, word, value)
    return words.whole(book, here, word, value, 1)
end

local function read_queue(book, here, word, value)
    return words.name(book, here, word .. ": the queue", value)
end

local function read_age(book, here, word, value)
    if value == lost then
        return nil
    end
    local ms, why = duration.read(value)
    if not ms then
        book:problem(here, word .. ": " .. why)
    end
    return ms
end

local settings = {
    dead_letter_queue = { field = "dead_letter_queue", read = read_queue, takes = "the name of a queue, or false" },
    max_age = { field = "max_age_ms", read = read_age, takes = 'a span of time such as "1d", or false' },
    max_attempts = { field = "max_attempts", read = read_whole, takes = "a whole number, or false" },
    max_deliveries = { field = "max_deliveries", read = read_whole, takes = "a whole number, or false" },
}

local function set(book, data, word, here, n, value)
    local setting = settings[word]
    if words.too_many(book, here, word, n, 1, setting.takes) then
        return words.ended(book, "scope", word)
    elseif n == 0 then
        book:problem(here, ("%s needs a value: %s"):format(word, setting.takes))
    elseif value == false then
        data.settings[setting.field], data.places[setting.field] = false, here
    else
        local read = setting.read(book, here, word, value)
        if read ~= nil then
            data.settings[setting.field], data.places[setting.field] = read, here
        end
    end
    return words.ended(book, "scope", word)
end

local function new(book, kind, name)
    local label = name and ("%s:%s"):format(kind, name) or kind
    local data = { kind = kind, name = name, label = label, rules = {}, settings = {}, places = {} }
    local acts = {
        on = function(...)
            return on(book, data, ...)
        end,
        default = function(...)
            return default(book, data, ...)
        end,
    }
    for word in pairs(settings) do
        acts[word] = function(...)
            return set(book, data, word, ...)
        end
    end
    data.object = words.object(book, "scope", acts)
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
    book.strays[#book.strays + 1] = data
    return data.object
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

-- check notes what can only be seen at the end: a rule without an action. Where an error ended the
-- policy in the middle of a statement, `stopped` is its place and that statement's rule not at fault.
function scope.check(book, stopped)
    local all = in_order(book)
    table.move(book.strays or {}, 1, #(book.strays or {}), #all + 1, all)
    for _, data in ipairs(all) do
        for _, rule in ipairs(data.rules) do
            local cut_off = stopped and rule == book.latest and rule.file == stopped.file and rule.line == stopped.line
            if not rule.touched and not cut_off then
                book:problem(rule, ("the rule for %s has no action; :retry, :redeliver, :dead_letter or :discard "
                    .. "must follow"):format(rule.type and text.show(rule.type) or "this type"))
            end
        end
    end
end

-- The rules that count, and those that don't: one without a matcher replaces those before it for its
-- type.
local function in_force(rules)
    local last, kept, replaced = {}, {}, {}
    for _, rule in ipairs(rules) do
        if not rule.matcher then
            local before = last[rule.type]
            if before then
                replaced[#replaced + 1] = { type = rule.type, word = "on", file = before.file, line = before.line,
                    by_file = rule.file, by_line = rule.line }
            end
            last[rule.type] = rule
        end
    end
    for _, rule in ipairs(rules) do
        if rule.matcher or last[rule.type] == rule then
            kept[#kept + 1] = rule
        end
    end
    return kept, replaced
end

-- list gives the scopes as docs/plain-rules.md has them; only for a policy without mistakes.
function scope.list(book)
    local list = {}
    for i, data in ipairs(in_order(book)) do
        local rules, replaced = in_force(data.rules)
        list[i] = {
            kind = data.kind,
            name = data.name,
            rules = rules,
            cause_rules = {},
            unrecoverable = {},
            settings = data.settings,
            places = data.places,
            includes = {},
            replaced = replaced,
        }
    end
    return list
end

return scope
