-- m.fetch and m.http: requests that a handler waits for, while others work. Servers are real, and so is
-- their time; the engine's is a test's.
local json = require("mulligan").json
local mulligan = require "mulligan"
local process = require "support.process"
local rigs = require "support.rigs"
local server = require "support.server"
local testing = require "mulligan.testing"

local has_module = require("mulligan.core").has_http()

describe("a request", function()
    if not has_module then
        pending "libcurl isn't installed (package libcurl4-openssl-dev), so there is no module http"
        return
    end

    local folder, job, url, rig

    setup(function()
        folder = process.folder()
        url, job = server.start(folder)
    end)

    teardown(function()
        folder:remove()
    end)

    after_each(function()
        rigs.close()
    end)

    -- handled runs a function as a handler, for one message.
    local function handled(handler, more_of_consumer, given, body)
        rig = rigs.start("bus:default():dead_letter()", handler, nil, more_of_consumer)
        assert(rig:publish("work", body or "x", given))
        local event = rig:events("decided")[1]
        return event and event.failure.error
    end

    local function fetched(request)
        local found
        local failed = handled(function()
            found = mulligan.fetch(request)
        end)
        assert.is_nil(failed, failed and failed.message)
        rigs.close()
        return found
    end

    local function fails(request, more_of_consumer)
        local failed = handled(function()
            mulligan.fetch(request)
        end, more_of_consumer)
        rigs.close()
        return assert(failed, "it didn't fail")
    end

    -- A port of 127.0.0.1 that refuses connections: it is taken, and nobody listens.
    local function with_refusing_port(act)
        local held = folder:start({ "python3", "-c",
            "import socket,sys\ns=socket.socket()\ns.bind(('127.0.0.1',0))\nopen('refusing','w').write("
                .. "str(s.getsockname()[1])+'\\n')\nsys.stdin.read()\nimport time\ntime.sleep(1000)" })
        process.await("a port", function()
            return (folder:read("refusing") or ""):find("\n")
        end)
        act("http://127.0.0.1:" .. folder:read("refusing"):match("%d+") .. "/")
        held.kill("KILL")
        held.wait()
    end

    -- as_bytes takes back that the server reads bytes as Latin-1.
    local function as_bytes(words)
        return (words:gsub(utf8.charpattern, function(character)
            return string.char(utf8.codepoint(character))
        end))
    end

    describe("of m.fetch", function()
        it("gives status, headers and body", function()
            local answer = fetched { url = url .. "/echo?a=b" }
            local told = json.decode(answer.body)
            assert.same({ 200, "GET", "/echo?a=b", "" }, { answer.status, told.method, told.path, told.body })
            assert.same({ "a, b", "" }, { answer.headers["x-twice"], answer.headers["x-empty"] })
            assert.equal("mulligan/" .. mulligan.version, told.headers["user-agent"])
        end)

        it("sends a method, headers and a body, byte for byte", function()
            local bytes = {}
            for byte = 0, 255 do
                bytes[byte + 1] = string.char(byte)
            end
            local body = table.concat(bytes)
            local told = json.decode(fetched { url = url .. "/echo", body = body, headers = {
                ["X-One"] = "ä b", Empty = "", ["content-type"] = "text/plain",
            } }.body)
            assert.same({ "POST", "ä b", "", "text/plain" },
                { told.method, as_bytes(told.headers["x-one"]), told.headers.empty, told.headers["content-type"] })
            assert.equal(body, as_bytes(told.body))
            told = json.decode(fetched { url = url .. "/echo", method = "PATCH", body = "x" }.body)
            assert.same({ "PATCH", "x", "application/octet-stream" },
                { told.method, told.body, told.headers["content-type"] })
            told = json.decode(fetched { url = url .. "/echo", method = "DELETE" }.body)
            assert.same({ "DELETE", "" }, { told.method, told.body })
        end)

        it("of HEAD has no body", function()
            assert.same({ 404, "" }, { fetched({ url = url .. "/status/404?body=x", method = "HEAD" }).status,
                fetched({ url = url .. "/status/404?body=x", method = "HEAD" }).body })
        end)

        it("sends 16 MiB, and takes as much", function()
            local body = ("x"):rep(16 * 1024 * 1024)
            local told = json.decode(fetched { url = url .. "/echo", method = "PUT", body = body:sub(1, 8000000) }.body)
            assert.equal(8000000, #told.body)
        end)

        it("uses a connection again", function()
            local numbers = {}
            handled(function()
                for number = 1, 3 do
                    numbers[number] = json.decode(mulligan.fetch({ url = url .. "/echo" }).body).number
                end
            end)
            assert.same({ numbers[1], numbers[1], numbers[1] }, numbers)
        end)

        it("gives any status; with `raise` an HttpError", function()
            assert.same({ 503, "busy" }, { fetched({ url = url .. "/status/503?body=busy" }).status,
                fetched({ url = url .. "/status/503?body=busy" }).body })
            local failed = fails { url = url .. "/status/503?retry=7", raise = true }
            assert.same({ "HttpError", 503, 7, "GET " .. url .. "/status/503?retry=7 answered 503" },
                { failed.type, failed.status, failed.retry_after, failed.message })
            failed = fails { url = url .. "/status/429?retry=soon", raise = true }
            assert.same({ "HttpError", 429 }, { failed.type, failed.status })
            assert.is_nil(failed.retry_after)
            assert.equal(204, fetched({ url = url .. "/status/204", raise = true }).status)
        end)

        it("reads a Retry-After that is a date", function()
            local at = os.date("!%a, %d %b %Y %H:%M:%S GMT", os.time() + 3600):gsub(" ", "%%20")
            local after = fails({ url = url .. "/status/503?retry=" .. at, raise = true }).retry_after
            assert.is_true(after > 3000 and after <= 3600, tostring(after))
        end)

        it("follows redirects where it is asked to, so many", function()
            assert.equal(302, fetched({ url = url .. "/redirect/echo" }).status)
            local answer = fetched { url = url .. "/redirect/redirect/echo", redirects = true }
            assert.same({ 200, nil }, { answer.status, answer.headers.location })
            assert.equal("ConnectionError", fails({ url = url .. "/loop", redirects = true }).type)
        end)

        it("says which server doesn't answer", function()
            with_refusing_port(function(address)
                local failed = fails { url = address }
                assert.equal("ConnectionError", failed.type)
                assert.matches("^GET " .. address .. ": .*refused", failed.message)
                failed = fails { url = address:gsub("//", "//user:secret@") }
                assert.matches("^GET http://%*%*%*@127", failed.message)
            end)
        end)

        for what, way in pairs {
            closes = "close", resets = "reset", ["answers half"] = "half", ["sends garbage"] = "garbage",
        } do
            it("fails as ConnectionError where a server " .. what, function()
                assert.equal("ConnectionError", fails({ url = url .. "/" .. way }).type)
            end)
        end

        it("fails as Error where a server sends 100 MB, or a head without end", function()
            local failed = fails { url = url .. "/flood" }
            assert.same({ "Error", "GET " .. url .. "/flood: the answer has more than 16 MiB" },
                { failed.type, failed.message })
            failed = fails { url = url .. "/head" }
            assert.is_true(failed.type == "Error" or failed.type == "ConnectionError", failed.type)
        end)

        for what, way in pairs { ["sends nothing"] = "never", ["is slow"] = "drip" } do
            it("fails as TimeoutError where a server " .. what, function()
                local failed = fails { url = url .. "/" .. way, timeout = "50ms" }
                assert.same({ "TimeoutError", ("GET %s/%s: no whole answer within 50 ms"):format(url, way) },
                    { failed.type, failed.message })
            end)
        end

        it("has at most the time that the call has left", function()
            local failed = fails({ url = url .. "/never", timeout = "1h" }, { timeout = "50ms" })
            assert.same({ "HandlerTimeoutError", "GET " .. url .. "/never: no whole answer within 50 ms" },
                { failed.type, failed.message })
        end)

        it("verifies TLS", function()
            folder:run { "sh", "-c", "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 "
                .. "-subj /CN=localhost 2>/dev/null" }
            local tls = folder:start { "python3", "-c", [[
import socket, ssl
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain("cert.pem", "key.pem")
listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen(8)
open("tls", "w").write("%d\n" % listener.getsockname()[1])
while True:
    connection, _ = listener.accept()
    try:
        context.wrap_socket(connection, server_side=True).close()
    except OSError:
        pass
]] }
            process.await("a port", function()
                return (folder:read("tls") or ""):find("\n"), tls.err()
            end)
            local failed = fails { url = ("https://127.0.0.1:%s/"):format(folder:read("tls"):match("%d+")) }
            assert.equal("ConnectionError", failed.type)
            assert.matches("certificate", failed.message)
            tls.kill("KILL")
            tls.wait()
        end)

        it("leaves sixty-four in flight", function()
            local seen = {}
            rig = rigs.start("", function()
                local body = mulligan.fetch({ url = url .. "/together/64" }).body
                seen[#seen + 1] = body
            end, nil, { concurrency = 64 })
            for _ = 1, 64 do
                assert(rig.engine:publish("orders", "work", "x"))
            end
            rig.clock:turn()
            assert.same({ 64, "64" }, { #seen, seen[1] })
        end)

        it("works in a handler's own coroutine only", function()
            local _, why = pcall(function()
                mulligan.fetch { url = url }
            end)
            assert.matches("^spec/lua/fetch_spec.lua:%d+: mulligan.fetch works in a handler only$", why)
        end)

        for what, case in pairs {
            ["no table"] = { "http://127.0.0.1/", "options must be a table" },
            ["no URL"] = { {}, "url is missing" },
            ["another scheme"] = { { url = "ftp://h/" }, 'url must be one such as "http://127.0.0.1:8080/mail"' },
            ["a blank"] = { { url = "http://h/a b" }, "has a blank" },
            ["a method in small letters"] = { { url = "http://h/", method = "get" }, 'in capitals, not "get"' },
            ["a header of two lines"] = { { url = "http://h/", headers = { A = "b\r\nC: d" } }, 'header "A"' },
            ["a header's odd name"] = { { url = "http://h/", headers = { ["A:"] = "b" } }, 'can\'t be one: "A:"' },
            ["a number of redirects"] = { { url = "http://h/", redirects = 5 }, "redirects must be true or false" },
            ["another option"] = { { url = "http://h/", query = {} }, 'unknown option "query"' },
        } do
            it("says what it takes, not " .. what, function()
                local failed = handled(function()
                    mulligan.fetch(case[1])
                end)
                assert.matches("fetch_spec.lua:%d+: mulligan.fetch: ", failed.message)
                assert.matches(case[2], failed.message, 1, true)
            end)
        end
    end)

    describe("of m.http", function()
        it("posts the body, and in its headers what the message says", function()
            local sent = { id = "m-1", type = "Ör der", key = "100%", headers = { tenant = "ä" } }
            assert.is_nil(handled(mulligan.http(url .. "/keep"), nil, sent, "\0body\255"))
            local kept = json.decode(folder:read "kept")
            local function of(name)
                return (kept.headers["mulligan-" .. name]:gsub("%%(%x%x)", function(digits)
                    return string.char(tonumber(digits, 16))
                end))
            end
            assert.same({ "POST", "/keep", "\0body\255", "application/octet-stream" },
                { kept.method, kept.path, as_bytes(kept.body), kept.headers["content-type"] })
            assert.same({ "m-1", "Ör der", "100%", "work", "1", "0" },
                { of "id", of "type", of "key", of "queue", of "attempt", of "redeliveries" })
            assert.same({ tenant = "ä" }, json.decode(of "headers"))
            assert.equal("%C3%96r%20der", kept.headers["mulligan-type"])
            assert.is_nil(handled(mulligan.http(url .. "/keep"), nil, { id = "m-2" }))
            assert.is_nil(json.decode(folder:read "kept").headers["mulligan-key"])
        end)

        for _, case in ipairs {
            { "/status/500", "HttpError", 500 },
            { "/status/503?retry=30", "HttpError", 503, 30 },
            { '/status/422?body={"type":"ValidationError","message":"no"}', "ValidationError" },
            { '/status/422?body={"type":5}', "HttpError", 422 },
            { "/status/422?body=[]", "HttpError", 422 },
            { "/redirect/echo", "HttpError", 302 },
            { "/close", "ConnectionError" },
        } do
            it("fails where the answer is " .. case[1], function()
                local failed = assert(handled(mulligan.http(url .. case[1])))
                assert.same({ case[2], case[3], case[4] }, { failed.type, failed.status, failed.retry_after })
            end)
        end

        it("fails as HandlerTimeoutError where there is none in time", function()
            local failed = assert(handled(mulligan.http(url .. "/never"), { timeout = "50ms" }))
            assert.equal("HandlerTimeoutError", failed.type)
        end)

        it("refuses a header of more than 7 KiB", function()
            local failed = handled(mulligan.http(url .. "/echo"), nil, { key = ("k"):rep(7169) })
            assert.same({ "Error", "m.http: the header Mulligan-Key would have 7169 bytes; it may have 7168" },
                { failed.type, failed.message })
            assert.is_nil(handled(mulligan.http(url .. "/echo"), nil, { key = ("k"):rep(7168) }))
        end)

        it("takes a URL", function()
            assert.error_matches(function()
                mulligan.http "127.0.0.1:8080"
            end, 'mulligan.http: the URL must be one such as "http://127.0.0.1:8080/mail", not "127.0.0.1:8080"',
                1, true)
        end)
    end)

    it("leaves no descriptor behind, whenever it ends", function()
        local random = testing.random(23)
        local pid = process.read("/proc/self/stat"):match("^%d+")
        local function descriptors()
            os.execute(("ls -l /proc/%s/fd | grep -o '[0-9]* ->.*' >%s"):format(pid, folder:path("open")))
            return folder:read "open"
        end
        fetched { url = url .. "/echo" } -- libuv keeps a pipe for signals from then on
        local before = descriptors()
        local ends = {}
        rig = rigs.start('bus:default():discard("ended")', function()
            local way = random:pick { "/echo", "/never", "/drip", "/reset", "/status/500" }
            local well, raised = pcall(mulligan.fetch, { url = url .. way, timeout = random(20) .. "ms" })
            local how = well and "well" or raised.type
            ends[how] = (ends[how] or 0) + 1
        end, nil, { concurrency = 32 })
        for _ = 1, 1000 do
            assert(rig.engine:publish("orders", "work", "x"))
        end
        rig.clock:turn()
        assert.equal(1000, rig:counts().done)
        assert.is_true(ends.TimeoutError >= 200) -- how the others end depends on how fast the machine is
        rigs.close()
        collectgarbage()
        collectgarbage()
        assert.equal(before, descriptors())
        assert.is_nil(job.code)
    end)
end)
