-- Handlers of `mulligan run` that do to their process what they shouldn't: the messages reach their
-- ends.
local process = require "support.process"
local queues = require "support.queues"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

-- Made before there is any handler.
local spin = coroutine.wrap(function()
    while true do end
end)

local worst = {}

worst["goes on with a coroutine of the file's"] = function()
    spin()
end

worst["takes the hook away, and sleeps"] = function()
    debug.sethook()
    m.sleep("1ms")
    while true do end
end

-- Kept before there is any handler.
local match = string.match

worst["searches for what takes Lua years"] = function()
    match(("a"):rep(100000), (".-"):rep(6) .. "b")
end

worst["replaces what Lua has"] = function()
    string.gsub, string.rep, table.concat, table.insert, table.sort = nil, nil, nil, nil, nil
    error, pcall, tostring, type, pairs, ipairs, setmetatable = nil, nil, nil, nil, nil, nil, nil
end

-- Its file tells that whoever read stdout is gone.
worst["prints to nobody"] = function()
    print("x")
    while not io.open("gone") do
        m.sleep("5ms")
    end
    print("y")
end

worst["has a child with a broken pipe"] = function()
    local _, how, number = os.execute("kill -s PIPE $$")
    m.error { type = "Child", message = ("%s %d"):format(how, number) }
end

m.consumer("C", { transport = "orders", queue = "work", timeout = "50ms", handler = function(msg)
    if worst[msg.body] then
        worst[msg.body]()
    elseif msg.body == "fails" then
        m.error { type = "E", message = "no" }
    end
end })
]]

describe("mulligan run", function()
    local folder, url

    before_each(function()
        folder = process.folder {
            ["service.lua"] = MULLIGAN,
            ["policy.lua"] = 'require("mulligan.policy").bus():default():retry(1, 0)',
        }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(...)
        local bodies = table.concat({ ... }, "\n")
        assert.equal(0, folder:mulligan({ "send", "work", "--transport", url }, { stdin = bodies }).code)
    end

    local function run(...)
        send(...)
        return folder:mulligan { "run", "--until-empty" }
    end

    for _, worst in ipairs {
        "goes on with a coroutine of the file's", "takes the hook away, and sleeps",
        "searches for what takes Lua years",
    } do
        it("ends a handler that " .. worst, function()
            local done = run("well", worst, "well")
            assert.equal(0, done.code, done.err)
            assert.is_truthy(done.err:find(": HandlerTimeoutError: the handler ran past its timeout; attempt 1 of 2", 1,
                true), done.err)
            assert.equal("done 2, retried 1, redelivered 0, dead-lettered 1, discarded 0\n", done.out)
        end)
    end

    it("gives handlers Lua's own patterns where the file says so", function()
        folder:write("service.lua", MULLIGAN .. [[
            m.patterns "lua"
            worst["comes back late"] = function()
                match(("a"):rep(20000), "^.-.-b")
            end]])
        local done = run("comes back late")
        assert.equal("done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n", done.out, done.err)
        folder:write("service.lua", MULLIGAN .. "m.patterns()")
        done = run()
        assert.same({ 2, 'mulligan: service.lua:' .. select(2, MULLIGAN:gsub("\n", "")) + 1
            .. ': m.patterns must be "counted" or "lua", not nil\n' }, { done.code, done.err })
    end)

    it("works on where who read its stdout is gone, and says so", function()
        folder:write("service.lua", (MULLIGAN:gsub('"50ms"', '"60s"')))
        assert(os.execute("mkfifo " .. folder:path("pipe")))
        send("prints to nobody", "well", "prints to nobody")
        local reader = folder:start { "sh", "-c", "head -c 1 pipe >read; echo >gone" }
        local done = folder:run { "sh", "-c", 'exec "$0" run --until-empty >pipe', process.mulligan }
        assert.equal(0, reader.wait())
        assert.same({ 1, "x" }, { done.code, folder:read("read") })
        assert.is_truthy(done.err:find("\nmulligan: stdout: Broken pipe\n", 1, true), done.err)
        assert.is_nil(done.err:find("error", 1, true), done.err)
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, queues.depth(url, "work"))
    end)

    it("leaves to the children of handlers what a broken pipe does to them", function()
        for given, what in pairs { default = "signal 13", ignore = "exit 0" } do
            send("has a child with a broken pipe")
            local done = folder:run {
                "env", "--" .. given .. "-signal=PIPE", process.mulligan, "run", "--until-empty",
            }
            assert.equal(0, done.code, done.err)
            assert.is_truthy(done.err:find(": Child: " .. what .. "; attempt 2 of 2", 1, true), done.err)
        end
    end)

    it("works on where a handler replaces what Lua has, though its log may not", function()
        run("well", "replaces what Lua has", "fails", "well", "fails")
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, queues.depth(url, "work"))
        local letters = queues.take(url, "error")
        assert.equal(2, #letters)
        for _, letter in ipairs(letters) do
            assert.same({ "fails", "E", "2" }, {
                letter.body, letter.headers["mulligan-error-type"], letter.headers["mulligan-calls"],
            })
        end
    end)
end)
