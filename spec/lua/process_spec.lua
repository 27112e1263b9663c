-- m.run: a program that a handler in Lua waits for, while others work.
local mulligan = require "mulligan"
local process = require "support.process"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

describe("m.run", function()
    local folder, rig

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        rigs.close()
        folder:remove()
    end)

    -- handled runs a function as a handler, for one message.
    local function handled(handler, ...)
        rig = rigs.start("bus:default():dead_letter()", handler, ...)
        assert(rig:publish("work", "x"))
        local event = rig:events("decided")[1]
        return event and event.failure.error
    end

    -- runs gives what m.run gave in a handler.
    local function runs(command)
        local found
        local failed = handled(function()
            found = mulligan.run(command)
        end)
        assert.is_nil(failed, failed and failed.message)
        rigs.close()
        return found
    end

    it("gives the exit code, and what was written", function()
        assert.same({ status = 0, stdout = "out\n", stderr = "err\n" },
            runs { "sh", "-c", "echo out; echo err >&2" })
        assert.same({ status = 7, stdout = "", stderr = "" }, runs { "sh", "-c", "exit 7" })
    end)

    it("gives the signal that ended it", function()
        assert.same({ status = 137, signal = 9, stdout = "", stderr = "" }, runs { "sh", "-c", "kill -s KILL $$" })
    end)

    it("gives it its stdin; nothing where there is none", function()
        local bytes = ("\0\1\255\n"):rep(1024 * 1024)
        assert.is_true(runs({ "cat", stdin = bytes }).stdout == bytes)
        assert.equal("", runs({ "cat" }).stdout)
    end)

    it("gives it arguments as they are", function()
        assert.equal("a b|$HOME|'|", runs({ "printf", "%s|", "a b", "$HOME", "'" }).stdout)
    end)

    it("keeps 16 MiB of stdout, and ends what writes more", function()
        assert.equal(16 * 1024 * 1024, #runs({ "head", "-c", "16777216", "/dev/zero" }).stdout)
        local failed = handled(function()
            mulligan.run { "cat", "/dev/zero" }
        end)
        assert.same({ "Error", true }, { failed.type, failed.message:find(
            "cat was ended: it wrote more than 16 MiB to its stdout", 1, true) ~= nil })
    end)

    it("raises TimeoutError where its time is over", function()
        local found
        local failed = handled(function()
            local well, raised = pcall(mulligan.run, { "sleep", "1000", timeout = "20ms" })
            found = { well, raised.type, raised.message }
        end)
        assert.is_nil(failed)
        assert.same({ false, "TimeoutError", "sleep was ended: it ran longer than 20 ms" }, found)
    end)

    it("has at most the time that the call has left", function()
        local failed = handled(function()
            mulligan.run { "sleep", "1000", timeout = "10s" }
        end, nil, { timeout = "50ms" })
        assert.same({ "HandlerTimeoutError", "sleep was ended: it ran longer than 50 ms" },
            { failed.type, failed.message })
    end)

    it("raises StartError where the program can't be started", function()
        local failed = handled(function()
            mulligan.run { "no such program" }
        end)
        assert.same({ "StartError", "ENOENT", "no such program can't be started: no such file or directory" },
            { failed.type, failed.code, failed.message })
    end)

    it("may run one after the other, in a pcall, a function and a loop", function()
        local seen = {}
        local function run(word)
            seen[#seen + 1] = mulligan.run({ "echo", word }).stdout
        end
        local failed = handled(function()
            for number = 1, 3 do
                assert(pcall(run, number .. ""))
            end
        end)
        assert.is_nil(failed)
        assert.same({ "1\n", "2\n", "3\n" }, seen)
    end)

    it("lets others work meanwhile", function()
        local seen = {}
        rig = rigs.start("", function(msg)
            seen[#seen + 1] = "begins " .. msg.body
            if msg.body == "a" then
                mulligan.run { "sh", "-c", ('until [ -e "%s" ]; do sleep 0.01; done'):format(folder:path("b")) }
            else
                folder:write("b", "")
            end
            seen[#seen + 1] = "ends " .. msg.body
        end, nil, { concurrency = 2 })
        assert(rig.engine:publish("orders", "work", "a"))
        assert(rig.engine:publish("orders", "work", "b"))
        rig.clock:turn()
        assert.same({ "begins a", "begins b", "ends b", "ends a" }, seen)
    end)

    it("works in a handler's own coroutine only", function()
        local _, why = pcall(function()
            mulligan.run { "true" }
        end)
        assert.matches("^spec/lua/process_spec.lua:%d+: mulligan.run works in a handler only$", why)
        handled(function()
            why = select(2, coroutine.resume(coroutine.create(function()
                mulligan.run { "true" }
            end)))
        end)
        assert.is_truthy(why:find("mulligan.run works in the handler's own coroutine only", 1, true), why)
    end)

    for what, case in pairs {
        ["a text"] = { "true", "takes a table" },
        ["a number on stdin"] = { { "cat", stdin = 5 }, "stdin must be a string, not 5" },
        ["a time without a unit"] = { { "true", timeout = 5 }, 'timeout 5 has no unit' },
        ["another option"] = { { "true", input = "x" }, 'unknown option "input"' },
    } do
        it("says what it takes, not " .. what, function()
            local failed = handled(function()
                mulligan.run(case[1])
            end)
            assert.is_truthy(failed.message:find("process_spec.lua:%d+: mulligan.run "), failed.message)
            assert.is_truthy(failed.message:find(case[2], 1, true), failed.message)
        end)
    end

    it("leaves no descriptor, process or memory behind, whenever its call ends", function()
        local random = testing.random(17)
        local pid = process.read("/proc/self/stat"):match("^%d+")
        local function descriptors()
            os.execute(("ls -l /proc/%s/fd | grep -o '[0-9]* ->.*' >%s"):format(pid, folder:path("open")))
            return folder:read "open"
        end
        local ended = { well = 0, TimeoutError = 0 }
        rig = rigs.start('bus:default():discard("ended")', function(msg)
            local number = tonumber(msg.body)
            local command = number % 3 == 0 and { "true" } or { "sh", "-c", "sleep 1000 & wait" }
            command.timeout = number % 3 ~= 0 and ("%dms"):format(random(20)) or nil
            local well, raised = pcall(mulligan.run, command)
            local how = well and "well" or raised.type
            ended[how] = ended[how] + 1
        end, nil, { concurrency = 16 })
        assert(rig:publish("work", "0")) -- libuv keeps a pipe for signals from then on
        collectgarbage()
        local before = descriptors()
        for number = 1, 300 do
            assert(rig.engine:publish("orders", "work", number .. ""))
        end
        rig.clock:turn()
        collectgarbage()
        assert.same({ well = 101, TimeoutError = 200 }, ended)
        assert.equal(301, rig:counts().done)
        assert.equal(before, descriptors())
    end)
end)
