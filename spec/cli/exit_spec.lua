-- What ends `mulligan run` before its work is done, and that it never says 0 then.
local process = require "support.process"
local queues = require "support.queues"

local BEFORE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
local exit = os.exit
local ways = {}
]]

local AFTER = [[
m.consumer("C", { transport = "orders", queue = "work", handler = function(msg)
    if ways[msg.body] then
        ways[msg.body](msg)
    end
end })
]]

-- forked(way) is a handler that forks a child, which goes that way, and says with which code it ended.
local FORKS = [[
local libc_exit, fork = package.loadlib("libc.so.6", "exit"), package.loadlib("libc.so.6", "fork")
local function read(path, what)
    local file <close> = io.open(path)
    return file and file:read(what)
end
local function append(path, text)
    local file <close> = io.open(path, "a")
    file:write(text, "\n")
end
local function pid()
    return read("/proc/self/stat", "n")
end
local function forked(way)
    return function(msg)
        local parent, child = pid(), msg.body .. ".pid"
        fork() -- it gives no result that Lua could use
        if pid() ~= parent then
            append(child, pid())
            way()
        end
        local stat
        repeat
            m.sleep "10ms"
            local number = read(child, "n")
            stat = number and read(("/proc/%d/stat"):format(number), "a")
        until stat and stat:find(") Z", 1, true)
        append(msg.body .. ".code", tonumber(stat:match "(%d+)%s*$") >> 8)
    end
end
ways.well = function() append("workers", pid()) end
ways.raised = forked(function() os.exit(3, true) end)
ways.called = forked(function() libc_exit() end)
]]

local LINE = select(2, BEFORE:gsub("\n", "")) + 1 -- of what stands between

describe("mulligan run", function()
    local folder, url

    before_each(function()
        folder = process.folder { ["policy.lua"] = 'require("mulligan.policy").bus():default():dead_letter()' }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function run(between, ...)
        folder:write("service.lua", BEFORE .. between .. "\n" .. AFTER)
        local bodies = table.concat({ ... }, "\n")
        assert.equal(0, folder:mulligan({ "send", "work", "--transport", url }, { stdin = bodies }).code)
        return folder:mulligan { "run", "--until-empty" }
    end

    for name, way in pairs {
        ["os.exit(0)"] = "os.exit(0)",
        ["os.exit()"] = "os.exit()",
        ["os.exit(true, true)"] = "os.exit(true, true)",
        ["os.exit(3)"] = "os.exit(3)",
        ["os.exit, kept in a variable"] = "exit(0)",
        ["os.exit in a coroutine"] = "coroutine.wrap(function() os.exit(0) end)()",
        ["os.exit in what it closes"] = "local _ <close> = setmetatable({}, { __close = function() os.exit(0) end })",
        ["os.exit after a sleep"] = 'm.sleep "1ms" os.exit(0)',
    } do
        it("goes on where a handler calls " .. name .. ", which raises", function()
            local done = run(("ways.exit = function() %s end"):format(way), "well", "exit", "well", "exit")
            assert.same({ 0, "done 2, retried 0, redelivered 0, dead-lettered 2, discarded 0\n" },
                { done.code, done.out }, done.err)
            local said = ("service.lua:%d: os.exit would end the process"):format(LINE)
            assert.equal(2, select(2, done.err:gsub(said:gsub("%p", "%%%0"), "")), done.err)
        end)
    end

    it("goes on where a handler catches what os.exit raises, or calls it in a finalizer", function()
        local done = run([[ways.caught = function() assert(not pcall(os.exit, 0)) end
            ways.finalizer = function()
                setmetatable({}, { __gc = function() os.exit(0) end })
                collectgarbage()
            end]], "caught", "finalizer", "well")
        assert.same({ 0, "done 3, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" }, { done.code, done.out },
            done.err)
    end)

    for _, code in ipairs { "0", "", "true", "256", "0.0", '"0"', "nil, true" } do
        it(("can't load a file that calls os.exit(%s)"):format(code), function()
            local said = ("mulligan: service.lua:%d: os.exit with 0 would say that all is done; say error, or name "
                .. "another code\n"):format(LINE)
            assert.same({ code = 2, out = "", err = said }, run(("os.exit(%s)"):format(code), "well"))
            assert.equal(1, queues.depth(url, "work").ready)
        end)
    end

    it("ends with the code of a file that calls os.exit with another", function()
        for code, given in pairs { [3] = "3", [1] = "false" } do
            assert.same({ code = code, out = "", err = "" }, run(("os.exit(%s)"):format(given), "well"))
        end
    end)

    it("ends with 75 where a library calls C's exit in a handler, and hands its message out again", function()
        local done = run('ways.exit = package.loadlib("libc.so.6", "exit")', "well", "exit", "well")
        assert.same({ 75, "" }, { done.code, done.out })
        assert.is_truthy(done.err:find("\nmulligan: exit was called in the midst of the work; "
            .. "what was claimed will be handed out again\n", 1, true), done.err)
        assert.equal(0, run("ways.exit = function() end").code)
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, queues.depth(url, "work"))
    end)

    it("lets a process that a handler forked end, by os.exit or C's exit, and goes on itself", function()
        local done = run(FORKS, "raised", "well", "called", "well")
        assert.same({ 0, "done 4, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { done.code, done.out }, done.err)
        local first, second = folder:read("workers"):match "^(%d+)\n(%d+)\n$"
        assert.equal(first, second)
        assert.equal("3\n", folder:read "raised.code")
        assert.not_equal("75\n", folder:read "called.code") -- it is called with a code that nobody knows
    end)

    -- C's exit is called with a code that isn't 0 there.
    it("ends with the command's code where a finalizer calls C's exit at the end of the process", function()
        local done = run([[local libc_exit = package.loadlib("libc.so.6", "exit")
            io.open("kept", "w"):write("what was kept")
            kept = setmetatable({}, { __gc = function() libc_exit() end })]], "well")
        assert.same({ 0, "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" },
            { done.code, done.out }, done.err)
        assert.is_nil(done.err:find("exit was called", 1, true))
        assert.equal("what was kept", folder:read "kept")
    end)
end)

describe("a service.lua that calls os.exit(0)", function()
    it("lets no other command that reads it say that all is done", function()
        local folder <close> = setmetatable({ process.folder {
            ["policy.lua"] = "",
            ["service.lua"] = BEFORE .. "os.exit(0)",
        } }, { __close = function(self) self[1]:remove() end })
        for _, words in ipairs {
            { "send", "work", "--transport", "orders" },
            { "check", "policy.lua", "--for", "service.lua" },
        } do
            local done = folder[1]:mulligan(words, { stdin = "a message\n" })
            assert.equal(2, done.code)
            assert.is_truthy(done.err:find(("service.lua:%d: os.exit with 0"):format(LINE), 1, true), done.err)
        end
    end)
end)
