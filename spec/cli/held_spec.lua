-- Handlers of `mulligan run` that hold its loop in C, where nothing ends them: the log says which, and
-- a stop ends the process all the same.
local json = require("mulligan").json
local process = require "support.process"
local queues = require "support.queues"

-- Each body is a way to hold the loop, in this order from line 6 on.
local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.patterns "lua"
local ways = {
    execute = function() os.execute "echo $$ >child; exec sleep 1000" end,
    read = function() local pipe <close> = io.popen "echo $$ >child; exec sleep 1000" pipe:read("a") end,
    open = function() io.open("fifo"):close() end,
    pattern = function() ("a"):rep(100000):find((".-"):rep(6) .. "b") end,
    loop = function() while true do end end,
    finalizer = function()
        m.sleep "1ms"
        setmetatable({}, { __gc = function() while true do local _ = {} end end })
        collectgarbage()
    end,
    last = function() kept = setmetatable({}, { __gc = function() while true do local _ = {} end end }) end,
}

m.consumer("C", { transport = "orders", queue = "work", timeout = false, handler = function(msg)
    if msg.deliveries == 1 and ways[msg.body] then
        ways[msg.body]()
    end
end })
]]

-- Where each is last seen: at its call that blocks, while it computes, where it slept; a call of C
-- that nothing knows of, at the line where the handler begins.
local places = { execute = 6, read = 7, open = 8, pattern = 19, loop = 10, finalizer = 12 }

-- ThreadSanitizer keeps a signal back until its thread calls the C library again.
if process.build:find("tsan", 1, true) then
    places = { loop = places.loop, finalizer = places.finalizer }
end

local GRACE_S = 10

describe("mulligan run", function()
    local folders = {}

    after_each(function()
        for _, folder in pairs(folders) do
            local child = (folder:read("child") or ""):match("%d+")
            if child and process.read(("/proc/%s/cmdline"):format(child)) == "sleep\0001000\000" then
                os.execute("kill -s KILL " .. child)
            end
            folder:remove()
        end
        folders = {}
    end)

    local function start(way, ...)
        local folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = "" }
        folders[way] = folder
        local sent = folder:mulligan({ "send", "work", "--transport", "orders", "--id", "m-" .. way }, { stdin = way })
        assert.equal(0, sent.code, sent.err)
        assert(os.execute("mkfifo " .. folder:path("fifo")))
        return folder:start_mulligan { "run", "--until-empty", ... }
    end

    local function await_line(job, words)
        process.await(words, function()
            return job.err():find(words, 1, true)
        end)
    end

    local function held(way)
        return ("message m-%s, consumer C: the loop has been held for 5s by its handler, last seen at service.lua:%d; "
            .. "nothing else goes on until it returns\n"):format(way, places[way])
    end

    -- All of them at a time: each takes the grace time.
    it("says what holds it, and ends with 75 once the grace time of a stop is over", function()
        local jobs = {}
        for way in pairs(places) do
            jobs[way] = start(way)
        end
        for way, job in pairs(jobs) do
            await_line(job, held(way))
        end
        local stopped = os.time()
        for _, job in pairs(jobs) do
            job.kill("TERM")
            job.kill("TERM")
        end
        for way, job in pairs(jobs) do
            assert.same({ 75, "" }, { job.wait(), job.out() }, way)
            assert.is_true(os.difftime(os.time(), stopped) >= GRACE_S - 1)
            assert.is_truthy(job.err():find("Z error   message m%-" .. way .. ", consumer C: the loop has been held "
                .. "for %w+ by its handler, last seen at service.lua:%d+, which is beyond the grace time; the "
                .. "process ends with 75, and what it has claimed will be handed out again\n$"), job.err())
            local again = folders[way]:mulligan { "run", "--until-empty" }
            assert.same({ 0, "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
                { again.code, again.out }, again.err)
        end
    end)

    it("says that it goes on, in JSON too, and has lost nothing", function()
        local job = start("open", "--log-format", "json")
        await_line(job, "has been held for 5s")
        folders.open:write("fifo", "")
        assert.same({ 0, "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { job.wait(), job.out() }, job.err())
        local told = {}
        for line in job.err():gmatch("[^\n]+") do
            local event = json.decode(line)
            if event.text:find("the loop", 1, true) then
                local after = event.text:match("; .*")
                told[#told + 1] = { event.level, event.event, event.consumer, event.message.id, after }
            end
        end
        assert.same({
            { "warning", "log", "C", "m-open", "; nothing else goes on until it returns" },
            { "warning", "log", "C", "m-open", "; now it goes on" },
        }, told)
    end)

    it("says so, and ends with 75, where it is held before it begins", function()
        local folder = process.folder { ["policy.lua"] = "", ["service.lua"] = MULLIGAN .. [[
            -- The last step before transports are opened stands for one that blocks. It is in Lua, since
            -- ThreadSanitizer keeps a signal back until its thread calls the C library again.
            require("mulligan.program").begin_work = function() while true do os.time() end end]] }
        folders.before = folder
        local job = folder:start_mulligan { "run" }
        await_line(job, "Z warning the loop has been held for 5s by no handler: ")
        job.kill("TERM")
        assert.same({ 75, "" }, { job.wait(), job.out() }, job.err())
    end)

    it("ends with 75 where a finalizer holds it at its end, with all messages at theirs", function()
        local job = start "last"
        assert.same({ 75, "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { job.wait(), job.out() }, job.err())
        assert.is_truthy(job.err():find("Z warning the loop has been held for 5s by no handler: ", 1, true), job.err())
        assert.same({ ready = 0, delayed = 0, claimed = 0 },
            queues.depth("sqlite:" .. folders.last:path("orders.db"), "work"))
    end)
end)
