-- Runs examples/decide.lua and compares what it prints with what its policy says.
local process = require "support.process"

local build = (os.getenv("MULL_BUILD") or "build/dev"):gsub("^[^/]", process.here .. "/%0")

describe("examples/decide.lua", function()
    local lines, told

    setup(function()
        local folder = process.folder()
        local ran = folder:run({ build .. "/spec/runner", process.here .. "/examples/decide.lua" },
            { env = { LUA_CPATH = build .. "/lua/?.so" } })
        folder:remove()
        assert.same({ 0, "" }, { ran.code, ran.err })
        lines, told = {}, {}
        for line in ran.out:gmatch("[^\n]+") do
            lines[#lines + 1] = line
            local moment, id, words = line:match("^ *(%d+:%d+:%d+)  (mail%-%d)  (.+)$")
            if id then
                told[id] = told[id] or {}
                table.insert(told[id], moment .. " " .. words)
            end
        end
    end)

    it("sends what can be sent, be it late", function()
        assert.same({ "0:00:00 sent" }, told["mail-1"])
        assert.same({
            "0:00:00 MailboxFull: later, in 60 min", "1:00:00 MailboxFull: later, in 360 min", "7:00:00 sent",
        }, told["mail-2"])
    end)

    it("retries and redelivers what is busy, until its attempts are used up", function()
        local expected = {}
        for round, ending in ipairs {
            { 0, "Busy: later, in 5 min" }, { 5, "Busy: later, in 15 min" }, { 20, "Busy: later, in 30 min" },
            { 50, "put aside in error (exhausted)" },
        } do
            for call = 1, 3 do
                local words = call < 3 and "Busy: once more in 1000 ms" or ending[2]
                table.insert(expected, ("0:%02d:%02d %s"):format(ending[1], 2 * (round - 1) + call - 1, words))
            end
        end
        assert.same(expected, told["mail-3"])
    end)

    it("puts aside and drops the others at once", function()
        assert.same({ "0:00:00 put aside in returned (rule)" }, told["mail-4"])
        assert.same({ "0:00:00 dropped: sent before" }, told["mail-5"])
        assert.same({ "0:00:00 put aside in error (no_rule)" }, told["mail-6"])
        assert.equal("put aside: returned: mail-4, error: mail-6, error: mail-3", lines[#lines])
    end)
end)
