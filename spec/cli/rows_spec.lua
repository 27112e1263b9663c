-- Rows of a sqlite: file that mulligan didn't write: by hand, by another program, or by a recovery
-- that saved a part. Whatever is in them, `run --until-empty` ends, each message comes to an end or
-- is named as one that can't, and the exit code says which.

local database = require "support.database"
local process = require "support.process"
local testing = require "mulligan.testing"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("OrderHandler", {
    transport = "orders", queue = "q", concurrency = 8,
    handler = function(msg)
        local number = tonumber(msg.body) or #msg.body
        if number % 5 == 1 and msg.redeliveries == 0 then
            m.error { type = "Later", message = msg.key }
        elseif number % 5 == 2 and msg.attempt == 1 then
            m.error { type = "Again", message = msg.type }
        elseif number % 5 == 3 then
            m.error { type = "Dead" }
        elseif number % 5 == 4 then
            m.send("out", msg.body, { id = msg.id })
        end
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Later"):redeliver { "1ms" }
bus:on("Again"):retry(1, "1ms")
]]

local folder, path

local function send(messages)
    local bodies = {}
    for number = 1, messages do
        bodies[number] = number
    end
    local sent = folder:mulligan({ "send", "q", "--transport", "orders" }, {
        stdin = table.concat(bodies, "\n") .. "\n",
    })
    assert.same({ code = 0, out = "", err = "" }, sent)
end

local function run()
    return folder:mulligan { "run", "--until-empty" }
end

-- counted gives the summary's numbers: done, retried, redelivered, dead-lettered, discarded.
local function counted(out)
    local numbers = {}
    for number in out:gmatch("%d+") do
        numbers[#numbers + 1] = tonumber(number)
    end
    assert.equal(5, #numbers, out)
    return table.unpack(numbers)
end

local function left()
    return database.number(path, "SELECT count(*) FROM messages WHERE queue = 'q'")
end

-- told gives what a log says beside its lines of single messages.
local function told(err)
    local lines = {}
    for line in err:gmatch("[^\n]+") do
        if not line:find(", consumer OrderHandler: ", 1, true) then
            lines[#lines + 1] = line
        end
    end
    return table.concat(lines, "\n")
end

local function says(text, words)
    assert.is_truthy(text:find(words, 1, true), ("no '%s' in: %s"):format(words, text))
end

local function begin()
    folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = POLICY }
    path = folder:path("orders.db")
end

local function clean_up()
    folder:remove()
end

describe("a row of another hand", function()
    before_each(begin)
    after_each(clean_up)

    local WAITS = "UPDATE messages SET due_ms = 1 WHERE number = 2; "
    -- The file itself lets nobody rewrite a body.
    local LOSES_BODIES = "DROP TRIGGER waiting_stay; UPDATE waiting SET body = NULL, large = 77"

    for what, change in pairs {
        ["that is put before the others"] = WAITS,
        ["that was claimed"] = "UPDATE messages SET deliveries = 1 WHERE number = 2",
        ["with a number from the end of all"] = WAITS .. "UPDATE waiting SET number = 4611686018427387903",
        ["that came by another queue"] = "UPDATE messages SET queue = 'x' WHERE number = 2; "
            .. "UPDATE messages SET queue = 'q' WHERE number = 2",
        ["whose queue had another name"] = "UPDATE queues SET name = 'x'; UPDATE queues SET name = 'q'",
        ["without an id"] = "UPDATE messages SET id = NULL WHERE number = 2",
        ["whose owner is gone"] = WAITS .. "INSERT INTO owners VALUES (7, 1, 1); "
            .. "UPDATE waiting SET owner = 7, token = 7, deliveries = 1",
        ["whose owner has the highest number"] = WAITS .. "INSERT INTO owners VALUES (4611686018427387903, 1, 1); "
            .. "UPDATE waiting SET owner = 4611686018427387903, token = 7, deliveries = 1",
    } do
        it(what .. " comes to its end", function()
            send(5)
            database.rows(path, change)
            local ended = run()
            assert.same({ 0, 0 }, { ended.code, left() }, ended.err)
            local done, _, _, dead = counted(ended.out)
            assert.same({ 4, 1 }, { done, dead })
            assert.equal(0, database.number(path, "SELECT count(*) FROM messages WHERE deliveries <> 0"))
        end)
    end

    for what, change in pairs {
        ["with a body of no message"] = "INSERT INTO bodies VALUES (6, x'00'), (7, x'00'), (8, x'00')",
        ["with owners that are to come"] = "INSERT INTO owners VALUES (6, 1, 1), (7, 1, 1), (11, 1, 1), (12, 1, 1)",
        ["whose counter has run ahead"] = "UPDATE counter SET next = 4294967297",
    } do
        it("in a file " .. what .. " holds nothing up", function()
            send(5)
            database.rows(path, change)
            send(5)
            local ended = run()
            assert.same({ 0, 0 }, { ended.code, left() }, ended.err)
            assert.equal(8, (counted(ended.out)))
            assert.same({ { "4" }, { "4" } }, database.rows(path,
                "SELECT CAST(body AS TEXT) FROM messages WHERE queue = 'out'"))
        end)
    end

    it("with as many deliveries as there can be is one that was handed out too often", function()
        send(5)
        database.rows(path, "UPDATE messages SET deliveries = 1000000 WHERE number = 2")
        local ended = run()
        assert.same({ 0, 0 }, { ended.code, left() }, ended.err)
        assert.same({ { "HandlerCrashError", "max_deliveries" } }, database.rows(path,
            "SELECT error_type, reason FROM messages WHERE CAST(body AS TEXT) = '2'"))
        assert.equal(3, (counted(ended.out)))
    end)

    it("without its body becomes a dead letter that says so", function()
        send(5)
        database.rows(path, WAITS .. LOSES_BODIES)
        local ended = run()
        assert.same({ 0, 0 }, { ended.code, left() }, ended.err)
        local done, retried, _, dead = counted(ended.out)
        assert.same({ 3, 0, 2 }, { done, retried, dead })
        assert.same({ { "MessageDeserializationError", "unrecoverable",
            "the body is missing: the transport has lost it" } }, database.rows(path,
            "SELECT error_type, reason, headers ->> 'mulligan-error-message' FROM messages WHERE body IS NULL"))
        says(ended.err, "MessageDeserializationError: the body is missing: the transport has lost it")
    end)

    it("that died with its owner, and has no body, does so too", function()
        send(1)
        database.rows(path, "UPDATE messages SET deliveries = 3;" .. LOSES_BODIES)
        assert.equal(0, run().code)
        assert.same({ { "MessageDeserializationError" } }, database.rows(path, "SELECT error_type FROM messages"))
    end)

    it("that no time will come for is named, and the end isn't 0", function()
        send(5)
        database.rows(path, "UPDATE messages SET due_ms = 9223372036854775807 WHERE number IN (2, 5)")
        local ended = run()
        assert.same({ 1, 2 }, { ended.code, left() }, ended.err)
        says(ended.err, "queue 'q': 2 message(s) are due in more than 365 days, later than any policy can say; "
            .. "they wait until somebody sets their due_ms: number 2, 5\n")
        says(ended.err, "mulligan: ")
        says(ended.err, "2 message(s) in the queues that are read are due in more than 365 days, later than any "
            .. "policy can say; it isn't waited for them\n")
        assert.equal(2, (counted(ended.out)))
        assert.equal(1, select(2, ended.err:gsub("sets their due_ms", "")))
    end)
end)

-- ---- Any row -----------------------------------------------------------------------------------

local SEED = tonumber(os.getenv("MULL_SEED")) or os.time()
local FILES = tonumber(os.getenv("MULL_FILES")) or 1
local ROWS, MESSAGES = 300, 1000

local INTEGERS = { "0", "1", "-1", "2", "-2", "7", "1000", "-1000", "4294967296", "9007199254740993", "1000000000000",
    "4611686018427387903", "4611686018427387904", "9223372036854775806", "9223372036854775807",
    "-9223372036854775807", "-9223372036854775808" }

local TEXTS = { "''", "'q'", "'error'", "'out'", "' '", "CAST(x'00' AS TEXT)", "CAST(x'710071' AS TEXT)",
    "CAST(x'ff' AS TEXT)", "CAST(x'61c3' AS TEXT)", "CAST(x'eda080' AS TEXT)", "CAST(zeroblob(70) AS TEXT)",
    "'''; DROP TABLE messages; --'", "'%s%n%d'", "char(10, 13, 9, 27, 127)", "'東京'",
    "replace(hex(zeroblob(100000)), '00', 'ab')", "replace(hex(zeroblob(1000)), '00', '\"{[')" }

local HEADERS = { "'null'", "'[]'", "'[1]'", "'{\"a\":1}'", "'{\"a\":null}'", "'{\"a\":{\"b\":\"c\"}}'",
    "'{\"\":\"\"}'", "'{\"a\":\"1\",\"a\":\"2\"}'", "'{\"a\":\"\\u0000\"}'", "'{\"a\":\"\\ud800\"}'",
    "'{\"a\":\"b\"} '", "'{\"a\":\"b\"'",
    "'{\"a\":\"' || CAST(x'ff' AS TEXT) || '\"}'", "'{\"a\":\"b\"}' || char(0) || 'x'",
    "replace(hex(zeroblob(3000)), '00', '{\"a\":')",
    "'{\"a\":\"' || hex(zeroblob(200000)) || '\"}'",
    "(SELECT json_group_object('h' || value, 'v') FROM (WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL "
        .. "SELECT value + 1 FROM n WHERE value < 3000) SELECT value FROM n))",
    "'{\"mulligan-calls\":\"999999999999999\"}'", "'{\"mulligan-redeliveries\":\"-1\"}'",
    "'{\"mulligan-redeliveries\":\"999999999999999\"}'", "'{\"mulligan-first-failure\":\"0000-00-00T00:00:00.000Z\"}'",
    "'{\"mulligan-first-failure\":\"9999-12-31T23:59:59.999Z\"}'", "'{\"mulligan-queue\":\"q\"}'",
    "'{\"mulligan-queue\":\"other\",\"mulligan-counting\":\"q\"}'", "'{\"mulligan-id\":\"\"}'" }

local BODIES = { "x''", "x'00'", "zeroblob(100000)", "x'ff'", "CAST('3' AS BLOB)", "x'2d31'" }

-- What may be written by hand. Numbers and places in the line may not, nor what is kept of queues and ranges.
local TABLES = {
    messages = {
        queue = TEXTS, due_ms = INTEGERS, owner = INTEGERS, deliveries = INTEGERS, id = TEXTS, type = TEXTS,
        key = TEXTS, headers = HEADERS, dead_ms = INTEGERS, dead_from = TEXTS, consumer = TEXTS,
        error_type = TEXTS, reason = TEXTS, rule = TEXTS,
    },
    waiting = {
        queue = INTEGERS, due_ms = INTEGERS, owner = INTEGERS, token = INTEGERS, deliveries = INTEGERS, id = TEXTS,
        type = TEXTS, key = TEXTS, headers = HEADERS, published_ms = INTEGERS, body = BODIES, large = INTEGERS,
        dead_ms = INTEGERS, dead_from = TEXTS, consumer = TEXTS, error_type = TEXTS, reason = TEXTS, rule = TEXTS,
    },
    ready = { id = TEXTS, type = TEXTS, key = TEXTS, headers = HEADERS, published_ms = INTEGERS, body = BODIES,
        large = INTEGERS },
    bodies = { body = INTEGERS, bytes = BODIES },
    owners = { owner = INTEGERS, pid = INTEGERS, since_ms = INTEGERS },
    counter = { next = INTEGERS },
}
local KEYS = { messages = "number", waiting = "number", ready = "number", queues = "queue", bodies = "body",
    owners = "owner", counter = "one" }
local INSERTED = { "bodies", "owners", "counter" }
local DELETED = { "messages", "waiting", "ready", "bodies", "owners", "counter", "queues" }

local function sorted_keys(map)
    local keys = {}
    for key in pairs(map) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    return keys
end

-- statements gives `count` changes of rows, one a line. Those that no row can have fail, and change
-- nothing.
local function statements(random, count)
    local function value(kind)
        if random:chance(0.1) then
            return "NULL"
        elseif kind == INTEGERS and random:chance(0.4) then
            -- Any number of bits, and moments around now.
            local bits = (random(1 << 62) << 2) >> (random(64) - 1)
            return random:chance(0.7) and ("%d"):format(random:chance(0.3) and -bits or bits)
                or ("unixepoch() * 1000 + %d"):format(random(3000) - 2000)
        elseif kind ~= INTEGERS and kind ~= BODIES and random:chance(0.2) then
            return random:pick(TEXTS)
        end
        return random:pick(kind)
    end
    local function row(name)
        return ("%s = (SELECT %s FROM %s ORDER BY %s LIMIT 1 OFFSET %d)"):format(KEYS[name], KEYS[name], name,
            KEYS[name], (name == "counter" or name == "queues") and 0 or random(MESSAGES) - 1)
    end
    local function update(name, column)
        return ("UPDATE %s SET %s = %s WHERE %s;"):format(name, column, value(TABLES[name][column]), row(name))
    end
    local function insert(name)
        local columns, values = sorted_keys(TABLES[name]), {}
        for number, column in ipairs(columns) do
            values[number] = value(TABLES[name][column])
        end
        return ("INSERT INTO %s (%s) VALUES (%s);"):format(name, table.concat(columns, ", "),
            table.concat(values, ", "))
    end
    local lines, names, columns = {}, sorted_keys(TABLES), sorted_keys(TABLES.messages)
    while #lines < count do
        local kind = random(20)
        if kind == 1 then
            local name = random:pick(DELETED)
            lines[#lines + 1] = ("DELETE FROM %s WHERE %s;"):format(name, row(name))
        elseif kind == 2 then
            lines[#lines + 1] = insert(random:pick(INSERTED))
        elseif kind <= 8 then
            local name = random:pick(names)
            lines[#lines + 1] = update(name, random:pick(sorted_keys(TABLES[name])))
        else
            lines[#lines + 1] = update("messages", random:pick(columns))
        end
    end
    return lines
end

describe(("%d rows that may be anything, among %d messages"):format(ROWS, MESSAGES), function()
    before_each(begin)
    after_each(clean_up)

    for file = 1, FILES do
        local seed = SEED + file - 1
        it("keep none from its end without a word", function()
            print(("\nMULL_SEED=%d"):format(seed))
            send(MESSAGES)
            local sql = table.concat(statements(testing.random(seed), ROWS), "\n") .. "\n"
            folder:run({ "sqlite3", "-batch", path }, { stdin = sql })
            local before = left()
            assert.is_true(before > MESSAGES // 2)
            local bodiless = database.number(path, "SELECT count(*) FROM messages WHERE queue = 'q' AND body IS NULL")
            local ended = run()
            local after = database.rows(path, "SELECT number FROM messages WHERE queue = 'q'")
            assert.equal(#after == 0 and 0 or 1, ended.code, told(ended.err))
            local done, _, _, dead, discarded = counted(ended.out)
            assert.equal(before - #after, done + dead + discarded, told(ended.err))
            local named = ""
            for numbers in ended.err:gmatch("sets their due_ms: number ([^\n]*)") do
                named = named .. " " .. numbers .. ","
            end
            for _, row in ipairs(after) do
                says(named, " " .. row[1] .. ",")
            end
            assert.equal(bodiless, database.number(path, "SELECT count(*) FROM messages WHERE body IS NULL"
                .. " AND (queue = 'q' OR error_type = 'MessageDeserializationError')"))
            assert.equal(0, database.number(path, "SELECT count(*) FROM messages WHERE queue = 'q'"
                .. " AND (owner IS NOT NULL OR deliveries < 0)"))
            assert.same({ { "ok" } }, database.rows(path, "PRAGMA integrity_check"))
        end)
    end
end)
