-- limits.md, "`limit`".
local stage = require "limits.stage"

if stage.waits "limit_spec.lua" then
    return
end

describe("limit:", function()
    after_each(stage.close_all)

    -- moments gives when so many calls begin under a statement, of messages that are all there at 0.
    local function moments(statement, count, given)
        given = given or {}
        given.policy = statement
        local self = stage.start(given)
        self:publish(count)
        self:advance "24h"
        return self:moments(), self
    end

    it("is GCRA over handler calls", function()
        assert.same({ 0, 0, 0, 100, 200, 300 }, (moments('C:limit { rate = "10/s", burst = 3 }', 6)))
        local self = stage.start { policy = 'C:limit { rate = "10/s", burst = 3 }' }
        self:publish(4)
        self:to(150)
        self:publish(1)
        self:to(400) -- two calls have come back of the burst
        self:publish(3)
        self:to(5000)
        assert.same({ 0, 0, 0, 100, 200, 400, 400, 500 }, self:moments())
    end)

    it("saves no more than a burst", function()
        local self = stage.start { policy = 'C:limit { rate = "10/s", burst = 2 }' }
        self:to(3600000)
        self:publish(3)
        self:advance "1s"
        assert.same({ 3600000, 3600000, 3600100 }, self:moments())
    end)

    it("counts retries, too", function()
        assert.same({ 0, 100, 200, 300, 400 }, (moments('C:limit { rate = "10/s" }', 2,
            { outcome = "FFF", chain = 'retry { "1ms", "1ms", "1ms" }' })))
    end)

    it("has a `burst` of 1 unless it is given", function()
        assert.same({ 0, 100, 200 }, (moments('C:limit { rate = "10/s" }', 3, { consumer = { concurrency = 3 } })))
    end)

    it("takes N/s, N/m and N/h", function()
        assert.same({ 0, 20, 40 }, (moments('C:limit { rate = "50/s" }', 3)))
        assert.same({ 0, 30000, 60000 }, (moments('C:limit { rate = "2/m" }', 3)))
        assert.same({ 0, 1200000, 2400000 }, (moments('C:limit { rate = "3/h" }', 3)))
    end)

    it("holds a rate that is no whole number of milliseconds", function()
        local at = moments('C:limit { rate = "300/s", burst = 5 }', 905) -- a burst makes up for whole milliseconds
        assert.is_true(at[905] >= 3000 and at[905] <= 3001, at[905])
        for number = 5, 605 do
            assert.is_true(at[number + 300] - at[number] >= 999)
        end
    end)

    it("holds such a rate without a burst, too", function()
        local at = moments('C:limit { rate = "300/s" }', 901, { consumer = { concurrency = 3 } })
        assert.is_true(at[901] >= 3000 and at[901] <= 3001, at[901])
        for number = 1, 601 do
            assert.is_true(at[number + 300] - at[number] >= 999, number)
        end
    end)

    it("without `per` calls wait at the gate, and no more is taken than can be called", function()
        local self = stage.start { policy = 'C:limit { rate = "1/s" }', consumer = { concurrency = 10, prefetch = 50 } }
        self:publish(100)
        self:to(3500)
        assert.equal(4, #self.calls)
        local depth, consumer = self:depth(), self:look()
        assert.is_true(depth.claimed <= 1, depth.claimed)
        assert.same({ 96, 0 }, { depth.ready + depth.claimed, depth.delayed })
        assert.is_true(consumer.taken <= 5, consumer.taken)
        assert.equal("rate", consumer.why_not)
        for _, call in ipairs(self.calls) do
            assert.same({ 1, 0, 1 }, { call.attempt, call.calls, call.deliveries })
        end
    end)

    it("with `per` what would wait longer than 1 s goes back with its due time, uncounted", function()
        local self = stage.start { policy = 'C:limit { rate = "1/s", per = "key" }' }
        local list = {}
        for number = 1, 10 do
            list[number] = { key = "a" }
        end
        self:publish(list)
        self:publish { { key = "b" }, {} }
        assert.same({ "m-1@0", "m-11@0", "m-12@0" }, self:begun())
        local depth = self:depth()
        assert.is_true(depth.delayed >= 8 and depth.claimed <= 1, depth.delayed)
        self:advance "30s"
        local last = 0
        for number = 2, 10 do
            local call = self.calls[number + 2]
            assert.is_true(call.at - last >= 1000 and call.at <= number * 1000, call.at)
            assert.same({ 1, 0, 0, 1 }, { call.attempt, call.calls, call.redeliveries, call.deliveries })
            last = call.at
        end
        assert.equal(12, #self.calls)
    end)

    it("with `per` no message is overtaken for ever by those that come later", function()
        local self = stage.start { policy = 'C:limit { rate = "10/s", per = "key" }' }
        self:publish { { key = "a" }, { key = "a" } }
        for number = 1, 5 do -- one comes while one is called
            self:to(number * 100 - 50)
            self:publish { { key = "a" } }
        end
        self:advance "1s"
        assert.same({ "m-1@0", "m-2@100", "m-3@200", "m-4@300", "m-5@400", "m-6@500", "m-7@600" }, self:begun())
    end)

    it("with `per` each value has a rate of its own, and a message without a value none", function()
        local self = stage.start { policy = 'C:limit { rate = "1/s", per = policy.header "tenant" }',
            consumer = { prefetch = 10 } } -- what waits for no longer than 1 s may be held in memory
        self:publish { { headers = { tenant = "a" } }, { headers = { tenant = "b" } }, { headers = { tenant = "a" } },
            { headers = { tenant = "b" } }, {}, {} }
        self:advance "10s"
        local begun = self:begun()
        table.sort(begun)
        assert.same({ "m-1@0", "m-2@0", "m-3@1000", "m-4@1000", "m-5@0", "m-6@0" }, begun)
    end)

    it("holds two of different `per` at once", function()
        local self = stage.start { policy = 'C:limit { rate = "10/s" } C:limit { rate = "1/s", per = "key" }' }
        self:publish { { key = "a" }, { key = "a" }, { key = "b" }, {} }
        self:advance "10s"
        local at = {}
        for _, call in ipairs(self.calls) do
            at[call.id] = call.at
        end
        assert.same({ 0, 100, 200 }, { at["m-1"], at["m-3"], at["m-4"] })
        assert.is_true(at["m-2"] >= 1000 and at["m-2"] <= 1100, at["m-2"])
    end)

    it("holds beside a rate_limit", function()
        local self = stage.start { policy = 'C:limit { rate = "1/s" } C:rate_limit { after = 1, wait = "200ms" }',
            outcome = "FFS" }
        self:publish(4)
        self:advance "1m"
        assert.same({ 0, 1000, 2000, 3000 }, self:moments())
    end)
end)
