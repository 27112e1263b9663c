-- Handlers of `mulligan run` that are programs of their own: their time, its stop, a terminal, limits.
local process = require "support.process"
local queues = require "support.queues"

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
]]

local function is_there(pid)
    local stat = process.read(("/proc/%d/stat"):format(pid))
    local state = stat and stat:match("^%d+ %(.*%) (%a)")
    return state ~= nil and state ~= "Z" and state ~= "X"
end

describe("mulligan run, with programs as handlers,", function()
    local folder

    before_each(function()
        folder = process.folder { ["policy.lua"] = "" }
    end)

    after_each(function()
        for pid in (folder:read("pids") or ""):gmatch("%d+") do
            if is_there(pid) then
                os.execute("kill -s KILL " .. pid)
            end
        end
        folder:remove()
    end)

    -- serve writes a service.lua with one consumer, and sends it so many messages.
    local function serve(consumer, count)
        folder:write("service.lua", SERVICE .. ('m.consumer("C", { transport = "orders", queue = "work", %s })\n')
            :format(consumer))
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = ("x\n"):rep(count or 1) })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function dead_letters()
        return queues.take("sqlite:" .. folder:path("orders.db"), "error")
    end

    local function await_file(name)
        process.await(name, function()
            return folder:read(name)
        end)
    end

    local function await_ends()
        for pid in folder:read("pids"):gmatch("%d+") do
            process.await("the end of process " .. pid, function()
                return not is_there(pid)
            end)
        end
    end

    it("finds a program beside service.lua, wherever it is called from", function()
        folder:write("sub/service.lua", SERVICE .. [[
m.consumer("C", { transport = "orders", queue = "work", handler = m.exec { "./program", "an argument" } })
m.consumer("D", { transport = "orders", queue = "other", handler = function()
    print((m.run { "./program", "ran" }).stdout)
end })
]])
        folder:write("sub/policy.lua", "")
        folder:write("sub/program", '#!/bin/sh\necho "$1"\n')
        os.execute("chmod +x " .. folder:path("sub/program"))
        for _, queue in ipairs { "work", "other" } do
            local sent = folder:mulligan({ "send", queue, "--transport", "sqlite:sub/orders.db" }, { stdin = "x" })
            assert.same({ code = 0, out = "", err = "" }, sent)
        end
        local ran = folder:mulligan { "run", "--until-empty", "sub/service.lua" }
        assert.same({ 0, "ran\n\ndone 2, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { ran.code, ran.out }, ran.err)
        assert.matches("info    message .*, consumer C: stdout: an argument\n", ran.err)
    end)

    it("ends one that is past its timeout, with all of its group", function()
        serve [[timeout = "300ms", handler = m.exec {
            "sh", "-c", "echo $$ >>pids; sleep 1000 & echo $! >>pids; wait" }]]
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, ran.code, ran.err)
        local dead = dead_letters()
        assert.same({ 1, "HandlerTimeoutError" }, { #dead, dead[1].headers["mulligan-error-type"] })
        await_ends()
    end)

    it("kills one that ignores that, and runs none in its place before", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():retry(1, "1ms")')
        serve [[timeout = "300ms", handler = m.exec { "sh", "-c", [=[trap '' TERM; echo $$ >>pids
            first=$(head -n 1 pids); [ "$first" = $$ ] || ! kill -0 "$first" || echo two >two
            sleep 1000; sleep 1000]=] }]]
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, ran.code, ran.err)
        assert.equal("2", dead_letters()[1].headers["mulligan-calls"])
        assert.is_nil(folder:read("two"))
        await_ends()
    end)

    it("ends what a handler in Lua waits for, and closes its variables", function()
        serve [[timeout = "300ms", handler = function()
            local _ <close> = setmetatable({}, { __close = function() io.open("closed", "w"):close() end })
            m.run { "sh", "-c", "echo $$ >>pids; exec sleep 1000" }
            io.open("went on", "w"):close()
        end]]
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, ran.code, ran.err)
        assert.equal("HandlerTimeoutError", dead_letters()[1].headers["mulligan-error-type"])
        assert.same({ "" }, { folder:read("closed"), folder:read("went on") })
        await_ends()
    end)

    it("lets one end within the grace time of a stop", function()
        serve [[handler = m.exec { "sh", "-c", "echo $$ >>pids; until [ -e go ]; do sleep 0.01; done; echo >ended" }]]
        local job = folder:start_mulligan { "run" }
        await_file "pids"
        job.kill("TERM")
        process.await("the stop", function()
            return job.err():find("stopping: waiting up to 10000 ms for 1 call", 1, true)
        end)
        folder:write("go", "")
        assert.same({ 0, "\n" }, { job.wait(), folder:read("ended") }, job.err())
        assert.equal(0, #dead_letters())
    end)

    it("ends one that outlasts the grace time, and gives its message back", function()
        serve [[handler = m.exec { "sh", "-c", "echo $$ >>pids; sleep 1000 & echo $! >>pids; wait" }]]
        local job = folder:start_mulligan { "run" }
        await_file "pids"
        job.kill("TERM")
        assert.equal(0, job.wait())
        assert.same({ ready = 1, delayed = 0, claimed = 0 },
            queues.depth("sqlite:" .. folder:path("orders.db"), "work"))
        await_ends()
    end)

    it("keeps Ctrl-C in a terminal from them", function()
        serve [[handler = m.exec { "sh", "-c", "echo $$ >>pids; until [ -e go ]; do sleep 0.01; done; echo >ended" }]]
        folder:write("terminal.py", [[
import os, pty, sys, time
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
def until(condition):
    global said
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, said
        try:
            said += os.read(terminal, 65536)
        except OSError:
            return
until(lambda: b"policy_loaded" in said)
while not os.path.exists("pids"):
    time.sleep(0.01)
os.write(terminal, b"\x03")
until(lambda: b"stopping" in said)
open("go", "w").close()
until(lambda: False)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
]])
        local ran = folder:run { "python3", "terminal.py", process.mulligan, "run" }
        assert.same({ 0, "\n" }, { ran.code, folder:read("ended") }, ran.err)
        assert.equal(0, #dead_letters())
        assert.same({ ready = 0, delayed = 0, claimed = 0 },
            queues.depth("sqlite:" .. folder:path("orders.db"), "work"))
    end)

    it("refuses a program that isn't there, in its line; `check --for` does, `send` doesn't", function()
        serve [[handler = m.exec { "./not-there" }]]
        local why = 'mulligan: service.lua:4: m.exec: "./not-there": no such file or directory\n'
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.same({ 2, "", why }, { ran.code, ran.out, ran.err })
        local checked = folder:mulligan { "check", "policy.lua", "--for", "service.lua" }
        assert.same({ 2, "", why }, { checked.code, checked.out, checked.err })
    end)

    describe("has file descriptors for all of them:", function()
        local function limited(limit, count)
            serve(([[concurrency = %d, handler = m.exec { "sh", "-c", "ulimit -Sn" }]]):format(count))
            return folder:run { "sh", "-c", ('ulimit -S -n %d && ulimit -H -n %d && exec "$0" run --until-empty')
                :format(limit[1], limit[2]), process.mulligan }
        end

        it("raises the limit as far as they need", function()
            local ran = limited({ 128, 1024 }, 100)
            assert.equal(0, ran.code, ran.err)
            assert.matches("stdout: 264\n", ran.err)
        end)

        it("leaves a limit that is high enough", function()
            assert.matches("stdout: 300\n", limited({ 300, 1024 }, 100).err)
        end)

        it("refuses a concurrency for which there can't be enough", function()
            local ran = limited({ 128, 256 }, 1000)
            assert.same({ 2, 'mulligan: service.lua:4: consumer "C": its concurrency takes 2000 file descriptors, '
                .. "all handlers together 2000, and 192 can be had; lower it, or raise the limit of open files "
                .. "(ulimit -n)\n" }, { ran.code, ran.err })
        end)
    end)
end)
