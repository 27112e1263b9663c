-- rules.lua: which rules and settings each scope of a tree has, and which of them are in force for a failure.

local saw = require "support.naive.counts".saw

local rules = {}

local KINDS = { "consumer", "transport", "bus", "host" }
local UNREADABLE = "MessageDeserializationError"

function rules.label(scope) return scope.name and scope.kind .. ":" .. scope.name or scope.kind end

-- A rule as verdicts and events tell it.
function rules.told(rule)
    return { file = "policy.lua", line = rule.line, scope = rules.label(rule.scope), type = rule.type }
end

-- Presets -------------------------------------------------------------------------------------------------------------

-- They are what the page says, written with its words.

local presets = {}

function presets.mocha(s)
    return { {
        scope = s.scope, line = s.line, word = "on", types = { "Error" }, preset = s.preset,
        chain = { { word = "retry" }, { word = "then_redeliver" } },
    } }
end

function presets.nservicebus(s)
    local o = s.options or {}
    local statements = { {
        scope = s.scope, line = s.line, word = "on", types = { "Error" }, preset = s.preset,
        chain = {
            { word = "retry", args = { attempts = o.immediate or 5, delay = 0, jitter = 0 } },
            { word = "then_redeliver", args = {
                attempts = o.delayed or 3, delay = o.increase or "10s", jitter = 0, max_delay = "365d",
            } },
        },
    }, { scope = s.scope, setting = "max_age", value = o.max_age or "24h" } }
    if o.unrecoverable then
        statements[3] = { scope = s.scope, line = s.line, unrecoverable = o.unrecoverable, preset = s.preset }
    end
    return statements
end

local function without_presets(statements)
    local plain = {}
    for _, s in ipairs(statements) do
        for _, inner in ipairs(s.preset and presets[s.preset](s) or { s }) do plain[#plain + 1] = inner end
    end
    return plain
end

-- Scopes --------------------------------------------------------------------------------------------------------------

local function new_scope(scope)
    return { scope = scope, on = {}, on_cause = {}, unrecoverable = {}, settings = {}, includes = {}, replaced = {} }
end

local function replaces(new, old) return old.type == new.type and not old.matcher and not new.matcher end

-- A plain rule replaces an earlier one for its type; it stands where the later statement ran.
local function add_rule(held, s, name)
    local rule = {
        scope = s.scope, line = s.line, type = name, word = s.word, matcher = s.matcher, chain = s.chain,
        style = s.style, preset = s.preset, listed = #s.types > 1,
    }
    local list = held[s.word]
    for i, earlier in ipairs(list) do
        if replaces(rule, earlier) then
            table.remove(list, i)
            rule.replaced = true
            break
        end
    end
    list[#list + 1] = rule
end

local function add_statement(held, s)
    for _, name in ipairs(s.types or {}) do add_rule(held, s, name) end
    for _, name in ipairs(s.unrecoverable or {}) do
        held.unrecoverable[#held.unrecoverable + 1] = {
            scope = s.scope, line = s.line, type = name, matcher = s.matcher, listed = #s.unrecoverable > 1,
        }
    end
    if s.include then held.includes[#held.includes + 1] = rules.label(s.include) end
    if s.setting then held.settings[s.setting] = s.value end -- the later call counts
end

-- The rules of a scope as they stand at the end: its own, then, for each type, those of what it includes; an own plain
-- rule replaces an included one. The same rule stands once.
local function with_included(reading, held, word)
    local list, seen = table.move(held[word], 1, #held[word], 1, {}), {}
    for _, label in ipairs(held.includes) do
        for _, rule in ipairs(rules.all(reading, label, word)) do
            local gone = seen[rule]
            for _, own in ipairs(held[word]) do
                if replaces(own, rule) then
                    gone = true
                    own.replaced_included = true
                end
            end
            if not gone then list[#list + 1] = rule end
            seen[rule] = true
        end
    end
    return list
end

-- The rules that a scope has of a word, in order.
function rules.all(reading, label, word)
    local held = reading.scopes[label]
    if not held then return {} end
    local key = "all " .. word
    held[key] = held[key] or with_included(reading, held, word)
    return held[key]
end

-- What the statements of a tree come to; it is read once for many failures.
function rules.read(tree)
    local reading = { parents = tree.parents, scopes = {} }
    for _, s in ipairs(without_presets(tree.statements)) do
        local label = rules.label(s.scope)
        reading.scopes[label] = reading.scopes[label] or new_scope(s.scope)
        add_statement(reading.scopes[label], s)
    end
    return reading
end

-- In force ------------------------------------------------------------------------------------------------------------

local function label_of(kind, failure)
    if kind == "bus" or kind == "host" then return kind end
    return failure[kind] and kind .. ":" .. failure[kind] or "none"
end

-- The `on` and `on_cause` rules of the nearest scope that has any.
function rules.in_force(reading, failure)
    for _, kind in ipairs(KINDS) do
        local label = label_of(kind, failure)
        local on, on_cause = rules.all(reading, label, "on"), rules.all(reading, label, "on_cause")
        if #on + #on_cause > 0 then
            saw("rules of", kind)
            return on, on_cause
        end
    end
    saw("rules of", "no scope")
    return {}, {}
end

-- A setting is the nearest scope's last word; false is a word, too.
function rules.setting(reading, failure, name, default, off)
    for _, kind in ipairs(KINDS) do
        local held = reading.scopes[label_of(kind, failure)]
        local value
        if held then value = held.settings[name] end
        if value ~= nil then
            saw("setting " .. name, value == false and "false" or kind)
            if value == false then return off end
            return value
        end
    end
    saw("setting " .. name, "not set")
    return default
end

-- What is declared unrecoverable, a list for each scope of a failure, and one with the built-in one, which doesn't hold
-- where a rule in force names its type literally.
function rules.unrecoverable(reading, failure, in_force)
    local lists = {}
    for _, kind in ipairs(KINDS) do
        local held = reading.scopes[label_of(kind, failure)]
        lists[#lists + 1] = held and held.unrecoverable
    end
    for _, rule in ipairs(in_force) do
        if rule.type == UNREADABLE then return lists end
    end
    lists[#lists + 1] = { { type = UNREADABLE, built_in = true } }
    return lists
end

-- Counts what led to the rule that decided.
function rules.count(reading, failure, rule)
    local label
    for _, kind in ipairs(KINDS) do
        label = label_of(kind, failure)
        if #rules.all(reading, label, "on") + #rules.all(reading, label, "on_cause") > 0 then break end
    end
    local held = reading.scopes[label]
    saw("decides", rule.word)
    saw("decides", "written in style " .. (rule.preset and "preset" or rule.style or 1))
    if rule.listed then saw("decides", "one of a list of types") end
    if rule.preset then saw("preset", rule.preset) end
    if rule.replaced then saw("decides", "replaced an earlier one") end
    if rule.replaced_included then saw("include", "replaced by an own rule") end
    if #held.includes > 0 then saw("include", "into a " .. held.scope.kind) end
    if rules.label(rule.scope) == label then return end
    saw("include", "of a " .. rule.scope.kind)
    saw("include", rule.word)
    local direct = false
    for _, included in ipairs(held.includes) do direct = direct or included == rules.label(rule.scope) end
    if not direct then saw("include", "through another") end
end

return rules
