-- The naive evaluator is what the property test trusts; here it is held against expectations written by hand, from
-- the tables and sentences of the language's page.
local naive = require "support.naive"

local BUS = { kind = "bus" }

local function rule(type, line, chain, matcher, scope)
    return { scope = scope or BUS, type = type, line = line, chain = chain, matcher = matcher }
end

local function setting(name, value, scope) return { scope = scope or BUS, setting = name, value = value } end

local DEAD_LETTER = { { word = "dead_letter" } }

local function tree(statements, parents) return { statements = statements, parents = parents or {} } end

local function failure(type, more)
    local f = { error = { type = type } }
    for key, value in pairs(more or {}) do f[key] = value end
    return f
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
        local function line(statements, f)
            local verdict = naive.decide(tree(statements, FAMILY), f)
            return verdict.rule and verdict.rule.line, verdict
        end

        it("takes the nearest type, then the first statement", function()
            local statements = {
                rule("Error", 1, DEAD_LETTER),
                rule("Storage", 2, DEAD_LETTER),
                rule("Database", 3, DEAD_LETTER, { fields = { { "code", "x" } } }),
                rule("Database", 4, DEAD_LETTER),
                rule("Database", 5, DEAD_LETTER, { fields = { { "code", "x" } } }),
            }
            assert.equal(4, (line(statements, failure("Deadlock"))))
            assert.equal(3, (line(statements, { error = { type = "Deadlock", code = "x" } })))
            assert.equal(2, (line(statements, failure("Storage"))))
            assert.equal(1, (line(statements, failure("Unheard"))))
        end)

        it("lets a later plain rule replace an earlier one, where the later stands", function()
            local statements = {
                rule("Storage", 1, DEAD_LETTER),
                rule("Storage", 2, DEAD_LETTER, { fields = { { "code", "x" } } }),
                rule("Storage", 3, DEAD_LETTER),
            }
            assert.equal(2, (line(statements, { error = { type = "Storage", code = "x" } })))
            assert.equal(3, (line(statements, failure("Storage"))))
        end)

        it("uses one scope only", function()
            local consumer = { kind = "consumer", name = "Mail" }
            local statements = { rule("Storage", 1, DEAD_LETTER), rule("Other", 2, DEAD_LETTER, nil, consumer) }
            assert.equal(1, (line(statements, failure("Storage"))))
            local at, verdict = line(statements, failure("Storage", { consumer = "Mail" }))
            assert.is_nil(at)
            assert.equal("no_rule", verdict.reason)
            assert.equal(2, (line(statements, failure("Other", { consumer = "Mail" }))))
        end)

        it("passes over a matcher that raises, and says so", function()
            local statements = {
                rule("Error", 1, DEAD_LETTER, { test = "raises" }),
                rule("Error", 2, DEAD_LETTER, { test = "at_least", name = "status", value = 500 }),
                rule("Error", 3, DEAD_LETTER),
            }
            local at, verdict = line(statements, { error = { type = "A", status = "503" } })
            assert.equal(3, at)
            assert.same({ 1, 2 }, verdict.failed)
            assert.equal(2, (line(statements, { error = { type = "A", status = 503.5 } })))
        end)

        it("counts 0 as passing, and what every error has as fields", function()
            assert.equal(1, (line({ rule("Error", 1, DEAD_LETTER, { test = "zero" }) }, failure("A"))))
            assert.is_nil((line({ rule("Error", 1, DEAD_LETTER, { test = "never" }) }, failure("A"))))
            assert.equal(1, (line({ rule("Error", 1, DEAD_LETTER, { fields = { { "stack", "" } } }) }, failure("A"))))
            assert.is_nil((line({ rule("Error", 1, DEAD_LETTER, { fields = { { "code", "" } } }) }, failure("A"))))
        end)
    end)

    describe("chains", function()
        local function verdict(chain, more)
            return naive.decide(tree { rule("Error", 1, chain) }, failure("A", more))
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
            return naive.decide(tree(statements), failure("A", more)).reason
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

        it("resolves each by itself, the nearest word counting", function()
            local mail = { kind = "consumer", name = "Mail" }
            local statements = {
                setting("max_age", "1m"), setting("max_attempts", 1), setting("max_attempts", 5),
                setting("max_age", false, mail), setting("max_deliveries", 2, mail),
            }
            local t, f = tree(statements), failure("A", { consumer = "Mail" })
            assert.is_nil(naive.setting(t, f, "max_age"))
            assert.equal(5, naive.setting(t, f, "max_attempts"))
            assert.equal(2, naive.setting(t, f, "max_deliveries"))
            assert.equal("1m", naive.setting(t, failure("A"), "max_age"))
        end)

        it("dead-letters what can't be read, unless a rule in force names it", function()
            local t = tree { rule("Error", 1, CHAIN) }
            assert.equal("unrecoverable", naive.decide(t, failure("MessageDeserializationError")).reason)
            local sent = { error = { type = "JsonError", lineage = { "MessageDeserializationError" } } }
            assert.equal("unrecoverable", naive.decide(t, sent).reason)
            t.statements[2] = rule("MessageDeserializationError", 2, CHAIN)
            assert.equal(2, naive.decide(t, sent).rule.line)
        end)
    end)

    describe("delays", function()
        local function range(word, args, step, no_jitter)
            local counters = word == "retry" and { attempt = step } or { redeliveries = step - 1 }
            local t = tree { rule("Error", 1, { { word = word, args = args } }) }
            local verdict = naive.decide(t, failure("A", counters), { no_jitter = no_jitter })
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

        it("jitters around the delay, never over the cap", function()
            local delay = range("retry", { attempts = 1000 }, 1)
            assert.is_true(math.abs(delay[1] - 150) < 0.01 and math.abs(delay[2] - 250) < 0.01)
            delay = range("retry", { attempts = 1000 }, 1000)
            assert.is_true(math.abs(delay[1] - 22500) < 0.01 and math.abs(delay[2] - 30000) < 0.01)
        end)
    end)
end)
