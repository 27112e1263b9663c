-- What table and explain say of every form of the language: matchers in words, why one lost, causes,
-- declarations, includes, tiers.
local json = require("mulligan").json
local process = require "support.process"

describe("in words", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function policy(...)
        folder:write("policy.lua", 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n'
            .. table.concat({ ... }, "\n"))
    end

    local function run(command, ...)
        local answer = folder:mulligan { command, "policy.lua", ... }
        assert.same({ 0, "" }, { answer.code, answer.err })
        return answer.out
    end

    -- says: the text has these words in it, as they are.
    local function says(words, said)
        assert.is_truthy(said:find(words, 1, true), words .. "\n" .. said)
    end

    local function explain_failure(failure)
        folder:write("failure.json", json.encode(failure))
        return run("explain", "--failure", "failure.json")
    end

    -- A matcher; in words; a failure's error or all of it, for which it loses; why.
    local matchers = {
        { '{ status = 429 }', "status is 429", { status = 404 }, "status is 404, not 429" },
        { '{ status = 429 }', "status is 429", { status = "429" }, 'status is "429", not 429' },
        { '{ status = { 429, 503, "x" } }', 'status is 429, 503 or "x"', {}, 'status is absent, not 429, 503 or "x"' },
        { '{ a = 1, b = true }', "a is 1 and b is true", { a = 1, b = false }, "b is false, not true" },
        { '{ status = policy.between(500, 599) }', "status is from 500 to 599", { status = 404 },
            "status is 404, not from 500 to 599" },
        { '{ status = policy.at_least(500) }', "status is at least 500", {}, "status is absent, not at least 500" },
        { '{ status = policy.at_most(1.5) }', "status is at most 1.5", { status = 2 }, "status is 2, not at most 1.5" },
        { '{ message = policy.contains "gone" }', 'message contains "gone"', { message = "here" },
            'message is "here", which doesn\'t contain "gone"' },
        { '{ host = policy.matches "^a%d$" }', 'host matches "^a%d$"', { host = "b" },
            'host is "b", which doesn\'t match "^a%d$"' },
        { '{ host = policy.matches "x" }', 'host matches "x"', {}, "host is absent" },
        { '{ code = policy.present }', "code is there", {}, "code is absent" },
        { '{ code = policy.absent }', "code is absent", { code = 5 }, "code is 5, and should be absent" },
        { '{ code = policy.is_not(5) }', "code is not 5", { code = 5 }, "code is 5, and should be one that is not 5" },
        { '{ code = policy.is_not(policy.between(1, 9)) }', "code is not from 1 to 9", { code = 5 },
            "code is 5, and should be one that is not from 1 to 9" },
        { '{ code = policy.is_not(policy.contains "b") }', 'code doesn\'t contain "b"', { code = "abc" },
            'code is "abc", and should be one that doesn\'t contain "b"' },
        { '{ code = policy.is_not(policy.present) }', "code is absent", { code = 5 },
            "code is 5, and should be absent" },
        { '{ code = policy.is_not(policy.absent) }', "code is there", {}, "code is absent" },
        { '{ ["odd name"] = 1 }', '"odd name" is 1', {}, '"odd name" is absent, not 1' },
        { 'policy.ctx { attempt = policy.at_least(2) }', "ctx.attempt is at least 2", {},
            "ctx.attempt is 1, not at least 2" },
        { 'policy.ctx { message = { type = "T" } }', 'ctx.message.type is "T"', {},
            'ctx.message.type is absent, not "T"' },
        { 'policy.ctx { message = { headers = { ["x-y"] = "z" } } }', 'header "x-y" is "z"', {},
            'header "x-y" is absent, not "z"' },
        { 'function() return false end', "a function", {}, "its function gave nil or false" },
        { 'function() return 1 + {} end', "a function", {},
            "raised: policy.lua:3: attempt to perform arithmetic on a table value" },
        { 'policy.all({ a = 1 }, { b = 2 })', "a is 1 and b is 2", { a = 1 }, "b is absent, not 2" },
        { 'policy.all({ a = 1 }, function() return false end)', "a is 1 and a function", { a = 1 },
            "not all of its parts pass" },
        { 'policy.any({ a = 1 }, policy.all({ b = 2, c = 3 }, { d = 4 }))',
            "a is 1 or ((b is 2 and c is 3) and d is 4)", {}, "none of its parts passes" },
        { 'policy.none({ a = 1 }, { b = 2, c = 3 })', "none of: a is 1, (b is 2 and c is 3)", { a = 1 },
            "one of its parts passes" },
    }

    it("says of each matcher what it is, and why it lost", function()
        for _, case in ipairs(matchers) do
            local code, words, err, why = table.unpack(case)
            policy(('bus:on("E", %s):retry()'):format(code))
            local said = run("table")
            says("policy.lua:3  " .. words, said)
            err.type = "E"
            said = explain_failure { error = err }
            says(('  policy.lua:3  on("E")  %s\n'):format(why), said)
        end
    end)

    it("says for which cause a rule was looked at", function()
        policy('bus:on_cause("T", { code = 1 }):retry(1)', 'bus:on_cause("T"):retry(2)', "bus:default():discard()")
        local said = explain_failure {
            error = { type = "A", cause = { type = "B", cause = { type = "T", code = 2 } } },
        }
        says([[
  ✗  policy.lua:3  on_cause("T")  cause 2, T: code is 2, not 1
  ✓  policy.lua:4  on_cause("T")  cause 2, T: always
]], said)
        said = run("table")
        says("\n  caused by T\n    policy.lua:3  code is 1", said)
        assert.is_true(said:find("caused by T", 1, true) < said:find("Error: whatever no rule above", 1, true))
    end)

    it("names declarations that are looked at first, of every scope, and the built-in one", function()
        policy('bus:unrecoverable({ "U", "V" }, { code = 1 })', 'bus:on("U"):retry()',
            'policy.consumer("C"):unrecoverable("W")')
        local said = explain_failure { error = { type = "U", code = 2 } }
        says([[
  ✗  policy.lua:3  unrecoverable("U")  code is 2, not 1
  ✓  policy.lua:4  on("U")             always
]], said)
        said = explain_failure { error = { type = "W" }, consumer = "C" }
        says('✓  policy.lua:5 consumer:C  unrecoverable("W")  always\n', said)
        says("\nrule     policy.lua:5, consumer:C, for W\n", said)
        said = explain_failure { error = { type = "MessageDeserializationError" } }
        says("\nrule     none decided\n", said)
        says('✓  built in  unrecoverable("MessageDeserializationError")  always\n', said)
        said = run("table", "--consumer", "C")
        says([[
  policy.lua:5 consumer:C  W
  policy.lua:3 bus         U                            code is 1
  policy.lua:3 bus         V                            code is 1
  built in                 MessageDeserializationError
]], said)
    end)

    it("says from which scope a rule was included", function()
        policy('bus:on("A"):retry()', 'bus:on("B"):retry()', 'local mine = policy.consumer("C")',
            'mine:on("A"):discard()', "mine:include(bus)")
        local said = run("table", "--consumer", "C")
        says("\n  consumer:C  in force: 2 rules, with those of bus (policy.lua:7)\n", said)
        says('\n    policy.lua:4 bus  always  retry 3: ', said)
        says('\n  policy.lua:3 bus  on("A")  by policy.lua:6\n', said)
        said = run("explain", "--error", "B", "--consumer", "C")
        says('✓  policy.lua:4 bus  on("B")  always\n', said)
    end)

    it("says what each tier does", function()
        for code, words in pairs {
            ['retry(3, "1s", "exponential")'] = "retry 3: 1s, 2s, 4s ±25%, at most 30s",
            ['retry(2, "1m")'] = "retry 2: 30s each ±25%, at most 30s",
            ["retry(1, 0)"] = "retry 1: at once",
            ["retry(0)"] = "retry none",
            ['retry { attempts = 2, delay = "1s", jitter = "full" }'] = "retry 2: 1s, 2s, full jitter, at most 30s",
            ['retry { attempts = 3, delay = "1s", jitter = "decorrelated" }'] =
                "retry 3: 1s to 3 times the one before, at most 30s",
            ['redeliver { "1m", "1h30m" }'] = "redeliver 2: 1m, 1h30m",
            ['redeliver { "1m", "2m", hint = "retry_after", max_delay = "1d", jitter = 0.125 }'] =
                "redeliver 2: 1m, 2m ±12.5%, longer where retry_after says so, at most 1d",
            ['redeliver { attempts = "unlimited", delay = "5m", backoff = "constant" }'] =
                "redeliver unlimited: 5m each ±25%, at most 1h",
            ['redeliver { attempts = 20, delay = "1m" }'] =
                "redeliver 20: 1m, 2m, 3m, 4m, 5m, 6m, … ±25%, at most 1h",
        } do
            policy(('bus:on("E"):%s'):format(code), 'bus:max_age("30d")')
            local said = run("table")
            says("policy.lua:3  always  " .. words .. "\n", said)
        end
    end)

    it("shows a hint in the timeline, and that a walk without an end is cut", function()
        policy('bus:on("H"):redeliver { "1m", "1m", hint = "retry_after", max_delay = "1h", jitter = 0.5 }',
            'bus:on("U"):redeliver { attempts = "unlimited", delay = 0, backoff = "constant" }', 'bus:max_age("1h")')
        local said = explain_failure { error = { type = "H", retry_after = 600 } }
        assert.is_truthy(said:find("\n  1     now +redeliver in 10m … 15m %(redelivery 1 of 2%)\n"), said)
        local found = json.decode(run("explain", "--error", "U", "--format", "json"))
        assert.is_true(found.timeline.cut)
        assert.equal(1002001, found.timeline.both.last[100].calls)
        assert.is_nil(found.verdict.of)
    end)

    it("says that a deadline ends it, and when", function()
        policy('bus:deadline("1h")', 'bus:on("D"):redeliver { "20m", "40m", "1m" }')
        local said = run("explain", "--error", "D")
        says("dead letter to error (the next call would come after the deadline)\n", said)
        says("\n  3 calls in all; it ends in 1h\n", said)
    end)

    it("shows rate limits with their place", function()
        policy("bus:rate_limit { after = 3 }",
            'bus:rate_limit { ratio = 0.5, per = policy.header("tenant"), messages = 2, only = { "A", "B" }, '
                .. 'except = "C", max_wait = "30s", hint = "retry_after", successes = 2, keep = true, ramp = "1m" }',
            'bus:rate_limit { after = 1, within = "5m", per = "key" }',
            'bus:limit { rate = "100/s", burst = 20, per = "type" }', 'bus:limit { rate = "5/h" }')
        says([[

  rate_limit         after 3 failures in a row, wait 1s                          policy.lua:3 bus
                     when 50% of 20 calls or more in 30s failed, of 2 messages,  policy.lua:4 bus
                     only A and B, except C, wait 1s up to 30s, longer where
                     retry_after says so, ends after 2 successes, keeps messages,
                     ramp 1m, for each header tenant
                     after 1 failure in a row, within 5m, wait 1s, for each key  policy.lua:5 bus
  limit              100/s, burst 20, for each type                              policy.lua:6 bus
                     5/h                                                         policy.lua:7 bus
]], run("table"))
    end)
end)
