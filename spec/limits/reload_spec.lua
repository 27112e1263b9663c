-- limits.md, "Reload".
local stage = require "limits.stage"

if stage.waits "reload_spec.lua" then
    return
end

describe("a reload", function()
    after_each(stage.close_all)

    it("lets limits with the same `per` keep their counts", function()
        local self = stage.start { policy = 'C:rate_limit { after = 3, wait = "1s" }', outcome = "FFF" }
        self:publish(2)
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 3, wait = "2s" }' })
        assert.equal("", self:names())
        self:publish(1)
        assert.equal("started", self:names())
    end)

    it("lets limits with the same `per` keep their counts, of each value", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, per = "key" }', outcome = "FFF" }
        self:publish { { key = "a" } }
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 2, wait = "2s", per = "key" }' })
        self:publish { { key = "b" } }
        assert.equal("", self:names())
        self:publish { { key = "a" } }
        assert.equal("a", self.limit_events[1].event.limit.value)
    end)

    it("from `after` to `ratio`, or back, counts anew", function()
        local row, part = "C:rate_limit { after = 4%s }", 'C:rate_limit { ratio = 0.5, least = 6, window = "1h"%s }'
        for _, per in ipairs { "", ', per = "key"' } do
            local self = stage.start { policy = row:format(per), outcome = "FFFSSSFFF" }
            local function publish(count)
                for _ = 1, count do
                    self:publish { key = "a" }
                end
            end
            publish(3)
            assert.is_true(self:reload { policy = part:format(per) })
            publish(3)
            assert.is_true(self:reload { policy = row:format(per) })
            publish(1) -- three successes lie between
            assert.equal("", self:names())
            assert.is_true(self:reload { policy = part:format(per) })
            publish(2) -- and these aren't six calls
            assert.equal("", self:names())
        end
    end)

    it("lets limits with the same `per` keep their state", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s" }', outcome = "FF" }
        self:publish(4)
        self:to(1000)
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 5, wait = "10s" }' })
        assert.equal("started", self:names())
        self:to(5000)
        assert.equal(1, #self.calls)
        self:to(60000)
        assert.equal("started ended", self:names())
        stage.near(10000, self.calls[2].at)
        stage.near(10000, self.calls[3].at - self.calls[2].ended)
    end)

    it("lets a rate keep its state", function()
        local self = stage.start { policy = 'C:limit { rate = "1/m" }' }
        self:publish(3)
        assert.is_true(self:reload { policy = 'C:limit { rate = "1/m", burst = 1 } C:max_attempts(99)' })
        self:to(59999)
        assert.equal(1, #self.calls)
        self:to(60000)
        assert.equal(2, #self.calls)
    end)

    it("lets no rate of before put a call off for longer than the new one does", function()
        local self = stage.start { policy = 'C:limit { rate = "1/h", burst = 3 }' }
        self:publish(7)
        self:to(1000)
        assert.is_true(self:reload { policy = 'C:limit { rate = "10/s" }' })
        self:advance "10s"
        assert.same({ 0, 0, 0, 1100, 1200, 1300, 1400 }, self:moments())
    end)

    it("lets no rate of before put a call of a value off for longer than the new one does", function()
        local self = stage.start { policy = 'C:limit { rate = "1/h", per = "key" }' }
        self:publish { { key = "a" }, { key = "a" }, { key = "a" } }
        self:to(1000)
        assert.is_true(self:reload { policy = 'C:limit { rate = "1/s", per = "key" }' })
        self:publish { { key = "a" }, { key = "a" }, { key = "a" } }
        self:advance "10s"
        assert.same({ "m-1@0", "m-4@2000", "m-5@3000", "m-6@4000" }, self:begun())
        self:advance "3h" -- what went back by the rate of before is there when it was due
        assert.equal(6, #self.calls)
    end)

    it("lets a retry go that waits for a limit which it ends, or for a rate that it changes", function()
        for policy, later in pairs {
            ['C:rate_limit { after = 1, wait = "1h", per = "key" }'] = 'C:rate_limit { after = 1, per = "type" }',
            ['C:limit { rate = "1/h", per = "key" }'] = 'C:limit { rate = "1/s", per = "key" }',
        } do
            local self = stage.start { policy = policy, chain = 'retry { "10ms" }', outcome = "F" }
            self:publish { key = "a" }
            self:to(1000)
            assert.equal(1, #self.calls)
            assert.is_true(self:reload { policy = later })
            self:to(2000)
            assert.equal(2, #self.calls)
        end
    end)

    it("has new numbers hold from the next failure", function()
        local self = stage.start { policy = 'C:rate_limit { after = 5 }', outcome = "FFF" }
        self:publish(2)
        assert.is_true(self:reload { policy = "C:rate_limit { after = 2 }" })
        assert.equal("", self:names()) -- it has two already
        self:publish(1)
        assert.equal("started", self:names())
    end)

    it("has new numbers hold from the next probe", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s" }', outcome = "FFFSS" }
        self:publish(6)
        self:to(1000)
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 1, wait = "1s", successes = 2 }' })
        self:to(60000)
        stage.near(10000, self.calls[2].at) -- the wait that has begun goes on
        stage.near(1000, self.calls[3].at - self.calls[2].ended)
        assert.equal(self.ends[5].ended, self.limit_events[2].at)
    end)

    it("with another `per` ends the old one at once, with its event", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h" }', outcome = "F" }
        self:publish(3)
        self:to(1000)
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }' })
        assert.same({ "started@0", "ended@1000" }, self:told())
        assert.same({ "m-1@0", "m-2@1000", "m-3@1000" }, self:begun())
    end)

    it("with none ends the old one at once, with its event", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h" }', outcome = "F" }
        self:publish(3)
        self:to(1000)
        assert.is_true(self:reload { policy = "" })
        assert.same({ "started@0", "ended@1000" }, self:told())
        assert.same({ "m-1@0", "m-2@1000", "m-3@1000" }, self:begun())
        assert.same({}, self:look().limits)
    end)

    it("with none ends those of each value, each with its event", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }', outcome = "FF" }
        self:publish { { key = "a" }, { key = "b" } }
        assert.is_true(self:reload { policy = "" })
        local ended = {}
        for _, entry in ipairs(self.limit_events) do
            if entry.name == "rate_limit_ended" then
                ended[#ended + 1] = entry.event.limit.value
            end
        end
        table.sort(ended)
        assert.same({ "a", "b" }, ended)
        self:publish { { key = "a" }, { key = "b" } }
        assert.equal(4, #self.calls)
    end)

    it("that is refused changes nothing", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s" }', outcome = "F" }
        self:publish(2)
        self:to(1000)
        assert.is_nil((self:reload { policy = "C:rate_limit { }" }))
        self:to(9999)
        assert.same({ 1, "started" }, { #self.calls, self:names() })
        self:to(60000)
        assert.equal(2, #self.calls)
    end)

    it("keeps a ramp going", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", ramp = "10s" }', outcome = "FS",
            consumer = { concurrency = 4 }, ms = function(_, call)
                return call <= 2 and 0 or 100
            end }
        self:publish(1)
        self:publish(500)
        self:to(1300)
        local ended = self.limit_events[2].at
        assert.is_true(self:reload { policy = 'C:rate_limit { after = 2, wait = "1s", ramp = "10s" }' })
        self:to(ended + 4950)
        assert.equal(1, self.at_work)
        self:to(ended + 5050)
        assert.equal(2, self.at_work)
    end)
end)
