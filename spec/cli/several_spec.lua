-- Several processes on one SQLite file, none of which dies: each message is handled by one at a
-- time; what is due goes to whoever is free; a process that stands still keeps what it has claimed.
local database = require "support.database"
local ledger = require "support.ledger"
local process = require "support.process"
local testing = require "mulligan.testing"

local SEED = math.tointeger(tonumber(os.getenv("MULL_SEED"))) or os.time()
local STOPS = 10

-- What a body says: "hold" is at work until there is a file "go", "later" fails once there is a file
-- "fail" and is redelivered; others go well. CONCURRENCY and PREFETCH are each test's.
local MULLIGAN = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

local function await_file(name)
    while not io.open(name) do
        m.sleep "5ms"
    end
end

m.consumer("C", {
    transport = "orders", queue = "work", concurrency = CONCURRENCY, prefetch = PREFETCH, timeout = false,
    handler = function(msg)
        note("begin", msg)
        local _ <close> = ending(msg)
        if msg.body:find "^hold" then
            await_file "go"
        elseif msg.body:find "^later" and msg.redeliveries == 0 then
            await_file "fail"
            m.error { type = "Later" }
        end
        note("well", msg)
    end,
})
]]

describe("several processes on one file", function()
    local folder

    local function set_up(mulligan, policy)
        folder = process.folder { ["service.lua"] = mulligan, ["policy.lua"] = policy or "" }
    end

    local function with(concurrency, prefetch)
        return (MULLIGAN:gsub("CONCURRENCY", concurrency):gsub("PREFETCH", prefetch))
    end

    after_each(function()
        folder:remove()
    end)

    local function send(bodies, ...)
        local sent = folder:mulligan({ "send", "work", "--transport", "orders", ... }, {
            stdin = table.concat(bodies, "\n") .. "\n",
        })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function start(...)
        local job = folder:start_mulligan { "run", ... }
        process.await("its consumers", function()
            return job.err():find("policy_loaded", 1, true)
        end)
        return job
    end

    local function stop(job)
        job.kill("TERM")
        assert.equal(0, job.wait(), job.err())
    end

    -- How many messages are claimed, and how many are not.
    local function claimed()
        return database.number(folder:path("orders.db"), "SELECT count(owner) FROM messages")
    end

    local function free()
        return database.number(folder:path("orders.db"), "SELECT count(*) - count(owner) FROM messages")
    end

    local function await_claimed(count)
        process.await(count .. " to be claimed", function()
            return claimed() == count
        end)
    end

    -- Each of these was begun by one process at a time and went well once, and is gone; it was begun
    -- `times` times, where that is given.
    local function check_each(bodies, times)
        local entries, began = ledger.read(folder), {}
        ledger.check_one_at_a_time(entries, {})
        ledger.check_twice(entries, {}, 0)
        local well = {}
        for _, entry in ipairs(entries) do
            local counts = entry.word == "begin" and began or entry.word == "well" and well or {}
            counts[entry.body] = (counts[entry.body] or 0) + 1
        end
        for _, body in ipairs(bodies) do
            assert.equal(1, well[body], body)
            assert.equal(times or began[body], began[body], body)
        end
        assert.same({ 0, 0 }, { claimed(), free() })
    end

    local function numbered(word, first, last)
        local bodies = {}
        for number = first, last do
            bodies[#bodies + 1] = word .. number
        end
        return bodies
    end

    it("hand each message to one at a time, retried and redelivered", function()
        -- A handler waits until all three are at work, so that each has a share.
        set_up(ledger.WORDS .. [[
            m.policy "policy.lua"
            m.transport("orders", "sqlite:orders.db")

            local all
            local function all_here()
                local pids, count = {}, 0
                for line in io.lines "ledger" do
                    local other = line:match "^%l+ (%d+)"
                    count = count + (pids[other] and 0 or 1)
                    pids[other] = true
                end
                all = count == 3
                return all
            end

            m.consumer("C", { transport = "orders", queue = "work", concurrency = 4, handler = function(msg)
                note("begin", msg)
                local _ <close> = ending(msg)
                while not all and not all_here() do
                    m.sleep "5ms"
                end
                m.sleep "1ms"
                local kind = tonumber(msg.body) % 3
                if kind == 1 and msg.attempt == 1 then
                    m.error { type = "Retried" }
                elseif kind == 2 and msg.redeliveries < 2 then
                    m.error { type = "Redelivered" }
                end
                note("well", msg)
            end })
        ]], [[
            local bus = require("mulligan.policy").bus()
            bus:on("Retried"):retry(1, "5ms")
            bus:on("Redelivered"):redeliver { 0, "5ms" }
        ]])
        local bodies = numbered("", 1, 600)
        send(bodies)
        local jobs, pids = {}, {}
        for number = 1, 3 do
            jobs[number] = folder:start_mulligan { "run", "--until-empty" }
        end
        for _, job in ipairs(jobs) do
            assert.equal(0, job.wait(), job.err())
            pids[job.pid()] = ledger.count(folder, { word = "well", pid = job.pid() })
        end
        check_each(bodies)
        assert.equal(600 + 200 + 2 * 200, ledger.count(folder, { word = "begin" }))
        for pid, count in pairs(pids) do
            assert.is_true(count > 0, pid)
        end
    end)

    it("give what is due to whoever is free, while its former owner is busy", function()
        set_up(with(2, 1), 'require("mulligan.policy").bus():default():redeliver { "100ms" }')
        -- The first one has its hands full for good: two at work, one in reserve, once "later" is back.
        send { "later", "hold1", "hold2", "hold3" }
        local first = start()
        await_claimed(3)
        folder:write("fail", "")
        process.await("its redelivery", function()
            return database.number(folder:path("orders.db"), "SELECT count(*) FROM messages WHERE due_ms > 0") == 1
        end)
        assert.equal(3, claimed())
        local second = start()
        ledger.await(folder, { word = "well", body = "later", pid = second.pid() })
        folder:write("go", "")
        ledger.await(folder, { word = "well", pid = first.pid() }, 3)
        stop(first)
        stop(second)
        check_each { "later", "hold1", "hold2", "hold3" }
    end)

    it("give what is due to whoever is there, when its former owner is gone", function()
        set_up(with(1, 1), 'require("mulligan.policy").bus():default():redeliver { "2s" }')
        folder:write("fail", "")
        send { "later" }
        local first = start()
        ledger.await(folder, { word = "end", body = "later" })
        await_claimed(0)
        first.kill("KILL")
        assert.equal(128 + 9, first.wait())
        assert.equal(0, folder:mulligan({ "run", "--until-empty" }).code)
        assert.equal(0, ledger.count(folder, { word = "well", pid = first.pid() }))
        check_each({ "later" }, 2)
    end)

    it("notice by themselves what others send", function()
        set_up(with(1, 1))
        local first, second = start(), start()
        for number = 1, 3 do
            send { "new" .. number }
            ledger.await(folder, { word = "well", body = "new" .. number })
        end
        stop(first)
        stop(second)
        check_each(numbered("new", 1, 3), 1)
    end)

    it("hoard no more than their prefetch", function()
        set_up(with(1, 2))
        send { "hold1", table.unpack(numbered("plain", 2, 10)) }
        local first = start()
        await_claimed(3)
        local second = start()
        ledger.await(folder, { word = "well", pid = second.pid() }, 7)
        -- What a handler ended well is claimed until its settlement is in the file.
        process.await("the rest", function()
            return free() == 0 and claimed() == 3
        end)
        folder:write("go", "")
        ledger.await(folder, { word = "well", pid = first.pid() }, 3)
        stop(first)
        stop(second)
        check_each({ "hold1", table.unpack(numbered("plain", 2, 10)) }, 1)
    end)

    it("end by --until-empty only once the others have ended what they hold", function()
        set_up(with(1, 1))
        send { "hold1", "hold2" }
        local first = start()
        await_claimed(2)
        local second = start("--until-empty")
        -- After each of these it looks whether all is empty; it is still there for the next one.
        for number = 1, 3 do
            send { "plain" .. number }
            ledger.await(folder, { word = "well", body = "plain" .. number, pid = second.pid() })
        end
        folder:write("go", "")
        assert.equal(0, second.wait(), second.err())
        assert.equal(2, ledger.count(folder, { word = "well", pid = first.pid() }))
        stop(first)
        check_each({ "hold1", "hold2", "plain1", "plain2", "plain3" }, 1)
    end)

    -- A handler that stops its own process does so when nothing else is at work in it.
    it("leave its claims to one that stands still, for longer than every timeout", function()
        set_up(ledger.WORDS .. [[
            m.policy "policy.lua"
            m.transport("orders", "sqlite:orders.db")
            m.consumer("C", { transport = "orders", queue = "work", concurrency = 4, timeout = "1s",
                handler = function(msg)
                    note("begin", msg)
                    local _ <close> = ending(msg)
                    if msg.body == "stop4" then
                        os.execute "kill -s STOP $PPID"
                    else
                        m.sleep "20ms"
                    end
                    if msg.body == "twice3" then
                        m.sleep "20ms"
                    end
                    note("well", msg)
                end,
            })
        ]], 'require("mulligan.policy").bus():on("HandlerTimeoutError"):retry(1, 0)')
        local held = { "nap1", "nap2", "twice3", "stop4", "more5", "more6", "more7", "more8" }
        local others = numbered("more", 9, 40)
        send(held)
        local first = start()
        process.await("it to stand still", function()
            return first.state() == "T"
        end)
        assert.equal(8, claimed())
        send(others)
        local second = start()
        ledger.await(folder, { word = "well", pid = second.pid() }, #others)
        -- Longer than the handler's timeout, and than any patience: by the time that this is due.
        send({ "late" }, "--delay", "6s")
        ledger.await(folder, { word = "well", body = "late", pid = second.pid() })
        await_claimed(8)
        assert.equal(0, free())
        assert.same({ "8", tostring(first.pid()), "1" }, database.rows(folder:path("orders.db"),
            "SELECT count(*), pid, max(deliveries) FROM messages JOIN owners USING (owner)")[1])
        assert.equal("T", first.state())

        first.kill("CONT")
        ledger.await(folder, { word = "well", pid = first.pid() }, 8)
        stop(second)
        send { "again" }
        ledger.await(folder, { word = "well", body = "again", pid = first.pid() })
        stop(first)
        -- Only who slept again, after its time was over, was called again.
        check_each({ table.remove(held, 3) }, 2)
        check_each({ "late", "again", table.unpack(held) }, 1)
        check_each(others, 1)
        assert.equal(1, select(2, first.err():gsub("HandlerTimeoutError", "")), first.err())
    end)

    it("lose and double nothing where they stand still at random moments", function()
        local random = testing.random(SEED)
        print(("\n%d stops, MULL_SEED=%d"):format(STOPS, SEED))
        set_up(ledger.WORDS .. [[
            m.policy "policy.lua"
            m.transport("orders", "sqlite:orders.db")
            m.consumer("C", { transport = "orders", queue = "work", concurrency = 4, timeout = "10m",
                handler = function(msg)
                    note("begin", msg)
                    local _ <close> = ending(msg)
                    m.sleep "1ms"
                    if msg.redeliveries == 0 then
                        m.error { type = "Later" }
                    end
                    note("well", msg)
                end,
            })
        ]], 'require("mulligan.policy").bus():default():redeliver { "5ms" }')
        local bodies, path = numbered("m", 1, 50 * STOPS), folder:path("orders.db")
        send(bodies)
        local jobs, lines = { start "--until-empty", start "--until-empty" }, ledger.counter(folder)
        -- Each message has five lines, so there is enough left after the last stop.
        for number = 1, STOPS do
            local at = 200 * (number - 1) + random(100)
            process.await("the next stop", function()
                return lines() >= at
            end)
            local job = jobs[random(2)]
            job.kill("STOP")
            -- The other goes on, or can't, where the one that stands still was writing.
            process.await("the other", function()
                return lines() >= at + 50 or database.locked(path)
            end)
            job.kill("CONT")
        end
        for _, job in ipairs(jobs) do
            assert.equal(0, job.wait(), job.err())
        end
        check_each(bodies, 2)
    end)
end)
