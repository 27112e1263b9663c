-- m.exec: a program as a handler. Time is a test's; the programs, and what limits them, are real.
local json = require("mulligan").json
local mulligan = require "mulligan"
local process = require "support.process"
local rigs = require "support.rigs"

-- state_of gives how the kernel calls a process, "Z" for one that nobody has buried; nil: it is gone.
local function state_of(pid)
    local stat = process.read(("/proc/%d/stat"):format(pid))
    return stat and stat:match("^%d+ %(.*%) (%a)")
end

local function await_end(pid)
    process.await("the end of process " .. pid, function()
        local state = state_of(pid)
        return state == nil or state == "Z" or state == "X"
    end)
end

describe("m.exec", function()
    local folder, rig

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        rigs.close()
        folder:remove()
    end)

    -- shell gives a handler that runs a script in our folder.
    local function shell(script)
        return mulligan.exec { "sh", "-c", 'cd "$0" || exit; ' .. script, folder.root }
    end

    local function start(handler, more_of_consumer, more)
        rig = rigs.start("bus:default():dead_letter()", handler, more, more_of_consumer)
    end

    local function send(body, given)
        assert(rig:publish("work", body or "x", given))
    end

    local function failure()
        return assert(rig:events("decided")[1], "nothing failed").failure.error
    end

    -- fails_with gives the error of a script that fails.
    local function fails_with(script, ...)
        start(shell(script), ...)
        send()
        local found = failure()
        rigs.close()
        return found
    end

    describe("gives the program", function()
        it("the body on stdin, byte for byte", function()
            local bytes = {}
            for byte = 0, 255 do
                bytes[byte + 1] = string.char(byte)
            end
            local body = table.concat(bytes):rep(64 * 1024)
            start(shell "cat >body")
            send(body)
            assert.equal(1, rig:counts().done)
            assert.is_true(folder:read("body") == body)
        end)

        it("a body of which it reads nothing", function()
            start(shell "exec true")
            send(("x"):rep(1024 * 1024))
            assert.equal(1, rig:counts().done)
        end)

        it("what the message says, in its environment", function()
            start(shell "env -0 >env")
            send("x", { id = "m-1", type = "Order", key = "a=b\nc", headers = { tenant = "ä", ["a b"] = '"' } })
            local seen = {}
            for name, value in folder:read("env"):gmatch("(MULLIGAN_[^=]*)=([^\0]*)\0") do
                seen[name] = value
            end
            assert.same({ tenant = "ä", ["a b"] = '"' }, json.decode(seen.MULLIGAN_HEADERS))
            seen.MULLIGAN_HEADERS = nil
            assert.same({
                MULLIGAN_ID = "m-1", MULLIGAN_TYPE = "Order", MULLIGAN_KEY = "a=b\nc", MULLIGAN_QUEUE = "work",
                MULLIGAN_ATTEMPT = "1", MULLIGAN_REDELIVERIES = "0",
            }, seen)
        end)

        it("its attempts", function()
            local script = 'echo "$MULLIGAN_ATTEMPT $MULLIGAN_REDELIVERIES" >>seen; exit 1'
            rig = rigs.start('bus:default():retry(1, "1s"):then_redeliver { "1m" }', shell(script))
            send()
            rig:advance("1h")
            assert.equal("1 0\n2 0\n1 1\n2 1\n", folder:read("seen"))
        end)

        it("headers of more than 100 KiB in a file", function()
            local headers = {}
            for number = 1, 200 do
                headers["h" .. number] = ("x"):rep(1000)
            end
            start(shell 'cat "$MULLIGAN_HEADERS_FILE" >headers; echo "${MULLIGAN_HEADERS-none}" >variable')
            send("x", { headers = headers })
            assert.same(headers, json.decode(folder:read("headers")))
            assert.equal("none\n", folder:read("variable"))
        end)

        it("no file where they fit", function()
            start(shell 'echo "${MULLIGAN_HEADERS_FILE-none}" >variable; [ ! -e /dev/fd/3 ] && echo no >third')
            send()
            assert.same({ "none\n", "no\n" }, { folder:read("variable"), folder:read("third") })
        end)

        it("a process group and a session of its own", function()
            start(shell "cut -d' ' -f1,5,6 /proc/$$/stat >group")
            send()
            local pid, group, session = folder:read("group"):match("^(%d+) (%d+) (%d+)\n$")
            assert.same({ pid, pid }, { group, session })
        end)

        it("a stderr that it can open by its name", function()
            start(shell "echo to stderr >/dev/stderr; exit 1")
            send()
            assert.equal("to stderr\n", failure().stack)
        end)
    end)

    it("logs what it writes, a line for each", function()
        start(shell [[printf 'one\ntwo\n'; printf 'three\n\nfour' >&2]])
        send("x", { id = "m-1" })
        assert.same({
            "info: message m-1, consumer C: stdout: one",
            "info: message m-1, consumer C: stdout: two",
            "info: message m-1, consumer C: stderr: three",
            "info: message m-1, consumer C: stderr: four",
        }, rig.lines)
    end)

    describe("fails", function()
        it("as ExitError, with its exit code and what it said", function()
            local found = fails_with "echo starting >&2; echo no such order >&2; exit 3"
            assert.same({ "ExitError", 3, "sh ended with exit code 3: no such order" },
                { found.type, found.status, found.message })
            assert.equal("starting\nno such order\n", found.stack)
            found = fails_with "exit 255"
            assert.same({ "ExitError", 255, "sh ended with exit code 255", "" },
                { found.type, found.status, found.message, found.stack })
        end)

        it("as HandlerCrashError, with the signal that ended it", function()
            local found = fails_with [[echo '{"type":"Said"}' >&2; kill -s SEGV $$]]
            assert.same({ "HandlerCrashError", 11 }, { found.type, found.signal })
            assert.is_nil(found.status)
        end)

        it("as what its last line of stderr says in JSON", function()
            local found = fails_with [[
                echo noise >&2
                echo '{"type":"PgError","message":"deadlock","code":"40P01","deep":{"a":[1,2]},"none":null,
"lineage":["DbError"],"cause":{"type":"IoError"}}' | tr -d '\n' >&2; echo >&2; exit 1]]
            assert.same({ "PgError", "deadlock", "40P01", { a = { 1, 2 } }, "DbError", "IoError" },
                { found.type, found.message, found.code, found.deep, found.lineage[1], found.cause.type })
            assert.is_nil(found.status)
            assert.is_truthy(found.stack:find("^noise\n"))
        end)

        for what, line in pairs {
            ["is no JSON"] = "{oops",
            ["is a list"] = "[1]",
            ["has no type"] = '{"message":"x"}',
            ["has an empty type"] = '{"type":""}',
            ["has a type that is no text"] = '{"type":5}',
            ["has a message that is no text"] = '{"type":"X","message":5}',
            ["isn't UTF-8"] = '{"type":"\xff"}',
        } do
            it("as ExitError, where that line " .. what, function()
                folder:write("line", line)
                local found = fails_with "cat line >&2; exit 2"
                assert.same({ "ExitError", 2 }, { found.type, found.status })
            end)
        end

        it("with 64 KiB of a stderr that it floods, the last", function()
            local found = fails_with "yes 0123456789abcde | head -c 20000000 >&2; echo the end >&2; exit 1"
            assert.equal("sh ended with exit code 1: the end", found.message)
            assert.equal(64 * 1024, #found.stack)
            assert.equal("9abcde\nthe end\n", found.stack:sub(-15))
        end)

        it("with a stderr that is no text", function()
            local found = fails_with [[printf 'a\377b\000c' >&2; exit 1]]
            assert.equal("a?b c", found.stack)
        end)

        it("as HandlerTimeoutError, where it hangs, and ends it with what it started", function()
            start(shell 'sleep 1000 & echo "$$ $!" >pids; wait', { timeout = "100ms" })
            send()
            local found = failure()
            assert.equal("HandlerTimeoutError", found.type)
            for pid in folder:read("pids"):gmatch("%d+") do
                await_end(tonumber(pid))
            end
        end)

        it("as StartError, where its file is gone, or can't be run", function()
            folder:write("program", "#!/bin/sh\nexit 0\n")
            os.execute("chmod +x " .. folder:path("program"))
            start(mulligan.exec { folder:path("program") })
            send()
            assert.equal(1, rig:counts().done)
            os.execute("chmod -x " .. folder:path("program"))
            send()
            os.execute("rm " .. folder:path("program"))
            send()
            local events = rig:events("decided")
            assert.same({ "StartError", "EACCES" }, { events[1].failure.error.type, events[1].failure.error.code })
            assert.same({ "StartError", "ENOENT", folder:path("program")
                .. " can't be started: no such file or directory" },
                { events[2].failure.error.type, events[2].failure.error.code, events[2].failure.error.message })
        end)

        it("as StartError, where a variable is longer than the kernel takes", function()
            start(mulligan.exec { "true" })
            send("x", { key = ("k"):rep(200 * 1024) })
            assert.same({ "StartError", "E2BIG" }, { failure().type, failure().code })
        end)
    end)

    it("leaves nothing of its group behind", function()
        start(shell "sleep 1000 & echo $! >pid; exit 0")
        send()
        assert.equal(1, rig:counts().done)
        await_end(tonumber(folder:read("pid")))
    end)

    it("doesn't wait for a daemon that left its group and keeps its stdout", function()
        start(shell "setsid sh -c 'echo $$ >pid; exec sleep 1000' & until [ -s pid ]; do :; done; echo done")
        send()
        assert.equal(1, rig:counts().done)
        local pid = tonumber(folder:read("pid"))
        assert.equal("sleep\0001000\000", process.read(("/proc/%d/cmdline"):format(pid)))
        os.execute("kill -s KILL " .. pid)
    end)

    it("has as many at work as its concurrency, and no more", function()
        local script = [[
            echo >>started
            [ $(wc -l <started) -lt 64 ] || touch all
            until [ -e all ]; do sleep 0.02; done]]
        start(shell(script), { concurrency = 64 })
        for _ = 1, 64 do
            assert(rig.engine:publish("orders", "work", "x"))
        end
        rig.clock:turn()
        assert.equal(64, rig:counts().done)
    end)

    it("may be called by a handler", function()
        local inner = shell "cat >>bodies"
        start(function(msg)
            msg.body = msg.body .. "!"
            inner(msg)
            inner(msg)
        end)
        send "a"
        assert.equal("a!a!", folder:read("bodies"))
    end)

    it("works in a handler only, and in its own coroutine", function()
        local handler = mulligan.exec { "true" }
        local _, why = pcall(function()
            handler { headers = {}, id = "x", queue = "q", body = "" }
        end)
        assert.matches("^spec/lua/exec_spec.lua:%d+: mulligan.exec works in a handler only$", why)
    end)

    it("refuses a program that can't be run, when the consumer is added", function()
        local policy = assert(mulligan.load_text "")
        local engine = assert(mulligan.engine { policy = policy })
        assert(engine:transport("orders", "memory:"))
        folder:write("program", "")
        local here = folder:path("program")
        for name, why in pairs {
            ["no such program"] = 'm.exec: there is no program "no such program" in a folder of PATH',
            ["/no/such"] = 'm.exec: "/no/such": no such file or directory',
            [here] = ('m.exec: "%s" can\'t be run; make it a file that is executable (chmod +x)'):format(here),
            ["/tmp"] = 'm.exec: "/tmp" can\'t be run; make it a file that is executable (chmod +x)',
        } do
            local added = table.pack(engine:consumer("C", {
                transport = "orders", queue = "work", handler = mulligan.exec { name },
            }))
            assert.same({ n = 4, nil, why, "invalid", { { text = why } } }, added)
        end
        engine:close()
        policy:close()
    end)

    for what, case in pairs {
        ["nothing"] = { nil, 'takes a table, as in { "./invoice", "--one" }, not nil' },
        ["a text"] = { "true", 'takes a table, as in { "./invoice", "--one" }, not "true"' },
        ["no program"] = { {}, 'takes a program and its arguments, as in { "./invoice", "--one" }' },
        ["an empty one"] = { { "" }, 'takes texts without a NUL, as in { "./invoice", "--one" }, not ""' },
        ["a number"] = { { "true", 5 }, 'takes texts without a NUL, as in { "./invoice", "--one" }, not 5' },
        ["a hole"] = { { "true", nil, "x" }, 'takes a program and its arguments, as in { "./invoice", "--one" }' },
        ["an option"] = { { "true", timeout = "1s" }, 'unknown option "timeout"' },
    } do
        it("says what it takes, not " .. what, function()
            local well, why = pcall(function()
                mulligan.exec(case[1])
            end)
            assert.is_false(well)
            assert.is_truthy(why:find("^spec/lua/exec_spec.lua:%d+: mulligan.exec "), why)
            assert.is_truthy(why:find(case[2], 1, true), why)
        end)
    end
end)
