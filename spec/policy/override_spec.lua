-- What an override is shown, and what becomes of what it returns.
local loading = require "support.loading"

local function statements(text)
    return loading.statements(text)
end

-- A policy with an override on the bus, of which failures are told in `told`.
local function with_override(body, more)
    local told = { log = {} }
    local policy = loading.good(statements(([[
policy.errors { Child = "Parent" }
bus:on("Parent"):retry(3, "200ms", "constant"):then_redeliver { "1m", "2m" }
bus:on("Plain"):redeliver { attempts = 4, delay = "1m", backoff = "exponential", jitter = "full" }
bus:on("Gone"):discard("stale")
bus:unrecoverable { "Bad", "Worse" }
%s
bus:override(function(failure, verdict, config)
%s
end)]]):format(more or "", body)), {
        event = function(event)
            told[#told + 1] = event.text
            told.verdict = event.verdict
        end,
        log = function(_, line) told.log[#told.log + 1] = line end,
    })
    return policy, told
end

local failure = {
    error = {
        type = "Child", message = "boom", lineage = { "Sent" }, code = 7, list = { 1, { 2 } },
        cause = { type = "Cause", cause = { type = "Root" } },
    },
    consumer = "Mail", transport = "orders", attempt = 2, redeliveries = 1, calls = 6, deliveries = 3, age_ms = 500,
    message = { id = "m-1", type = "Order", key = "k", size = 300, headers = { tenant = "acme" } },
}

local function decide(policy, given, options)
    return assert(policy:decide(type(given) == "string" and { error = { type = given } } or given, options))
end

describe("an override is shown", function()
    -- `asserts` must hold; what fails is told.
    local function holds(asserts, given, options)
        local policy, told = with_override(asserts .. '\nreturn policy.discard("seen")',
            'policy.transport("orders"):max_age("1d")\npolicy.consumer("Mail"):dead_letter_queue("mail-dead")')
        local verdict = decide(policy, given or failure, options)
        assert.same({}, { table.unpack(told) })
        assert.equal("seen", verdict.note)
        assert.equal("override", verdict.reason)
        policy:close()
    end

    it("the failure, with the error in it", function()
        holds [[
local err = failure.error
assert(err.type == "Child" and err.message == "boom" and err.stack == "" and err.code == 7 and err.nothing == nil)
assert(err:is("Sent") and err:is("Error") and not err:is("Parent"))
assert(err.cause:is("Cause") and err.cause.cause.type == "Root")
assert(#err.list == 2 and err.list[2][1] == 2 and err == failure.error and err.list == err.list)
assert(failure.attempt == 2 and failure.redeliveries == 1 and failure.calls == 6 and failure.deliveries == 3)
assert(failure.age_ms == 500 and failure.consumer == "Mail" and failure.transport == "orders")
local m = failure.message
assert(m.id == "m-1" and m.type == "Order" and m.key == "k" and m.size == 300 and m.headers.tenant == "acme")
]]
    end)

    it("the verdict as the rules have it", function()
        holds([[
assert(verdict.action == "retry" and verdict.tier == "retry" and verdict.step == 1 and verdict.of == 3)
assert(verdict.delay_ms >= 150 and verdict.delay_ms <= 250 and verdict.queue == nil and verdict.note == nil)
assert(verdict.reason == nil and verdict.fallback == nil and #verdict.generation == 32)
local rule = verdict.rule
assert(rule.type == "Parent" and rule.file == "policy.lua" and rule.line == 2 and rule.scope == "bus")
]], { error = { type = "Child" } })
        holds([[
assert(verdict.action == "dead_letter" and verdict.reason == "no_rule" and verdict.queue == "mail-dead")
assert(verdict.rule == nil and verdict.tier == nil and verdict.step == nil and verdict.of == nil)
assert(verdict.delay_ms == 0)
]], { error = { type = "Other" }, consumer = "Mail" })
        holds([[assert(verdict.action == "discard" and verdict.note == "stale" and verdict.reason == "rule")]], "Gone")
    end)

    it("what is in force", function()
        holds([[
assert(config.dead_letter_queue == "mail-dead" and config.max_age_ms == 86400000 and config.max_attempts == nil)
assert(table.concat(config.unrecoverable, " ") == "Bad Worse MessageDeserializationError")
assert(config.retry.attempts == 0 and config.redeliver.attempts == 0)
local retry, redeliver = config.rule.retry, config.rule.redeliver
assert(retry.attempts == 3 and retry.delay_ms == 200 and retry.backoff == "constant" and retry.max_delay_ms == 30000)
assert(redeliver.attempts == 2 and redeliver.delay_ms == 60000 and redeliver.backoff == nil)
assert(redeliver.max_delay_ms == nil)
]], { error = { type = "Child" }, consumer = "Mail", transport = "orders" })
        holds([[
assert(config.dead_letter_queue == "error" and config.max_age_ms == nil)
local retry, redeliver = config.rule.retry, config.rule.redeliver
assert(retry.attempts == 0 and retry.delay_ms == nil and retry.backoff == nil and retry.max_delay_ms == nil)
assert(redeliver.attempts == 4 and redeliver.delay_ms == 60000 and redeliver.backoff == "exponential")
assert(redeliver.max_delay_ms == 3600000)
]], "Plain")
        holds("assert(config.rule == nil and config.retry.attempts == 0 and config.redeliver.attempts == 0)", "Other")
    end)

    -- `asserts` must hold for failures of these types, under the rules in `more`.
    local function shown(more, asserts, types)
        local policy, told = with_override(asserts, more)
        for _, type in ipairs(types) do
            decide(policy, { error = { type = type }, consumer = "Mail" })
        end
        assert.same({}, { table.unpack(told) })
        policy:close()
    end

    local ALL = { "Child", "Plain", "Gone", "Bad", "MessageDeserializationError", "Other" }

    it("the tiers of the default, the same for every failure", function()
        shown('bus:default():retry(7, "1s"):then_redeliver(8)', [[
assert(config.retry.attempts == 7 and config.retry.delay_ms == 1000 and config.redeliver.attempts == 8)]], ALL)
        shown('bus:default():retry(7); bus:on("Error", { x = 1 }):retry(9); bus:default():retry(4)',
            "assert(config.retry.attempts == 4 and config.redeliver.attempts == 0)", ALL)
        shown('bus:on("Error", { x = 1 }):retry(9)', "assert(config.retry.attempts == 0)", ALL)
        shown('bus:on_cause("Error"):retry(9)', "assert(config.retry.attempts == 0)", ALL)
    end)

    it("the default of the scope whose rules are in force, own or included", function()
        local mail = 'bus:default():retry(7); local mail = policy.consumer("Mail"); '
        local function of(more, attempts)
            shown(mail .. more, ("assert(config.retry.attempts == %d)"):format(attempts), ALL)
        end
        of("", 7)
        of('mail:on("Child"):retry(2)', 0)
        of('mail:on("Child"):retry(2); mail:include(bus)', 7)
        of("mail:default():retry(5); mail:include(bus)", 5)
        of("local far = policy.host(); far:default():retry(6); mail:include(far); mail:include(bus)", 6)
    end)

    it("the tiers of the rule that decided, nil where none did", function()
        shown('bus:default():retry(7)', [[
local deciding = { Child = 3, Plain = 0, Gone = 0, Other = 7 }
local attempts = deciding[failure.error.type]
assert((config.rule and config.rule.retry.attempts) == attempts)]], ALL)
    end)

    it("that a tier is off where the transport can't carry it out", function()
        local policy, told = with_override([[
assert(config.retry.attempts == 0 and config.redeliver.attempts == 2 and config.rule.retry.attempts == 0)
assert(config.rule.redeliver.attempts == 2 and verdict.action == 'retry')]],
            "bus:default():retry(7):then_redeliver(2)")
        decide(policy, { error = { type = "Child" }, can = { retry = false } })
        assert.same({}, { table.unpack(told) })
        policy:close()
    end)

    it("where a declaration stands that makes it unrecoverable", function()
        holds([[
assert(verdict.reason == "unrecoverable" and verdict.rule.type == "Worse" and verdict.rule.line == 5)
assert(verdict.rule.scope == "bus" and verdict.rule.file == "policy.lua")]], "Worse")
        holds('assert(verdict.reason == "unrecoverable" and verdict.rule == nil)', "MessageDeserializationError")
    end)

    it("an attempt without bound as the language says it", function()
        local policy, told = with_override([[
assert(config.rule.redeliver.attempts == "unlimited" and verdict.of == nil and verdict.step == 1)]],
            'bus:on("Long"):redeliver { attempts = "unlimited" }\nbus:max_age("1d")')
        assert.equal("redeliver", decide(policy, "Long").action)
        assert.same({}, { table.unpack(told) })
        policy:close()
    end)

    it("all of it in a fixed order", function()
        local policy, told = with_override [[
local function keys(t)
    local list = {}
    for key, value in pairs(t) do
        list[#list + 1] = key
        assert(value == t[key])
    end
    local walked, key = {}, next(t)
    while key ~= nil do
        walked[#walked + 1] = key
        key = next(t, key)
    end
    assert(table.concat(walked, " ") == table.concat(list, " "))
    print(table.concat(list, " "))
end
keys(failure) keys(failure.error) keys(failure.message) keys(failure.message.headers) keys(verdict) keys(verdict.rule)
keys(config) keys(config.rule) keys(config.rule.retry) keys(config.unrecoverable)
for i, name in ipairs(config.unrecoverable) do print(i, name, #config.unrecoverable) end]]
        decide(policy, {
            error = { type = "Child", code = 7, type_ = 1, cause = { type = "Cause" } }, consumer = "Mail",
            message = { id = "m-1", headers = { b = "2", a = "1" } },
        })
        assert.same({}, { table.unpack(told) })
        assert.same({
            "age_ms attempt calls consumer deliveries error message redeliveries",
            "cause code is message stack type type_", "headers id size", "a b",
            "action delay_ms generation of rule step tier", "file line scope type",
            "dead_letter_queue redeliver retry rule unrecoverable", "redeliver retry",
            "attempts backoff delay_ms max_delay_ms", "1 2 3",
            "1 Bad 3", "2 Worse 3", "3 MessageDeserializationError 3",
        }, told.log)
        policy:close()
    end)
end)

describe("what an override returns", function()
    local answers = {
        ["policy.retry()"] = { action = "retry", tier = "retry", delay_ms = 0, step = 1, reason = "override" },
        ['policy.retry("1.5s")'] = { action = "retry", tier = "retry", delay_ms = 1500, step = 1, reason = "override" },
        ["policy.retry(1500)"] = { action = "retry", tier = "retry", delay_ms = 1500, step = 1, reason = "override" },
        ["policy.retry(2 * config.rule.retry.delay_ms)"] = {
            action = "retry", tier = "retry", delay_ms = 400, step = 1, reason = "override",
        },
        ["policy.redeliver(policy.ms(40))"] = {
            action = "redeliver", tier = "redeliver", delay_ms = 40, step = 1, reason = "override",
        },
        ["policy.redeliver(policy.seconds(3))"] = {
            action = "redeliver", tier = "redeliver", delay_ms = 3000, step = 1, reason = "override",
        },
        ["policy.dead_letter()"] = { action = "dead_letter", delay_ms = 0, queue = "error", reason = "override" },
        ['policy.dead_letter("parked-" .. failure.error.type)'] = {
            action = "dead_letter", delay_ms = 0, queue = "parked-Child", reason = "override",
        },
        ['policy.discard("for " .. failure.attempt)'] = {
            action = "discard", delay_ms = 0, note = "for 1", reason = "override",
        },
        ["policy.discard()"] = { action = "discard", delay_ms = 0, reason = "override" },
        ["ready"] = { action = "dead_letter", delay_ms = 0, queue = "made-before", reason = "override" },
    }
    for call, expected in pairs(answers) do
        it("is the verdict: " .. call, function()
            local policy, told = with_override("return " .. call, 'local ready = policy.dead_letter("made-before")')
            for _ = 1, 3 do
                local verdict = decide(policy, "Child")
                assert.equal(2, verdict.rule.line)
                verdict.rule, verdict.generation = nil, nil
                assert.same(expected, verdict)
            end
            assert.same({}, { table.unpack(told) })
            policy:close()
        end)
    end

    for _, nothing in ipairs { "", "return", "return nil", "local x = verdict.action" } do
        it(("keeps the verdict where it is nothing: %q"):format(nothing), function()
            local policy, told = with_override(nothing)
            local verdict = decide(policy, "Child")
            assert.same({ "retry", 3 }, { verdict.action, verdict.of })
            assert.same({}, { table.unpack(told) })
            policy:close()
        end)
    end

    local wrong = {
        ["5"] = "number", ["false"] = "boolean", ["true"] = "boolean", ['"retry"'] = "string", ["{}"] = "table",
        ["policy.retry"] = "function", ["verdict"] = "table", ['policy.contains("x")'] = "table",
        ["0/0"] = "number",
    }
    for value, kind in pairs(wrong) do
        it("leaves the verdict where it is wrong: " .. value, function()
            local policy, told = with_override("return " .. value:gsub("policy%.contains.*", "made"),
                'local made = policy.contains("x")')
            local verdict = decide(policy, "Child")
            assert.same({ "retry", 3 }, { verdict.action, verdict.of })
            assert.same({
                ("policy.lua:7: override must return nothing or one of policy.retry(...), policy.redeliver(...), "
                    .. "policy.dead_letter(...) and policy.discard(...), not a %s"):format(kind),
            }, { table.unpack(told) })
            assert.equal("retry", told.verdict.action)
            policy:close()
        end)
    end

    local raising = {
        ['error("no", 0)'] = "policy.lua:8: no",
        ["return failure.error.a.b"] = "attempt to index a nil value",
        ['return policy.retry("5 days")'] = 'policy.lua:7: retry: delay "5 days" is no span of time', -- a tail call
        ['local no = policy.retry("5 days")'] = "policy.lua:8: retry: delay",
        ['verdict.action = "discard"'] = "policy.lua:8: failure, verdict and config are read-only",
        ["config.retry.attempts = 5"] = "policy.lua:8: failure, verdict and config are read-only",
        ["table.insert(config.unrecoverable, 'X')"] = "failure, verdict and config are read-only",
        ["failure.error.code = 5"] = "failure, verdict and config are read-only",
        ["bus:on('X'):retry()"] = "can't be changed once it is loaded",
        ["while true do end"] = "more than 100000 instructions",
        ["while true do pcall(function() while true do end end) end"] = "more than 100000 instructions",
        ["local s = ('x'):rep(1 << 27)"] = "more than 1 MiB of memory",
    }
    for body, expected in pairs(raising) do
        it("is nothing where it runs " .. body, function()
            local policy, told = with_override(body)
            for i = 1, 2 do -- the next call has its budgets anew
                assert.equal("retry", decide(policy, "Child").action)
                assert.equal(i, #told)
                assert.matches(expected, told[i], 1, true)
            end
            policy:close()
        end)
    end

    it("is that of the nearest scope, and of none where it is switched off", function()
        local policy = with_override('return policy.discard("bus")', [[
policy.consumer("Own"):override(function() return policy.discard("own") end)
policy.consumer("Off"):override(false)
]])
        local function note(consumer)
            return decide(policy, { error = { type = "Child" }, consumer = consumer }).note
        end
        assert.same({ "bus", "own", "bus" }, { note(nil), note("Own"), note("Other") })
        assert.equal("retry", decide(policy, { error = { type = "Child" }, consumer = "Off" }).action)
        policy:close()
    end)
end)

describe("what a function was given", function()
    it("is not there in a later call", function()
        local policy, told = with_override([[
if failure.error.type == "Plain" then
    kept.verdict, kept.config, kept.rule, kept.tier = verdict, config, verdict.rule, config.retry
    kept.cause, kept.list, kept.message, kept.headers = failure.error.cause, failure.error.list, failure.message,
        failure.message.headers
    kept.failure, kept.error = failure, failure.error
    return
end
local view = kept[failure.error.type]
return view.type, (pcall(next, view))]], [[
kept = {}
local kept = kept
bus:on("Matched", function(err, ctx) return kept.error.type == "Plain" or kept.failure.attempt end):discard()]])
        decide(policy, { error = { type = "Plain", cause = { type = "C" }, list = { 1 } }, message = { headers = {} } })
        assert.same({}, { table.unpack(told) })
        local names = { "verdict", "config", "rule", "tier", "cause", "list", "message", "headers" }
        for i, name in ipairs(names) do
            decide(policy, { error = { type = name, cause = { type = "C" }, list = { 1 } } })
            assert.equal("policy.lua:18: failure, verdict and config are there during the call only; "
                .. "a local can keep what was read", told[i])
        end
        -- Nor in one of another function.
        assert.equal("no_rule", decide(policy, "Matched").reason)
        assert.matches("err and ctx are there during the call only", told[#names + 1], 1, true)
        policy:close()
    end)
end)

-- NServiceBus' sample of a custom recoverability policy: three retries, three redeliveries after 2, 4 and 6 seconds, an
-- unrecoverable type; here beside a rule for a type of its own, which has no tier.
describe("a custom policy as NServiceBus has them", function()
    local HEAD = [[
policy.errors { Mine = "MyOtherBusinessException" }
policy.preset.nservicebus(bus, {
    immediate = 3, delayed = 3, increase = "2s", unrecoverable = { "MyBusinessException" },
})
bus:dead_letter_queue("errors")
bus:on("Mine"):dead_letter()
]]

    -- What becomes of a message that always fails with a type: its delays, and where it ends.
    local function fate(override, type)
        local policy = loading.good(statements(HEAD .. override))
        local verdicts, steps = loading.walk(policy, { error = { type = type } }), {}
        policy:close()
        for i, verdict in ipairs(verdicts) do
            steps[i] = verdict.tier and verdict.tier .. " " .. verdict.delay_ms or verdict.queue
        end
        return steps
    end

    local AT_ONCE = { "retry 0", "retry 0", "retry 0" }

    -- The fate with a round of retries before each redelivery and the end.
    local function rounds(...)
        local steps = {}
        for _, step in ipairs { ... } do
            table.move(AT_ONCE, 1, 3, #steps + 1, steps)
            steps[#steps + 1] = step
        end
        return steps
    end

    it("changes a part: always five seconds for one type", function()
        local override = [[
bus:override(function(failure, verdict)
    if failure.error:is("MyBusinessException") then
        return policy.dead_letter("businessErrors")
    elseif verdict.action == "redeliver" and failure.error:is("MyOtherBusinessException") then
        return policy.redeliver("5s")
    end
end)]]
        assert.same({ "businessErrors" }, fate(override, "MyBusinessException"))
        assert.same(rounds("redeliver 5000", "redeliver 5000", "redeliver 5000", "errors"),
            fate(override, "MyOtherBusinessException"))
        assert.same(rounds("redeliver 2000", "redeliver 4000", "redeliver 6000", "errors"), fate(override, "Other"))
        assert.same({ "errors" }, fate(override, "Mine"))
    end)

    it("decides all by the configured numbers, whatever rule there is", function()
        local override = [[
bus:override(function(failure, _, config)
    for _, name in ipairs(config.unrecoverable) do
        if failure.error:is(name) then return policy.dead_letter("customErrorQueue") end
    end
    if failure.error:is("MyOtherBusinessException") and failure.redeliveries < config.redeliver.attempts then
        return policy.redeliver(5000)
    end
    return policy.dead_letter(config.dead_letter_queue)
end)]]
        local five = { "redeliver 5000", "redeliver 5000", "redeliver 5000", "errors" }
        assert.same({ "customErrorQueue" }, fate(override, "MyBusinessException"))
        assert.same({ "customErrorQueue" }, fate(override, "MessageDeserializationError"))
        assert.same(five, fate(override, "MyOtherBusinessException"))
        assert.same(five, fate(override, "Mine"))
        assert.same({ "errors" }, fate(override, "Other"))
    end)

    it("may be the default policy once more, written by these numbers", function()
        local override = [[
bus:override(function(failure, _, config)
    if failure.attempt <= config.retry.attempts then
        return policy.retry(config.retry.delay_ms)
    elseif failure.redeliveries < config.redeliver.attempts then
        return policy.redeliver(config.redeliver.delay_ms * (failure.redeliveries + 1))
    end
    return policy.dead_letter(config.dead_letter_queue)
end)]]
        local all = rounds("redeliver 2000", "redeliver 4000", "redeliver 6000", "errors")
        for _, type in ipairs { "Other", "Mine", "MyOtherBusinessException", "MyBusinessException" } do
            assert.same(all, fate(override, type))
        end
    end)
end)
