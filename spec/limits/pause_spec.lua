-- limits.md, "Pause".
local process = require "support.process"
local stage = require "limits.stage"

if stage.waits "pause_spec.lua" then
    return
end

describe("while a consumer is paused,", function()
    after_each(stage.close_all)

    it("no call of it begins", function()
        local self = stage.start { others = { D = { queue = "other" } } }
        self:pause()
        self:publish(3)
        self:publish(1, "other")
        self:to(60000)
        assert.same({ "m-4@0" }, self:begun())
        assert.same({ true, "paused" }, { self:look().paused, self:look().why_not })
        self:resume()
        assert.same({ "m-1@60000", "m-2@60000", "m-3@60000" }, self:begun(2))
    end)

    it("it is told that it is paused, and that it is not any more", function()
        local self = stage.start {}
        self:pause()
        self:to(10)
        self:resume()
        assert.same({ "paused@0", "resumed@10" }, self:told())
        assert.equal("C", self.limit_events[1].event.consumer)
    end)

    it("no call of it begins if it is so from the beginning", function()
        local self = stage.start { consumer = { paused = true } }
        self:publish(1)
        self:to(1000)
        assert.same({}, self:begun())
        self:resume()
        assert.same({ "m-1@1000" }, self:begun())
    end)

    it("what is prefetched goes back uncounted", function()
        local self = stage.start { ms = 1000, consumer = { prefetch = 10 } }
        self:publish(5)
        self:to(500)
        self:pause()
        local depth = self:depth()
        assert.same({ 4, 1, 0 }, { depth.ready, depth.claimed, depth.delayed })
        self:resume()
        self:to(60000)
        assert.same({ "m-1", "m-2", "m-3", "m-4", "m-5" }, self:ids())
        for _, call in ipairs(self.calls) do
            assert.same({ 1, 0, 1 }, { call.attempt, call.calls, call.deliveries })
        end
    end)

    it("retries that wait go back counted", function()
        local self = stage.start { chain = 'retry { "10s", "10s", "10s" }', outcome = "FF" }
        self:publish(1)
        self:to(15000)
        self:pause()
        local depth = self:depth()
        assert.same({ 2, 0, 1 }, { #self.calls, depth.claimed, depth.ready + depth.delayed })
        self:to(30000)
        assert.equal(2, #self.calls)
        self:resume()
        self:to(60000)
        assert.same({ 3, 2 }, { #self.calls, self.calls[3].calls })
    end)

    it("handlers at work end as usual", function()
        local self = stage.start { ms = 1000, outcome = "FS", consumer = { concurrency = 2 } }
        self:publish(2)
        self:to(500)
        self:pause()
        self:to(5000)
        assert.same({ "m-1 rule" }, self:reasons())
        assert.same({ 1000, 1000, 1 }, { self.ends[1].ended, self.ends[2].ended, self:look().done })
    end)

    it("a limit's timers run on", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s" }', outcome = "FF" }
        self:publish(4)
        self:to(1000)
        self:pause()
        self:to(20000)
        self:resume()
        assert.same({ "m-1@0", "m-2@20000" }, self:begun())
        self:pause()
        self:to(25000)
        self:resume()
        self:to(60000)
        stage.near(10000, self.calls[3].at - 20000)
    end)

    it("a ramp's time runs on", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", ramp = "10s" }', outcome = "FS",
            consumer = { concurrency = 4 }, ms = function(_, call)
                return call <= 2 and 0 or 100
            end }
        self:publish(1)
        self:publish(100)
        self:to(1300)
        assert.equal(1, self.at_work)
        self:pause()
        self:to(20000)
        self:resume()
        assert.equal(4, self.at_work)
    end)
end)

describe("run --until-empty", function()
    local folder

    after_each(function()
        folder:remove()
    end)

    -- run runs a service with messages to the end.
    local function run(consumers, policy)
        folder = process.folder {
            ["service.lua"] = 'local m = require "mulligan"\nm.policy "policy.lua"\n'
                .. 'm.transport("orders", "sqlite:orders.db")\n' .. consumers,
            ["policy.lua"] = 'local policy = require "mulligan.policy"\nlocal C = policy.consumer "C"\n' .. policy,
        }
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = "one\ntwo\n" })
        assert.equal(0, sent.code, sent.err)
        return folder:mulligan { "run", "--until-empty" }
    end

    it("ends in 1 with messages left only in paused consumers, and says so", function()
        local ended = run([[
            m.consumer("C", { transport = "orders", queue = "work", paused = true, handler = function() end })
            m.consumer("D", { transport = "orders", queue = "other", handler = function() end })
        ]], "")
        assert.equal(1, ended.code, ended.err)
        local said = (ended.err .. ended.out):match "[^\n]*paused[^\n]*"
        assert.is_truthy(said, ended.err)
    end)

    it("waits a limit out", function()
        local ended = run([[
            local calls = 0
            m.consumer("C", { transport = "orders", queue = "work", handler = function(msg)
                calls = calls + 1
                if calls < 3 then
                    m.error { type = "Flaky" }
                end
            end })
        ]], 'C:default():redeliver { "10ms", "10ms", "10ms" } C:rate_limit { after = 1, wait = "100ms" }')
        assert.equal(0, ended.code, ended.err)
    end)
end)
