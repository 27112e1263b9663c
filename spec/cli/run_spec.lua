-- mulligan run: what it prints and logs, and what it says of a service.lua or policy that is wrong.
local database = require "support.database"
local json = require("mulligan").json
local process = require "support.process"
local queues = require "support.queues"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("OrderHandler", {
    transport = "orders",
    queue = "work",
    handler = function(msg)
        local order = m.json.decode(msg.body)
        if order.fails and msg.calls < order.fails then
            m.error { type = order.type, message = order.message, code = 5 }
        end
    end,
})
]]

local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Retried"):retry(3, "1ms", "constant")
bus:on("Redelivered"):redeliver { "5ms", "10ms" }
bus:on("Dropped"):discard("not wanted")
bus:on("Put aside"):dead_letter("aside")
]]

local KEYS = [[time level event text message consumer transport attempt redeliveries calls deliveries age_ms
    error action delay_ms queue reason note tier step of rule fallback generation times]]

describe("mulligan run", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = MULLIGAN, ["policy.lua"] = POLICY }
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(lines)
        assert.same({ code = 0, out = "", err = "" }, folder:mulligan({ "send", "work", "--transport", "orders" }, {
            stdin = lines,
        }))
    end

    local WORK = [[
{"well":true}
{"type":"Retried","fails":2,"message":"busy"}
{"type":"Redelivered","fails":1,"message":"down"}
{"type":"Dropped","fails":1,"message":"twice"}
{"type":"Put aside","fails":9,"message":"two\nlines"}
{"type":"Unknown","fails":9}
not JSON
]]
    local SUMMARY = "done 3, retried 2, redelivered 1, dead-lettered 3, discarded 1\n"

    it("works until the queue is empty, and gives a summary", function()
        send(WORK)
        local run = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, SUMMARY }, { run.code, run.out }, run.err)
        assert.equal(2, queues.depth("sqlite:" .. folder:path("orders.db"), "error").ready)
        assert.equal(1, queues.depth("sqlite:" .. folder:path("orders.db"), "aside").ready)
    end)

    it("doesn't wait for what only a paused consumer would take, and ends in 1", function()
        folder:write("service.lua", (MULLIGAN:gsub('queue = "work"', '%0, paused = true')))
        send(WORK)
        local run = folder:mulligan { "run", "--until-empty" }
        assert.equal(1, run.code, run.err)
        assert.is_truthy(run.err:find("mulligan: 7 message(s) are left to consumers that are paused, which "
            .. "nothing here resumes\n", 1, true), run.err)
        assert.equal(7, queues.depth("sqlite:" .. folder:path("orders.db"), "work").ready)
    end)

    it("has nothing to do with an empty queue", function()
        local run = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, "done 0, retried 0, redelivered 0, dead-lettered 0, discarded 0\n" }, { run.code, run.out })
    end)

    it("logs a line an event, with all that a person asks for", function()
        send(WORK)
        local err = folder:mulligan({ "run", "--until-empty" }).err
        local function logged(level, pattern)
            pattern = "\n%d+%-%d%d%-%d%dT%d%d:%d%d:%d%d%.%d%d%dZ " .. level .. " +"
                .. pattern:gsub("ID", "message %%x+, consumer OrderHandler") .. "\n"
            assert.is_truthy(("\n" .. err):find(pattern), pattern .. "\n" .. err)
        end
        logged("info", "retry: ID: Retried: busy; attempt 1 of 4, again in 1ms; policy.lua:2")
        logged("info", "retry: ID: Retried: busy; attempt 2 of 4, again in 1ms; policy.lua:2")
        logged("warning", "redelivery: ID: Redelivered: down; attempt 1 of 1, redelivery 1 of 2 in 5ms; policy.lua:3")
        logged("info", "discard: ID: Dropped: twice; attempt 1 of 1, "
            .. "discarded after 1 call and 0 redeliveries: not wanted; policy.lua:4")
        logged("error", "dead letter: ID: Put aside: two lines; attempt 1 of 1, "
            .. "to aside after 1 call and 0 redeliveries: rule; policy.lua:5")
        logged("error", "dead letter: ID: Unknown; attempt 1 of 1, "
            .. "to error after 1 call and 0 redeliveries: no_rule; no rule")
        logged("error", "dead letter: ID: MessageDeserializationError: not JSON: [^\n]*; "
            .. "attempt 1 of 1, to error after 1 call and 0 redeliveries: unrecoverable; no rule")
    end)

    it("logs when a rate limit starts and ends, and what it keeps", function()
        folder:write("policy.lua", [[
local policy = require "mulligan.policy"
policy.bus():default():retry(1, 0)
policy.bus():rate_limit { after = 2, keep = true, wait = "1ms" }
policy.bus():rate_limit { after = 1, wait = "1ms", per = policy.header("tenant") }]])
        folder:write("service.lua", (MULLIGAN:gsub("handler = .*", [[
    handler = function()
        CALLS = (CALLS or 0) + 1
        if CALLS < 3 then m.error { type = "Down", message = "no database" } end
    end,
})]])))
        assert.equal(0, folder:mulligan({ "send", "work", "--transport", "orders", "--id", "o-1", "--header",
            "tenant=acme" }, { stdin = "{}" }).code)
        local log = folder:mulligan({ "run", "--until-empty" }).err
        log = log:gsub("%d+ ms", "N ms"):gsub("let through: %d", "let through: N")
        for _, words in ipairs {
            "warning consumer 'OrderHandler': rate limit started for header tenant 'acme', after Down; "
                .. "messages that wait here: 0; the next call begins in N ms; policy.lua:4\n",
            "warning consumer 'OrderHandler': rate limit started, after Down; "
                .. "messages that wait here: 0; the next call begins in N ms; policy.lua:3\n",
            "info    kept: message o-1, consumer OrderHandler: Down: no database; a rate limit is in force, "
                .. "so it comes back in N ms, uncounted\n",
            "info    consumer 'OrderHandler': rate limit ended for header tenant 'acme' after N ms; "
                .. "calls that it let through: N\n",
            "info    consumer 'OrderHandler': rate limit ended after N ms; calls that it let through: N\n",
        } do
            assert.is_truthy(log:find(words, 1, true), words .. "\n" .. log)
        end
    end)

    it("has words for a delay of 0", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():retry(1, 0):then_redeliver(1, 0)')
        send '{"type":"Gone","fails":2}\n'
        local err = folder:mulligan({ "run", "--until-empty" }).err
        assert.is_truthy(err:find("; attempt 1 of 2, again at once; policy.lua:1\n", 1, true), err)
        assert.is_truthy(err:find("; attempt 2 of 2, redelivery 1 of 1 at once; policy.lua:1\n", 1, true), err)
    end)

    it("logs JSON with every key in every line", function()
        send(WORK)
        local err = folder:mulligan({ "run", "--until-empty", "--log-format=json", "--log-level", "debug" }).err
        local actions = {}
        for line in err:gmatch("[^\n]+") do
            local event = json.decode(line)
            -- decode leaves nulls out, so the keys are looked for in the text.
            for key in KEYS:gmatch("%S+") do
                assert.is_truthy(line:find(("%q:"):format(key), 1, true), key)
            end
            if event.event == "decided" then
                actions[event.error.type .. " " .. event.attempt] = event
            end
        end
        local retried = actions["Retried 2"]
        assert.same({ "retry", 1, "retry", 2, 3, "info", "OrderHandler", "orders", 2, 2 }, {
            retried.action, retried.delay_ms, retried.tier, retried.step, retried.of, retried.level, retried.consumer,
            retried.transport, retried.attempt, retried.calls,
        })
        assert.same({ file = "policy.lua", line = 2, scope = "bus", type = "Retried" }, retried.rule)
        assert.same({ type = "Put aside", message = "two\nlines" }, actions["Put aside 1"].error)
        assert.same({ "aside", "rule", "error" }, {
            actions["Put aside 1"].queue, actions["Put aside 1"].reason, actions["Put aside 1"].level,
        })
        assert.same({ "not wanted", "info" }, { actions["Dropped 1"].note, actions["Dropped 1"].level })
        assert.equal("warning", actions["Redelivered 1"].level)
    end)

    it("says when it starts what runs", function()
        folder:write("service.lua", MULLIGAN .. [[
            m.consumer("Other", { transport = "orders", queue = "other", handler = print })]])
        local mulligan = require "mulligan"
        local policy = assert(mulligan.load(folder:path("policy.lua")))
        local text = ("policy.lua: 4 rules, generation %s; consumers OrderHandler, Other"):format(policy:generation())
        local run = folder:mulligan { "run", "--until-empty" }
        assert.is_truthy(run.err:find("^[%d-]+T[%d:.]+Z info    policy_loaded: ([^\n]*)\n"), run.err)
        assert.equal(text, run.err:match("policy_loaded: ([^\n]*)\n"))
        run = folder:mulligan { "run", "--until-empty", "--log-format", "json" }
        local event = json.decode((run.err:match("^[^\n]*")))
        assert.same({ "policy_loaded", "info", text, policy:generation() }, {
            event.event, event.level, event.text, event.generation,
        })
        policy:close()
    end)

    it("warns of scopes that are for nobody, with the name that was probably meant", function()
        folder:write("policies/policy.lua", 'local policy = require("mulligan.policy")\n' .. [[
policy.bus():default():discard()
policy.consumer("OrdreHandler"):default():retry()
policy.consumer("OrderHandler"):default():retry()
policy.transport("order"):max_age("1h")
policy.consumer("Elsewhere"):default():retry()]])
        folder:write("service.lua", (MULLIGAN:gsub('"policy.lua"', '"policies/policy.lua"')))
        local run = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, run.code, run.err)
        local warnings = {}
        for line in run.err:gmatch " warning ([^\n]*)" do
            warnings[#warnings + 1] = line
        end
        table.sort(warnings)
        assert.same({
            'policies/policy.lua:3: there is no consumer "OrdreHandler"; did you mean "OrderHandler"?',
            'policies/policy.lua:5: there is no transport "order"; did you mean "orders"?',
            'policies/policy.lua:6: there is no consumer "Elsewhere"',
        }, warnings)
    end)

    it("warns of so many scopes for nobody only, and soon", function()
        local lines, name = { 'local policy = require "mulligan.policy"' }, ("x"):rep(40)
        for number = 1, 1000 do
            lines[#lines + 1] = ("policy.consumer('%s%d'):default():retry()"):format(name, number)
        end
        folder:write("policy.lua", table.concat(lines, "\n"))
        local run = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, run.code, run.err)
        local _, count = run.err:gsub("there is no consumer", "")
        assert.equal(10, count)
        assert.is_truthy(run.err:find("warning policy.lua: 990 more scopes are for nobody here\n", 1, true), run.err)
    end)

    -- How many files may be open before the first is too few differs from machine to machine.
    for _, command in ipairs { "run --until-empty", "send work --transport orders" } do
        it(("says which limit is too low where only few files may be open: %s"):format(command), function()
            local function under(limit)
                local ran = folder:start({ "sh", "-c", ('ulimit -n %d; exec "$0" %s'):format(limit, command),
                    process.mulligan })
                return ran.wait(), ran.err()
            end
            local limit, code, err = 3
            repeat
                limit = limit + 1
                code, err = under(limit)
            until code ~= 127 -- Below that it is the dynamic linker that can open nothing.
            local first = limit
            while code ~= 0 and limit < 64 do
                assert.equal(2, code, err)
                local of = ("raise the limit of open files (ulimit -n), which is %d\n"):format(limit)
                assert.is_truthy(err:find(of, 1, true), err)
                assert.is_truthy(err:find("^mulligan: [^\n]* file descriptors are needed, [^\n]*\n$"), err)
                limit = limit + 1
                code, err = under(limit)
            end
            assert.equal(0, code, err)
            assert.is_true(limit > first + 3, "the engine's first files, and then the transport's")
        end)
    end

    it("names the place of a matcher that failed once, and no half of a character", function()
        local failing = 'bus:on("Failing", function(err) return err.nothing > 1 end):retry()'
        folder:write("policy.lua", POLICY .. failing)
        local long = ("\u{1F600}"):rep(200)
        for shift = 0, 3 do
            send(('{"type":"Failing","fails":1,"message":"%s%s"}\n'):format(("x"):rep(shift), long))
        end
        local err = folder:mulligan({ "run", "--until-empty" }).err
        local failed = select(2, err:gsub("OrderHandler: policy.lua:6: attempt to compare number with nil\n", ""))
        assert.equal(4, failed, err)
        assert.is_truthy(utf8.len(err))
        assert.is_nil(err:find("?", 1, true))
        assert.equal(4, select(2, err:gsub("\u{1F600}%.%.%.; attempt", "")), err)
        folder:write("policy.lua", POLICY .. failing:gsub("err.nothing", "\n%0"))
        send '{"type":"Failing","fails":1}\n'
        err = folder:mulligan({ "run", "--until-empty" }).err
        assert.is_truthy(err:find("OrderHandler: policy.lua:6: policy.lua:7: attempt to compare", 1, true), err)
    end)

    it("has a line also where what it says is no UTF-8", function()
        folder:write("policy.lua", POLICY .. 'bus:on("Odd", function() error("\\xFF", 0) end):dead_letter()')
        send '{"type":"Odd","fails":1}\n'
        database.rows(folder:path("orders.db"), "UPDATE messages SET id = CAST(x'ff6964' AS TEXT), "
            .. "type = CAST(x'74ff' AS TEXT), key = CAST(x'ff' AS TEXT)")
        local run = folder:mulligan { "run", "--until-empty", "--log-format", "json" }
        local seen = {}
        for line in run.err:gmatch("[^\n]+") do
            local event = json.decode(line)
            if event.message then
                seen[#seen + 1] = { event.event, event.text, event.message.id, event.message.type, event.message.key }
            end
        end
        assert.same({
            { "matcher_failed", "policy.lua:6: ?", "?id", "t?", "?" },
            { "decided", nil, "?id", "t?", "?" },
        }, seen, run.err)
    end)

    it("leaves out what is below the level", function()
        send(WORK)
        local err = folder:mulligan({ "run", "--until-empty", "--log-level", "error" }).err
        assert.equal(3, select(2, err:gsub("\n", "")))
        assert.equal(3, select(2, err:gsub(" error   dead letter: ", "")))
    end)

    it("shows what a transport says on a thread of its own", function()
        local err = folder:mulligan({ "run", "--until-empty", "--log-level", "debug" }).err
        assert.is_truthy(err:find(" debug +transport orders: [^\n]+\n"), err)
    end)

    it("takes messages that another process sends while it runs, and ends well at SIGTERM", function()
        folder:write("service.lua", MULLIGAN .. [[
            m.consumer("Slow", { transport = "orders", queue = "slow", handler = function(msg)
                local file = assert(io.open("ledger", "a"))
                file:write("began\n"):flush()
                repeat m.sleep("20ms") until io.open("go")
                file:write("ended\n"):close()
            end })]])
        for _, signal in ipairs { "TERM", "INT" } do
            os.remove(folder:path("ledger"))
            os.remove(folder:path("go"))
            local job = folder:start_mulligan { "run" }
            assert.equal(0, folder:mulligan({ "send", "slow", "--transport", "orders" }, { stdin = "x\n" }).code)
            process.await("the handler", function()
                return folder:read("ledger") == "began\n"
            end)
            job.kill(signal)
            folder:write("go", "")
            assert.equal(0, job.wait(), job.err())
            assert.equal("began\nended\n", folder:read("ledger"))
            assert.equal("", job.out())
        end
        local url = "sqlite:" .. folder:path("orders.db")
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, queues.depth(url, "slow"))
    end)

    -- As many as there can be until it is gone: some find each step of its end.
    for _, signal in ipairs { "HUP", "TERM", "INT" } do
        it("ends in 0 whenever another SIG" .. signal .. " comes while it is being stopped", function()
            for _ = 1, 10 do
                local job = folder:start_mulligan { "run" }
                process.await("the consumers", function()
                    return job.err():find("policy_loaded", 1, true)
                end)
                job.kill("TERM")
                os.execute(("while kill -s %s %d 2>/dev/null; do :; done"):format(signal, job.pid()))
                assert.equal(0, job.wait(), job.err())
            end
        end)
    end

    it("tells a script that a signal came before the queues were empty", function()
        send '{"type":"Redelivered","fails":1}\n'
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():redeliver { "1h" }')
        for _, signal in ipairs { "TERM", "INT" } do
            local job = folder:start_mulligan { "run", "--until-empty" }
            process.await("the consumers", function()
                return job.err():find("policy_loaded", 1, true)
                    and queues.depth("sqlite:" .. folder:path("orders.db"), "work").delayed == 1
            end)
            job.kill(signal)
            assert.equal(1, job.wait(), job.err())
            assert.is_truthy(job.err():find("\nmulligan: stopped before the queues were empty\n$"), job.err())
            assert.is_truthy(job.out():find("^done 0, retried 0, redelivered %d, [^\n]*\n$"), job.out())
        end
    end)

    it("shows what a handler prints, line by line", function()
        folder:write("service.lua", MULLIGAN:gsub("local order", "print(msg.body) local order"))
        send '{"well":true}\n'
        local job = folder:start_mulligan { "run" }
        process.await("the print", function()
            return job.out() == '{"well":true}\n'
        end)
        job.kill("TERM")
        assert.equal(0, job.wait())
    end)

    it("reads a file in another folder, whose paths are relative to it", function()
        folder:write("deep/down/service.lua", 'require "beside"\n' .. MULLIGAN)
        folder:write("deep/down/beside.lua", "")
        folder:write("deep/down/policy.lua", "")
        local run = folder:mulligan { "run", "deep/down/service.lua", "--until-empty" }
        assert.equal(0, run.code, run.err)
        assert.is_truthy(folder:read("deep/down/orders.db"))
        assert.is_nil(folder:read("orders.db"))
    end)

    describe("refuses", function()
        local function refused(err, ...)
            local run = folder:mulligan { "run", ... }
            assert.same({ code = 2, out = "", err = err }, run)
        end

        it("a policy that is wrong, with every mistake", function()
            folder:write("policy.lua", 'local bus = require("mulligan.policy").bus()\nbus:on("A")\nbus:on("B"):rety()')
            local run = folder:mulligan { "run" }
            assert.equal(2, run.code)
            assert.equal("", run.out)
            local lines = {}
            for line in run.err:gmatch("[^\n]+") do
                lines[#lines + 1] = line
            end
            assert.equal(2, #lines, run.err)
            assert.is_truthy(lines[1]:find("^mulligan: policy.lua:2: "), run.err)
            assert.is_truthy(lines[2]:find("^mulligan: policy.lua:3: "), run.err)
            assert.is_nil(run.err:find("traceback", 1, true))
        end)

        it("a file that isn't there", function()
            refused("mulligan: nope.lua: can't be read: No such file or directory\n", "nope.lua")
            os.remove(folder:path("service.lua"))
            refused("mulligan: service.lua: can't be read: No such file or directory; "
                .. "to name another: mulligan run path/service.lua\n")
        end)

        it("a file of the name that it had at first", function()
            os.rename(folder:path("service.lua"), folder:path("mulligan.lua"))
            refused("mulligan: service.lua: can't be read: No such file or directory; "
                .. "rename mulligan.lua to service.lua, as the file is called now\n")
        end)

        it("a folder", function()
            refused("mulligan: .: can't be read: it is no file\n", ".")
        end)

        it("a file that is no Lua, in one line", function()
            folder:write("service.lua", "x = \n\ny = = 1")
            refused("mulligan: service.lua:3: unexpected symbol near '='\n")
        end)

        it("a file that raises, in one line", function()
            folder:write("service.lua", "\nerror('two\\nlines')")
            refused("mulligan: service.lua:2: two\n")
            folder:write("service.lua", "error({})")
            refused("mulligan: service.lua: error was called with a table, where a text says more\n")
            folder:write("service.lua", "error(setmetatable({}, { __tostring = error }))")
            refused("mulligan: service.lua: error was called with a table, where a text says more\n")
            folder:write("service.lua", 'require("mulligan").error { type = "Early", message = "no" }')
            refused("mulligan: service.lua: Early: no\n")
        end)

        it("a file that forgot to require its words, and says which line it lacks", function()
            folder:write("service.lua", '\nm.policy "policy.lua"')
            refused("mulligan: service.lua:2: attempt to index a nil value (global 'm'); "
                .. 'add the line: local m = require "mulligan"\n')
            folder:write("service.lua", 'mulligan.policy "policy.lua"')
            refused("mulligan: service.lua:1: attempt to index a nil value (global 'mulligan'); "
                .. 'add the line: local mulligan = require "mulligan"\n')
            folder:write("service.lua", 'policy "policy.lua"')
            refused("mulligan: service.lua:1: attempt to call a nil value (global 'policy'); did you mean m.policy?\n")
            folder:write("service.lua", "orders.db()")
            refused("mulligan: service.lua:1: attempt to index a nil value (global 'orders')\n")
        end)

        it("what is wrong in it, all at once, by line", function()
            folder:write("service.lua", [[
local m = require "mulligan"
m.policy(5)
m.policy "policy.lua"
m.policy "other.lua"
m.transport("orders", "sqlite:orders.db")
m.transport("orders", "sqlite:again.db")
m.transport("bad", "no url")
m.transport()
m.consumer("A", { transport = "ordres", queue = "a", handler = print })
m.consumer("A", { transport = "orders", queue = "a", handler = print })
m.consumer("B", {
    transport = "orders", queue = "b", handlr = print, concurrency = 1.5, timeout = 30, max_body = "1TB" })
m.consumer("C")
m.consumer()
m.consumer("D", { transport = "orders", queue = "d", handler = m.exec "true" })
m.consumer("E", { transport = "orders", queue = "e", handler = m.http "127.0.0.1" })
m.on("decided", print)
]])
            refused([[
mulligan: service.lua:2: m.policy takes the policy's file, as in m.policy "policy.lua"
mulligan: service.lua:4: there is a policy already, in line 3; a service.lua has one
mulligan: service.lua:6: there is a transport "orders" already; give this one another name
mulligan: service.lua:7: the URL of transport "bad" must be a text such as "sqlite:orders.db", not "no url"
mulligan: service.lua:8: m.transport takes a name and a URL, as in m.transport("orders", "sqlite:orders.db")
mulligan: service.lua:9: consumer "A": there is no transport "ordres"; did you mean "orders"?
mulligan: service.lua:10: there is a consumer "A" already; give this one another name
mulligan: service.lua:11: consumer "B": concurrency must be a whole number from 1, not 1.5
mulligan: service.lua:11: consumer "B": handler is missing
mulligan: service.lua:11: consumer "B": max_body must be a number of bytes or a text such as "16MiB", not "1TB"
mulligan: service.lua:11: consumer "B": timeout 30 has no unit; "30ms" or "30s"?
mulligan: service.lua:11: consumer "B": unknown option "handlr"; did you mean "handler"?
mulligan: service.lua:13: consumer "C": options must be a table, not nil
mulligan: service.lua:14: m.consumer takes a name and options, as in m.consumer("OrderHandler", { ... })
mulligan: service.lua:15: m.exec takes a table, as in { "./invoice", "--one" }, not "true"
mulligan: service.lua:16: m.http: the URL must be one such as "http://127.0.0.1:8080/mail", not "127.0.0.1"
mulligan: service.lua:17: m.on is not in this version yet
]])
        end)

        it("types of messages that two consumers of a queue take, each in its line", function()
            folder:write("service.lua", [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "memory:")
m.consumer("A", { transport = "orders", queue = "a", types = { "Placed", "Mail" }, handler = print })
m.consumer("B", { transport = "orders", queue = "a", types = { "Mail" }, handler = print })
m.consumer("C", { transport = "orders", queue = "a", handler = print })
m.consumer("D", { transport = "orders", queue = "a", handler = print })
m.consumer("E", { transport = "orders", queue = "b", types = { "Mail" }, handler = print })
m.consumer("F", { transport = "orders", queue = "c", handler = print })
m.consumer("G", { transport = "orders", queue = "c", handler = print })
m.consumer("H", { transport = "orders", queue = "d", types = { "Mail", "Mail" }, handler = print })
m.consumer("I", { transport = "orders", queue = "d", types = {}, handler = print })
m.consumer("J", { transport = "orders", queue = "d", types = { 1 }, handler = print })
m.consumer("K", { transport = "orders", queue = "d", types = "Mail", handler = print })
]])
            refused([[
mulligan: service.lua:5: consumer "B": messages of type "Mail" on the queue "a" are taken by ]]
                .. [[consumer "A" already; name each type once
mulligan: service.lua:7: consumer "D": where consumers of the queue "a" name `types`, ]]
                .. [[only one may take the rest, and "C" does; give one of them types
mulligan: service.lua:11: consumer "H": types names "Mail" twice
mulligan: service.lua:12: consumer "I": types must name a type; ]]
                .. [[leave it out to take what no other consumer of the queue names
mulligan: service.lua:13: consumer "J": types number 1 must be a name in UTF-8, not 1
mulligan: service.lua:14: consumer "K": types must be a list of names, not "Mail"
]])
        end)

        it("words that m doesn't have, each in its line, and goes on", function()
            folder:write("service.lua", [[
local m = require "mulligan"
m.polcy "policy.lua"
m.transprot("orders", "sqlite:orders.db")
m.frobnicate()
m.exce { "true" }
m.consumer("A", { transport = "orders", queue = "a", handler = m.exec })
m.consumer("B", { transport = "orders", queue = "b", handler = m.htttp "x" })
m[1]()
m.consumer("C", { transport = "orders", queue = "c", handler = function() m.exec { "true" } end, x = 1 })
]])
            refused([[
mulligan: service.lua:2: "polcy" is no word of a service.lua; did you mean m.policy?
mulligan: service.lua:3: "transprot" is no word of a service.lua; did you mean m.transport?
mulligan: service.lua:4: "frobnicate" is no word of a service.lua; ]]
                .. [[there are policy, transport, consumer, patterns, exec, http, run, fetch, worker, error, json, ]]
                .. [[send and sleep
mulligan: service.lua:5: "exce" is no word of a service.lua; did you mean m.exec?
mulligan: service.lua:6: consumer "A": there is no transport "orders"
mulligan: service.lua:7: "htttp" is no word of a service.lua; did you mean m.http?
mulligan: service.lua:7: consumer "B": there is no transport "orders"
mulligan: service.lua:8: 1 is no word of a service.lua; ]]
                .. [[there are policy, transport, consumer, patterns, exec, http, run, fetch, worker, error, json, ]]
                .. [[send and sleep
mulligan: service.lua:9: consumer "C": unknown option "x"; ]]
                .. [[there are concurrency, fault_headers, handler, max_body, paused, prefetch, queue, timeout, ]]
                .. [[transport and types
mulligan: service.lua:9: consumer "C": there is no transport "orders"
]])
        end)

        it("what is wrong in it and in its policy, together", function()
            folder:write("policy.lua", 'require("mulligan.policy").bus():on("A")')
            folder:write("service.lua", (MULLIGAN:gsub('"sqlite:orders.db"', '"redis://u:secret@h"')))
            local policy_mistake = 'the rule for "A" has no action; :retry, :redeliver, :dead_letter or :discard '
                .. "must follow\n"
            refused("mulligan: service.lua:3: transport 'orders': 'redis:' is not in this version yet\n"
                .. "mulligan: policy.lua:1: " .. policy_mistake)
            os.remove(folder:path("policy.lua"))
            refused("mulligan: service.lua:3: transport 'orders': 'redis:' is not in this version yet\n"
                .. "mulligan: policy.lua: there is no file policy.lua\n")
            folder:write("service.lua", (MULLIGAN:gsub('queue = "work"', "queue = 1")))
            refused('mulligan: service.lua:4: consumer "OrderHandler": queue must be a name in UTF-8, not 1\n'
                .. "mulligan: policy.lua: there is no file policy.lua\n")
        end)

        it("a file without a policy, or without consumers", function()
            folder:write("service.lua", "")
            refused 'mulligan: service.lua: m.policy is missing; name its file, as in m.policy "policy.lua"\n'
            folder:write("service.lua", 'require("mulligan").policy "policy.lua"')
            refused "mulligan: service.lua: there is no m.consumer, so there is nothing to run\n"
        end)

        it("URLs that are none, without their passwords", function()
            folder:write("service.lua", [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("a", "nats//u:secret@h")
m.transport("b", "am_qp://u:sec/secret@1@h")
m.transport("c", "memory:")
m.consumer("C", { transport = "redis://:secret@h", queue = "q", handler = print })
]])
            refused([[
mulligan: service.lua:3: the URL of transport "a" must be a text such as "sqlite:orders.db", not "nats//***@h"
mulligan: service.lua:4: the URL of transport "b" must be a text such as "sqlite:orders.db", not "am_qp://***@h"
mulligan: service.lua:6: consumer "C": there is no transport "redis://***@h"
]])
        end)

        it("a transport that can't be opened, without its password", function()
            folder:write("service.lua", (MULLIGAN:gsub("sqlite:orders.db", "pigeon://me:secret@coop/1")))
            local run = folder:mulligan { "run" }
            assert.equal(2, run.code)
            assert.is_truthy(run.err:find("^mulligan: service.lua:3: transport 'orders': "), run.err)
            assert.is_nil(run.err:find("secret", 1, true))
        end)

        it("a consumer of the queue that its dead letters go to", function()
            folder:write("service.lua", (MULLIGAN:gsub('queue = "work"', 'queue = "aside"')))
            local run = folder:mulligan { "run" }
            assert.equal(2, run.code)
            assert.is_truthy(run.err:find("^mulligan: policy.lua:5: consumer 'OrderHandler' reads the queue 'aside'"),
                run.err)
        end)
    end)
end)
