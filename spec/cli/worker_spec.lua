-- Handlers of `mulligan run` that are worker processes: what they get, how they fail, their time, their end.
local process = require "support.process"
local python = require "support.python"
local queues = require "support.queues"

local INTERPRETER = python.with_msgpack()

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
]]

local WORKER = [[
import os, signal, subprocess, sys, threading, time
from mulligan import Worker
with open("pids", "a") as file:
    file.write(f"{os.getpid()}\n")
worker = Worker(slots=SLOTS)
]]

local function is_there(pid)
    local stat = process.read(("/proc/%d/stat"):format(pid))
    local state = stat and stat:match("^%d+ %(.*%) (%a)")
    return state ~= nil and state ~= "Z" and state ~= "X"
end

describe("mulligan run, with workers,", function()
    if not INTERPRETER then
        pending(python.LACKS)
        return
    end

    local folder, env

    before_each(function()
        folder = process.folder { ["policy.lua"] = "" }
        env = { PYTHONPATH = process.here .. "/clients/python" }
    end)

    after_each(function()
        for pid in (folder:read("pids") or ""):gmatch("%d+") do
            if is_there(pid) then
                os.execute("kill -s KILL " .. pid)
            end
        end
        folder:remove()
    end)

    -- send puts messages on the queue of the consumer.
    local function send(lines, more)
        local words = { "send", "work", "--transport", "orders", table.unpack(more or {}) }
        assert.same({ code = 0, out = "", err = "" }, folder:mulligan(words, { stdin = lines }))
    end

    -- serve writes a service.lua with one consumer, and its worker's handlers.
    local function serve(handlers, given)
        given = given or {}
        folder:write("service.lua", SERVICE .. ([[
m.consumer("C", { transport = "orders", queue = "work", concurrency = %d, timeout = %q,
    handler = m.worker { %q, "-W", "error", "worker.py", processes = %d } })
]]):format(given.concurrency or 1, given.timeout or "30s", INTERPRETER, given.processes or 1))
        folder:write("worker.py", WORKER:gsub("SLOTS", given.slots or 1) .. handlers .. "\nworker.run()\n")
    end

    local function run(summary, ...)
        local ran = folder:mulligan({ "run", "--until-empty", ... }, { env = env })
        assert.same({ 0, summary .. "\n" }, { ran.code, ran.out }, ran.err)
        return ran.err
    end

    local function taken(queue)
        return queues.take("sqlite:" .. folder:path("orders.db"), queue)
    end

    local function await_line(job, pattern)
        process.await(pattern, function()
            return job.err():find(pattern), job.err()
        end)
    end

    local function await_ends()
        for pid in folder:read("pids"):gmatch("%d+") do
            process.await("the end of process " .. pid, function()
                return not is_there(pid)
            end)
        end
    end

    it("gives them the message as it is, and sends what they send", function()
        serve [[
@worker.handler("C")
def handle(message):
    assert message.headers["n\u00e4me"] == "w\u00e9rt" and len(message.headers) == 100, message.headers
    assert (message.id, message.type, message.key, message.queue) == ("m-1", "Placed", "42", "work")
    assert (message.attempt, message.redeliveries, message.calls, message.deliveries) == (1, 0, 0, 1)
    assert 0 < message.time_left <= 30
    message.send("out", message.body, id="m-2", type="Shipped", key="7", headers={"a": "\u00e9"})
    message.send("later", "text", delay=0.001)
]]
        local words = { "--id", "m-1", "--type", "Placed", "--key", "42", "--header", "näme=wért" }
        for number = 1, 99 do
            table.move({ "--header", ("h%d=%d"):format(number, number) }, 1, 2, #words + 1, words)
        end
        local bytes = {}
        for byte = 0, 255 do
            bytes[byte + 1] = string.char(byte)
        end
        local body = table.concat(bytes):rep(64 * 1024)
        folder:write("body", body)
        words[#words + 1] = "body"
        send("", words)
        run "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0"
        local out = taken("out")[1]
        assert.is_true(out.body == body)
        assert.same({ "m-2", "Shipped", "7", "é" }, { out.id, out.type, out.key, out.headers.a })
        assert.equal("text", taken("later")[1].body)
    end)

    it("fails their calls by what they raise, and sends nothing then", function()
        folder:write("policy.lua", [[
local bus = require("mulligan.policy").bus()
bus:on("ArithmeticError"):dead_letter("sums")
bus:on("Declined", { code = 7 }):dead_letter("declined")
bus:on_cause("KeyError"):dead_letter("keys")
bus:default():dead_letter()
]])
        serve [[
class Declined(Exception):
    def __init__(self, code):
        super().__init__("declined \u00e9")
        self.code = code

@worker.handler("C")
def handle(message):
    message.send("out", message.body)
    if message.body == b"sum":
        1 / 0
    if message.body == b"declined":
        raise Declined(7)
    if message.body == b"cause":
        try:
            {}["k"]
        except KeyError as error:
            raise RuntimeError("outer") from error
    if message.body == b"exit":
        sys.exit(3)
    if message.body == b"send":
        message.send("", b"x")
]]
        send "sum\ndeclined\ncause\nexit\nsend\n"
        run "done 0, retried 0, redelivered 0, dead-lettered 5, discarded 0"
        assert.same({}, taken "out")
        local sum, declined, cause = taken("sums"), taken("declined"), taken("keys")
        assert.same({ 1, 1, 1 }, { #sum, #declined, #cause })
        assert.equal("ZeroDivisionError", sum[1].headers["mulligan-error-type"])
        assert.matches("worker.py", sum[1].headers["mulligan-error-stack"], 1, true)
        assert.equal("declined é", declined[1].headers["mulligan-error-message"])
        local others = {}
        for _, dead in ipairs(taken "error") do
            others[dead.body] = dead.headers["mulligan-error-type"] .. ": " .. dead.headers["mulligan-error-message"]
        end
        assert.equal("SystemExit: 3", others.exit)
        assert.matches("^Error: send: ", others.send)
    end)

    it("tells a handler that its time is over, and keeps its slot until it ends", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():retry(1, "1ms")')
        serve([[
at_work = 0
@worker.handler("C")
def handle(message):
    global at_work
    at_work += 1
    assert at_work == 1
    while not message.cancelled:
        time.sleep(0.001)
    print("told", message.cancelled)
    at_work -= 1
    message.send("out", b"too late")
]], { timeout = "200ms" })
        send "x\n"
        local log = run "done 0, retried 1, redelivered 0, dead-lettered 1, discarded 0"
        local _, told = log:gsub("told timeout", "")
        assert.equal(2, told, log)
        assert.matches("a worker's answer came after its call was cancelled; it is dropped, 2 so far", log, 1, true)
        assert.same({}, taken "out")
        assert.equal("HandlerTimeoutError", taken("error")[1].headers["mulligan-error-type"])
    end)

    it("has coroutines as handlers, which a cancel ends", function()
        serve([[
import asyncio
@worker.handler("C")
async def handle(message):
    await asyncio.sleep(0.001 if message.body == b"short" else 1000)
]], { timeout = "300ms", concurrency = 64, slots = 64 })
        send(("short\n"):rep(100) .. ("long\n"):rep(3))
        run "done 100, retried 0, redelivered 0, dead-lettered 3, discarded 0"
    end)

    it("ends one that doesn't answer a cancel, by TERM, then KILL, and starts another", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():retry(1, "1ms")')
        serve([[
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
with open("pids", "a") as file:
    file.write(subprocess.run(["pgrep", "-P", str(os.getpid()), "sleep"], capture_output=True, text=True).stdout)

@worker.handler("C")
def handle(message):
    if message.attempt == 1:
        time.sleep(1000)
]], { timeout = "100ms" })
        send "x\n"
        local log = run "done 1, retried 1, redelivered 0, dead-lettered 0, discarded 0"
        assert.matches("is ended: it didn't answer a cancel within 5 s", log, 1, true)
        assert.matches("worker process %d+ ended with signal 9", log)
        await_ends()
    end)

    it("runs alone what a worker had when it died, so that the message that kills is found", function()
        folder:write("policy.lua", [[
local bus = require("mulligan.policy").bus()
bus:on("HandlerCrashError", { signal = 9 }):retry(2, "1ms")
]])
        serve([[
together = threading.Barrier(4)
@worker.handler("C")
def handle(message):
    if message.attempt == 1:
        together.wait()
    if message.body == b"kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif message.attempt == 1:
        time.sleep(1000)
]], { concurrency = 4, slots = 4 })
        send "a\nkill\nb\nc\n"
        local log = run "done 3, retried 5, redelivered 0, dead-lettered 1, discarded 0"
        assert.matches("HandlerCrashError: worker process %d+ ended with signal 9; attempt 1 of 3", log)
        local dead = taken("error")[1]
        assert.same({ "kill", "HandlerCrashError" }, { dead.body, dead.headers["mulligan-error-type"] })
        await_ends()
    end)

    it("never gives one more than its slots, nor all of them more than the concurrency", function()
        serve([[
at_work, lock = 0, threading.Lock()
@worker.handler("C")
def handle(message):
    global at_work
    with lock:
        at_work += 1
        assert at_work <= 3
    time.sleep(0.002)
    with lock:
        at_work -= 1
]], { concurrency = 5, slots = 3, processes = 2 })
        send(("x\n"):rep(300))
        run "done 300, retried 0, redelivered 0, dead-lettered 0, discarded 0"
    end)

    it("lets them finish when it stops, within the grace time", function()
        serve([[
@worker.handler("C")
def handle(message):
    print("begun", message.body.decode())
    while not os.path.exists("go") and not message.cancelled:
        time.sleep(0.001)
    print("cancelled", message.cancelled)
]])
        send "x\ny\n"
        local job = folder:start_mulligan({ "run" }, { env = env })
        await_line(job, "begun x")
        job.kill "TERM"
        await_line(job, "stopping: waiting")
        folder:write("go", "")
        assert.equal(0, job.wait(), job.err())
        assert.matches("cancelled None", job.err(), 1, true)
        await_ends()
        assert.same({ ready = 1, delayed = 0, claimed = 0 },
            queues.depth("sqlite:" .. folder:path("orders.db"), "work"))
    end)

    it("gives back, uncounted, what a worker has when that is over, or when it dies meanwhile", function()
        serve([[
@worker.handler("C")
def handle(message):
    print("begun")
    while not message.cancelled and message.body == b"wait":
        time.sleep(0.001)
    print("told", message.cancelled)
    time.sleep(1000 if message.body == b"hang" else 0)
]])
        for body, act in pairs {
            wait = function() end,
            hang = function()
                os.execute("kill -s KILL " .. folder:read("pids"):match "(%d+)%s*$")
            end,
        } do
            send(body .. "\n")
            local job = folder:start_mulligan({ "run" }, { env = env })
            await_line(job, "begun")
            job.kill "TERM"
            await_line(job, "stopping: waiting")
            act()
            assert.equal(0, job.wait(), job.err())
            local back = taken "work"
            assert.same({ 1, 0, body }, { #back, back[1].calls, back[1].body }, job.err())
        end
    end)

    it("ends those that are wrong, says why, and starts others", function()
        for script, why in pairs {
            ["printf garbage >&0"] = "a worker is disconnected: a message must be %[0, id, method, %[map%]%]",
            ["exit 7"] = "worker process %d+ ended with exit code 7",
            ["sleep 1000"] = "a worker is disconnected: hello must come within 5 s",
        } do
            folder:write("service.lua", SERVICE .. ('m.consumer("C", { transport = "orders", queue = "work", '
                .. 'handler = m.worker { "sh", "-c", %q } })\n'):format(script))
            send "x\n"
            local job = folder:start_mulligan { "run" }
            process.await(why .. ", twice", function()
                local _, count = job.err():gsub(why, "")
                return count >= (script == "sleep 1000" and 1 or 2), job.err()
            end)
            job.kill "TERM"
            assert.equal(0, job.wait(), job.err())
            assert.equal(1, #taken "work")
        end
    end)

    it("refuses a program that isn't there, and options that are wrong", function()
        local function refused(worker, why)
            folder:write("service.lua", SERVICE .. 'm.consumer("C", { transport = "orders", queue = "work", handler = '
                .. worker .. " })\n")
            local ran = folder:mulligan { "run" }
            assert.equal(2, ran.code, ran.err)
            assert.equal("mulligan: service.lua:4: " .. why .. "\n", ran.err)
        end
        refused('m.worker { "no-such-program" }', 'm.worker: there is no program "no-such-program" in a folder of PATH')
        refused('m.worker { "./policy.lua" }',
            'm.worker: "./policy.lua" can\'t be run; make it a file that is executable (chmod +x)')
        refused('m.worker { "sh", processes = 0 }', "m.worker processes must be a whole number from 1, not 0")
        refused('m.worker { "sh", processes = 5000 }',
            "m.worker processes must be a whole number from 1 to 1024, not 5000")
    end)
end)
