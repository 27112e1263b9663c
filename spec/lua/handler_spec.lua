-- What a handler may do, and what its ends look like: on a test's clock, with a memory transport.
local mulligan = require "mulligan"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

describe("a handler", function()
    local rig

    local function start(handler, more_of_consumer, more)
        rig = rigs.start("bus:default():dead_letter()", handler, more, more_of_consumer)
    end

    after_each(rigs.close)

    local function send(body, given)
        assert(rig:publish("work", body or "x", given))
    end

    -- What the first dead letter says of its error.
    local function failure()
        local event = assert(rig:events("decided")[1], "nothing failed")
        return event.failure.error
    end

    describe("that sleeps", function()
        it("goes on after the time, while others work", function()
            local clock, seen = testing.clock(), {}
            start(function(msg)
                seen[#seen + 1] = msg.body .. " at " .. clock:now()
                mulligan.sleep(msg.body)
                seen[#seen + 1] = msg.body .. " till " .. clock:now()
            end, { concurrency = 2 }, { clock = clock })
            send "2s"
            send "1500ms"
            rig:advance("1m")
            assert.same({ "2s at 0", "1500ms at 0", "1500ms till 1500", "2s till 2000" }, seen)
            assert.equal(2, rig:counts().done)
        end)

        it("may sleep in a loop, in a pcall, for 0", function()
            local clock, steps = testing.clock(), 0
            start(function()
                for _ = 1, 10 do
                    assert(pcall(mulligan.sleep, "1s"))
                    mulligan.sleep(0)
                    steps = steps + 1
                end
            end, nil, { clock = clock })
            send()
            rig:advance("10s")
            assert.equal(10, steps)
            assert.equal(1, rig:counts().done)
        end)

        for value, why in pairs {
            ["10"] = "needs a unit",
            ["-1s"] = "must be a number with a unit",
            ["1m1h"] = "from the largest to the smallest",
            ["1s1s"] = "each once",
            ["0.5ms"] = "whole milliseconds",
            ["1.s"] = "a digit on both sides of the point",
            ["366d"] = "at most 365 days",
            ["99999999999999999999d"] = "at most 365 days",
            [""] = "must be a number with a unit",
        } do
            it(("fails for %q"):format(value), function()
                start(function()
                    mulligan.sleep(value)
                end)
                send()
                assert.equal("Error", failure().type)
                assert.is_truthy(failure().message:find(why, 1, true), failure().message)
            end)
        end

        it("fails for a bare number, a table, nothing", function()
            local bad = { 5, {}, false }
            start(function(msg)
                mulligan.sleep(bad[tonumber(msg.body)])
            end)
            for number = 1, 3 do
                send(tostring(number))
            end
            for _, event in ipairs(rig:events("decided")) do
                assert.is_truthy(event.failure.error.message:find("must be 0 or a text", 1, true))
            end
            assert.equal(3, #rig:events("decided"))
        end)

        it("can't sleep in a coroutine of its own, nor where C called it", function()
            local whys = {}
            start(function()
                local _, why = coroutine.resume(coroutine.create(function()
                    mulligan.sleep("1s")
                end))
                whys[1] = why
                whys[2] = select(2, pcall(table.sort, { 1, 2 }, function()
                    mulligan.sleep("1s")
                end))
            end)
            send()
            assert.is_truthy(whys[1]:find("own coroutine only", 1, true))
            assert.is_truthy(whys[2]:find("C called", 1, true))
            assert.equal(1, rig:counts().done)
        end)
    end)

    it("may use coroutines of its own", function()
        local got = {}
        start(function()
            for value in coroutine.wrap(function()
                coroutine.yield(1)
                mulligan.send("out", "from within")
                coroutine.yield(2)
            end) do
                got[#got + 1] = value
            end
        end)
        send()
        assert.same({ 1, 2 }, got)
        assert.equal("from within", rig:collected("out")[1].body)
    end)

    it("that yields by itself has failed", function()
        start(function()
            coroutine.yield("what?")
        end)
        send()
        assert.is_truthy(failure().message:find("yielded", 1, true))
    end)

    describe("that sends", function()
        it("sends when it succeeds, and not before", function()
            start(function(msg)
                mulligan.send("out", msg.body .. "!", {
                    id = "out-1",
                    type = "T",
                    key = "K",
                    headers = { a = "b" },
                })
                mulligan.sleep("1s")
            end)
            send "a\0b"
            assert.same({}, rig:collected("out"))
            rig:advance("1s")
            local out = rig:collected("out")[1]
            assert.same({ "a\0b!", "out-1", "T", "K", "out" }, { out.body, out.id, out.type, out.key, out.queue })
            assert.same({ a = "b" }, out.headers)
        end)

        it("sends nothing when it fails, and once for all of its attempts", function()
            start(function(msg)
                mulligan.send("out", "attempt " .. msg.attempt)
                if msg.attempt < 3 then
                    error("not yet")
                end
            end, nil, { policy = 'require("mulligan.policy").bus():default():retry(5, "1s")' })
            send()
            rig:advance("1m")
            assert.equal(1, #rig:collected("out"))
            assert.equal("attempt 3", rig:collected("out")[1].body)
        end)

        it("may delay what it sends", function()
            start(function()
                mulligan.send("out", "later", { delay = "10s" })
            end)
            send()
            rig:advance("9999ms")
            assert.same({}, rig:collected("out"))
            rig:advance("1ms")
            assert.equal(1, #rig:collected("out"))
        end)

        it("fails for what is no message", function()
            local many, wide = {}, {}
            for number = 1, 1001 do
                many[tostring(number)] = ""
                wide[tostring(number % 100)] = ("x"):rep(11000)
            end
            local bad = {
                { "", "x" },
                { "out" },
                { "out", {} },
                { "out", "x", { hedaers = {} } },
                { "out", "x", { headers = { a = 1 } } },
                { "out", "x", { headers = { "a" } } },
                { "out", "x", { id = "\xFF" } },
                { "out", "x", { id = "a\0b" } },
                { "out", "x", { delay = 5 } },
                { "out", ("x"):rep(16 * 1024 * 1024 + 1) },
                { "out", "x", { headers = many } },
                { "out", "x", { headers = wide } },
            }
            local words = {
                "queue must be a name",
                "body must be a string",
                "body must be a string",
                'unknown key "hedaers"',
                'header "a" must be a string',
                "names of headers must be strings",
                "id must be UTF-8",
                "id must be UTF-8",
                "delay must be 0 or a text",
                "larger than allowed",
                "more than 1000 headers",
                "more than 1 MiB of text",
            }
            local said = {}
            start(function()
                for number, arguments in ipairs(bad) do
                    said[number] = select(2, pcall(mulligan.send, table.unpack(arguments)))
                end
            end)
            send()
            for number, word in ipairs(words) do
                assert.is_truthy(said[number]:find(word, 1, true), said[number])
            end
            assert.equal(1, rig:counts().done)
            assert.same({}, rig:collected("out"))
        end)
    end)

    it("is the only place for sleep and send", function()
        assert.has_error(function()
            mulligan.sleep("1s")
        end, "mulligan.sleep works in a handler only")
        assert.has_error(function()
            mulligan.send("out", "x")
        end, "mulligan.send works in a handler only")
    end)

    describe("that fails", function()
        it("keeps what mulligan.error was given", function()
            start(function()
                mulligan.error {
                    type = "PgError",
                    message = "deadlock",
                    stack = "here",
                    lineage = { "DatabaseError" },
                    code = "40P01",
                    transient = true,
                    count = 3,
                    ratio = 0.5,
                    detail = { rows = { 1, 2 } },
                    cause = { type = "TimeoutError", after = 5 },
                }
            end)
            send()
            assert.same({
                type = "PgError",
                message = "deadlock",
                stack = "here",
                lineage = { "DatabaseError" },
                code = "40P01",
                transient = true,
                count = 3,
                ratio = 0.5,
                detail = { rows = { 1, 2 } },
                cause = { type = "TimeoutError", message = "", stack = "", after = 5 },
            }, failure())
        end)

        it("keeps whole numbers whole, and floats floats", function()
            start(function()
                mulligan.error { type = "E", whole = 3, float = 3.0 }
            end)
            send()
            assert.equal("integer", math.type(failure().whole))
            assert.equal("float", math.type(failure().float))
        end)

        it("gives a stack where it named none", function()
            start(function()
                mulligan.error { type = "E" }
            end)
            send()
            assert.is_truthy(failure().stack:find("handler_spec.lua:%d+"))
        end)

        it("keeps an error that was caught and raised again", function()
            start(function()
                local _, err = pcall(mulligan.error, { type = "PgError", code = 1 })
                assert.equal("PgError", tostring(err))
                error(err)
            end)
            send()
            assert.equal("PgError", failure().type)
            assert.equal(1, failure().code)
        end)

        it("with a text has type Error, the text and a traceback", function()
            start(function()
                local function deep()
                    error("mailbox full")
                end
                deep()
            end)
            send()
            assert.equal("Error", failure().type)
            assert.is_truthy(failure().message:find("handler_spec.lua:%d+: mailbox full$"))
            assert.is_truthy(failure().stack:find("^stack traceback:\n"))
            assert.is_truthy(failure().stack:find("deep", 1, true))
        end)

        local odd = {
            ["nil"] = { nil, "^nil$" },
            ["a number"] = { 42, "^42$" },
            ["a boolean"] = { false, "^false$" },
            ["a plain table"] = {
                {}, '^a table was raised; raise an error by mulligan.error { type = "X", %.%.%. }$',
            },
            ["a table that looks like an error"] = {
                { type = "PgError", message = "deadlock" },
                '^a table was raised; raise an error by mulligan.error { type = "PgError", %.%.%. }; '
                    .. "its message: deadlock$",
            },
            ["a table of a kind with a name"] = { setmetatable({}, { __name = "Failure" }), "^a table was raised; " },
            ["a function"] = { print, '^a function was raised; raise an error by mulligan.error { type = "X", ' },
            ["a coroutine"] = { coroutine.create(print), "^a thread was raised; " },
            ["JSON's null"] = { mulligan.json.null, "^a userdata was raised; " },
            ["an object with __tostring"] = {
                setmetatable({}, {
                    __tostring = function()
                        return "shown"
                    end,
                }),
                "^shown$",
            },
            ["an object whose __tostring raises"] = {
                setmetatable({}, {
                    __tostring = function()
                        error("no")
                    end,
                }),
                "^%(a table that can't be shown%)$",
            },
            ["an object whose __tostring gives a table"] = {
                setmetatable({}, {
                    __tostring = function()
                        return {}
                    end,
                }),
                "^%(a table that can't be shown%)$",
            },
            ["bytes that are no text"] = { "a\0b\xFFc", "^a%?b%?c$" },
        }
        for name, case in pairs(odd) do
            it("with " .. name .. " has type Error and what can be said of it", function()
                start(function()
                    error(case[1], 0)
                end)
                send()
                assert.equal("Error", failure().type)
                assert.is_truthy(failure().message:find(case[2]), failure().message)
            end)
        end

        it("leaves out of an error what can't be passed on, and loses nothing else", function()
            local deep = {}
            local at = deep
            for _ = 1, 40 do
                at.x = {}
                at = at.x
            end
            local cyclic = { type = "Cyclic" }
            cyclic.cause = cyclic
            start(function()
                mulligan.error {
                    type = "E",
                    message = "a\0\xFF",
                    print = print,
                    co = coroutine.create(print),
                    deep = deep,
                    good = 1,
                    cause = cyclic,
                    [1] = "no name",
                    ["\xFF"] = "named",
                }
            end)
            send()
            local err = failure()
            assert.equal("a??", err.message)
            assert.equal(1, err.good)
            assert.equal("named", err["?"])
            assert.is_nil(err.print)
            assert.is_nil(err.co)
            assert.equal("Cyclic", err.cause.type)
        end)

        it("leaves a table out of itself, and ends a circle of causes", function()
            local pool = { name = "pool", connections = {} }
            for i = 1, 3 do
                pool.connections[i] = { number = i, pool = pool }
            end
            local first, second = { type = "A" }, { type = "B" }
            first.cause, second.cause = second, first
            start(function()
                mulligan.error { type = "E", stack = "", connection = pool.connections[2], cause = first }
            end)
            send()
            assert.same({
                type = "E",
                message = "",
                stack = "",
                connection = { number = 2, pool = { name = "pool", connections = {
                    { number = 1 },
                    nil,
                    { number = 3 },
                } } },
                cause = { type = "A", message = "", stack = "", cause = { type = "B", message = "", stack = "" } },
            }, failure())
        end)

        -- How many values are in a table, all levels together.
        local function count(value)
            local n = 0
            for _, inner in pairs(value) do
                n = n + 1 + (type(inner) == "table" and count(inner) or 0)
            end
            return n
        end

        it("keeps at most 10,000 values of what its tables share, and what stands beside them", function()
            local shared = "leaf"
            for _ = 1, 6 do
                local list = {}
                for i = 1, 10 do
                    list[i] = shared
                end
                shared = list
            end
            local wide = {}
            for i = 1, 10001 do
                wide[i] = i
            end
            start(function()
                mulligan.error {
                    type = "E",
                    a = shared,
                    code = "40P01",
                    wide = wide,
                    cause = { type = "C", message = "why" },
                }
            end)
            send()
            local err = failure()
            assert.equal("40P01", err.code)
            assert.equal("C", err.cause.type)
            assert.equal("why", err.cause.message)
            assert.is_true(count(err) > 5000)
            assert.is_true(count(err) <= 10020) -- what every error has isn't counted
            assert.is_nil(err.wide)
        end)

        it("leaves out what shares too large a table, and keeps the rest", function()
            local wide, places = {}, {}
            for i = 1, 10001 do
                wide["f" .. i] = i
            end
            for i = 1, 100 do
                places["f" .. i] = wide
            end
            start(function()
                mulligan.error { type = "E", places = places, code = "40P01" }
            end)
            send()
            assert.same({ "40P01", {} }, { failure().code, failure().places })
        end)

        it("keeps at most 1 MiB of text", function()
            local kept = ("k"):rep(300 * 1024)
            start(function()
                mulligan.error {
                    type = "E",
                    message = ("m"):rep(3 * 1024 * 1024),
                    a = kept,
                    b = kept,
                    c = kept,
                    code = "40P01",
                    lineage = { "P" },
                    cause = { type = "C", message = "why" },
                }
            end)
            send()
            local err = failure()
            assert.matches("^m+$", err.message)
            assert.is_true(#err.message > 250 * 1024 and #err.message <= 256 * 1024)
            assert.equal(kept, err.a)
            assert.equal(kept, err.b)
            assert.is_nil(err.c)
            assert.equal("40P01", err.code)
            assert.same({ "P" }, err.lineage)
            assert.equal("C", err.cause.type)
            assert.equal("why", err.cause.message)
        end)

        it("leaves room for what its causes and its own short fields say, however large the rest is", function()
            local long, rows = ("x"):rep(1024 * 1024), {}
            for i = 1, 5000 do
                rows[i] = { number = i, name = "row" }
            end
            local err
            for depth = 16, 0, -1 do
                local code = "C" .. depth
                err = { type = "E" .. depth, message = long, stack = long, rows = rows, code = code, cause = err }
            end
            start(function()
                mulligan.error(err)
            end)
            send()
            local seen = failure()
            for depth = 0, 16 do
                assert.equal("E" .. depth, seen.type)
                assert.equal("C" .. depth, seen.code)
                assert.matches("^x+$", seen.message)
                seen = seen.cause
            end
            assert.is_nil(seen)
        end)

        it("with a text keeps the beginning of a long one", function()
            start(function()
                error(("x"):rep(2 * 1024 * 1024), 0)
            end)
            send()
            assert.matches("^x+$", failure().message)
            assert.is_true(#failure().message <= 256 * 1024)
        end)

        it("refuses mulligan.error without a type", function()
            for _, bad in ipairs { {}, { type = "" }, { type = 5 }, { type = "\xFF" }, { type = "E", message = {} } } do
                local ok, why = pcall(mulligan.error, bad)
                assert.is_false(ok)
                assert.equal("string", type(why))
            end
        end)

        it("closes what is to be closed, once its failure is known", function()
            local closed
            start(function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        closed = true
                    end,
                })
                error("no")
            end)
            send()
            assert.is_true(closed)
        end)

        it("by running out of stack is an Error as well", function()
            -- Lua loses finalizers that run where there is no stack left, such as other tests' engines'.
            collectgarbage("stop")
            start(function()
                local function deep()
                    return 1 + deep()
                end
                deep()
            end)
            send()
            collectgarbage("restart")
            assert.is_truthy(failure().message:find("stack overflow", 1, true))
        end)

        it("to read JSON has the type that is never retried", function()
            start(function(msg)
                mulligan.json.decode(msg.body)
            end, nil, { policy = 'require("mulligan.policy").bus():default():retry(5, 0)' })
            send "{"
            assert.equal("MessageDeserializationError", failure().type)
            assert.equal("unrecoverable", rig:events("decided")[1].verdict.reason)
            assert.equal(1, #rig:collected("error"))
        end)
    end)

    describe("that runs over its timeout", function()
        it("while it sleeps is cut off, and what it has open is closed", function()
            local closed, went_on
            start(function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        closed = select(2, pcall(mulligan.send, "out", "too late"))
                    end,
                })
                mulligan.sleep("1m")
                went_on = true
            end, { timeout = "10s" })
            send()
            rig:advance("5m")
            assert.is_nil(went_on)
            assert.is_truthy(closed:find("was ended", 1, true))
            assert.equal("HandlerTimeoutError", failure().type)
            assert.equal(1, #rig:collected("error"))
            assert.same({}, rig:collected("out"))
        end)

        it("without yielding is ended, though it catches what it can", function()
            start(function(msg)
                if msg.body == "loop" then
                    while true do
                        pcall(function()
                            while true do end
                        end)
                    end
                elseif msg.body == "coroutine" then
                    coroutine.wrap(function()
                        while true do end
                    end)()
                end
                while true do end
            end, { timeout = "20ms" })
            for _, body in ipairs { "loop", "coroutine", "plain" } do
                send(body)
            end
            assert.equal(3, #rig:events("decided"))
            for _, event in ipairs(rig:events("decided")) do
                assert.equal("HandlerTimeoutError", event.failure.error.type)
                assert.is_truthy(event.failure.error.stack:find("handler_spec.lua", 1, true))
            end
        end)

        it("in what it closes is ended too", function()
            start(function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        while true do end
                    end,
                })
                error("first")
            end, { timeout = "20ms" })
            send()
            assert.is_truthy(failure().message:find("first", 1, true))
        end)

        it("has no timeout where that is false", function()
            start(function()
                mulligan.sleep("300d")
            end, { timeout = false })
            send()
            rig:advance("300d")
            assert.equal(1, rig:counts().done)
        end)

        it("keeps its slot until its handler has ended", function()
            -- A handler in Lua ends at once when it is cut off; the next one starts only then.
            local order = {}
            start(function(msg)
                local _ <close> = setmetatable({}, {
                    __close = function()
                        order[#order + 1] = "end " .. msg.body
                    end,
                })
                order[#order + 1] = "begin " .. msg.body
                mulligan.sleep("1m")
            end, { timeout = "10s" })
            send "a"
            send "b"
            rig:advance("1m")
            assert.same({ "begin a", "end a", "begin b", "end b" }, order)
        end)
    end)

    it("never runs more often at a time than its consumer's concurrency", function()
        local now, most = 0, 0
        start(function()
            now = now + 1
            most = math.max(most, now)
            mulligan.sleep("1s")
            now = now - 1
        end, { concurrency = 3 })
        for _ = 1, 10 do
            send()
        end
        rig:run_until_empty()
        assert.equal(3, most)
        assert.equal(10, rig:counts().done)
    end)

    it("leaves nothing behind once it has ended", function()
        local weak = setmetatable({}, { __mode = "k" })
        start(function(msg)
            weak[msg] = true
            weak[coroutine.running()] = true
            mulligan.sleep("1s")
            if msg.body == "fail" then
                error("no")
            end
        end)
        send()
        send "fail"
        rig:advance("10s")
        collectgarbage()
        collectgarbage()
        assert.is_nil(next(weak))
    end)
end)
