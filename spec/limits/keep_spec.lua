-- limits.md, "`keep`".
local stage = require "limits.stage"

if stage.waits "keep_spec.lua" then
    return
end

local KEEP = 'C:rate_limit { after = 1, wait = "1s", keep = true }\n'

describe("keep:", function()
    after_each(stage.close_all)

    -- fate runs one message that fails so often: the number of its calls, and its dead letter's reason.
    local function fate(given)
        local self = stage.start(given)
        self:publish(1)
        self:advance "10m"
        return { #self.calls, self.dead[1] and self.dead[1].reason }, self
    end

    it("kept is the failure that starts the limit, and none earlier", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, wait = "1s", keep = true }', chain = "retry(0)",
            outcome = "FF" }
        self:publish(2)
        self:to(10000)
        assert.same({ "m-1 exhausted" }, self:reasons())
        assert.same({ "m-1", "m-2", "m-2" }, self:ids())
    end)

    it("kept are all counted failures that end while it is in force", function()
        local self = stage.start { policy = KEEP, chain = "retry(0)", outcome = "FFFFFF",
            consumer = { concurrency = 3 }, ms = function(_, call)
                return call * 10
            end }
        self:publish(3)
        self:to(60000)
        assert.same({}, self.dead)
        assert.equal(9, #self.calls)
    end)

    it("a failure that doesn't count isn't kept", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, keep = true, only = "Flaky", wait = "1s" }',
            chain = "retry(0)", outcome = "FO" }
        self:publish(2)
        self:to(60000)
        assert.same({ self.calls[2].id .. " exhausted" }, self:reasons())
    end)

    it("a failure after its end isn't kept", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, keep = true, wait = "1s" }', chain = "retry(0)",
            outcome = "FFSFS" }
        self:publish(3)
        self:to(60000)
        assert.same({ 2, "started ended" }, { #self.dead, self:names() })
    end)

    for name, given in pairs {
        ["a retry"] = { chain = 'retry { "1ms" }' },
        ["a redelivery"] = { chain = 'redeliver { "1ms" }' },
        ["a chain used up"] = { chain = "retry(0)" },
        ["a chain used up, with a discard at its end"] = { chain = "retry(0):then_discard()" },
        ["max_attempts used up"] = { chain = 'retry { "1ms" }', more = "C:max_attempts(1)" },
        ["a retry of an override's"] = { more = 'C:override(function() return policy.retry("1ms") end)' },
        ["a redelivery of an override's"] = { more = 'C:override(function() return policy.redeliver("1ms") end)' },
    } do
        it("kept is a failure whose final verdict is " .. name, function()
            local counts, self = fate { policy = KEEP .. (given.more or ""), chain = given.chain, outcome = "FFFF" }
            assert.same({ 5 }, counts)
            for _, call in ipairs(self.calls) do
                assert.same({ 1, 0, 0 }, { call.attempt, call.calls, call.redeliveries })
            end
        end)
    end

    for name, given in pairs {
        ["`unrecoverable`"] = { chain = 'retry { "1ms" }', more = 'C:unrecoverable "Flaky"', reason = "unrecoverable" },
        ["a rule that is plain `dead_letter`"] = { chain = "dead_letter()", reason = "rule" },
        ["a rule that is plain `discard`"] = { chain = "discard()" },
        ["an override's own dead letter"] = { chain = 'retry { "1ms" }', reason = "override",
            more = "C:override(function() return policy.dead_letter() end)" },
        ["an override's own discard"] = { chain = 'retry { "1ms" }',
            more = "C:override(function() return policy.discard() end)" },
    } do
        it(name .. " is carried out", function()
            local policy = KEEP .. (given.more or "")
            local counts, self = fate { policy = policy, chain = given.chain, outcome = "FFFF" }
            assert.same({ 1, given.reason }, counts)
            assert.equal("started", self:names())
        end)
    end

    it("a kept message goes back to its queue, due at the wait's end", function()
        local self = stage.start { policy = KEEP, chain = "retry(0)", outcome = "F" }
        local began_ms = self.engine:snapshot().time_ms
        self:publish(1)
        local depth = self:depth()
        assert.same({ 0, 1, 0 }, { depth.ready, depth.delayed, depth.claimed })
        stage.near(1000, depth.next_due_ms - began_ms)
        self:advance "10s"
        stage.near(1000, self.calls[2].at)
    end)

    it("its failure is uncounted: `attempt` begins at 1 there, `calls` and `redeliveries` are as before", function()
        local self = stage.start { policy = 'C:rate_limit { after = 3, wait = "1s", keep = true }',
            chain = 'retry { "1ms" }:then_redeliver { "1ms", "1ms" }', outcome = "FFFF" }
        self:publish(1)
        self:advance "1m"
        local seen = {}
        for number, call in ipairs(self.calls) do
            seen[number] = { call.attempt, call.calls, call.redeliveries }
        end
        assert.same({ { 1, 0, 0 }, { 2, 1, 0 }, { 1, 2, 1 }, { 1, 2, 1 }, { 1, 2, 1 } }, seen)
    end)

    -- aged gives a message that fails, is kept for a while, fails with what isn't kept, and is redelivered or not.
    local function aged(more)
        local self = stage.start { chain = 'redeliver { "10ms", "10ms" }', outcome = "FFOO", policy = more
            .. 'C:rate_limit { after = 2, wait = "1h", keep = true, only = "Flaky" }' }
        self:publish(1)
        self:advance "5h"
        assert.equal("Other", self.calls[3].type)
        return self, self.calls[3].at - self.calls[2].ended
    end

    it("its age stands still from a kept failure to its next call", function()
        local self, held = aged 'C:max_age("1m")'
        stage.near(3600000, held)
        assert.same({ "m-1 exhausted" }, self:reasons())
        assert.equal(self.decided[#self.decided].age_ms, self.calls[4].ended - self.calls[1].ended - held)
    end)

    it("`mulligan-held` says for how long, in milliseconds", function()
        local self, held = aged ""
        assert.equal(tostring(held), self.dead[1].headers["mulligan-held"])
    end)

    it("its deaths stay counted", function()
        local self = stage.start { policy = 'C:max_deliveries(4) C:rate_limit { after = 1, wait = "1s", keep = true }',
            chain = "retry(0)", url = "sqlite:", consumer = { paused = true }, outcome = stage.failing_until(30000) }
        self:publish(1)
        self:restart({ consumer = { paused = false } }, { ["m-1"] = 3 })
        self:to(10000)
        assert.is_true(#self.calls >= 5) -- the fourth hand-out, again and again
        assert.same({}, self.dead)
        local calls = #self.calls
        self:restart({}, { ["m-1"] = 1 })
        self:advance "1m"
        assert.same({ "m-1 max_deliveries" }, self:reasons())
        assert.equal(calls, #self.calls)
    end)

    it("`deadline` goes on", function()
        local self = stage.start { policy = KEEP .. 'C:deadline("5s")', chain = "retry(0)",
            outcome = stage.failing_until(60000) }
        self:publish(1)
        self:to(100000)
        assert.same({ "m-1 deadline" }, self:reasons())
        assert.is_true(#self.calls >= 4 and self.calls[#self.calls].at <= 5000)
    end)

    it("an outage dead-letters nothing of what is tried during it", function()
        local self = stage.start { policy = KEEP, chain = 'retry { "1ms" }:then_redeliver { "2s" }',
            outcome = stage.failing_until(60000), consumer = { concurrency = 4 }, ms = 7 }
        self:publish(40)
        self:to(600000)
        assert.same({}, self.dead)
        assert.equal("started ended", self:names())
        local well = {}
        for _, call in ipairs(self.calls) do
            well[call.id] = not call.type
        end
        for number = 1, 40 do
            assert.is_true(well["m-" .. number], number)
        end
    end)

    it("messages that wait for a redelivery all through it do age", function()
        local self = stage.start {
            policy = 'C:rate_limit { after = 2, wait = "10s", keep = true } C:max_age("30m")',
            chain = 'redeliver { "1h", "1h" }', outcome = { ["m-1"] = "FF", ["m-2"] = "FF" },
        }
        self:publish(2)
        self:to(3700000)
        assert.same({ "m-1 max_age" }, self:reasons())
        assert.equal("0", self.dead[1].headers["mulligan-held"] or "0")
        assert.equal("started ended", self:names())
    end)
end)
