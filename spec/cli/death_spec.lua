-- Messages whose handlers kill the process each time, by whatever way: each ends as exactly one dead
-- letter, after exactly max_deliveries hand-outs, and its neighbours are handled.
local database = require "support.database"
local json = require("mulligan").json
local ledger = require "support.ledger"
local process = require "support.process"

-- A body is how it dies, and a number.
local MULLIGAN = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

local ways = {
    kill = function() os.execute "kill -s KILL $PPID" end,
    segv = function() os.execute "kill -s SEGV $PPID" end,
    exit = package.loadlib("libc.so.6", "exit"),
    retry = function(msg)
        if msg.attempt == 1 then
            m.error { type = "Retried" }
        end
        os.execute "kill -s KILL $PPID"
    end,
}

m.consumer("C", {
    transport = "orders", queue = "work", concurrency = CONCURRENCY,
    handler = function(msg)
        note(msg.attempt == 1 and "begin" or "again", msg)
        local _ <close> = ending(msg)
        m.sleep "1ms"
        local die = ways[msg.body:match("%l+")]
        if die then
            die(msg)
        end
        m.send("out", msg.body)
        note("well", msg)
    end,
})
]]

describe("a message that kills", function()
    local folder

    after_each(function()
        folder:remove()
    end)

    local function set_up(concurrency, policy, bodies)
        folder = process.folder {
            ["service.lua"] = (MULLIGAN:gsub("CONCURRENCY", concurrency)),
            ["policy.lua"] = 'local bus = require("mulligan.policy").bus() ' .. policy,
        }
        local sent = folder:mulligan({ "send", "work", "--transport", "orders", "--header", "own=1" }, {
            stdin = table.concat(bodies, "\n") .. "\n",
        })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    -- bodies_with gives those of `count` neighbours, with the killers among them: place = way.
    local function bodies_with(count, killers)
        local bodies = {}
        for number = 1, count do
            bodies[#bodies + 1] = "well" .. number
            bodies[#bodies + 1] = killers[number] and killers[number] .. number or nil
        end
        return bodies
    end

    -- supervise keeps so many processes running, as a supervisor would, until each of them found
    -- the queues empty. The process ids of those that died, at most so many.
    local function supervise(processes, most)
        local jobs, died, deaths = {}, {}, 0
        for number = 1, processes do
            jobs[number] = folder:start_mulligan { "run", "--until-empty" }
        end
        while #jobs > 0 do
            local ended
            process.await("one to end", function()
                for number, job in ipairs(jobs) do
                    ended = not job.state() and number or ended
                end
                return ended
            end)
            local job = table.remove(jobs, ended)
            if job.wait() ~= 0 then
                died[job.pid()] = true
                deaths = deaths + 1
                assert.is_true(deaths <= most, job.err())
                table.insert(jobs, folder:start_mulligan { "run", "--until-empty" })
            end
        end
        return died
    end

    -- Hand-outs that end before the handler has begun count as well, where another one kills; so
    -- its calls are exactly max_deliveries, and it was begun at most so often.
    local function check_killer(body, max_deliveries)
        assert.is_true(ledger.count(folder, { word = "begin", body = body }) <= max_deliveries, body)
        local rows = database.rows(folder:path("orders.db"), ([[
            SELECT queue, dead_from, reason, error_type, coalesce(rule, 'none'), headers FROM messages
            WHERE CAST(body AS TEXT) = '%s']]):format(body))
        assert.equal(1, #rows, body)
        local headers = json.decode(table.remove(rows[1]))
        assert.same({ "error", "work", "max_deliveries", "HandlerCrashError", "none" }, rows[1])
        assert.same({ "1", "work", "C", "HandlerCrashError", "max_deliveries", tostring(max_deliveries), "0" }, {
            headers.own, headers["mulligan-queue"], headers["mulligan-consumer"], headers["mulligan-error-type"],
            headers["mulligan-reason"], headers["mulligan-calls"], headers["mulligan-redeliveries"],
        })
        assert.is_nil(headers["mulligan-rule"])
        assert.is_true(headers["mulligan-first-failure"] <= headers["mulligan-last-failure"])
    end

    -- check looks at all of it: the killers, and that each neighbour has its one message in "out". A
    -- neighbour dies with a killer only when that is handed out for the first time: from then on
    -- each runs alone.
    local function check(bodies, died, max_deliveries, concurrency)
        local path, neighbours = folder:path("orders.db"), 0
        for _, body in ipairs(bodies) do
            if body:find("^well") then
                neighbours = neighbours + 1
                assert.is_true(ledger.count(folder, { word = "well", body = body }) > 0, body)
            else
                check_killer(body, max_deliveries)
            end
        end
        assert.equal(#bodies - neighbours, database.number(path, "SELECT count(*) FROM messages WHERE queue = 'error'"))
        assert.same({ tostring(neighbours), tostring(neighbours) }, database.rows(path,
            "SELECT count(*), count(DISTINCT body) FROM messages WHERE queue = 'out'")[1])
        assert.equal(#bodies, database.number(path, "SELECT count(*) FROM messages"))
        local entries = ledger.read(folder)
        ledger.check_one_at_a_time(entries, died)
        ledger.check_alone(entries)
        ledger.check_twice(entries, died, 5 * concurrency)
        for _, entry in ipairs(entries) do
            local innocent = entry.body:find("^well")
            assert.is_true(entry.deliveries <= (innocent and #bodies - neighbours + 1 or max_deliveries), entry.body)
        end
    end

    it("ends as a dead letter after 20 hand-outs, where the policy says nothing", function()
        local bodies = bodies_with(10, { [4] = "kill" })
        set_up(1, "", bodies)
        check(bodies, supervise(1, 20), 20, 1)
        assert.equal(20, ledger.count(folder, { word = "begin", body = "kill4" }))
    end)

    it("does so by whatever way it kills, among 50 neighbours, 16 at a time", function()
        local bodies = bodies_with(50, { [7] = "kill", [20] = "segv", [33] = "exit" })
        set_up(16, "bus:max_deliveries(4)", bodies)
        check(bodies, supervise(1, 3 * 4), 4, 16)
    end)

    it("does so where two processes are at work", function()
        local bodies = bodies_with(50, { [1] = "kill", [25] = "kill", [26] = "segv", [50] = "kill" })
        set_up(16, "bus:max_deliveries(6)", bodies)
        check(bodies, supervise(2, 4 * 6), 6, 16)
    end)

    it("does so where its first call fails, and its retry kills", function()
        local bodies = bodies_with(50, { [10] = "retry" })
        set_up(16, 'bus:max_deliveries(5) bus:on("Retried"):retry(1, "1ms")', bodies)
        check(bodies, supervise(1, 5), 5, 16)
    end)
end)

describe("processes that are killed while they make the file", function()
    local folder

    after_each(function()
        folder:remove()
    end)

    -- Looks without a pause, since the moment is short.
    local function await_file(name)
        local watchdog = os.time() + 60
        while not folder:read(name) do
            assert(os.time() < watchdog, name)
        end
    end

    it("leave one that works", function()
        for _, file in ipairs { "orders.db", "orders.db-wal", "orders.db-shm", "orders.db-lock" } do
            folder = process.folder {
                ["service.lua"] = (MULLIGAN:gsub("CONCURRENCY", 1)),
                ["policy.lua"] = "",
            }
            local jobs = { folder:start_mulligan { "run" }, folder:start_mulligan { "run" } }
            await_file(file)
            for _, job in ipairs(jobs) do
                job.kill("KILL")
                assert.equal(128 + 9, job.wait(), job.err())
            end
            local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = "well1\n" })
            assert.same({ code = 0, out = "", err = "" }, sent)
            local run = folder:mulligan { "run", "--until-empty" }
            assert.equal("done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n", run.out, run.err)
            local path = folder:path("orders.db")
            assert.same({ { "ok" } }, database.rows(path, "PRAGMA integrity_check"))
            assert.same({ { "0", "1" } }, database.rows(path,
                "SELECT (SELECT count(*) FROM owners), (SELECT count(*) FROM messages)"))
            folder:remove()
        end
    end)
end)

-- What a handler started lives on when the process is killed, with what it has inherited.
local CHILDREN = ledger.WORDS .. [[
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

m.consumer("C", { transport = "orders", queue = "work", handler = function(msg)
    note("begin", msg)
    local _ <close> = ending(msg)
    if msg.deliveries == 1 then
        local pipe = io.popen "echo $$; exec sleep 1000"
        local piped = pipe:read "n"
        os.execute(("sleep 1000 & echo %d $! >children"):format(piped))
        os.execute "kill -s KILL $PPID"
    end
    note("well", msg)
end })
]]

describe("a process that is killed while programs of its handlers run", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = CHILDREN, ["policy.lua"] = "" }
    end)

    local function living()
        local found = {}
        for child in (folder:read("children") or ""):gmatch("%d+") do
            if process.read(("/proc/%s/cmdline"):format(child)) == "sleep\0001000\000" then
                found[#found + 1] = child
            end
        end
        return found
    end

    after_each(function()
        for _, child in ipairs(living()) do
            os.execute("kill -s KILL " .. child)
        end
        folder:remove()
    end)

    it("keeps no claims alive by them", function()
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = "a\nb\n" })
        assert.equal(0, sent.code, sent.err)
        assert.equal(128 + 9, folder:mulligan({ "run" }).code)
        process.await("both programs", function()
            return #living() == 2
        end)
        assert.equal(2, database.number(folder:path("orders.db"), "SELECT count(owner) FROM messages"))
        local run = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, "done 2, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" }, { run.code, run.out })
        assert.equal(2, #living())
    end)
end)
