-- amqp: and amqps: where something is wrong: one clear line each, no secret in it, and what is mended meanwhile works.
-- On the real server, with certificates of the test's own.
local certificates = require "support.certificates"
local mulligan = require "mulligan"
local process = require "support.process"
local rabbitmq = require "support.rabbitmq"

local missing = rabbitmq.missing() or certificates.missing()
if missing then
    describe("amqp: in trouble", function()
        it("says what is wrong", function()
            pending(missing)
        end)
    end)
    return
end

local SECRET = "hunter2"
local WATCHDOG = "40s"

-- A server that isn't RabbitMQ: it says `greeting`, or nothing, and waits.
local OTHER = [[
import socket, sys
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
kept = []
while True:
    client, _ = server.accept()
    client.sendall(sys.argv[1].encode())
    kept.append(client)
]]

local folder, server

setup(function()
    folder = process.folder { ["other.py"] = OTHER }
    for _, name in ipairs { "authority", "stranger" } do
        certificates.authority(folder, name)
    end
    certificates.leaf(folder, "server", "authority", "subjectAltName=DNS:localhost,IP:127.0.0.1")
    certificates.leaf(folder, "worker", "authority")
    certificates.leaf(folder, "intruder", "stranger")
    server = assert(rabbitmq.start {
        plugins = "rabbitmq_auth_mechanism_ssl",
        tls = { cacertfile = folder:path "authority.pem", certfile = folder:path "server.pem",
            keyfile = folder:path "server.key", verify = "verify_peer", fail_if_no_peer_cert = "true" },
        config = "auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = EXTERNAL\nssl_cert_login_from = common_name",
    })
end)

teardown(function()
    if server then
        server:remove()
    end
    folder:remove()
end)

-- ---- An engine in this process -----------------------------------------------------------------


local RULES = [[
local bus = require("mulligan.policy").bus()
bus:on("Later"):redeliver { "300ms" }
local letters = { error = "lost", careless = "short", brittle = "fleeting letters", locked = "locked letters",
    meek = "kept letters" }
for consumer, queue in pairs(letters) do
    require("mulligan.policy").consumer("Reader of " .. consumer):dead_letter_queue(queue)
end
]]

-- run runs an engine at `url` until given.done(seen) holds, and gives what it saw: `log`, as lines "level text";
-- `snapshot`, before it stopped; `calls`, by queue; `action`, the last one that was carried out. given.queues: queues
-- that are read, by given.handler(message, seen), with given.prefetch. given.up(engine, seen) is called when its
-- transport is up.
local function run(url, given)
    local seen, engine = { log = {}, calls = {}, problems = {} }, nil
    local policy <close> = assert(mulligan.load_text(RULES))
    engine = assert(mulligan.engine {
        policy = policy,
        log = function(level, text)
            seen.log[#seen.log + 1] = level .. " " .. text
        end,
        event = function(event)
            seen.action = event.name == "decided" and event.verdict.action or seen.action
            if event.name == "transport_up" and given.up then
                engine:after("1ms", function()
                    given.up(engine, seen)
                end)
            end
        end,
    })
    local _ <close> = engine
    assert(engine:transport("orders", url))
    for _, queue in ipairs(given.queues or { "work" }) do
        local function handler(message)
            seen.calls[queue] = (seen.calls[queue] or 0) + 1
            if given.handler then
                given.handler(message, seen)
            end
        end
        assert(engine:consumer("Reader of " .. queue, { transport = "orders", queue = queue, handler = handler,
            prefetch = given.prefetch }))
    end
    local function look()
        local stops, done = pcall(given.done, seen)
        if not stops or done then
            seen.failed = not stops and done
            seen.snapshot = engine:snapshot()
            engine:stop()
        else
            engine:after("5ms", look)
        end
    end
    look()
    engine:after(WATCHDOG, function()
        seen.failed = "waited for " .. WATCHDOG
        engine:stop()
    end)
    assert(engine:run())
    assert(not seen.failed, tostring(seen.failed) .. "\n" .. table.concat(seen.log, "\n"))
    return seen
end

local function said(seen, words)
    for _, line in ipairs(seen.log) do
        if line:find(words, 1, true) then
            return line
        end
    end
    return nil
end

-- told runs an engine until its log has `words`, and gives that line.
local function told(url, words, given)
    given = given or {}
    given.done = function(seen)
        return said(seen, words)
    end
    local seen = run(url, given)
    for _, text in ipairs { table.concat(seen.log, "\n"), tostring(seen.snapshot.transports[1].why),
        tostring(seen.snapshot.consumers[1].why_not_text) } do
        assert.is_nil(text:find(SECRET, 1, true), text)
    end
    return said(seen, words), seen
end

-- declare has the server make a queue, with these arguments, and put puts a message there, with these properties, as
-- Erlang has them.
local function declare(queue, durable, arguments, owner)
    server:ctl { "eval", ('rabbit_amqqueue:declare(rabbit_misc:r(<<"/">>, queue, <<"%s">>), %s, false, [%s], %s, '
        .. '<<"spec">>), ok.'):format(queue, durable, arguments, owner or "none") }
end

local function put(queue, properties)
    server:ctl { "eval", ('rabbit_basic:publish(rabbit_misc:r(<<"/">>, exchange, <<"">>), <<"%s">>, %s, '
        .. '<<"from outside">>).'):format(queue, properties) }
end

-- other starts a server that isn't RabbitMQ, and gives its port.
local function other(greeting)
    local job, port = folder:start({ "python3", "other.py", greeting }), nil
    process.await("another server", function()
        port = tonumber(job.out():match "^(%d+)\n")
        return port
    end)
    return port
end

-- down is a line of the log.
local function down(host, port, why)
    return ("error transport orders is down: %s:%d: %s"):format(host, port, why)
end

local function plain(login, more)
    return ("amqp://%s@127.0.0.1:%d%s"):format(login, server.port, more or "")
end

-- with_tls gives a URL of the TLS port; `words` are options, of which PEM files are named without folder and ending.
local function with_tls(host, words, login)
    local options = {}
    for name, value in pairs(words) do
        local is_file = name == "ca" or name == "cert" or name == "key"
        local ending = name == "key" and ".key" or ".pem"
        options[#options + 1] = name .. "=" .. (is_file and folder:path(value .. ending) or value)
    end
    table.sort(options)
    return ("amqps://%s%s:%d?%s"):format(login or "guest:guest@", host, server.tls_port, table.concat(options, "&"))
end

local WORKER = { ca = "authority", cert = "worker", key = "worker" }

local function worker(more)
    local words = { ca = "authority", cert = "worker", key = "worker" }
    for name, value in pairs(more) do
        words[name] = value
    end
    return words
end

-- ---- Connections that can't be -----------------------------------------------------------------

describe("amqp: in trouble", function()
    it("says that a login is refused, and tries again until it isn't", function()
        local url, has_user = plain("clerk:" .. SECRET), false
        local seen = run(url, {
            done = function(seen)
                if not has_user and said(seen, "is down") then
                    has_user = true
                    server:ctl { "add_user", "clerk", SECRET }
                    server:ctl { "set_permissions", "clerk", ".*", ".*", ".*" }
                end
                return said(seen, "transport orders is up")
            end,
        })
        assert.equal(down("127.0.0.1", server.port, "the login of user 'clerk' is refused (403); look at user and "
            .. "password"), said(seen, "is down"))
        assert.is_nil(table.concat(seen.log, "\n"):find(SECRET, 1, true))
        server:ctl { "delete_user", "clerk" }
    end)

    it("says which virtual host isn't there", function()
        local line = told(plain("guest:guest", "/nowhere"), "transport orders is down: ")
        assert.equal(down("127.0.0.1", server.port, "the virtual host 'nowhere' is refused to user 'guest' (530): "
            .. "NOT_ALLOWED - vhost nowhere not found; it must be there, and the user needs permissions in it"), line)
    end)

    it("says which virtual host has too many connections", function()
        server:ctl { "add_vhost", "narrow" }
        server:ctl { "set_permissions", "-p", "narrow", "guest", ".*", ".*", ".*" }
        server:ctl { "set_vhost_limits", "-p", "narrow", '{"max-connections": 0}' }
        local line = told(plain("guest:guest", "/narrow"), "transport orders is down: ")
        assert.truthy(line:find("connection limit (0) is reached", 1, true), line)
        server:ctl { "delete_vhost", "narrow" }
    end)

    it("says which name can't be looked up", function()
        local line = told("amqp://guest:" .. SECRET .. "@no-such-host.invalid", "transport orders is down: ")
        assert.truthy(line:find("error transport orders is down: no-such-host.invalid:5672: its name can't be "
            .. "looked up: ",
            1, true), line)
    end)

    it("says which port is closed", function()
        local port = rabbitmq.free_port()
        local line = told(("amqp://guest:%s@127.0.0.1:%d"):format(SECRET, port), "transport orders is down: ")
        assert.equal(down("127.0.0.1", port, "connection refused"), line)
    end)

    it("says how another server's answer begins", function()
        local port = other "SSH-2.0-OpenSSH_9.2\r\n"
        local line = told(("amqp://guest:%s@127.0.0.1:%d"):format(SECRET, port), "transport orders is down: ")
        assert.equal(down("127.0.0.1", port, 'the server speaks no AMQP 0-9-1 (its answer begins with '
            .. '"SSH-2.0-OpenSSH_9.2??"); look at host and port, and whether it wants TLS (amqps:)'), line)
    end)

    it("says that a server doesn't answer", function()
        local port = other ""
        local line = told(("amqp://guest:%s@127.0.0.1:%d?connect_timeout=300ms"):format(SECRET, port),
            "transport orders is down: ")
        assert.equal(down("127.0.0.1", port, "the server doesn't answer; does it still start, or hang, or speak "
            .. "something else than AMQP?"), line)
    end)

    it("refuses at once what no server can mend, with exit code 2 and one line", function()
        folder:write("policy.lua", RULES)
        folder:write("service.lua", [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", os.getenv "URL")
m.consumer("Reader", { transport = "orders", queue = "work", handler = function() end })
]])
        local why = {
            [plain("guest:" .. SECRET, "?hartbeat=5s")] = "hartbeat is no option; there are queue_type, declare, "
                .. "claim_timeout, heartbeat, connect_timeout, name, login, ca, cert, key, server_name and verify",
            ["amqp://guest:" .. SECRET .. "/1@127.0.0.1"] = "there is an '@' behind the hosts; in user and "
                .. "password '/', '?' "
                .. "and '#' are written %2F, %3F and %23, and elsewhere an '@' is written %40",
            ["amqp://guest:" .. SECRET] = "the port of the host 'guest' isn't a number from 1 to 65535",
            ["amqps://guest:" .. SECRET .. "@localhost?ca=/no/such/file"] = "the CA file '/no/such/file' can't "
                .. "be read: No "
                .. "such file or directory",
            [with_tls("localhost", { cert = "worker", key = "server" }, "guest:" .. SECRET .. "@")] =
                ("the key file '%s' doesn't fit the certificate file '%s'"):format(folder:path "server.key",
                    folder:path "worker.pem"),
        }
        for url, words in pairs(why) do
            local done = folder:mulligan({ "run", "service.lua" }, { env = { URL = url } })
            local err = "mulligan: service.lua:3: transport 'orders': " .. words .. "\n"
            assert.same({ code = 2, out = "", err = err }, done)
        end
    end)

    it("has `send` say why a message is refused", function()
        server:ctl { "add_user", "writer", SECRET }
        server:ctl { "set_permissions", "writer", ".*", "^$", ".*" }
        declare("there", true, "")
        for _, case in ipairs {
            { "guest:guest", "?declare=no", { "nowhere" }, "there is no queue 'nowhere'" },
            { "guest:guest", "?declare=no", { "there", "--delay", "1s" }, "it can't be delayed" },
            { "guest:guest", "", { "there", "--header", "CC=x" }, "CC" },
            { "guest:guest", "", { ("q"):rep(256) }, "255 bytes" },
            { "guest:guest", "", { "amq.direct" }, "amq.direct" },
            { "writer:" .. SECRET, "", { "there" }, "amq.default" },
        } do
            local sent = folder:mulligan({ "send", "--transport", plain(case[1], case[2]), table.unpack(case[3]) },
                { stdin = "one\n" })
            assert.equal(1, sent.code)
            assert.truthy(sent.err:find(case[4], 1, true), sent.err)
            assert.truthy(sent.err:find("^mulligan: [^\n]*\nmulligan: send: 0 messages are safe\n$"), sent.err)
            assert.is_nil(sent.err:find(SECRET, 1, true))
        end
    end)

    it("finds the files of TLS from the folder of service.lua", function()
        local sub = "a folder & more"
        assert(os.execute(("mkdir '%s'"):format(folder:path(sub))))
        folder:write(sub .. "/policy.lua", RULES)
        folder:write(sub .. "/service.lua", [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", os.getenv "URL")
m.consumer("Reader", { transport = "orders", queue = "work", handler = function() end })
]])
        for options, words in pairs {
            ["ca=no%20ca.pem"] = "the CA file 'a folder & more/no ca.pem' can't be read",
            ["name=x&cert=no.pem&key=k"] = "the certificate file 'a folder & more/no.pem' can't be read",
            ["ca=%2Fno/ca.pem"] = "the CA file '/no/ca.pem' can't be read",
            ["ca=/no/ca.pem"] = "the CA file '/no/ca.pem' can't be read",
        } do
            local done = folder:mulligan({ "run", sub .. "/service.lua" },
                { env = { URL = ("amqps://guest:%s@localhost?%s"):format(SECRET, options) } })
            assert.equal(2, done.code)
            assert.truthy(done.err:find(words, 1, true), done.err)
        end
    end)

    -- ---- Queues that are there -----------------------------------------------------------------

    it("says that a queue is of another type, and reads it once it isn't", function()
        declare("typed", true, "")
        local is_deleted = false
        local seen = run(plain("guest:guest", "?queue_type=quorum"), {
            queues = { "typed", "sound" },
            up = function(engine)
                engine:publish("orders", "sound", "this one is read meanwhile")
            end,
            done = function(seen)
                if not is_deleted and seen.calls.sound and said(seen, "queue 'typed'") then
                    is_deleted = true
                    server:ctl { "delete_queue", "typed" }
                    declare("typed", true, '{<<"x-queue-type">>, longstr, <<"quorum">>}')
                    put("typed", "[]")
                end
                return seen.calls.typed
            end,
        })
        assert.truthy(said(seen, "it is there already, and it is a classic queue, but the URL says "
            .. "queue_type=quorum; use "
            .. "another, or take it as it is by declare=no"), table.concat(seen.log, "\n"))
    end)

    it("says that a queue isn't durable, and that a stream can't be read", function()
        declare("fleeting", false, "")
        declare("river", true, '{<<"x-queue-type">>, longstr, <<"stream">>}')
        assert.truthy(told(plain "guest:guest", "it isn't durable, so its messages are gone after a restart",
            { queues = { "fleeting" } }))
        assert.truthy(told(plain "guest:guest", "it is a stream, from which no message can be taken",
            { queues = { "river" } }))
    end)

    -- failing gives a consumer's queue one message, whose handler fails.
    local function failing(queue)
        return {
            queues = { queue },
            up = function(engine)
                engine:publish("orders", queue, "it fails")
            end,
            handler = function()
                error { type = "Broken" }
            end,
        }
    end

    it("warns of a dead-letter queue that drops messages, and puts them there", function()
        declare("short", true, '{<<"x-queue-type">>, longstr, <<"quorum">>}, {<<"x-max-length">>, long, 1}')
        told(plain "guest:guest", "the queue 'short' has x-max-length 1: the broker drops messages there, "
            .. "whatever the policy says", failing "careless")
        process.await("the dead letter", function()
            return server:depths()["short"] == 1
        end)
    end)

    it("puts no dead letter into a queue that isn't durable: its message is parked", function()
        declare("fleeting letters", false, "")
        local line = told(plain "guest:guest", "the queue 'fleeting letters'", failing "brittle")
        assert.truthy(line:find("it isn't durable, so its messages are gone after a restart", 1, true), line)
        assert.equal(0, server:depths()["fleeting letters"])
        process.await("the message", function()
            return server:depths()["brittle"] == 1
        end)
    end)

    it("puts no dead letter into a queue that another connection owns", function()
        declare("locked letters", true, "", "whereis(rabbit_sup)")
        told(plain "guest:guest", "the queue 'locked letters': it can't be declared (405)", failing "locked")
        process.await("the message", function()
            return server:depths()["locked"] == 1
        end)
    end)

    it("uses a dead-letter queue that its user may not declare", function()
        declare("kept letters", true, '{<<"x-queue-type">>, longstr, <<"quorum">>}')
        server:ctl { "add_user", "meek", SECRET }
        server:ctl { "set_permissions", "meek", "^meek$", ".*", ".*" }
        local given = failing "meek"
        given.done = function(seen)
            return seen.action
        end
        run(plain("meek:" .. SECRET), given)
        process.await("the dead letter", function()
            return server:depths()["kept letters"] == 1
        end)
    end)

    it("bounds what is claimed, where a consumer may claim more than AMQP has a number for", function()
        local prefetch
        run(plain "guest:guest", {
            queues = { "large" },
            prefetch = 100000,
            up = function(engine)
                engine:publish("orders", "large", "it is read")
            end,
            handler = function()
                prefetch = server:ctl({ "list_consumers", "--no-table-headers", "queue_name", "prefetch_count" })
                    :match "large\t(%d+)"
            end,
            done = function()
                return prefetch
            end,
        })
        assert.equal("65535", prefetch)
    end)

    -- ---- Messages that can't be as they are ----------------------------------------------------

    -- publish publishes messages, and notes what became of each.
    local function publish(count, queue, options_of)
        return function(engine, seen)
            seen.answers, seen.answered = {}, 0
            for number = 1, count do
                engine:publish("orders", queue, "m" .. number, options_of(number), function(safe, why, code)
                    seen.answers[number] = safe and "safe" or code
                    seen.answered = seen.answered + 1
                    seen.why = seen.why or why
                end)
            end
        end
    end

    it("finds the one message that the server refuses, and no other is lost with it", function()
        local seen = run(plain "guest:guest", {
            queues = { "refusing" },
            up = publish(20, "refusing", function(number)
                return { headers = number == 7 and { CC = "another" } or nil }
            end),
            done = function(seen)
                return seen.answered == 20 and seen.calls.refusing >= 19
            end,
        })
        for number = 1, 20 do
            assert.equal(number == 7 and "refused" or "safe", seen.answers[number])
        end
        assert.truthy(said(seen, "unacceptable_type_in_header") or seen.why:find("refused", 1, true) or seen.why)
    end)

    it("forgets what size a server allowed once it is connected anew", function()
        server:ctl { "eval", "application:set_env(rabbit, max_message_size, 1000)." }
        local is_raised, safe = false, false
        run(plain "guest:guest", {
            queues = { "sized" },
            up = function(engine, seen)
                engine:publish("orders", "sized", ("x"):rep(2000), {}, function(done, why)
                    safe, seen.why = done, why
                end)
            end,
            done = function(seen)
                if seen.why and not is_raised then
                    is_raised = true
                    server:ctl { "eval", "application:set_env(rabbit, max_message_size, 134217728)." }
                    server:ctl { "close_all_connections", "for a test" }
                end
                return is_raised and safe
            end,
        })
        assert.is_true(is_raised)
    end)

    it("makes the exchanges of delays anew where somebody deleted them", function()
        local url, deleted = plain "guest:guest", false
        local seen = run(url, {
            queues = { "late" },
            up = publish(1, "late", function() return { delay = "100ms" } end),
            handler = function(message, seen)
                if message.body == "m1" and message.redeliveries == 0 and not deleted then
                    deleted = true
                    for _, name in ipairs { "0", "1", "2", "out" } do
                        server:ctl { "eval", ('rabbit_exchange:delete(rabbit_misc:r(<<"/">>, exchange, '
                            .. '<<"mulligan.delay.quorum.%s">>), false, <<"spec">>).'):format(name) }
                    end
                    error(mulligan.error { type = "Later", message = "once more" })
                end
                seen.came_back = message.redeliveries == 1
            end,
            done = function(seen)
                return seen.came_back
            end,
        })
        assert.is_nil(said(seen, "dead letter"))
    end)

    -- headers has as many bytes in two values, so that each fits into an argument.
    local function headers(bytes)
        return { a = ("a"):rep(bytes // 2), b = ("b"):rep(bytes - bytes // 2) }
    end

    it("reads a message whose headers the server made larger than a frame", function()
        local seen = run(plain "guest:guest", {
            queues = { "wide" },
            up = publish(1, "wide", function() return { delay = "1s", headers = headers(130600) } end),
            done = function(seen)
                return seen.calls.wide
            end,
        })
        assert.is_nil(said(seen, "down"))
    end)

    it("makes dead letters of messages whose headers leave no room for ours", function()
        local dead = {}
        local seen = run(plain "guest:guest", {
            queues = { "heavy", "error" },
            up = publish(3, "heavy", function(number)
                return { id = "heavy-" .. number, headers = headers(({ 60000, 130000, 130900 })[number]) }
            end),
            handler = function(message)
                if message.queue == "heavy" then
                    error(mulligan.error { type = "Hopeless", message = ("z"):rep(16000) })
                elseif message.id:find "^heavy" then
                    local headers_of = message.headers
                    dead[message.id] = { headers_of["mulligan-error-type"], headers_of["mulligan-error-message"] }
                end
            end,
            done = function()
                return dead["heavy-1"] and dead["heavy-2"] and dead["heavy-3"]
            end,
        })
        assert.same({ "Hopeless", ("z"):rep(16000) }, dead["heavy-1"])
        assert.same({ "Hopeless" }, dead["heavy-2"])
        assert.same({}, dead["heavy-3"])
        assert.is_nil(said(seen, "parked"))
        assert.truthy(said(seen, "the headers of message heavy-2 leave no room for all of mulligan's: its dead "
            .. "letter has the "
            .. "short ones of them"))
    end)

    it("goes on where the user may not publish, and lets nothing be lost", function()
        server:ctl { "add_user", "reader", SECRET }
        server:ctl { "set_permissions", "reader", ".*", "^(bound|error)$", ".*" }
        local may = false
        local seen = run(plain("reader:" .. SECRET), {
            queues = { "bound" },
            up = function()
                put("bound", "[]")
            end,
            handler = function()
                error(mulligan.error { type = "Hopeless", message = "no" })
            end,
            done = function(seen)
                if not may and said(seen, "isn't settled") then
                    may = true
                    server:ctl { "set_permissions", "reader", ".*", ".*", ".*" }
                end
                return may and seen.action == "dead_letter"
            end,
        })
        assert.truthy(said(seen, "isn't settled (the broker refused it (403): ACCESS_REFUSED - access to "
            .. "exchange 'amq.default'"),
            table.concat(seen.log, "\n"))
        assert.is_nil(said(seen, "parked"))
    end)

    -- ---- TLS -----------------------------------------------------------------------------------

    describe("with TLS", function()
        local function is_up(url)
            return function()
                local seen = run(url(), {
                    up = function(engine, seen)
                        engine:publish("orders", "work", "by TLS", {}, function(safe)
                            seen.is_safe = safe
                        end)
                    end,
                    done = function(seen)
                        return seen.is_safe and seen.calls.work
                    end,
                })
                assert.is_nil(said(seen, "error"))
                assert.truthy(said(seen, "info transport orders isn't up yet; it is waited for"))
                assert.truthy(said(seen, "info transport orders is up"))
            end
        end

        it("works with a client's certificate, to a name and to an address", function()
            is_up(function() return with_tls("localhost", WORKER) end)()
            is_up(function() return with_tls("127.0.0.1", WORKER) end)()
        end)

        it("logs in by the certificate, and copies a message that says whose it is", function()
            server:ctl { "add_user", "worker", "unused" }
            server:ctl { "set_permissions", "worker", ".*", ".*", ".*" }
            local seen = run(with_tls("localhost", worker { login = "certificate" }, ""), {
                queues = { "owned" },
                up = function()
                    put("owned", '[{user_id, <<"guest">>}]')
                end,
                handler = function(message)
                    if message.redeliveries == 0 then
                        error(mulligan.error { type = "Later", message = "once more" })
                    end
                end,
                done = function(seen)
                    return seen.calls.owned == 2
                end,
            })
            assert.is_nil(said(seen, "error "))
            server:ctl { "delete_user", "worker" }
            local line = told(with_tls("localhost", worker { login = "certificate" }, ""), "is down: ")
            assert.equal(down("localhost", server.tls_port, "the login by certificate is refused (403): its "
                .. "user must be "
                .. "known to the server"), line)
        end)

        local function fails(words, host, why)
            return function()
                local line = told(with_tls(host, words, "guest:" .. SECRET .. "@"), "transport orders is down: ")
                assert.equal(down(host, server.tls_port, why), line)
            end
        end

        it("says that the server wants a certificate", fails({ ca = "authority" }, "localhost",
            "the server wants a certificate of the client (tlsv13 alert certificate required)"))
        it("says that the server doesn't trust ours", fails(worker { cert = "intruder", key = "intruder" },
            "localhost", "the server doesn't take the client's certificate (tlsv1 alert unknown ca)"))
        it("says that the server's isn't trusted", fails(worker { ca = "stranger" }, "localhost",
            "its certificate isn't trusted: self-signed certificate in certificate chain"))
        it("says whose certificate it isn't", fails(worker { server_name = "broker.example.com" }, "127.0.0.1",
            "its certificate isn't for 'broker.example.com'"))

        it("says that a port has no TLS", function()
            local line = told(("amqps://guest:%s@127.0.0.1:%d"):format(SECRET, server.port), "is down: ")
            assert.equal(down("127.0.0.1", server.port, "it doesn't speak TLS at this port"), line)
        end)

        it("says that a port has nothing else", function()
            local line = told(("amqp://guest:%s@127.0.0.1:%d"):format(SECRET, server.tls_port), "is down: ")
            assert.truthy(line:find("look at host and port, and whether it wants TLS (amqps:)", 1, true), line)
        end)
    end)
end)
