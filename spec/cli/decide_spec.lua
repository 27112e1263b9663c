-- mulligan decide: failures in, verdicts out. MULL_LINES: how many lines the test of its memory gives.
local json = require("mulligan").json
local mulligan = require "mulligan"
local process = require "support.process"

local LINES = tonumber(os.getenv "MULL_LINES") or 5000

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError" }
local bus = policy.bus()
bus:on("ValidationError"):dead_letter()
bus:on("Duplicate"):discard("was \"done\"")
bus:on("Raises", function(err) return err.missing.field end):retry(1)
bus:on("DatabaseError", { transient = true }):retry(5, "200ms"):then_redeliver()
bus:default():retry(1, "1s"):then_dead_letter("parked")
bus:unrecoverable("Hopeless")
policy.consumer("Hurried"):deadline("1m")
]]

-- What language.md's example is, with a field that the policy asks for.
local WHOLE = [[{"error": {"type": "PgError", "lineage": ["DatabaseError"], "message": "deadlock detected", ]]
    .. [["code": "40P01", "transient": true, "cause": {"type": "TimeoutError"}}, "consumer": "PaymentHandler", ]]
    .. [["transport": "orders", "attempt": 1, "redeliveries": 0, "calls": 1, "deliveries": 1, "age_ms": 0, ]]
    .. [["message": {"id": "m-1", "type": "OrderPlaced", "key": "42", "size": 300, "headers": {"tenant": "acme"}}, ]]
    .. [["can": {"retry": true, "delay": true}}]]

describe("mulligan decide", function()
    local folder, generation

    setup(function()
        folder = process.folder { ["policy.lua"] = POLICY, ["deep/policy.lua"] = POLICY }
        local policy = assert(mulligan.load(folder:path("policy.lua")))
        generation = policy:generation()
        policy:close()
    end)

    teardown(function()
        folder:remove()
    end)

    local function decide(input, ...)
        return folder:mulligan({ "decide", "policy.lua", ... }, { stdin = input })
    end

    -- The lines of an answer.
    local function lines_of(out)
        local lines = {}
        for line in out:gmatch("([^\n]*)\n") do
            lines[#lines + 1] = line
        end
        return lines
    end

    it("gives every key of a verdict, in its order", function()
        local start = '{"action": "%s", "delay_ms": %d, "queue": %s, "reason": %s, "note": %s, '
        local rest = '"tier": %s, "step": %s, "of": %s, "rule": {"file": "policy.lua", "line": %d, "scope": "bus", '
            .. '"type": "%s"}, "fallback": %s, "generation": "' .. generation .. '"}'
        local format = start .. rest
        for input, wanted in pairs {
            [WHOLE] = format:format("retry", 200, "null", "null", "null", '"retry"', 1, 5, 7, "DatabaseError", "null"),
            ['{"error": {"type": "ValidationError"}}'] = format:format("dead_letter", 0, '"error"', '"rule"', "null",
                "null", "null", "null", 4, "ValidationError", "null"),
            ['{"error": {"type": "Duplicate"}, "message": null}'] = format:format("discard", 0, "null", '"rule"',
                '"was \\"done\\""', "null", "null", "null", 5, "Duplicate", "null"),
            ['{"error": {"type": "X"}, "attempt": 2.0}'] = format:format("dead_letter", 0, '"parked"', '"exhausted"',
                "null", "null", "null", "null", 8, "Error", "null"),
            ['{"error": {"type": "X"}, "can": {"retry": false}}'] = format:format("dead_letter", 0, '"error"',
                '"fallback"', "null", "null", "null", "null", 8, "Error", '"no_retry"'),
            ['{"error": {"type": "X"}, "consumer": "Hurried", "age_ms": 59001}'] = format:format("dead_letter", 0,
                '"parked"', '"deadline"', "null", "null", "null", "null", 8, "Error", "null"),
            ['{"error": {"type": "Hopeless"}}'] = format:format("dead_letter", 0, '"error"', '"unrecoverable"', "null",
                "null", "null", "null", 9, "Hopeless", "null"),
        } do
            assert.same({ code = 0, out = wanted .. "\n", err = "" }, decide(input .. "\n", "--no-jitter"), input)
        end
        local no_rule = decide '{"error": {"type": "MessageDeserializationError"}}'
        assert.is_truthy(no_rule.out:find('"rule": null', 1, true), no_rule.out)
        assert.is_truthy(no_rule.out:find('"reason": "unrecoverable"', 1, true), no_rule.out)
    end)

    it("gives what policy:decide gives, and jitter by its seed", function()
        local policy = assert(mulligan.load(folder:path("policy.lua")))
        local failure = json.decode(WHOLE)
        local delays = {}
        for seed, number in pairs { ["0"] = 0, ["7"] = 7, ["-1"] = -1, ["18446744073709551615"] = -1,
            ["9223372036854775808"] = math.mininteger, ["-9223372036854775808"] = math.mininteger, ["007"] = 7 } do
            local wanted = policy:decide(failure, { seed = number })
            local answer = decide(WHOLE .. "\n", "--seed", seed)
            assert.equal(0, answer.code)
            assert.same(wanted, json.decode(answer.out))
            delays[wanted.delay_ms] = true
        end
        policy:close()
        assert.is_truthy(next(delays, next(delays)), "a seed changes nothing")
    end)

    it("answers what is no failure in its place, and ends in 1", function()
        local good = '{"error": {"type": "ValidationError"}}'
        local cases = {
            { "", "empty" },
            { " \t\r", "empty" },
            { "{", "not JSON: column 2: expected a name in quotes, not the end" },
            { '{"error": {"type": "A"}} {}', "not JSON: column 26: expected the end, not {" },
            { '{"error": {"type": "A", "type": "B"}}', 'not JSON: column 25: a name is there twice: "type"' },
            { '{"error": {"type": "A"}, "error": {"type": "A"}}',
                'not JSON: column 26: a name is there twice: "error"' },
            { '{"error": {"type": "\xff"}}', "not JSON: column 21: a byte that isn't UTF-8" },
            { '{"error": {"type": "A", "x": 1e999}}', "not JSON: column 30: a number is too large: 1e999" },
            { '{"error": {"type": "A", "a\\u0000b": 1}}', "not JSON: column 25: a name must not hold \\u0000" },
            { "[]", "error must have a type" },
            { "[1]", "unknown key in the failure: a number" },
            { "17", "a failure must be an object" },
            { "{}", "error must have a type" },
            { '{"error": null}', "error must have a type" },
            { '{"error": "A"}', "error must have a type" },
            { '{"error": {"type": ""}}', "error needs a type" },
            { '{"error": {"type": 5}}', "type must be a string" },
            { '{"error": {"type": "A\\u0000"}}', "type must be UTF-8, without a NUL" },
            { '{"error": {"type": "A", "x": "\\u0000"}}', "x must be UTF-8, without a NUL" },
            { '{"error": {"type": "A", "message": 5}}', "message must be a string" },
            { '{"error": {"type": "A", "lineage": "B"}}', "lineage must be a list of types" },
            { '{"error": {"type": "A", "lineage": {"B": "C"}}}', "lineage must be a list of types" },
            { '{"error": {"type": "A", "lineage": ["B", null]}}', "lineage must be a list of types" },
            { '{"error": {"type": "A", "cause": {}}}', "a cause needs a type" },
            { '{"error": {"type": "A", "cause": "B"}}', "cause must be an error" },
            { '{"error": {"type": "A"}, "consumer": ""}', "consumer must not be empty" },
            { '{"error": {"type": "A"}, "transport": 5}', "transport must be a string" },
            { '{"error": {"type": "A"}, "atempt": 1}',
                'unknown key "atempt" in the failure; did you mean "attempt"?' },
            { '{"error": {"type": "A"}, "tries": 1}', 'unknown key "tries" in the failure; there are error, '
                .. "consumer, transport, attempt, redeliveries, calls, deliveries, age_ms, message and can" },
            { '{"error": {"type": "A"}, "message": {"body": "x"}}', 'unknown key "body" in message; there are '
                .. "id, type, key, size and headers" },
            { '{"error": {"type": "A"}, "message": {"headers": {"a": 1}}}', 'header "a" must be a string' },
            { '{"error": {"type": "A"}, "message": {"headers": ["a"]}}',
                "names of headers must be strings, not empty" },
            { '{"error": {"type": "A"}, "message": {"size": -1}}', "size must be a whole number from 0" },
            { '{"error": {"type": "A"}, "can": {"redeliver": true}}', 'unknown key "redeliver" in can; there are '
                .. "retry and delay" },
            { '{"error": {"type": "A"}, "can": {"delay": 0}}', "delay must be true or false" },
        }
        for name, least in pairs { attempt = 1, calls = 1, deliveries = 1, redeliveries = 0, age_ms = 0 } do
            for _, value in ipairs { least - 1, "1.5", '"1"', "true", "18446744073709551616", "1e300", "[1]" } do
                cases[#cases + 1] = { ('{"error": {"type": "A"}, "%s": %s}'):format(name, value),
                    ("%s must be a whole number from %d"):format(name, least) }
            end
        end
        local input = { good }
        for number, case in ipairs(cases) do
            input[number + 1] = case[1]
        end
        input[#input + 1] = good
        local answer = decide(table.concat(input, "\n") .. "\n")
        assert.same({ 1, "" }, { answer.code, answer.err })
        local lines = lines_of(answer.out)
        assert.equal(#input, #lines)
        for number, case in ipairs(cases) do
            local said = json.decode(lines[number + 1]).error or lines[number + 1]
            local start = ("line %d: "):format(number + 1)
            assert.equal(start .. (case[2] or said:sub(#start + 1)), said)
        end
        assert.equal(lines[1], lines[#lines])
        assert.is_truthy(lines[1]:find('^{"action": "dead_letter"'), lines[1])
    end)

    it("takes null for missing, empty lists, and numbers of any size as fields", function()
        local bare = decide '{"error": {"type": "A"}}'
        for _, line in ipairs {
            '{"error": {"type": "A", "lineage": null, "message": null, "stack": null, "cause": null, "x": null}, '
                .. '"consumer": null, "transport": null, "attempt": null, "redeliveries": null, "calls": null, '
                .. '"deliveries": null, "age_ms": null, "message": null, "can": null}',
            '{"error": {"type": "A"}, "message": {"id": null, "headers": {"a": null}}, "can": {"retry": null}}',
            '{"error": {"type": "A", "lineage": []}}',
            '{"error": {"type": "A", "x": 123456789012345678901234567890, "y": [[{}], null]}}',
        } do
            assert.same({ code = 0, out = bare.out, err = "" }, decide(line .. "\n"), line)
        end
    end)

    it("takes CRLF, and a last line without an end", function()
        local line = '{"error": {"type": "ValidationError"}}'
        local one = decide(line).out
        assert.same({ code = 0, out = one .. one, err = "" }, decide(line .. "\r\n" .. line))
        assert.same({ code = 0, out = "", err = "" }, decide "")
    end)

    it("refuses a line of more than 16 MiB, and one with more than a failure holds", function()
        local good = '{"error": {"type": "ValidationError"}}\n'
        local long = good:sub(1, -2) .. (" "):rep(16 * 1024 * 1024 - #good + 1) .. "\n"
        local input = long .. " " .. long .. "[" .. ("[],"):rep(1024 * 1024) .. "0]\n" .. good
        local answer = decide(input)
        local lines = lines_of(answer.out)
        assert.same({ 1, 4 }, { answer.code, #lines })
        assert.equal(lines[1], lines[4])
        assert.is_truthy(lines[1]:find('^{"action": "dead_letter"'), lines[1])
        assert.equal('{"error": "line 2: longer than 16 MiB"}', lines[2])
        assert.equal('{"error": "line 3: JSON of too many values"}', lines[3])
    end)

    it("says on stderr what a matcher raised, and what a policy prints", function()
        local line = '{"error": {"type": "Raises"}}\n'
        folder:write("deep/policy.lua", 'print("hello")\n' .. POLICY)
        local answer = folder:mulligan({ "decide", "deep/policy.lua" }, { stdin = line .. line })
        assert.equal(0, answer.code)
        assert.equal("hello\n"
            .. "mulligan: line 1: deep/policy.lua:7: the matcher failed: "
            .. "policy.lua:7: attempt to index a nil value (field 'missing')\n"
            .. "mulligan: line 2: deep/policy.lua:7: the matcher failed: "
            .. "policy.lua:7: attempt to index a nil value (field 'missing')\n", answer.err)
        assert.equal(2, #lines_of(answer.out))
    end)

    it("refuses what it can't work with", function()
        folder:write("wrong.lua", "x =")
        local wrong = folder:mulligan { "decide", "wrong.lua" }
        assert.same({ 2, "" }, { wrong.code, wrong.out })
        assert.is_truthy(wrong.err:find("^mulligan: wrong.lua:1: "), wrong.err)
        for _, seed in ipairs { "x", "1.5", "0x10", "--5", "18446744073709551616", "-9223372036854775809", "1e3" } do
            assert.same({ code = 2, out = "", err = "mulligan: decide: --seed must be a 64-bit whole number, "
                .. 'not "' .. seed .. '"\n' }, decide("", "--seed=" .. seed))
        end
        local folder_in = folder:run { "sh", "-c", 'exec "$0" decide policy.lua <.', process.mulligan }
        assert.same({ code = 1, out = "", err = "mulligan: decide: stdin: Is a directory\n" }, folder_in)
    end)

    it("ends in 1 where its answers can't be written", function()
        local function redirected(to, input)
            return folder:run({ "sh", "-c", 'exec "$0" decide policy.lua ' .. to, process.mulligan },
                { stdin = input })
        end
        assert.same({ code = 1, out = "", err = "mulligan: stdout: No space left on device\n" },
            redirected(">/dev/full", WHOLE .. "\n"))
        -- Nobody reads any more: it stops, though there is more to come.
        local gone = redirected("| head -n 1; cat >rest", (WHOLE .. "\n"):rep(3000))
        assert.is_truthy(gone.out:find('^{"action": [^\n]*}\n$'), gone.out)
        assert.is_truthy(gone.err:find("stdout: Broken pipe", 1, true), gone.err)
        assert.is_true(#folder:read("rest") > 0)
    end)

    it("ends in 1 as soon as nobody reads its answers any more, though it waits for the next line", function()
        local job = folder:start({ "sh", "-c", 'mkfifo in; exec 3<>in; cat >&3; '
            .. '{ "$0" decide policy.lua <in; echo $? >code; } | head -n 1', process.mulligan },
            { stdin = WHOLE .. "\n" })
        assert.equal(0, job.wait(), job.err())
        assert.equal("1\n", folder:read "code")
        assert.equal("mulligan: stdout: nobody reads the verdicts any more\n", job.err())
        assert.is_truthy(job.out():find('^{"action": [^\n]*}\n$'), job.out())
    end)

    -- Starts one whose input and output are pipes: write(text), read(), which gives a line, and close().
    local function converse(name, command)
        local to, from = folder:path(name .. ".to"), folder:path(name .. ".from")
        assert(os.execute(("mkfifo '%s' '%s'"):format(to, from)))
        local redirected = ('exec "$0" decide %s <%s.to >%s.from'):format(command or "policy.lua", name, name)
        -- What is freed is kept for a while under AddressSanitizer.
        local variables = { ASAN_OPTIONS = (os.getenv "ASAN_OPTIONS" or "") .. ":quarantine_size_mb=1" }
        local job = folder:start({ "sh", "-c", redirected, process.mulligan }, { env = variables })
        -- First the reader, with a watchdog: it would keep the other pipe open, had it that.
        local output = assert(io.popen(("timeout 60 cat '%s'"):format(from)))
        local input = assert(io.open(to, "w"))
        input:setvbuf("full", 65536)
        local talk = { job = job }
        function talk.say(words)
            assert(input:write(words))
            assert(input:flush())
        end
        function talk.hear()
            return output:read("l")
        end
        function talk.close()
            input:close()
            local rest = output:read("a")
            output:close()
            return rest, job.wait()
        end
        return talk
    end

    it("answers a line before it needs the next", function()
        local talk = converse "streams"
        for _, kind in ipairs { "ValidationError", "Duplicate", "X" } do
            talk.say(('{"error": {"type": "%s"}}\n'):format(kind))
            local answer = assert(talk.hear(), "no answer")
            assert.is_truthy(answer:find('"type": "' .. (kind == "X" and "Error" or kind) .. '"', 1, true), answer)
        end
        talk.say('{"error": {"type": "ValidationError"}}')
        local rest, code = talk.close()
        assert.is_truthy(rest:find('^{"action": "dead_letter"[^\n]*\n$'), rest)
        assert.equal(0, code)
    end)

    -- Asks what becomes of an error X, by the queue that the policy names.
    local function queue_of(talk)
        talk.say '{"error": {"type": "X"}}\n'
        return assert(talk.hear(), "no answer"):match '"queue": "([^"]*)"'
    end

    local function to_queue(name)
        return ('require("mulligan.policy").bus():default():dead_letter "%s"\n'):format(name)
    end

    it("--watch reloads the policy between two lines, and goes on with it where the new one is wrong", function()
        folder:write("watched.lua", to_queue "first")
        local talk = converse("watches", "watched.lua --watch")
        assert.equal("first", queue_of(talk))
        folder:write("watched.lua", to_queue "the second")
        assert.equal("the second", queue_of(talk))
        folder:write("watched.lua", "nonsense\n")
        assert.equal("the second", queue_of(talk))
        assert.equal("the second", queue_of(talk))
        folder:write("watched.lua", to_queue "third")
        assert.equal("third", queue_of(talk))
        local rest, code = talk.close()
        assert.equal("", rest)
        assert.equal(0, code)
        assert.matches("^mulligan: watched.lua:%d: [^\n]+\nmulligan: decide: generation %x+ goes on\n$", talk.job.err())
    end)

    it("lives through SIGHUP, at which --watch reloads the policy", function()
        folder:write("hung_up.lua", 'print "loaded"\n' .. to_queue "first")
        for _, option in ipairs { "", " --watch" } do
            local talk = converse("hangup" .. option:sub(2), "hung_up.lua" .. option)
            assert.equal("first", queue_of(talk))
            talk.job.kill "HUP"
            assert.equal("first", queue_of(talk))
            local _, code = talk.close()
            assert.equal(0, code)
            assert.equal(option == "" and "loaded\n" or "loaded\nloaded\n", talk.job.err())
        end
    end)

    -- The memory that a process has, in KiB.
    local function memory_of(pid)
        return tonumber(process.read(("/proc/%d/status"):format(pid)):match("VmRSS:%s*(%d+) kB"))
    end

    it("takes no more memory the more lines there are", function()
        local talk = converse "grows"
        local batch = (WHOLE:gsub("deadlock detected", ("deadlock "):rep(200)) .. "\n"):rep(20)
        local function work(lines)
            for _ = 1, lines, 20 do
                talk.say(batch)
                for _ = 1, 20 do
                    assert(talk.hear(), "no answer")
                end
            end
            return memory_of(talk.job.pid())
        end
        local before = work(2000)
        local after = work(LINES)
        local _, code = talk.close()
        assert.equal(0, code)
        assert.is_true(after - before < 2048, ("%d KiB before, %d KiB after %d lines"):format(before, after, LINES))
    end)
end)
