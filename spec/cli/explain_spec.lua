-- mulligan explain: the verdict, why, and what follows.
local json = require("mulligan").json
local mulligan = require "mulligan"
local process = require "support.process"

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError" }
local bus = policy.bus()
bus:on("DeadlockError", { code = 1, host = "a" }):dead_letter()
bus:on("DeadlockError", function(err) return err.message == "yes" end):dead_letter()
bus:on("DeadlockError", function(err) return err.missing.field end):dead_letter()
bus:on("DatabaseError"):retry(2, "1s", "constant"):then_redeliver { "10s", "20s" }
bus:on("Old"):redeliver { attempts = 3, delay = "4m", backoff = "constant" }
bus:on("Asks", function() return true end):retry(1000, 0):then_redeliver(1000, 0)
bus:on("Long"):retry(1000, 0):then_redeliver {
    attempts = 1000, delay = "1ms", backoff = "constant", jitter = 0 }
bus:on("Gone"):discard("it is \27[31mgone")
bus:default():retry(1, "1s"):then_dead_letter("parked")
bus:max_age("10m")
policy.transport("plain"):dead_letter_queue("lost")
policy.consumer("Mine"):default():dead_letter()
]]

describe("mulligan explain", function()
    local folder

    setup(function()
        folder = process.folder { ["policy.lua"] = POLICY, ["deep/policy.lua"] = POLICY }
    end)

    teardown(function()
        folder:remove()
    end)

    local function explain(...)
        return folder:mulligan { "explain", "policy.lua", ... }
    end

    -- The explanation as JSON, which has to come without a word on stderr.
    local function explained(...)
        local answer = explain("--format", "json", ...)
        assert.same({ 0, "" }, { answer.code, answer.err })
        assert.is_truthy(answer.out:find("^[^\n]*\n$"), answer.out)
        return json.decode(answer.out)
    end

    it("shows people the verdict, why the others lost, and every call to the end", function()
        local answer = explain("--error", "DeadlockError", "--field", "code=2", "--field", "message=no")
        assert.same({ 0, "" }, { answer.code, answer.err })
        local generation = answer.out:match("generation (%x+)")
        assert.equal(([[
DeadlockError "no" in a consumer without a scope on a transport without one: attempt 1, redeliveries 0, calls 1
by policy.lua (generation %s)

verdict  retry in 937ms (retry 1 of 2); jitter takes it from 750ms to 1.25s
rule     policy.lua:7, bus, for DatabaseError

scopes  the nearest one with rules is in force, as a whole
  bus   in force: 9 rules
  host  no scope of its own in the policy

limits  in force here
  max_age         10m  policy.lua:14 bus
  max_deliveries  20   default

candidates  in the order in which they were looked at
  ✗  policy.lua:4  on("DeadlockError")  code is 2, not 1
  ✗  policy.lua:5  on("DeadlockError")  its function gave nil or false
  !  policy.lua:6  on("DeadlockError")  raised: policy.lua:6: attempt to index a nil value (field 'missing')
  ✓  policy.lua:7  on("DatabaseError")  always

timeline  from now on, if every call fails with the same error; handlers take no time
  call  fails            then
  1     now              retry in 750ms … 1.25s (retry 1 of 2)
  2     750ms … 1.25s    retry in 750ms … 1.25s (retry 2 of 2)
  3     1.5s … 2.5s      redeliver in 10s (redelivery 1 of 2)
  4     11.5s … 12.5s    retry in 750ms … 1.25s (retry 1 of 2)
  5     12.25s … 13.75s  retry in 750ms … 1.25s (retry 2 of 2)
  6     13s … 15s        redeliver in 20s (redelivery 2 of 2)
  7     33s … 35s        retry in 750ms … 1.25s (retry 1 of 2)
  8     33.75s … 36.25s  retry in 750ms … 1.25s (retry 2 of 2)
  9     34.5s … 37.5s    dead letter to error (its attempts are used up)
  9 calls in all; it ends in 34.5s … 37.5s
]]):format(generation), (answer.out:gsub("retry in [%d.]+m?s (%(retry 1 of 2%); jitter)", "retry in 937ms %1")))
    end)

    -- What explain says of an error of type E by a policy with these lines.
    local function of(...)
        folder:write("limits.lua", 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n'
            .. table.concat({ ... }, "\n"))
        local answer = folder:mulligan { "explain", "limits.lua", "--failure", "failure.json" }
        assert.same({ 0, "" }, { answer.code, answer.err })
        return answer.out
    end

    it("shows the limits in force, and where they may hold a call up", function()
        folder:write("failure.json", '{"error": {"type": "E"}, "consumer": "C", "age_ms": 60000}')
        local said = of("bus:default():retry(1, 0)", 'bus:limit { rate = "100/s" }', "bus:rate_limit { after = 9 }",
            'policy.consumer("C"):limit { rate = "5/m", per = "key" }', 'bus:deadline("1h")',
            "bus:max_deliveries(false)")
        assert.is_truthy(said:find([[

limits  in force here
  deadline    1h                                  limits.lua:7 bus
  rate_limit  after 9 failures in a row, wait 1s  limits.lua:5 bus
  limit       5/m, for each key                   limits.lua:6 consumer:C
]], 1, true), said)
        assert.is_truthy(said:find([[; handlers take no time
  a rate_limit may hold calls up
  at most 5/m, for each key: a limit may hold calls up
  no call later than 59m from now: the deadline
  call  fails  then
]], 1, true), said)
        said = of("bus:default():retry(1, 0)", "bus:rate_limit { after = 9, keep = true }")
        assert.is_truthy(said:find("\n  a rate_limit may hold calls up, and keep failures uncounted\n", 1, true), said)
        said = of("bus:default():retry(1, 0)", "bus:max_deliveries(false)")
        assert.is_truthy(said:find("\nlimits  in force here\n  none\n", 1, true), said)
        assert.is_truthy(said:find("; handlers take no time\n  call ", 1, true), said)
    end)

    it("ends the timeline where the next call would begin after the deadline", function()
        folder:write("failure.json", '{"error": {"type": "E"}, "age_ms": 60000}')
        local said = of('bus:default():redeliver { "1m", "2m", "3m" }', 'bus:deadline("4m")')
        assert.is_truthy(said:find([[
  no call later than 3m from now: the deadline
  call  fails  then
  1     now    redeliver in 1m (redelivery 1 of 3)
  2     1m     redeliver in 2m (redelivery 2 of 3)
  3     3m     dead letter to error (the next call would come after the deadline)
  3 calls in all; it ends in 3m
]], 1, true), said)
        folder:write("failure.json", '{"error": {"type": "E"}, "age_ms": 240001}')
        said = of('bus:default():redeliver { "1m", "2m", "3m" }', 'bus:deadline("4m")')
        assert.is_truthy(said:find("\n  no call any more: the deadline is over\n", 1, true), said)
        assert.is_truthy(said:find("\n  1     now    dead letter to error (the next call would come after the deadline)"
            .. "\n", 1, true), said)
    end)

    it("gives programs the same, with the verdict of decide", function()
        local found = explained("--error", "DeadlockError", "--field", "code=1", "--attempt", "3")
        local failure = { error = { type = "DeadlockError", code = 1 }, attempt = 3 }
        local policy = assert(mulligan.load(folder:path("policy.lua")))
        local verdict = policy:decide(failure)
        local by_module = policy:explain(failure)
        policy:close()
        assert.same(verdict, found.verdict)
        assert.same(by_module, found)
        assert.same({ "lost", "lost", "raised", "passed" }, {
            found.candidates[1].result, found.candidates[2].result, found.candidates[3].result,
            found.candidates[4].result,
        })
        assert.same({ name = "host", subject = "error", value = { kind = "one_of", literals = { "a" } } },
            found.candidates[1].test)
        assert.same({ attempt = 3, redeliveries = 0, calls = 3, deliveries = 1, age_ms = 0, type = "DeadlockError" },
            found.failure)
        local steps = found.timeline.both.first
        assert.same({ 3, 0, 3, 0, 0, "redeliver" }, { steps[1].attempt, steps[1].redeliveries, steps[1].calls,
            steps[1].earliest_ms, steps[1].latest_ms, steps[1].action })
        assert.same({ 1, 1, 4, 10000, 10000, "retry" }, { steps[2].attempt, steps[2].redeliveries, steps[2].calls,
            steps[2].earliest_ms, steps[2].latest_ms, steps[2].action })
        assert.same({ 750, 1250 }, { steps[2].shortest_delay_ms, steps[2].longest_delay_ms })
        assert.same({ "dead_letter", "exhausted", "error" }, { steps[#steps].action, steps[#steps].reason,
            steps[#steps].queue })
        assert.same({ 0, {}, nil, false }, { found.timeline.both.left_out, found.timeline.both.last,
            found.timeline.shortest, found.timeline.cut })
    end)

    it("has every key of a verdict in its JSON", function()
        local answer = explain("--error", "Gone", "--format", "json")
        for _, key in ipairs { "action", "delay_ms", "queue", "reason", "note", "tier", "step", "of", "rule",
            "fallback", "generation" } do
            assert.is_truthy(answer.out:match('"verdict":(%b{})'):find('"' .. key .. '":', 1, true), key)
        end
        assert.is_truthy(answer.out:find('"tier":null', 1, true))
    end)

    it("goes on as the rules would, each call judged anew", function()
        -- A rule of its own for what was redelivered, by a function, and an age that only a function sees.
        folder:write("anew.lua", [[
            local policy = require "mulligan.policy"
            local bus = policy.bus()
            bus:on("E", function(_, ctx) return ctx.redeliveries == 2 and ctx.attempt == 1 end):retry(1, "7s")
            bus:on("E", function(_, ctx) return ctx.age_ms >= 3000 and ctx.calls > 3 end):discard("old")
            bus:on("E"):redeliver { "1s", "1s", "1s", "1s", "1s" }]])
        local answer = folder:mulligan { "explain", "anew.lua", "--error", "E", "--format", "json" }
        local found = json.decode(answer.out)
        local said = {}
        for number, step in ipairs(found.timeline.both.first) do
            said[number] = ("%s %d %d %d"):format(step.action, step.rule.line, step.calls, step.redeliveries)
        end
        assert.same({ "redeliver 5 1 0", "redeliver 5 2 1", "retry 3 3 2", "discard 4 4 2" }, said)
    end)

    it("walks both ends apart where they part", function()
        local found = explained("--error", "Old")
        local both, shortest, longest = found.timeline.both, found.timeline.shortest, found.timeline.longest
        local function actions(strip)
            local list = {}
            for number, step in ipairs(strip.first) do
                assert.is_true(strip == both or step.earliest_ms == step.latest_ms)
                list[number] = ("%d %s %d"):format(step.calls, step.action, step.latest_ms)
            end
            return list
        end
        assert.same({ "1 redeliver 0", "2 redeliver 300000", "3 redeliver 600000", "4 dead_letter 900000" },
            actions(both))
        assert.same({ 180000, 300000 }, { both.first[1].shortest_delay_ms, both.first[1].longest_delay_ms })
        assert.is_nil(shortest)
        assert.is_nil(longest)
        -- With two minutes behind it the last redelivery is due after max_age if delays are long.
        folder:write("failure.json", '{"error": {"type": "Old"},\n "age_ms": 120000}\n')
        found = explained("--failure", "failure.json")
        both, shortest, longest = found.timeline.both, found.timeline.shortest, found.timeline.longest
        assert.same({ "1 redeliver 0", "2 redeliver 300000" }, actions(both))
        assert.same({ "3 redeliver 360000", "4 dead_letter 540000" }, actions(shortest))
        assert.same({ "3 dead_letter 600000" }, actions(longest))
        assert.same({ "exhausted", "max_age" }, { shortest.first[2].reason, longest.first[1].reason })
        local said = explain("--failure", "failure.json").out
        assert.is_truthy(said:find("first failed 2m ago", 1, true), said)
        assert.is_truthy(said:find("\n  4 calls and 9m, or 3 calls and 10m; with delays between these it may end at "
            .. "other times\n", 1, true), said)
    end)

    it("walks both ends apart from the first call on where an override parts them", function()
        folder:write("apart.lua", [[
            local bus = require("mulligan.policy").bus()
            bus:default():redeliver(1, "4m")
            bus:override(function(_, verdict)
                if verdict.delay_ms > 240000 then return require("mulligan.policy").discard("too slow") end
            end)]])
        local said = folder:mulligan { "explain", "apart.lua", "--error", "E" }
        assert.same({ 0, "" }, { said.code, said.err })
        assert.is_truthy(said.out:find("handlers take no time\n"
            .. "  where every delay is the shortest that it may be:\n"
            .. "  call  fails  then\n"
            .. "  1     now    redeliver in 3m (redelivery 1 of 1)\n", 1, true), said.out)
    end)

    it("is never long: a million calls have few lines, and a known number of steps", function()
        local said = explain("--error", "Long")
        assert.equal(0, said.code)
        assert.is_true(select(2, said.out:gsub("\n", "")) < 100, said.out)
        assert.is_truthy(said.out:find("1002001 calls in all; it ends in 1s", 1, true), said.out)
        local strip = explained("--error", "Long").timeline.both
        assert.same({ 1000, 100, 1002001 - 1100 }, { #strip.first, #strip.last, strip.left_out })
        for number, step in ipairs(strip.first) do
            assert.equal(number, step.calls)
        end
        for number, step in ipairs(strip.last) do
            assert.equal(1002001 - 100 + number, step.calls)
        end
        assert.equal("exhausted", strip.last[100].reason)
        -- Functions are asked so often and no further.
        local timeline = explained("--error", "Asks").timeline
        assert.same({ true, 100000 }, { timeline.cut, timeline.both.last[100].calls })
        assert.is_truthy(explain("--error", "Asks").out:find("\n  it goes on like this, perhaps for ever: here it "
            .. "is cut\n", 1, true))
    end)

    it("names the scopes that were passed over, and those that aren't there", function()
        local found = explained("--error", "X", "--consumer", "Mine", "--transport", "plain")
        assert.same({
            { scope = "consumer:Mine", exists = true, in_force = true, rules = 1, includes = {} },
            { scope = "transport:plain", exists = true, in_force = false, rules = 0, includes = {} },
            { scope = "bus", exists = true, in_force = false, rules = 9, includes = {} },
            { scope = "host", exists = false, in_force = false, rules = 0 },
        }, found.scopes)
        assert.equal("lost", found.verdict.queue)
        local said = explain("--error", "X", "--consumer", "None", "--transport", "plain").out
        assert.is_truthy(said:find("in consumer None on transport plain: ", 1, true), said)
        assert.is_truthy(said:find("\n  consumer:None    no scope of its own in the policy\n"
            .. "  transport:plain  has no rules, so that the next one is asked\n"
            .. "  bus              in force: 9 rules\n", 1, true), said)
    end)

    it("reads fields as numbers, true and false where they read as one", function()
        folder:write("fields.lua", [[
            local bus = require("mulligan.policy").bus()
            bus:on("E", function(err)
                error(math.type(err.x) or type(err.x) == "string" and ("<%s>"):format(err.x) or type(err.x))
            end):retry()]])
        local function kind(written)
            local found = folder:mulligan { "explain", "fields.lua", "--error", "E", "--field", "x=" .. written,
                "--format", "json" }
            return json.decode(found.out).candidates[1].why:match("^fields.lua:3: (.*)$")
        end
        for written, wanted in pairs { ["1"] = "integer", ["-12"] = "integer", ["0"] = "integer", ["0.5"] = "float",
            ["-1e3"] = "float", ["1E-2"] = "float", ["true"] = "boolean", ["false"] = "boolean",
            ["123456789012345678901"] = "float",
        } do
            assert.equal(wanted, kind(written), written)
        end
        for _, written in ipairs { "", "TRUE", "007", "0x10", "1.", ".5", "1e999", "nan", "inf", "1 ", "+1", "1e",
            "a=b", "--1" } do
            assert.equal("<" .. written .. ">", kind(written))
        end
    end)

    it("reads one of decide's objects, over several lines too, from a file or stdin", function()
        local failure = '{\n"error": {"type": "Gone"},\n"message": {"id": "m-1"}\n}\n'
        folder:write("failure.json", failure)
        local by_file = explain("--failure", "failure.json")
        assert.equal(0, by_file.code)
        assert.same(by_file, folder:mulligan({ "explain", "policy.lua", "--failure", "-" }, { stdin = failure }))
        assert.is_truthy(by_file.out:find('verdict  discard: "it is  [31mgone" (the rule says so)', 1, true),
            by_file.out)
    end)

    it("shows files as seen from here", function()
        local said = folder:mulligan { "explain", "deep/policy.lua", "--error", "Gone" }.out
        assert.is_truthy(said:find("\nrule     deep/policy.lua:12, bus, for Gone\n", 1, true), said)
    end)

    it("writes colours to nobody but a terminal, and not with NO_COLOR", function()
        local function on_terminal(variables)
            local words = { "script", "-qec", process.mulligan .. " explain policy.lua --error X", "/dev/null" }
            return folder:run(words, { env = variables }).out:find("\27[1mverdict\27[0m", 1, true)
        end
        assert.is_nil(explain("--error", "X").out:find("\27", 1, true))
        assert.is_truthy(on_terminal { TERM = "xterm", NO_COLOR = "" })
        assert.is_nil(on_terminal { TERM = "xterm", NO_COLOR = "1" })
        assert.is_nil(on_terminal { TERM = "dumb", NO_COLOR = "" })
    end)

    it("says so where nothing was looked at", function()
        folder:write("failure.json", '{"error": {"type": "X"}, "deliveries": 21}')
        local said = explain("--failure", "failure.json").out
        local words = "\n  none: it was handed out more often than max_deliveries allows\n"
        assert.is_truthy(said:find(words, 1, true), said)
        folder:write("bare.lua", 'require("mulligan.policy").bus():on("A"):retry()')
        said = folder:mulligan({ "explain", "bare.lua", "--error", "B" }).out
        assert.is_truthy(said:find("\n  none: no rule and no declaration is for such a type\n", 1, true), said)
        assert.is_truthy(said:find("\nverdict  dead letter to error (no rule in force matches)\n", 1, true), said)
    end)

    for words, wanted in pairs {
        [""] = "there is nothing to explain: give --error TYPE, or --failure FILE",
        ["--error A --failure -"] = "--error and --failure exclude each other: the file says all",
        ["--failure - --consumer C"] = "--consumer and --failure exclude each other: the file says all",
        ["--failure - --field a=b"] = "--field and --failure exclude each other: the file says all",
        ["--failure nope.json"] = "nope.json: No such file or directory",
        ["--failure ."] = ".: Is a directory",
        ["--failure empty"] = "empty: there is no failure in it",
        ["--failure broken"] = 'broken: not JSON: line 2, column 2: a name is there twice: "error"',
        ["--failure wrong"] = "wrong: attempt must be a whole number from 1",
        ["--error A --field a"] = '--field must be NAME=VALUE, not "a"',
        ["--error A --field =b"] = '--field must be NAME=VALUE, not "=b"',
        ["--error A --field a=1 --field a=2"] = '--field "a" is given twice',
        ["--error A --field type=B"] = "--field type: that is what --error says",
        ["--error A --field cause=B"] = "--field cause: only a failure in a file has one; see --failure",
        ["--error A --attempt 0"] = '--attempt must be a whole number from 1, not "0"',
        ["--error A --attempt 1.5"] = '--attempt must be a whole number from 1, not "1.5"',
        ["--error A --attempt 99999999999999999999"] = "--attempt must be a whole number from 1, not "
            .. '"99999999999999999999"',
        ["--error A --redeliveries -1"] = '--redeliveries must be a whole number from 0, not "-1"',
        ["--error \xff"] = '--error must be UTF-8, which "?" isn\'t',
        ["--error A --consumer \xff"] = '--consumer must be UTF-8, which "?" isn\'t',
        ["--error A --field a=\xff"] = '--field must be UTF-8, which "a=?" isn\'t',
    } do
        it("refuses: explain " .. words:gsub("\xff", "?"), function()
            folder:write("empty", "\n")
            folder:write("broken", '{"error": {"type": "A"},\n "error": 1}')
            folder:write("wrong", '{"error": {"type": "A"}, "attempt": 0}')
            local list = {}
            for word in words:gmatch("%S+") do
                list[#list + 1] = word
            end
            assert.same({ code = 2, out = "", err = "mulligan: explain: " .. wanted .. "\n" },
                explain(table.unpack(list)))
        end)
    end

    it("refuses a policy that can't be loaded", function()
        folder:write("wrong.lua", "x =")
        local wrong = folder:mulligan { "explain", "wrong.lua", "--error", "A" }
        assert.same({ 2, "" }, { wrong.code, wrong.out })
        assert.is_truthy(wrong.err:find("^mulligan: wrong.lua:1: "), wrong.err)
    end)
end)
