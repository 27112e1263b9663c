-- mulligan run, and a policy that changes under it: what messages get, and what the log says.
local json = require("mulligan").json
local process = require "support.process"

local MULLIGAN = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("C", { transport = "orders", queue = "work", handler = function(msg)
    m.error { type = "E", message = msg.body }
end })
]]

-- Policies that tell themselves apart by what they say of a message.
local function says(note, before)
    return ('%srequire("mulligan.policy").bus():default():discard(%q)\n'):format(before or "", note)
end

describe("mulligan run, while its policy changes,", function()
    local folder, job

    local function run(command)
        assert(os.execute(("cd '%s' && %s"):format(folder.root, command)))
    end

    -- save writes a file as editors do: under another name, and renames it.
    local function save(name, text)
        folder:write(name .. "~", text)
        run(("mv '%s~' '%s'"):format(name, name))
    end

    -- events gives the lines of the log so far: those of this name, where it is given.
    local function events(name)
        local list = {}
        for line in job.err():gmatch "([^\n]*)\n" do
            local event = json.decode(line)
            if not name or event.event == name then
                list[#list + 1] = event
            end
        end
        return list
    end

    local function await(what, count)
        process.await(what, function()
            return #events(what) >= count
        end)
        return events(what)[count]
    end

    local function start(files, ...)
        folder = process.folder(files)
        if not folder:read "service.lua" then
            folder:write("service.lua", MULLIGAN)
        end
        job = folder:start_mulligan { "run", "--log-format=json", ... }
        return await("policy_loaded", 1)
    end

    -- decided sends a message, and gives the line of what became of it.
    local function decided()
        local count = #events "decided" + 1
        local id = ("m-%d"):format(count)
        local sent = folder:mulligan({ "send", "work", "--transport", "orders", "--id", id }, { stdin = "x\n" })
        assert.same({ code = 0, out = "", err = "" }, sent)
        return await("decided", count)
    end

    -- becomes awaits that the policy was loaded `count` times, and looks who decides then.
    local function becomes(note, count)
        local loaded = await("policy_loaded", count)
        local verdict = decided()
        assert.same({ note, loaded.generation }, { verdict.note, verdict.generation })
        assert.equal(count, #events "policy_loaded")
        assert.equal(("policy.lua: %s, generation %s"):format(loaded.text:match ": (%d+ rules?),", loaded.generation),
            loaded.text)
    end

    after_each(function()
        if job then
            job.kill "TERM"
            local code, err = job.wait(), job.err()
            folder:remove()
            job = nil
            assert.equal(0, code, err)
        end
    end)

    it("works by what was written in place, and by what was saved", function()
        start { ["policy.lua"] = says "one" }
        assert.equal("one", decided().note)
        folder:write("policy.lua", says "two")
        becomes("two", 2)
        save("policy.lua", says "three")
        becomes("three", 3)
        save("policy.lua", says "four")
        becomes("four", 4)
    end)

    it("warns of a scope that is for nobody, whenever one is loaded", function()
        start { ["policy.lua"] = says "one" }
        for count = 2, 3 do
            local misspelt = 'require("mulligan.policy").consumer("c"):max_attempts(3); '
            save("policy.lua", says(tostring(count), ("\n"):rep(count) .. misspelt))
            becomes(tostring(count), count)
            local warning = ('policy.lua:%d: there is no consumer "c"; did you mean "C"?'):format(count + 1)
            local last = events "log"
            assert.same({ "warning", warning }, { last[#last].level, last[#last].text })
        end
    end)

    it("follows links that are swapped: its own, and that of a ConfigMap", function()
        start { ["policy.lua"] = says "one", ["v2/policy.lua"] = says "two", ["..2026_01/policy.lua"] = says "three",
            ["..2026_02/policy.lua"] = says "four" }
        run "ln -s v2/policy.lua new && mv -T new policy.lua"
        becomes("two", 2)
        run "ln -s ..2026_01 ..data && ln -s ..data/policy.lua new && mv -T new policy.lua"
        becomes("three", 3)
        run "ln -s ..2026_02 ..data_tmp && mv -T ..data_tmp ..data && rm -r ..2026_01"
        becomes("four", 4)
    end)

    it("reads the files that it requires, and those that were missing", function()
        start { ["policy.lua"] = says("main", 'require "rules.more"\n'), ["rules/more.lua"] = "" }
        save("rules/more.lua", 'require("mulligan.policy").bus():on("E"):discard("more")')
        becomes("more", 2)
        save("rules/more.lua", 'require "rules.missing"')
        local refused = await("policy_refused", 1)
        assert.is_truthy(refused.text:find('^rules/more.lua:1: require%("rules.missing"%): there is no file '
            .. "rules/missing.lua; generation " .. refused.generation .. " runs on$"), refused.text)
        assert.equal("more", decided().note)
        folder:write("rules/missing.lua", "")
        becomes("main", 3)
    end)

    it("goes on by the old one where the new one is broken, says where, and takes the next", function()
        local first = start { ["policy.lua"] = says "one" }
        for number, broken in ipairs { '\nbus("x")', "\nx = ", 'error("\\n")' } do
            save("policy.lua", broken)
            local refused = await("policy_refused", number)
            assert.same({ "error", first.generation }, { refused.level, refused.generation })
            assert.is_truthy(refused.text:find "^policy.lua:%d: .*; generation %x+ runs on$", refused.text)
            local verdict = decided()
            assert.same({ "one", first.generation }, { verdict.note, verdict.generation })
        end
        save("policy.lua", says "two")
        becomes("two", 2)
    end)

    it("goes on by its rules where the file is emptied, for good or while it is written", function()
        start { ["policy.lua"] = says "one" }
        folder:write("policy.lua", "")
        local refused = await("policy_refused", 1)
        assert.is_truthy(refused.text:find "^policy.lua: there is no rule left, where the policy in force has 1; ")
        assert.equal("one", decided().note)
        save("policy.lua", says "two")
        becomes("two", 2)
    end)

    it("warns at its start of a policy without rules, and takes the first", function()
        start { ["policy.lua"] = "" }
        local warning = await("log", 1)
        assert.same({ "warning", "policy.lua: the policy has no rules: every failure is a dead letter" },
            { warning.level, warning.text })
        save("policy.lua", says "one")
        becomes("one", 2)
    end)

    it("says of an override without rules that it decides", function()
        start { ["policy.lua"] = 'require("mulligan.policy").bus():override(function() end)' }
        local warning = await("log", 1)
        assert.is_truthy(warning.text:find("policy.lua: the policy has no rules: what no override decides", 1, true))
        assert.is_nil(await("policy_loaded", 1).text:find "dead letter")
        save("policy.lua", says "one")
        becomes("one", 2)
        save("policy.lua", 'require("mulligan.policy").bus():override(function() end)')
        assert.is_nil(await("policy_loaded", 3).text:find "dead letter")
    end)

    it("refuses what it would refuse at its start", function()
        start { ["policy.lua"] = says "one" }
        save("policy.lua", '\nrequire("mulligan.policy").bus():default():dead_letter("work")')
        assert.is_truthy(await("policy_refused", 1).text:find("policy.lua:2: consumer 'C' reads the queue 'work', "
            .. "to which its dead letters go; name another, here or in rules of its own: "
            .. 'policy.consumer("C"):default():dead_letter(...)', 1, true))
        assert.equal("one", decided().note)
        save("policy.lua", says "two")
        becomes("two", 2)
    end)

    it("refuses what its transport can never do", function()
        start { ["policy.lua"] = says "one", ["service.lua"] = MULLIGAN:gsub("sqlite:orders.db", "memory:?delay=no") }
        save("policy.lua", '\n\nrequire("mulligan.policy").bus():default():redeliver()')
        assert.is_truthy(await("policy_refused", 1).text:find(
            "^policy.lua:3: this rule redelivers, but transport 'orders' of consumer 'C' has no delayed delivery; "))
    end)

    it("ends a burst of writes with the last", function()
        start { ["policy.lua"] = says "one" }
        for number = 1, 200 do
            folder:write("policy.lua", says("burst " .. number))
        end
        process.await("the last", function()
            return decided().note == "burst 200"
        end)
        assert.is_true(#events "policy_loaded" < 100)
    end)

    it("leaves SIGHUP and other files be where the policy is the same", function()
        start({ ["policy.lua"] = says "one" }, "--log-level", "debug")
        local function unchanged(level, text)
            local count = 0
            for _, event in ipairs(events "log") do
                count = count + (event.level == level and event.text == text and 1 or 0)
            end
            return count
        end
        local function hang_up(times)
            job.kill "HUP"
            process.await("the answer", function()
                return unchanged("info", "SIGHUP: the policy is unchanged") == times
            end)
        end
        hang_up(1)
        local before = unchanged("debug", "the policy is unchanged")
        folder:write("service.lua", MULLIGAN .. "-- changed")
        folder:write("other.lua", "x = ")
        assert.equal("one", decided().note)
        hang_up(2)
        assert.equal(before, unchanged("debug", "the policy is unchanged"))
        assert.same({ 1, 0 }, { #events "policy_loaded", #events "policy_refused" })
    end)

    it("lives through a SIGHUP before it has begun, while it ends, and after that", function()
        start { ["policy.lua"] = says "one", ["service.lua"] = 'os.execute "kill -s HUP $PPID"\n' .. MULLIGAN .. [[
            collected_last = setmetatable({}, { __gc = function()
                os.execute "kill -s HUP $PPID"
                print "collected"
            end })
            m.consumer("Slow", { transport = "orders", queue = "slow", handler = function()
                print "began"
                m.sleep "300ms"
            end })]] }
        assert.equal(0, folder:mulligan({ "send", "slow", "--transport", "sqlite:orders.db" }, { stdin = "x\n" }).code)
        process.await("the handler", function()
            return job.out() == "began\n"
        end)
        save("policy.lua", says "two")
        job.kill "TERM"
        for _ = 1, 5 do
            os.execute("kill -s HUP " .. job.pid() .. " 2>/dev/null")
        end
        assert.equal(0, job.wait(), job.err())
        assert.equal("began\ncollected\n", job.out())
    end)

    it("takes a change at SIGHUP as well", function()
        start { ["policy.lua"] = says "one" }
        save("policy.lua", says "two")
        job.kill "HUP"
        becomes("two", 2)
    end)

    it("shows as text what it was told", function()
        folder = process.folder { ["policy.lua"] = says "one", ["service.lua"] = MULLIGAN }
        job = folder:start_mulligan { "run" }
        local function await_line(pattern)
            process.await(pattern, function()
                return job.err():find(pattern)
            end)
        end
        await_line "info    policy_loaded: policy.lua: 1 rule, generation %x+; consumer C\n"
        save("policy.lua", "\nx = ")
        await_line "error   policy_refused: policy.lua:2: unexpected symbol near <eof>; generation %x+ runs on\n"
        save("policy.lua", says "two")
        await_line "info    policy_loaded: policy.lua: 1 rule, generation %x+\n"
    end)
end)
