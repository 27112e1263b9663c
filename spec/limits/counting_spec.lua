-- limits.md, "Counting".
local stage = require "limits.stage"

if stage.waits "counting_spec.lua" then
    return
end

local LOSSY = "memory:?claim_timeout=300ms"

describe("counted", function()
    after_each(stage.close_all)

    -- run gives the events of single messages, one a second.
    local function run(policy, letters, more)
        local given = { policy = policy, outcome = letters }
        for key, value in pairs(more or {}) do
            given[key] = value
        end
        local self = stage.start(given)
        for _ = 1, #letters do
            self:publish(1)
            self:advance "1s"
        end
        return self
    end

    it("is every end of a handler call: success", function()
        assert.equal("", run("C:rate_limit { after = 3 }", "FFSFFSFF"):names())
        assert.equal("started", run("C:rate_limit { after = 3 }", "FFSFFF"):names())
    end)

    it("is failure of a type that counts", function()
        assert.equal("started", run('C:rate_limit { after = 3, only = "Flaky" }', "FCF"):names())
        assert.equal("", run('C:rate_limit { after = 3, only = "Child" }', "FCF"):names())
    end)

    it("is a retry's failure as any other", function()
        local self = stage.start { policy = "C:rate_limit { after = 3 }", chain = 'retry { "5ms", "5ms", "5ms" }',
            outcome = "FFF" }
        self:publish(1)
        self:advance "20ms"
        assert.same({ "started@10" }, self:told())
    end)

    -- lossy gives a stage in which the calls of "lost" are cut off, and come again.
    local function lossy(policy, outcome, ms)
        local self = stage.start { policy = policy, url = LOSSY, outcome = outcome, ms = ms,
            consumer = { concurrency = 3 } }
        return self
    end

    it("aren't cut-off calls: they don't count", function()
        local self = lossy("C:rate_limit { after = 2 }", { ["m-1"] = "F", lost = "FF" }, function(msg, _, its)
            return msg.id == "lost" and (its == 1 and 5000 or 50) or 0
        end)
        self:publish(1)
        self:hold_fails(3)
        self:publish { id = "lost" }
        self:to(299)
        assert.same({ "m-1@0", "lost@0" }, self:begun())
        self:to(1000)
        local lost = self:calls_of "lost"
        assert.is_true(lost[1].cut)
        assert.same({ "started@" .. lost[2].ended }, self:told())
    end)

    it("aren't cut-off calls: they don't double, end nor lengthen", function()
        local self = stage.start {
            policy = 'C:rate_limit { after = 1, wait = "1s", max_wait = "100s", successes = 2 }', url = LOSSY,
            outcome = { ["m-1"] = "F", ["m-3"] = "F" }, ms = function(msg, _, its)
                return msg.id == "m-2" and its == 1 and 5000 or 0
            end,
        }
        self:publish(1)
        self:hold_fails(1000000)
        self:publish(3)
        self:advance "2s"
        assert.is_true(self:calls_of("m-2")[1].cut)
        assert.same({ "started@0" }, self:told())
        self:advance "100s"
        local third = self:calls_of("m-3")[1]
        stage.near(2000, self.calls[third.number + 1].at - third.ended) -- the waits are w, 2w, 4w: cut off, it isn't 4w
    end)

    it("aren't deaths", function()
        local self = stage.start { policy = "C:max_deliveries(1) C:rate_limit { after = 2 }", url = "sqlite:",
            consumer = { paused = true } }
        self:publish { { id = "d-1" }, { id = "d-2" }, { id = "d-3" } }
        self:restart({ consumer = { paused = false } }, { ["d-1"] = 3, ["d-2"] = 3, ["d-3"] = 3 })
        self:advance "1m"
        assert.same({ 3, "max_deliveries" }, { #self.dead, self.dead[1].reason })
        assert.same({}, self:told())
        self.given.outcome = "FF"
        self:publish(1)
        assert.same({}, self:told())
        self:publish(1)
        assert.equal("started", self:names())
    end)

    it("aren't deaths between two failures, nor do they end a limit or lengthen it", function()
        local self = stage.start { policy = "C:max_deliveries(1) C:rate_limit { after = 2 }", url = "sqlite:",
            consumer = { paused = true }, outcome = { ["m-1"] = "F", ["m-3"] = "FF" } }
        self:publish { { id = "m-1" }, { id = "d-2" }, { id = "m-3" }, { id = "d-4" }, { id = "m-5" } }
        self:restart({ consumer = { paused = false } }, { ["d-2"] = 3, ["d-4"] = 3 })
        self:advance "1m"
        assert.same({ "m-1", "m-3", "m-5" }, self:ids())
        assert.equal("started ended", self:names())
        stage.near(1000, self.calls[3].at - self.calls[2].ended)
    end)

    it("aren't messages refused for their size", function()
        local self = stage.start { policy = "C:rate_limit { after = 2 }", outcome = "FF", consumer = { max_body = 10 } }
        local large = ("x"):rep(100)
        self:publish { { body = large }, { body = large }, { body = large } }
        self:advance "1s"
        assert.equal(3, #self.dead)
        self:publish { { id = "a" }, { body = large }, { id = "b" } }
        assert.equal("started", self:names())
        assert.equal(2, #self.calls)
    end)

    it("aren't errors that don't count: they neither count nor begin the count anew", function()
        local self = run('C:rate_limit { after = 2, only = "Flaky" }', "OOFOOF")
        assert.same({ "started@5000" }, self:told())
    end)

    it("aren't errors that don't count: they don't double", function()
        local self = run('C:rate_limit { after = 1, only = "Flaky", wait = "1s", max_wait = "100s" }', "FOF")
        self:publish(1)
        self:advance "100s"
        assert.same({ "F", "O", "F", "S" }, { "F", self.calls[2].type == "Other" and "O", "F", "S" })
        stage.near(2000, self.calls[4].at - self.calls[3].ended) -- the waits are w, 2w, 4w
    end)

    it("aren't errors that don't count: they don't end a limit", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, only = "Flaky", wait = "10ms" }',
            outcome = "FOOS" }
        self:publish(4)
        self:advance "10s"
        assert.equal("started ended", self:names())
        assert.equal(self.limit_events[2].at, self.ends[4].ended)
    end)

    it("aren't errors that don't count: they break no row of successes", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, only = "Flaky", successes = 2, wait = "10ms" }',
            outcome = "FSOSSS" }
        self:publish(6)
        self:advance "10s"
        assert.equal(self.limit_events[2].at, self.ends[4].ended)
    end)

    it("aren't errors that don't count: they don't lengthen it", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, only = "Flaky", wait = "1s" }',
            outcome = { ["m-1"] = "F", ["m-2"] = "O" }, consumer = { concurrency = 2 }, ms = function(msg)
                return msg.id == "m-2" and 900 or 0
            end }
        self:pause()
        self:publish { { id = "m-2" }, { id = "m-1" }, { id = "m-3" } }
        self:resume()
        self:advance "10s"
        local probe = self:calls_of("m-3")[1]
        assert.is_true(probe.at >= 1000 and probe.at <= 1251, probe.at)
    end)

    it("is each engine's own: counts, probes and events", function()
        local first = stage.start { policy = "C:rate_limit { after = 2 }", url = "sqlite:", outcome = "FF" }
        local url = first:url()
        local second = stage.start { policy = "C:rate_limit { after = 2 }", url = url, outcome = "FF",
            clock = first.clock, consumer = { queue = "other" } }
        first:publish(1)
        second:publish(1, "other")
        assert.same({ "", "" }, { first:names(), second:names() })
        first:publish(1)
        assert.same({ "started", "" }, { first:names(), second:names() })
        second:publish({ { id = "second" } }, "other")
        assert.same({ "started", "started" }, { first:names(), second:names() })
    end)

    it("is each engine's own: rates", function()
        local first = stage.start { policy = 'C:limit { rate = "1/s" }', url = "sqlite:" }
        local second = stage.start { policy = 'C:limit { rate = "1/s" }', url = first:url(), clock = first.clock,
            consumer = { queue = "other" } }
        first:publish(2)
        second:publish({ { id = "a" }, { id = "b" } }, "other")
        assert.same({ "m-1@0" }, first:begun())
        assert.same({ "a@0" }, second:begun())
    end)

    it("is begun anew when the engine starts", function()
        local self = stage.start { policy = "C:rate_limit { after = 2 }", url = "sqlite:", outcome = "FFF" }
        self:publish(1)
        self:restart()
        self:publish(1)
        assert.equal("", self:names())
        self:publish(1)
        assert.equal("started", self:names())
        self:restart()
        self:publish(2)
        assert.equal(5, #self.calls)
    end)

    it("is what spans processes only where it is written with messages", function()
        local self = stage.start { policy = "C:max_attempts(2) C:rate_limit { after = 3 }", url = "sqlite:",
            chain = 'redeliver { "1s", "1s", "1s" }', outcome = "FFFFFF" }
        self:publish(1)
        self:restart()
        self:advance "10s"
        assert.same({ 0, 1 }, { self.calls[1].calls, self.calls[2].calls })
        assert.same({ "m-1 max_attempts" }, self:reasons())
        assert.same({}, self:told())
    end)
end)
