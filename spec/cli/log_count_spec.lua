-- Equal lines of `run`'s log within a second: the first is written, the others are counted.
local json = require("mulligan").json
local log = require "mulligan.log"
local process = require "support.process"
local testing = require "mulligan.testing"

describe("the log", function()
    local rig, written, lines

    local function start(format)
        written = {}
        rig = testing.rig {}
        lines = log.new(format or "text", "info", function(line) written[#written + 1] = line end)
        lines.count_equal(function(tell) rig.engine:after("1s", tell) end)
    end

    after_each(function()
        if rig then
            rig:close()
        end
        rig = nil
    end)

    -- What was written since the last look, without times.
    local function new()
        local found = {}
        for number, line in ipairs(written) do
            found[number] = line:match "^%S+ (.*)\n$"
        end
        written = {}
        return found
    end

    it("writes a line once a second, and then how often it came again", function()
        start()
        for _ = 1, 12 do
            lines.line("warning", "oh")
        end
        assert.same({ "warning oh" }, new())
        rig:advance "999ms"
        lines.line("warning", "oh")
        assert.same({}, new())
        rig:advance "1ms"
        assert.same({ "warning oh (again 12 times)" }, new())
        rig:advance "1m"
        assert.same({}, new())
        lines.line("warning", "oh")
        assert.same({ "warning oh" }, new())
    end)

    it("counts each line by itself, where others come between", function()
        start()
        for number = 1, 3 do
            lines.line("warning", "oh")
            lines.line("info", "oh")
            lines.event {
                name = "notify_failed",
                text = "no",
                failure = { message = { id = "m-" .. number }, consumer = "C" },
            }
        end
        rig:advance "1s"
        assert.same({
            "warning oh",
            "info    oh",
            "warning notify_failed: message m-1, consumer C: no",
            "warning notify_failed: message m-2, consumer C: no",
            "warning notify_failed: message m-3, consumer C: no",
            "warning oh (again 2 times)",
            "info    oh (again 2 times)",
        }, new())
    end)

    it("says in JSON for how many a line stands", function()
        start "json"
        for _ = 1, 3 do
            lines.line("warning", "oh")
        end
        rig:advance "1s"
        assert.equal(2, #written)
        local first, second = json.decode(written[1]), json.decode(written[2])
        assert.same({ 1, 2 }, { first.times, second.times })
        first.times, second.times, first.time, second.time = nil, nil, nil, nil
        assert.same(first, second)
    end)

    it("writes at its end what is counted, and counts no more", function()
        start()
        lines.line("info", "oh")
        lines.line("info", "oh")
        lines.flush()
        lines.line("info", "oh")
        lines.line("info", "oh")
        assert.same({ "info    oh", "info    oh (again 1 time)", "info    oh", "info    oh" }, new())
    end)

    it("remembers a bounded number of lines, and loses none", function()
        start()
        for _ = 1, 2 do
            for number = 1, 1500 do
                lines.line("info", "line " .. number)
            end
            lines.line("info", ("x"):rep(5000))
        end
        rig:advance "1s"
        local times = 0
        for _, line in ipairs(new()) do
            times = times + (tonumber(line:match "%(again (%d+) times?%)$") or 1)
        end
        assert.equal(2 * 1501, times)
    end)

    it("remembers few bytes, and loses none", function()
        start()
        lines.line("info", "first")
        lines.line("info", "first")
        for number = 1, 30 do
            lines.line("info", ("%04d"):format(number):rep(1000))
        end
        local found = new()
        assert.equal(32, #found)
        assert.equal("info    first (again 1 time)", found[19]) -- after 17 of 4,000 bytes and some
    end)
end)

describe("mulligan run", function()
    -- How many of what the policy printed a line of the log stands for.
    local standing = {
        text = function(line)
            return line:find("the same", 1, true) and tonumber(line:match "%(again (%d+) times?%)$" or 1)
        end,
        json = function(line)
            local fields = json.decode(line)
            return fields.text == "the same" and fields.times
        end,
    }
    for format, times_of in pairs(standing) do
        it("counts equal lines of its log, and loses none at its end, as " .. format, function()
            local folder = process.folder {
                ["service.lua"] = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("C", { transport = "orders", queue = "work", concurrency = 16, handler = function() error "no" end })]],
                ["policy.lua"] = [[
local bus = require("mulligan.policy").bus()
bus:default():discard()
bus:notify(function(event) if event.name == "decided" then print "the same" end end)]],
            }
            local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = ("x\n"):rep(100) })
            assert.equal(0, sent.code, sent.err)
            local ran = folder:mulligan { "run", "--until-empty", "--log-format", format }
            assert.equal(0, ran.code, ran.err)
            local lines, times = 0, 0
            for line in ran.err:gmatch "[^\n]+" do
                local stands_for = times_of(line)
                if stands_for then
                    lines, times = lines + 1, times + stands_for
                end
            end
            assert.equal(100, times)
            assert.is_true(lines < 100, lines .. " lines")
            folder:remove()
        end)
    end
end)
