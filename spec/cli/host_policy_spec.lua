-- --host-policy: what check, table and explain say of a policy before its host's, and how run goes by both.
local json = require("mulligan").json
local process = require "support.process"

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { Near = "Far" }
policy.consumer("Mail"):on("A"):retry(1)
policy.consumer("Mail"):default():retry(2)
policy.consumer("Mail"):on("A"):retry(3)
]]

local HOST = [[
local policy = require "mulligan.policy"
local host = policy.host()
host:max_age("2h")
host:dead_letter_queue("lost")
host:on("Far", { status = 500 }):redeliver(1, "7m")
host:on("B"):retry(1)
host:default():dead_letter()
host:on("B"):retry(2)
host:unrecoverable("Never")
]]

describe("--host-policy", function()
    local folder

    before_each(function()
        folder = process.folder { ["app/policy.lua"] = POLICY, ["etc/host.lua"] = HOST, ["etc/wrong.lua"] = "\nx = " }
    end)

    after_each(function()
        folder:remove()
    end)

    local function said(words)
        words[#words + 1] = "--host-policy"
        words[#words + 1] = "etc/host.lua"
        local answer = folder:mulligan(words)
        assert.same({ 0, "" }, { answer.code, answer.err })
        return answer.out
    end

    local function has(text, part)
        assert.is_truthy(text:find(part, 1, true), text)
    end

    it("gives check the findings of both files", function()
        local out = said { "check", "app/policy.lua" }
        has(out, "app/policy.lua:3: MUL004 ")
        has(out, "etc/host.lua:6: MUL004 ")
        has(out, "app/policy.lua and etc/host.lua: 5 rules in 2 scopes")
        local of = json.decode(said { "check", "app/policy.lua", "--format=json" })
        local places = {}
        for number, finding in ipairs(of.findings) do
            places[number] = ("%s:%d"):format(finding.file, finding.line)
        end
        assert.same({ "etc/host.lua:6", "app/policy.lua:3" }, places)
    end)

    it("lets check advise to include what can be included", function()
        local bus, bare = '\nrequire("mulligan.policy").bus():on("C"):retry()', POLICY:gsub("[^\n]*default[^\n]*\n", "")
        local ending = "the rules of the %s aren't asked; add a default()%s\n"
        folder:write("app/policy.lua", bare)
        has(said { "check", "app/policy.lua" }, ending:format("host", ""))
        folder:write("app/policy.lua", bare .. bus)
        has(said { "check", "app/policy.lua" }, ending:format("bus", ", or include them"))
        folder:write("app/policy.lua", bare .. '\npolicy.host():default():retry()')
        has(folder:mulligan({ "check", "app/policy.lua" }).out, ending:format("host", ", or include them"))
    end)

    it("gives check the mistakes of both files", function()
        folder:write("app/policy.lua", "\n\nrequire('mulligan.policy').host()")
        local answer = folder:mulligan { "check", "app/policy.lua", "--host-policy=etc/wrong.lua" }
        assert.same({ code = 2, out = "", err = [[
mulligan: etc/wrong.lua:2: unexpected symbol near <eof>
mulligan: app/policy.lua:3: policy.host() can't stand here, since there is a host policy; say this there, in ]]
            .. "wrong.lua, or say policy.bus()\n" }, answer)
        folder:write("app/policy.lua", "")
        for path, why in pairs { ["etc/"] = "etc/: this is a folder; a host policy is a file",
            ["amqp://a:b@c"] = "amqp://***@c: this is a URL; a host policy is a file",
            ["etc/none.lua"] = "etc/none.lua: there is no file etc/none.lua" } do
            for _, command in ipairs { { "check" }, { "table" }, { "explain", "--error", "A" } } do
                table.insert(command, 2, "app/policy.lua")
                command[#command + 1] = "--host-policy"
                command[#command + 1] = path
                assert.same({ code = 2, out = "", err = ("mulligan: %s\n"):format(why) }, folder:mulligan(command))
            end
        end
    end)

    it("gives table the host's scope with its own places", function()
        local out = said { "table", "app/policy.lua" }
        has(out, "app/policy.lua and etc/host.lua (generation ")
        has(out, "  host  in force: 3 rules")
        has(out, "    etc/host.lua:5  status is 500")
        has(out, "    etc/host.lua:8  always")
        has(out, "  etc/host.lua:9 host  Never")
        has(out, "  etc/host.lua:6  on(\"B\")  by etc/host.lua:8")
        has(out, "etc/host.lua:3 host")
        out = said { "table", "app/policy.lua", "--consumer", "Mail" }
        has(out, "  host           not asked, since a nearer one has rules: 3 rules")
        has(out, "    app/policy.lua:5  always")
        has(out, "etc/host.lua:4 host")
        local of = json.decode(said { "table", "app/policy.lua", "--format", "json" })
        assert.same({ "host.lua", 5, "host" }, { of.rules[1].file, of.rules[1].line, of.rules[1].scope })
    end)

    it("gives explain the rule with its place", function()
        local out = said { "explain", "app/policy.lua", "--error", "Near", "--field", "status=500" }
        has(out, "by app/policy.lua and etc/host.lua (generation ")
        has(out, "etc/host.lua:5, host, for Far")
        has(out, "max_age         2h  etc/host.lua:3 host")
        local of = json.decode(said { "explain", "app/policy.lua", "--error", "B", "--format=json" })
        assert.same({ file = "host.lua", line = 8, scope = "host", type = "B" }, of.verdict.rule)
    end)

    it("tells a file of the policy's from the host's of the same name", function()
        folder:write("app/policy.lua", 'require "host"')
        folder:write("app/host.lua", '\nrequire("mulligan.policy").consumer("Mail"):on("A"):retry()')
        has(said { "explain", "app/policy.lua", "--error", "A", "--consumer", "Mail" },
            "app/host.lua:2, consumer:Mail, for A")
        has(said { "explain", "app/policy.lua", "--error", "A" }, "etc/host.lua:7, host, for Error")
        folder:write("app/policy.lua", "")
        folder:write("etc/policy.lua", HOST)
        has(folder:mulligan({ "explain", "app/policy.lua", "--error", "A", "--host-policy", "etc/policy.lua" }).out,
            "etc/policy.lua:7, host, for Error")
    end)
end)

-- ---- run -----------------------------------------------------------------------------------------

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("C", { transport = "orders", queue = "work", handler = function()
    m.error { type = "E" }
end })
]]

local function says(scope, note)
    return ('require("mulligan.policy").%s:on("E", function() return true end):discard(%q)\n'):format(scope, note)
end

describe("mulligan run --host-policy", function()
    local folder, job

    local function events(name)
        local list = {}
        for line in job.err():gmatch "([^\n]*)\n" do
            local event = json.decode(line)
            list[#list + 1] = event.event == name and event or nil
        end
        return list
    end

    local function await(name, count)
        process.await(name, function()
            return #events(name) >= count
        end)
        return events(name)[count]
    end

    local function decided()
        local count = #events "decided" + 1
        local sent = folder:mulligan({ "send", "work", "--transport", "sqlite:orders.db" }, { stdin = "x\n" })
        assert.equal(0, sent.code, sent.err)
        return await("decided", count)
    end

    local function start(host)
        folder = process.folder { ["service.lua"] = SERVICE, ["etc/host.lua"] = host,
            ["policy.lua"] = 'require("mulligan.policy").consumer("Other"):default():retry()' }
        job = folder:start_mulligan { "run", "--log-format=json", "--host-policy", "etc/host.lua" }
    end

    after_each(function()
        folder:remove()
    end)

    local function stop()
        job.kill "TERM"
        assert.equal(0, job.wait(), job.err())
    end

    it("goes by both, and by either once it has changed", function()
        start(says("host()", "one"))
        local loaded = await("policy_loaded", 1)
        assert.is_truthy(loaded.text:find("policy.lua and etc/host.lua: 2 rules, generation ", 1, true), loaded.text)
        local verdict = decided()
        assert.equal("one", verdict.note)
        assert.same({ file = "host.lua", line = 1, scope = "host", type = "E" }, verdict.rule)

        folder:write("etc/host.lua", says("host()", "two"))
        loaded = await("policy_loaded", 2)
        assert.is_truthy(loaded.text:find("^policy.lua and etc/host.lua: 2 rules, generation %x+$"), loaded.text)
        assert.same({ "two", loaded.generation }, { decided().note, loaded.generation })

        folder:write("policy.lua", says('consumer("C")', "three"))
        await("policy_loaded", 3)
        assert.equal("three", decided().note)
        stop()
    end)

    it("goes on where the host's is broken, and takes the next at SIGHUP", function()
        start(says("host()", "one"))
        local loaded = await("policy_loaded", 1)
        folder:write("etc/host.lua", "\n" .. says("bus()", "two"))
        local refused = await("policy_refused", 1)
        assert.is_truthy(refused.text:find "^host.lua:2: policy.bus%(%) can't stand in a host policy, ", refused.text)
        assert.is_truthy(refused.text:find("; generation " .. loaded.generation .. " runs on", 1, true), refused.text)
        local verdict = decided()
        assert.same({ "one", loaded.generation }, { verdict.note, verdict.generation })
        folder:write("etc/host.lua", says("host()", "three"))
        job.kill "HUP"
        await("policy_loaded", 2)
        assert.equal("three", decided().note)
        stop()
    end)

    it("doesn't start with a broken one", function()
        start "\nx = "
        assert.equal(2, job.wait())
        assert.equal("mulligan: etc/host.lua:2: unexpected symbol near <eof>\n", job.err())
    end)
end)
