-- An engine by a policy whose override and notify are Lua's: what they hear comes in order, what they answer reaches
-- the broker, what they do wrong harms no message, and no reload takes any of it away.
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

local HEAD = [[
local policy = require "mulligan.policy"
for _, queue in ipairs { "parked", "found-1" } do
    policy.consumer("collector of " .. queue):default():discard()
    policy.consumer("collector of " .. queue):dead_letter_queue("uncollected")
end
local c = policy.consumer("C")
]]

describe("an engine whose policy has an override and a notify", function()
    local rig, policy, said, met

    local function load(text)
        said, met = {}, {}
        policy = assert(mulligan.load_text(HEAD .. text, {
            log = function(_, line) said[#said + 1] = line end,
            event = function(event) met[#met + 1] = event end,
        }))
        rig = testing.rig {
            policy = policy,
            url = "memory:",
            consumers = {
                C = { queue = "work", concurrency = 8, handler = function(msg)
                    mulligan.sleep "1s" -- so that several fail at a time
                    mulligan.error { type = msg.body }
                end },
            },
            collect = { "parked", "found-1" },
        }
    end

    local function fail(type, headers)
        assert(rig:publish("work", type, { id = "m-1", headers = headers }))
        rig:advance "1m"
    end

    local function plain(lines)
        for i, line in ipairs(lines) do
            lines[i] = line:gsub("\t", " ")
        end
        return lines
    end

    after_each(function()
        rig:close()
        policy:close()
    end)

    it("tells what is met on the way, in order, and then the verdict", function()
        load [[
c:on("Boom", function(err) return err.nothing.there end):retry()
c:default():redeliver { "1s" }:then_discard("gone")
c:override(function(failure, verdict)
    if failure.redeliveries == 0 then error("no " .. verdict.action) end
    return policy.dead_letter("found-" .. failure.redeliveries)
end)
c:notify(function(event)
    local failure, verdict, rule = event.failure, event.verdict, event.rule
    print(event.name, failure.message.id, failure.error and failure.error.type, verdict and verdict.action,
        verdict and verdict.queue, rule and rule.line - 6)
end)
]]
        fail("Boom", { ["mulligan-calls"] = "many" })
        assert.same({
            "header_ignored m-1 nil nil nil nil",
            "matcher_failed m-1 Boom redeliver nil 1",
            "override_failed m-1 Boom redeliver nil nil",
            "decided m-1 Boom redeliver nil 2",
            "matcher_failed m-1 Boom dead_letter found-1 1",
            "decided m-1 Boom dead_letter found-1 2",
        }, plain(said))
        local letter = rig:collected("found-1")[1]
        assert.equal("override", letter.headers["mulligan-reason"])
        assert.equal("2", letter.headers["mulligan-calls"])
        assert.equal(policy:generation(), letter.headers["mulligan-generation"])
        assert.equal(3, #met)
    end)

    it("hands the answers of several messages to the broker, each its own", function()
        load [[
c:override(function(failure)
    local garbage = {}
    for i = 1, 500 do garbage[i] = ("z"):rep(1000) .. i end -- Lua lets go of what was answered before
    return policy.discard("of " .. failure.error.type .. ("x"):rep(100))
end)
]]
        rig:fault("settle", { times = 8 })
        for i = 1, 40 do
            assert(rig:publish("work", "Type" .. i, { id = "m-" .. i }))
        end
        rig:advance "1m"
        assert.equal(40, #rig:events "decided")
        for _, event in ipairs(rig:events "decided") do
            assert.equal("of " .. event.failure.error.type .. ("x"):rep(100), event.verdict.note)
        end
    end)

    local wrong = {
        ["raises"] = [[error("no")]],
        ["raises a table"] = [[error {}]],
        ["loops"] = [[while true do end]],
        ["loops in pcall"] = [[while true do pcall(function() while true do end end) end]],
        ["recurses"] = [[local function f() return 1 + f() end f()]],
        ["fills the memory"] = [[local t = {} while true do t[#t + 1] = ("x"):rep(1000) .. #t end]],
        ["changes what it is given"] = [[given.name = nil]],
    }
    for what, body in pairs(wrong) do
        it("loses nothing by a notify that " .. what, function()
            load(('c:default():dead_letter("parked")\nc:notify(function(given) %s end)\n'):format(body))
            fail "A"
            fail "B"
            assert.equal(2, #rig:collected "parked")
            assert.equal(2, rig:counts().notify_failed)
            for _, event in ipairs(rig:events "notify_failed") do
                assert.is_truthy(event.text:find("^policy.lua:8: "), event.text)
                assert.equal("dead_letter", event.verdict.action)
            end
        end)

        it("keeps the verdict where an override " .. what, function()
            load(('c:default():dead_letter("parked")\nc:override(function(_, given) %s end)\n'):format(body))
            fail "A"
            fail "B"
            assert.equal(2, #rig:collected "parked")
            assert.equal(2, #met)
            assert.equal("override_failed", met[2].name)
        end)
    end

    it("tells a notify that loops of no more than ten things that were met, and of the verdict", function()
        load [[
for i = 1, 50 do c:on("A", function() error("no") end):retry() end
c:default():dead_letter("parked")
c:notify(function() while true do end end)
]]
        fail "A"
        assert.equal(1, #rig:collected "parked")
        assert.equal(50, #met)
        local failed = rig:events "notify_failed"
        assert.equal(12, #failed)
        assert.equal("not told of 40 event(s) of this message: those before took ten calls' budget", failed[11].text)
        assert.is_truthy(failed[12].text:find("more than 100000 instructions", 1, true))
    end)

    it("hears of a message in the generation that decided, after reloads that free all else", function()
        local text = 'c:default():dead_letter("parked")\nc:notify(function(event) print(event.name .. " by %d") end)\n'
        load(text:format(1))
        rig:fault("settle", { times = 1 })
        assert(rig:publish("work", "A"))
        rig:advance "1s"
        for number = 2, 4 do
            assert(policy:reload(HEAD .. text:format(number)))
            collectgarbage()
        end
        rig:advance "1m"
        fail "B"
        assert.same({ "decided by 1", "decided by 4" }, said)
    end)

    local REFUSED = "consumer 'C' reads the queue 'work', to which its dead letters go"

    it("goes on by the policy in force where it couldn't work by another one, by a call", function()
        load 'c:default():dead_letter("parked")\n'
        local good, why, code = policy:reload(HEAD .. 'c:default():discard()\nc:on("B"):dead_letter("work")\n')
        assert.is_nil(good)
        assert.equal("refused", code)
        assert.is_truthy(why:find("policy.lua:8: " .. REFUSED, 1, true), why)
        fail "A"
        assert.equal(1, #rig:collected "parked")
    end)

    local ways = { ["by its file"] = { reload_on_change = true }, ["by a signal"] = { reload_on_sighup = true } }
    for how, options in pairs(ways) do
        it("goes on by the policy in force where it couldn't work by another one, " .. how, function()
            local text = 'local policy = require "mulligan.policy"\npolicy.bus():default():discard(%q)\n'
            local folder = process.folder { ["policy.lua"] = text:format "old" }
            policy = assert(mulligan.load(folder:path "policy.lua", {
                event = function(event) met[#met + 1] = event end,
            }))
            met = {}
            local consumer = { queue = "work", handler = function() error "no" end }
            local given = { policy = policy, consumers = { C = consumer } }
            for key, value in pairs(options) do
                given[key] = value
            end
            rig = testing.rig(given)
            rig:advance "1s"
            folder:write("policy.lua", text:format "new" .. "policy.bus():on('B'):dead_letter('work')\n")
            if options.reload_on_sighup then
                assert(os.execute "kill -HUP $PPID")
            end
            process.await("the policy is refused", function()
                rig:advance "1s"
                return #met > 0
            end)
            assert.equal("policy_refused", met[1].name)
            local why = met[1].text
            assert.is_truthy(why:find("policy.lua:3: " .. REFUSED, 1, true), why)
            fail "A"
            assert.equal("old", rig:events("decided")[1].verdict.note)
            folder:remove()
        end)
    end
end)
