-- What a policy says of a failure, through the Lua module: which rule decides, which limit ends it, and how long it
-- waits. How rules and arguments are written is in the specs beside this one.
local mulligan = require "mulligan"

local function load(text, options)
    local policy, message = mulligan.load_text('local policy = require "mulligan.policy"\n' .. text, options)
    return assert(policy, message)
end

-- A verdict on a type, with whatever else the failure says.
local function verdict(policy, type, more, options)
    local failure = { error = { type = type } }
    for key, value in pairs(more or {}) do failure[key] = value end
    return assert(policy:decide(failure, options))
end

-- The line of the rule that decides; the policy's first own line is 2.
local function line(policy, type, more)
    local rule = verdict(policy, type, more).rule
    return rule and rule.line
end

local FAMILY = 'policy.errors { Deadlock = "Database", Database = "Storage", Timeout = "Network" } '

describe("matching", function()
    it("takes the rules of the nearest type", function()
        local policy = load(FAMILY .. [[local bus = policy.bus()
            bus:default():dead_letter()
            bus:on("Storage"):dead_letter()
            bus:on("Database"):dead_letter()
        ]])
        assert.equal(5, line(policy, "Deadlock"))
        assert.equal(5, line(policy, "Database"))
        assert.equal(4, line(policy, "Storage"))
        assert.equal(3, line(policy, "Unheard"))
        assert.equal(3, line(policy, "Error"))
    end)

    it("takes the first statement among those for one type", function()
        local policy = load [[local bus = policy.bus()
            bus:on("Http", { status = 503 }):retry()
            bus:on("Http", { method = "GET" }):retry()
            bus:on("Http"):dead_letter()
            bus:on("Http", { status = 404 }):discard()
        ]]
        assert.equal(3, line(policy, nil, { error = { type = "Http", status = 503, method = "GET" } }))
        assert.equal(4, line(policy, nil, { error = { type = "Http", status = 404, method = "GET" } }))
        assert.equal(5, line(policy, nil, { error = { type = "Http", status = 404 } }))
    end)

    it("goes on to the parent's rules where no matcher of the type passes", function()
        local policy = load(FAMILY .. [[local bus = policy.bus()
            bus:on("Deadlock", { code = "40P01" }):retry()
            bus:on("Storage"):dead_letter()
        ]])
        assert.equal(3, line(policy, nil, { error = { type = "Deadlock", code = "40P01" } }))
        assert.equal(4, line(policy, "Deadlock"))
    end)

    it("lets a plain rule replace an earlier one, standing where the later statement ran", function()
        local policy = load [[local bus = policy.bus()
            bus:on("A"):dead_letter("first")
            bus:on("A", { code = 1 }):dead_letter("matcher")
            bus:on("A"):dead_letter("later")
        ]]
        assert.equal("matcher", verdict(policy, nil, { error = { type = "A", code = 1 } }).queue)
        assert.equal("later", verdict(policy, "A").queue)
        assert.equal(2, policy:rules())
    end)

    it("never replaces rules with matchers, nor those of another scope", function()
        local policy = load [[local bus = policy.bus()
            bus:on("A", { code = 1 }):dead_letter("first")
            bus:on("A", { code = 1 }):dead_letter("second")
            policy.host():on("A"):dead_letter("host")
            bus:on("A"):dead_letter("plain")
        ]]
        assert.equal(4, policy:rules())
        assert.equal("first", verdict(policy, nil, { error = { type = "A", code = 1 } }).queue)
        assert.equal("plain", verdict(policy, "A").queue)
    end)

    it("follows a sent lineage, then the declared parents of its last name", function()
        local policy = load(FAMILY .. [[local bus = policy.bus()
            bus:on("Storage"):dead_letter()
            bus:on("Network"):dead_letter()
            bus:on("Psycopg"):dead_letter()
            bus:default():dead_letter()
        ]])
        local function by(type, ...) return line(policy, nil, { error = { type = type, lineage = { ... } } }) end
        assert.equal(3, by("Unheard", "Deadlock"))
        assert.equal(4, by("Deadlock", "Timeout"))
        assert.equal(5, by("Deadlock", "Psycopg", "Timeout"))
        assert.equal(3, by("Deadlock", "Error"))
        assert.equal(3, by("Deadlock", "Deadlock"))
        assert.equal(3, by("Database", "Deadlock"))
        assert.equal(6, by("Deadlock", "Unheard"))
        assert.equal(3, by("Unheard", "Deadlock", "Unheard"))
        assert.equal(6, by("Error", "Error"))
    end)

    it("says that no rule matched where there is none", function()
        local v = verdict(load [[policy.bus():on("A"):retry()]], "B")
        assert.equal("dead_letter", v.action)
        assert.equal("no_rule", v.reason)
        assert.equal("error", v.queue)
        assert.is_nil(v.rule)
        assert.equal("no_rule", verdict(load "", "B").reason)
    end)
end)

describe("a matcher that raises", function()
    local policy, events

    before_each(function()
        events = {}
        policy = load([[local bus = policy.bus()
            bus:on("A", function(err) return err.response.status == 503 end):retry(7)
            bus:on("A", function(err) error("on purpose") end):retry(8)
            bus:on("A", function(err, ctx) return ctx.message.headers.tenant == "acme" end):retry(9)
            bus:default():dead_letter("parked")
        ]], { event = function(event) events[#events + 1] = event end })
    end)

    it("is no match, and the decision goes on", function()
        assert.equal("parked", verdict(policy, "A").queue)
        local v = verdict(policy, "A", { message = { headers = { tenant = "acme" } } })
        assert.equal(5, v.rule.line)
        assert.equal(9, v.of)
    end)

    it("is told of, with the rule and the reason, and loses nothing of the failure", function()
        verdict(policy, "A", { consumer = "Mail", attempt = 2 })
        assert.equal(2, #events)
        for i, event in ipairs(events) do
            assert.equal("matcher_failed", event.name)
            assert.equal(2 + i, event.rule.line)
            assert.equal("A", event.failure.error.type)
            assert.equal("Mail", event.failure.consumer)
            assert.equal(2, event.failure.attempt)
        end
        assert.truthy(events[1].text:find("response", 1, true))
        assert.truthy(events[2].text:find("on purpose", 1, true))
    end)

    it("isn't asked where an earlier rule passes", function()
        verdict(policy, "B")
        assert.equal(0, #events)
    end)
end)

describe("scopes", function()
    local TEXT = [[
        policy.host():on("A"):dead_letter("host")
        policy.host():on("B"):dead_letter("host")
        policy.bus():on("A"):dead_letter("bus")
        policy.transport("orders"):on("A"):dead_letter("transport")
        policy.consumer("Mail"):on("A"):dead_letter("consumer")
        policy.consumer("Idle"):max_attempts(3)
    ]]

    it("replace each other as a whole, the nearest with a rule counting", function()
        local policy = load(TEXT)
        local function queue(type, consumer, transport)
            local v = verdict(policy, type, { consumer = consumer, transport = transport })
            return v.reason == "rule" and v.queue or v.reason
        end
        assert.equal("bus", queue("A"))
        assert.equal("bus", queue("A", "Nobody", "nowhere"))
        assert.equal("transport", queue("A", "Nobody", "orders"))
        assert.equal("consumer", queue("A", "Mail", "orders"))
        assert.equal("transport", queue("A", "Idle", "orders"))
        assert.equal("no_rule", queue("B"))
        assert.equal("no_rule", queue("B", "Mail"))
        assert.equal("host", verdict(load 'policy.host():on("B"):dead_letter("host")', "B").queue)
    end)

    it("are named in the verdict", function()
        local policy = load(TEXT)
        assert.equal("bus", verdict(policy, "A").rule.scope)
        assert.equal("transport:orders", verdict(policy, "A", { transport = "orders" }).rule.scope)
        assert.equal("consumer:Mail", verdict(policy, "A", { consumer = "Mail" }).rule.scope)
        assert.equal("host", verdict(load 'policy.host():default():retry()', "B").rule.scope)
    end)

    it("give settings one by one, the nearest that sets it and its last word", function()
        local policy = load [[
            policy.host():dead_letter_queue("host-dead")
            policy.host():max_deliveries(5)
            policy.bus():dead_letter_queue("bus-dead")
            policy.bus():dead_letter_queue("bus-dead-2")
            policy.transport("orders"):max_deliveries(3)
            policy.consumer("Mail"):dead_letter_queue("mail-dead")
            policy.consumer("Plain"):max_deliveries(false)
            policy.consumer("Plain"):dead_letter_queue(false)
        ]]
        local function queue(more) return verdict(policy, "A", more).queue end
        local function over(deliveries, consumer, transport)
            local more = { deliveries = deliveries, consumer = consumer, transport = transport }
            return verdict(policy, "A", more).reason == "max_deliveries"
        end
        assert.equal("bus-dead-2", queue())
        assert.equal("bus-dead-2", queue { transport = "orders" })
        assert.equal("mail-dead", queue { consumer = "Mail", transport = "orders" })
        assert.equal("error", queue { consumer = "Plain", transport = "orders" })
        assert.is_false(over(5))
        assert.is_true(over(6))
        assert.is_true(over(4, "Mail", "orders"))
        assert.is_false(over(1000, "Plain", "orders"))
    end)
end)

describe("the reason of an end", function()
    local BOTH = [[policy.bus():default():retry(2, 0):then_redeliver(2, "1m"):then_dead_letter("parked") ]]

    local function reason(policy, more, type)
        local v = verdict(policy, type or "A", more)
        return v.reason, v.queue, v
    end

    it("is the rule where the chain is just that", function()
        local policy = load [[
            policy.bus():on("A"):dead_letter()
            policy.bus():on("B"):discard("seen before")
            policy.bus():on("C"):discard()
        ]]
        local v = verdict(policy, "A")
        assert.same({ "dead_letter", "rule", "error" }, { v.action, v.reason, v.queue })
        v = verdict(policy, "B")
        assert.same({ "discard", "rule", "seen before" }, { v.action, v.reason, v.note })
        assert.is_nil(v.queue)
        assert.is_nil(verdict(policy, "C").note)
    end)

    it("is exhausted once both tiers are through", function()
        local policy = load(BOTH)
        assert.is_nil(reason(policy, { attempt = 2, redeliveries = 9 }))
        assert.is_nil(reason(policy, { attempt = 3, redeliveries = 1 }))
        local why, queue, v = reason(policy, { attempt = 3, redeliveries = 2 })
        assert.same({ "exhausted", "parked" }, { why, queue })
        assert.equal(2, v.rule.line)
        assert.is_nil(v.tier)
        assert.is_nil(v.step)
        assert.is_nil(v.of)
        assert.equal(0, v.delay_ms)
    end)

    it("is exhausted at once for a tier of no attempts", function()
        local v = verdict(load [[policy.bus():default():retry(0):then_discard("never")]], "A")
        assert.same({ "discard", "exhausted", "never" }, { v.action, v.reason, v.note })
    end)

    it("is max_attempts from the n-th call on, over every delivery, retries too", function()
        local policy = load(BOTH .. "policy.bus():max_attempts(4)")
        assert.is_nil(reason(policy, { attempt = 1, calls = 3 }))
        assert.equal("max_attempts", (reason(policy, { attempt = 1, calls = 4 })))
        assert.equal("max_attempts", (reason(policy, { attempt = 1, calls = 5 })))
        assert.equal("parked", (select(2, reason(policy, { attempt = 1, calls = 4 }))))
        assert.is_nil(reason(policy, { attempt = 2, redeliveries = 1 })) -- 3 calls, where none are given
        assert.equal("max_attempts", (reason(policy, { attempt = 2, redeliveries = 2 })))
        assert.equal("exhausted", (reason(policy, { attempt = 3, redeliveries = 2, calls = 9 })))
    end)

    it("is max_age where the first failure lies strictly longer back, for redeliveries only", function()
        local policy = load(BOTH .. [[policy.bus():max_age("1m")]])
        assert.is_nil(reason(policy, { attempt = 3, age_ms = 60000 }))
        assert.equal("max_age", (reason(policy, { attempt = 3, age_ms = 60001 })))
        assert.equal("parked", (select(2, reason(policy, { attempt = 3, age_ms = 60001 }))))
        assert.is_nil(reason(policy, { attempt = 2, age_ms = 60001 }))
        local strict = load(BOTH .. [[policy.bus():max_age(0)]])
        assert.is_nil(reason(strict, { attempt = 3, age_ms = 0 }))
        assert.equal("max_age", (reason(strict, { attempt = 3, age_ms = 1 })))
    end)

    it("is the first that holds", function()
        local policy = load(BOTH .. [[policy.bus():max_age("1m") policy.bus():max_attempts(4)]])
        local late = { attempt = 3, age_ms = 60001, calls = 4 }
        assert.equal("max_attempts", (reason(policy, late)))
        late.redeliveries = 2
        assert.equal("exhausted", (reason(policy, late)))
        late.deliveries = 21
        assert.equal("max_deliveries", (reason(policy, late)))
        late.redeliveries, late.deliveries = 0, 1
        late.can = { delay = false }
        assert.equal("max_attempts", (reason(policy, late)))
    end)

    it("is max_deliveries above 20, or what is set, before any rule", function()
        local policy = load(BOTH)
        assert.is_nil(reason(policy, { deliveries = 20 }))
        local why, queue, v = reason(policy, { deliveries = 21 })
        assert.same({ "max_deliveries", "error" }, { why, queue })
        assert.is_nil(v.rule)
        policy = load(BOTH .. "policy.bus():max_deliveries(1)")
        assert.is_nil(reason(policy, { deliveries = 1 }))
        assert.equal("max_deliveries", (reason(policy, { deliveries = 2 })))
        assert.equal("max_deliveries", (reason(policy, { deliveries = 2 }, "MessageDeserializationError")))
    end)

    it("is unrecoverable for what can't be read, through the lineage too", function()
        local policy = load [[
            policy.errors { JsonError = "MessageDeserializationError" }
            policy.bus():dead_letter_queue("dead")
            policy.bus():default():retry():then_dead_letter("parked")
        ]]
        local why, queue, v = reason(policy, nil, "MessageDeserializationError")
        assert.same({ "unrecoverable", "dead" }, { why, queue })
        assert.is_nil(v.rule)
        assert.equal("unrecoverable", (reason(policy, nil, "JsonError")))
        local sent = { error = { type = "Csv", lineage = { "MessageDeserializationError" } } }
        assert.equal("unrecoverable", (reason(policy, sent)))
        assert.is_nil(reason(policy, nil, "Json"))
    end)

    it("isn't unrecoverable where the rules in force name the type", function()
        local policy = load [[
            policy.errors { JsonError = "MessageDeserializationError" }
            policy.bus():default():retry()
            policy.consumer("Mail"):on("MessageDeserializationError", { line = 1 }):redeliver()
            policy.consumer("Json"):on("JsonError"):redeliver()
        ]]
        assert.equal("unrecoverable", (reason(policy, nil, "JsonError")))
        assert.equal("unrecoverable", (reason(policy, { consumer = "Json" }, "JsonError")))
        assert.equal("no_rule", (reason(policy, { consumer = "Mail" }, "JsonError")))
        local readable = { consumer = "Mail", error = { type = "JsonError", line = 1 } }
        assert.equal("redeliver", verdict(policy, nil, readable).action)
    end)

    it("is the fallback where the transport can't, to the default queue, whatever the chain's end", function()
        local policy = load [[
            policy.bus():dead_letter_queue("dead")
            policy.bus():on("A"):retry(2):then_redeliver():then_discard("stale")
            policy.bus():on("B"):redeliver { 0 }:then_dead_letter("parked")
        ]]
        local why, queue, v = reason(policy, { can = { retry = false } })
        assert.same({ "fallback", "dead", "no_retry", "dead_letter" }, { why, queue, v.fallback, v.action })
        assert.equal(3, v.rule.line)
        assert.is_nil(v.tier)
        assert.is_nil(v.note)
        why, queue, v = reason(policy, { attempt = 3, can = { delay = false } })
        assert.same({ "fallback", "dead", "no_delay" }, { why, queue, v.fallback })
        why, queue, v = reason(policy, { can = { delay = false } }, "B")
        assert.same({ "fallback", "dead", "no_delay" }, { why, queue, v.fallback })
        -- What isn't due doesn't matter.
        assert.equal("retry", verdict(policy, "A", { can = { delay = false } }).action)
        assert.equal("redeliver", verdict(policy, "A", { attempt = 3, can = { retry = false } }).action)
        assert.equal("discard", verdict(policy, "A", { attempt = 3, redeliveries = 3, can = { delay = false } }).action)
    end)
end)

describe("counters", function()
    it("are the message's, not the rule's", function()
        local policy = load [[policy.bus():on("A"):retry(3) policy.bus():on("B"):retry(2)]]
        assert.equal("retry", verdict(policy, "A", { attempt = 3 }).action)
        assert.equal("exhausted", verdict(policy, "B", { attempt = 3 }).reason)
    end)

    it("give the step and how many there are", function()
        local policy = load [[policy.bus():default():retry(2):then_redeliver(5)]]
        local v = verdict(policy, "A", { attempt = 2 })
        assert.same({ "retry", 2, 2 }, { v.tier, v.step, v.of })
        v = verdict(policy, "A", { attempt = 3, redeliveries = 4 })
        assert.same({ "redeliver", 5, 5 }, { v.tier, v.step, v.of })
    end)

    it("may be huge", function()
        local huge = math.maxinteger
        local policy = load [[policy.bus():default():retry(1000):then_redeliver(1000)]]
        assert.equal("exhausted", verdict(policy, "A", { attempt = huge, redeliveries = huge }).reason)
        assert.equal("exhausted", verdict(policy, "A", { attempt = huge, redeliveries = huge, age_ms = huge }).reason)
        assert.equal("max_deliveries", verdict(policy, "A", { deliveries = huge }).reason)
    end)
end)

describe("delays", function()
    local function delay(policy, more, options) return verdict(policy, "A", more, options).delay_ms end

    it("are rounded up to whole milliseconds, but not by what doubles lose", function()
        local policy = load [[policy.bus():default():retry { attempts = 5, delay = "100ms", factor = 1.1, jitter = 0 }]]
        for attempt, ms in ipairs { 100, 110, 121, 134, 147 } do -- 133.1, 146.41
            assert.equal(ms, delay(policy, { attempt = attempt }))
        end
    end)

    it("saturate at the cap, whatever the attempt", function()
        local policy = load [[
            policy.bus():default():retry(1000)
                :then_redeliver { attempts = 1000, delay = "365d", max_delay = "365d" }
        ]]
        local plain = { no_jitter = true }
        for _, attempt in ipairs { 9, 64, 65, 1000 } do
            assert.equal(30000, delay(policy, { attempt = attempt }, plain))
        end
        assert.equal(365 * 86400000, delay(policy, { attempt = 1001, redeliveries = 999 }, plain))
        for attempt = 900, 1000 do
            local ms = delay(policy, { attempt = attempt, message = { id = "m" .. attempt } })
            assert.is_true(ms >= 22500 and ms <= 30000)
        end
    end)

    it("are the same for the same failure, and with the same seed", function()
        local policy = load [[policy.bus():default():retry { attempts = 1000, delay = "1h", max_delay = "2h" }]]
        local other = load [[policy.bus():default():retry { attempts = 1000, delay = "1h", max_delay = "2h" } -- other]]
        local one = { message = { id = "m-1" } }
        assert.equal(delay(policy, one), delay(policy, one))
        assert.equal(delay(policy, one), delay(other, one))
        assert.equal(delay(policy, one, { seed = 7 }), delay(policy, one, { seed = 7 }))
        assert.equal(delay(policy, one, { seed = 0 }), delay(policy, one))
        assert.equal(delay(policy, {}), delay(policy, { message = { id = "" } }))
        local alike = {
            message = { id = "m-1", type = "T", headers = { a = "b" } }, transport = "orders", age_ms = 5, calls = 9,
            deliveries = 2, error = { type = "B", message = "else" },
        }
        assert.equal(delay(policy, one), delay(policy, alike))
    end)

    it("differ with each thing that chance is drawn from", function()
        local policy = load [[
            policy.bus():default():retry { attempts = 1000, delay = "100d", backoff = "constant", max_delay = "365d" }
                :then_redeliver { attempts = 1000, delay = "100d", backoff = "constant", max_delay = "365d" }
        ]]
        local base = delay(policy, {})
        assert.not_equal(base, delay(policy, { message = { id = "m-2" } }))
        assert.not_equal(base, delay(policy, { consumer = "Mail" }))
        assert.not_equal(base, delay(policy, { attempt = 2 }))
        assert.not_equal(base, delay(policy, { redeliveries = 1 }))
        assert.not_equal(base, delay(policy, { attempt = 1001 }))
        assert.not_equal(base, delay(policy, {}, { seed = 1 }))
    end)

    it("spread over the whole range of their jitter", function()
        local policy = load [[policy.bus():default():retry { delay = "10ms", jitter = 0.5 }]]
        local seen = {}
        for i = 1, 1000 do seen[delay(policy, { message = { id = "m-" .. i } })] = true end
        for ms = 5, 15 do
            assert.is_true(seen[ms])
            seen[ms] = nil
        end
        assert.is_nil(next(seen))
    end)
end)
