-- generate.lua: random policies as trees (spec/support/naive.lua says what they look like), their text, and random
-- failures. `random` is one of `mulligan.testing`: random(n), random:pick(list), random:chance(p).

local chains = require "support.generate.chains"
local failures = require "support.generate.failures"
local limits = require "support.generate.limits"
local matchers = require "support.generate.matchers"
local overrides = require "support.generate.overrides"
local text = require "support.generate.text"
local words = require "support.generate.words"

local generate = { text = text, failure = failures.random }

-- Parents and scopes --------------------------------------------------------------------------------------------------

-- Each type's parent stands before it in the list, or is Error: no cycles, one parent each.
local function random_parents(random)
    local parents = {}
    for i, child in ipairs(words.TYPES) do
        if random:chance(0.6) then
            local parent = i > 1 and random:chance(0.8) and words.TYPES[random(i - 1)] or "Error"
            parents[#parents + 1] = { child = child, parent = parent }
        end
    end
    return parents
end

local SCOPES = { { kind = "host" }, { kind = "bus" } }
for _, name in ipairs(words.TRANSPORTS) do SCOPES[#SCOPES + 1] = { kind = "transport", name = name } end
for _, name in ipairs(words.CONSUMERS) do SCOPES[#SCOPES + 1] = { kind = "consumer", name = name } end

-- The scopes that a policy has statements for: all, or a few.
local function random_scopes(random)
    if random:chance(0.5) then return SCOPES end
    local scopes = {}
    for i = 1, random(3) do scopes[i] = random:pick(SCOPES) end
    return scopes
end

local function same(a, b) return a.kind == b.kind and a.name == b.name end

local function random_scope(random, scopes, bus_more)
    local scope = scopes == SCOPES and random:chance(bus_more) and SCOPES[2] or random:pick(scopes)
    return { kind = scope.kind, name = scope.name }
end

-- Statements ----------------------------------------------------------------------------------------------------------

local function random_types(random)
    local types = { words.any_type(random) }
    while random:chance(0.2) do
        local another = words.any_type(random)
        for _, name in ipairs(types) do
            if name == another then return types end
        end
        types[#types + 1] = another
    end
    return types
end

local function random_rule(random)
    return {
        word = random:chance(0.3) and "on_cause" or "on",
        types = random_types(random),
        matcher = random:chance(0.5) and matchers.random(random) or nil,
        chain = chains.random(random),
        style = random(6), -- how it is written down
    }
end

local SETTINGS = {
    dead_letter_queue = function(random) return random:pick { "dead", "dead-letters", false } end,
    max_age = function(random) return random:chance(0.8) and random:pick(words.AGES) or false end,
    deadline = function(random) return random:chance(0.8) and random:pick(words.AGES) or false end,
    max_attempts = function(random) return random:pick { 1, 2, 3, 5, 10, false } end,
    max_deliveries = function(random) return random:pick { 1, 3, 20, false } end,
    rate_limit = function(random) return random:chance(0.8) and limits.rate_limit(random) end,
    limit = function(random) return random:chance(0.8) and limits.limit(random) end,
    notify = function(random) return random:chance(0.8) end,
    override = function(random) return random:chance(0.9) and overrides.random(random) or false end,
}
local SETTING_NAMES = {
    "dead_letter_queue", "max_age", "max_age", "max_age", "deadline", "deadline", "max_attempts", "max_attempts",
    "max_deliveries", "rate_limit", "limit", "notify",
}

local function random_setting(random, name)
    name = name or random:pick(SETTING_NAMES)
    return { setting = name, value = SETTINGS[name](random) }
end

-- What would take everything is rare.
local function random_unrecoverable(random)
    local matcher = random:chance(0.85) and matchers.random(random) or nil
    local types
    repeat
        types = random_types(random)
    until matcher or not table.concat(types, " "):find("%f[%w]Error%f[%W]")
    return { unrecoverable = types, matcher = matcher }
end

local function random_preset(random)
    if random:chance(0.5) then return { preset = "mocha" } end
    local options = {}
    local function maybe(key, make)
        if random:chance(0.4) then options[key] = make() end
    end
    maybe("immediate", function() return random:pick { 0, 1, 2, 5 } end)
    maybe("delayed", function() return random:pick { 0, 1, 3 } end)
    maybe("increase", function() return random:pick { "10s", "1m", 0, "30d" } end)
    maybe("max_age", function() return random:pick(words.AGES) end)
    maybe("unrecoverable", function() return random:chance(0.8) and { random:pick(words.TYPES) } or {} end)
    return { preset = "nservicebus", options = next(options) and options or nil }
end

local function random_statement(random, scopes)
    local dice = random(100)
    local statement
    if dice <= 18 then
        statement = random_setting(random)
    elseif dice <= 23 then
        statement = random_setting(random, "override")
    elseif dice <= 29 then
        statement = random_unrecoverable(random)
    elseif dice <= 33 then
        statement = random_preset(random)
    else
        statement = random_rule(random)
    end
    statement.scope = random_scope(random, scopes, statement.setting and 0 or 0.4)
    return statement
end

-- A plain rule of `scope` for a type that `other` has one for, if it has any.
local function replacing(random, statements, scope, other)
    local plain = {}
    for _, s in ipairs(statements) do
        if s.types and not s.matcher and same(s.scope, other) then plain[#plain + 1] = s end
    end
    if #plain == 0 then return end
    local old, rule = random:pick(plain), random_rule(random)
    rule.scope, rule.word, rule.types, rule.matcher = scope, old.word, { random:pick(old.types) }, nil
    table.insert(statements, random(#statements + 1), rule)
end

-- Includes go from a scope to one that stands behind it in an order of the tree's own: no circles.
local function random_includes(random, statements)
    local order = table.move(SCOPES, 1, #SCOPES, 1, {})
    for i = #order, 2, -1 do
        local j = random(i)
        order[i], order[j] = order[j], order[i]
    end
    for _ = 1, random(6) do
        local i, j = random(#order), random(#order)
        if i < j then
            table.insert(statements, random(#statements + 1), { scope = order[i], include = order[j] })
            if random:chance(0.3) then replacing(random, statements, order[i], order[j]) end
        end
    end
end

-- Rules that redeliver without end -----------------------------------------------------------------------------------

local function has_unlimited(statement)
    for _, step in ipairs(statement.chain or {}) do
        if step.args and step.args.attempts == "unlimited" then return true end
    end
    return false
end

-- The scopes that have the rules of `scope`: itself, and what includes it, and what includes that.
local function having(statements, scope, found)
    found = found or {}
    for _, s in ipairs(found) do
        if same(s, scope) then return found end
    end
    found[#found + 1] = scope
    for _, statement in ipairs(statements) do
        if statement.include and same(statement.include, scope) then having(statements, statement.scope, found) end
    end
    return found
end

-- With a rule without end the bus, the host, or each scope that has the rule must set a max_age, or a deadline, and
-- nothing may switch that off.
local function bound(random, statements)
    local scopes = {}
    for _, statement in ipairs(statements) do
        if has_unlimited(statement) then having(statements, statement.scope, scopes) end
    end
    if #scopes == 0 then return end
    local word = random:pick { "max_age", "max_age", "deadline" }
    for _, statement in ipairs(statements) do
        if statement.setting == word and not statement.value then statement.value = random:pick(words.AGES) end
    end
    if random:chance(0.7) then scopes = { { kind = random:pick { "bus", "host" } } } end
    for _, scope in ipairs(scopes) do
        table.insert(statements, random(#statements + 1), {
            scope = scope, setting = word, value = random:pick(words.AGES),
        })
    end
end

function generate.policy(random)
    local tree = { parents = random_parents(random), statements = {} }
    local scopes = random_scopes(random)
    for i = 1, random(20) - 1 do tree.statements[i] = random_statement(random, scopes) end
    if random:chance(0.5) then random_includes(random, tree.statements) end
    bound(random, tree.statements)
    return tree
end

return generate
