-- mulligan run and send on a volume of 3 MB that their own database fills. spec/embed/sqlite_full.c shows the same, and
-- more, where no volume can be mounted.
local process = require "support.process"
local queues = require "support.queues"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:disk/orders.db")
m.consumer("C", {
    transport = "orders",
    queue = "work",
    concurrency = tonumber(os.getenv "CONCURRENCY"),
    handler = function()
        m.sleep "1ms"
    end,
})
]]

describe("a small disk", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = "", ["disk/here"] = "" }
    end)

    after_each(function()
        os.execute(("umount -l '%s' 2>/dev/null"):format(folder:path "disk"))
        folder:remove()
    end)

    -- mount gives a volume of its own to the folder "disk"; else the test is pending.
    local function mount(size)
        local command = "mount -t tmpfs -o size=%s tmpfs '%s' 2>/dev/null"
        if not os.execute(command:format(size, folder:path "disk")) then
            pending("no volume can be mounted here")
        end
    end

    local function bodies(count, size)
        local lines = {}
        for number = 1, count do
            lines[number] = ("%d %s\n"):format(number, ("x"):rep(size))
        end
        return table.concat(lines)
    end

    local function send(text)
        return folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = text })
    end

    local function assert_handled(count, concurrency)
        local run = folder:mulligan({ "run", "--until-empty" }, { env = { CONCURRENCY = concurrency } })
        assert.equal(0, run.code, run.err)
        assert.equal(("done %d, retried 0, redelivered 0, dead-lettered 0, discarded 0\n"):format(count), run.out)
        assert.is_nil(run.err:find(" error ", 1, true), run.err)
        local depth = queues.depth("sqlite:" .. folder:path "disk/orders.db", "work")
        assert.same({ 0, 0, 0 }, { depth.ready, depth.delayed, depth.claimed })
    end

    it("isn't filled for good by the log of the database", function()
        mount "3m"
        assert.same({ code = 0, out = "", err = "" }, send(bodies(800, 110)))
        assert_handled(800, 1)
    end)

    it("is filled by what is sent, and emptied by what is handled", function()
        mount "2m"
        local sent = send(bodies(100, 50000))
        assert.equal(1, sent.code)
        local safe = tonumber(sent.err:match "send: (%d+) messages are safe")
        assert.is_true(safe > 10, sent.err)
        assert.is_truthy(sent.err:find("has no room for what is sent to it; make some elsewhere on its disk", 1, true))
        assert_handled(safe, 100)
    end)

    it("that is full already is called so", function()
        mount "1m"
        local file = assert(io.open(folder:path "disk/other", "wb"))
        file:write(("x"):rep(2 << 20))
        file:close()
        local sent = send "1\n"
        assert.equal(2, sent.code)
        assert.is_truthy(sent.err:find("its disk is full, and there is no room for it; make some elsewhere", 1, true))
    end)
end)
