-- The naive evaluator is what the property test trusts; here it is held against expectations written by hand, from
-- the tables and sentences of the language's page.
local naive = require "support.naive"

local BUS, HOST = { kind = "bus" }, { kind = "host" }
local MAIL, ORDERS = { kind = "consumer", name = "Mail" }, { kind = "transport", name = "orders" }

-- Statements; a rule's type may be a list.
local function rule(type_or_list, line, chain, matcher, scope)
    local types = type(type_or_list) == "table" and type_or_list or { type_or_list }
    return { scope = scope or BUS, word = "on", types = types, line = line, chain = chain, matcher = matcher }
end

local function cause_rule(...)
    local statement = rule(...)
    statement.word = "on_cause"
    return statement
end

local function setting(name, value, scope) return { scope = scope or BUS, setting = name, value = value } end

local function include(scope, other) return { scope = scope, include = other } end

-- Matchers.
local function is(value) return { is = "literal", value = value } end

local function field(name, value)
    return { form = "fields", tests = { { name, type(value) == "table" and value or is(value) } } }
end

local function call(kind, more)
    local matcher = { form = "function", kind = kind }
    for key, value in pairs(more or {}) do matcher[key] = value end
    return matcher
end

local function of(form, ...) return { form = form, parts = { ... } } end

local DEAD_LETTER = { { word = "dead_letter" } }

local function tree(statements, parents) return { statements = statements, parents = parents or {} } end

local function failure(type, more)
    local f = { error = { type = type } }
    for key, value in pairs(more or {}) do f[key] = value end
    return f
end

local function decide(t, f, options) return naive.decide(naive.read(t), f, options) end

-- The line of the rule that decides (nil: none does), and the verdict.
local function line(statements, f, parents)
    local verdict = decide(tree(statements, parents), f)
    return verdict.rule and verdict.rule.line, verdict
end

local function lines_of(list)
    local lines = {}
    for i, told in ipairs(list) do lines[i] = told.line end
    return lines
end

local FAMILY = { { child = "Deadlock", parent = "Database" }, { child = "Database", parent = "Storage" } }

describe("the naive evaluator", function()
    describe("lineage", function()
        local function lineage(type, sent)
            return table.concat(naive.lineage(tree({}, FAMILY), { type = type, lineage = sent }), " ")
        end

        it("goes up the declared parents of the last name", function()
            assert.equal("Deadlock Database Storage Error", lineage("Deadlock"))
            assert.equal("Deadlock Timeout Error", lineage("Deadlock", { "Timeout" }))
            assert.equal("Pg Deadlock Database Storage Error", lineage("Pg", { "Deadlock" }))
        end)

        it("leaves out Error and repeats, and then takes the last", function()
            assert.equal("Error", lineage("Error"))
            assert.equal("Error", lineage("Error", { "Error" }))
            assert.equal("Deadlock Database Storage Error", lineage("Deadlock", { "Error", "Deadlock" }))
            assert.equal("Database Deadlock Storage Error", lineage("Database", { "Deadlock" }))
            assert.equal("Pg Deadlock Database Storage Error", lineage("Pg", { "Deadlock", "Pg" }))
        end)
    end)

    describe("rules", function()
        local function family_line(statements, f) return line(statements, f, FAMILY) end

        it("takes the nearest type, then the first statement", function()
            local statements = {
                rule("Error", 1, DEAD_LETTER),
                rule("Storage", 2, DEAD_LETTER),
                rule("Database", 3, DEAD_LETTER, field("code", "x")),
                rule("Database", 4, DEAD_LETTER),
                rule("Database", 5, DEAD_LETTER, field("code", "x")),
            }
            assert.equal(4, (family_line(statements, failure("Deadlock"))))
            assert.equal(3, (family_line(statements, { error = { type = "Deadlock", code = "x" } })))
            assert.equal(2, (family_line(statements, failure("Storage"))))
            assert.equal(1, (family_line(statements, failure("Unheard"))))
        end)

        it("lets a later plain rule replace an earlier one, where the later stands", function()
            local statements = {
                rule("Storage", 1, DEAD_LETTER),
                rule("Storage", 2, DEAD_LETTER, field("code", "x")),
                rule("Storage", 3, DEAD_LETTER),
            }
            assert.equal(2, (family_line(statements, { error = { type = "Storage", code = "x" } })))
            assert.equal(3, (family_line(statements, failure("Storage"))))
        end)

        it("uses one scope only", function()
            local statements = { rule("Storage", 1, DEAD_LETTER), rule("Other", 2, DEAD_LETTER, nil, MAIL) }
            assert.equal(1, (family_line(statements, failure("Storage"))))
            local at, verdict = line(statements, failure("Storage", { consumer = "Mail" }))
            assert.is_nil(at)
            assert.equal("no_rule", verdict.reason)
            assert.equal(2, (family_line(statements, failure("Other", { consumer = "Mail" }))))
        end)

        it("passes over a matcher that raises, and says so", function()
            local statements = {
                rule("Error", 1, DEAD_LETTER, call "raises"),
                rule("Error", 2, DEAD_LETTER, call("at_least", { name = "status", value = 500 })),
                rule("Error", 3, DEAD_LETTER),
            }
            local at, verdict = line(statements, { error = { type = "A", status = "503" } })
            assert.equal(3, at)
            assert.same({ 1, 2 }, lines_of(verdict.failed))
            assert.equal(2, (family_line(statements, { error = { type = "A", status = 503.5 } })))
        end)

        it("counts 0 as passing, and what every error has as fields", function()
            assert.equal(1, (line({ rule("Error", 1, DEAD_LETTER, call "zero") }, failure("A"))))
            assert.is_nil((line({ rule("Error", 1, DEAD_LETTER, call "never") }, failure("A"))))
            assert.equal(1, (line({ rule("Error", 1, DEAD_LETTER, field("stack", "")) }, failure("A"))))
            assert.is_nil((line({ rule("Error", 1, DEAD_LETTER, field("code", "")) }, failure("A"))))
        end)
    end)

    describe("chains", function()
        local function verdict(chain, more)
            return decide(tree { rule("Error", 1, chain) }, failure("A", more))
        end

        it("retries, redelivers, ends", function()
            local chain = {
                { word = "retry", args = { attempts = 3 } }, { word = "then_redeliver" },
                { word = "then_discard", note = "stale" },
            }
            assert.equal("retry", verdict(chain, { attempt = 3 }).action)
            local v = verdict(chain, { attempt = 4, redeliveries = 2 })
            assert.equal("redeliver", v.action)
            assert.equal(3, v.step)
            assert.equal(3, v.of)
            v = verdict(chain, { attempt = 4, redeliveries = 3 })
            assert.equal("discard", v.action)
            assert.equal("exhausted", v.reason)
            assert.equal("stale", v.note)
        end)

        it("ends as exhausted at once where the only tier has no attempts", function()
            assert.equal("exhausted", verdict({ { word = "retry", args = { attempts = 0 } } }).reason)
            assert.equal("rule", verdict(DEAD_LETTER).reason)
        end)

        it("falls back to the default queue", function()
            local chain = { { word = "retry" }, { word = "then_dead_letter", queue = "parked" } }
            local v = verdict(chain, { can = { retry = false } })
            assert.equal("error", v.queue)
            assert.equal("fallback", v.reason)
            assert.equal("no_retry", v.fallback)
            assert.equal("parked", verdict(chain, { attempt = 4, can = { retry = false } }).queue)
        end)
    end)

    describe("settings", function()
        local CHAIN = { { word = "retry" }, { word = "then_redeliver" } }

        local function reason(statements, more)
            statements[#statements + 1] = rule("Error", 1, CHAIN)
            return decide(tree(statements), failure("A", more)).reason
        end

        it("holds max_age strictly, for redeliveries only", function()
            assert.is_nil(reason({ setting("max_age", "1m") }, { attempt = 4, age_ms = 60000 }))
            assert.equal("max_age", reason({ setting("max_age", "1m") }, { attempt = 4, age_ms = 60001 }))
            assert.is_nil(reason({ setting("max_age", "1m") }, { age_ms = 60001 }))
        end)

        it("holds max_attempts over all calls, and max_deliveries above its number", function()
            assert.is_nil(reason({ setting("max_attempts", 2) }))
            assert.equal("max_attempts", reason({ setting("max_attempts", 2) }, { calls = 2 }))
            assert.equal("max_attempts", reason({ setting("max_attempts", 2) }, { redeliveries = 1 }))
            assert.is_nil(reason({}, { deliveries = 20 }))
            assert.equal("max_deliveries", reason({}, { deliveries = 21 }))
            assert.is_nil(reason({ setting("max_deliveries", false) }, { deliveries = 21 }))
        end)

        it("lets no call begin behind the deadline", function()
            local by = setting("deadline", "1m")
            local function ends(type_name, more, options)
                local verdict = decide(tree { rule("Error", 1, { { word = "retry", args = { delay = "20s" } } }), by },
                    failure(type_name, more), options)
                return verdict.reason, verdict.open, verdict.delay[2] // 1
            end
            assert.same({ nil, nil, 20000 }, { ends("A", { age_ms = 40000 }, { no_jitter = true }) })
            assert.same({ "deadline" }, { (ends("A", { age_ms = 40001 }, { no_jitter = true })) })
            assert.same({ nil, true, 16000 }, { ends("A", { age_ms = 44000 }) })
            assert.same({ "deadline", true, 0 }, { ends("A", { age_ms = 44000 }, { late = true }) })
            assert.equal("deadline", (ends("A", { age_ms = 45001 })))
        end)

        it("resolves each by itself, the nearest word counting", function()
            local statements = {
                setting("max_age", "1m"), setting("max_attempts", 1), setting("max_attempts", 5),
                setting("max_age", false, MAIL), setting("max_deliveries", 2, MAIL),
            }
            local t, f = naive.read(tree(statements)), failure("A", { consumer = "Mail" })
            assert.is_nil(naive.setting(t, f, "max_age"))
            assert.equal(5, naive.setting(t, f, "max_attempts"))
            assert.equal(2, naive.setting(t, f, "max_deliveries"))
            assert.equal("1m", naive.setting(t, failure("A"), "max_age"))
        end)

        it("dead-letters what can't be read, unless a rule in force names it", function()
            local t = tree { rule("Error", 1, CHAIN) }
            assert.equal("unrecoverable", decide(t, failure("MessageDeserializationError")).reason)
            local sent = { error = { type = "JsonError", lineage = { "MessageDeserializationError" } } }
            assert.equal("unrecoverable", decide(t, sent).reason)
            t.statements[2] = rule("MessageDeserializationError", 2, CHAIN)
            assert.equal(2, decide(t, sent).rule.line)
        end)
    end)

    describe("delays", function()
        local function range(word, args, step, no_jitter)
            local counters = word == "retry" and { attempt = step } or { redeliveries = step - 1 }
            local t = tree { rule("Error", 1, { { word = word, args = args } }) }
            local verdict = decide(t, failure("A", counters), { no_jitter = no_jitter })
            return verdict.delay
        end

        local function exactly(ms, word, args, step)
            local delay = range(word, args, step, true)
            assert.is_true(delay[1] <= ms and ms <= delay[2] and delay[2] - delay[1] < 0.01)
        end

        it("reads durations", function()
            assert.equal(5400000, naive.milliseconds("1h30m"))
            assert.equal(1500, naive.milliseconds("1.5s"))
            assert.equal(200, naive.milliseconds("200ms"))
            assert.equal(250, naive.milliseconds { seconds = 0.25 })
            assert.equal(0, naive.milliseconds(0))
        end)

        it("has the defaults of the page", function()
            exactly(200, "retry", nil, 1)
            exactly(800, "retry", nil, 3)
            exactly(300000, "redeliver", nil, 1)
            exactly(900000, "redeliver", nil, 2)
            exactly(1800000, "redeliver", nil, 3)
            exactly(900000, "redeliver", { attempts = 5 }, 3)
            exactly(3600000, "redeliver", { attempts = 50 }, 13)
            exactly(30000, "retry", { attempts = 1000 }, 1000)
        end)

        it("has the three ways to back off, and lists", function()
            exactly(500, "retry", { delay = "500ms", backoff = "constant" }, 3)
            exactly(1500, "retry", { delay = "500ms", backoff = "linear" }, 3)
            exactly(2000, "retry", { delay = "500ms", backoff = "exponential" }, 3)
            exactly(110, "retry", { delay = "100ms", factor = 1.1 }, 2)
            exactly(134, "retry", { attempts = 9, delay = "100ms", factor = 1.1 }, 4)
            exactly(7200000, "redeliver", { delays = { "1s", "2h" } }, 2)
            exactly(1000, "redeliver", { delays = { "1s", "2h" }, max_delay = "1s" }, 2)
        end)

        local function near(low, high, word, args, step, more)
            local counters = word == "retry" and { attempt = step } or { redeliveries = step - 1 }
            for key, value in pairs(more or {}) do counters[key] = value end
            local delay = decide(tree { rule("Error", 1, { { word = word, args = args } }) }, counters).delay
            local good = math.abs(delay[1] - low) < 0.01 and math.abs(delay[2] - high) < 0.01
            assert.is_true(good, delay[1] .. " … " .. delay[2])
        end

        local A = { error = { type = "A" } }
        local function hinting(seconds) return { error = { type = "A", retry_after = seconds } } end

        it("jitters in full, and decorrelated", function()
            near(0, 200, "retry", { jitter = "full" }, 1, A)
            near(200, 600, "retry", { jitter = "decorrelated" }, 1, A)
            near(200, 1800, "retry", { jitter = "decorrelated" }, 2, A)
            near(200, 30000, "retry", { attempts = 1000, jitter = "decorrelated" }, 1000, A)
            near(300000, 900000, "redeliver", { jitter = "decorrelated" }, 1, A)
            near(0, 900000, "redeliver", { jitter = "full" }, 2, A)
            near(100, 100, "retry", { jitter = "decorrelated", max_delay = "100ms" }, 3, A)
        end)

        it("takes the longer of a hint and the computed one, and only adds to it", function()
            local args = { attempts = 5, delay = "2s", jitter = 0.5, hint = "retry_after" }
            near(30000, 45000, "redeliver", args, 1, hinting(30))
            near(1500, 2000, "retry", { attempts = 1, hint = "retry_after", max_delay = "2s", jitter = 1 }, 1,
                hinting(1.5))
            near(10000, 15000, "redeliver", args, 5, hinting(1))
            for _, unusable in ipairs { -1, "30", true } do
                near(1000, 3000, "redeliver", args, 1, hinting(unusable))
            end
            near(1000, 3000, "redeliver", args, 1, A)
            near(3600000, 3600000, "redeliver", args, 1, hinting(1e300))
            near(1, 1, "retry", { delays = { 0 }, hint = "retry_after", jitter = "full" }, 1, hinting(0.0004))
            near(9000, 9000, "retry", { jitter = "decorrelated", hint = "retry_after" }, 1, hinting(9))
        end)

        it("redelivers without end", function()
            local t = tree { rule("Error", 1, { { word = "redeliver", args = { attempts = "unlimited" } } }) }
            local verdict = decide(t, failure("A", { redeliveries = math.maxinteger - 1 }), { no_jitter = true })
            assert.equal(math.maxinteger, verdict.step)
            assert.is_nil(verdict.of)
        end)

        it("jitters around the delay, never over the cap", function()
            local delay = range("retry", { attempts = 1000 }, 1)
            assert.is_true(math.abs(delay[1] - 150) < 0.01 and math.abs(delay[2] - 250) < 0.01)
            delay = range("retry", { attempts = 1000 }, 1000)
            assert.is_true(math.abs(delay[1] - 22500) < 0.01 and math.abs(delay[2] - 30000) < 0.01)
        end)
    end)

    describe("causes", function()
        local DEEP = { type = "A" } -- its causes are of the types 1 … 20
        do
            local outer = DEEP
            for depth = 1, 20 do
                outer.cause = { type = tostring(depth), code = depth }
                outer = outer.cause
            end
        end

        it("stand between the error's own types and Error", function()
            local statements = {
                rule("Error", 1, DEAD_LETTER), cause_rule("Error", 2, DEAD_LETTER), rule("Storage", 3, DEAD_LETTER),
            }
            local caused = { error = { type = "A", cause = { type = "Timeout" } } }
            assert.equal(2, (line(statements, caused)))
            assert.equal(1, (line(statements, failure("A"))))
            caused.error.type = "Deadlock"
            assert.equal(3, (line(statements, caused, FAMILY)))
            caused.error.type = "Error"
            assert.equal(2, (line(statements, caused)))
        end)

        it("are gone through one by one, each with its own lineage and Error last", function()
            local statements = {
                cause_rule("Storage", 1, DEAD_LETTER), cause_rule("Error", 2, DEAD_LETTER, field("code", "x")),
                cause_rule("Deep", 3, DEAD_LETTER),
            }
            local outer = { type = "Deadlock", cause = { type = "B", cause = { type = "Deep" } } }
            assert.equal(3, (line(statements, { error = outer }, FAMILY)))
            outer.cause.code = "x"
            assert.equal(2, (line(statements, { error = outer }, FAMILY)))
            outer.cause.lineage = { "Deadlock" }
            assert.equal(1, (line(statements, { error = outer }, FAMILY)))
        end)

        it("are looked at 16 deep", function()
            assert.equal(1, (line({ cause_rule("16", 1, DEAD_LETTER) }, { error = DEEP })))
            assert.is_nil((line({ cause_rule("17", 1, DEAD_LETTER) }, { error = DEEP })))
        end)

        it("are what the matcher gets", function()
            local matcher = field("code", 2)
            assert.equal(1, (line({ cause_rule("2", 1, DEAD_LETTER, matcher) }, { error = DEEP })))
            assert.is_nil((line({ cause_rule("3", 1, DEAD_LETTER, matcher) }, { error = DEEP })))
        end)
    end)

    describe("values", function()
        local function matches(value, given)
            local f = { error = { type = "A", field = given } }
            return (line({ rule("A", 1, DEAD_LETTER, field("field", value)) }, f)) == 1
        end

        local function none(value, ...)
            for i = 1, select("#", ...) do
                local given = select(i, ...)
                assert.is_false(matches(value, given), tostring(given))
            end
        end

        local function each(value, ...)
            for i = 1, select("#", ...) do
                local given = select(i, ...)
                assert.is_true(matches(value, given), tostring(given))
            end
        end

        it("are equal, type included, or one of a list", function()
            each(is(503), 503, 503.0)
            none(is(503), "503", 504, true, nil)
            each(is(true), true)
            none(is(true), "true", 1)
            each({ is = "list", values = { 1, "a" } }, 1.0, "a")
            none({ is = "list", values = { 1, "a" } }, "1", false, nil)
            each(is(9007199254740993), 9007199254740993)
            none(is(9007199254740993), 9007199254740992.0)
        end)

        it("are between numbers, both ends included", function()
            each({ is = "between", low = 500, high = 599.5 }, 500, 500.0, 599.5)
            none({ is = "between", low = 500, high = 599.5 }, 499.9, 600, "550", true, nil)
            each({ is = "at_least", low = 5 }, 5, math.maxinteger, math.huge)
            none({ is = "at_least", low = 5 }, 4.9, "6", nil)
            each({ is = "at_most", high = 5 }, 5, math.mininteger)
            none({ is = "at_most", high = 5 }, 5.1, "4", nil)
        end)

        it("are found in strings, and nowhere else", function()
            each({ is = "contains", text = "a.b" }, "xa.by")
            none({ is = "contains", text = "a.b" }, "xaxby", nil)
            each({ is = "matches", text = "^a.b" }, "axby")
            none({ is = "matches", text = "^a.b" }, "xaxb", nil)
            none({ is = "matches", text = "1" }, 1)
        end)

        it("are there, or not", function()
            each({ is = "present" }, 0, "", false)
            none({ is = "present" }, nil, { 1 })
            each({ is = "absent" }, nil, { 1 })
            none({ is = "absent" }, 0, "", false)
            each({ is = "is_not", value = is(503) }, nil, 504, "503")
            none({ is = "is_not", value = is(503) }, 503, 503.0)
            each({ is = "is_not", value = { is = "matches", text = "a" } }, 1, "b", nil)
            none({ is = "is_not", value = { is = "is_not", value = is(503) } }, 504, nil)
        end)

        it("are the same for what ctx holds", function()
            local function passes(matcher, more)
                matcher.form = "ctx"
                matcher.tests = matcher.tests or {}
                return (line({ rule("A", 1, DEAD_LETTER, matcher) }, failure("A", more))) == 1
            end
            assert.is_true(passes { tests = { { "attempt", is(1) }, { "calls", is(1) }, { "age_ms", is(0) } } })
            assert.is_true(passes({ tests = { { "calls", is(5) } } }, { attempt = 2, redeliveries = 3 }))
            assert.is_true(passes({ tests = { { "consumer", is("Mail") } } }, { consumer = "Mail" }))
            assert.is_true(passes { tests = { { "consumer", { is = "absent" } } } })
            assert.is_false(passes { message = { { "type", is("X") } } })
            assert.is_true(passes({ message = { { "type", is("X") } } }, { message = { type = "X" } }))
            local headers = { { "tenant", is("acme") } }
            assert.is_true(passes({ headers = headers }, { message = { headers = { tenant = "acme" } } }))
            assert.is_false(passes({ headers = headers }, { message = { headers = { Tenant = "acme" } } }))
        end)
    end)

    describe("all, any and none", function()
        local yes, no, raises = call "always", call "never", call "raises"

        -- true, false, or "raised".
        local function answer(matcher)
            local at, verdict = line({ rule("A", 1, DEAD_LETTER, matcher) }, failure("A"))
            return #verdict.failed > 0 and "raised" or at == 1
        end

        it("pass as their names say", function()
            assert.is_true(answer(of("all", yes, yes)))
            assert.is_false(answer(of("all", yes, no)))
            assert.is_true(answer(of("any", no, yes)))
            assert.is_false(answer(of("any", no, no)))
            assert.is_true(answer(of("none", no, no)))
            assert.is_false(answer(of("none", no, yes)))
            assert.is_true(answer(of("none", of("all", yes, of("none", yes)))))
        end)

        it("look in the order written and no further than needed, and raise as a whole", function()
            assert.equal("raised", answer(of("all", raises, no)))
            assert.is_false(answer(of("all", no, raises)))
            assert.equal("raised", answer(of("any", raises, yes)))
            assert.is_true(answer(of("any", yes, raises)))
            assert.equal("raised", answer(of("none", raises, no)))
            assert.is_false(answer(of("none", yes, raises)))
            assert.equal("raised", answer(of("none", of("any", no, raises))))
        end)
    end)

    describe("unrecoverable types", function()
        local function declared(types, matcher, scope)
            return { scope = scope or BUS, line = 9, unrecoverable = types, matcher = matcher }
        end

        local function reason(statements, f) return decide(tree(statements, FAMILY), f).reason end

        it("of all four scopes add up, to the built-in one, too", function()
            local t = {
                declared { "Storage" }, declared({ "B", "C" }, nil, MAIL), declared({ "D" }, nil, HOST),
                declared({ "E" }, nil, ORDERS), rule("Error", 1, { { word = "retry" } }),
            }
            local here = { consumer = "Mail", transport = "orders" }
            for _, name in ipairs { "Deadlock", "B", "C", "D", "E", "MessageDeserializationError" } do
                assert.equal("unrecoverable", reason(t, failure(name, here)), name)
            end
            assert.is_nil(reason(t, failure("B")))
            assert.is_nil(reason(t, failure("F", here)))
        end)

        it("look at the error itself, by their matchers, and go to the default queue", function()
            local t = {
                declared({ "Storage" }, field("code", 1)), rule("Error", 1, { { word = "retry" } }),
                setting("dead_letter_queue", "dead"),
            }
            local verdict = decide(tree(t), { error = { type = "Storage", code = 1 } })
            assert.equal("unrecoverable", verdict.reason)
            assert.equal("dead", verdict.queue)
            assert.same({ 9, "Storage" }, { verdict.rule.line, verdict.rule.type })
            assert.is_nil(decide(tree {}, failure("MessageDeserializationError")).rule)
            assert.is_nil(reason(t, failure("Storage")))
            assert.is_nil(reason(t, { error = { type = "A", cause = { type = "Storage", code = 1 } } }))
        end)

        it("are not lifted by a rule, but for the built-in one", function()
            local name = "MessageDeserializationError"
            assert.is_nil(reason({ rule(name, 1, { { word = "retry" } }) }, failure(name)))
            local both = { rule(name, 1, { { word = "retry" } }), declared { name } }
            assert.equal("unrecoverable", reason(both, failure(name)))
            assert.equal("unrecoverable", reason({ cause_rule(name, 1, DEAD_LETTER) }, failure(name)))
            local elsewhere = { rule(name, 1, DEAD_LETTER), rule("A", 2, DEAD_LETTER, nil, MAIL) }
            assert.equal("unrecoverable", reason(elsewhere, failure(name, { consumer = "Mail" })))
        end)
    end)

    describe("includes", function()
        local AT_MAIL = { consumer = "Mail", transport = "orders" }

        it("come after the scope's own rules, for each type", function()
            local statements = {
                rule("A", 1, DEAD_LETTER, field("code", 1)), rule("Error", 2, DEAD_LETTER),
                rule("B", 3, DEAD_LETTER), include(MAIL, BUS),
                rule("A", 4, DEAD_LETTER, nil, MAIL), rule("Error", 5, DEAD_LETTER, field("code", 1), MAIL),
            }
            assert.equal(4, (line(statements, { error = { type = "A", code = 1 }, consumer = "Mail" })))
            assert.equal(3, (line(statements, failure("B", AT_MAIL))))
            assert.equal(2, (line(statements, failure("C", AT_MAIL))))
            assert.equal(5, (line(statements, { error = { type = "C", code = 1 }, consumer = "Mail" })))
        end)

        it("keep line and scope, are those of the end of the load, and bring no settings", function()
            local statements = {
                include(MAIL, BUS), rule("A", 1, { { word = "retry" } }), setting("dead_letter_queue", "dead", ORDERS),
                rule("A", 2, DEAD_LETTER), setting("max_attempts", 1, ORDERS),
            }
            local at, verdict = line(statements, failure("A", { consumer = "Mail" }))
            assert.equal(2, at)
            assert.equal("bus", verdict.rule.scope)
            assert.equal("error", verdict.queue)
        end)

        it("go through one another, on_cause rules as well", function()
            local statements = {
                include(MAIL, BUS), include(BUS, HOST), rule("A", 1, DEAD_LETTER, nil, HOST),
                cause_rule("B", 2, DEAD_LETTER, nil, HOST), cause_rule("B", 3, DEAD_LETTER),
            }
            assert.equal(1, (line(statements, failure("A", AT_MAIL))))
            local caused = { error = { type = "C", cause = { type = "B" } }, consumer = "Mail" }
            assert.equal(3, (line(statements, caused)))
        end)

        it("have the same rule once", function()
            local statements = {
                include(MAIL, ORDERS), include(MAIL, BUS), include(ORDERS, BUS),
                rule("A", 1, DEAD_LETTER, call "raises"),
            }
            local _, verdict = line(statements, failure("A", AT_MAIL))
            assert.same({ 1 }, lines_of(verdict.failed))
        end)
    end)

    describe("presets", function()
        it("are what the page says they are", function()
            local nservicebus = { { scope = BUS, line = 7, preset = "nservicebus" } }
            local verdict = decide(tree(nservicebus), failure("A", { attempt = 5 }), { no_jitter = true })
            assert.equal("retry", verdict.action)
            assert.is_true(verdict.delay[1] <= 0 and verdict.delay[2] <= 0)
            assert.equal(7, verdict.rule.line)
            verdict = decide(tree(nservicebus), failure("A", { attempt = 6, redeliveries = 2 }))
            assert.is_true(verdict.delay[1] <= 30000 and verdict.delay[2] - verdict.delay[1] < 0.01)
            assert.equal("exhausted", decide(tree(nservicebus), failure("A", { attempt = 6, redeliveries = 3 })).reason)
            local late = failure("A", { attempt = 6, age_ms = 24 * 3600 * 1000 + 1 })
            assert.equal("max_age", decide(tree(nservicebus), late).reason)
            nservicebus[1].options = { immediate = 0, delayed = 1, increase = "1m", unrecoverable = { "B" } }
            assert.equal(1, decide(tree(nservicebus), failure("A")).of)
            assert.equal("unrecoverable", decide(tree(nservicebus), failure("B")).reason)
            local mocha = { { scope = BUS, line = 7, preset = "mocha" } }
            assert.equal("retry", decide(tree(mocha), failure("A", { attempt = 3 })).action)
            assert.equal("redeliver", decide(tree(mocha), failure("A", { attempt = 4 })).action)
        end)
    end)

    describe("an override", function()
        local RETRY = { { word = "retry" }, { word = "then_discard", note = "stale" } }

        local function verdict(answers, more, settings, type)
            local statements = { rule("Error", 1, RETRY), setting("override", answers) }
            for name, value in pairs(settings or {}) do statements[#statements + 1] = setting(name, value) end
            return decide(tree(statements), failure(type or "A", more))
        end

        it("keeps the verdict, or answers", function()
            assert.equal("retry", verdict({ { answer = "keep" } }).action)
            assert.is_nil(verdict({ { answer = "keep" } }).reason)
            local v = verdict({ { answer = "redeliver", delay = "1m" } }, { redeliveries = 3 })
            assert.same({ "redeliver", "override", "redeliver", 4 }, { v.action, v.reason, v.tier, v.step })
            assert.same({ 60000, 60000 }, v.delay)
            assert.is_nil(v.of)
            v = verdict({ { answer = "dead_letter" } })
            assert.same({ "dead_letter", "override", "error" }, { v.action, v.reason, v.queue })
            v = verdict({ { answer = "discard", note = "n" } })
            assert.same({ "discard", "override", "n" }, { v.action, v.reason, v.note })
        end)

        it("may be wrong, and then the verdict stands", function()
            for _, answer in ipairs { "raises", "number", "word" } do
                local v = verdict { { answer = answer } }
                assert.equal("retry", v.action)
                assert.is_true(v.override_failed)
            end
            local worn = { deliveries = 21 }
            assert.is_true(verdict({ { answer = "retry" } }, worn).override_failed)
            assert.equal("discard", verdict({ { answer = "discard" } }, worn).action)
        end)

        it("passes no limit and no fallback", function()
            local again = { { answer = "redeliver", delay = 0 } }
            local v = verdict(again, { calls = 2 }, { max_attempts = 2 })
            assert.same({ "discard", "max_attempts", "stale" }, { v.action, v.reason, v.note })
            v = verdict(again, { age_ms = 60001 }, { max_age = "1m" })
            assert.same({ "discard", "max_age" }, { v.action, v.reason })
            v = verdict(again, { calls = 2 }, { max_attempts = 2 }, "MessageDeserializationError")
            assert.same({ "dead_letter", "max_attempts", "error" }, { v.action, v.reason, v.queue })
            v = verdict(again, { can = { delay = false } })
            assert.same({ "dead_letter", "fallback", "no_delay" }, { v.action, v.reason, v.fallback })
        end)
    end)
end)
