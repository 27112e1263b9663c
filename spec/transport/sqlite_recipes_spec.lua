-- docs/transports/sqlite.md: each statement that it shows runs, does what is said above it, and leaves
-- the counts right.

local database = require "support.database"
local process = require "support.process"

-- statement_with gives the page's statement that has some words: a block of indented lines.
local function statement_with(words)
    local page = assert(io.open "docs/transports/sqlite.md"):read "a"
    for block in page:gmatch "\n\n(    [^\n]+.-)\n\n" do
        if block:find(words, 1, true) then
            return block
        end
    end
    error("no statement has " .. words)
end

describe("docs/transports/sqlite.md", function()
    local folder, path

    local function send(queue, ...)
        local sent = folder:mulligan({ "send", queue, "--transport", "orders", ... }, {
            stdin = "body of " .. queue .. "\n",
        })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function number(condition)
        return database.rows(path, "SELECT number FROM messages WHERE " .. condition)[1][1]
    end

    -- run runs a statement of the page, with the numbers of this file.
    local function run(words, placeholder, given)
        local sql = statement_with(words)
        return database.rows(path, placeholder and sql:gsub(placeholder, given) or sql)
    end

    local function depths()
        local rows = {}
        for _, row in ipairs(database.rows(path, "SELECT queue, ready, claimed, delayed FROM depths ORDER BY queue")) do
            rows[#rows + 1] = table.concat(row, " ")
        end
        return table.concat(rows, ", ")
    end

    before_each(function()
        folder = process.folder { ["service.lua"] = [[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("orders", "sqlite:orders.db")
            m.consumer("C", { transport = "orders", queue = "bad", handler = function()
                m.error { type = "Odd", message = "why" }
            end })
        ]], ["policy.lua"] = 'require("mulligan.policy").bus():default():dead_letter()' }
        path = folder:path("orders.db")
        send("bad")
        send("orders", "--delay", "1h")
        send("orders")
        assert.equal(0, folder:mulligan({ "run", "--until-empty" }).code)
        assert.equal("bad 0 0 0, error 1 0 0, orders 1 0 1", depths())
    end)

    after_each(function()
        folder:remove()
    end)

    it("says what is where", function()
        assert.same({ { "bad", "0", "0", "0" }, { "orders", "1", "0", "1" }, { "error", "1", "0", "0" } },
            run "FROM depths")
    end)

    it("says why the last ten died, and what dies most", function()
        local row = run "headers ->> 'mulligan-error-message'"[1]
        assert.same({ number "queue = 'error'", "bad", "Odd", "rule", "policy.lua:1", "why" },
            { row[1], table.unpack(row, 3) })
        assert.same({ { "bad", "C", "Odd", "rule", "policy.lua:1", "1" } }, run "FROM dead_letters")
    end)

    it("shows a body", function()
        assert.same({ { "body of bad" } }, run("CAST(body AS TEXT)", "17", number "queue = 'error'"))
    end)

    it("puts a dead letter back", function()
        run("SET queue = dead_from", "17", number "queue = 'error'")
        assert.equal("bad 1 0 0, error 0 0 0, orders 1 0 1", depths())
        assert.equal("done 0, retried 0, redelivered 0, dead-lettered 1, discarded 0\n",
            folder:mulligan({ "run", "--until-empty" }).out)
        assert.equal("bad 0 0 0, error 1 0 0, orders 1 0 1", depths())
    end)

    it("has what was put off come at once", function()
        run "SET due_ms = 0 WHERE queue"
        assert.equal("bad 0 0 0, error 1 0 0, orders 2 0 0", depths())
    end)

    it("loses nothing by an UPDATE OR REPLACE", function()
        database.rows(path, "UPDATE OR REPLACE messages SET due_ms = 5 WHERE number = " .. number "due_ms > 0")
        assert.equal("bad 0 0 0, error 1 0 0, orders 2 0 0", depths())
        assert.equal(3, database.number(path, "SELECT count(*) FROM messages"))
    end)

    it("takes a claim away", function()
        database.rows(path, "INSERT INTO owners VALUES (100, 1, 1);"
            .. "INSERT INTO ranges SELECT queue, 1, 3, 100 FROM queues WHERE name = 'orders';"
            .. "UPDATE queues SET head = 3, ready = 0 WHERE name = 'orders'")
        assert.equal("bad 0 0 0, error 1 0 0, orders 0 1 1", depths())
        local claimed = number "owner = 100"
        assert.is_false(pcall(database.rows, path, "UPDATE messages SET due_ms = 5 WHERE number = " .. claimed))
        run("SET owner = NULL", "18", claimed)
        assert.equal("bad 0 0 0, error 1 0 0, orders 1 0 1", depths())
        assert.equal("1", database.rows(path, "SELECT deliveries FROM messages WHERE number = " .. claimed)[1][1])
    end)

    it("deletes a message, wherever it is", function()
        for _, condition in ipairs { "queue = 'error'", "due_ms > 0", "queue = 'orders'" } do
            run("DELETE FROM messages", "19", number(condition))
        end
        assert.equal("bad 0 0 0, error 0 0 0, orders 0 0 0", depths())
        assert.equal(0, database.number(path, "SELECT count(*) FROM messages"))
    end)
end)
