-- mulligan send: what it puts where, and what it refuses.
local database = require "support.database"
local process = require "support.process"
local queues = require "support.queues"

describe("mulligan send", function()
    local folder, url

    before_each(function()
        folder = process.folder()
        url = "sqlite:" .. folder:path("q.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(words, given)
        return folder:mulligan({ "send", table.unpack(words) }, given)
    end

    local function bodies(queue)
        local list = {}
        for number, msg in ipairs(queues.take(url, queue or "work")) do
            list[number] = msg.body
        end
        return list
    end

    local WELL = { code = 0, out = "", err = "" }

    it("puts each line of stdin on the queue, byte for byte", function()
        assert.same(WELL, send({ "work", "--transport", url }, { stdin = "one\n\ntwo\0\xFF\r\nlast without newline" }))
        assert.same({ "one", "", "two\0\xFF\r", "last without newline" }, bodies())
    end)

    it("puts each file on the queue", function()
        folder:write("a", "two\nlines\n")
        folder:write("b", "")
        assert.same(WELL, send { "work", "--transport=" .. url, "a", "--", "b" })
        assert.same({ "two\nlines\n", "" }, bodies())
    end)

    it("sends nothing for no input", function()
        assert.same(WELL, send { "work", "--transport", url })
        assert.same({}, bodies())
    end)

    it("gives them id, type, key, headers", function()
        assert.same(WELL, send({
            "work", "--transport", url, "--id", "m-1", "--type", "Order", "--key", "42", "--header", "a=b",
            "--header", "c=d=e", "--header", "empty=",
        }, { stdin = "x\n" }))
        local msg = queues.take(url, "work")[1]
        assert.same({ "m-1", "Order", "42" }, { msg.id, msg.type, msg.key })
        assert.same({ a = "b", c = "d=e", empty = "" }, msg.headers)
    end)

    it("delays them", function()
        assert.same(WELL, send({ "work", "--transport", url, "--delay", "1h" }, { stdin = "x\n" }))
        assert.equal(1, queues.depth(url, "work").delayed)
    end)

    it("takes a delay of 0", function()
        assert.same(WELL, send({ "work", "--transport", url, "--delay", "0" }, { stdin = "x\n" }))
        assert.equal(1, queues.depth(url, "work").ready)
    end)

    it("ends with an error where a callback raises, and says what is safe", function()
        folder:write("service.lua", [[
            require("mulligan").transport("orders", "sqlite:q.db")
            local methods, calls = require("mulligan.core").engine_methods, 0
            local publish = methods.publish
            function methods.publish(...)
                calls = calls + 1
                if calls == 2 then
                    error("out of luck", 0)
                end
                return publish(...)
            end]])
        local sent = send({ "work", "--transport", "orders" }, { stdin = "one\ntwo\nthree\n" })
        assert.same({ 1, "" }, { sent.code, sent.out })
        assert.is_truthy(sent.err:find("^mulligan: send: out of luck\nmulligan: send: [01] messages? %l+ safe\n$"),
            sent.err)
        assert.equal(1, queues.depth(url, "work").ready)
    end)

    -- The answer comes when the input's end has been read.
    for _, input in ipairs { "one\n", "one\ntwo\nthree\n" } do
        it(("says so where the database refuses %q"):format(input), function()
            assert.same(WELL, send({ "work", "--transport", url }, { stdin = "before\n" }))
            database.rows(folder:path("q.db"), [[
                CREATE TRIGGER refuse BEFORE INSERT ON ready BEGIN SELECT RAISE(ABORT, 'no room'); END]])
            local sent = send({ "work", "--transport", url }, { stdin = input })
            assert.same({ 1, "" }, { sent.code, sent.out })
            assert.is_truthy(
                sent.err:find("^mulligan: send: [^\n]*no room[^\n]*\nmulligan: send: 0 messages are safe\n$"), sent.err)
            assert.equal(1, queues.depth(url, "work").ready)
        end)
    end

    it("finds a transport by its name in service.lua, and in the environment", function()
        folder:write("service.lua", 'require("mulligan").transport("orders", "sqlite:q.db")')
        assert.same(WELL, send({ "work", "--transport", "orders" }, { stdin = "by name\n" }))
        assert.same(WELL, send({ "work", "--transport", "env:WHERE" }, {
            stdin = "by environment\n",
            env = { WHERE = url },
        }))
        assert.same({ "by name", "by environment" }, bodies())
    end)

    -- A job that reads from a pipe which stays open, and what writes into it.
    local function start_on_pipe(given)
        assert(os.execute("mkfifo " .. folder:path("pipe")))
        local job = folder:start({
            "sh", "-c", 'exec "$1" send work --transport "$2" <pipe', "sh", process.mulligan, url,
        }, given)
        local pipe = assert(io.open(folder:path("pipe"), "w"))
        pipe:setvbuf("no")
        return job, pipe
    end

    local function await_ready(count)
        process.await(count .. " messages", function()
            return queues.depth(url, "work").ready == count
        end)
    end

    it("sends much, in little memory", function()
        -- Without a sanitizer's delayed frees, which are no memory of ours.
        local job, pipe = start_on_pipe { env = { ASAN_OPTIONS = "quarantine_size_mb=1" } }
        local pid
        local function peak_kb()
            return tonumber(process.read("/proc/" .. pid .. "/status"):match("VmHWM:%s*(%d+)"))
        end
        local line = ("x"):rep(3000) .. "\n"
        for _ = 1, 5000 do
            pipe:write(line)
        end
        await_ready(5000)
        pid = job.pid()
        local before = peak_kb()
        for _ = 1, 15000 do
            pipe:write(line)
        end
        await_ready(20000)
        -- Of 44 MB more; a sanitizer makes several of each byte.
        assert.is_true(peak_kb() - before < 32 * 1024, peak_kb() - before)
        pipe:close()
        assert.equal(0, job.wait(), job.err())
    end)

    it("hands over a line before it waits for the next", function()
        local job, pipe = start_on_pipe()
        pipe:write("first\n")
        await_ready(1)
        pipe:write("sec")
        pipe:write("ond\n")
        await_ready(2)
        pipe:write("third")
        pipe:close()
        assert.equal(0, job.wait(), job.err())
        assert.same({ "first", "second", "third" }, bodies())
    end)

    it("leaves out what is larger than 16 MiB, and says so", function()
        local large = ("x"):rep(16 * 1024 * 1024)
        local sent = send({ "work", "--transport", url }, { stdin = "a\n" .. large .. "y\n" .. large .. "\nb\n" })
        assert.same({
            code = 1,
            out = "",
            err = "mulligan: stdin:2: larger than 16 MiB, and not sent\nmulligan: send: 3 messages are safe\n",
        }, sent)
        assert.same({ "a", large, "b" }, bodies())
        folder:write("large", large .. "y")
        assert.same({ 1, "mulligan: large: larger than 16 MiB, and not sent\nmulligan: send: 0 messages are safe\n" },
            { send({ "work", "--transport", url, "large" }).code, send({ "work", "--transport", url, "large" }).err })
    end)

    for name, case in pairs {
        ["no transport"] = { { "work" }, "--transport is missing" },
        ["memory:"] = { { "work", "--transport", "memory:" }, "lives in one process" },
        ["a scheme it doesn't know"] = { { "work", "--transport", "pigeon://me:secret@coop" }, "pigeon://***@coop" },
        ["a name without a service.lua"] = {
            { "work", "--transport", "orders" },
            "service.lua: can't be read: No such file or directory; run send in the folder of one, "
                .. "or give --transport a URL",
        },
        ["a variable that isn't set"] = { { "work", "--transport", "env:NOT_SET_AT_ALL" }, "holds no URL" },
        ["a header without a value"] = { { "work", "--transport", "sqlite:q.db", "--header", "x" }, "NAME=VALUE" },
        ["a delay that is none"] = { { "work", "--transport", "sqlite:q.db", "--delay", "5" }, '"5ms"' },
        ["an id for two messages"] = { { "work", "--transport", "sqlite:q.db", "--id", "x" }, "one message" },
        ["a queue without a name"] = { { "", "--transport", "sqlite:q.db" }, "a word is empty; usage:" },
        ["a queue that is no UTF-8"] = { { "\xFF", "--transport", "sqlite:q.db" }, 'QUEUE must be UTF-8, which "?"' },
        ["a file without a name"] = { { "work", "--transport", "sqlite:q.db", "" }, "a word is empty; usage:" },
        ["a transport without a name"] = { { "work", "--transport", "" }, "--transport must not be empty" },
        ["an empty id"] = { { "work", "--transport", "sqlite:q.db", "--id", "" }, "--id must not be empty" },
        ["an empty type"] = { { "work", "--transport", "sqlite:q.db", "--type=" }, "--type must not be empty" },
        ["an empty key"] = { { "work", "--transport", "sqlite:q.db", "--key", "" }, "--key must not be empty" },
        ["a header's value that is no UTF-8"] = {
            { "work", "--transport", "sqlite:q.db", "--header", "a=\xFF" }, '--header must be UTF-8, which "a=?"',
        },
        ["a header's name that is no UTF-8"] = {
            { "work", "--transport", "sqlite:q.db", "--header", "\xFF=a" }, '--header must be UTF-8, which "?=a"',
        },
        ["a header of the program's own"] = {
            { "work", "--transport", "sqlite:q.db", "--header", "mulligan-calls=1" },
            '--header mulligan-calls: names that begin with "mulligan-" are the program\'s own',
        },
        ["a header twice"] = {
            { "work", "--transport", "sqlite:q.db", "--header", "a=1", "--header", "b=2", "--header", "a=2" },
            '--header "a" is given twice',
        },
        ["a delay without a unit"] = {
            { "work", "--transport", "sqlite:q.db", "--delay", "30" }, '--delay "30" is no span of time',
        },
        ["a delay that is too long"] = {
            { "work", "--transport", "sqlite:q.db", "--delay", "366d" }, '--delay "366d" is longer than 365 days',
        },
        ["a scheme of a later version"] = {
            { "work", "--transport", "nats://u:secret@h" },
            "transport 'nats://***@h': 'nats:' is not in this version yet",
        },
        ["an option that a module doesn't know"] = {
            { "work", "--transport", "amqp://u:secret@h?foo=1" },
            "transport 'amqp://***@h?foo=1': foo is no option; there are queue_type, declare,",
        },
        ["a password with an @"] = { { "work", "--transport", "redis://:secret@1@h" }, "'redis://***@h': 'redis:'" },
        ["a password with a /"] = { { "work", "--transport", "redis://:p/secret@h" }, "'redis://***@h': 'redis:'" },
        ["a path with a password"] = {
            { "work", "--transport", "sqlite://u:secret@h/x.db" }, "'sqlite://***@h/x.db': //***@h/x.db: its folder",
        },
        ["a memory: with a password"] = { { "work", "--transport", "memory://u:secret@h" }, "lives in one process" },
        ["a scheme with a slip"] = { { "work", "--transport", "nats//u:secret@h" }, "service.lua" },
        ["a scheme without slashes"] = {
            { "work", "--transport", "amqp:guest:secret@h" }, "transport 'amqp:***@h': a URL begins with its scheme",
        },
        ["a scheme with one slash"] = {
            { "work", "--transport", "amqp:/guest:secret@h" }, "transport 'amqp:/***@h': a URL begins with its scheme",
        },
        ["a scheme with a slip and one slash"] = {
            { "work", "--transport", "apmq:/guest:secret@h" }, "transport 'apmq:/***@h': there is no 'apmq:'",
        },
        ["a URL without its scheme"] = {
            { "work", "--transport", "guest:se/cret:secret@h:5672" },
            "transport 'guest:***@h:5672': there is no 'guest:'",
        },
        ["a URL for the name of a variable"] = {
            { "work", "--transport", "env:guest:secret@h" }, "the variable guest:***@h holds no URL",
        },
        ["a URL for a file"] = {
            { "work", "--transport", "sqlite:q.db", "amqp:guest:secret@h" }, "send: amqp:***@h: No such file",
        },
        ["a database with an @ that can't be"] = {
            { "work", "--transport", "sqlite:no:such@folder/q.db" }, "transport 'sqlite:no:such@folder/q.db': ",
        },
        ["an id that is no UTF-8"] = { { "work", "--transport", "sqlite:q.db", "--id", "\xFF" }, "--id must be UTF-8" },
        ["a file that isn't there"] = { { "work", "--transport", "sqlite:q.db", "nope" }, "nope" },
        ["a database that can't be"] = { { "work", "--transport", "sqlite:no/such/folder/q.db" }, "no/such/folder" },
        ["an option twice"] = { { "work", "--transport", "sqlite:q.db", "--id", "x", "--id", "y" }, "given twice" },
        ["an option without its value"] = { { "work", "--transport" }, "needs a value" },
        ["a word that is no option"] = { { "work", "--trasnport", "x" }, "did you mean --transport?" },
        ["no queue"] = { {}, "usage: mulligan send QUEUE" },
    } do
        it("refuses " .. name, function()
            local sent = send(case[1], { stdin = "one\ntwo\n" })
            assert.same({ 2, "" }, { sent.code, sent.out })
            assert.is_truthy(sent.err:find("^mulligan: [^\n]*\n$"), sent.err)
            assert.is_truthy(sent.err:find(case[2], 1, true), sent.err)
            assert.is_nil(sent.err:find("secret", 1, true))
        end)
    end

    it("shows no credentials of what is no transport", function()
        folder:write("service.lua", "")
        for _, transport in ipairs { "nats//u:secret@h", "am_qp://u:secret@h" } do
            local sent = send { "work", "--transport", transport }
            assert.equal(2, sent.code)
            assert.equal(('mulligan: service.lua: there is no transport "%s"\n'):format(
                (transport:gsub("u:secret", "***"))), sent.err)
        end
    end)

    it("names the transport that was probably meant", function()
        folder:write("service.lua", 'require("mulligan").transport("orders", "sqlite:q.db")')
        assert.equal('mulligan: service.lua: there is no transport "ordres"; did you mean "orders"?\n',
            send({ "work", "--transport", "ordres" }, { stdin = "x\n" }).err)
    end)

    it("sends nothing where the id would be given twice, or a file is missing", function()
        folder:write("a", "x")
        assert.equal(2, send({ "work", "--transport", url, "--id", "x" }, { stdin = "one\ntwo\n" }).code)
        assert.equal(2, send({ "work", "--transport", url, "a", "nope" }).code)
        assert.same({}, bodies())
    end)
end)
