-- schedule.lua: random schedules for one consumer, from a seed. A schedule ("plan") has what is published and when,
-- how long each call takes and how it ends, pauses, reloads and a stop, and the policy. It is the same for an engine
-- and for a fake one.

local schedule = {}

local TENANTS = { "a", "b" }
local TIMEOUT_MS = 700

-- ---- Policies ----------------------------------------------------------------------------------

local pers = { "key", "type", { header = "tenant" } }

local function rate_limit(random, per)
    local wait = 20 * random(10)
    local options = { wait = wait, per = per }
    if random:chance(0.25) then
        options.ratio, options.window, options.least = random:pick { 0.3, 0.5, 1 }, 100 * random(10), random(6)
    else
        options.after = random:pick { 1, 1, 2, 2, 3, 5 }
        options.within = random:chance(0.2) and 50 * random(10) or nil
    end
    options.max_wait = random:chance(0.4) and wait * random(6) or nil
    options.messages = random:chance(0.3) and random(math.min(options.after or options.least, 3)) or nil
    options.successes = random:chance(0.3) and random(3) or nil
    options.keep = random:chance(0.4) or nil
    options.ramp = random:chance(0.3) and 100 * random(8) or nil
    options.hint = random:chance(0.2) and "retry_after" or nil
    if random:chance(0.3) then
        options[random:pick { "only", "except" }] = random:pick { { "Flaky" }, { "Child" }, { "Flaky", "Other" } }
    end
    return options
end

local function rate_limits(random)
    local list = {}
    if random:chance(0.65) then
        list[1] = rate_limit(random)
    end
    if #list == 0 or random:chance(0.25) then
        list[#list + 1] = rate_limit(random, random:pick(pers))
    end
    return list
end

-- Rates whose intervals are whole milliseconds.
local function limits(random)
    local list = {}
    if random:chance(0.25) then
        list[1] = { rate = random:pick { "100/s", "20/s", "10/s", "600/m", "2400/m" },
            burst = random:chance(0.5) and random(5) or nil }
    end
    if random:chance(0.15) then
        list[#list + 1] = { rate = random:pick { "20/s", "5/s", "1/s", "300/m" }, per = random:pick(pers),
            burst = random:chance(0.5) and random(3) or nil }
    end
    return list
end

local function policy(random)
    local retries = random(4) - 1
    return {
        rate_limits = rate_limits(random), limits = limits(random),
        retries = retries, retry_ms = random:pick { 1, 10 * random(30) },
        redeliveries = retries == 0 and 1 + random(2) or random(3) - 1, redeliver_ms = 100 * random(10),
        max_attempts = random:chance(0.2) and random(6) or nil,
        deadline = random:chance(0.2) and 100 * random(20) or nil,
    }
end

local function copy(value)
    if type(value) ~= "table" then
        return value
    end
    local new = {}
    for key, inner in pairs(value) do
        new[key] = copy(inner)
    end
    return new
end
schedule.copy = copy

-- reloaded gives a policy after an edit: numbers of a `rate_limit`, another one, none, or another `max_attempts`.
local function reloaded(random, old, lossy)
    local new = copy(old)
    local edit = random(4)
    local first = new.rate_limits[1]
    if edit == 1 and first then
        first.wait = 20 * random(10)
        first.max_wait = first.max_wait and first.wait * random(4)
        first.successes = random(3)
        first.after = first.after and math.max(random(4), first.messages or 1)
    elseif edit == 2 and first then
        table.remove(new.rate_limits, 1)
    elseif edit == 3 then
        new.rate_limits = rate_limits(random)
    elseif not lossy then
        new.max_attempts = random(8)
    end
    return new
end

-- ---- Messages ----------------------------------------------------------------------------------

local function calls(random, bad)
    local list = {}
    for number = 1, random(6) do
        local outcome = "ok"
        if random:chance(bad) then
            outcome = random:chance(0.1) and random:pick { "Bad", "Park", "Dup", "slow" }
                or random:pick { "Flaky", "Flaky", "Flaky", "Child", "Other", "Error" }
        end
        list[number] = { ms = random:pick { 1, random(20), random(20), random(200) }, outcome = outcome,
            hint = random:chance(0.1) and random(400) / 1000 or nil }
    end
    return list
end

local function messages(random, span)
    local list, bad = {}, random:pick { 0.1, 0.4, 0.7, 0.95 }
    for number = 1, random:pick { 3, 10, 25 } do
        local tenant = random:chance(0.8) and random:pick(TENANTS) or nil
        list[number] = {
            at = random:chance(0.5) and 0 or random(span), id = ("m-%02d"):format(number),
            type = random:chance(0.7) and random:pick { "Order", "Refund" } or nil,
            key = random:chance(0.7) and random:pick { "k1", "k2", "k3" } or nil,
            headers = tenant and { tenant = tenant } or {},
            script = calls(random, bad),
        }
    end
    return list
end

-- While an outage lasts, calls that begin fail: all of them, or those of one tenant.
local function outages(random, span)
    local list = {}
    for number = 1, random(3) - 1 do
        local from = random(span)
        list[number] = { from = from, to = from + random(1500), tenant = random:chance(0.4) and random:pick(TENANTS)
            or nil, type = random:pick { "Flaky", "Child", "Other" } }
    end
    return list
end

local function actions(random, span, now_policy, lossy)
    local list = {}
    if random:chance(0.25) then
        local at = random(span)
        list[#list + 1] = { at = at, what = "pause" }
        list[#list + 1] = { at = at + random(800), what = "resume" }
    end
    if random:chance(0.25) then
        list[#list + 1] = { at = random(2 * span), what = "reload", policy = reloaded(random, now_policy, lossy) }
    end
    if random:chance(0.1) then
        list[#list + 1] = { at = random(2 * span), what = "stop" }
    end
    return list
end

-- plan gives a schedule; `random` is a generator of mulligan.testing.
function schedule.plan(random)
    local span = 500 * random(4)
    local own = policy(random)
    local plan = {
        concurrency = random:pick { 1, 1, 2, 4 }, timeout = TIMEOUT_MS, policy = own, horizon = 3600000,
        grace = 200 * random(3), messages = messages(random, span), outages = outages(random, span),
    }
    if random:chance(0.15) then -- claims are lost; what a process forgets by that isn't the model's matter
        plan.url, own.max_attempts, own.deadline = "memory:?claim_timeout=300ms", nil, nil
    end
    plan.steps = actions(random, span, own, plan.url)
    if not plan.url and random:chance(0.12) then
        plan.url = "sqlite:"
        for _ = 1, random(2) do
            table.insert(plan.steps, { at = random(2 * span), what = "restart" })
        end
    elseif plan.url then
        table.insert(plan.steps, { at = random(2 * span), what = "fault", times = 2 + random(2) })
    end
    for _, message in ipairs(plan.messages) do
        table.insert(plan.steps, { at = message.at, what = "publish", message = message })
    end
    for number, step in ipairs(plan.steps) do
        step.number = number
    end
    table.sort(plan.steps, function(a, b)
        return a.at ~= b.at and a.at < b.at or a.at == b.at and a.number < b.number
    end)
    return plan
end

-- call gives how a message's call of a number, begun at `now`, goes: milliseconds, outcome, hint.
function schedule.call(plan, message, number, now)
    local call = message.script[number] or { ms = 1, outcome = "ok" }
    for _, outage in ipairs(plan.outages or {}) do
        if now >= outage.from and now < outage.to
            and (not outage.tenant or outage.tenant == message.headers.tenant) then
            return call.ms, outage.type, call.hint
        end
    end
    if call.outcome == "slow" then
        return plan.timeout, "HandlerTimeoutError"
    end
    return call.ms, call.outcome, call.hint
end

-- ---- The policy as text ------------------------------------------------------------------------

local function value_text(name, value)
    if type(value) == "table" and value.header then
        return ("policy.header(%q)"):format(value.header)
    elseif type(value) == "table" then
        local names = {}
        for number, inner in ipairs(value) do
            names[number] = ("%q"):format(inner)
        end
        return "{ " .. table.concat(names, ", ") .. " }"
    elseif name == "wait" or name == "max_wait" or name == "within" or name == "window" or name == "ramp" then
        return ("%q"):format(value .. "ms")
    end
    return type(value) == "string" and ("%q"):format(value) or tostring(value)
end

local function options_text(options)
    local parts = {}
    for name, value in pairs(options) do
        parts[#parts + 1] = name .. " = " .. value_text(name, value)
    end
    table.sort(parts)
    return "{ " .. table.concat(parts, ", ") .. " }"
end

local function delays(count, ms)
    return "{ " .. (("%q, "):format(ms .. "ms")):rep(count) .. "}"
end

local function chain(given)
    local words = {}
    if given.retries > 0 then
        words[1] = "retry " .. delays(given.retries, given.retry_ms)
    end
    if given.redeliveries > 0 then
        words[#words + 1] = (#words > 0 and "then_" or "") .. "redeliver " .. delays(given.redeliveries,
            given.redeliver_ms)
    end
    if #words == 0 then
        words[1] = "retry(0)"
    end
    return table.concat(words, ":")
end

-- text gives a policy as the text of a policy.lua, for the consumer "C", and one "collector" of its dead letters.
function schedule.text(given)
    local lines = {
        'local policy = require "mulligan.policy"',
        'policy.errors { Child = "Flaky" }',
        'local collector = policy.consumer("collector")',
        'collector:dead_letter_queue("uncollected")',
        "collector:default():dead_letter()",
        'local consumer = policy.consumer("C")',
        'consumer:unrecoverable("Bad")',
        'consumer:on("Park"):dead_letter()',
        'consumer:on("Dup"):discard("a duplicate")',
        "consumer:default():" .. chain(given),
    }
    for _, options in ipairs(given.rate_limits) do
        lines[#lines + 1] = "consumer:rate_limit " .. options_text(options)
    end
    for _, options in ipairs(given.limits) do
        lines[#lines + 1] = "consumer:limit " .. options_text(options)
    end
    if given.max_attempts then
        lines[#lines + 1] = ("consumer:max_attempts(%d)"):format(given.max_attempts)
    end
    if given.deadline then
        lines[#lines + 1] = ('consumer:deadline("%dms")'):format(given.deadline)
    end
    return table.concat(lines, "\n")
end

return schedule
