-- Reloads in the Lua module: every failure is decided by the policy in force at that moment, whatever state its message
-- was in when another took its place; what is broken changes nothing; and reloads leave no memory behind.
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

-- Two policies that agree in no verdict. Both leave the readers of dead letters alone.
local COLLECT = [[
for _, queue in ipairs { "old-dead", "new-dead" } do
    policy.consumer("collector of " .. queue):default():dead_letter("uncollected")
    policy.consumer("collector of " .. queue):dead_letter_queue("uncollected")
end
]]

local OLD = 'local policy = require "mulligan.policy"\n' .. COLLECT .. [[
local bus = policy.bus()
bus:dead_letter_queue("old-dead")
bus:on("Retried", function(err, ctx) return ctx.message.headers.kind == err.kind end)
    :retry { "1m", "1m", "1m" }
bus:on("Redelivered"):redeliver { "10m", "10m" }
bus:on("Settled"):dead_letter("old-dead")
bus:default():discard("old")
]]

local NEW = 'local policy = require "mulligan.policy"\n\n\n\n\n\n\n' .. COLLECT .. [[
local host = policy.host()
host:dead_letter_queue("new-dead")
host:on("Retried", function(err, ctx) return err.kind ~= nil and ctx.calls > 0 end):redeliver { "20m" }
host:on("Redelivered"):retry { "2s", "4s", "8s", "16s" }
host:on("Settled"):discard("new")
host:default():dead_letter()
]]

local BROKEN = {
    ['local policy = require "mulligan.policy"\npolicy.bus(:on'] = 2,
    ['require("mulligan.policy").bus():default():retyr()'] = 1,
    ['local policy = require "mulligan.policy"\npolicy.bus():on("A", function() end):retry(1)\nerror("no")'] = 3,
}

local open = {}

local function load_text(text, options)
    local policy = assert(mulligan.load_text(text, options))
    open[#open + 1] = policy
    return policy
end

local function start(policy, handler, more)
    local given = {
        policy = policy,
        url = "memory:",
        consumers = {
            C = { queue = "work", handler = handler, concurrency = 8 },
            D = { queue = "aside", handler = handler },
        },
        collect = { "old-dead", "new-dead" },
    }
    for key, value in pairs(more or {}) do
        given[key] = value
    end
    local rig = testing.rig(given)
    table.insert(open, 1, rig)
    return rig
end

local function close_all()
    for _, one in ipairs(open) do
        one:close()
    end
    open = {}
end

-- The text whose policy gives exactly this verdict on this failure: "old" or "new"; nil: neither does.
local function judge(event)
    local found
    for name, text in pairs { old = OLD, new = NEW } do
        local policy = assert(mulligan.load_text(text))
        local verdict = policy:decide(event.failure)
        if pcall(assert.same, verdict, event.verdict) then
            assert.is_nil(found, "the two policies agree")
            found = name
        end
        policy:close()
    end
    return found
end

-- Each verdict on one message: whose it is, the action, attempt and calls.
local function story(rig, id)
    local lines = {}
    for _, event in ipairs(rig:events "decided") do
        local failure = event.failure
        if failure.message.id == id then
            assert.equal(event.verdict.generation, event.generation)
            lines[#lines + 1] = ("%s %s, attempt %d, redeliveries %d, calls %d"):format(
                judge(event) or "mixed", event.verdict.action, failure.attempt, failure.redeliveries, failure.calls)
        end
    end
    return lines
end

-- Fails with the type in the header; the body says how long it works first.
local function fail(msg)
    mulligan.sleep(msg.body)
    mulligan.error { type = msg.headers.kind, kind = msg.headers.kind }
end

describe("a reload", function()
    after_each(close_all)

    describe("under messages", function()
        local policy, rig

        before_each(function()
            policy = load_text(OLD)
            rig = start(policy, fail)
        end)

        local function send(id, kind, working)
            assert(rig:publish("work", working or "0ms", { id = id, headers = { kind = kind } }))
        end

        it("leaves one that waits for its retry there, and decides its next failure anew", function()
            send("m", "Retried")
            rig:advance "59s"
            assert.is_true(policy:reload(NEW))
            rig:advance "2s"
            assert.same({
                "old retry, attempt 1, redeliveries 0, calls 1",
                "new redeliver, attempt 2, redeliveries 0, calls 2",
            }, story(rig, "m"))
        end)

        it("leaves one that was put off there, and its counters go on", function()
            send("m", "Redelivered")
            rig:advance "1m"
            assert.is_true(policy:reload(NEW))
            rig:advance "20m"
            assert.same({
                "old redeliver, attempt 1, redeliveries 0, calls 1",
                "new retry, attempt 1, redeliveries 1, calls 2",
                "new retry, attempt 2, redeliveries 1, calls 3",
                "new retry, attempt 3, redeliveries 1, calls 4",
                "new retry, attempt 4, redeliveries 1, calls 5",
                "new dead_letter, attempt 5, redeliveries 1, calls 6",
            }, story(rig, "m"))
            assert.equal(1, #rig:collected "new-dead")
        end)

        it("counts for a call that was at work", function()
            send("m", "Settled", "20s")
            rig:advance "10s"
            assert.is_true(policy:reload(NEW))
            rig:advance "10s"
            assert.same({ "new discard, attempt 1, redeliveries 0, calls 1" }, story(rig, "m"))
        end)

        it("doesn't touch a verdict that waits to be carried out, however many follow", function()
            rig:fault("settle", { times = 3 })
            send("m", "Settled")
            assert.same({}, story(rig, "m"))
            assert.is_true(policy:reload(NEW))
            -- C waits, so D lets the engine's decider move on; a retry settles nothing.
            assert(rig:publish("aside", "0ms", { id = "other", headers = { kind = "Redelivered" } }))
            assert.same({ "new retry, attempt 1, redeliveries 0, calls 1" }, story(rig, "other"))
            assert.is_true(policy:reload(OLD .. "-- another"))
            assert.is_true(policy:reload(NEW))
            rig:advance "50s"
            assert.same({ "old dead_letter, attempt 1, redeliveries 0, calls 1" }, story(rig, "m"))
            local letter = assert(rig:collected("old-dead")[1])
            assert.equal("old-dead", letter.queue)
            assert.equal(load_text(OLD):generation(), letter.headers["mulligan-generation"])
            assert.equal("rule", letter.headers["mulligan-reason"])
        end)

        it("by what is broken changes nothing, and says why; by the same bytes too", function()
            local before = policy:generation()
            send("m", "Retried")
            for text, line in pairs(BROKEN) do
                local done, message, code, problems = policy:reload(text)
                assert.is_nil(done)
                assert.equal("policy", code)
                assert.equal(1, #problems)
                assert.equal(line, problems[1].line)
                assert.equal(("policy.lua:%d: %s"):format(line, problems[1].text), message)
                assert.equal(before, policy:generation())
                assert.equal("unchanged", policy:reload(OLD))
            end
            rig:advance "1m"
            assert.is_true(policy:reload(NEW))
            rig:advance "1m"
            assert.same({
                "old retry, attempt 1, redeliveries 0, calls 1",
                "old retry, attempt 2, redeliveries 0, calls 2",
                "new redeliver, attempt 3, redeliveries 0, calls 3",
            }, story(rig, "m"))
        end)

        it("leaves no memory behind", function()
            local function round()
                policy:reload(NEW)
                policy:reload "x = "
                send("m", "Settled")
                policy:reload(OLD)
                send("n", "other")
                rig.told = {} -- the rig keeps what it was told
            end
            local function live()
                collectgarbage()
                collectgarbage()
                return collectgarbage "count"
            end
            for _ = 1, 5 do
                round()
            end
            local before = live()
            for _ = 1, 100 do
                round()
            end
            local after = live()
            assert.is_true(math.abs(after - before) <= before * 0.05, before .. " KiB became " .. after)
        end)
    end)

    describe("called", function()
        -- What pcall gave for each reload that was tried.
        local tried, policy, rig

        before_each(function()
            tried, policy = {}, nil
        end)

        local function try(text)
            tried[#tried + 1] = table.pack(pcall(policy.reload, policy, text))
        end

        local function assert_refused()
            assert.is_true(#tried > 0)
            for _, one in ipairs(tried) do
                assert.is_false(one[1])
                assert.matches("not possible in the policy's own log or event function", one[2], 1, true)
            end
        end

        -- A policy that prints and whose first matcher raises, each time it decides.
        local SPEAKS = [[
            print "loaded"
            local bus = require("mulligan.policy").bus()
            bus:on("Error", function() print "asked" error "no" end):retry()
            bus:default():discard()
        ]]

        for name, key in pairs { log = "log", event = "event" } do
            it("out of the policy's own " .. name .. " function is refused", function()
                policy = load_text(SPEAKS, {
                    [key] = function()
                        if policy then
                            try(SPEAKS .. "--")
                        end
                    end,
                })
                assert(policy:decide { error = { type = "A" } })
                assert_refused()
                tried = {}
                assert.is_true(policy:reload(SPEAKS .. "-- again"))
                assert_refused()
            end)

            it("out of the policy's own " .. name .. " function is refused where an engine decides", function()
                policy = load_text(SPEAKS, {
                    [key] = function()
                        if policy then
                            try(SPEAKS .. "--")
                            tried[#tried + 1] = table.pack(pcall(policy.decide, policy, { error = { type = "A" } }))
                        end
                    end,
                })
                rig = start(policy, fail, { collect = {} })
                assert(rig:publish("work", "0ms", { headers = { kind = "A" } }))
                assert_refused()
                assert.equal(1, rig:counts().discarded)
            end)
        end

        it("out of a handler counts for its own failure", function()
            policy = load_text(OLD)
            rig = start(policy, function(msg)
                try(NEW)
                fail(msg)
            end)
            assert(rig:publish("work", "0ms", { id = "m", headers = { kind = "Settled" } }))
            assert.same({ { true, true, n = 2 } }, tried)
            assert.same({ "new discard, attempt 1, redeliveries 0, calls 1" }, story(rig, "m"))
        end)

        it("out of the engine's event function counts for what fails next", function()
            policy = load_text(OLD)
            local engine_told = {}
            local clock = testing.clock()
            local engine = assert(mulligan.engine {
                policy = policy,
                clock = clock,
                event = function(event)
                    try(NEW)
                    engine_told[#engine_told + 1] = event
                end,
            })
            table.insert(open, 1, engine)
            assert(engine:transport("orders", "memory:"))
            assert(engine:consumer("C", { transport = "orders", queue = "work", handler = fail }))
            assert(engine:start())
            assert(engine:publish("orders", "work", "0ms", { id = "m", headers = { kind = "Retried" } }))
            clock:advance "1m"
            assert.same({ { true, true, n = 2 }, { true, "unchanged", n = 2 } }, tried)

            assert.equal("old", judge(engine_told[1]))
            assert.equal("new", judge(engine_told[2]))
        end)
    end)

    describe("of files", function()
        local folder, policy

        before_each(function()
            folder = process.folder {
                ["policy.lua"] = 'require "rules"\nrequire "parts.more"',
                ["rules.lua"] = 'require("mulligan.policy").bus():default():discard("one")',
            }
            assert(os.execute(("mkdir '%s'"):format(folder:path "parts")))
            folder:write("parts/more.lua", "")
            policy = assert(mulligan.load(folder:path "policy.lua"))
            open[#open + 1] = policy
        end)

        after_each(function()
            folder:remove()
        end)

        local function note()
            return policy:decide({ error = { type = "A" } }).note
        end

        it("sees each of them that changed", function()
            local first = policy:generation()
            assert.equal("unchanged", policy:reload())
            folder:write("rules.lua", 'require("mulligan.policy").bus():default():discard("two")')
            assert.equal("one", note())
            assert.is_true(policy:reload())
            assert.equal("two", note())
            folder:write("parts/more.lua", "-- no other rules, but other bytes")
            local second = policy:generation()
            assert.is_true(policy:reload())
            assert.are_not.equal(second, policy:generation())
            folder:write("rules.lua", 'require("mulligan.policy").bus():default():discard("one")')
            folder:write("parts/more.lua", "")
            assert.is_true(policy:reload())
            assert.equal(first, policy:generation())
        end)

        it("keeps what runs while one is missing, and goes on when it is back", function()
            assert(os.remove(folder:path "parts/more.lua"))
            local done, message, code, problems = policy:reload()
            assert.is_nil(done)
            assert.equal("policy", code)
            assert.equal(("policy.lua:2: %s"):format(problems[1].text), message)
            assert.matches("there is no file " .. folder:path "parts/more.lua", message, 1, true)
            assert.equal("one", note())
            folder:write("parts/more.lua", "")
            assert.equal("unchanged", policy:reload())
        end)

        it("keeps what runs while the policy itself is missing", function()
            assert(os.remove(folder:path "policy.lua"))
            local done, message = policy:reload()
            assert.is_nil(done)
            assert.matches("there is no file " .. folder:path "policy.lua", message, 1, true)
            assert.equal("one", note())
        end)

        it("by a text takes it in the place of the first", function()
            assert.is_true(policy:reload 'require "rules"')
            assert.is_true(policy:reload())
            assert.equal("one", note())
        end)

        it("decides by the bytes that were loaded, whatever the files say by now", function()
            folder:write("policy.lua", 'require("mulligan.policy").bus():on("A", require "rules"):discard("kept")')
            folder:write("rules.lua", "return function() return true end")
            assert.is_true(policy:reload())
            folder:write("rules.lua", "return function() return false end")
            assert.equal("kept", note()) -- the decider that this makes runs the files again
        end)
    end)
end)
