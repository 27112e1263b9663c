-- What a policy's own notify hears in an engine, and what an override makes of its messages.
local mulligan = require "mulligan"
local rigs = require "support.rigs"

-- What the function prints of an event, as one line.
local PRINTS = [[
local function line(event)
    local f, v = event.failure, event.verdict
    local words = { event.name }
    words[#words + 1] = f and (f.message.id .. " " .. f.consumer .. " " .. f.attempt)
    words[#words + 1] = f and f.error and (f.error.type .. " " .. f.error.message)
    words[#words + 1] = v and (v.action .. " " .. v.delay_ms .. " " .. (v.queue or v.note or v.tier or ""))
    words[#words + 1] = event.rule and ("rule " .. event.rule.type .. " " .. event.rule.line)
    words[#words + 1] = event.text
    return table.concat(words, ", ")
end
]]

local function fails(type)
    return function() error(mulligan.error { type = type, message = "why" }) end
end

-- What was printed so.
local function heard(rig)
    local lines = {}
    for _, text in ipairs(rig:log()) do lines[#lines + 1] = text:match("^info: heard (.*)") end
    return lines
end

-- The same, but for what was printed of the start.
local function heard_since(rig)
    local lines = heard(rig)
    assert(table.remove(lines, 1):find "^policy_loaded")
    return lines
end

describe("a policy's notify", function()
    after_each(rigs.close)

    local function start(rules, handler, more)
        return rigs.start(PRINTS .. rules, handler, more)
    end

    it("hears of each verdict once it is carried out", function()
        local rig = start([[
bus:on("A"):retry(1, "200ms", "constant"):then_dead_letter("parked")
bus:notify(function(event) print("heard " .. line(event)) end)]], fails "A")
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance("1s")
        local lines = heard_since(rig)
        assert.equal(2, #lines)
        assert.matches("^decided, m%-1 C 1, A why, retry %d+ retry, rule A 13$", lines[1])
        assert.equal("decided, m-1 C 2, A why, dead_letter 0 parked, rule A 13", lines[2])
        assert.equal(0, rig:counts().notify_failed)
    end)

    it("hears of what was met on the way, with the verdict", function()
        local rig = start([[
bus:on("A", function(err) return err.nothing.more end):discard()
bus:override(function() return 5 end)
bus:notify(function(event) print("heard " .. line(event)) end)]], fails "A")
        assert(rig:publish("work", "x", { id = "m-1", headers = { ["mulligan-calls"] = "many" } }))
        rig:advance("1s")
        assert.same({
            "header_ignored, m-1 C 0, mulligan-calls",
            "matcher_failed, m-1 C 1, A why, dead_letter 0 error, rule A 13, policy.lua:13: attempt to index a nil "
                .. "value (field 'nothing')",
            "override_failed, m-1 C 1, A why, dead_letter 0 error, policy.lua:14: override must return nothing or one "
                .. "of policy.retry(...), policy.redeliver(...), policy.dead_letter(...) and policy.discard(...), not "
                .. "a number",
            "decided, m-1 C 1, A why, dead_letter 0 error",
        }, heard_since(rig))
    end)

    it("hears, when its engine starts, what is in force, and the embedder doesn't", function()
        local rig = start([[
bus:default():discard()
bus:on("A"):retry()
bus:notify(function(event) print("heard " .. line(event) .. " " .. event.generation) end)]], fails "A")
        local generation = rig.own_policy:generation()
        local loaded = ("policy_loaded, policy.lua: 4 rules, generation %s %s"):format(generation, generation)
        assert.same({ loaded }, heard(rig))
        assert.same({}, rig:events "policy_loaded")
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance "1s"
        assert.same(loaded, heard(rig)[1])
    end)

    it("of a consumer hears of its messages alone", function()
        local rig = start([[
bus:default():discard("d")
policy.consumer("C"):notify(function(event) print("heard " .. line(event)) end)]], fails "A")
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance "1s"
        assert.same({ "decided, m-1 C 1, A why, discard 0 d, rule Error 13" }, heard(rig))
    end)

    it("hears of reloads, which are about no message", function()
        local rules = [[
bus:default():discard()
bus:notify(function(event)
    assert(event.failure == nil and event.verdict == nil and event.rule == nil and #event.generation == 32)
    print("heard " .. event.name)
end)]]
        local rig = start(rules, fails "A")
        assert.is_nil(rig.own_policy:reload("nonsense("))
        rig:advance("1s")
        assert.same({ "policy_loaded", "policy_refused" }, heard(rig))
    end)

    it("can change nothing, and what it fails at does no harm", function()
        local rig = start([[
bus:on("A"):dead_letter("error")
bus:notify(function(event)
    if not event.failure then return end
    if event.failure.message.id == "m-1" then event.verdict = nil end
    if event.failure.message.id == "m-2" then event.failure.message.headers.x = "y" end
    if event.failure.message.id == "m-3" then while true do end end
    return policy.discard()
end)]], fails "A")
        for i = 1, 4 do assert(rig:publish("work", "x", { id = "m-" .. i })) end
        rig:advance("1s")
        assert.equal(4, #rig:collected("error"))
        assert.equal(3, rig:counts().notify_failed)
        local why = {}
        for i, event in ipairs(rig:events("notify_failed")) do why[i] = event.text end
        assert.same({
            "policy.lua:16: an event is read-only", "policy.lua:17: an event is read-only",
            "policy.lua:18: more than 100000 instructions; is there a loop without an end?",
        }, why)
    end)

    it("loses what it was given when its call is over", function()
        local rig = start([[
bus:default():dead_letter("error")
kept = {}
local kept = kept
bus:notify(function(event)
    if not event.failure then return end
    if event.name == "header_ignored" then
        assert(event.failure.error == nil)
        print("heard " .. select(2, pcall(function() return kept.error.type end)))
        return
    end
    kept.error, kept.event, kept.cause = event.failure.error, event, event.failure.error.cause
    if kept.first then
        assert(not pcall(function() return kept.first.name end) and not pcall(next, kept.second))
    end
    kept.first, kept.second = kept.event, kept.cause
end)]], function()
            error(mulligan.error { type = "A", cause = mulligan.error { type = "B" } })
        end)
        for i = 1, 2 do assert(rig:publish("work", "x", { id = "m-" .. i })) end
        assert(rig:publish("work", "x", { id = "m-3", headers = { ["mulligan-calls"] = "many" } }))
        rig:advance("1s")
        assert.same({}, rig:events("notify_failed"))
        assert.same({ "policy.lua:20: an event is there during the call only; a local can keep what was read" },
            heard(rig))
    end)
end)

describe("an override in an engine", function()
    after_each(rigs.close)

    it("parks, retries, redelivers and discards messages", function()
        local calls = {}
        local rig = rigs.start([[
bus:default():dead_letter()
bus:override(function(failure, verdict)
    local what = failure.message.headers.what
    if what == "park" then return policy.dead_letter("out") end
    if what == "retry" and failure.attempt < 3 then return policy.retry("5s") end
    if what == "redeliver" and failure.redeliveries == 0 then return policy.redeliver("1h") end
    if what == "drop" then return policy.discard("dropped " .. failure.message.id) end
end)]], function(msg)
            calls[msg.id] = (calls[msg.id] or 0) + 1
            error(mulligan.error { type = "A" })
        end)
        for _, what in ipairs { "park", "retry", "redeliver", "drop", "keep" } do
            assert(rig:publish("work", "x", { id = what, headers = { what = what } }))
        end
        rig:advance("1d")
        assert.same({ park = 1, retry = 3, redeliver = 2, drop = 1, keep = 1 }, calls)
        assert.equal("park", rig:collected("out")[1].id)
        assert.equal(3, #rig:collected("error"))
        local notes = {}
        for _, event in ipairs(rig:events("decided")) do
            if event.verdict.action == "discard" then notes[#notes + 1] = event.verdict.note end
        end
        assert.same({ "dropped drop" }, notes)
    end)
end)
