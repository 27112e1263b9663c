-- A process that retries on a SQLite file, killed with SIGKILL again and again. Whatever is killed: no message is
-- called more often than `max_attempts` says, failed calls and deaths are as many where it ends so, and no call
-- begins after its `deadline`.
--
-- The long form: MULL_KILLS=1000 ./do test spec/cli/attempts_storm_spec.lua
--
-- MULL_SEED repeats the choice of moments. A moment is a number of lines in the ledger, to which handlers append, so
-- the choice is the same again and what a kill hits is not.
local database = require "support.database"
local ledger = require "support.ledger"
local process = require "support.process"
local testing = require "mulligan.testing"

local function given(name, default)
    return math.tointeger(tonumber(os.getenv(name))) or default
end

local KILLS = given("MULL_KILLS", 20)
local SEED = given("MULL_SEED", os.time())
local BATCH = 10 -- messages, sent whenever all before have ended
local ATTEMPTS, DEADLINE_MS = 30, 2000

-- A handler has noted its call within this time, however busy the machine is.
local LATE_MS = 1000

local MULLIGAN = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
local times = assert(io.open("times", "a"))
times:setvbuf("no")

m.consumer("Work", {
    transport = "orders", queue = "work", concurrency = 8,
    handler = function(msg)
        times:write(("%s %d\n"):format(msg.body, os.time()))
        note("begin", msg)
        m.sleep "1ms"
        note("failed", msg)
        m.error { type = "Hopeless" }
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:max_deliveries(false)
bus:default():retry { attempts = 500, delay = "10ms", backoff = "constant" }
]]

local function folder_with(statement)
    return process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = POLICY .. statement }
end

local function send_batch(self)
    local bodies = {}
    for number = 1, BATCH do
        bodies[number] = self.sent + number
    end
    self.sent = self.sent + BATCH
    local sent = self.folder:mulligan({ "send", "work", "--transport", "orders" }, {
        stdin = table.concat(bodies, "\n") .. "\n",
    })
    assert.same({ code = 0, out = "", err = "" }, sent)
end

local function start(self)
    self.job = self.folder:start_mulligan { "run", "--until-empty" }
end

local function has_ended(self)
    local state = self.job.state()
    return not state or state == "Z"
end

-- count_deaths: what a process had claimed when it was killed has died with it.
local function count_deaths(self)
    local rows = database.rows(self.folder:path "orders.db",
        "SELECT CAST(body AS TEXT) FROM messages WHERE owner IS NOT NULL")
    for _, row in ipairs(rows) do
        self.deaths[row[1]] = (self.deaths[row[1]] or 0) + 1
    end
end

-- kill kills the process after so many lines more; false: it had ended before.
local function kill(self, lines, more)
    local goal = lines() + more
    process.await("the next kill", function()
        return lines() >= goal or has_ended(self)
    end)
    self.job.kill "KILL"
    local code = self.job.wait()
    assert.is_true(code == 128 + 9 or code == 0, self.job.err())
    if code ~= 0 then
        count_deaths(self)
    end
    return code ~= 0
end

-- storm kills until enough is killed, and lets the last process come to its end. One kill in five comes as soon as the
-- process has started.
local function storm(statement)
    local self = { folder = folder_with(statement), sent = 0, deaths = {} }
    local random, killed = testing.random(SEED), 0
    local lines = ledger.counter(self.folder)
    send_batch(self)
    start(self)
    while killed < KILLS do
        local more = random(5) == 1 and 0 or random(80)
        if kill(self, lines, more) then
            killed = killed + 1
        else
            send_batch(self)
        end
        start(self)
    end
    assert.equal(0, self.job.wait(), self.job.err())
    return self
end

-- tally counts each message's lines, and gives the processes that wrote them.
local function tally(self)
    local begun, failed, pids = {}, {}, {}
    for _, entry in ipairs(ledger.read(self.folder)) do
        local counts = entry.word == "begin" and begun or failed
        counts[entry.body] = (counts[entry.body] or 0) + 1
        pids[entry.pid] = true
    end
    return begun, failed, pids
end

-- dead_letters gives what became of each message: { reason, first failure in milliseconds }.
local function dead_letters(self)
    local first = [[round((julianday(json_extract(headers, '$."mulligan-first-failure"')) - 2440587.5) * 86400000)]]
    local found, count = {}, 0
    for _, row in ipairs(database.rows(self.folder:path "orders.db",
        "SELECT CAST(body AS TEXT), reason, " .. first .. ", queue FROM messages")) do
        assert.equal("error", row[4])
        assert.is_nil(found[row[1]], row[1])
        found[row[1]], count = { reason = row[2], first_ms = tonumber(row[3]) }, count + 1
    end
    assert.equal(self.sent, count)
    return found
end

local function check(holds, format, ...)
    assert.is_true(holds, format:format(...))
end

describe("a process that is killed again and again while it retries", function()
    local self

    after_each(function()
        self.folder:remove()
    end)

    it("calls no message more often than max_attempts says", function()
        self = storm(("bus:max_attempts(%d)\n"):format(ATTEMPTS))
        local begun, failed = tally(self)
        local most, fewest = 0, math.huge
        for body, letter in pairs(dead_letters(self)) do
            local calls, deaths = begun[body] or 0, self.deaths[body] or 0
            assert.equal("max_attempts", letter.reason, body)
            check(calls <= ATTEMPTS, "message %s was called %d times", body, calls)
            check((failed[body] or 0) + deaths >= ATTEMPTS, "message %s ended after %d failed calls and %d deaths",
                body, failed[body] or 0, deaths)
            most, fewest = math.max(most, calls), math.min(fewest, calls)
        end
        assert.is_true(most > 0)
        print(("\n%d messages, %d kills, MULL_SEED=%d: %d to %d calls each"):format(self.sent, KILLS, SEED, fewest,
            most))
    end)

    it("begins no call after a message's deadline", function()
        self = storm(('bus:deadline("%dms")\n'):format(DEADLINE_MS))
        local letters, latest = dead_letters(self), -math.huge
        for body, second in self.folder:read("times"):gmatch("(%d+) (%d+)\n") do
            local late_ms = tonumber(second) * 1000 - letters[body].first_ms - DEADLINE_MS
            check(late_ms <= LATE_MS, "message %s was called %d ms late", body, late_ms)
            latest = math.max(latest, late_ms)
        end
        for body, letter in pairs(letters) do
            assert.equal("deadline", letter.reason, body)
        end
        local _, _, pids = tally(self)
        assert.is_true(next(pids, (next(pids))) ~= nil) -- more than one process called handlers
        print(("\n%d messages, %d kills, MULL_SEED=%d: the last call %d ms before its deadline"):format(self.sent,
            KILLS, SEED, -latest))
    end)
end)
