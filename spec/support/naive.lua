-- naive.lua: what a policy says of a failure, read straight from the language's page, slowly and without any of the
-- product's code. The policy comes as a tree (spec/support/generate.lua makes them):
--
--   { parents = { { child =, parent = }, … },
--     statements = { statement, … } }                 in the order in which they run
--
--   a rule:     { scope =, line =, type =, matcher =, chain = { { word =, args… }, … } }
--   a setting:  { scope =, setting = "max_age", value = … }
--   a scope:    { kind = "consumer" | "transport" | "bus" | "host", name = … }
--   a matcher:  nil, { fields = { { name, value }, … } }, or { test = …, … } for a function, see `tests`
--   arguments:  { attempts =, delay =, backoff =, factor =, max_delay =, jitter = }, or { delays = { … }, max_delay =,
--               jitter = }; all as written, each may be missing. A delay is 0, "1m30s" or { seconds = 1.5 }.
--
-- The failure is one of `decide`'s objects. The answer has the keys of a verdict, with `delay = { low, high }` instead
-- of delay_ms, and `failed`: the lines of the rules whose matchers raised.

local naive = {}

-- Durations -----------------------------------------------------------------------------------------------------------

local UNITS = { ms = 1, s = 1000, m = 60 * 1000, h = 3600 * 1000, d = 24 * 3600 * 1000 }

function naive.milliseconds(delay)
    if delay == 0 then return 0 end
    if type(delay) == "table" then return math.floor(delay.seconds * 1000 + 0.5) end
    local sum = 0
    for number, unit in delay:gmatch("([%d.]+)(%a+)") do
        sum = sum + tonumber(number) * UNITS[unit]
    end
    return math.floor(sum + 0.5)
end

-- A product of doubles may miss the whole number that it means by a hair.
local function hair(x) return math.min(x * 1e-9, 1e-3) end

local function rounded_up(x)
    local nearest = math.floor(x + 0.5)
    return math.abs(x - nearest) <= hair(x) and nearest or math.ceil(x)
end

-- Lineages ------------------------------------------------------------------------------------------------------------

local function parent_of(tree, name)
    for _, p in ipairs(tree.parents) do
        if p.child == name then return p.parent end
    end
    return "Error"
end

-- The type, then the sent lineage, both without Error and repeats, then the declared parents of the last of these;
-- Error comes last.
function naive.lineage(tree, err)
    local names, seen = {}, { Error = true }
    local function add(name)
        if not seen[name] then
            seen[name] = true
            names[#names + 1] = name
        end
    end
    add(err.type)
    for _, name in ipairs(err.lineage or {}) do add(name) end
    local last = names[#names]
    while last and last ~= "Error" do
        add(last)
        last = parent_of(tree, last)
    end
    names[#names + 1] = "Error"
    return names
end

-- Scopes --------------------------------------------------------------------------------------------------------------

local KINDS = { "consumer", "transport", "bus", "host" }

local function is_in(statement, kind, failure)
    local scope = statement.scope
    return scope.kind == kind and (kind == "bus" or kind == "host" or scope.name == failure[kind])
end

-- The rules of a scope: a rule without a matcher replaces an earlier one of its type without one.
local function rules_of(tree, kind, failure)
    local rules = {}
    for _, statement in ipairs(tree.statements) do
        if statement.chain and is_in(statement, kind, failure) then
            for i, earlier in ipairs(rules) do
                if earlier.type == statement.type and not earlier.matcher and not statement.matcher then
                    table.remove(rules, i)
                    break
                end
            end
            rules[#rules + 1] = statement
        end
    end
    return rules
end

function naive.rules_in_force(tree, failure)
    for _, kind in ipairs(KINDS) do
        local rules = rules_of(tree, kind, failure)
        if #rules > 0 then return rules end
    end
    return {}
end

-- A setting is the nearest scope's last word; false is a word, too.
function naive.setting(tree, failure, name, default, off)
    for _, kind in ipairs(KINDS) do
        local value
        for _, statement in ipairs(tree.statements) do
            if statement.setting == name and is_in(statement, kind, failure) then value = statement.value end
        end
        if value == false then return off end
        if value ~= nil then return value end
    end
    return default
end

-- Matchers ------------------------------------------------------------------------------------------------------------

local function field(err, name)
    if name == "message" or name == "stack" then return err[name] or "" end
    if name == "lineage" or name == "cause" or type(err[name]) == "table" then return nil end
    return err[name]
end

local function counter(failure, name)
    local defaults = { attempt = 1, redeliveries = 0, deliveries = 1, age_ms = 0 }
    if name == "calls" then
        return failure.calls or counter(failure, "attempt") + 0.0 + counter(failure, "redeliveries")
    end
    return failure[name] or defaults[name]
end

-- What each kind of function matcher gives; generate.lua writes the same as Lua text.
local tests = {
    always = function() return true end,
    never = function() return nil end,
    zero = function() return 0 end,
    raises = function() error("raised") end,
    equals = function(m, failure) return field(failure.error, m.name) == m.value end,
    at_least = function(m, failure) return field(failure.error, m.name) >= m.value end,
    counter = function(m, failure) return counter(failure, m.name) >= m.value end,
    is = function(m, failure, tree)
        for _, name in ipairs(naive.lineage(tree, failure.error)) do
            if name == m.type then return true end
        end
        return false
    end,
    message_type = function(m, failure) return failure.message and failure.message.type == m.value end,
    consumer = function(m, failure) return failure.consumer == m.value end,
}
naive.tests = tests

local function passes(tree, rule, failure, failed)
    local matcher = rule.matcher
    if not matcher then return true end
    if matcher.fields then
        for _, f in ipairs(matcher.fields) do
            if field(failure.error, f[1]) ~= f[2] then return false end
        end
        return true
    end
    local good, answer = pcall(tests[matcher.test], matcher, failure, tree)
    if not good then failed[#failed + 1] = rule.line end
    return good and answer ~= nil and answer ~= false
end

local function deciding_rule(tree, rules, failure, failed)
    for _, name in ipairs(naive.lineage(tree, failure.error)) do
        for _, rule in ipairs(rules) do
            if rule.type == name and passes(tree, rule, failure, failed) then return rule end
        end
    end
end

-- Chains --------------------------------------------------------------------------------------------------------------

local DEFAULTS = {
    retry = { delay = "200ms", backoff = "exponential", max_delay = "30s" },
    redeliver = { delay = "5m", backoff = "linear", max_delay = "1h" },
}

-- A tier: its attempts, and what its delays are made of; nil where the chain doesn't have it.
local function tier_of(chain, name)
    local step
    for _, s in ipairs(chain) do
        if s.word == name or s.word == "then_" .. name then step = s end
    end
    if not step then return nil end
    local a = step.args or {}
    if a.delays then
        return { attempts = #a.delays, delays = a.delays, jitter = a.jitter or 0, max_delay = a.max_delay }
    end
    local default = DEFAULTS[name]
    local tier = {
        attempts = a.attempts or 3,
        delay = a.delay or default.delay,
        backoff = a.backoff or default.backoff,
        factor = a.factor or 2,
        max_delay = a.max_delay or default.max_delay,
        jitter = a.jitter or 0.25,
    }
    if name == "redeliver" and not (a.attempts or a.delay or a.backoff) then
        tier.delays = { "5m", "15m", "30m" }
    end
    return tier
end

local function computed(tier, step)
    if tier.delays then return naive.milliseconds(tier.delays[step]) end
    local base = naive.milliseconds(tier.delay)
    if base == 0 then return 0 end
    if tier.backoff == "constant" then return base end
    if tier.backoff == "linear" then return base * 1.0 * step end
    return base * tier.factor ^ (step - 1)
end

-- The range that the delay lies in: the cap comes before the jitter, and nothing exceeds it.
function naive.delay(tier, step, no_jitter)
    local cap = tier.max_delay and naive.milliseconds(tier.max_delay) or math.huge
    local d = computed(tier, step)
    d = d > cap and cap or rounded_up(d)
    local jitter = no_jitter and 0 or tier.jitter
    local low, high = d * (1 - jitter), math.min(d * (1 + jitter), cap)
    return { low - hair(low), high + hair(high) }
end

-- Ends ----------------------------------------------------------------------------------------------------------------

local function dead_letter(reason, queue) return { action = "dead_letter", reason = reason, queue = queue } end

local function chain_end(rule, reason, default_queue)
    local last = rule.chain[#rule.chain]
    if last.word == "discard" or last.word == "then_discard" then
        return { action = "discard", reason = reason, note = last.note }
    end
    local names_queue = last.word == "dead_letter" or last.word == "then_dead_letter"
    return dead_letter(reason, names_queue and last.queue or default_queue)
end

-- The rule's own word, before limits: what is due, or how the chain ends.
local function follow(rule, failure)
    local retry, redeliver = tier_of(rule.chain, "retry"), tier_of(rule.chain, "redeliver")
    local attempt, redeliveries = counter(failure, "attempt"), counter(failure, "redeliveries")
    if retry and attempt <= retry.attempts then return "retry", retry, attempt end
    if redeliver and redeliveries < redeliver.attempts then return "redeliver", redeliver, redeliveries + 1 end
    return nil, (retry or redeliver) and "exhausted" or "rule"
end

local function limit(tree, failure, due)
    local max_attempts = naive.setting(tree, failure, "max_attempts", math.huge, math.huge)
    if counter(failure, "calls") >= max_attempts then return "max_attempts" end
    local max_age = naive.setting(tree, failure, "max_age")
    if due == "redeliver" and max_age and counter(failure, "age_ms") > naive.milliseconds(max_age) then
        return "max_age"
    end
end

local function fallback(failure, due)
    local can = failure.can or {}
    if due == "retry" and can.retry == false then return "no_retry" end
    if due == "redeliver" and can.delay == false then return "no_delay" end
end

local function by_rule(tree, rule, failure, default_queue, options)
    local due, tier, step = follow(rule, failure)
    if not due then return chain_end(rule, tier, default_queue) end
    local reached = limit(tree, failure, due)
    if reached then return chain_end(rule, reached, default_queue) end
    local unable = fallback(failure, due)
    if unable then
        local verdict = dead_letter("fallback", default_queue)
        verdict.fallback = unable
        return verdict
    end
    local delay = naive.delay(tier, step, options.no_jitter)
    return { action = due, tier = due, step = step, of = tier.attempts, delay = delay }
end

-- The decision --------------------------------------------------------------------------------------------------------

local UNREADABLE = "MessageDeserializationError"

local function unrecoverable(tree, rules, err)
    for _, rule in ipairs(rules) do
        if rule.type == UNREADABLE then return false end
    end
    for _, name in ipairs(naive.lineage(tree, err)) do
        if name == UNREADABLE then return true end
    end
    return false
end

function naive.decide(tree, failure, options)
    local queue = naive.setting(tree, failure, "dead_letter_queue", "error", "error")
    local rules = naive.rules_in_force(tree, failure)
    local failed = {}
    local verdict, rule
    if counter(failure, "deliveries") > naive.setting(tree, failure, "max_deliveries", 20, math.huge) then
        verdict = dead_letter("max_deliveries", queue)
    elseif unrecoverable(tree, rules, failure.error) then
        verdict = dead_letter("unrecoverable", queue)
    else
        rule = deciding_rule(tree, rules, failure, failed)
        verdict = rule and by_rule(tree, rule, failure, queue, options or {}) or dead_letter("no_rule", queue)
    end
    if rule then
        local scope = rule.scope
        local label = scope.name and scope.kind .. ":" .. scope.name or scope.kind
        verdict.rule = { file = "policy.lua", line = rule.line, scope = label, type = rule.type }
    end
    verdict.delay = verdict.delay or { 0, 0 }
    verdict.failed = failed
    return verdict
end

return naive
