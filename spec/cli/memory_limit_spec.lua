-- mulligan run --memory-limit: a handler that takes all the memory there is fails, and the others
-- go on.
local process = require "support.process"
local queues = require "support.queues"

local BEFORE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
local hogs = {}
m.consumer("C", { transport = "orders", queue = "work", concurrency = 8, handler = function(msg)
    local hog = hogs[msg.body]
    if hog then
        hog()
    end
    m.sleep("1ms")
end })
]]

-- What hogs do, and whether they fail as memory does.
local hogs = {
    ["builds a table"] = [[
        local list = {}
        while true do
            list[#list + 1] = { #list }
        end]],
    ["builds a string"] = [[
        local text = "x"
        while true do
            text = text .. text
        end]],
    ["builds coroutines"] = [[
        local list = {}
        while true do
            list[#list + 1] = coroutine.create(print)
        end]],
    ["builds a cause upon a cause"] = [[
        local err
        while true do
            err = { type = "E", cause = err, detail = ("x"):rep(1000) .. tostring(err) }
        end]],
    ["fills what is closed"] = [[
        local list <close> = setmetatable({}, { __close = function(list)
            while true do
                list[#list + 1] = { #list }
            end
        end })
        while true do
            list[#list + 1] = { #list }
        end]],
}

local OTHERS = 200

describe("mulligan run --memory-limit", function()
    local folder, url

    before_each(function()
        folder = process.folder { ["policy.lua"] = 'require("mulligan.policy").bus():default():dead_letter()' }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    -- run sends the bodies among the others, and works all of them off.
    local function run(given, code, ...)
        folder:write("mulligan.lua", BEFORE .. code)
        local lines = {}
        for number = 1, OTHERS do
            lines[number] = "other " .. number
        end
        for number, body in ipairs { ... } do
            table.insert(lines, 20 * number, body)
        end
        local bodies = table.concat(lines, "\n")
        assert.equal(0, folder:mulligan({ "send", "work", "--transport", url }, { stdin = bodies }).code)
        return folder:mulligan { "run", "--until-empty", table.unpack(given) }
    end

    for name, code in pairs(hogs) do
        it("fails a handler that " .. name .. ", and no other", function()
            local done = run({ "--memory-limit", "16MiB" }, ("hogs.it = function() %s end"):format(code), "it", "it")
            assert.same({ 0, ("done %d, retried 0, redelivered 0, dead-lettered 2, discarded 0\n"):format(OTHERS) },
                { done.code, done.out }, done.err)
            for _, letter in ipairs(queues.take(url, "error")) do
                assert.same({ "it", "Error", "not enough memory" }, {
                    letter.body, letter.headers["mulligan-error-type"], letter.headers["mulligan-error-message"],
                })
            end
            assert.equal(2, select(2, done.err:gsub(" Error: not enough memory; attempt 1 of 1, ", "")), done.err)
        end)
    end

    it("keeps the type of an error that is raised where there is no memory to say where", function()
        local done = run({ "--memory-limit", "16MiB" }, [[
            hogs.it = function()
                local _, full = pcall(m.error, { type = "Full", message = "no room" })
                local kept, unit = nil, 1 << 16
                local function fill()
                    while true do
                        kept = { kept, ("x"):rep(unit) }
                    end
                end
                while unit > 8 do
                    pcall(fill)
                    unit = unit // 2
                end
                error(full)
            end]], "it")
        assert.is_truthy(done.err:find(" Full: no room; attempt 1 of 1, ", 1, true), done.err)
        assert.is_nil(done.err:find("not enough memory", 1, true), done.err)
        assert.equal(1, queues.depth(url, "error").ready)
    end)

    -- What is left fails those that come after it, and perhaps the log; the engine goes on.
    it("ends each message where a handler has filled the memory for good", function()
        local done = run({ "--memory-limit", "16MiB" }, [[
            hogs.it = function()
                local unit = 1 << 16
                while unit > 8 do
                    local filled = pcall(function()
                        kept = { kept, ("x"):rep(unit) .. #tostring(kept) .. math.random() }
                    end)
                    unit = filled and unit or unit // 2
                end
            end]], "it")
        assert.equal(0, done.code, done.err)
        local well, dead = done.out:match("^done (%d+), retried 0, redelivered 0, dead%-lettered (%d+), ")
        assert.equal(OTHERS + 1, well + dead)
        assert.is_true(tonumber(dead) > 0, done.out)
        assert.is_truthy(done.err:find("not enough memory", 1, true))
        assert.equal(tonumber(dead), queues.depth(url, "error").ready)
    end)

    for given, words in pairs {
        ["x"] = 'must be a number of bytes or a text such as "16MiB", not "x"',
        ["0"] = 'must be a number of bytes or a text such as "16MiB", not 0',
        ["100KiB"] = "is too small: at least nMiB is needed",
    } do
        it("refuses " .. given, function()
            folder:write("mulligan.lua", BEFORE)
            local refused = folder:mulligan { "run", "--memory-limit", given }
            refused.err = refused.err:gsub("%d+MiB is", "nMiB is")
            assert.same({ code = 2, out = "", err = "mulligan: run: --memory-limit " .. words .. "\n" }, refused)
        end)
    end
end)
