-- The storm on RabbitMQ: three processes compete for its queues and are killed with SIGKILL at random moments, the
-- server is killed and started again, or stands still for a while, and connections are cut, while messages are sent,
-- retried, redelivered, timed out, dead-lettered, discarded and sent on. Then every message that was taken has an end,
-- none came early, and what has more than one end was in the air when something broke.
--
-- The long form: MULL_STORM=long MULL_LIMIT=7200 ./do test spec/cli/amqp_storm_spec.lua
--
-- MULL_SEED repeats the choice of moments and victims. A moment is a number of lines in the ledger,
-- to which handlers append, so the choice is the same again and what a fault hits is not.
local ledger = require "support.ledger"
local process = require "support.process"
local proxy = require "support.proxy"
local rabbitmq = require "support.rabbitmq"
local testing = require "mulligan.testing"

local LONG = os.getenv "MULL_STORM" == "long"
local SEED = math.tointeger(tonumber(os.getenv "MULL_SEED")) or os.time()
local MESSAGES = LONG and 20000 or 1500
local FAULTS = LONG and { kill = 50, crash = 10, halt = 3, cut = 60 } or { kill = 6, crash = 2, halt = 1, cut = 6 }
local HALT_S = LONG and 10 or 2
local PROCESSES = 3
local BATCH = 100 -- messages of one `send`
local WATCHDOG_S = 120 + MESSAGES // 20

-- What is in the air in a process: for each consumer its handlers at work, and twice its prefetch that is claimed and
-- not started, or settled and not yet safe.
local IN_THE_AIR = (8 + 2 * 4) + (4 + 2 * 4)

-- Spans that the policy puts off for, by the redelivery that follows.
local DELAYS_MS = { 200, 500, 300 }

-- What time it is for all processes, in steps of 10 ms.
local STEP_MS = 10

local SERVICE = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", os.getenv "URL")
local times = assert(io.open("times", "a"))
times:setvbuf("no")

local function now_ms()
    local uptime <close> = io.open "/proc/uptime"
    return math.floor(uptime:read "n" * 1000)
end

-- comes notes that a call begins; later raises an error that puts the message off.
local function comes(msg)
    note("begin", msg)
    times:write(("begin %s %d %d\n"):format(msg.body, msg.redeliveries, now_ms()))
end
local function later(msg, error_type)
    times:write(("later %s %d %d\n"):format(msg.body, msg.redeliveries, now_ms()))
    m.error { type = error_type }
end

m.consumer("Work", {
    transport = "orders", queue = "work", concurrency = 8, prefetch = 4,
    handler = function(msg)
        comes(msg)
        local _ <close> = ending(msg)
        m.sleep "1ms"
        local number = tonumber(msg.body)
        local kind = number % 10
        if kind == 3 and msg.attempt == 1 then
            m.error { type = "Deadlock" }
        elseif kind == 4 and msg.redeliveries < 3 then
            later(msg, "Down")
        elseif kind == 5 then
            later(msg, "Hopeless")
        elseif kind == 7 then
            m.error { type = "Invalid" }
        elseif kind == 9 then
            m.error { type = "Duplicate" }
        end
        if kind == 6 then
            m.send("stage", "stage" .. number)
        else
            m.send("out", msg.body)
        end
        note("well", msg)
    end,
})

m.consumer("Stage", {
    transport = "orders", queue = "stage", concurrency = 4, prefetch = 4, timeout = "50ms",
    handler = function(msg)
        comes(msg)
        local _ <close> = ending(msg)
        if msg.redeliveries == 0 then
            times:write(("later %s 0 %d\n"):format(msg.body, now_ms()))
            m.sleep "1h"
        end
        m.send("out", (msg.body:gsub("stage", "")))
        note("well", msg)
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:max_deliveries(false)
bus:on("Deadlock"):retry(3, "5ms")
bus:on("Down"):redeliver { "200ms", "500ms", "300ms" }
bus:on("Hopeless"):retry(1, "1ms"):then_redeliver { "200ms" }:then_dead_letter("spent")
bus:on("Invalid"):dead_letter("invalid")
bus:on("Duplicate"):discard("seen")
bus:on("HandlerTimeoutError"):redeliver { "200ms" }
]]

-- What takes from the queues where messages end, and writes down what it got.
local DRAIN = [[
local m = require "mulligan"
m.policy "drain_policy.lua"
m.transport("orders", os.getenv "URL")
local file = assert(io.open("ends", "a"))
file:setvbuf("no")
for _, queue in ipairs { "out", "spent", "invalid", "error" } do
    m.consumer(queue, { transport = "orders", queue = queue, concurrency = 32, prefetch = 32, handler = function(msg)
        file:write(queue, " ", msg.body, "\n")
    end })
end
]]
local DRAIN_POLICY = 'require("mulligan.policy").bus():dead_letter_queue "lost"\n'

-- Lines that even an undisturbed run writes for ten messages; the last tenth is left for the drain.
local LINES = 42 * MESSAGES // 10
local LAST_FAULT = LINES * 9 // 10

-- The faults, in order: after how many lines each comes.
local function plan()
    local random, faults = testing.random(SEED), {}
    for _, kind in ipairs { "kill", "crash", "halt", "cut" } do
        for _ = 1, FAULTS[kind] do
            faults[#faults + 1] = {
                number = #faults,
                kind = kind,
                lines = random(LAST_FAULT),
                victim = random(PROCESSES),
                stopping = random(5) == 1,
                how = random(4),
                bytes = random(4000),
            }
        end
    end
    return ledger.in_order(faults)
end

-- ---- Sending -----------------------------------------------------------------------------------

-- A sender puts all numbers on the queue, batch by batch, and a batch again of which not each message was taken.
local function sender(folder, environment)
    local self = { times = {}, next = 1 }

    local function start()
        local bodies = {}
        for number = self.next, math.min(self.next + BATCH - 1, MESSAGES) do
            bodies[#bodies + 1] = number
            self.times[number] = (self.times[number] or 0) + 1
        end
        self.job = folder:start_mulligan({ "send", "work", "--transport", "orders", "--wait", "60s" }, {
            stdin = table.concat(bodies, "\n") .. "\n", env = environment,
        })
    end

    -- step goes on where it can; true: all were taken.
    function self.step()
        if self.job and self.job.state() then
            return false
        elseif self.job and self.job.wait() == 0 then
            self.next = self.next + BATCH
        end
        self.job = nil
        if self.next > MESSAGES then
            return true
        end
        start()
        return false
    end

    return self
end

-- ---- The run -----------------------------------------------------------------------------------

local storm = {}
storm.__index = storm

function storm:start()
    return self.folder:start_mulligan({ "run", "--log-format", "json" }, { env = self.environment })
end

function storm:note_log(job)
    self.logs[#self.logs + 1] = job.err()
end

-- kill kills a process, one in five while it stops, and starts another.
function storm:kill(fault)
    local job = self.jobs[fault.victim]
    if fault.stopping then
        job.kill "TERM"
    end
    job.kill "KILL"
    -- One that was told to stop may have ended by then: in order, or before it had begun.
    local code = job.wait()
    assert.is_true(code == 128 + 9 or fault.stopping and (code == 0 or code == 128 + 15), job.err())
    self:note_log(job)
    self.jobs[fault.victim] = self:start()
end

function storm:crash()
    self.server:kill()
    self.server:again()
end

function storm:halt()
    self.server:stand_still()
    os.execute("sleep " .. HALT_S)
    self.server:go_on()
end

function storm:cut(fault)
    local direction = fault.bytes % 2 == 0 and "up" or "down"
    local tell = { "cut", "reset", "cut-after %d %s", "reset-after %d %s" }
    self.proxy:tell(tell[fault.how]:format(fault.bytes, direction))
end

-- await_lines waits until there are so many lines in the ledger; something has to happen all the time.
function storm:await_lines(lines, goal)
    while lines() < goal do
        local before = lines()
        process.await("a line more than " .. before, function()
            self.sender.step()
            return lines() > before
        end)
    end
end

-- warm_up waits until each queue was used: a queue that is being made while RabbitMQ 3.10 is killed may stay without
-- a leader for good, and takes nothing.
function storm:warm_up()
    self.sender.step()
    for _, queue in ipairs { "out", "spent", "invalid" } do
        process.await("the queue " .. queue, function()
            return (self.server:depths()[queue] or 0) > 0
        end)
    end
    -- The longest way: three delays, in which each layer of the delays is used.
    ledger.await(self.folder, { word = "well", body = "4" })
end

-- run brings all faults, and all messages are sent; then the processes end in order.
function storm:run()
    local lines = ledger.counter(self.folder)
    for number = 1, PROCESSES do
        self.jobs[number] = self:start()
    end
    self:warm_up()
    for _, fault in ipairs(plan()) do
        self:await_lines(lines, fault.lines)
        self[fault.kind](self, fault)
    end
    process.await("the last messages to be taken", self.sender.step)
    for _, job in ipairs(self.jobs) do
        job.kill "TERM"
        local code = job.wait()
        assert.is_true(code == 0 or code == 128 + 15, job.err()) -- the latter: it had not begun yet
        self:note_log(job)
    end
end

-- drain works on what is left, and takes out all that has come to its end.
function storm:drain()
    for _, service in ipairs { "service.lua", "drain.lua" } do
        local job = self.folder:start_mulligan({ "run", service, "--until-empty", "--quiet", "3s" }, {
            env = self.environment,
        })
        assert.equal(0, job.wait(WATCHDOG_S), job.err())
        self:note_log(job)
    end
end

-- ---- What must hold ----------------------------------------------------------------------------

-- check_ends: each number is where it ends, and nowhere else; how many more there are than one of each.
local function check_ends(folder)
    local times, more = {}, 0
    for place in (folder:read "ends"):gmatch "([^\n]+)\n" do
        times[place] = (times[place] or 0) + 1
    end
    for number = 1, MESSAGES do
        local place = ledger.end_of(number) .. " " .. number
        local wanted = ledger.end_of(number) ~= "discarded" and 1 or 0
        assert.is_true((times[place] or 0) >= wanted, "missing: " .. place)
        more = more + (times[place] or 0) - wanted
        times[place] = nil
    end
    assert.same({}, times)
    return more
end

local function check_handled(entries)
    local began = {}
    for _, entry in ipairs(entries) do
        began[entry.body] = true
    end
    for number = 1, MESSAGES do
        assert.is_true(began[tostring(number)], number)
    end
end

-- check_times: what was put off came no sooner. Of a message that was handed out twice, the first one counts.
local function check_times(folder)
    local put_off, late, count = {}, 0, 0
    for word, body, redeliveries, ms in (folder:read "times"):gmatch "(%l+) (%S+) (%d+) (%d+)\n" do
        local round = math.tointeger(redeliveries)
        local key, before = body .. " " .. round, body .. " " .. round - 1
        if word == "later" then
            put_off[key] = put_off[key] or tonumber(ms)
        elseif round > 0 and put_off[before] then
            local over_ms = ms - put_off[before] - DELAYS_MS[round]
            assert.is_true(over_ms > -STEP_MS, ("%s: %d ms early"):format(key, -over_ms))
            count, late = count + 1, math.max(late, over_ms)
        end
    end
    assert.is_true(count > MESSAGES // 10)
    return late
end

-- check_logs: whatever broke, the transport did nothing that it may not, and refused nothing for good.
local function check_logs(logs)
    for _, log in ipairs(logs) do
        for line in log:gmatch "[^\n]+" do
            assert.is_nil(line:find('"level":"error","event":"log","text":"transport orders: ', 1, true), line)
            assert.is_nil(line:find(" is parked: ", 1, true), line)
        end
    end
end

-- broken is how many connections of processes the faults may have ended.
local function broken()
    return FAULTS.kill + PROCESSES * (FAULTS.crash + FAULTS.halt + FAULTS.cut)
end

describe("RabbitMQ and three processes in a storm", function()
    local self

    after_each(function()
        if self then
            self.folder:remove()
            self.server:remove()
        end
    end)

    it("bring every message that was taken to an end", function()
        local server, why = rabbitmq.start()
        if not server then
            return pending(why)
        end
        print(("\n%d messages, %d kills, %d crashes of the server, %d halts, %d cuts, MULL_SEED=%d"):format(MESSAGES,
            FAULTS.kill, FAULTS.crash, FAULTS.halt, FAULTS.cut, SEED))
        self = setmetatable({ server = server, jobs = {}, logs = {} }, storm)
        self.folder = process.folder {
            ["service.lua"] = SERVICE,
            ["policy.lua"] = POLICY,
            ["drain.lua"] = DRAIN,
            ["drain_policy.lua"] = DRAIN_POLICY,
        }
        self.proxy = proxy.start(self.folder, server.port)
        self.environment = { URL = ("amqp://guest:guest@127.0.0.1:%d?heartbeat=5s"):format(self.proxy.port) }
        self.sender = sender(self.folder, self.environment)
        local began_at = os.time()
        self:run()
        self:drain()
        local seconds = os.time() - began_at
        local again = 0
        for _, times in ipairs(self.sender.times) do
            again = again + times - 1
        end
        check_handled(ledger.read(self.folder))
        local more, late_ms = check_ends(self.folder), check_times(self.folder)
        assert.is_true(more <= broken() * IN_THE_AIR + again, more)
        check_logs(self.logs)
        server:await_depths {} -- those of the delays are empty, too
        print(("%d s, %d ends more than messages (at most %d; %d were sent again), %d ms late at most"):format(seconds,
            more, broken() * IN_THE_AIR + again, again, late_ms))
    end)
end)
