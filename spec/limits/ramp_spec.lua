-- limits.md, "`ramp`".
local stage = require "limits.stage"

if stage.waits "ramp_spec.lua" then
    return
end

local RAMP_MS = 10000

describe("ramp:", function()
    after_each(stage.close_all)

    -- ramped gives a stage with so many handlers, whose limit ends at its second call, and that moment.
    local function ramped(concurrency, given)
        given.policy = 'C:rate_limit { after = 1, wait = "1s", ramp = "10s" }\n' .. (given.policy or "")
        given.outcome, given.consumer = given.outcome or "FS", { concurrency = concurrency }
        local self = stage.start(given)
        self:publish(1)
        self:publish(given.count or 1000)
        self:to(1300)
        return self, self.limit_events[2].at
    end

    local function allowed(concurrency, t)
        return t >= RAMP_MS and concurrency or math.max(1, concurrency * t // RAMP_MS)
    end

    -- durations of the first two calls are none.
    local function later(ms)
        return function(_, call)
            return call <= 2 and 0 or ms
        end
    end

    it("there are max(1, ⌊concurrency · t / T⌋) handlers, no more and no less", function()
        for _, concurrency in ipairs { 1, 4, 7 } do
            local self, ended = ramped(concurrency, { ms = later(100) })
            for _, call in ipairs(self.calls) do
                assert.is_true(call.number <= 2 or call.at_work <= allowed(concurrency, call.at - ended))
            end
            for t = 505, 12005, 500 do
                self:to(ended + t)
                assert.equal(allowed(concurrency, t), self.at_work, concurrency .. " handlers at " .. t)
            end
        end
    end)

    it("why it isn't called is told", function()
        local self, ended = ramped(4, { ms = later(100) })
        self:to(ended + 1050)
        assert.equal("ramp", self:look().why_not)
        self:to(ended + 11050)
        assert.is_not_equal("ramp", self:look().why_not)
    end)

    it("what became due meanwhile is released in the order of due times, at the rate that these handlers take it",
        function()
            local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s", ramp = "10s" }',
                outcome = "FS", ms = later(500), consumer = { concurrency = 4 } }
            local list, due = {}, {}
            for number = 1, 12 do -- published in the opposite order
                list[number] = { id = "due-" .. 13 - number, delay = 13 - number .. "s" }
                due[number] = "due-" .. number
            end
            self:publish(1)
            self:publish(list)
            self:publish { id = "probe" }
            self:to(60000)
            local ids = {}
            for _, call in ipairs(self.calls) do
                ids[#ids + 1] = call.id:find "^due" and call.id or nil
            end
            assert.same(due, ids)
            local ended = self.limit_events[2].at
            for number = 3, #self.calls do
                local call = self.calls[number]
                assert.is_true(call.at_work <= allowed(4, call.at - ended))
            end
        end)

    it("a new limit cancels it", function()
        local self, ended = ramped(4, { ms = later(100), outcome = function(_, _, now)
            return (now == 0 or now >= 7000 and now < 7100) and "F" or "S"
        end })
        self:to(ended + 5005)
        assert.equal(2, self.at_work)
        self:to(9500)
        assert.equal("started ended started ended", self:names())
        local again = self.limit_events[4].at
        assert.is_true(again >= 7900 and again < 9000, again)
        for _, call in ipairs(self.calls) do
            assert.is_true(call.at < again or call.at_work <= allowed(4, call.at - again), call.at)
        end
        self:to(again + 5005)
        assert.equal(2, self.at_work)
    end)

    it("`limit` always holds", function()
        local self = ramped(10, { ms = later(10), policy = 'C:limit { rate = "10/s" }', count = 300 })
        self:to(25000)
        assert.is_true(#self.calls > 200)
        for number = 2, #self.calls do
            assert.is_true(self.calls[number].at - self.calls[number - 1].at >= 100)
        end
    end)

    it("without it all handlers are back at once", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s" }', outcome = "FS", ms = later(100),
            consumer = { concurrency = 4 } }
        self:publish(1)
        self:publish(10)
        self:to(1300)
        assert.same({ 4, "started ended" }, { self.most, self:names() })
    end)
end)
