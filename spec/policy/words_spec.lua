-- The words of a policy: types, scopes, rules and their matchers, settings; and where each stands.
local mulligan = require "mulligan"
local loading = require "support.loading"

local statements = loading.statements

local function decide(policy, failure)
    if type(failure) == "string" then failure = { error = { type = failure } } end
    return assert(policy:decide(failure, { no_jitter = true }))
end

-- The line of the rule that decides, for each of several types.
local function lines_for(policy, ...)
    local lines = {}
    for i, type_name in ipairs({ ... }) do
        local verdict = decide(policy, type_name)
        lines[i] = verdict.rule and verdict.rule.line or 0
    end
    return lines
end

describe("policy.errors", function()
    it("declares parents, in several calls that add up", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError" }
policy.errors { DatabaseError = "StorageError", StorageError = "Error" }
policy.errors { DeadlockError = "DatabaseError" }
policy.bus():on("StorageError"):discard()
policy.bus():default():dead_letter()
]]
        assert.same({ 5, 5, 5 }, lines_for(policy, "DeadlockError", "DatabaseError", "StorageError"))
        assert.same({ 6, 6 }, lines_for(policy, "Other", "Error"))
        policy:close()
    end)

    it("may give each built-in type one other parent", function()
        for _, name in ipairs { "HandlerTimeoutError", "HandlerCrashError", "MessageDeserializationError" } do
            local policy = loading.good(statements(([[
policy.errors { %s = "SlowError" }
bus:on("%s", { never = true }):retry()
bus:on("SlowError"):discard("slow")]]):format(name, name)))
            assert.equal("slow", decide(policy, name).note)
            policy:close()
            local lines = loading.refused(statements(('policy.errors { %s = "A" }; policy.errors { %s = "B" }')
                :format(name, name)))
            assert.equal(1, #lines)
            assert.matches(name .. ' has the parent "A" already', lines[1], 1, true)
        end
    end)

    local wrong = {
        { '{ A = "B", B = "A" }', "goes round in a circle" },
        { '{ A = "A" }', "goes round in a circle (A < A)" },
        { '{ Error = "A" }', "Error is the root of all types and has no parent" },
        { '{ A = "" }', 'the parent of "A" must not be empty' },
        { '{ A = 5 }', 'the parent of "A" must be a string, not 5' },
        { '{ [""] = "A" }', "the name of an error type must not be empty" },
        { '{ ["\\xff"] = "A" }', "must be valid UTF-8" },
        { '{ ["A\\0"] = "B" }', "without a zero byte" },
        { '{ "A" }', 'errors takes child = parent, errors { DeadlockError = "DatabaseError" }; "A" has no parent' },
        { "{ [print] = 'A' }", "the name of an error type must be a string, not a function" },
        { "{}", "errors has an empty table" },
        { "5", "errors takes a table" },
        { "nil", "errors takes a table" },
        { "{ A = 'B' }, 5", "errors has 2 arguments" },
    }
    for _, row in ipairs(wrong) do
        it("refuses errors(" .. row[1] .. ")", function()
            local lines = loading.refused(statements("\npolicy.errors(" .. row[1] .. ")"))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end

    it("refuses a circle over several calls and a second parent, and says where the first is", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
policy.errors { A = "B", B = "C" }
policy.errors { C = "A" }
policy.errors { A = "D" }
]]
        assert.matches("^policy.lua:3: C can't be a child of \"A\".*%(C < A < B < C%)", lines[1])
        assert.matches('^policy.lua:4: A has the parent "B" already %(policy.lua:2%)', lines[2])
    end)
end)

describe("a scope", function()
    it("is the same again for the same call", function()
        loading.good(statements [[
assert(policy.bus() == bus and policy.host() == policy.host())
assert(policy.transport("a") == policy.transport("a") and policy.consumer("a") == policy.consumer("a"))
assert(policy.transport("a") ~= policy.transport("b") and policy.transport("a") ~= policy.consumer("a"))]]):close()
    end)

    it("gives its name to its rules", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
policy.host():default():dead_letter("host")
policy.bus():default():dead_letter("bus")
policy.transport("orders"):default():dead_letter("transport")
policy.consumer("Mail"):default():dead_letter("consumer")
]]
        local function asked(consumer, transport)
            local verdict = decide(policy, { error = { type = "X" }, consumer = consumer, transport = transport })
            return verdict.rule.scope .. " " .. verdict.queue
        end
        assert.equal("consumer:Mail consumer", asked("Mail", "orders"))
        assert.equal("transport:orders transport", asked("Other", "orders"))
        assert.equal("bus bus", asked("Other", "other"))
        policy:close()
    end)

    it("has a name where there may be several, and none where not", function()
        local rows = {
            ['policy.transport("")'] = "the name of a transport must not be empty",
            ["policy.consumer()"] = "the name of a consumer must be a string, not nil",
            ["policy.consumer(5)"] = "the name of a consumer must be a string, not 5",
            ['policy.consumer("\\xc0")'] = "must be valid UTF-8",
            ['policy.consumer("a", "b")'] = "consumer has 2 arguments; it takes one name",
            ['policy.bus("b")'] = "bus has 1 argument; it takes none",
            ['policy.host("b")'] = "host has 1 argument; it takes none",
        }
        for text, expected in pairs(rows) do
            local lines = loading.refused(statements(text .. ':on("X"):rety()'))
            assert.equal(2, #lines, "what is said to it is checked all the same")
            assert.matches(expected, lines[1], 1, true)
            assert.matches('"rety" is no word of a rule; did you mean retry?', lines[2], 1, true)
        end
    end)
end)

describe("on and default", function()
    it("name the line of their own word, over several lines too", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus =
    policy
        .bus()
bus
    :on("A")
    :retry(3)
local function later(name)
    return bus:on(name):dead_letter()
end
later("B")
later(
    "C")
bus:default(
):discard()
]]
        assert.same({ 6, 9, 9, 14 }, lines_for(policy, "A", "B", "C", "D"))
        policy:close()
    end)

    it("keep the order of statements for one type, and let a plain rule replace a plain one", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus = policy.bus()
bus:on("A"):retry()
bus:on("A", { code = 1 }):dead_letter()
bus:on("A"):discard()
bus:on("A", { code = 2 }):dead_letter()
]]
        local function line(code)
            return decide(policy, { error = { type = "A", code = code } }).rule.line
        end
        assert.same({ 4, 5, 5 }, { line(1), line(2), line(nil) })
        assert.equal(3, policy:rules())
        policy:close()
    end)

    it("let the last of several plain rules stand", function()
        local policy = loading.good(statements [[

bus:on("A"):retry()
bus:on("A"):discard()
bus:on("A"):redeliver()
bus:on("B"):retry()]])
        assert.same({ 4, 5 }, lines_for(policy, "A", "B"))
        assert.equal(2, policy:rules())
        policy:close()
    end)

    it("take literals that are equal with their type", function()
        local policy = loading.good(statements [[
bus:on("A", { n = 503, s = "x", b = true, f = 0.5 }):discard()
bus:on("B", { b = false }):discard()
bus:on("C", { ["it's"] = "" }):discard()]])
        local function action(error)
            return decide(policy, { error = error }).action
        end
        assert.equal("discard", action { type = "A", n = 503, s = "x", b = true, f = 0.5 })
        assert.equal("discard", action { type = "A", n = 503.0, s = "x", b = true, f = 0.5, more = 1 })
        assert.equal("dead_letter", action { type = "A", n = "503", s = "x", b = true, f = 0.5 })
        assert.equal("dead_letter", action { type = "A", n = 503, s = "x", b = true })
        assert.equal("discard", action { type = "B", b = false })
        assert.equal("dead_letter", action { type = "B" })
        assert.equal("discard", action { type = "C", ["it's"] = "" })
        policy:close()
    end)

    local wrong = {
        { "on()", "on needs an error type" },
        { 'on("")', "the error type must not be empty" },
        { "on(5)", "the error type must be a string, not 5" },
        { 'on("\\xff")', "the error type must be valid UTF-8" },
        { 'on("A\\0B")', "without a zero byte" },
        { "on({})", "a list of types must be names and nothing else" },
        { 'on({ A = "B" })', "a list of types must be names and nothing else" },
        { 'on({ "A", x = "B" })', "a list of types must be names and nothing else" },
        { "on({ [print] = 1 })", "a list of types must be names and nothing else" },
        { 'on({ "A", 5 })', "type 2 of the list must be a string, not 5" },
        { 'on({ "A", "" })', "type 2 of the list must not be empty" },
        { 'on({ "A", "B", "A" })', '"A" is in the list of types twice' },
        { "on(bus)", "the error type must be a string, not a table" },
        { 'on("A", nil)', "the matcher must be a table, { status = 503 }, or a function, not nil" },
        { 'on("A", "B")', 'or a function, not "B"' },
        { 'on("A", {})', "the matcher is an empty table" },
        { 'on("A", { "B" })', 'the matcher must name its fields, { status = 503 }; "B" has no name' },
        { 'on("A", { [print] = 1 })', "a function for the name of a field" },
        { 'on("A", { [""] = 1 })', "the name of a field must not be empty" },
        { 'on("A", { x = { y = 1 } })', "the value of x is a table with names in it; a list of values has none" },
        { 'on("A", { x = print })', "the value of x must be a string, a number, a boolean, a list of these, or" },
        { 'on("A", { x = 0/0 })', "(nan), which equals nothing" },
        { 'on("A", { x = "\\xff" })', "the value of x must be valid UTF-8" },
        { 'on("A", { x = 1 }, 5)', "on has 3 arguments; it takes a type and a matcher" },
        { 'default("A")', "default has 1 argument; it takes none" },
        { "default(nil)", "default has 1 argument; it takes none" },
    }
    for _, row in ipairs(wrong) do
        it("refuse " .. row[1], function()
            local lines = loading.refused(statements("\nbus:" .. row[1] .. ":retry()"))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end
end)

describe("on_cause", function()
    it("decides by the causes, after the rules for the types and before default", function()
        local policy = loading.good(statements [[

bus:on_cause("TimeoutError"):retry()
bus:on_cause("HttpError", { status = 503 }):redeliver()
bus:on("A", { own = true }):discard()
bus:default():dead_letter()]])
        local function line(error)
            return policy:decide({ error = error }).rule.line
        end
        assert.equal(2, line { type = "A", cause = { type = "TimeoutError" } })
        assert.equal(3, line { type = "A", cause = { type = "B", cause = { type = "HttpError", status = 503 } } })
        assert.equal(4, line { type = "A", own = true, cause = { type = "TimeoutError" } })
        assert.equal(5, line { type = "TimeoutError", cause = { type = "HttpError", status = 500 } })
        policy:close()
    end)

    it("replaces a plain one of its own kind, never a rule of on", function()
        local policy = loading.good(statements [[

bus:on("A"):retry()
bus:on_cause { "A", "B" }:discard()
bus:on_cause("B", { code = 1 }):discard()
bus:on_cause("A"):retry()
bus:on("B"):retry()
bus:on_cause("B"):redeliver()]])
        assert.equal(5, policy:rules())
        assert.equal(2, policy:decide({ error = { type = "A" } }).rule.line)
        assert.equal(5, policy:decide({ error = { type = "X", cause = { type = "A" } } }).rule.line)
        assert.equal(4, policy:decide({ error = { type = "X", cause = { type = "B", code = 1 } } }).rule.line)
        assert.equal(7, policy:decide({ error = { type = "X", cause = { type = "B" } } }).rule.line)
        policy:close()
    end)
end)

describe("unrecoverable", function()
    it("adds up over calls and scopes, with lists and matchers, before every rule", function()
        local policy = loading.good(statements [[
bus:default():retry()
bus:on("A"):discard()
bus:unrecoverable("A")
bus:unrecoverable({ "B", "C" }, { code = policy.at_least(5) })
policy.host():unrecoverable("D")
policy.consumer("Mail"):unrecoverable("E", function(err) return err.fatal end)]])
        local function reason(error, consumer)
            return policy:decide({ error = error, consumer = consumer }).reason
        end
        assert.equal("unrecoverable", reason { type = "A" })
        assert.equal("unrecoverable", reason({ type = "B", code = 5 }, "Mail"))
        assert.equal(nil, reason { type = "C", code = 4 })
        assert.equal("unrecoverable", reason({ type = "D" }, "Mail"))
        assert.equal("unrecoverable", reason({ type = "E", fatal = true }, "Mail"))
        assert.equal(nil, reason({ type = "E" }, "Mail"))
        assert.equal(nil, reason { type = "E", fatal = true })
        assert.equal(nil, reason { type = "X", cause = { type = "A" } })
        policy:close()
    end)

    local wrong = {
        { "unrecoverable()", 'unrecoverable needs an error type: unrecoverable("ValidationError")' },
        { "unrecoverable(false)", "the error type must be a string, not false" },
        { "unrecoverable({})", "a list of types must be names and nothing else" },
        { 'unrecoverable({ "A", "A" })', '"A" is in the list of types twice' },
        { 'unrecoverable("A", 5)', "the matcher must be a table, { status = 503 }, or a function, not 5" },
        { 'unrecoverable("A", {})', "the matcher is an empty table" },
        { 'unrecoverable("A", "B", "C")', "unrecoverable has 3 arguments; it takes a type and a matcher" },
        { 'unrecoverable("A"):retry()', "unrecoverable ends its statement; nothing may follow it" },
    }
    for _, row in ipairs(wrong) do
        it("refuses " .. row[1], function()
            local lines = loading.refused(statements("\nbus:" .. row[1]))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end
end)

describe("a function matcher", function()
    local function with_function(body)
        return loading.good(statements(('bus:on("A", function(err, ctx) %s end):discard("yes")'):format(body)))
    end

    local failure = {
        error = {
            type = "A", message = "boom", lineage = { "Mid", "Base" }, status = 503, ratio = 0.5, fine = true,
            list = { 1, "two", { deep = true } }, map = { a = { b = "c" } },
            cause = { type = "B", code = "x", cause = { type = "C" } },
        },
        consumer = "Mail", transport = "orders", attempt = 2, redeliveries = 3, calls = 9, deliveries = 4, age_ms = 77,
        message = { id = "m-1", type = "Order", key = "k", size = 300, headers = { tenant = "acme" } },
    }

    it("sees all of the failure", function()
        local policy = with_function [[
assert(err.type == "A" and err.message == "boom" and err.stack == "")
assert(err.status == 503 and math.type(err.status) == "integer" and err.ratio == 0.5 and err.fine == true)
assert(err.missing == nil and #err.list == 3 and err.list[2] == "two" and err.list[3].deep and err.map.a.b == "c")
assert(err.cause.type == "B" and err.cause.code == "x" and err.cause.message == "" and err.cause.cause.type == "C")
assert(err.cause.cause.cause == nil)
assert(ctx.attempt == 2 and ctx.redeliveries == 3 and ctx.calls == 9 and ctx.deliveries == 4 and ctx.age_ms == 77)
assert(ctx.consumer == "Mail" and ctx.transport == "orders")
local m = ctx.message
assert(m.id == "m-1" and m.type == "Order" and m.key == "k" and m.size == 300 and m.headers.tenant == "acme")
assert(m.headers.Tenant == nil and ctx.error == nil)
return true]]
        assert.equal("yes", decide(policy, failure).note)
        policy:close()
    end)

    it("finds tables where nothing was sent", function()
        local policy = with_function [[
assert(ctx.consumer == nil and ctx.transport == nil and ctx.message.id == nil and ctx.message.headers.x == nil)
assert(ctx.attempt == 1 and ctx.redeliveries == 0 and ctx.calls == 1 and ctx.deliveries == 1 and ctx.age_ms == 0)
assert(err.message == "" and err.stack == "" and err.cause == nil)
return next(ctx.message.headers) == nil and ctx.message.size == 0]]
        assert.equal("yes", decide(policy, "A").note)
        policy:close()
    end)

    it("asks an error for its effective lineage", function()
        local policy = loading.good(statements [[
policy.errors { Base = "Root", Root = "Top", B = "D", A = "Unused" }
bus:on("A", function(err)
    for _, t in ipairs { "A", "Mid", "Base", "Root", "Top", "Error" } do assert(err:is(t), t) end
    for _, t in ipairs { "B", "D", "Unused", "a", "" } do assert(not err:is(t), t) end
    local cause = err.cause
    assert(cause:is("B") and cause:is("D") and cause:is("Error") and not cause:is("A"))
    return true
end):discard("yes")]])
        assert.equal("yes", decide(policy, failure).note)
        policy:close()
    end)

    it("walks what it is given in a fixed order", function()
        local log = {}
        local policy = loading.good(statements [[
bus:on("A", function(err, ctx)
    local keys = {}
    for key in pairs(err) do keys[#keys + 1] = key end
    print(table.concat(keys, " "))
    for i, value in ipairs(err.list) do print(i, value) end
    local key, value = next(ctx.message.headers)
    print(key, value, (table.unpack(err.list)))
    return true
end):discard("yes")]], { log = function(_, line) log[#log + 1] = line end })
        assert.equal("yes", decide(policy, failure).note)
        assert.same({
            "cause fine is list map message ratio stack status type", "1 1", "2 two", "3 table", "tenant acme 1",
        }, log)
        policy:close()
    end)

    local refused = {
        ["err.x = 1"] = "err and ctx are read-only",
        ["ctx.attempt = 1"] = "err and ctx are read-only",
        ["ctx.message.headers.a = 'b'"] = "err and ctx are read-only",
        ["table.insert(err.list, 5)"] = "err and ctx are read-only",
        ["table.sort(err.list, function() return false end)"] = "err and ctx are read-only",
        ["return err.a.b"] = "attempt to index a nil value",
        ["bus:on('X'):retry()"] = "can't be changed once it is loaded",
        ["policy.consumer('X')"] = "can't be changed once it is loaded",
        ["policy.x = 1"] = "can't be changed once it is loaded",
        ["other = 1"] = "the global \"other\" can't be set once the policy is loaded",
        ["pairs = 1"] = "the global \"pairs\" can't be set once the policy is loaded",
        ["return err.is('A')"] = "takes a colon",
        ["while true do end"] = "more than 100000 instructions",
        ["while true do pcall(function() while true do end end) end"] = "more than 100000 instructions",
        ["local t = {} for i = 1, 1e9 do t[i] = {} end"] = "more than 1 MiB of memory",
        ["local s = ('x'):rep(1 << 27)"] = "more than 1 MiB of memory",
        ["pcall(string.rep, 'x', 1 << 27) return true"] = "more than 1 MiB of memory",
        ["error('no', 0)"] = "no",
        ["error({ 'no' })"] = "error was called with a table",
        ["return require('other')"] = 'require("other") must run while the policy is loaded',
    }
    for body, expected in pairs(refused) do
        it("doesn't match where it runs " .. body, function()
            local events = {}
            local text = ("\nbus:on('A', function(err, ctx) %s end):discard()"):format(body)
            local policy = loading.good(statements(text), {
                event = function(event) events[#events + 1] = event end,
            })
            for _ = 1, 2 do -- the next call has its budgets anew
                local verdict = decide(policy, failure)
                assert.equal("no_rule", verdict.reason)
            end
            assert.equal(2, #events)
            assert.equal("matcher_failed", events[1].name)
            assert.equal(2, events[1].rule.line)
            assert.matches(expected, events[1].text, 1, true)
            policy:close()
        end)
    end

    it("says where a word is said too late, to a pcall too", function()
        local log = {}
        local policy = loading.good(statements [[
local on = bus.on
bus:on("A", function()
    print((select(2, pcall(function()
        local rule = on(bus, "B")
        return rule
    end))))
    print((select(2, pcall(function()
        local word = bus.on
        return word
    end))))
    return true
end):discard()]], { log = function(_, line) log[#log + 1] = line end })
        assert.equal("discard", decide(policy, failure).action)
        assert.same({
            "policy.lua:4: on can't be said once the policy is loaded",
            "policy.lua:8: a policy can't be changed once it is loaded",
        }, log)
        policy:close()
    end)

    it("keeps no err or ctx beyond its call", function()
        local events = {}
        local policy = loading.good(statements [[
local kept = {}
bus:on("A", function(err, ctx) kept.err, kept.list, kept.ctx = err, err.list, ctx return true end):discard()
bus:on("R1", function() return kept.err.type end):discard()
bus:on("R2", function() return #kept.list > 0 end):discard()
bus:on("R3", function() for _ in pairs(kept.ctx) do return true end end):discard()
bus:on("R4", function() return kept.err:is("A") end):discard()
bus:on("R5", function() return next(kept.ctx.message) end):discard()]], {
            event = function(event) events[#events + 1] = event.text end,
        })
        assert.equal("discard", decide(policy, failure).action)
        for i = 1, 5 do
            assert.equal("no_rule", decide(policy, "R" .. i).reason)
            assert.matches("err and ctx are there during the call only", events[i], 1, true)
        end
        policy:close()
    end)

    it("pays for what it searches and copies", function()
        local error = { type = "A", message = ("x"):rep(2000) }
        for i = 1, 2000 do error["field" .. i] = i end
        local reads = { ["err.nothing"] = false, ["err.message"] = false, ["ctx.attempt"] = true, ["err.type"] = true }
        for read, passes in pairs(reads) do
            local policy = with_function(("for _ = 1, 5000 do local _ = %s end return true"):format(read))
            assert.equal(passes and "yes" or nil, decide(policy, { error = error }).note, read)
            policy:close()
        end
    end)

    it("sees causes 16 deep", function()
        local error = { type = "Deepest" }
        for i = 1, 40 do error = { type = "T" .. i, cause = error } end
        error.type = "A"
        local policy = with_function [[
local depth = 0
while err.cause do err, depth = err.cause, depth + 1 end
return depth == 16]]
        assert.equal("yes", decide(policy, { error = error }).note)
        policy:close()
    end)
end)

describe("a setting", function()
    it("is resolved one by one, the nearest scope first", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus, mail = policy.bus(), policy.consumer("Mail")
bus:default():retry(5, 0):then_redeliver(5, 0)
bus:dead_letter_queue("bus-errors")
bus:max_attempts(3)
bus:max_attempts(2)
mail:dead_letter_queue("mail-errors")
policy.consumer("Free"):max_attempts(false)
policy.consumer("Free"):dead_letter_queue(false)
policy.consumer("Old"):max_age("1m")
policy.consumer("Young"):max_age(0)
policy.consumer("Seen"):max_deliveries(3)
]]
        local function ends(consumer, more)
            local failure = { error = { type = "X" }, consumer = consumer, attempt = 1, calls = 1 }
            for key, value in pairs(more or {}) do failure[key] = value end
            local verdict = decide(policy, failure)
            return verdict.action .. " " .. (verdict.queue or "") .. " " .. (verdict.reason or "")
        end
        assert.equal("retry  ", ends("Mail"))
        assert.equal("dead_letter mail-errors max_attempts", ends("Mail", { attempt = 2, calls = 2 }))
        assert.equal("dead_letter bus-errors max_attempts", ends("Other", { attempt = 2, calls = 2 }))
        assert.equal("retry  ", ends("Free", { attempt = 2, calls = 2 }))
        assert.equal("dead_letter error exhausted", ends("Free", { attempt = 6, redeliveries = 5 }))
        assert.equal("retry  ", ends("Old", { age_ms = 60001 }))
        assert.equal("dead_letter bus-errors max_age", ends("Young", { attempt = 6, calls = 1, age_ms = 1 }))
        assert.equal("redeliver  ", ends("Young", { attempt = 6, calls = 1, age_ms = 0 }))
        assert.equal("retry  ", ends("Seen", { deliveries = 3 }))
        assert.equal("dead_letter bus-errors max_deliveries", ends("Seen", { deliveries = 4 }))
        policy:close()
    end)

    local wrong = {
        { "dead_letter_queue()", "dead_letter_queue needs a value: the name of a queue, or false" },
        { 'dead_letter_queue("")', "dead_letter_queue: the queue must not be empty" },
        { "dead_letter_queue(true)", "dead_letter_queue: the queue must be a string, not true" },
        { 'dead_letter_queue("a", "b")', "dead_letter_queue has 2 arguments" },
        { "max_age(5)", 'max_age: 5 has no unit; "5ms" or "5s"?' },
        { "max_age(nil)", "max_age: nil is no span of time" },
        { 'max_age("1x")', 'max_age: "1x" is no span of time' },
        { "max_age()", "max_age needs a value" },
        { "max_attempts(0)", "max_attempts must be a whole number from 1, not 0" },
        { "max_attempts(1.5)", "max_attempts must be a whole number from 1, not 1.5" },
        { "max_attempts(true)", "max_attempts must be a whole number from 1, not true" },
        { "max_deliveries(-1)", "max_deliveries must be a whole number from 1, not -1" },
        { 'max_deliveries("5")', 'max_deliveries must be a whole number from 1, not "5"' },
        { "max_deliveries(5, 6)", "max_deliveries has 2 arguments" },
    }
    for _, row in ipairs(wrong) do
        it("refuses " .. row[1], function()
            local lines = loading.refused(statements("\nbus:" .. row[1]))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end
end)

describe("an empty policy", function()
    for name, text in pairs({ nothing = "", ["a comment"] = "-- none", ["a word"] = 'require "mulligan.policy"' }) do
        it("of " .. name .. " is good, and dead-letters everything", function()
            local policy = assert(mulligan.load_text(text))
            assert.equal(0, policy:rules())
            assert.equal("no_rule", decide(policy, "X").reason)
            policy:close()
        end)
    end
end)
