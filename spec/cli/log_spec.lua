-- The log of `mulligan run` where stderr can't be written to, or nobody reads it: it must hold up
-- neither messages nor signals, and say what is missing.
local json = require("mulligan").json
local process = require "support.process"
local queues = require "support.queues"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("C", { transport = "orders", queue = "work", concurrency = 16, handler = function(msg)
    m.error { type = "E", message = msg.body:rep(100000 // #msg.body) }
end })
]]

local MESSAGES = tonumber(os.getenv "MULL_MESSAGES") or 200

describe("the log of mulligan run", function()
    local folder, url

    before_each(function()
        folder = process.folder {
            ["service.lua"] = MULLIGAN,
            ["policy.lua"] = 'require("mulligan.policy").bus():default():dead_letter()',
        }
        url = "sqlite:" .. folder:path("orders.db")
        assert(os.execute("mkfifo " .. folder:path("pipe")))
        local lines = {}
        for number = 1, MESSAGES do
            lines[number] = ("message %d\n"):format(number)
        end
        local sent = folder:mulligan({ "send", "work", "--transport", url }, { stdin = table.concat(lines) })
        assert.equal(0, sent.code, sent.err)
    end)

    after_each(function()
        folder:remove()
    end)

    -- start runs it with JSON on stderr, which the shell's words put elsewhere.
    local function start(redirection, ...)
        return folder:start {
            "sh", "-c", 'exec "$0" "$@" ' .. redirection, process.mulligan, "run", "--log-format=json", ...,
        }
    end

    local SUMMARY = ("done 0, retried 0, redelivered 0, dead-lettered %d, discarded 0\n"):format(MESSAGES)

    -- Who opens a pipe for reading and writing is never told that there is no reader.
    for name, redirection in pairs {
        ["is a pipe that nobody reads"] = "2<>pipe",
        ["is closed"] = "2>&-",
        ["is a full disk"] = "2>/dev/full",
        ["is a pipe whose reader is gone"] = "2>pipe",
    } do
        it("holds up nothing where stderr " .. name, function()
            local reader = redirection == "2>pipe" and folder:start { "head", "-c", "1", "pipe" }
            local job = start(redirection, "--until-empty")
            assert.equal(0, job.wait(), job.err())
            assert.is_true(not reader or reader.wait() == 0)
            assert.equal(SUMMARY, job.out())
            assert.equal(MESSAGES, queues.depth(url, "error").ready)
        end)
    end

    local function await_all()
        process.await("all messages", function()
            return queues.depth(url, "error").ready == MESSAGES
        end)
    end

    it("doesn't hold up a signal either", function()
        local job = start "2<>pipe"
        await_all()
        job.kill("TERM")
        assert.equal(0, job.wait())
    end)

    it("says how many lines are lost, in their place, once somebody reads it", function()
        local job = start "2<>pipe"
        await_all()
        local reader = folder:start({ "sh", "-c", "exec cat pipe >read" })
        process.await("the line that tells of lost ones", function()
            return (folder:read("read") or ""):find("and are lost: %d+\"[^\n]*\n")
        end)
        job.kill("TERM")
        assert.equal(0, job.wait())
        assert.equal(0, reader.wait())
        local decided, lost, stopped = 0, 0, nil
        for line in folder:read("read"):gmatch("[^\n]*\n") do
            local event = json.decode(line)
            local count = (event.text or ""):match("^lines of this log that could not be written, and are lost: (%d+)$")
            if count then
                assert.same({ "log", "warning" }, { event.event, event.level })
                assert.is_truthy(event.time:find("^%d+%-%d+%-%d+T[%d:.]+Z$"), event.time)
                assert.is_nil(stopped)
                lost = lost + count
            elseif event.event == "decided" then
                decided = decided + 1
            else
                stopped = event.text == "stopped" or nil
            end
        end
        assert.is_true(lost > 0)
        assert.equal(MESSAGES, decided + lost)
    end)
end)
