-- mulligan run --memory-limit: a handler that takes all the memory there is fails, and the others
-- go on; where memory is used up and no message takes it, the process ends itself, and none has
-- failed.
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
        folder:write("service.lua", BEFORE .. code)
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

    it("fails a handler that slept before, while others hold what is little beside that", function()
        local done = run({ "--memory-limit", "16MiB" }, [[
            hogs.it = function()
                local text = ("x"):rep(50000)
                m.sleep("20ms")
                while true do
                    text = text .. text
                end
            end]], "it", "it")
        assert.same({ 0, ("done %d, retried 0, redelivered 0, dead-lettered 2, discarded 0\n"):format(OTHERS) },
            { done.code, done.out }, done.err)
    end)

    for given, words in pairs {
        ["x"] = 'must be a number of bytes or a text such as "16MiB", not "x"',
        ["0"] = 'must be a number of bytes or a text such as "16MiB", not 0',
        ["100KiB"] = "is too small: at least nMiB is needed",
    } do
        it("refuses " .. given, function()
            folder:write("service.lua", BEFORE)
            local refused = folder:mulligan { "run", "--memory-limit", given }
            refused.err = refused.err:gsub("%d+MiB is", "nMiB is")
            assert.same({ code = 2, out = "", err = "mulligan: run: --memory-limit " .. words .. "\n" }, refused)
        end)
    end
end)

local MESSAGES = 30

-- How handlers come to keep what they take, 1 MiB a message.
local leaks = {
    ["in a global"] = "kept[#kept + 1] = mebibyte()",
    ["in a global, and sleeps"] = 'kept[#kept + 1] = mebibyte() m.sleep("5ms")',
    ["in a global, and says so in its own words"] = [[
        local well, why = pcall(function()
            kept[#kept + 1] = mebibyte()
        end)
        if not well then
            error("no luck: " .. why)
        end]],
    ["in a global, and says so by a type of its own"] = [[
        if not pcall(table.insert, kept, mebibyte()) then
            m.error { type = "Full", message = "no room" }
        end]],
    ["in small pieces"] = [[
        local list = {}
        kept[#kept + 1] = list
        for number = 1, 16384 do
            list[number] = { number }
        end]],
    ["as decoded JSON"] = [==[kept[#kept + 1] = m.json.decode("[" .. ("[],"):rep(16000) .. "[]]")]==],
    ["in a coroutine that sleeps for ever"] = [[
        local co = coroutine.create(function()
            local text = mebibyte()
            coroutine.yield()
            return text
        end)
        coroutine.resume(co)
        kept[#kept + 1] = co]],
}

describe("mulligan run, where handlers keep what they take", function()
    local folder, url

    before_each(function()
        folder = process.folder { ["policy.lua"] = 'require("mulligan.policy").bus():default():dead_letter()' }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(count)
        local lines = {}
        for number = 1, count do
            lines[number] = "message " .. number
        end
        local bodies = table.concat(lines, "\n")
        assert.equal(0, folder:mulligan({ "send", "work", "--transport", url }, { stdin = bodies }).code)
    end

    local function handles(code, concurrency)
        folder:write("service.lua", ([[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("orders", "sqlite:orders.db")
            kept = {}
            local function mebibyte()
                return ("x"):rep(1 << 20) .. #kept
            end
            m.consumer("C", { transport = "orders", queue = "work", concurrency = %d, handler = function(msg)
                %s
            end })]]):format(concurrency, code))
    end

    local function run()
        return folder:mulligan { "run", "--until-empty", "--memory-limit", "16MiB" }
    end

    local AT_END = "mulligan: memory is used up: with no handler at work, Lua holds %d+%.%d MiB that aren't garbage, "
        .. "and held 0%.%d MiB at the start; the limit is 16%.0 MiB, of which values may have 12%.0 MiB; "
        .. "look for what handlers keep, such as a table that grows\n$"

    -- run_until_done starts it again for as long as it asks for that; how often it did.
    local function run_until_done()
        local starts, done = 0, 0
        repeat
            starts = starts + 1
            local ended = run()
            local well = tonumber(ended.out:match "^done (%d+), retried 0, redelivered 0, dead%-lettered 0, ")
            assert.is_truthy(well and well > 0, ended.out .. ended.err)
            done = done + well
            if ended.code ~= 0 then
                assert.equal(75, ended.code, ended.err)
                assert.is_truthy(ended.err:find(AT_END), ended.err)
                assert.is_truthy(ended.err:find " error   memory is used up: [^\n]+\n.* stopping\n", ended.err)
            end
        until ended.code == 0
        assert.equal(MESSAGES, done)
        return starts
    end

    for name, code in pairs(leaks) do
        for _, concurrency in ipairs { 1, 8 } do
            it(("%s, %d at once, asks to be started again, and fails no message"):format(name, concurrency), function()
                handles(code, concurrency)
                send(MESSAGES)
                assert.is_true(run_until_done() > 2)
                assert.equal(0, queues.depth(url, "error").ready)
            end)
        end
    end

    it("counts the failures that a message had before, and not that one", function()
        folder:write("policy.lua", [[require("mulligan.policy").bus():default():retry { "1ms", "1ms", "1ms" }]])
        handles([[
            if msg.attempt == 1 then
                error("once: " .. msg.calls .. " of " .. msg.deliveries)
            end
            kept[#kept + 1] = mebibyte()]], 4)
        send(MESSAGES)
        local failed, again, done = {}, 0, 0
        local ended
        repeat
            ended = run()
            done = done + ended.out:match "^done (%d+)"
            for id, calls in ended.err:gmatch "message (%x+), [^\n]-: once: (%d+) of 1; attempt 1 of 4, " do
                assert.equal(failed[id] or 0, tonumber(calls), ended.err)
                again = again + (failed[id] and 1 or 0)
                failed[id] = calls + 1
            end
        until ended.code ~= 75
        assert.same({ 0, MESSAGES }, { ended.code, done })
        assert.is_true(again > 0)
        assert.equal(0, queues.depth(url, "error").ready)
    end)

    -- Each takes 4 MiB for a while, and 12 MiB is what there is for all.
    it("calls those again, alone, that only lack what others hold, and goes on", function()
        handles([[
            local text = ("x"):rep(2 << 20) .. #kept
            m.sleep("5ms")
            kept[1] = msg.calls + msg.attempt + msg.deliveries]], 8)
        send(MESSAGES)
        local ended = run()
        assert.same({ 0, "done 30, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { ended.code, ended.out }, ended.err)
        assert.is_truthy(ended.err:find(" failed for want of memory; it is called again once nothing else is at work, "
            .. "uncounted\n", 1, true), ended.err)
    end)

    for name, poison in pairs {
        ["asks for more at once than there is"] = 'local text = ("x"):rep(1 << 30)',
        ["takes it piece by piece"] = "local list = {} while true do list[#list + 1] = { 1 } end",
    } do
        it("fails one that " .. name .. ", where a quarter is kept for good, and no other", function()
            handles(([[
                cache = cache or ("c"):rep(3 << 20)
                m.sleep("5ms")
                if msg.body == "message 7" then
                    %s
                end
                m.sleep("5ms")]]):format(poison), 4)
            send(MESSAGES)
            local ended = run()
            assert.same({ 0, "done 29, retried 0, redelivered 0, dead-lettered 1, discarded 0\n" },
                { ended.code, ended.out }, ended.err)
            local letter = queues.take(url, "error")[1]
            assert.same({ "message 7", "not enough memory" }, { letter.body, letter.headers["mulligan-error-message"] })
        end)
    end

    it("fails one that runs past its timeout, also where memory was refused to it", function()
        handles([[
            while #kept < 7 do
                kept[#kept + 1] = mebibyte()
            end
            pcall(string.rep, "x", 6 << 20)
            while msg.body == "message 7" do
            end]], 1)
        folder:write("service.lua", (folder:read "service.lua":gsub("concurrency = 1", '%0, timeout = "50ms"')))
        send(8)
        local ended = run()
        assert.same({ 0, "done 7, retried 0, redelivered 0, dead-lettered 1, discarded 0\n" },
            { ended.code, ended.out }, ended.err)
        assert.equal("HandlerTimeoutError", queues.take(url, "error")[1].headers["mulligan-error-type"])
    end)

    it("goes on where failures come with long words, one upon the other", function()
        handles([[m.error { type = "E", message = msg.body .. ("y"):rep(3000), stack = "" }]], 1)
        send(700)
        local ended = folder:mulligan { "run", "--until-empty", "--memory-limit", "16MiB", "--log-format", "json" }
        assert.same({ 0, "done 0, retried 0, redelivered 0, dead-lettered 700, discarded 0\n" },
            { ended.code, ended.out })
    end)

    it("fails those that take all of it from the first to the last, and keep it", function()
        handles([[
            local bad = msg.body == "message 3" or msg.body == "message 7"
            while bad do
                more = { more, mebibyte() }
            end]], 1)
        send(MESSAGES)
        local codes, done = {}, 0
        repeat
            local ended = run()
            codes[#codes + 1] = ended.code
            done = done + ended.out:match "^done (%d+)"
            assert.is_truthy(ended.code ~= 75 or ended.err:find(AT_END), ended.err)
        until ended.code ~= 75
        assert.same({ { 75, 75, 0 }, MESSAGES - 2 }, { codes, done })
        for number, letter in ipairs(queues.take(url, "error")) do
            assert.same({ number * 4 - 1, "not enough memory" },
                { tonumber(letter.body:match "%d+"), letter.headers["mulligan-error-message"] })
        end
    end)

    it("ends where one that succeeded has filled it for good, and says so with the little that is left", function()
        handles([[
            if msg.body ~= "message 5" then
                return { msg.body:rep(1000) }
            end
            local unit = 1 << 16
            while unit > 8 do
                local filled = pcall(function()
                    more = { more, ("x"):rep(unit) .. #tostring(more) .. math.random() }
                end)
                unit = filled and unit or unit // 2
            end]], 1)
        send(MESSAGES)
        local ended = run()
        assert.same({ 75, "done 5, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { ended.code, ended.out }, ended.err)
        assert.is_truthy(ended.err:find(AT_END), ended.err)
        assert.equal(MESSAGES - 5, queues.depth(url, "work").ready)
    end)

    it("doesn't begin where the file itself keeps nearly all", function()
        handles("", 1)
        folder:write("service.lua", folder:read "service.lua" .. [[
            for number = 1, 44 do
                kept[number] = ("x"):rep(1 << 18) .. number
            end]])
        send(1)
        local ended = run()
        assert.same({ code = 2, out = "", err = "mulligan: service.lua: the memory limit is too small: at least "
            .. "18MiB is needed\n" }, ended)
        assert.equal(1, queues.depth(url, "work").ready)
    end)
end)
