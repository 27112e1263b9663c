-- mulligan serve: verdicts for other programs, on a Unix socket. What one client may do, and when it is ended, is shown
-- without a socket by spec/unit/control/session.c; the bytes of docs/serve.md by spec/docs/serve_spec.lua.
local json = require("mulligan").json
local mulligan = require "mulligan"
local msgpack = require "support.msgpack"
local process = require "support.process"
local serving = require "support.serving"

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError" }
local bus = policy.bus()
bus:on("ValidationError"):dead_letter("parked")
bus:on("Raises", function(err) return err.missing.field end):retry(1)
bus:on("DatabaseError", { transient = true }):retry { attempts = 5, delay = "200ms", jitter = 0 }
bus:default():retry(1, "1s"):then_dead_letter("parked")
]]

local FAILURE = {
    error = { type = "PgError", lineage = { "DatabaseError" }, message = "deadlock detected", transient = true,
        cause = { type = "TimeoutError" } },
    consumer = "PaymentHandler", transport = "orders", attempt = 2, redeliveries = 1, calls = 3, deliveries = 2,
    age_ms = 40, message = { id = "m-1", type = "OrderPlaced", key = "42", size = 300, headers = { tenant = "acme" } },
    can = { retry = true, delay = true },
}

local null = msgpack.null

describe("mulligan serve", function()
    local server

    setup(function()
        server = serving.new(POLICY):start()
    end)

    teardown(function()
        server:remove()
    end)

    it("gives the verdicts of policy:decide, every key", function()
        local policy <close> = assert(mulligan.load(server.folder:path "policy.lua"))
        local requests, failures = {}, {
            FAILURE,
            { error = { type = "ValidationError" } },
            { error = { type = "Raises" } },
            { error = { type = "X" }, attempt = 2.0 },
            { error = { type = "X", fields = { 1, { 2.5 } } }, message = {}, can = { retry = false } },
            { error = { type = "X", long = ("é"):rep(40000) }, message = { id = "m" } },
        }
        for number, failure in ipairs(failures) do
            requests[number] = { "decide", failure }
        end
        local keys = { "action", "delay_ms", "queue", "reason", "note", "tier", "step", "of", "rule", "fallback",
            "generation" }
        for number, answer in ipairs(server:ask(requests)) do
            assert.equal(null, answer.error, number)
            local wanted = policy:decide(failures[number])
            for _, key in ipairs(keys) do
                assert.is_not_nil(answer.result[key], key)
                if wanted[key] == nil then
                    assert.equal(null, answer.result[key], key)
                else
                    assert.same(wanted[key], answer.result[key])
                end
                answer.result[key] = nil
            end
            assert.is_nil(next(answer.result))
        end
    end)

    it("says what is wrong with a failure in the words of decide", function()
        local cases = {
            { {}, "error must have a type" },
            { { error = { type = "A" }, attempt = 0 }, "attempt must be a whole number from 1" },
            { { error = { type = "A" }, attempt = 1.5 }, "attempt must be a whole number from 1" },
            { { error = { type = "A" }, atempt = 1 }, 'unknown key "atempt" in the failure; did you mean "attempt"?' },
            { { error = { type = "A", lineage = "B" } }, "lineage must be a list of types" },
            { { error = { type = "A", lineage = { "B", null } } }, "lineage must be a list of types" },
            { { error = { type = "A", cause = "B" } }, "cause must be an error" },
            { { error = { type = "A", x = msgpack.bin "b" } },
                "bytes (bin, ext) have no place in a failure, whose texts are str" },
            { { error = { type = "\xff" } }, "a text must be UTF-8, without a NUL" },
            { { error = { type = "A\0" } }, "a text must be UTF-8, without a NUL" },
            { { error = { type = "A" }, consumer = "" }, "consumer must not be empty" },
        }
        local requests = {}
        for number, case in ipairs(cases) do
            requests[number] = { "decide", case[1] }
        end
        for number, answer in ipairs(server:ask(requests)) do
            assert.same({ error = { type = "RequestError", message = cases[number][2] }, result = null }, answer)
        end
    end)

    it("gives the same words and verdicts as decide, for a large failure too", function()
        local many = {}
        for number = 1, 3000 do
            many["n" .. number] = number
        end
        local too_many = {}
        for number = 1, 10001 do
            too_many[number] = number
        end
        local failures = {
            { error = { type = "A", many = many } },
            { error = { type = "A", too_many = too_many } },
            { error = { type = "A", text = ("x"):rep(1024 * 1024 - 500) } },
        }
        local lines, requests = {}, {}
        for number, failure in ipairs(failures) do
            lines[number] = json.encode(failure) .. "\n"
            requests[number] = { "decide", failure }
        end
        local decided = server.folder:mulligan({ "decide", "policy.lua" }, { stdin = table.concat(lines) })
        local number = 0
        for line in decided.out:gmatch("[^\n]+") do
            number = number + 1
            local wanted, answer = json.decode(line), server:ask({ requests[number] })[1]
            if wanted.error then
                assert.equal(wanted.error, ("line %d: %s"):format(number, answer.error.message))
            else
                assert.equal(wanted.action, answer.result.action, answer.error.message)
                assert.equal(wanted.delay_ms, answer.result.delay_ms)
            end
        end
        assert.equal(3, number)
    end)

    it("decides on many, and says of each that is none", function()
        local thousand, beyond = {}, {}
        for number = 1, 1000 do
            thousand[number] = number % 10 == 0 and { attempt = 1 } or FAILURE
        end
        table.move(thousand, 1, 1000, 1, beyond)
        beyond[1001] = FAILURE
        local answers = server:ask {
            { "decide_many", { failures = thousand, other = { 1 } } },
            { "decide_many", { failures = beyond } },
            { "decide_many", { failures = msgpack.list {} } },
            { "decide_many", {} },
            { "decide_many", { failures = { a = 1 } } },
        }
        assert.equal(1000, #answers[1].result)
        for number, verdict in ipairs(answers[1].result) do
            if number % 10 == 0 then
                assert.same({ error = "error must have a type" }, verdict)
            else
                assert.equal("retry", verdict.action)
            end
        end
        local wrong = { type = "RequestError", message = "failures must be a list of at most 1000" }
        assert.same({ wrong, msgpack.list {}, wrong, wrong },
            { answers[2].error, answers[3].result, answers[4].error, answers[5].error })
    end)

    it("explains as explain does", function()
        local answers = server:ask { { "explain", FAILURE }, { "explain", { error = {} } } }
        local words = server.folder:mulligan({ "explain", "policy.lua", "--failure", "-" },
            { stdin = json.encode(FAILURE) })
        assert.equal(words.out, answers[1].result.text)
        assert.equal(6, answers[1].result.rule.line)
        assert.equal("passed", answers[1].result.candidates[1].result)
        assert.equal("retry", answers[1].result.timeline.both.first[1].action)
        assert.equal(null, answers[1].result.timeline.both.first[1].queue)
        assert.equal("error needs a type", answers[2].error.message)
    end)

    it("explains what goes on for long within a frame", function()
        local other <close> = setmetatable({ it = serving.new([[
local policy = require "mulligan.policy"
policy.bus():default():retry(30):then_redeliver { attempts = "unlimited", delay = "1s" }
policy.bus():max_age("365d")
]]):start() }, { __close = function(held) held.it:remove() end })
        local answer = other.it:ask({ { "explain", { error = { type = "A" } } } })[1]
        local both = answer.result.timeline.both
        assert.equal(100, #both.first)
        assert.equal(20, #both.last)
        assert.is_true(both.left_out > 100)
    end)

    it("tells of each matcher that raised, in the log", function()
        server:ask { { "decide", { error = { type = "Raises" } } } }
        server:await_log "matcher_failed: policy.lua:5: "
    end)

    it("lets in whoever is of the same user, and nobody else", function()
        local looked = server.folder:run { "stat", "-c", "%a %F", "run", "run/socket" }
        assert.equal("700 directory\n600 socket\n", looked.out)
        if server.folder:run({ "id", "-u" }).out ~= "0\n" then
            pending "only root can be somebody else"
            return
        end
        server.folder:run { "sh", "-c", "chmod 711 . run; chmod 666 run/socket" }
        local connect = "import socket as x, sys; s = x.socket(x.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9))"
        local ran = server.folder:run { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env",
            "PATH=/usr/bin:/bin", "python3", "-c", connect, server.socket }
        assert.equal("b''\n", ran.out, ran.err)
        server:await_log "of user 65534 may not connect"
    end)

    it("answers many clients at once, and goes on when they end in the midst of a message", function()
        local jobs, lines = {}, { "> " .. serving.hex(serving.HELLO), "<" }
        local request = serving.hex(serving.message(7, "decide", FAILURE))
        for _ = 1, 100 do
            lines[#lines + 1] = "> " .. request
            lines[#lines + 1] = "<"
        end
        lines[#lines + 1] = "> " .. request:sub(1, 40)
        for number = 1, 20 do
            jobs[number] = server.folder:start({ "python3", process.here .. "/spec/support/exchange.py",
                server.socket }, { stdin = table.concat(lines, "\n") .. "\n" })
        end
        for _, job in ipairs(jobs) do
            assert.equal(0, job.wait(), job.err())
            local _, count = job.out():gsub("\n", "")
            assert.equal(101, count)
        end
        assert.equal(null, server:ask({ { "policy", {} } })[1].error)
    end)

    -- More than all that sockets and the server keep.
    it("answers one that asks much more than it has read answers to", function()
        local request = serving.hex(serving.message(7, "decide_many", { failures = { FAILURE, FAILURE, FAILURE } }))
        local lines = { "> " .. serving.hex(serving.HELLO), "<", ">> " .. request:rep(3000) }
        for _ = 1, 3000 do
            lines[#lines + 1] = "<"
        end
        local printed = server:speak(lines)
        assert.equal(3001, #printed)
        assert.equal(printed[2], printed[3001])
    end)

    it("answers what a client asked before it said that nothing more comes", function()
        local printed = server:speak { "> " .. serving.hex(serving.HELLO .. serving.message(1, "ping", {})), "shut",
            "<", "<", "<" }
        assert.same({ 1, 1, null, {} }, msgpack.decode(serving.bytes_of(printed[2])))
        assert.equal("closed", printed[3])
    end)

    it("says why it disconnects a client", function()
        local printed = server:speak { "> " .. serving.hex(serving.message(3, "decide", FAILURE)), "<", "<" }
        local refused = msgpack.decode(serving.bytes_of(printed[1]))
        assert.same({ type = "ProtocolError", message = "the first message must be the request hello",
            versions = { 1 } }, refused[3])
        assert.equal("closed", printed[2])
        server:await_log "is disconnected: the first message must be the request hello"
        printed = server:speak { "> " .. serving.hex(serving.HELLO), "<", "> c1", "<", "<" }
        assert.same({ 1, null }, { table.unpack(msgpack.decode(serving.bytes_of(printed[2])), 1, 2) })
        assert.equal("closed", printed[3])
    end)
end)

describe("mulligan serve's policy", function()
    local server

    before_each(function()
        server = serving.new(POLICY):start()
    end)

    after_each(function()
        server:remove()
    end)

    -- The answers to `policy` before and after a command; and what came between.
    local function around(command, notified)
        local ask = "> " .. serving.hex(serving.message(1, "policy", {}))
        local lines = { "> " .. serving.hex(serving.HELLO), "<", ask, "<", "! " .. command }
        lines[#lines + 1] = notified and "<" or nil
        lines[#lines + 1] = ask
        lines[#lines + 1] = "<"
        local printed = server:speak(lines)
        for number, line in ipairs(printed) do
            printed[number] = msgpack.decode(serving.bytes_of(line))
        end
        return printed[2][4], printed[#printed][4], notified and printed[3]
    end

    it("is loaded anew when its file changes, and clients are told", function()
        server.folder:write("next.lua", POLICY:gsub("parked", "elsewhere"))
        local before, after, told = around("mv next.lua policy.lua", true)
        assert.is_not.equal(before.generation, after.generation)
        assert.same({ 2, "policy_changed", { { generation = after.generation } } }, told)
        assert.same({ false, null }, { after.stale, after.problem })
        local answer = server:ask({ { "decide", { error = { type = "ValidationError" } } } })[1]
        assert.equal("elsewhere", answer.result.queue)
    end)

    it("is loaded anew at SIGHUP", function()
        server.job.kill "HUP"
        server:await_log "SIGHUP: the policy is unchanged"
    end)

    it("has a host policy beside it, where one is named", function()
        assert.equal(0, server:stop())
        server.folder:write("host.lua", 'local policy = require "mulligan.policy"\n'
            .. 'policy.host():unrecoverable("Hopeless")\n')
        server:start { "serve", "policy.lua", "--listen", "unix:run/socket", "--host-policy", "host.lua" }
        local failure = { error = { type = "Hopeless" } }
        local answers = server:ask { { "decide", failure }, { "explain", failure } }
        assert.same({ "unrecoverable", "host" }, { answers[1].result.reason, answers[1].result.rule.scope })
        assert.matches("by policy.lua and host.lua (generation", answers[2].result.text, 1, true)
    end)

    it("stays where the files are wrong, which is told", function()
        server.folder:write("next.lua", "this is no policy")
        local before, after = around(
            'mv next.lua policy.lua; until grep -q policy_refused job1.err; do sleep 0.05; done')
        assert.equal(before.generation, after.generation)
        assert.is_true(after.stale)
        assert.matches("^policy.lua:1: ", after.problem)
        assert.same({ false, null }, { before.stale, before.problem })
        assert.equal("policy.lua", before.files[1])
    end)
end)

describe("mulligan serve ends", function()
    local server

    before_each(function()
        server = serving.new(POLICY)
    end)

    after_each(function()
        server:remove()
    end)

    for _, signal in ipairs { "TERM", "INT" } do
        it("in 0 at SIG" .. signal .. ", with its clients, and takes its socket away", function()
            server:start()
            local printed = server:speak { "> " .. serving.hex(serving.HELLO), "<",
                ("! kill -%s %d"):format(signal, server.job.pid()), "<" }
            assert.equal("closed", printed[2])
            assert.equal(0, server.job.wait(), server.job.err())
            assert.is_false(os.rename(server.socket, server.socket) or false)
        end)
    end

    local function refused(words, line)
        local ran = server.folder:mulligan(words)
        assert.same({ code = 2, out = "", err = line .. "\n" }, ran)
    end

    it("where another one listens, which goes on", function()
        server:start()
        refused({ "serve", "policy.lua", "--listen", "unix:run/socket" }, "mulligan: serve: unix:run/socket: another "
            .. "program listens there already; end that one, or name another path")
        assert.equal(null, server:ask({ { "policy", {} } })[1].error)
    end)

    it("but takes the place of one that was killed", function()
        server:start()
        server.job.kill "KILL"
        server.job.wait()
        server:start()
        assert.equal(null, server:ask({ { "policy", {} } })[1].error)
    end)

    it("leaves alone a socket that another one put in its place", function()
        server:start()
        server.folder:run { "mv", "run/socket", "run/old" }
        local second = server.folder:start_mulligan { "serve", "policy.lua", "--listen", "unix:run/socket" }
        process.await("the second listens", function()
            return second.err():find "listening on"
        end)
        assert.equal(0, server:stop())
        assert.equal(null, server:ask({ { "policy", {} } })[1].error)
        second.kill "TERM"
        assert.equal(0, second.wait())
    end)

    it("with a line where it can't listen", function()
        server.folder:write("file", "")
        server.folder:run { "sh", "-c", "mkdir open && chmod 777 open && mkdir sticky && chmod 1777 sticky" }
        refused({ "serve", "policy.lua" },
            "mulligan: serve: --listen must be unix:PATH, such as unix:/run/user/1000/verdicts.sock")
        refused({ "serve", "policy.lua", "--listen", "tcp:127.0.0.1:1" }, "mulligan: serve: --listen must be "
            .. 'unix:PATH, such as unix:/run/user/1000/verdicts.sock, not "tcp:127.0.0.1:1"')
        refused({ "serve", "policy.lua", "--listen", "unix:file" },
            "mulligan: serve: unix:file: there is something that is no socket; it stays")
        refused({ "serve", "policy.lua", "--listen", "unix:no/where/s" },
            "mulligan: serve: unix:no/where/s: the folder no/where can't be made: No such file or directory")
        refused({ "serve", "policy.lua", "--listen", "unix:" .. ("x"):rep(108) }, ("mulligan: serve: unix:%s: a "
            .. "socket's path has at most 107 bytes, and this one 108"):format(("x"):rep(108)))
        refused({ "serve", "policy.lua", "--listen", "unix:open/s" }, "mulligan: serve: unix:open/s: others may write "
            .. "to the folder open, and could put a socket in this one's place; chmod go-w open")
        server:start { "serve", "policy.lua", "--listen", "unix:sticky/s" }
        assert.equal(0, server:stop())
    end)

    it("with a line where the policy can't be loaded", function()
        server.folder:write("policy.lua", "local policy = require 'mulligan.policy'\npolicy.bus():default():rety()\n")
        local ran = server.folder:mulligan { "serve", "policy.lua", "--listen", "unix:run/socket" }
        assert.equal(2, ran.code)
        assert.matches('^mulligan: policy.lua:2: "rety"', ran.err)
        assert.is_nil(server.folder:read "run/socket")
    end)

    it("leaves no descriptor and no memory behind a thousand clients", function()
        server:start()
        local function descriptors()
            return tonumber(server.folder:run({ "sh", "-c", ("ls /proc/%d/fd | wc -l"):format(server.job.pid()) }).out)
        end
        local before = descriptors()
        local lines = {}
        for _ = 1, 1000 do
            lines[#lines + 1] = "> " .. serving.hex(serving.HELLO)
            lines[#lines + 1] = "<"
            lines[#lines + 1] = "open"
        end
        assert.equal(1000, #server:speak(lines))
        process.await("all are gone", function()
            return descriptors() <= before
        end)
    end)

    it("goes on where descriptors are used up, once clients go", function()
        server.folder:write("few.sh", 'ulimit -n 24; exec "$@"')
        server.job = server.folder:start { "sh", "few.sh", process.mulligan, "serve", "policy.lua", "--listen",
            "unix:run/socket" }
        server:await_log "listening on unix:"
        local many = [[
import socket, sys
held = []
for _ in range(40):
    s = socket.socket(socket.AF_UNIX)
    s.connect(sys.argv[1])
    held.append(s)
sys.stdin.read()
]]
        server.folder:write("many.py", many)
        server.folder:run { "mkfifo", "hold" }
        local job = server.folder:start { "sh", "-c", 'python3 many.py "$1" <hold', "sh", server.socket }
        local hold = assert(io.open(server.folder:path "hold", "w"))
        server:await_log "there are no more file descriptors"
        hold:close()
        assert.equal(0, job.wait(), job.err())
        assert.equal(null, server:ask({ { "policy", {} } })[1].error)
    end)
end)
