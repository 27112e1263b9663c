-- What a failed call leaves behind for Lua's collector shows what was made for it: no event for a
-- line that isn't written, and none for one that is text.
local process = require "support.process"

-- The collector stands still, and one message is called again and again.
local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
collectgarbage "stop"
local calls, first = 0, nil
local function handle()
    calls = calls + 1
    if calls == 50 then
        first = collectgarbage "count"
    elseif calls == 150 then
        print((collectgarbage "count" - first) * 1024 // 100)
        return
    end
    m.error { type = "E", message = "no", stack = "" }
end
m.consumer("C", { transport = "orders", queue = "work", handler = handle })
]]

describe("a failure in mulligan run", function()
    local folder

    before_each(function()
        folder = process.folder { ["policy.lua"] = 'require("mulligan.policy").bus():default():retry(200, 0)' }
    end)

    after_each(function()
        folder:remove()
    end)

    -- bytes_at gives how many bytes a failed call of a handler takes at a log level.
    local function bytes_at(level, format)
        folder:write("service.lua", MULLIGAN)
        local words = { "send", "work", "--transport", "orders", "--header", "tenant=acme" }
        local sent = folder:mulligan(words, { stdin = "an order\n" })
        assert.equal(0, sent.code, sent.err)
        local ran = folder:mulligan { "run", "--until-empty", "--log-level", level, "--log-format", format }
        assert.equal(0, ran.code, ran.err)
        return assert(math.tointeger(tonumber(ran.out:match "^(%d+)[.%d]*\n")), ran.out)
    end

    it("makes no event of which no line is written", function()
        local written, unwritten = bytes_at("info", "json"), bytes_at("warning", "json")
        -- An event has eight tables.
        assert.is_true(unwritten < 2000, unwritten .. " bytes")
        assert.is_true(written - unwritten > 2000, ("%d and %d bytes"):format(written, unwritten))
    end)

    it("makes only its words for a line of text", function()
        local written, unwritten = bytes_at("info", "text"), bytes_at("warning", "text")
        assert.is_true(written > unwritten, ("%d and %d bytes"):format(written, unwritten))
        assert.is_true(written - unwritten < 1000, ("%d and %d bytes"):format(written, unwritten))
    end)
end)
