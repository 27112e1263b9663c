-- The arguments of retry and redeliver: every form, every default, delays, caps and jitter.
local loading = require "support.loading"

local chain, statements = loading.chain, loading.statements

local EXHAUSTED = ", dead_letter error exhausted"

describe("the forms of retry and redeliver", function()
    local rows = {
        -- ()
        { ":retry()", "retry 200 400 800" },
        { ":redeliver()", "redeliver 300000 900000 1800000" },
        -- (n)
        { ":retry(5)", "retry 200 400 800 1600 3200" },
        { ":redeliver(4)", "redeliver 300000 600000 900000 1200000" },
        { ":redeliver(3)", "redeliver 300000 600000 900000" },
        { ":retry(2.0)", "retry 200 400" },
        -- (n, delay)
        { ':retry(3, "1s")', "retry 1000 2000 4000" },
        { ':redeliver(3, "1m")', "redeliver 60000 120000 180000" },
        { ":retry(3, 0)", "retry 0 0 0" },
        { ":retry(2, policy.seconds(1.5))", "retry 1500 3000" },
        -- (n, delay, backoff)
        { ':retry(3, "1s", "constant")', "retry 1000 1000 1000" },
        { ':retry(3, "1s", "linear")', "retry 1000 2000 3000" },
        { ':retry(3, "1s", "exponential")', "retry 1000 2000 4000" },
        { ':redeliver(3, "1m", "constant")', "redeliver 60000 60000 60000" },
        { ':redeliver(3, "1m", "linear")', "redeliver 60000 120000 180000" },
        { ':redeliver(3, "1m", "exponential")', "redeliver 60000 120000 240000" },
        -- a list
        { ':retry { "100ms", "500ms", "2s" }', "retry 100 500 2000" },
        { ':redeliver { "30s", "5m", "30m" }', "redeliver 30000 300000 1800000" },
        { ':retry { "1h", max_delay = "1m" }', "retry 60000" },
        { ":retry { 0, policy.seconds(2) }", "retry 0 2000" },
        -- by name
        { ":retry { attempts = 2 }", "retry 200 400" },
        { ':retry { delay = "1s" }', "retry 1000 2000 4000" },
        { ':retry { backoff = "constant" }', "retry 200 200 200" },
        { ":retry { factor = 3 }", "retry 200 600 1800" },
        { ':retry { factor = 1.5, delay = "1s" }', "retry 1000 1500 2250" },
        { ':retry { attempts = 4, delay = "10s", max_delay = "30s" }', "retry 10000 20000 30000 30000" },
        { ":retry { jitter = 0 }", "retry 200 400 800" },
        { ":redeliver { attempts = 3 }", "redeliver 300000 600000 900000" },
        { ':redeliver { delay = "1m" }', "redeliver 60000 120000 180000" },
        { ':redeliver { backoff = "linear" }', "redeliver 300000 600000 900000" },
        { ':redeliver { backoff = "exponential", factor = 3 }', "redeliver 300000 900000 2700000" },
        { ":redeliver { jitter = 0.5 }", "redeliver 300000 900000 1800000" },
        { ':redeliver { jitter = "full" }', "redeliver 300000 900000 1800000" },
        { ':redeliver { hint = "x" }', "redeliver 300000 900000 1800000" },
        { ':redeliver { jitter = "decorrelated" }', "redeliver 300000 300000 300000" },
        { ':redeliver { jitter = "decorrelated", delay = "2h" }', "redeliver 3600000 3600000 3600000" },
        { ':retry { jitter = "decorrelated", delay = "1s", attempts = 2 }', "retry 1000 1000" },
        { ':redeliver { max_delay = "10m" }', "redeliver 300000 600000 600000" },
        { ':retry { attempts = 1, delay = "9ms", backoff = "linear", max_delay = "1s", jitter = 1 }', "retry 9" },
        -- caps where none is named
        { ':retry(3, "20s")', "retry 20000 30000 30000" },
        { ':redeliver(3, "30m")', "redeliver 1800000 3600000 3600000" },
        { ':retry { "2h" }', "retry 7200000" },
        { ':redeliver { "2d" }', "redeliver 172800000" },
    }
    for _, row in ipairs(rows) do
        it(row[1], function()
            assert.equal(row[2] .. EXHAUSTED, chain(row[1]))
        end)
    end

    it("have 0 for off", function()
        assert.equal("dead_letter error exhausted", chain ":retry(0)")
        assert.equal("redeliver 300000 900000 1800000" .. EXHAUSTED, chain ":retry(0):then_redeliver()")
        assert.equal("dead_letter error exhausted", chain ":redeliver { attempts = 0 }")
        assert.equal("retry 200 400 800" .. EXHAUSTED, chain ":retry():then_redeliver(0)")
    end)

    it("go up to 1000 attempts, and no delay passes its cap", function()
        local policy = loading.good(statements 'bus:default():retry(1000, "1ms", "exponential")')
        local steps = loading.timeline(policy)
        assert.equal(1001, #steps)
        assert.equal("retry 16384", steps[15])
        assert.equal("retry 30000", steps[16])
        assert.equal("retry 30000", steps[1000])
        policy:close()
    end)

    it("round a computed delay up to milliseconds", function()
        assert.equal("retry 3 5 7" .. EXHAUSTED, chain ':retry { delay = "3ms", factor = 1.5 }')
        assert.equal("retry 100 110 121" .. EXHAUSTED, chain ':retry { delay = "100ms", factor = 1.1 }')
    end)
end)

describe("jitter", function()
    -- The least and greatest delay of a first retry or redelivery over many seeds.
    local function spread(text)
        local policy = loading.good(statements('bus:on("TimeoutError")' .. text))
        local least, most = math.huge, -math.huge
        for seed = 1, 2000 do
            local verdict = policy:decide({ error = { type = "TimeoutError" } }, { seed = seed })
            least, most = math.min(least, verdict.delay_ms), math.max(most, verdict.delay_ms)
        end
        policy:close()
        return least, most
    end

    local function assert_spread(low, high, text)
        local least, most = spread(text)
        local slack = (high - low) // 50
        assert.is_true(least >= low and least <= low + slack, ("%d for %d"):format(least, low))
        assert.is_true(most <= high and most >= high - slack, ("%d for %d"):format(most, high))
    end

    local rows = {
        { ":retry()", 150, 250 },
        { ":redeliver()", 225000, 375000 },
        { ':retry(3, "10s")', 7500, 12500 },
        { ':retry { delay = "10s", jitter = 0.5 }', 5000, 15000 },
        { ':retry { delay = "10s", jitter = 1 }', 0, 20000 },
        { ':retry { delay = "10s", jitter = 0 }', 10000, 10000 },
        { ':retry { "10s" }', 10000, 10000 },
        { ':retry { "10s", jitter = 0.1 }', 9000, 11000 },
        { ':retry { "10s", jitter = 0.5, max_delay = "12s" }', 5000, 12000 },
        { ':retry(3, "30s")', 22500, 30000 },
        { ':redeliver(3, "1h")', 2700000, 3600000 },
        { ":redeliver { jitter = 0.5 }", 150000, 450000 },
        { ':retry { delay = "10s", jitter = "full" }', 0, 10000 },
        { ':redeliver { jitter = "full" }', 0, 300000 },
        { ':retry { "10s", jitter = "full" }', 0, 10000 },
        { ':retry { delay = "1m", jitter = "full" }', 0, 30000 },
        { ':retry { delay = "1s", jitter = "decorrelated" }', 1000, 3000 },
        { ':retry { jitter = "decorrelated" }', 200, 600 },
        { ':redeliver { jitter = "decorrelated" }', 300000, 900000 },
        { ':retry { delay = "1s", jitter = "decorrelated", max_delay = "2s" }', 1000, 2000 },
    }
    for _, row in ipairs(rows) do
        it(("of %s is drawn from %d to %d"):format(row[1], row[2], row[3]), function()
            assert_spread(row[2], row[3], row[1])
        end)
    end
end)

describe("a hint", function()
    -- The delays of the first retry without jitter, for several values of the field.
    local function delays(chain_text, ...)
        local policy = loading.good(statements('bus:on("A")' .. chain_text))
        local list = {}
        for i, value in ipairs { ... } do
            local error = { type = "A", after = value ~= "none" and value or nil }
            list[i] = policy:decide({ error = error }, { no_jitter = true }).delay_ms
        end
        policy:close()
        return list
    end

    it("names a field whose seconds are waited where they are longer, up to the cap", function()
        assert.same({ 200, 200, 1500, 20000, 30000, 200, 200, 200 }, delays(':retry { hint = "after" }', "none", 0.1,
            1.5, 20, 31, -5, "20", true))
        assert.same({ 1000, 5000 }, delays(':retry { "1s", hint = "after" }', 0, 5))
        assert.same({ 300000, 600000 }, delays(':redeliver { hint = "after" }', 1, 600))
    end)
end)

describe("a span of time", function()
    local function age(text)
        return loading.good(statements(("bus:default():retry(1, %s)"):format(text)))
    end

    local good = {
        ['"0ms"'] = 0, ['"1ms"'] = 1, ['"200ms"'] = 200, ['"1.5s"'] = 1500, ['"0.001s"'] = 1, ['"007s"'] = 7000,
        ['"0.1s"'] = 100, ['"1m1ms"'] = 30000, ['"20s5ms"'] = 20005, ['"1.50s"'] = 1500, ['"0.5m"'] = 30000,
        ["policy.seconds(0)"] = 0, ["policy.seconds(0.2)"] = 200, ["policy.seconds(7)"] = 7000, ["0"] = 0, ["0.0"] = 0,
        ["policy.seconds(1.001)"] = 1001, ["-0.0"] = 0,
    }
    for text, ms in pairs(good) do
        it(text .. " is good", function()
            local policy = age(text)
            assert.same({ "retry " .. ms, "dead_letter error exhausted" }, loading.timeline(policy))
            policy:close()
        end)
    end

    it("may last 365 days", function()
        for _, text in ipairs({ "365d", "364d24h", "8760h", "364d23h59m59s1000ms" }) do
            assert.equal("redeliver 31536000000" .. EXHAUSTED, chain((':redeliver { "%s" }'):format(text)))
        end
    end)

    local bad = {
        '""', '"5"', '"s"', '"-5s"', '"+5s"', '" 5s"', '"5s "', '"5 s"', '"5S"', '".5s"', '"5.s"', '"1.5"', '"5sec"',
        '"5y"', '"1m1h"', '"1s1s"', '"1ms1s"', '"0.5ms"', '"1.0005s"', '"365d1ms"', '"366d"', '"99999999999999999999d"',
        '"1e3s"', '"0x5s"', '"5s\\0"', '"0.00000000001d"', "200", "-1", "1.5", "true", "nil", "{}",
        "policy.seconds(-1)", 'policy.seconds("5")', "policy.seconds(0.0001)", "policy.seconds(31536001)",
        "policy.seconds(0/0)",
        "policy.seconds()", "policy.seconds(1, 2)", "math.huge", "1/0", "print",
    }
    for _, text in ipairs(bad) do
        it(text .. " is refused in its line", function()
            local lines = loading.refused(statements(("\nbus:default():retry(1,\n%s)"):format(text)))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:[23]: ", lines[1])
        end)
    end

    it("says how a bare number or a slip might be meant", function()
        local hints = {
            ["200"] = '"200ms" or "200s"?', ["40000000"] = 'unit; "40000000ms"?',
            ["1.5"] = '"1.5s"?', ['"5"'] = '"5ms" or "5s"?', ['"5 S"'] = '"5s"?',
            ['".5s"'] = '"0.5s"?', ['"1.s"'] = '"1s"?', ['"30min"'] = '"30m"?', ['"1 day"'] = '"1d"?',
            ['"5 sec"'] = '"5s"?', ['"10 seconds"'] = '"10s"?', ['"2 Hours 30 Mins"'] = '"2h30m"?',
            ['"1hr"'] = '"1h"?', ['"1 minute"'] = '"1m"?', ['"1.5 days"'] = '"1.5d"?', ['"20 msecs"'] = '"20ms"?',
            ['"7 milliseconds"'] = '"7ms"?',
        }
        for text, hint in pairs(hints) do
            local lines = loading.refused(statements(("bus:default():retry(1, %s)"):format(text)))
            assert.matches(hint, lines[1], 1, true)
        end
        for _, text in ipairs({ "5 parsecs", "1 month", "sec", "", "400 days" }) do
            local lines = loading.refused(statements(("bus:default():retry(1, %q)"):format(text)))
            assert.is_nil(lines[1]:find("?", 1, true), lines[1])
        end
    end)
end)

describe("an argument", function()
    local rows = {
        { ":retry(-1)", "attempts must be a whole number from 0 to 1000, not -1" },
        { ":retry(1001)", "attempts must be a whole number from 0 to 1000, not 1001" },
        { ":retry(1.5)", "attempts must be a whole number from 0 to 1000, not 1.5" },
        { ':retry("3")', 'attempts must be a whole number from 0 to 1000, not "3"' },
        { ":retry(nil)", "attempts must be a whole number from 0 to 1000, not nil" },
        { ":retry(0/0)", "attempts must be a whole number" },
        { ':retry("200ms")', 'the delay comes second: retry(3, "200ms")' },
        { ":retry(3, 200)", '"200ms" or "200s"?' },
        { ':retry(3, nil, "linear")', "delay nil is no span of time" },
        { ':retry(3, "1s", "liner")', 'did you mean "linear"?' },
        { ':retry(3, "1s", "linear", 2)', "retry has 4 arguments; it takes attempts, delay and backoff" },
        { ":retry({}, 3)", "retry has 2 arguments" },
        { ":retry {}", "an empty table" },
        { ":retry { atempts = 3 }", 'unknown option "atempts"; did you mean attempts?' },
        { ":retry { wait = 3 }", 'unknown option "wait"; there are attempts, delay, backoff' },
        { ":retry { [print] = 3 }", "unknown option: a function" },
        { ":retry { [0] = 3 }", "a list of delays has the keys 1, 2" },
        { ':retry { "1s", nil, "3s" }', "without a hole, not 3" },
        { ':retry { "1s", 5 }', 'delay 2: 5 has no unit; "5ms" or "5s"?' },
        { ':retry { "1s", attempts = 3 }',
            "attempts can't stand beside a list of delays; jitter, max_delay and hint can" },
        { ':retry { "1s", backoff = "linear" }', "backoff can't stand beside a list of delays" },
        { ':retry { "1s", factor = 2 }', "factor can't stand beside a list of delays" },
        { ':retry { "1s", delay = "1s" }', "delay can't stand beside a list of delays" },
        { ":retry { factor = 0.5 }", "factor must be a number from 1, not 0.5" },
        { ":retry { factor = 1/0 }", "factor must be a number from 1" },
        { ':retry { factor = 2, backoff = "linear" }', 'factor is for backoff = "exponential"; this one is "linear"' },
        { ":redeliver { factor = 2 }", 'factor is for backoff = "exponential", which must be named with it' },
        { ":redeliver { factor = 2, attempts = 3 }", 'factor is for backoff = "exponential"; this one is "linear"' },
        { ":retry { jitter = 1.1 }", 'jitter must be a fraction from 0 to 1, "full" or "decorrelated", not 1.1' },
        { ":retry { jitter = -0.1 }", 'jitter must be a fraction from 0 to 1, "full" or "decorrelated", not -0.1' },
        { ":retry { jitter = 0/0 }", "jitter must be a fraction from 0 to 1" },
        { ':retry { jitter = "some" }',
            'jitter must be a fraction from 0 to 1, "full" or "decorrelated", not "some"' },
        { ':retry { delay = { "1s", "5s" } }',
            'retry: delay is one span of time; a list of delays stands alone: retry { "1s", "5s" }' },
        { ':redeliver { delays = { "1m" } }',
            'redeliver: there is no option delays; a list of delays stands alone: redeliver { "1s", "5s" }' },
        { ':redeliver { delays = "1m" }', 'unknown option "delays"; did you mean delay?' },
        { ":retry { max_delay = 5 }", 'max_delay 5 has no unit; "5ms" or "5s"?' },
        { ":retry { backoff = 5 }", 'backoff must be "constant", "linear" or "exponential", not 5' },
        { ':retry { jitter = "ful" }', 'not "ful"; did you mean "full"?' },
        { ':retry { jitter = "Decorelated" }', 'did you mean "decorrelated"?' },
        { ':retry { "1s", jitter = "decorrelated" }', 'jitter = "decorrelated" can\'t stand beside a list of delays' },
        { ':retry { jitter = "decorrelated", backoff = "linear" }',
            'backoff can\'t stand beside jitter = "decorrelated"' },
        { ':redeliver { jitter = "decorrelated", factor = 2 }', 'factor can\'t stand beside jitter = "decorrelated"' },
        { ':retry { jitter = "full", factor = 2, backoff = "linear" }', 'factor is for backoff = "exponential"' },
        { ':retry { attempts = "unlimited" }', 'attempts = "unlimited" is for redeliver; a retry keeps its message' },
        { ':retry("unlimited")', 'attempts = "unlimited" is for redeliver' },
        { ':retry():then_redeliver("unlimted")', 'attempts must be a whole number from 0 to 1000, not "unlimted"; '
            .. 'did you mean "unlimited"?' },
        { ':redeliver { "1s", attempts = "unlimited" }', "attempts can't stand beside a list of delays" },
        { ":redeliver { hint = 5 }", "redeliver: the field that hint names must be a string, not 5" },
        { ':redeliver { hint = "" }', "redeliver: the field that hint names must not be empty" },
        { ':retry { "1s", hint = true }', "retry: the field that hint names must be a string, not true" },
        { ":retry { hnt = 'x' }", 'retry: unknown option "hnt"; did you mean hint?' },
        { ":retry { '1s', jiter = 0 }", 'retry: unknown option "jiter"; did you mean jitter?' },
        { ":retry(policy.present)", "attempts must be a whole number from 0 to 1000, not policy.present" },
        { ':dead_letter("")', "dead_letter: the queue must not be empty" },
        { ":dead_letter(5)", "dead_letter: the queue must be a string, not 5" },
        { ":dead_letter(nil)", "dead_letter: the queue must be a string, not nil" },
        { ':dead_letter("a", "b")', "dead_letter has 2 arguments; it takes one queue at most" },
        { ':retry():then_dead_letter("\\xff")', "then_dead_letter: the queue must be valid UTF-8" },
        { ':discard("a\\0b")', "discard: the note must be valid UTF-8 without a zero byte" },
        { ":discard(5)", "discard: the note must be a string, not 5" },
        { ":discard(nil)", "discard: the note must be a string, not nil" },
        { ':discard("a", "b")', "discard has 2 arguments; it takes one note at most" },
    }
    for _, row in ipairs(rows) do
        it("is wrong in " .. row[1], function()
            local lines = loading.refused(statements(("\n\nbus:on(\"X\")%s"):format(row[1])))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:3: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end

    it("is wrong in more than one way: all are told", function()
        local lines = loading.refused(statements [[
bus:on("X"):retry { attempts = -1, delay = 5, backoff = "x", factor = 0, jitter = 2, max_delay = "y", z = 1 }]])
        assert.equal(7, #lines)
    end)
end)
