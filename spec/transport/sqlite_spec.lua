local conformance = require "transport.conformance"
local database = require "support.database"
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

-- new_file gives a name that no file has yet.
local function new_file()
    local name = os.tmpname()
    os.remove(name)
    return name .. ".db"
end

-- For the C suite, which leaves its files.
local folder = process.folder()

teardown(function()
    folder:remove()
end)

local function remove(path)
    for _, ending in ipairs { "", "-wal", "-shm", "-lock" } do
        os.remove(path .. ending)
    end
end

conformance.of("sqlite", {
    url = "sqlite:any.db",
    clock = true,
    durable = true,
    processes = true,
    old_place = true,
    malformed = true,
    skip = function(why)
        pending(why)
    end,
    program = function()
        return { "--uncounts", "sqlite:" .. folder:path "{}.db" }
    end,
}, function()
    local path = new_file()
    return {
        url = "sqlite:" .. path,
        malformed = function(rig, queue)
            assert(rig:publish(queue, "its body is lost"))
            database.rows(path, "UPDATE messages SET due_ms = 1 WHERE CAST(body AS TEXT) = 'its body is lost';"
                .. "DROP TRIGGER waiting_stay; UPDATE waiting SET body = NULL, large = 77")
        end,
        remove = function()
            remove(path)
        end,
    }
end)

describe("transport sqlite:", function()
    local path, rigs

    before_each(function()
        path, rigs = new_file(), {}
    end)

    after_each(function()
        for _, r in ipairs(rigs) do
            r:close()
        end
        remove(path)
    end)

    local function open(given)
        given.url = "sqlite:" .. path
        rigs[#rigs + 1] = testing.rig(given)
        return rigs[#rigs]
    end

    -- wait_for turns all engines until it is true: other engines' writes are found by looking, in
    -- real time. The limit is a watchdog.
    local function wait_for(clock, true_at_last)
        local watchdog = os.time() + 30
        while not true_at_last() do
            assert(os.time() < watchdog, "nothing happened for 30 s")
            clock:turn()
        end
    end

    it("hands out what another engine put into the file", function()
        local clock, seen = testing.clock(), {}
        open { clock = clock, consumers = { C = { queue = "q", handler = function(msg)
            seen[#seen + 1] = msg.id
        end } } }
        local sender = open { clock = clock }
        assert(sender:publish("q", "x", { id = "a" }))
        assert(sender:publish("q", "x", { id = "b" }))
        wait_for(clock, function()
            return #seen == 2
        end)
        assert.are.same({ "a", "b" }, seen)
    end)

    -- Each look asks for the queues that are read here, however many these are.
    for _, queues in ipairs { 3, 40 } do
        it(("hands out what another engine put into %d queues, and when it is due"):format(queues), function()
            local clock, seen, consumers = testing.clock(), {}, {}
            for number = 1, queues do
                consumers["C" .. number] = { queue = "q" .. number, handler = function(msg)
                    seen[#seen + 1] = msg.id
                end }
            end
            open { clock = clock, consumers = consumers }
            local sender = open { clock = clock }
            for number = 1, queues do
                assert(sender:publish("q" .. number, "x", { id = "now" }))
                assert(sender:publish("q" .. number, "x", { id = "later", delay = "1h" }))
            end
            wait_for(clock, function()
                return #seen == queues
            end)
            clock:advance "59m59s"
            assert.equal(queues, #seen)
            clock:advance "1s"
            wait_for(clock, function()
                return #seen == 2 * queues
            end)
            assert.same({ "now", "later" }, { seen[queues], seen[queues + 1] })
        end)
    end

    it("never hands one message to two engines", function()
        local clock, seen, by = testing.clock(), {}, { 0, 0 }
        local function consumer(which)
            return { C = { queue = "q", concurrency = 4, handler = function(msg)
                assert(not seen[msg.id], "handed out twice")
                seen[msg.id] = true
                by[which] = by[which] + 1
            end } }
        end
        local first = open { clock = clock, consumers = consumer(1) }
        open { clock = clock, consumers = consumer(2) }
        for number = 1, 500 do
            assert(first.engine:publish("orders", "q", "x", { id = "m" .. number }))
        end
        wait_for(clock, function()
            return by[1] + by[2] == 500
        end)
        for _, r in ipairs(rigs) do
            assert.are.same({}, r:events("decided"))
        end
        assert.are.equal(0, first:depth("q").ready + first:depth("q").claimed)
    end)

    it("keeps what was published and nobody reads", function()
        local first = open {}
        assert(first:publish("q", "x", { id = "a", headers = { h = "1" } }))
        first:close()
        table.remove(rigs)
        local seen = {}
        local second = open { consumers = { C = { queue = "q", handler = function(msg)
            seen[#seen + 1] = msg
        end } } }
        second:run_until_empty()
        assert.are.equal(1, #seen)
        assert.are.same({ "a", "x", { h = "1" }, 1 }, { seen[1].id, seen[1].body, seen[1].headers, seen[1].deliveries })
    end)

    it("says what is wrong with a file that it can't use", function()
        local file = assert(io.open(path, "w"))
        file:write(("no database\n"):rep(100))
        file:close()
        local policy = assert(mulligan.load_text "")
        local engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
        local opened, message, code = engine:transport("t", "sqlite:" .. path)
        assert.is_nil(opened)
        assert.are.equal("io", code)
        assert.is_truthy(message:find(path .. ": is no SQLite database", 1, true), message)
        engine:close()
        policy:close()
    end)

    it("takes a number of bytes in digits, and nothing else", function()
        local policy = assert(mulligan.load_text "")
        local engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
        for _, bytes in ipairs { "", "0", "-5", "+5", " 5", "5 ", "1x", "0x10", "5&a=b", "1234567890123456789" } do
            local opened, message, code = engine:transport("t", ("sqlite:%s?claimed=%s"):format(path, bytes))
            assert.same({ nil, "invalid" }, { opened, code }, bytes)
            assert.is_truthy(message:find("no option but claimed=BYTES, 1 or more", 1, true), message)
        end
        assert(engine:transport("t", ("sqlite:%s?claimed=0123456789"):format(path)))
        engine:close()
        policy:close()
    end)

    it("stops an engine whose file is deleted, and says why", function()
        local policy = assert(mulligan.load_text "")
        local engine = assert(mulligan.engine { policy = policy })
        assert(engine:transport("t", "sqlite:" .. path))
        local late
        assert(engine:publish("t", "q", "x", {}, function(well)
            assert(well)
            os.remove(path)
            assert(engine:publish("t", "q", "y", {}, function(...)
                late = table.pack(...)
            end))
        end))
        assert.is_true(engine:status())
        local well, message, code, problems = engine:run()
        assert.same({ nil, "io" }, { well, code })
        local why = ("transport 't': %s: was deleted or moved while it was in use;"):format(path)
        assert.equal(why, message:sub(1, #why))
        assert.same({ { text = message } }, problems)
        assert.same({ nil, "io" }, { late[1], late[3] })
        assert.same({ nil, "io" }, { engine:status(), (select(3, engine:status())) })
        assert.equal("io", (select(3, engine:publish("t", "q", "z"))))
        assert.is_true(engine:stopped())
        engine:close()
        policy:close()
    end)

    it("lets go at once of what is being settled when the file is deleted", function()
        local clock, seen = testing.clock(), 0
        local rig = open { clock = clock, consumers = { C = { queue = "q", handler = function()
            seen = seen + 1
            os.remove(path)
        end } } }
        assert(rig:publish("q", "x"))
        wait_for(clock, function()
            return rig.engine:stopped() -- and the clock has not moved
        end)
        assert.same({ 1, 0 }, { seen, rig:counts().done })
        assert.is_nil(table.concat(rig:log(), "\n"):find("trying again", 1, true))
    end)

    it("lets go at once of what waits to be settled again when the file is deleted", function()
        local clock, seen = testing.clock(), 0
        local rig = open { clock = clock, consumers = { C = { queue = "q", handler = function()
            seen = seen + 1
        end } } }
        rig:fault("settle", { times = 1 })
        assert(rig:publish("q", "x"))
        assert.equal(1, seen)
        os.remove(path)
        wait_for(clock, function()
            return rig.engine:stopped() -- and the clock has not moved
        end)
        assert.is_nil(rig.engine:status())
        assert.equal(0, rig:counts().done)
    end)
end)
