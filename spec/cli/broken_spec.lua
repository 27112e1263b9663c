-- mulligan run and send, whose database is taken away.
local process = require "support.process"
local queues = require "support.queues"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

local ledger = assert(io.open("ledger", "a"))
ledger:setvbuf("no")
local count = 0

m.consumer("C", {
    transport = "orders",
    queue = "work",
    handler = function(msg)
        count = count + 1
        if count == tonumber(os.getenv "MOVE_AT") then
            assert(os.rename("orders.db", "kept.db"))
        elseif count == tonumber(os.getenv "CUT_AT") then
            assert(io.open("orders.db-wal", "w")):close()
        end
        ledger:write(msg.body, "\n")
    end,
})
]]

describe("a database that is taken away", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = "" }
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(bodies)
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = bodies })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    -- What stderr has of one kind of line.
    local function lines(err, pattern)
        local found = {}
        for line in err:gmatch "[^\n]+" do
            found[#found + 1] = line:match(pattern)
        end
        return found
    end

    local WHY = "was deleted or moved while it was in use; put it back together with its -wal, or an older copy "
        .. "without, and start again: what was claimed will be handed out again"

    local function assert_told(run, why)
        local told = "orders.db: " .. (why or WHY)
        assert.equal(1, run.code, run.err)
        assert.same({ "transport 'orders': " .. told }, lines(run.err, "^mulligan: (.*)"))
        assert.same({ "transport orders is broken: " .. told }, lines(run.err, " error +(.*)"))
    end

    it("ends a run that has nothing to do, in 1", function()
        local job = folder:start_mulligan { "run" }
        process.await("its start", function()
            return job.err():find("policy_loaded", 1, true)
        end)
        assert(os.remove(folder:path "orders.db"))
        job.wait()
        assert_told { code = job.code, err = job.err() }
    end)

    it("ends a run until empty, in 1, and costs nothing once it is back", function()
        local bodies = {}
        for number = 1, 20 do
            bodies[number] = ("%d\n"):format(number)
        end
        send(table.concat(bodies))
        local run = folder:mulligan({ "run", "--until-empty" }, { env = { MOVE_AT = 5 } })
        assert_told(run)
        assert.is_truthy(run.out:find "^done %d, retried 0, ")

        assert(os.rename(folder:path "kept.db", folder:path "orders.db"))
        local again = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, again.code, again.err)
        local handled = {}
        for number in folder:read("ledger"):gmatch "%d+" do
            handled[tonumber(number)] = true
        end
        assert.equal(20, #handled)
        local depth = queues.depth("sqlite:" .. folder:path "orders.db", "work")
        assert.same({ 0, 0, 0 }, { depth.ready, depth.delayed, depth.claimed })
    end)

    it("in part, by a log that is emptied in its place, ends a run until empty, in 1, and spoils nothing", function()
        send(("1\n"):rep(20))
        assert_told(folder:mulligan({ "run", "--until-empty" }, { env = { CUT_AT = 5 } }),
            "its -wal was cut short while it was in use, and with that what was not yet in the file is lost; "
                .. "end all who use it, and start again")
        local again = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, again.code, again.err)
        assert.is_truthy(again.out:find "^done 20, ") -- the file is as it was when the run began
    end)
end)
