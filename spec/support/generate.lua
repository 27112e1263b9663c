-- generate.lua: random policies as trees (spec/support/naive.lua says what they look like), their text, and random
-- failures. `random` is one of `mulligan.testing`: random(n), random:pick(list), random:chance(p).

local generate = {}

-- Names and values, few enough for them to meet ----------------------------------------------------------------------

local TYPES = {
    "DatabaseError", "DeadlockError", "HandlerTimeoutError", "MessageDeserializationError", "NetworkError",
    "System.TimeoutException", "TlsError", "HandlerCrashError", "ÜberError",
}
local STRANGERS = { "Unheard", "Of.Elsewhere" }
local CONSUMERS, TRANSPORTS = { "PaymentHandler", "Mail" }, { "orders", "mail" }
local QUEUES, NOTES = { "parked", "error", "Später" }, { "already processed", "" }
local FIELDS = {
    status = { 429, 503, 503.0, 503.5, "503" },
    code = { "40P01", "", 1, true },
    transient = { true, false, "true" },
    message = { "deadlock detected", "" },
    stack = { "" },
}
local FIELD_NAMES = { "status", "code", "transient", "message", "stack" }
local AGES = { "1m", "90s", "1h30m", 0, "1d" }
local MOMENTS = { 0, 1, 59999, 60000, 60001, 90000, 90001, 5400001, math.maxinteger } -- around AGES
local COUNTERS = { 1, 1, 1, 2, 2, 3, 4, 5, 6, 10, 20, 21, 1000, 1001, math.maxinteger }

local function any_type(random)
    if random:chance(0.1) then return random:pick(STRANGERS) end
    if random:chance(0.1) then return "Error" end
    return random:pick(TYPES)
end

-- Trees ---------------------------------------------------------------------------------------------------------------

-- Each type's parent stands before it in TYPES, or is Error: no cycles, one parent each.
local function random_parents(random)
    local parents = {}
    for i, child in ipairs(TYPES) do
        if random:chance(0.6) then
            local parent = i > 1 and random:chance(0.8) and TYPES[random(i - 1)] or "Error"
            parents[#parents + 1] = { child = child, parent = parent }
        end
    end
    return parents
end

local function random_scope(random)
    local kind = random:pick { "bus", "bus", "bus", "host", "transport", "consumer" }
    local names = { transport = TRANSPORTS, consumer = CONSUMERS }
    return { kind = kind, name = names[kind] and random:pick(names[kind]) }
end

local function random_fields(random)
    local fields = {}
    for _, name in ipairs(FIELD_NAMES) do
        if random:chance(0.25) then fields[#fields + 1] = { name, random:pick(FIELDS[name]) } end
    end
    if #fields == 0 then fields[1] = { "status", random:pick(FIELDS.status) } end
    return { fields = fields }
end

local FUNCTIONS = {
    function() return { test = "always" } end,
    function() return { test = "never" } end,
    function() return { test = "zero" } end,
    function() return { test = "raises" } end,
    function(random)
        local name = random:pick { "status", "code", "transient", "message" }
        return { test = "equals", name = name, value = random:pick(FIELDS[name]) }
    end,
    function(random) return { test = "at_least", name = random:pick { "status", "code" }, value = 500 } end,
    function(random)
        local name = random:pick { "attempt", "redeliveries", "calls", "deliveries", "age_ms" }
        return { test = "counter", name = name, value = random(6) }
    end,
    function(random) return { test = "is", type = any_type(random) } end,
    function() return { test = "message_type", value = "OrderPlaced" } end,
    function(random) return { test = "consumer", value = random:pick(CONSUMERS) } end,
}

local function random_matcher(random)
    if random:chance(0.5) then return nil end
    return random:chance(0.6) and random_fields(random) or random:pick(FUNCTIONS)(random)
end

local function random_delay(random)
    return random:pick {
        0, "1ms", "7ms", "200ms", "1.5s", "30s", "5m", "1h30m", "2d", "365d", { seconds = 3 }, { seconds = 0.25 },
    }
end

local function random_list(random)
    local args = { delays = {} }
    for i = 1, random(4) do args.delays[i] = random_delay(random) end
    if random:chance(0.3) then args.jitter = random:pick { 0, 0.1, 1 } end
    if random:chance(0.3) then args.max_delay = random:pick { "1s", "20m" } end
    return args
end

local function random_arguments(random, word)
    if random:chance(0.25) then return {} end
    if random:chance(0.25) then return random_list(random) end
    local args = {}
    local function maybe(key, chance, make)
        if random:chance(chance) then args[key] = make() end
    end
    maybe("attempts", 0.7, function() return random:pick { 0, 1, 2, 3, 4, 5, 1000 } end)
    maybe("delay", 0.5, function() return random_delay(random) end)
    maybe("backoff", 0.4, function() return random:pick { "constant", "linear", "exponential" } end)
    if args.backoff == "exponential" or (word == "retry" and not args.backoff) then
        maybe("factor", 0.6, function() return random:pick { 1, 1.1, 1.1, 1.37, 1.5, 2, 10, 1e300 } end)
    end
    maybe("max_delay", 0.3, function() return random:pick { 0, "100ms", "10s", "2h", "365d" } end)
    maybe("jitter", 0.4, function() return random:pick { 0, 0.1, 0.25, 0.29, 0.5, 1 } end)
    return args
end

local function random_end(random, prefix)
    if random:chance(0.5) then
        return { word = prefix .. "dead_letter", queue = random:chance(0.5) and random:pick(QUEUES) or nil }
    end
    return { word = prefix .. "discard", note = random:chance(0.5) and random:pick(NOTES) or nil }
end

local function random_chain(random)
    if random:chance(0.2) then return { random_end(random, "") } end
    local chain = {}
    if random:chance(0.7) then chain[1] = { word = "retry", args = random_arguments(random, "retry") } end
    if #chain == 0 or random:chance(0.6) then
        local word = #chain == 0 and "redeliver" or "then_redeliver"
        chain[#chain + 1] = { word = word, args = random_arguments(random, "redeliver") }
    end
    if random:chance(0.5) then chain[#chain + 1] = random_end(random, "then_") end
    return chain
end

local SETTINGS = {
    dead_letter_queue = function(random) return random:pick { "dead", "dead-letters", false } end,
    max_age = function(random) return random:chance(0.8) and random:pick(AGES) or false end,
    max_attempts = function(random) return random:pick { 1, 2, 3, 5, 10, false } end,
    max_deliveries = function(random) return random:pick { 1, 3, 20, false } end,
}
local SETTING_NAMES = { "dead_letter_queue", "max_age", "max_attempts", "max_deliveries" }

local function random_statement(random)
    local scope = random_scope(random)
    if random:chance(0.15) then
        local name = random:pick(SETTING_NAMES)
        return { scope = scope, setting = name, value = SETTINGS[name](random) }
    end
    return {
        scope = scope,
        type = any_type(random),
        matcher = random_matcher(random),
        chain = random_chain(random),
        style = random(4), -- how it is written down
    }
end

function generate.policy(random)
    local tree = { parents = random_parents(random), statements = {} }
    for i = 1, random(16) - 1 do tree.statements[i] = random_statement(random) end
    return tree
end

-- Text ----------------------------------------------------------------------------------------------------------------

local function literal(value)
    if type(value) == "table" then return ("policy.seconds(%s)"):format(value.seconds) end
    if type(value) == "string" then return ("%q"):format(value) end
    return tostring(value)
end

local FUNCTION_TEXT = {
    always = "return true",
    never = "local unused = err.type",
    zero = "return 0",
    raises = "return err.nothing.more",
    equals = "return err[%s] == %s",
    at_least = "return err[%s] >= %s",
    counter = "return ctx[%s] >= %s",
    is = "return err:is(%s)",
    message_type = "return ctx.message.type == %s",
    consumer = "return ctx.consumer == %s",
}

local function matcher_text(matcher)
    if matcher.test then
        local parts = {}
        if matcher.name then parts[#parts + 1] = literal(matcher.name) end
        if matcher.type or matcher.value ~= nil then parts[#parts + 1] = literal(matcher.type or matcher.value) end
        local body = FUNCTION_TEXT[matcher.test]:format(table.unpack(parts))
        return ("function(err, ctx) %s end"):format(body)
    end
    local parts = {}
    for _, f in ipairs(matcher.fields) do parts[#parts + 1] = f[1] .. " = " .. literal(f[2]) end
    return "{ " .. table.concat(parts, ", ") .. " }"
end

local NAMED = { "attempts", "delay", "backoff", "factor", "max_delay", "jitter" }

local function named_text(args)
    local parts = {}
    for _, delay in ipairs(args.delays or {}) do parts[#parts + 1] = literal(delay) end
    for _, name in ipairs(NAMED) do
        if args[name] ~= nil then parts[#parts + 1] = name .. " = " .. literal(args[name]) end
    end
    return #parts > 0 and " { " .. table.concat(parts, ", ") .. " }" or "()"
end

-- Positional arguments say what comes before them, too, and nothing else.
local function positional_text(args)
    if args.delays or args.factor or args.max_delay or args.jitter then return nil end
    if (args.delay and not args.attempts) or (args.backoff and not args.delay) then return nil end
    local parts = {}
    for i = 1, 3 do
        local value = args[NAMED[i]]
        if value ~= nil then parts[i] = literal(value) end
    end
    return "(" .. table.concat(parts, ", ") .. ")"
end

local function step_text(step, style)
    local arguments
    if step.args then
        arguments = style % 2 == 0 and positional_text(step.args) or named_text(step.args)
    else
        local word = step.queue or step.note
        arguments = "(" .. (word and literal(word) or "") .. ")"
    end
    return ":" .. step.word .. arguments
end

local function on_text(statement)
    if statement.type == "Error" and not statement.matcher and statement.style > 1 then return ":default()" end
    local matcher = statement.matcher and ", " .. matcher_text(statement.matcher) or ""
    return (":on(%q%s)"):format(statement.type, matcher)
end

local function scope_text(scope)
    return ("policy.%s(%s)"):format(scope.kind, scope.name and literal(scope.name) or "")
end

-- Styles of a rule: on one line (1, 2), a line for each step (3), or kept in a variable and gone on with at the end of
-- the file (4). The line of a rule is that of its `on`.
local function write_rule(out, statement, later)
    local start = scope_text(statement.scope)
    if statement.style == 3 then
        out(start)
        statement.line = out("    " .. on_text(statement))
        for _, step in ipairs(statement.chain) do out("    " .. step_text(step, 1)) end
        return
    end
    local text = start .. on_text(statement)
    if statement.style ~= 4 then
        for _, step in ipairs(statement.chain) do text = text .. step_text(step, statement.style) end
        statement.line = out(text)
        return
    end
    later.kept = (later.kept or 0) + 1
    local name = "kept" .. later.kept
    statement.line = out("local " .. name .. " = " .. text .. step_text(statement.chain[1], 4))
    for i = 2, #statement.chain do
        later[#later + 1] = name .. " = " .. name .. step_text(statement.chain[i], 4)
    end
end

local function write_parents(out, parents)
    for first = 1, #parents, 3 do
        out("policy.errors {")
        for i = first, math.min(first + 2, #parents) do
            out(("    [%q] = %q,"):format(parents[i].child, parents[i].parent))
        end
        out("}")
    end
end

-- The text of a tree; sets the line of each rule in it.
function generate.text(tree)
    local lines, later = {}, {}
    local function out(line)
        lines[#lines + 1] = line
        return #lines
    end
    out('local policy = require "mulligan.policy"')
    write_parents(out, tree.parents)
    for _, statement in ipairs(tree.statements) do
        if statement.setting then
            local text = scope_text(statement.scope) .. ":" .. statement.setting
            out(text .. "(" .. literal(statement.value) .. ")")
        else
            write_rule(out, statement, later)
        end
    end
    for _, line in ipairs(later) do out(line) end
    return table.concat(lines, "\n") .. "\n"
end

-- Failures ------------------------------------------------------------------------------------------------------------

local function random_error(random)
    local err = { type = any_type(random) }
    if random:chance(0.4) then
        err.lineage = {}
        for i = 1, random(5) - 1 do err.lineage[i] = any_type(random) end
    end
    for _, name in ipairs(FIELD_NAMES) do
        if random:chance(0.5) then err[name] = random:pick(FIELDS[name]) end
    end
    if type(err.message) ~= "string" then err.message = nil end
    if random:chance(0.1) then err.status = { 503 } end
    if random:chance(0.1) then err.cause = { type = any_type(random) } end
    return err
end

local function random_message(random, number)
    return {
        id = random:chance(0.9) and "m-" .. number or nil,
        type = random:chance(0.5) and random:pick { "OrderPlaced", "OrderPaid" } or nil,
        headers = random:chance(0.3) and { tenant = "acme" } or nil,
    }
end

function generate.failure(random, number)
    local failure = { error = random_error(random) }
    local function maybe(key, chance, make)
        if random:chance(chance) then failure[key] = make() end
    end
    maybe("consumer", 0.6, function() return random:pick { "PaymentHandler", "Mail", "Nobody" } end)
    maybe("transport", 0.6, function() return random:pick { "orders", "mail", "nowhere" } end)
    maybe("attempt", 0.8, function() return random:pick(COUNTERS) end)
    maybe("redeliveries", 0.8, function() return random:pick(COUNTERS) - 1 end)
    maybe("calls", 0.3, function() return random:pick(COUNTERS) end)
    maybe("deliveries", 0.3, function() return random:pick(COUNTERS) end)
    maybe("age_ms", 0.5, function() return random:pick(MOMENTS) end)
    maybe("message", 0.8, function() return random_message(random, number) end)
    maybe("can", 0.3, function() return { retry = random:chance(0.5), delay = random:chance(0.5) } end)
    return failure
end

return generate
