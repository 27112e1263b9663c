-- The Lua module: what its functions refuse, how values live and end, and that nothing that is
-- raised in a callback is lost or does harm.
local blamed = require "support.blamed"
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local function engine_with(given)
    given = given or {}
    given.policy = given.policy or assert(mulligan.load_text(""))
    given.clock = given.clock or testing.clock()
    return assert(mulligan.engine(given)), given.policy, given.clock
end

local function nothing() end

describe("mulligan.load", function()
    it("gives each problem with its place", function()
        local policy, message, code, problems = mulligan.load_text "\nrequire('mulligan.policy').buss()"
        assert.is_nil(policy)
        assert.equal("policy", code)
        assert.equal("policy.lua", problems[1].file)
        assert.equal(2, problems[1].line)
        assert.equal(("policy.lua:2: %s"):format(problems[1].text), message)
    end)

    it("names a text as it is told", function()
        local _, message = mulligan.load_text("x = ", { name = "orders.lua" })
        assert.is_truthy(message:find("^orders.lua:1: "), message)
    end)

    it("takes a file, and says when there is none", function()
        local path = os.tmpname()
        local file = assert(io.open(path, "w"))
        file:write("require('mulligan.policy').bus():default():discard()")
        file:close()
        local policy = assert(mulligan.load(path))
        assert.equal(1, policy:rules())
        policy:close()
        os.remove(path)
        local none, message, code = mulligan.load(path)
        assert.is_nil(none)
        assert.equal("string", type(message))
        assert.equal("policy", code)
    end)

    it("hands what a policy prints to log", function()
        local lines = {}
        local policy = assert(mulligan.load_text("print('hello')", {
            log = function(level, text)
                lines[#lines + 1] = level .. " " .. text
            end,
        }))
        assert.same({ "info hello" }, lines)
        policy:close()
    end)

    for name, call in pairs {
        ["a path that is no string"] = function()
            mulligan.load {}
        end,
        ["an unknown option"] = function()
            mulligan.load_text("", { nmae = "x" })
        end,
        ["a log that is no function"] = function()
            mulligan.load_text("", { log = "x" })
        end,
    } do
        it("raises for " .. name, function()
            assert.has_error(call)
        end)
    end

    it("guesses what an unknown option was meant to be", function()
        assert.error_matches(function()
            mulligan.load_text("", { nmae = "x" })
        end, 'unknown option "nmae"; did you mean "name"?', 1, true)
    end)
end)

describe("policy", function()
    local policy

    after_each(function()
        if policy then
            policy:close()
            policy = nil
        end
    end)

    it("decides with every key, and the defaults of what is missing", function()
        policy = assert(mulligan.load_text [[
            require("mulligan.policy").bus():default():retry(3, "200ms", "exponential"):then_redeliver()]])
        local verdict = policy:decide({ error = { type = "E" } }, { no_jitter = true })
        assert.same({
            action = "retry",
            delay_ms = 200,
            tier = "retry",
            step = 1,
            of = 3,
            rule = { file = "policy.lua", line = 1, scope = "bus", type = "Error" },
            generation = policy:generation(),
        }, verdict)
        verdict = policy:decide({ error = { type = "E" }, attempt = 2, redeliveries = 3 })
        assert.same({ "retry", 2, 3 }, { verdict.tier, verdict.step, verdict.of })
        verdict = policy:decide { error = { type = "E" }, attempt = 4, redeliveries = 3 }
        assert.same({
            action = "dead_letter",
            delay_ms = 0,
            queue = "error",
            reason = "exhausted",
            rule = { file = "policy.lua", line = 1, scope = "bus", type = "Error" },
            generation = policy:generation(),
        }, verdict)
    end)

    it("looks at all that a failure says", function()
        policy = assert(mulligan.load_text [[
            local policy = require "mulligan.policy"
            policy.bus():on("E", function(err, ctx)
                return err.code == 7 and err.deep.list[2] == "b" and err.cause.type == "C"
                    and ctx.attempt == 2 and ctx.redeliveries == 3 and ctx.calls == 9 and ctx.deliveries == 4
                    and ctx.age_ms == 5 and ctx.consumer == "con" and ctx.transport == "tra"
                    and ctx.message.id == "i" and ctx.message.type == "t" and ctx.message.key == "k"
                    and ctx.message.size == 12 and ctx.message.headers.h == "v"
            end):discard("all seen")]])
        local verdict = policy:decide {
            error = { type = "E", code = 7, deep = { list = { "a", "b" } }, cause = { type = "C" } },
            attempt = 2,
            redeliveries = 3,
            calls = 9,
            deliveries = 4,
            age_ms = 5,
            consumer = "con",
            transport = "tra",
            message = { id = "i", type = "t", key = "k", size = 12, headers = { h = "v" } },
            can = { retry = true, delay = true },
        }
        assert.equal("all seen", verdict.note)
    end)

    it("knows what a transport can't do", function()
        policy = assert(mulligan.load_text 'require("mulligan.policy").bus():default():retry(1):then_redeliver()')
        local function fallback(can, attempt)
            return policy:decide({ error = { type = "E" }, attempt = attempt, can = can }).fallback
        end
        assert.equal("no_retry", fallback({ retry = false }, 1))
        assert.equal("no_delay", fallback({ delay = false }, 2))
        assert.is_nil(fallback({ delay = false }, 1))
    end)

    local circle, wide, long = {}, {}, ("x"):rep(600 * 1024)
    circle.inner = { circle }
    for i = 1, 10001 do
        wide[i] = i
    end

    for words, failure in pairs {
        ["inner contains itself"] = { error = { type = "E", inner = circle } },
        ["an error can't have more than 10000 values"] = { error = { type = "E", cause = { type = "C", f = wide } } },
        ["an error can't have more than 1 MiB of text"] = { error = { type = "E", message = long, f = long } },
        ['unknown key "atempt" in the failure'] = { error = { type = "E" }, atempt = 1 },
        ["attempt must be a whole number from 1"] = { error = { type = "E" }, attempt = 0 },
        ["calls must be a whole number from 1"] = { error = { type = "E" }, calls = 1.5 },
        ["deliveries must be a whole number from 1"] = { error = { type = "E" }, deliveries = "2" },
        ["redeliveries must be a whole number from 0"] = { error = { type = "E" }, redeliveries = -1 },
        ["age_ms must be a whole number from 0"] = { error = { type = "E" }, age_ms = {} },
        ["error must have a type"] = {},
        ["error needs a type"] = { error = { message = "x" } },
        ["a cause needs a type"] = { error = { type = "E", cause = {} } },
        ["lineage must be a list of types"] = { error = { type = "E", lineage = { 1 } } },
        ["type must be a string"] = { error = { type = 5 } },
        ["type must be UTF-8, without a NUL"] = { error = { type = "\xFF" } },
        ['unknown key "idd" in message'] = { error = { type = "E" }, message = { idd = "x" } },
        ['header "a" must be a string'] = { error = { type = "E" }, message = { headers = { a = 1 } } },
        ['unknown key "retrry" in can'] = { error = { type = "E" }, can = { retrry = true } },
        ["retry must be true or false"] = { error = { type = "E" }, can = { retry = 1 } },
        ["f can't be a function"] = { error = { type = "E", f = print } },
        ["consumer must not be empty"] = { error = { type = "E" }, consumer = "" },
        ["transport must not be empty"] = { error = { type = "E" }, transport = "" },
        ["error must have a type "] = { error = mulligan.json.null },
        ["error needs a type "] = { error = { type = mulligan.json.null } },
    } do
        it("refuses a failure: " .. words, function()
            policy = assert(mulligan.load_text "")
            local well, why = pcall(policy.decide, policy, failure)
            assert.is_false(well)
            assert.is_truthy((why .. " "):find(words, 1, true), why)
        end)
    end

    it("takes null for what is missing", function()
        policy = assert(mulligan.load_text [[
            local bus = require("mulligan.policy").bus()
            bus:on("E", function(err, ctx)
                return err.cause == nil and err.code == nil and err.message == "" and err.stack == ""
                    and ctx.consumer == nil and ctx.transport == nil and ctx.message.id == nil and ctx.age_ms == 0
                    and ctx.message.type == nil and ctx.message.key == nil and ctx.message.headers.a == nil
                    and ctx.message.headers.b == "b"
            end):retry(1)]])
        local null = mulligan.json.null
        local function of(keys)
            local made = {}
            for _, key in ipairs(keys) do
                made[key] = null
            end
            return made
        end
        local failure = of { "consumer", "transport", "attempt", "redeliveries", "calls", "deliveries", "age_ms",
            "message", "can" }
        failure.error = of { "lineage", "message", "stack", "cause", "code" }
        failure.error.type = "E"
        assert.equal("no_rule", policy:decide(failure).reason) -- of the header b
        failure.message = of { "id", "type", "key", "size" }
        failure.message.headers = { a = null, b = "b" }
        failure.can = of { "retry", "delay" }
        assert.equal("retry", policy:decide(failure).action)
    end)

    it("reloads, says what is unchanged, and keeps what runs where the new text is wrong", function()
        local first, second = 'require("mulligan.policy").bus():default():discard()',
            'require("mulligan.policy").bus():default():retry()'
        policy = assert(mulligan.load_text(first))
        local generation = policy:generation()
        assert.equal("unchanged", policy:reload(first))
        assert.is_true(policy:reload(second))
        assert.not_equal(generation, policy:generation())
        assert.equal("retry", policy:decide({ error = { type = "E" } }).action)
        local reloaded, message, code, problems = policy:reload("x = ")
        assert.is_nil(reloaded)
        assert.equal("policy", code)
        assert.equal(1, #problems)
        assert.is_truthy(message:find("policy.lua:1:", 1, true))
        assert.equal("retry", policy:decide({ error = { type = "E" } }).action)
    end)

    it("tells of a matcher that raised, and can't be entered from there", function()
        local told, entered = {}, nil
        policy = assert(mulligan.load_text([[
            require("mulligan.policy").bus():on("E", function() error("oops") end):discard()]], {
            event = function(event)
                told[#told + 1] = event
                entered = { pcall(policy.decide, policy, { error = { type = "E" } }) }
            end,
        }))
        assert.equal("no_rule", policy:decide({ error = { type = "E" } }).reason)
        assert.equal("matcher_failed", told[1].name)
        assert.equal(1, told[1].rule.line)
        assert.is_truthy(told[1].text:find("oops", 1, true))
        assert.equal("E", told[1].failure.error.type)
        assert.is_false(entered[1])
    end)

    it("is of no use once it is closed, and may be closed twice", function()
        local closed = assert(mulligan.load_text "")
        closed:close()
        closed:close()
        assert.has_error(function()
            closed:rules()
        end, "the policy is closed")
    end)

    it("is not closed under an engine", function()
        local engine, used = engine_with()
        assert.has_error(function()
            used:close()
        end)
        engine:close()
        used:close()
    end)
end)

describe("misuse", function()
    -- Each call, and the words that blame its own line.
    local policy = assert(mulligan.load_text "")
    local engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
    local real = assert(mulligan.engine { policy = policy })
    local closed = assert(mulligan.load_text "")
    closed:close()
    local cases = {
        { "policy:decide: the failure must be a table, not nil", function() local _ = policy:decide() end },
        { "error must have a type", function() local _ = policy:decide {} end },
        { 'unknown key "x" in the failure', function() local _ = policy:decide { error = { type = "E" }, x = 1 } end },
        { "policy:decide: unknown option", function()
            local _ = policy:decide({ error = { type = "E" } }, { x = 1 })
        end },
        { "bad argument #1 to 'decide' (mulligan.policy expected", function() local _ = policy.decide(engine, {}) end },
        { "policy:decide_json: the failure must be a string, not a table", function()
            local _ = policy:decide_json { error = { type = "E" } }
        end },
        { 'policy:decide_json: unknown option "x"', function()
            local _ = policy:decide_json('{"error": {"type": "E"}}', { x = 1 })
        end },
        { 'unknown key "x" in the failure', function()
            local _ = policy:decide_json '{"error": {"type": "E"}, "x": 1}'
        end },
        { 'did you mean "attempt"?', function() local _ = policy:decide { error = { type = "E" }, atempt = 2 } end },
        { "policy:check: consumers number 1: name is missing; queue is missing", function()
            local _ = policy:check { consumers = { {} } }
        end },
        { "bad argument #1 to 'check' (mulligan.policy expected", function() local _ = policy.check(engine) end },
        { "the policy is closed", function() local _ = closed:check() end },
        { "mulligan.load: the path must be a string without a NUL", function() local _ = mulligan.load "a\0b" end },
        { "mulligan.load_text: the text must be a string, not nil", function() local _ = mulligan.load_text() end },
        { "a URL has no NUL", function() local _ = engine:transport("t", "memory:\0") end },
        { 'did you mean "headers"?', function() local _ = engine:publish("t", "q", "x", { hedaers = {} }) end },
        { "the policy is closed", function() local _ = closed:decide { error = { type = "E" } } end },
        { "the policy is closed", function() local _ = mulligan.engine { policy = closed } end },
        { "policy must be a policy", function() local _ = mulligan.engine { policy = io.stdout } end },
        { "clock must be a clock", function() local _ = mulligan.engine { policy = policy, clock = policy } end },
        { "the consumer's name must be a name", function()
            local _ = engine:consumer("", { transport = "t", queue = "q", handler = nothing })
        end },
        { "engine:consumer: options must be", function() local _ = engine:consumer("c") end },
        { "body must be a string", function() local _ = engine:publish("t", "q", 1) end },
        { "the transport's name must be a name", function()
            local _ = engine:transport("", "memory:")
        end },
        { "turn needs a test's clock", function() local _ = real:turn() end },
        { "engine:after: callback is missing", function() local _ = engine:after(0) end },
        { "bad argument #1 to 'after' (mulligan.engine expected", function()
            local _ = engine.after(1, 0, nothing)
        end },
        { 'no transport "t"', function() engine:fault("t", "settle") end },
        { 'code must be one of MULL_ERRORS, such as "io", not "x"', function()
            engine:fault("t", "settle", { code = "x" })
        end },
    }
    for _, case in ipairs(cases) do
        it("is blamed on the line of the caller: " .. case[1], function()
            blamed(case[1], case[2])
        end)
    end

    teardown(function()
        engine:close()
        real:close()
        policy:close()
    end)
end)

describe("mulligan.engine", function()
    for name, given in pairs {
        ["no policy"] = {},
        ["an unknown option"] = { policy = true, grase = "1s" },
        ["a bare number as grace"] = { policy = true, grace = 10 },
        ["a clock that is none"] = { policy = true, clock = {} },
        ["a log that is none"] = { policy = true, log = 1 },
    } do
        it("raises for " .. name, function()
            if given.policy then
                given.policy = assert(mulligan.load_text "")
            end
            assert.has_error(function()
                mulligan.engine(given)
            end)
        end)
    end

    it("says that a scheme comes later", function()
        local engine = engine_with()
        for _, scheme in ipairs { "redis", "nats" } do
            local added, message, code = engine:transport("t", scheme .. "://host")
            assert.same({ "invalid", ("transport 't': '%s:' is not in this version yet"):format(scheme) },
                { code, added or message })
        end
        engine:close()
    end)

    it("shows no credentials of a URL", function()
        local engine = engine_with()
        for url, shown in pairs {
            ["redis://u:secret@host"] = "'redis:' is not in this version yet",
            ["amqp://u:secret@host?foo=1"] = "foo is no option",
            ["pigeon://u:secret@host"] = "there is no 'pigeon:'",
            ["nats//u:secret@host"] = "there is no 'nats//***'",
            ["bird//secret@host"] = "'bird//***@host' begins with no scheme; known are ",
            ["amqp:u:secret@host"] = "a URL begins with its scheme and ://",
            ["pigeon:/u:secret@host"] = "there is no 'pigeon:'",
            ["am_qp.bird/u:secret@host"] = "there is no 'am_qp.bird/u:'",
            ["memory:u:secret@host?foo=1"] = "memory:***@host?foo=1: foo is no option",
            ["memory://u:secret@host?foo=1"] = "memory://***@host?foo=1: foo is no option",
            ["memory://:sec@ret@host?foo=1"] = "memory://***@host?foo=1: foo is no option",
            ["sqlite://u:secret@host/x.db"] = "//***@host/x.db: its folder //***@host: ",
            ["sqlite://u:secret/secret@host"] = "//***@host: its folder //***: ",
        } do
            local added, message, _, problems = engine:transport("t", url)
            assert.is_nil(added)
            assert.is_truthy(message:find("transport 't': " .. shown, 1, true), message)
            assert.is_nil(message:find("secret", 1, true), message)
            assert.equal(problems[1].text, message)
        end
        local _, message = engine:consumer("c", { transport = "amqp://u:secret@h", queue = "q", handler = nothing })
        assert.equal("consumer 'c': there is no transport 'amqp://***@h'", message)
        _, message = engine:publish("amqp://u:secret@h", "q", "x")
        assert.equal('there is no transport "amqp://***@h"', message)
        engine:close()
    end)

    it("says what is wrong with a transport, and goes on", function()
        local engine = engine_with()
        local added, message, code = engine:transport("t", "carrier-pigeon:")
        assert.is_nil(added)
        assert.equal("invalid", code)
        assert.is_truthy(message:find("memory", 1, true), message)
        assert(engine:transport("t", "memory:"))
        added, message = engine:transport("t", "memory:")
        assert.is_nil(added)
        assert.is_truthy(message:find("already", 1, true), message)
        engine:close()
    end)

    it("says what is wrong with a consumer", function()
        local engine = engine_with()
        assert(engine:transport("t", "memory:"))
        for words, given in pairs {
            ["queue is missing"] = { transport = "t", handler = nothing },
            ["handler must be a function"] = { transport = "t", queue = "q", handler = "x" },
            ['unknown option "concurency"; did you mean "concurrency"?'] = {
                transport = "t", queue = "q", handler = nothing, concurency = 1,
            },
            ["concurrency must be a whole number from 1, not 0"] = {
                transport = "t", queue = "q", handler = nothing, concurrency = 0,
            },
            ["timeout must be longer than 0"] = { transport = "t", queue = "q", handler = nothing, timeout = 0 },
            ['timeout 30 has no unit; "30ms" or "30s"?'] = {
                transport = "t", queue = "q", handler = nothing, timeout = 30,
            },
            ['max_body must be a number of bytes or a text such as "16MiB"'] = {
                transport = "t", queue = "q", handler = nothing, max_body = "16 MB",
            },
        } do
            local well, why = pcall(engine.consumer, engine, "c", given)
            assert.is_false(well)
            assert.is_truthy(why:find(words, 1, true), why)
        end
        local added, message, code = engine:consumer("c", { transport = "nope", queue = "q", handler = nothing })
        assert.is_nil(added)
        assert.equal("invalid", code)
        assert.is_truthy(message:find("nope", 1, true))
        engine:close()
    end)

    it("dead-letters on arrival what is larger than max_body", function()
        local rig = testing.rig {
            consumers = { C = { queue = "q", handler = nothing, max_body = 10 } },
            collect = { "error" },
        }
        assert(rig:publish("q", ("x"):rep(10)))
        assert(rig:publish("q", ("x"):rep(11)))
        assert.equal(1, #rig:collected("error"))
        assert.equal(11, #rig:collected("error")[1].body)
        rig:close()
    end)

    it("is of no use once it is closed, and may be closed twice", function()
        local engine = engine_with()
        engine:close()
        engine:close()
        assert.is_true(engine:stopped())
        for _, method in ipairs { "start", "run", "turn", "stop", "counts", "stop_when_empty" } do
            assert.has_error(function()
                engine[method](engine)
            end, "the engine is closed")
        end
        assert.has_error(function()
            engine:publish("t", "q", "x")
        end, "the engine is closed")
    end)

    it("may be closed by its own handlers and callbacks", function()
        for _, where in ipairs { "handler", "event", "published", "after" } do
            local rig
            local function close(here)
                if here == where then
                    rig.engine:close()
                end
            end
            rig = testing.rig {
                consumers = {
                    C = {
                        queue = "q",
                        handler = function()
                            close "handler"
                            error("no")
                        end,
                    },
                },
                start = false,
            }
            local engine = rig.engine
            if where == "event" then
                -- A second engine, since a rig has an event function of its own.
                engine:close()
                local policy
                engine, policy = engine_with {
                    clock = rig.clock,
                    event = function()
                        engine:close()
                    end,
                }
                rig.other = policy
                assert(engine:transport("orders", "memory:"))
                assert(engine:consumer("C", { transport = "orders", queue = "q", handler = error }))
            end
            assert(engine:start())
            engine:after(0, function()
                close "after"
                if not engine:closed() then
                    engine:publish("orders", "q", "x", nil, function()
                        close "published"
                    end)
                end
            end)
            rig.clock:turn()
            rig.clock:turn()
            assert.is_true(engine:closed(), where)
            rig:close()
        end
    end)

    it("may be forgotten while handlers sleep and publishes are open", function()
        local weak = setmetatable({}, { __mode = "v" })
        do
            local engine, _, clock = engine_with { log = nothing }
            assert(engine:transport("t", "memory:"))
            assert(engine:consumer("c", {
                transport = "t",
                queue = "q",
                handler = function()
                    weak.self = engine -- the handler refers to its own engine
                    mulligan.sleep("1h")
                end,
            }))
            assert(engine:start())
            assert(engine:publish("t", "q", "x"))
            clock:turn()
            assert(engine:publish("t", "q", "y", nil, nothing))
            weak.engine = engine
            assert.is_truthy(weak.self)
        end
        for _ = 1, 4 do
            collectgarbage()
        end
        assert.is_nil(weak.engine)
    end)

    it("tells publish and depth about a transport that isn't there", function()
        local engine = engine_with()
        local taken, message, code = engine:publish("nope", "q", "x")
        assert.is_nil(taken)
        assert.equal("invalid", code)
        assert.is_truthy(message:find("nope", 1, true))
        taken, message, code = engine:depth("nope", "q", nothing)
        assert.same({ nil, 'there is no transport "nope"', "invalid" }, { taken, message, code })
        engine:close()
    end)

    it("answers a publish that failed", function()
        local rig = testing.rig {}
        rig:fault("publish", { times = 1, code = "io" })
        local safe, message, code = rig:publish("q", "x")
        assert.is_nil(safe)
        assert.equal("io", code)
        assert.equal("string", type(message))
        assert.is_true(rig:publish("q", "x"))
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth("q")))
        rig:close()
    end)

    it("says what it lacks to start: a transport; without a consumer it only sends", function()
        local lines = {}
        local engine = engine_with { log = function(_, line) lines[#lines + 1] = line end, clock = testing.clock() }
        local well, why, code = engine:start()
        assert.same({ n = 3, nil, "the engine has no transport, so it can neither take nor send messages; "
            .. "add one before the start, and a consumer for each queue that it is to read", "invalid" },
            table.pack(well, why, code))
        assert(engine:transport("t", "memory:"))
        assert(engine:start())
        assert.same({ "there is no consumer, so no messages are taken" }, lines)
        engine:close()
    end)

    it("logs a publish that failed where nobody asked", function()
        local rig = testing.rig {}
        rig:fault("publish", { times = 1, code = "io" })
        assert(rig.engine:publish("orders", "q", "x"))
        rig.clock:turn()
        assert.is_truthy(rig:log()[2]:find("^error: publish: "), rig:log()[2])
        rig:close()
    end)

    it("says when what is delayed is due", function()
        local rig = testing.rig { clock = testing.clock(1000000) }
        assert(rig:publish("q", "x", { delay = "1m" }))
        assert.same({ ready = 0, delayed = 1, claimed = 0, next_due_ms = 1060000 }, (rig:depth("q")))
        rig:close()
    end)

    it("runs in a coroutine, and calls back when that is over", function()
        local engine
        local seen = {}
        local run = coroutine.wrap(function()
            engine = engine_with { clock = nil }
            engine:close()
            local policy = assert(mulligan.load_text "")
            engine = assert(mulligan.engine {
                policy = policy,
                event = function(event)
                    seen[#seen + 1] = event.name
                end,
            })
            assert(engine:transport("t", "memory:"))
            assert(engine:consumer("c", {
                transport = "t",
                queue = "q",
                handler = function()
                    mulligan.sleep("1ms")
                    error("no")
                end,
            }))
            assert(engine:publish("t", "q", "x"))
            coroutine.yield()
            assert(engine:stop_when_empty())
            assert(engine:run())
        end)
        run()
        collectgarbage()
        run()
        collectgarbage()
        assert.same({ "decided" }, seen)
        assert.equal(1, engine:counts().dead_lettered)
        engine:close()
    end)

    it("knows whether it stopped since its queues were empty", function()
        for _, case in ipairs { { "stop_when_empty", true }, { "stop", false } } do
            local engine = engine_with { clock = testing.clock() }
            assert(engine:transport("t", "memory:"))
            assert(engine:consumer("c", { transport = "t", queue = "q", handler = print }))
            assert.is_false(engine:emptied())
            assert(engine:start())
            engine[case[1]](engine)
            while not engine:stopped() do
                engine:turn()
            end
            assert.equal(case[2], engine:emptied())
            engine:close()
        end
    end)

    it("logs what an event function raises, and goes on", function()
        local lines = {}
        local clock = testing.clock()
        local engine = engine_with {
            clock = clock,
            event = function()
                error("event oops")
            end,
            log = function(level, text)
                lines[#lines + 1] = level .. ": " .. text
            end,
        }
        assert(engine:transport("t", "memory:"))
        assert(engine:consumer("c", { transport = "t", queue = "q", handler = error }))
        assert(engine:start())
        for _ = 1, 2 do
            assert(engine:publish("t", "q", "x", nil, function()
                error("publish oops")
            end))
        end
        clock:turn()
        assert.equal(2, engine:counts().dead_lettered)
        local all = table.concat(lines, "\n")
        assert.equal(2, select(2, all:gsub("error: the event function raised: [^\n]*event oops", "")))
        assert.equal(2, select(2, all:gsub("error: publish: [^\n]*publish oops", "")))
        engine:close()
    end)

    it("has words for service.lua that say where they belong", function()
        for word, words in pairs {
            policy = "belongs in a service.lua",
            transport = "belongs in a service.lua",
            consumer = "belongs in a service.lua",
            patterns = "belongs in a service.lua",
            on = "mulligan.on is not in this version yet",
        } do
            assert.error_matches(function()
                mulligan[word]("x")
            end, words, 1, true)
        end
    end)
end)

-- As test runners do between two files.
describe("requiring the module again", function()
    local TIMES = 195 -- so many wrappers in each other were "C stack overflow"
    local before

    before_each(function()
        before = {}
        for name, value in pairs(package.loaded) do
            if name:find "^mulligan" then
                before[name] = value
            end
        end
    end)

    after_each(function()
        for name, value in pairs(before) do
            package.loaded[name] = value
        end
    end)

    -- Forgets the modules whose names match, and requires both that programs require.
    local function again(pattern)
        for name in pairs(before) do
            if name:find(pattern) then
                package.loaded[name] = nil
            end
        end
        return require "mulligan", require "mulligan.testing"
    end

    -- Calls each method that a file of Lua stands in front of, and a clock's.
    local function try(policy, engine, clock)
        local failure = { error = { type = "E" } }
        assert.equal("discard", assert(policy:decide(failure)).action)
        assert.matches('"action": "discard"', assert(policy:decide_json '{"error":{"type":"E"}}'))
        assert.equal("discard", assert(policy:explain(failure)).verdict.action)
        assert.equal("table", type(assert(policy:table()).scopes))
        assert.equal("table", type(assert(policy:check()).findings))
        assert.has_error(function()
            policy:decide(5)
        end, "policy:decide: the failure must be a table, not 5")
        local fired = 0
        engine:after("1s", function()
            fired = fired + 1
        end)
        clock:advance "1s"
        assert.equal(1, fired)
        engine:fault("t", "settle")
        assert.has_error(function()
            engine:consumer("c", { transport = "t" })
        end)
    end

    local function make(m, t)
        local policy = assert(m.load_text [[require("mulligan.policy").bus():on("E"):discard()]])
        local clock = t.clock()
        local engine = assert(m.engine { policy = policy, clock = clock })
        assert(engine:transport("t", "memory:"))
        assert(engine:consumer("c", { transport = "t", queue = "q", handler = nothing }))
        assert(engine:start())
        return policy, engine, clock
    end

    for pattern, what in pairs {
        ["^mulligan$"] = "alone",
        ["^mulligan%.testing$"] = "its part for tests alone",
        ["^mulligan%.core$"] = "its part in C alone",
        ["^mulligan%.check%.report$"] = "one of its files alone",
        ["^mulligan[%w.]*[^e]$"] = "all but its part in C",
        ["^mulligan"] = "with all its files",
    } do
        it(what .. " leaves what was made before and after as it is", function()
            local policy, engine, clock = make(mulligan, testing)
            for _ = 1, TIMES do
                local m, t = again(pattern)
                assert.is_true(rawequal(m.json.null, mulligan.json.null))
                try(policy, engine, clock)
                local new_policy, new_engine, new_clock = make(m, t)
                try(new_policy, new_engine, new_clock)
                new_engine:close()
                new_policy:close()
            end
            engine:close()
            policy:close()
        end)
    end
end)
