-- limits.md, "Putting back": what a limit puts back.
local stage = require "limits.stage"

if stage.waits "putting_back_spec.lua" then
    return
end

local LIMIT = 'C:rate_limit { after = 1, wait = "10s", per = "key" }\n'

describe("what a limit puts back", function()
    after_each(stage.close_all)

    -- with_deaths gives a stage on a file, whose key "a" is limited until 65 s, and a message "a-1" of it whose owners
    -- have died.
    local function with_deaths(deaths, most)
        local self = stage.start { policy = LIMIT .. ("C:max_deliveries(%d)"):format(most), url = "sqlite:",
            consumer = { paused = true }, outcome = function(msg, _, now)
                return msg.id:find "^f" and now < 65000 and "F" or "S"
            end }
        self:publish { id = "f-0", key = "a" }
        self:publish { id = "a-1", key = "a", delay = "1s" }
        self:restart({ consumer = { paused = false } }, { ["a-1"] = deaths })
        for number = 1, 20 do
            self:publish { id = "f-" .. number, key = "a" }
        end
        return self
    end

    it("keeps the number of its deaths", function()
        local self = with_deaths(2, 20)
        self:to(600000)
        local call = self:calls_of("a-1")[1]
        assert.is_true(call.at >= 10000) -- it was due at 1 s, and put back
        assert.equal(3, call.deliveries)
    end)

    it("keeps the number of its deaths, up to the last that is too many", function()
        local self = with_deaths(2, 3)
        self:to(5000)
        assert.same({}, self:calls_of "a-1")
        self:restart({}, { ["a-1"] = 1 })
        self:to(600000)
        assert.same({}, self:calls_of "a-1")
        local reasons = {}
        for _, letter in ipairs(self.dead) do
            reasons[letter.id] = letter.reason
        end
        assert.equal("max_deliveries", reasons["a-1"])
    end)

    it("isn't handed out before its due time, poison candidate or not", function()
        local self = stage.start { policy = LIMIT, url = "sqlite:", consumer = { paused = true },
            outcome = { ["f-0"] = "F" } }
        self:publish { id = "f-0", key = "a" }
        self:publish { { id = "a-1", key = "a", delay = "1s" }, { id = "a-2", key = "a", delay = "1s" } }
        self:restart({ consumer = { paused = false } }, { ["a-1"] = 1 })
        self:to(2000)
        local taken = self:look().taken
        self:to(9900)
        local depth = self:depth()
        assert.same({ 2, 0 }, { depth.delayed, depth.ready + depth.claimed })
        assert.equal(taken, self:look().taken)
        self:to(60000)
        assert.same({ 1, 1 }, { #self:calls_of "a-1", #self:calls_of "a-2" })
    end)

    it("doesn't count it towards `max_deliveries`", function()
        local self = stage.start { policy = LIMIT .. "C:max_deliveries(1)", outcome = stage.failing_until(95000) }
        local list = {}
        for number = 1, 30 do
            list[number] = { key = "a" }
        end
        self:publish(list)
        self:to(3600000)
        assert.equal(30, #self.calls)
        assert.equal("started ended", self:names())
        for _, letter in ipairs(self.dead) do
            assert.equal("rule", letter.reason)
        end
        for _, call in ipairs(self.calls) do
            assert.equal(1, call.deliveries)
        end
    end)

    it("doesn't count it towards `max_deliveries` on a file either", function()
        local self = stage.start { policy = 'C:limit { rate = "1/m", per = "key" } C:max_deliveries(3)',
            url = "sqlite:" }
        local list = {}
        for number = 1, 20 do
            list[number] = { key = "a" }
        end
        self:publish(list)
        self:advance "1h"
        assert.same({ 20, 0 }, { #self.calls, #self.dead })
        assert.is_true(self.calls[20].at >= 19 * 60000)
    end)
end)
