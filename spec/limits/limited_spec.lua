-- limits.md, "While it is limited".
local stage = require "limits.stage"

if stage.waits "limited_spec.lua" then
    return
end

describe("while it is limited,", function()
    after_each(stage.close_all)

    -- at_work gives a stage with three handlers at work, whose calls end as is said, at 10, 100 and 5000 ms.
    local function at_work(letters, more, given)
        given = given or {}
        given.policy = ('C:rate_limit { after = 1, wait = "1s"%s }'):format(more or "")
        given.outcome, given.consumer = letters, { concurrency = 3 }
        given.ms = given.ms or function(_, call)
            return ({ 10, 100, 5000 })[call] or 0
        end
        local self = stage.start(given)
        self:publish(6)
        return self
    end

    it("no probe begins until all handlers that were at work have ended", function()
        local self = at_work { ["m-1"] = "F", ["m-2"] = "F", ["m-3"] = "F" }
        self:to(4999)
        assert.same({ "m-1@0", "m-2@0", "m-3@0" }, self:begun())
        self:to(20000)
        assert.is_true(self.calls[4].at >= 5000)
        assert.equal("m-4", self.calls[4].id)
    end)

    it("no probe begins until those that were cut off have ended, too", function()
        local self = at_work({ ["m-1"] = "F", ["m-3"] = "F" }, nil, { url = "memory:?claim_timeout=3s",
            ms = function(_, call)
                return ({ 10, 20000, 10 })[call] or 0
            end })
        self:hold_fails(1000000)
        self:to(60000)
        local cut = self:calls_of("m-2")[1]
        assert.is_true(cut.cut)
        for _, call in ipairs(self.calls) do
            assert.is_true(call.at < 10 or call.at >= cut.ended, call.at)
        end
        assert.is_true(#self.calls > 6)
    end)

    it("`status` says that it waits for them", function()
        local self = at_work { ["m-1"] = "F", ["m-2"] = "F", ["m-3"] = "F" }
        self:to(3000)
        local limit = self:look().limits[1]
        assert.is_true(limit.waits_for_handlers)
        assert.equal("limited", self:look().why_not)
        self:to(5001)
        assert.is_false(self:look().limits[1].waits_for_handlers)
        assert.equal("limited", self:look().why_not)
        self:to(20000)
        assert.same({}, self:look().limits)
    end)

    it("`status` says since when, until when and by which error", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "F" }
        local began_ms = self.engine:snapshot().time_ms
        self:publish(2)
        local limit = self:look().limits[1]
        assert.same({ began_ms, "Flaky" }, { limit.since_ms, limit.error_type })
        assert.is_nil(limit.per)
        stage.near(1000, limit.next_ms - began_ms)
        local event = self.limit_events[1].event
        assert.same({ "C", began_ms, "Flaky" }, { event.consumer, event.limit.since_ms, event.limit.error_type })
        stage.near(1000, event.limit.next_ms - began_ms)
        assert.is_string(event.text)
    end)

    it("failures of handlers that were at work count", function()
        local self = at_work({ ["m-1"] = "F", ["m-3"] = "F" }, ", successes = 2")
        self:to(20000)
        -- m-2 succeeds and m-3 fails: these two are no row, nor are m-2 and the first probe.
        assert.same({ "started@10", "ended@" .. self.ends[5].ended }, self:told())
        stage.near(1000, self.calls[4].at - 5000) -- it is a failed attempt, so the wait begins anew
    end)

    it("`successes` of theirs end it", function()
        local self = at_work { ["m-1"] = "F" }
        self:to(200)
        assert.same({ "started@10", "ended@100" }, self:told())
        assert.equal(6, #self.calls) -- m-4 to m-6 began at once, beside m-3
    end)

    it("`successes` of theirs end it, as many as are asked for", function()
        local self = at_work({ ["m-1"] = "F" }, ", successes = 2")
        self:to(20000)
        assert.same({ "started@10", "ended@5000" }, self:told())
        assert.equal(5000, self.calls[4].at)
    end)

    it("there is one call at a time", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "100ms" }', ms = 70,
            outcome = stage.failing_until(10000), consumer = { concurrency = 5 } }
        self:publish(100)
        self:to(9000)
        assert.is_true(#self.calls > 20)
        for number = 6, #self.calls do
            assert.equal(1, self.calls[number].at_work)
            stage.near(100, self.calls[number].at - self.calls[number - 1].ended)
        end
        self:to(20000)
        assert.equal(5, self.calls[#self.calls].at_work)
    end)

    it("the next probe is the oldest message that is ready and isn't the last probe's", function()
        local retries = 'retry { "1ms", ' .. ('"1ms", '):rep(50) .. "}"
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', chain = retries,
            outcome = stage.failing_until(10000) }
        self:publish(4)
        self:to(9000)
        assert.equal("m-1", self.calls[1].id)
        -- The failure that starts a limit is no probe: m-1 may be the first probe, and then m-2 is the second.
        local first = self.calls[2].id == "m-1" and 2 or 1
        assert.same({ "m-1", "m-2", "m-1", "m-2", "m-1" }, self:ids(first, 5))
    end)

    it("the last probe's message is the next one if nothing else is there", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "FFF",
            chain = 'retry { "1ms", "1ms", "1ms" }' }
        self:publish(1)
        self:advance "10s"
        assert.same({ "m-1", "m-1", "m-1", "m-1" }, self:ids())
        assert.equal("started ended", self:names())
    end)

    -- with_candidate gives a stage on a file, with a message whose last owner died and others around it.
    local function with_candidate(given, ids, candidate)
        given.url, given.consumer = "sqlite:", { paused = true }
        local self = stage.start(given)
        for _, id in ipairs(ids) do
            -- It comes due later, so that something else begins first.
            self:publish({ id = id, delay = id == candidate and "500ms" or nil }, id:find "^d" and "other" or "work")
        end
        return self, { consumer = { paused = false }, others = { D = { queue = "other" } } }, { [candidate] = 1 }
    end

    it("a poison candidate is a probe only if nothing else is there", function()
        local self, begin, died = with_candidate({ policy = 'C:rate_limit { after = 1, wait = "1s" }',
            outcome = "FFF" }, { "m-1", "p-1" }, "p-1")
        self:restart(begin, died)
        self:to(600)
        self:publish { { id = "m-2" }, { id = "m-3" } }
        self:advance "1m"
        assert.same({ "m-1", "m-2", "m-3", "p-1" }, self:ids())
        assert.equal("started ended", self:names())
    end)

    it("a poison candidate of a limited consumer holds up no other consumer", function()
        local self, begin, died = with_candidate({ policy = 'C:rate_limit { after = 1, wait = "1h" }',
            outcome = { ["m-1"] = "F" } }, { "m-1", "p-1" }, "p-1")
        self:restart(begin, died)
        self:to(1000)
        self:publish({ { id = "d-1" }, { id = "d-2" } }, "other")
        self:to(2000)
        assert.same({ "d-1@1000", "d-2@1000" }, { table.unpack(self:begun(), 2) })
        assert.is_not_equal("candidate_alone", self:look("D").why_not)
    end)

    it("a poison candidate that waits for the rate of its value holds up no other consumer", function()
        local self, begin, died = with_candidate({ policy = 'C:limit { rate = "1/h", per = "key" }', ms = function(msg)
            return msg.id == "d-1" and 4000 or 0
        end }, {}, "p-1")
        self:publish { key = "a", id = "p-1", delay = "2s" }
        begin.others.D.concurrency = 2
        self:restart(begin, died)
        self:publish { key = "a", id = "before" }
        self:to(1000)
        self:publish({ id = "d-1" }, "other")
        self:to(3000) -- p-1 is here
        self:publish({ id = "d-2" }, "other")
        self:to(3100)
        assert.same({ "before@0", "d-1@1000", "d-2@3000" }, self:begun())
    end)

    it("a poison candidate of a paused consumer holds up no other consumer", function()
        local self, begin, died = with_candidate({}, { "p-1", "d-1" }, "p-1")
        begin.consumer.paused = true
        self:restart(begin, died)
        self:to(1000)
        assert.same({ "d-1" }, self:ids())
        self:publish({ id = "d-2" }, "other")
        self:to(20000)
        assert.equal(1, #self:calls_of "d-2")
    end)

    it("retries that wait in memory hold no slot", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "F",
            chain = 'retry { "1h" }' }
        self:publish(3)
        self:to(10000)
        assert.same({ "m-1", "m-2", "m-3" }, self:ids())
        stage.near(1000, self.calls[2].at)
        assert.equal(self.calls[2].at, self.calls[3].at)
    end)

    it("a retry runs at the later of its own time and the next probe's", function()
        local sooner = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "F",
            chain = 'retry { "200ms" }' }
        sooner:publish(1)
        sooner:to(10000)
        stage.near(1000, sooner.calls[2].at)
        local later = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "F",
            chain = 'retry { "3s" }' }
        later:publish(1)
        later:to(10000)
        assert.same({ "m-1@0", "m-1@3000" }, later:begun())
    end)
end)
