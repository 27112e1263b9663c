-- The words of limits: rate_limit, limit, deadline, and policy.header; what they come to, and their mistakes.
local loading = require "support.loading"

local statements = loading.statements

-- The settings in force after some statements, for the consumer C.
local function settings_after(text)
    local policy = loading.good(statements("\n" .. text))
    local settings = policy:table { consumer = "C" }.settings
    policy:close()
    return settings
end

-- Each statement of a list setting without its place.
local function plain(list)
    for _, statement in ipairs(list or {}) do
        statement.file, statement.line = nil, nil
    end
    return list
end

local function rate_limit(options)
    return plain(settings_after("bus:rate_limit " .. options).rate_limit.value)[1]
end

local function limit(options)
    return plain(settings_after("bus:limit " .. options).limit.value)[1]
end

describe("a rate limit", function()
    it("has defaults", function()
        assert.same({ after = 10, messages = 1, wait_ms = 1000, max_wait_ms = 1000, successes = 1, keep = false },
            rate_limit "{ after = 10 }")
        assert.same({ ratio = 0.5, window_ms = 30000, least = 20, messages = 1, wait_ms = 5000, max_wait_ms = 5000,
            successes = 1, keep = false }, rate_limit '{ ratio = 0.5, wait = "5s", keep = false }')
    end)

    it("keeps all that is said", function()
        assert.same({ after = 10, messages = 3, within_ms = 300000, only = { "HttpError" }, wait_ms = 1000,
            max_wait_ms = 30000, hint = "retry_after", successes = 2, keep = true, ramp_ms = 30000, per = "key" },
            rate_limit [[{ after = 10, messages = 3, within = "5m", only = "HttpError", wait = "1s", max_wait = "30s",
                hint = "retry_after", successes = 2, keep = true, ramp = policy.seconds(30), per = "key" }]])
        assert.same({ ratio = 1, window_ms = 60000, least = 1, messages = 1, only = { "A", "B" }, except = { "C" },
            wait_ms = 250, max_wait_ms = 250, successes = 1, keep = false, per = "header", header = "x tenant" },
            rate_limit [[{ ratio = 1, window = "1m", least = 1, only = { "A", "B" }, except = "C",
                wait = policy.ms(250), per = policy.header("x tenant") }]])
        assert.equal("type", rate_limit('{ after = 1, per = "type" }').per)
    end)

    it("may have numbers up to these", function()
        local most = rate_limit "{ after = 1000000, messages = 1000, successes = 1000000 }"
        assert.same({ 1000000, 1000, 1000000 }, { most.after, most.messages, most.successes })
        assert.equal(1000000, rate_limit("{ ratio = 1e-9, least = 1000000 }").least)
        assert.equal(365 * 86400000, rate_limit('{ after = 1, wait = "365d" }').max_wait_ms)
    end)
end)

describe("a limit", function()
    it("is a rate, and a burst of one unless more is said", function()
        assert.same({ count = 100, unit_ms = 1000, burst = 1 }, limit '{ rate = "100/s" }')
        assert.same({ count = 1, unit_ms = 60000, burst = 1 }, limit '{ rate = "1/m" }')
        assert.same({ count = 1000000, unit_ms = 3600000, burst = 1000000 },
            limit '{ rate = "1000000/h", burst = 1000000 }')
        assert.same({ count = 7, unit_ms = 1000, burst = 20, per = "header", header = "tenant" },
            limit '{ rate = "007/s", burst = 20, per = policy.header("tenant") }')
    end)
end)

describe("statements of limits", function()
    -- The numbers that count in the order of the statements, and where the setting was said.
    local function afters(text)
        local setting, list = settings_after(text).rate_limit, {}
        for i, statement in ipairs(setting.value or {}) do
            list[i] = ("%d:%d"):format(statement.after, statement.line)
        end
        return table.concat(list, " "), setting.scope, setting.line
    end

    it("of one scope add up by what they are per", function()
        assert.same({ "1:2 2:3 3:4 4:5 5:6", "bus", 6 }, { afters [[
bus:rate_limit { after = 1 }
bus:rate_limit { after = 2, per = "key" }
bus:rate_limit { after = 3, per = "type" }
bus:rate_limit { after = 4, per = policy.header("a") }
bus:rate_limit { after = 5, per = policy.header("b") }]] })
    end)

    it("replace an earlier one that is per the same", function()
        assert.same({ "2:3 4:5 5:6", "bus", 6 }, { afters [[
bus:rate_limit { after = 1 }
bus:rate_limit { after = 2, per = "key" }
bus:rate_limit { after = 3, per = policy.header("a") }
bus:rate_limit { after = 4, per = policy.header("a") }
bus:rate_limit { after = 5 }]] })
    end)

    it("of a nearer scope stand for all of a farther one's", function()
        assert.same({ "3:4", "consumer:C", 4 }, { afters [[
bus:rate_limit { after = 1 }
bus:rate_limit { after = 2, per = "key" }
policy.consumer("C"):rate_limit { after = 3, per = "type" }]] })
    end)

    it("are switched off together, until another one is said", function()
        assert.same({ "", "consumer:C", 4 }, { afters [[
bus:rate_limit { after = 1 }
bus:rate_limit { after = 2, per = "key" }
policy.consumer("C"):rate_limit(false)]] })
        assert.same({ "3:4", "bus", 4 }, { afters [[
bus:rate_limit { after = 1 }
bus:rate_limit(false)
bus:rate_limit { after = 3, per = "key" }]] })
        assert.is_false(settings_after('bus:limit { rate = "1/s" }; bus:limit(false)').limit.value)
    end)

    it("of the two words have nothing to do with each other", function()
        local settings = settings_after [[
bus:rate_limit { after = 1 }
bus:limit { rate = "1/s" }
policy.consumer("C"):limit(false)]]
        assert.equal(1, #settings.rate_limit.value)
        assert.is_false(settings.limit.value)
    end)
end)

describe("a deadline", function()
    local CHAIN = ':on("A"):retry(1, "20s", "constant"):then_redeliver { "30m" }:then_dead_letter("parked")'

    local function ends(text, more)
        local policy = loading.good(statements(text .. "; bus" .. CHAIN))
        more.error = { type = "A" }
        local verdict = policy:decide(more, { no_jitter = true })
        policy:close()
        return ("%s %s"):format(verdict.action, verdict.reason or verdict.delay_ms)
    end

    it("is the last moment at which a call may begin", function()
        assert.equal("retry 20000", ends('bus:deadline("1h")', { age_ms = 3580000 }))
        assert.equal("dead_letter deadline", ends('bus:deadline("1h")', { age_ms = 3580001 }))
        assert.equal("redeliver 1800000", ends('bus:deadline("1h")', { attempt = 2, age_ms = 1800000 }))
        assert.equal("dead_letter deadline", ends('bus:deadline("1h")', { attempt = 2, age_ms = 1800001 }))
        assert.equal("dead_letter deadline", ends("bus:deadline(0)", {}))
    end)

    it("ends as the chain does", function()
        local policy = loading.good(statements('bus:deadline("1h"); bus:on("A"):retry():then_discard("stale")'))
        local verdict = policy:decide { error = { type = "A" }, age_ms = 3600000 }
        assert.same({ "discard", "stale", "deadline", 0 }, { verdict.action, verdict.note, verdict.reason,
            verdict.delay_ms })
        assert.same({ 1, "A" }, { verdict.rule.line, verdict.rule.type })
        assert.same({}, { verdict.tier, verdict.step, verdict.of })
        policy:close()
    end)

    it("comes behind max_attempts and max_age", function()
        local all = 'bus:deadline("1h"); bus:max_age("1h"); bus:max_attempts(3)'
        assert.equal("dead_letter max_attempts", ends(all, { attempt = 2, calls = 3, age_ms = 3600001 }))
        assert.equal("dead_letter max_age", ends(all, { attempt = 2, age_ms = 3600001 }))
        assert.equal("dead_letter deadline", ends(all, { attempt = 2, age_ms = 3600000 }))
    end)

    it("is the nearest scope's", function()
        local both = 'bus:deadline("1h"); policy.consumer("C"):deadline(false)'
        assert.equal("retry 20000", ends(both, { age_ms = 3600000, consumer = "C" }))
        assert.equal("dead_letter deadline", ends(both, { age_ms = 3600000 }))
    end)

    it("holds for what an override answers, but for an end", function()
        local function answered(answer, age_ms)
            return ends(("bus:deadline('1h'); bus:override(function() return %s end)"):format(answer),
                { age_ms = age_ms, attempt = 2 })
        end
        assert.equal("retry override", answered('policy.retry("1m")', 3540000))
        assert.equal("dead_letter deadline", answered('policy.retry("1m")', 3540001))
        assert.equal("dead_letter deadline", answered("policy.redeliver(60000)", 3540001))
        assert.equal("discard override", answered("policy.discard()", 9999999))
    end)

    it("comes before the fallback", function()
        assert.equal("dead_letter deadline", ends('bus:deadline("1h")', { age_ms = 3590000, can = { retry = false } }))
    end)
end)

-- ---- Mistakes -----------------------------------------------------------------------------------

local mistakes = {
    { "rate_limit()", 'rate_limit needs a value: a table, { after = 10, wait = "5s" }, or false' },
    { "rate_limit(10)", 'rate_limit must be a table, { after = 10, wait = "5s" }, or false, not 10' },
    { "rate_limit(bus)", 'rate_limit must be a table, { after = 10, wait = "5s" }, or false, not a table' },
    { "rate_limit({ after = 3 }, 5)",
        'rate_limit has 2 arguments; it takes a table, { after = 10, wait = "5s" }, or false' },
    { "rate_limit {}",
        "rate_limit needs after, the failures in a row that begin it, or ratio, their part of all calls: "
        .. '{ after = 10, wait = "5s" }' },
    { 'rate_limit { wait = "1s" }', "rate_limit needs after" },
    { "rate_limit { after = 3, ratio = 0.5 }",
        "rate_limit: after and ratio can't stand together; after counts failures in a "
        .. "row, ratio their part of all calls" },
    { "rate_limit { after = 0 }", "rate_limit: after must be a whole number from 1 to 1000000, not 0" },
    { "rate_limit { after = 1.5 }", "rate_limit: after must be a whole number from 1 to 1000000, not 1.5" },
    { "rate_limit { after = 1000001 }", "rate_limit: after must be a whole number from 1 to 1000000, not 1000001" },
    { "rate_limit { ratio = 0 }", "rate_limit: ratio must be above 0 and at most 1, not 0" },
    { "rate_limit { ratio = 1.5 }", "rate_limit: ratio must be above 0 and at most 1, not 1.5" },
    { "rate_limit { ratio = 0/0 }", "rate_limit: ratio must be above 0 and at most 1, not nan" },
    { 'rate_limit { ratio = "50%" }', 'rate_limit: ratio must be above 0 and at most 1, not "50%"' },
    { "rate_limit { ratio = 0.5, least = 0 }", "rate_limit: least must be a whole number from 1 to 1000000, not 0" },
    { 'rate_limit { ratio = 0.5, window = "0s" }', "rate_limit: window must be longer than 0" },
    { "rate_limit { ratio = 0.5, window = 30 }", 'rate_limit: window 30 has no unit; "30ms" or "30s"?' },
    { 'rate_limit { after = 3, window = "1m" }',
        "rate_limit: window goes with ratio; within is how far apart the failures of "
        .. "after may lie" },
    { "rate_limit { after = 3, least = 5 }", "rate_limit: least goes with ratio; within is how far" },
    { 'rate_limit { ratio = 1, within = "1m" }',
        "rate_limit: within goes with after; window is how far back ratio looks" },
    { "rate_limit { after = 3, within = 0 }", "rate_limit: within must be longer than 0" },
    { "rate_limit { after = 3, messages = 0 }", "rate_limit: messages must be a whole number from 1 to 1000, not 0" },
    { "rate_limit { after = 2000, messages = 1001 }",
        "rate_limit: messages must be a whole number from 1 to 1000, not 1001" },
    { "rate_limit { after = 3, messages = 4 }", "rate_limit: messages must be at most after, which is 3, not 4" },
    { "rate_limit { ratio = 1, messages = 21 }", "rate_limit: messages must be at most least, which is 20, not 21" },
    { "rate_limit { after = 3, wait = 5 }", 'rate_limit: wait 5 has no unit; "5ms" or "5s"?' },
    { 'rate_limit { after = 3, wait = "-5s" }', 'rate_limit: wait "-5s" is no span of time' },
    { "rate_limit { after = 3, wait = 0 }", "rate_limit: wait must be longer than 0" },
    { "rate_limit { after = 3, wait = false }", "rate_limit: wait false is no span of time" },
    { 'rate_limit { after = 3, max_wait = "500ms" }',
        'rate_limit: max_wait must be at least wait, which is "1s", not "500ms"' },
    { 'rate_limit { after = 3, wait = "1m", max_wait = "30s" }',
        'rate_limit: max_wait must be at least wait, which is "1m", '
        .. 'not "30s"' },
    { 'rate_limit { after = 3, hint = "" }', "rate_limit: the field that hint names must not be empty" },
    { "rate_limit { after = 3, hint = 5 }", "rate_limit: the field that hint names must be a string, not 5" },
    { "rate_limit { after = 3, successes = 0 }",
        "rate_limit: successes must be a whole number from 1 to 1000000, not 0" },
    { 'rate_limit { after = 3, keep = "yes" }', 'rate_limit: keep must be true or false, not "yes"' },
    { 'rate_limit { after = 3, ramp = "0s" }', "rate_limit: ramp must be longer than 0" },
    { "rate_limit { after = 3, only = 5 }", "rate_limit: the error type in only must be a string, not 5" },
    { "rate_limit { after = 3, only = {} }", "rate_limit: only: a list of types must be names and nothing else" },
    { 'rate_limit { after = 3, except = { "A", 5 } }',
        "rate_limit: except: type 2 of the list must be a string, not 5" },
    { 'rate_limit { after = 3, only = { "A", "A" } }', 'rate_limit: only: "A" is in the list of types twice' },
    { 'rate_limit { after = 3, only = { "A", "B" }, except = "B" }',
        'rate_limit: "B" can\'t stand in only and in except' },
    { 'rate_limit { after = 3, except = "Error" }',
        'rate_limit: except = "Error" leaves no failure to count; every error is '
        .. "one" },
    { 'rate_limit { after = 3, per = "kye" }',
        'rate_limit: per must be "key", "type" or policy.header("tenant"), not "kye"; '
        .. 'did you mean "key"?' },
    { "rate_limit { after = 3, per = {} }",
        'rate_limit: per must be "key", "type" or policy.header("tenant"), not a table' },
    { "rate_limit { after = 3, per = policy.present }",
        'rate_limit: per must be "key", "type" or policy.header("tenant"), not '
        .. "policy.present" },
    { 'rate_limit { after = 3, wiat = "5s" }', 'rate_limit: unknown option "wiat"; did you mean wait?' },
    { "rate_limit { after = 3, [print] = 5 }",
        "rate_limit: unknown option: a function; there are after, ratio, window, least, "
        .. "messages, within, only, except, wait, max_wait, hint, successes, keep, ramp and per" },
    { "limit()", 'limit needs a value: a table, { rate = "100/s" }, or false' },
    { 'limit("100/s")', 'limit must be a table, { rate = "100/s" }, or false, not "100/s"' },
    { "limit {}", 'limit needs rate, so many calls in a second, a minute or an hour: { rate = "100/s" }' },
    { "limit { burst = 5 }", "limit needs rate" },
    { "limit { rate = 100 }",
        'limit: rate must be a whole number of calls and a unit, "100/s", "100/m" or "100/h", not 100; '
        .. '"100/s"?' },
    { 'limit { rate = "100" }', 'or "100/h", not "100"; "100/s"?' },
    { 'limit { rate = "100 / min" }', 'or "100/h", not "100 / min"; "100/m"?' },
    { 'limit { rate = "100/d" }', 'or "100/h", not "100/d"' },
    { 'limit { rate = "1.5/s" }', 'or "100/h", not "1.5/s"' },
    { 'limit { rate = "-1/s" }', 'or "100/h", not "-1/s"' },
    { "limit { rate = {} }", 'or "100/h", not a table' },
    { 'limit { rate = "0/s" }', 'limit: rate must be from 1 to 1000000 calls, not "0/s"' },
    { 'limit { rate = "1000001/s" }', 'limit: rate must be from 1 to 1000000 calls, not "1000001/s"' },
    { 'limit { rate = "99999999999999999999/s" }', "limit: rate must be from 1 to 1000000 calls, not" },
    { 'limit { rate = "1/s", burst = 0 }', "limit: burst must be a whole number from 1 to 1000000, not 0" },
    { 'limit { rate = "1/s", bust = 5 }', 'limit: unknown option "bust"; did you mean burst?' },
    { 'limit { rate = "1/s", per = "header" }',
        'limit: per must be "key", "type" or policy.header("tenant"), not "header"' },
    { "deadline()", 'deadline needs a value: a span of time such as "1d", or false' },
    { "deadline(24)", 'deadline: 24 has no unit; "24ms" or "24s"?' },
    { 'deadline("1 day")', 'deadline: "1 day" is no span of time' },
    { 'limit { rate = "1/s", per = policy.header() }', "header: the name of the header must be a string, not nil" },
    { 'limit { rate = "1/s", per = policy.header("") }', "header: the name of the header must not be empty" },
    { 'limit { rate = "1/s", per = policy.header("a", "b") }', "header has 2 arguments; it takes one name" },
    { 'limit { rate = "1/s", per = policy:header("a") }', "header is called with a point: policy.header(...)" },
    { 'on("A", policy.header("a")):retry()', 'not policy.header("a")' },
    { 'on("A", { x = policy.header("a") }):retry()', 'not policy.header("a")' },
    { 'limit { rate = "1/s", per = policy.header("a"):lower() }', 'policy.header("a") is what a limit counts for, '
        .. 'limit { rate = "10/s", per = policy.header("a") }, and nothing else can be done with it' },
}

describe("a mistake in a limit", function()
    for _, row in ipairs(mistakes) do
        it("is told, and nothing besides: " .. row[1], function()
            local lines = loading.refused(statements("\nbus:" .. row[1]))
            assert.equal(1, #lines, table.concat(lines, "\n"))
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(row[2], lines[1], 1, true)
        end)
    end

    it("offers no rate for a unit that there isn't", function()
        for _, rate in ipairs { "100/d", "100/week" } do
            local lines = loading.refused(statements(('bus:limit { rate = "%s" }'):format(rate)))
            assert.matches(('or "100/h", not "%s"$'):format(rate), lines[1])
        end
    end)

    it("is one of all", function()
        assert.same({
            'policy.lua:2: rate_limit: unknown option "wiat"; did you mean wait?',
            "policy.lua:2: rate_limit needs after, the failures in a row that begin it, or ratio, their part of all "
                .. 'calls: { after = 10, wait = "5s" }',
            'policy.lua:2: rate_limit: wait 5 has no unit; "5ms" or "5s"?',
            'policy.lua:2: rate_limit: keep must be true or false, not 1',
        }, (loading.refused(statements "\nbus:rate_limit { wait = 5, wiat = 1, keep = 1 }")))
    end)

    it("leaves no statement", function()
        assert.equal(2, #loading.refused(statements 'bus:rate_limit { after = 0 }; bus:rate_limit { after = 0.5 }'))
    end)
end)
