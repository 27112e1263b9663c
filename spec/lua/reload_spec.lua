-- An engine that reloads its policy by itself, on a test's clock: what it sees of the files without
-- waiting for its next look at them, what it says while they aren't what runs, and when it is silent.
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

-- A look comes every 0.1 s, and a load when nothing has changed for 0.1 s.
local SOON = "200ms"

describe("an engine that reloads", function()
    local folder, policy, rig, told, printed

    local function run(command)
        assert(os.execute(("cd '%s' && %s"):format(folder.root, command)))
    end

    local function text(note, before)
        return ('%s require("mulligan.policy").bus():default():discard(%q)'):format(before or "", note)
    end

    -- The file under a new name, and renamed over the old one.
    local function save(name, words)
        folder:write(name .. "~", words)
        run(("mv '%s~' '%s'"):format(name, name))
    end

    local function start(files, options)
        folder = process.folder(files)
        told, printed = {}, {}
        policy = assert(mulligan.load(folder:path "policy.lua", {
            event = function(event)
                told[#told + 1] = event
            end,
            log = function(_, words)
                printed[#printed + 1] = words
            end,
        }))
        local given = {
            policy = policy,
            reload_on_change = true,
            consumers = { C = { queue = "work", handler = function()
                mulligan.error { type = "E" }
            end } },
        }
        for name, value in pairs(options or {}) do
            given[name] = value
        end
        rig = testing.rig(given)
        rig:advance(SOON)
    end

    after_each(function()
        if rig then
            rig:close()
            policy:close()
            folder:remove()
        end
        rig = nil
    end)

    -- note is what the policy in force says of a message.
    local function note()
        assert(rig:publish("work", "x"))
        rig:advance(0)
        local decided = rig:events "decided"
        return decided[#decided].verdict.note
    end

    -- lines gives those of the log whose text has `part` in it, and takes them away.
    local function lines(part)
        local found, rest = {}, {}
        for _, line in ipairs(rig:log()) do
            table.insert(line:find(part, 1, true) and found or rest, line)
        end
        rig.lines = rest
        return found
    end

    -- events gives "name text" of those that the policy told, and forgets them.
    local function events()
        local list = {}
        for number, event in ipairs(told) do
            list[number] = event.name .. ": " .. event.text
        end
        told = {}
        return list
    end

    local function loaded()
        return ("policy_loaded: %s: 1 rule, generation %s"):format(folder:path "policy.lua", policy:generation())
    end

    -- becomes: within the time in which only events tell of it, `words` is what runs.
    local function becomes(words)
        rig:advance(SOON)
        assert.equal(words, note())
        assert.same({ loaded() }, events())
    end

    describe("sees at once", function()
        it("a file that is written in place", function()
            start { ["policy.lua"] = text "one" }
            assert.equal("one", note())
            folder:write("policy.lua", text "two")
            becomes "two"
            folder:write("policy.lua", text "three")
            becomes "three"
        end)

        it("a file that another is renamed over, time and again", function()
            start { ["policy.lua"] = text "one" }
            for _, words in ipairs { "two", "three", "four" } do
                save("policy.lua", text(words))
                becomes(words)
            end
        end)

        it("a link that is swapped, and what is written behind it", function()
            start { ["v1/policy.lua"] = "", ["v2/policy.lua"] = text "two", ["policy.lua"] = text "one" }
            run "ln -s v2/policy.lua new && mv -T new policy.lua"
            becomes "two"
            save("v2/policy.lua", text "three")
            becomes "three"
            folder:write("v1/policy.lua", text "four")
            run "ln -s v1/policy.lua new && mv -T new policy.lua"
            becomes "four"
        end)

        it("a folder's link that is swapped, as for a mounted ConfigMap", function()
            start { ["policy.lua"] = text "one" }
            folder:write("..2026_01/policy.lua", text "two")
            folder:write("..2026_02/policy.lua", text "three")
            folder:write("..2026_03/policy.lua", text "four")
            run "ln -s ..2026_01 ..data && ln -s ..data/policy.lua new && mv -T new policy.lua"
            becomes "two"
            run "ln -s ..2026_02 ..tmp && mv -T ..tmp ..data && rm -r ..2026_01"
            becomes "three"
            run "ln -s ..2026_03 ..tmp && mv -T ..tmp ..data && rm -r ..2026_02"
            becomes "four"
        end)

        it("files that it requires, in folders below, with links on the way", function()
            start {
                ["policy.lua"] = text("main", 'require "rules.deep.more"'),
                ["rules/deep/more.lua"] = "",
                ["other/more.lua"] = 'require("mulligan.policy").bus():on("E"):discard("other")',
            }
            save("rules/deep/more.lua", 'require("mulligan.policy").bus():on("E"):discard("more")')
            rig:advance(SOON)
            assert.equal("more", note())
            run "rm -r rules/deep && ln -s ../other rules/deep"
            rig:advance(SOON)
            assert.equal("other", note())
            save("other/more.lua", "")
            rig:advance(SOON)
            assert.equal("main", note())
            local counts = {}
            for number, event in ipairs(told) do
                counts[number] = event.text:match ": (%d+ rules?),"
            end
            assert.same({ "2 rules", "2 rules", "1 rule" }, counts)
        end)

        it("a file that wasn't there", function()
            start { ["policy.lua"] = text "one" }
            folder:write("policy.lua", text("two", 'require "rules.more"'))
            rig:advance(SOON)
            local missing = ('policy_refused: policy.lua:1: require("rules.more"): there is no file %s'):format(
                folder:path "rules/more.lua")
            assert.same({ missing }, events())
            assert.equal("one", note())
            run "mkdir rules"
            rig:advance(SOON)
            assert.same({}, events())
            folder:write("rules/more.lua", "")
            becomes "two"
        end)

        it("a folder that is deleted, and made again", function()
            start { ["policy.lua"] = text("one", 'require "rules.more"'), ["rules/more.lua"] = "" }
            run "rm -r rules"
            rig:advance(SOON)
            assert.equal(1, #events())
            folder:write("rules/more.lua", "-- anew")
            becomes "one"
            run "mkdir rules.new && echo '-- another' >rules.new/more.lua && mv rules rules.old && mv rules.new rules"
            becomes "one"
        end)

        it("its own folder deleted, and made again", function()
            start { ["policy.lua"] = text "one" }
            run(("cd / && rm -r '%s'"):format(folder.root))
            rig:advance(SOON)
            assert.same({ "policy_refused: policy.lua: there is no file " .. folder:path "policy.lua" }, events())
            assert.equal("one", note())
            assert(os.execute(("mkdir '%s'"):format(folder.root)))
            folder:write("policy.lua", text "two")
            becomes "two"
        end)

        it("what changed between its load and its start", function()
            start({ ["policy.lua"] = text "one" }, { start = false })
            folder:write("policy.lua", text "two")
            assert(rig.engine:start())
            rig:advance(0)
            assert.equal("two", note())
        end)
    end)

    -- Each of these has a size of its own: on a test's clock they may have the same time of change.
    local function burst(number)
        return text("burst " .. number, ("--%s\n"):format(("x"):rep(number)))
    end

    it("joins changes in a row, and ends with the last", function()
        start { ["policy.lua"] = text "one" }
        for number = 1, 200 do
            folder:write("policy.lua", burst(number))
            rig:advance "3ms"
        end
        assert.equal("one", note())
        becomes "burst 200"
    end)

    it("waits no longer than a second for a burst to end", function()
        start { ["policy.lua"] = text "one" }
        local notes = {}
        for number = 1, 42 do
            folder:write("policy.lua", burst(number))
            rig:advance "50ms"
            if #events() > 0 then
                notes[#notes + 1] = note()
            end
        end
        assert.same({ "burst 20", "burst 40" }, notes)
        becomes "burst 42"
    end)

    it("has no ear for other files of the folder", function()
        start { ["policy.lua"] = text "one", ["service.lua"] = "" }
        lines "unchanged"
        folder:write("service.lua", "-- changed")
        folder:write("orders.db", "much")
        save("other.lua", "")
        rig:advance "10s"
        assert.same({}, lines "unchanged")
        run "touch policy.lua"
        rig:advance(SOON)
        assert.same({ "debug: the policy is unchanged" }, lines "unchanged")
        assert.same({}, events())
    end)

    describe("while the files aren't what runs", function()
        local BROKEN = 'local bus = require("mulligan.policy").bus()\nbus:on("A"):rety()\nbus:on("B")'
        local WHY = 'policy.lua:2: "rety" is no word of a rule; did you mean retry? (and 1 more)'

        it("says so at once, and then once a minute, until another can be loaded", function()
            start { ["policy.lua"] = text "one" }
            folder:write("policy.lua", BROKEN .. '\nprint "loading"')
            rig:advance(SOON)
            assert.same({ "policy_refused: " .. WHY }, events())
            assert.same({ "loading" }, printed)
            assert.equal("one", note())
            lines ""
            rig:advance "59s"
            assert.same({}, lines "not what runs")
            local reminder = ("warning: generation %s runs on: the policy's files are not what runs: %s"):format(
                policy:generation(), WHY)
            rig:advance "1s"
            assert.same({ reminder }, lines "not what runs")
            rig:advance "3m"
            assert.same({ reminder, reminder, reminder }, lines "not what runs")
            -- Nobody asked for the tries in between: they say nothing.
            assert.same({}, events())
            assert.same({ "loading" }, printed)
            folder:write("policy.lua", text "two")
            becomes "two"
            rig:advance "10m"
            assert.same({}, lines "what runs")
        end)

        it("says when the files are what runs again since they were put back", function()
            start { ["policy.lua"] = text "one" }
            folder:write("policy.lua", BROKEN)
            rig:advance "70s"
            assert.equal(1, #lines "not what runs")
            events()
            folder:write("policy.lua", text "one")
            rig:advance(SOON)
            assert.same({ "info: the policy's files are what runs again: generation " .. policy:generation() },
                lines "what runs")
            rig:advance "10m"
            assert.same({}, lines "what runs")
            assert.same({}, events())
        end)

        it("tells a new reason that it finds when it tries again", function()
            start({ ["policy.lua"] = text "one" }, { reload_on_change = false, reload_on_sighup = true })
            folder:write("policy.lua", "x = ")
            policy:reload()
            assert.equal(1, #events())
            rig:advance "61s"
            assert.same({}, events())
            folder:write("policy.lua", BROKEN)
            rig:advance "60s"
            assert.same({ "policy_refused: " .. WHY }, events())
            folder:write("policy.lua", text "two")
            rig:advance "60s"
            assert.same({ loaded() }, events())
            assert.equal(1, #lines "not what runs")
        end)

        it("says so of what a call has loaded, and leaves that until they change", function()
            start { ["policy.lua"] = text "one" }
            assert.is_true(policy:reload(text "by call"))
            assert.equal("by call", note())
            events()
            rig:advance "63s"
            assert.same({ ("warning: generation %s runs, which a call has loaded: "
                .. "the policy's files are not what runs"):format(policy:generation()) }, lines "what runs")
            assert.equal("by call", note())
            folder:write("policy.lua", text "two")
            becomes "two"
            rig:advance "5m"
            assert.same({}, lines "what runs")
        end)

        it("is not fooled by a call that loads what the files say", function()
            start { ["policy.lua"] = text "one" }
            policy:reload(text "by call")
            rig:advance "3s"
            policy:reload(text "one")
            rig:advance "5m"
            assert.same({}, lines "not what runs")
        end)

        it("keeps what it finds out of what a call returns later", function()
            start { ["policy.lua"] = text "one" }
            folder:write("policy.lua", BROKEN)
            rig:advance "5m"
            local reloaded, message, code, problems = policy:reload("x = ")
            assert.is_nil(reloaded)
            assert.equal("policy", code)
            assert.equal(1, #problems, message)
        end)
    end)

    it("refuses what it couldn't work by, at a change and by call, and loads it once it has stopped", function()
        start({ ["policy.lua"] = text "one" }, { url = "memory:?delay=no" })
        local REDELIVERS = 'require("mulligan.policy").bus():default():redeliver()\n'
        local why = "this rule redelivers, but transport 'orders' of consumer 'C' has no delayed delivery; "
            .. "retry or dead-letter instead"
        folder:write("policy.lua", "\n\n" .. REDELIVERS)
        rig:advance(SOON)
        assert.same({ "policy_refused: policy.lua:3: " .. why }, events())
        assert.equal("one", note())
        local reloaded, message, code, problems = policy:reload(REDELIVERS)
        assert.same({ nil, "policy.lua:1: " .. why, "refused", { { file = "policy.lua", line = 1, text = why } } },
            { reloaded, message, code, problems })
        assert.equal("one", note())
        rig:stop()
        assert.is_true(policy:reload())
    end)

    describe("where files are cut off until no rule is left", function()
        local function left(count)
            return ("policy.lua: there is no rule left, where the policy in force has %d; if every failure is to be a "
                .. "dead letter, say so: policy.bus():default():dead_letter()"):format(count)
        end

        it("goes on by the rules that it has, and says so, until there are some", function()
            start { ["policy.lua"] = text "one" }
            for _, cut in ipairs { "", "\n", "local policy = require 'mulligan.policy'", "\239\187\191" } do
                folder:write("policy.lua", cut)
                rig:advance(SOON)
                assert.same({ "policy_refused: " .. left(1) }, events())
                assert.equal("one", note())
            end
            lines ""
            rig:advance "60s"
            assert.same({ ("warning: generation %s runs on: the policy's files are not what runs: %s"):format(
                policy:generation(), left(1)) }, lines "not what runs")
            folder:write("policy.lua", text "two")
            becomes "two"
        end)

        it("does so for a file that holds the rules of another, too", function()
            local first = text "two":gsub("default%(", "on('A'")
            start { ["policy.lua"] = 'require "rules"', ["rules.lua"] = first .. text "one" }
            folder:write("rules.lua", "")
            rig:advance(SOON)
            assert.same({ "policy_refused: " .. left(2) }, events())
            assert.equal("one", note())
        end)

        it("takes no rules from a call that brings them as a text", function()
            start { ["policy.lua"] = text "one" }
            folder:write("policy.lua", "")
            local reloaded, message, code = policy:reload()
            assert.same({ left(1), "refused" }, { message, code })
            assert.is_nil(reloaded)
            assert.equal(1, #events())
            assert.is_true(policy:reload "")
            assert.same({ ("policy_loaded: %s: 0 rules, so every failure is a dead letter, generation %s"):format(
                folder:path "policy.lua", policy:generation()) }, events())
            folder:write("policy.lua", "-- still none")
            rig:advance(SOON)
            assert.equal(0, policy:rules())
            assert.is_truthy(events()[1]:find("policy_loaded: ", 1, true))
        end)
    end)

    it("keeps the policy's own functions from coming back into it", function()
        start { ["policy.lua"] = text "one" }
        local raised
        local engine_policy = policy
        told = setmetatable({}, { __newindex = function(_, _, event)
            raised = event.name .. ": " .. tostring(select(2, pcall(engine_policy.reload, engine_policy)))
        end })
        folder:write("policy.lua", text "two")
        rig:advance(SOON)
        assert.is_truthy(raised:find "^policy_loaded: .*not possible in the policy.s own log or event function", raised)
    end)

    it("does nothing of it without being asked to", function()
        start({ ["policy.lua"] = text "one" }, { reload_on_change = false })
        folder:write("policy.lua", "x = ")
        rig:advance "10m"
        assert.same({}, events())
        assert.same({}, lines "")
    end)

    it("ends with its stop", function()
        start { ["policy.lua"] = text "one" }
        rig.engine:stop()
        folder:write("policy.lua", text "two")
        rig:stop()
        rig:advance "10m"
        assert.same({}, events())
    end)

    it("needs a policy that has files", function()
        local made, message, code, problems
        for _, option in ipairs { "reload_on_change", "reload_on_sighup" } do
            local of_text = assert(mulligan.load_text "")
            made, message, code, problems = mulligan.engine { policy = of_text, [option] = true }
            assert.same({ nil, "invalid", 1 }, { made, code, #problems })
            assert.is_truthy(message:find("given as a text", 1, true), message)
            of_text:close()
        end
        assert.has_error(function()
            mulligan.engine { policy = policy, reload_on_change = 1 }
        end)
    end)

    it("reloads at SIGHUP", function()
        start({ ["policy.lua"] = text "one" }, { reload_on_change = false, reload_on_sighup = true })
        local function hang_up_and_await(part)
            assert(os.execute "kill -s HUP $PPID")
            process.await(part, function()
                rig:advance(0)
                return #lines(part) > 0 or #events() > 0
            end)
        end
        hang_up_and_await "info: SIGHUP: the policy is unchanged"
        folder:write("policy.lua", text "two")
        rig:advance "10m"
        assert.equal("one", note())
        hang_up_and_await "policy_loaded"
        assert.equal("two", note())
    end)
end)
