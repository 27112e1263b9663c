-- Killed with SIGKILL in the middle of 5,000 messages, twice, and started again: every message ends
-- at exactly one end, and none is missing.
--
-- What a message's end is follows from its number. A ledger, to which the handler appends before and
-- after its work, the queues and the log must agree.
local json = require("mulligan").json
local process = require "support.process"
local queues = require "support.queues"

local COUNT = 5000
local KILLS = { 1500, 4500 } -- lines of the ledger

-- Handlers at work, claimed but not started, and settled but not yet told of: what a kill can hit.
local IN_THE_AIR = 16 + 32 + 32

local MULLIGAN = [[
local m = require "mulligan"

m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

local ledger = assert(io.open("ledger", "a"))
ledger:setvbuf("no")

m.consumer("C", {
    transport = "orders",
    queue = "work",
    concurrency = 16,
    handler = function(msg)
        local number = tonumber(msg.body)
        ledger:write(("begin %d %s\n"):format(number, msg.id))
        m.sleep("1ms")
        local kind = number % 10
        if kind == 3 and msg.attempt == 1 then
            m.error { type = "Deadlock" }
        elseif kind == 5 and msg.redeliveries == 0 then
            m.error { type = "Down" }
        elseif kind == 7 then
            m.error { type = "Invalid" }
        elseif kind == 9 then
            m.error { type = "Duplicate" }
        end
        m.send("out", msg.body)
        ledger:write(("well %d %s\n"):format(number, msg.id))
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Deadlock"):retry(3, "5ms")
bus:on("Down"):redeliver { "20ms", "20ms", "20ms" }
bus:on("Invalid"):dead_letter("invalid")
bus:on("Duplicate"):discard("seen")
]]

-- Which end a number comes to.
local function end_of(number)
    return ({ [7] = "dead_letter", [9] = "discard" })[number % 10] or "done"
end

-- The ledger, without a line that the kill cut off: for each number, how often it began and went
-- well; and the number of each id.
local function read_ledger(text)
    local began, well, number_of = {}, {}, {}
    for word, number, id in text:gmatch("(%l+) (%d+) (%S+)\n") do
        number = tonumber(number)
        local counts = word == "begin" and began or well
        counts[number] = (counts[number] or 0) + 1
        assert(number_of[id] == nil or number_of[id] == number, "two messages have one id")
        number_of[id] = number
    end
    return began, well, number_of
end

-- How often each number is in a queue.
local function count(messages)
    local counts = {}
    for _, msg in ipairs(messages) do
        local number = tonumber(msg.body)
        counts[number] = (counts[number] or 0) + 1
    end
    return counts
end

describe("mulligan run, killed", function()
    local folder

    after_each(function()
        folder:remove()
    end)

    it("ends with every message at exactly one end", function()
        folder = process.folder { ["mulligan.lua"] = MULLIGAN, ["policy.lua"] = POLICY }
        local bodies = {}
        for number = 1, COUNT do
            bodies[number] = number
        end
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, {
            stdin = table.concat(bodies, "\n") .. "\n",
        })
        assert.same({ code = 0, out = "", err = "" }, sent)

        local log = {}
        for _, lines in ipairs(KILLS) do
            local job = folder:start_mulligan { "run", "--until-empty", "--log-format", "json" }
            process.await("the ledger", function()
                return select(2, (folder:read("ledger") or ""):gsub("\n", "")) >= lines
            end)
            job.kill("KILL")
            assert.equal(128 + 9, job.wait(), job.err())
            log[#log + 1] = job.err()
        end
        local last = folder:mulligan { "run", "--until-empty", "--log-format", "json" }
        assert.equal(0, last.code, last.err)
        log[#log + 1] = last.err

        local url = "sqlite:" .. folder:path("orders.db")
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, queues.depth(url, "work"))
        assert.same({}, queues.take(url, "error"))
        local out, invalid = count(queues.take(url, "out")), count(queues.take(url, "invalid"))
        local began, well, number_of = read_ledger(folder:read("ledger"))

        -- The queues: what went well sent its message once, whatever was killed; the others are dead
        -- letters, once.
        for number = 1, COUNT do
            local ends = end_of(number)
            assert.equal(ends == "done" and 1 or nil, out[number], number)
            assert.equal(ends == "dead_letter" and 1 or nil, invalid[number], number)
            assert.is_truthy(began[number], number)
            assert.equal(ends == "done", well[number] ~= nil, number)
        end

        -- The ledger: only what was in the air at a kill ran twice to its end.
        local twice = 0
        for _, times in pairs(well) do
            twice = twice + times - 1
        end
        assert.is_true(twice <= #KILLS * IN_THE_AIR, twice)

        -- The log: each end once; only that of what was in the air may be missing.
        local logged = { dead_letter = {}, discard = {} }
        for line in table.concat(log):gmatch("[^\n]*\n") do
            local event = line:find("}\n$") and json.decode(line)
            if event and logged[event.action] then
                local number = number_of[event.message.id]
                assert.equal(event.action, end_of(number))
                assert.is_nil(logged[event.action][number], number)
                logged[event.action][number] = true
            end
        end
        local missing = 0
        for number = 1, COUNT do
            local ends = logged[end_of(number)]
            missing = missing + (ends and not ends[number] and 1 or 0)
        end
        assert.is_true(missing <= #KILLS * IN_THE_AIR, missing)
    end)
end)
