-- The storm: three processes on one SQLite file, killed with SIGKILL at random moments and started
-- again at once, while messages are retried, redelivered, timed out, dead-lettered, discarded and
-- sent on. Then every message has exactly one end, and none is missing.
--
-- The long form: MULL_KILLS=100 MULL_MESSAGES=20000 ./do test spec/cli/storm_spec.lua
--
-- MULL_SEED repeats the choice of moments and victims. A moment is a number of lines in the ledger,
-- to which handlers append, so the choice is the same again and what a kill hits is not.
local database = require "support.database"
local json = require("mulligan").json
local ledger = require "support.ledger"
local process = require "support.process"
local testing = require "mulligan.testing"

local function given(name, default)
    return math.tointeger(tonumber(os.getenv(name))) or default
end

local KILLS = given("MULL_KILLS", 6)
local MESSAGES = given("MULL_MESSAGES", 1500)
local SEED = given("MULL_SEED", os.time())
local PROCESSES = 3
local WATCHDOG_S = 60 + MESSAGES // 50

-- What a kill can hit of one process: for each consumer its handlers at work, twice its prefetch
-- that is claimed and not started, or settled and not yet safe.
local IN_THE_AIR = (16 + 2 * 32) + (4 + 2 * 8)

local MULLIGAN = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

m.consumer("Work", {
    transport = "orders", queue = "work", concurrency = 16,
    handler = function(msg)
        note("begin", msg)
        local _ <close> = ending(msg)
        m.sleep "1ms"
        local number = tonumber(msg.body)
        local kind = number % 10
        if kind == 3 and msg.attempt == 1 then
            m.error { type = "Deadlock" }
        elseif kind == 4 and msg.redeliveries == 0 then
            m.error { type = "Down" }
        elseif kind == 5 then
            m.error { type = "Hopeless" }
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
    transport = "orders", queue = "stage", concurrency = 4, timeout = "50ms",
    handler = function(msg)
        note("begin", msg)
        local _ <close> = ending(msg)
        if msg.redeliveries == 0 then
            m.sleep "1h"
        end
        m.send("out", (msg.body:gsub("stage", "")))
        note("well", msg)
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Deadlock"):retry(3, "5ms")
bus:on("Down"):redeliver { "20ms", "20ms", "20ms" }
bus:on("Hopeless"):retry(1, "1ms"):then_redeliver { "20ms" }:then_dead_letter("spent")
bus:on("Invalid"):dead_letter("invalid")
bus:on("Duplicate"):discard("seen")
bus:on("HandlerTimeoutError"):redeliver { "20ms" }
]]

-- Lines that even an undisturbed run writes for ten messages; the last tenth is left for the drain.
local LINES = 42 * MESSAGES // 10
local LAST_KILL = LINES * 9 // 10

-- The kills, in order: after how many lines, and which of the three. One in five comes as soon as
-- the victim of the one before has been started again; one in five hits a process that was told to
-- stop.
local function plan()
    local random, kills = testing.random(SEED), {}
    for number = 1, KILLS do
        kills[number] = {
            number = number,
            lines = random(LAST_KILL),
            victim = random(PROCESSES),
            again = random(5) == 1,
            stopping = random(5) == 1,
        }
    end
    ledger.in_order(kills)
    for number = 2, KILLS do
        local kill, before = kills[number], kills[number - 1]
        if kill.again then
            kill.lines, kill.victim = before.lines, before.victim
        end
    end
    return kills
end

-- ---- The run -----------------------------------------------------------------------------------

local function send_all(folder)
    local bodies = {}
    for number = 1, MESSAGES do
        bodies[number] = number
    end
    local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, {
        stdin = table.concat(bodies, "\n") .. "\n",
    })
    assert.same({ code = 0, out = "", err = "" }, sent)
end

local function start(folder)
    return folder:start_mulligan { "run", "--until-empty", "--log-format", "json" }
end

-- storm starts, kills and restarts; it returns once all is done: the process ids of those that were
-- killed, and the logs of all.
local function storm(folder)
    local jobs, killed, logs = {}, {}, {}
    for number = 1, PROCESSES do
        jobs[number] = start(folder)
    end
    local lines = ledger.counter(folder)
    for _, kill in ipairs(plan()) do
        process.await("the next kill", function()
            return lines() >= kill.lines
        end)
        local job = jobs[kill.victim]
        if kill.stopping then
            job.kill("TERM")
        end
        job.kill("KILL")
        -- One that was told to stop may have ended by then: in order, or before it had begun.
        local code = job.wait()
        killed[job.pid()] = code ~= 1
        assert.is_true(code == 128 + 9 or kill.stopping and (code == 1 or code == 128 + 15), job.err())
        logs[#logs + 1] = job.err()
        jobs[kill.victim] = start(folder)
    end
    for _, job in ipairs(jobs) do
        assert.equal(0, job.wait(WATCHDOG_S), job.err())
        logs[#logs + 1] = job.err()
    end
    return killed, table.concat(logs, "\n")
end

-- ---- What must hold ----------------------------------------------------------------------------

local function check_database(path)
    assert.same({ { "ok" } }, database.rows(path, "PRAGMA integrity_check"))
    assert.equal(0, database.number(path, "SELECT count(*) FROM owners"))
    assert.equal(0, database.number(path, "SELECT count(*) FROM messages WHERE owner IS NOT NULL"))
    assert.equal(0, database.number(path, "SELECT count(*) FROM messages WHERE body IS NULL"))
    assert.equal(0, database.number(path, "SELECT count(*) FROM bodies WHERE body NOT IN"
        .. " (SELECT large FROM waiting WHERE large NOT NULL UNION SELECT large FROM ready WHERE large NOT NULL)"))
    -- Those that the rules give, and none by max_deliveries.
    assert.same({ { "invalid", "rule", "Invalid" }, { "spent", "exhausted", "Hopeless" } }, database.rows(path,
        "SELECT DISTINCT queue, reason, error_type FROM messages WHERE dead_ms IS NOT NULL ORDER BY queue"))
end

-- Each message is in the queue where it ends, once; what is sent by one that is handled twice is
-- sent once.
local function check_ends(path)
    local times = {}
    for _, row in ipairs(database.rows(path, "SELECT queue, CAST(body AS TEXT) FROM messages")) do
        local place = row[1] .. " " .. row[2]
        times[place] = (times[place] or 0) + 1
    end
    for number = 1, MESSAGES do
        local place = ledger.end_of(number) .. " " .. number
        assert.equal(ledger.end_of(number) ~= "discarded" and 1 or nil, times[place], place)
        times[place] = nil
    end
    assert.same({}, times)
end

-- Whether each body was begun, and went well; and how often one copy was handed out at most.
local function tally(entries)
    local began, well, most = {}, {}, 0
    for _, entry in ipairs(entries) do
        if entry.word == "begin" then
            began[entry.body] = true
        elseif entry.word == "well" then
            well[entry.body] = true
        end
        most = math.max(most, entry.deliveries)
    end
    return began, well, most
end

local function check_handled(began, well)
    for number = 1, MESSAGES do
        local body = tostring(number)
        assert.is_true(began[body], body)
        assert.equal(ledger.end_of(number) == "out" or nil, well[body], body)
        assert.equal(number % 10 == 6 or nil, well["stage" .. body], body)
    end
end

-- check_log: an id is one message's; each dead letter and discard is told of once; only that of
-- what was in the air at a kill may be missing.
local function check_log(log, entries)
    local body_of, told = {}, {}
    for _, entry in ipairs(entries) do
        assert.equal(body_of[entry.id] or entry.body, entry.body)
        body_of[entry.id] = entry.body
    end
    for line in log:gmatch("[^\n]+") do
        local event = line:find("}$") and json.decode(line)
        if event and (event.action == "dead_letter" or event.action == "discard") then
            local body = body_of[event.message.id]
            assert.equal(ledger.end_of(tonumber(body)), event.queue or "discarded")
            assert.is_nil(told[body], body)
            told[body] = true
        end
    end
    local missing = 0
    for number = 1, MESSAGES do
        missing = missing + (ledger.end_of(number) ~= "out" and not told[tostring(number)] and 1 or 0)
    end
    assert.is_true(missing <= KILLS * IN_THE_AIR, missing)
end

describe("three processes in a storm of kills", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = POLICY }
    end)

    after_each(function()
        folder:remove()
    end)

    it("bring every message to exactly one end", function()
        print(("\n%d messages, %d kills, MULL_SEED=%d"):format(MESSAGES, KILLS, SEED))
        send_all(folder)
        local began_at = os.time()
        local killed, log = storm(folder)
        local seconds = os.time() - began_at
        local path = folder:path("orders.db")
        check_database(path)
        check_ends(path)
        local entries = ledger.read(folder)
        local began, well, most = tally(entries)
        check_handled(began, well)
        ledger.check_one_at_a_time(entries, killed)
        local twice = ledger.check_twice(entries, killed, IN_THE_AIR)
        assert.is_true(twice <= KILLS * IN_THE_AIR, twice)
        check_log(log, entries)
        print(("%d s, %d twice (at most %d), handed out %d times at most"):format(seconds, twice, KILLS * IN_THE_AIR,
            most))
    end)
end)
