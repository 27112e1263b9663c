-- failures.lua: random failures for a tree. Many are aimed at a rule of it: they have its type, or a cause that has,
-- its scope, and what its matcher asks for, as far as that is easily said.

local matcher = require "support.naive.matcher"
local words = require "support.generate.words"

local failures = {}

local FILLER = "Wrapped" -- a type that no policy names

-- Errors --------------------------------------------------------------------------------------------------------------

local function random_error(random)
    local err = { type = words.any_type(random) }
    if random:chance(0.4) then
        err.lineage = {}
        for i = 1, random(5) - 1 do err.lineage[i] = words.any_type(random) end
    end
    for _, name in ipairs(words.FIELD_NAMES) do
        if random:chance(0.4) then err[name] = random:pick(words.FIELDS[name]) end
    end
    if random:chance(0.05) then err.status = random:pick { { 503 }, words.NULL } end
    if random:chance(0.1) then err.tags = random:pick(words.TAGS) end
    if random:chance(0.1) then err.detail = random:pick(words.DETAILS) end
    return err
end

-- An error whose causes go `depth` deep: most say nothing to any rule; some go on behind the one at `depth`.
local function wrap(random, err, inner, depth)
    local outer = err
    for _ = 1, depth - 1 do
        outer.cause = random:chance(0.02) and random_error(random) or { type = FILLER }
        outer = outer.cause
    end
    outer.cause = inner
    if random:chance(0.2) then
        for _ = 1, random(3) do
            inner.cause = random_error(random)
            inner = inner.cause
        end
    end
end

-- Aiming --------------------------------------------------------------------------------------------------------------

-- 503 as 503.0, and the other way round.
local function other_kind(value)
    if math.type(value) == "float" then return math.tointeger(value) or value end
    return math.type(value) == "integer" and math.tointeger(value + 0.0) == value and value + 0.0 or value
end

-- A text that the pattern finds something in.
local function found_by(pattern, random)
    if pattern == matcher.BOMB and random:chance(0.5) then return words.LONG end
    local texts, start = words.FIELDS.message, random(#words.FIELDS.message)
    for i = 1, #texts do
        local text = texts[(start + i) % #texts + 1]
        if text ~= words.LONG and text:find(pattern) then return text end -- Lua's own find would take long on that
    end
end

local some = {
    literal = function(v, random) return random:chance(0.3) and other_kind(v.value) or v.value end,
    list = function(v, random) return random:pick(v.values) end,
    between = function(v, random) return random:pick { v.low, v.high } end,
    at_least = function(v) return v.low end,
    at_most = function(v) return v.high end,
    contains = function(v) return v.text end,
    matches = function(v, random) return found_by(v.text, random) end,
}

-- What matches the value, or nil where that isn't easily said; `is_not` gets what its inner one matches.
local function fitting(random, v)
    if v.is == "is_not" then return fitting(random, v.value) end
    return some[v.is] and some[v.is](v, random)
end

local function fit_tests(random, tests, holder, fits)
    for _, test in ipairs(tests or {}) do
        local value = fitting(random, test[2])
        if value ~= nil and fits(test[1], value) then holder[test[1]] = value end
    end
end

local function is_text(name, value)
    return type(value) == "string" and #value > 0 or (name ~= "message" and name ~= "stack" and name ~= "type")
end

local function fits_ctx(name, value)
    if name == "consumer" or name == "transport" then return type(value) == "string" and value ~= "" end
    local least = (name == "redeliveries" or name == "age_ms") and 0 or 1
    return math.type(value) == "integer" and value >= least
end

local function fits_message(name, value)
    if name == "size" then return math.type(value) == "integer" and value >= 0 end
    return type(value) == "string"
end

local function fits_header(_, value) return type(value) == "string" end

local function aim_matcher(random, m, failure, err)
    if m.form == "fields" then
        fit_tests(random, m.tests, err, is_text)
    elseif m.form == "ctx" then
        fit_tests(random, m.tests, failure, fits_ctx)
        if m.message or m.headers then failure.message = failure.message or {} end
        fit_tests(random, m.message, failure.message, fits_message)
        if m.headers then
            failure.message.headers = failure.message.headers or {}
            fit_tests(random, m.headers, failure.message.headers, fits_header)
        end
    end
    for _, part in ipairs(m.parts or {}) do
        if random:chance(m.form == "all" and 0.95 or 0.6) then aim_matcher(random, part, failure, err) end
    end
end

-- A scope that has the statement: its own, or one that includes that.
local function a_scope_with(random, tree, scope)
    for _, s in ipairs(tree.statements) do
        if s.include and s.include.kind == scope.kind and s.include.name == scope.name and random:chance(0.5) then
            return a_scope_with(random, tree, s.scope)
        end
    end
    return scope
end

local function aim(random, failure, tree, statement)
    local scope = a_scope_with(random, tree, statement.scope)
    if scope.name and random:chance(0.8) then failure[scope.kind] = scope.name end
    if not scope.name and random:chance(0.6) then failure.consumer, failure.transport = nil, nil end
    local err = failure.error
    if statement.word == "on_cause" then
        local inner = random_error(random)
        wrap(random, err, inner, random:chance(0.35) and 1 or random(20))
        err = inner
        if random:chance(0.5) then failure.error.type = FILLER end
    end
    local types = statement.types or statement.unrecoverable
    if random:chance(0.9) then
        err.type = random:pick(types)
        err.lineage = random:chance(0.2) and err.lineage or nil
    end
    if statement.matcher then aim_matcher(random, statement.matcher, failure, err) end
end

-- Failures ------------------------------------------------------------------------------------------------------------

local function random_message(random, number)
    local headers = {}
    for _, name in ipairs(words.HEADER_NAMES) do
        if random:chance(0.4) then headers[name] = random:pick(words.HEADERS[name]) end
    end
    return {
        id = random:chance(0.9) and (random:chance(0.8) and "m-" .. number or random:pick(words.MESSAGE.id)) or nil,
        type = random:chance(0.5) and random:pick(words.MESSAGE.type) or nil,
        key = random:chance(0.5) and random:pick(words.MESSAGE.key) or nil,
        size = random:chance(0.5) and random:pick(words.MESSAGE.size) or nil,
        headers = next(headers) and headers or nil,
    }
end

-- A failure; `number` tells its message from others.
function failures.random(random, number, tree)
    local failure = { error = random_error(random) }
    local function maybe(key, chance, make)
        if random:chance(chance) then failure[key] = make() end
    end
    maybe("consumer", 0.6, function() return random:pick { "PaymentHandler", "Mail", "Nobody" } end)
    maybe("transport", 0.6, function() return random:pick { "orders", "mail", "nowhere" } end)
    maybe("attempt", 0.8, function() return random:pick(words.COUNTERS) end)
    maybe("redeliveries", 0.8, function() return random:pick(words.COUNTERS) - 1 end)
    maybe("calls", 0.3, function() return random:pick(words.COUNTERS) end)
    maybe("deliveries", 0.3, function() return random:pick(words.DELIVERIES) end)
    maybe("age_ms", 0.5, function() return random:pick(words.MOMENTS) end)
    maybe("message", 0.8, function() return random_message(random, number) end)
    maybe("can", 0.2, function() return { retry = random:chance(0.5), delay = random:chance(0.5) } end)
    if random:chance(0.2) then wrap(random, failure.error, random_error(random), random(20)) end
    local targets = {}
    for _, statement in ipairs(tree.statements) do
        if statement.types or (statement.unrecoverable and random:chance(0.5)) then
            targets[#targets + 1] = statement
        end
    end
    if #targets > 0 and random:chance(0.85) then aim(random, failure, tree, random:pick(targets)) end
    return failure
end

return failures
