-- The stage itself, where nothing is limited: it records what happens, and its expectations can fail.
local stage = require "limits.stage"

describe("the stage", function()
    after_each(stage.close_all)

    it("draws a letter at each end, and records calls, verdicts and dead letters", function()
        local self = stage.start { chain = 'retry { "10ms" }', outcome = "FSFF", ms = 5,
            consumer = { concurrency = 2 } }
        self:publish(3)
        self:advance "1s"
        assert.same({ "m-1@0", "m-2@0", "m-3@5", "m-1@15", "m-3@20" }, self:begun())
        assert.same({ 0, 15 }, self:moments "m-1")
        assert.same({ "m-3", "m-1" }, self:ids(3, 2))
        assert.same({ "m-1 exhausted" }, self:reasons())
        assert.same({ 1, 0, 2, 1 }, { self.calls[1].attempt, self.calls[1].calls, self.calls[4].attempt,
            self.calls[4].calls })
        assert.equal(2, self.most)
        assert.same({ "retry", "retry", "dead_letter" }, { self.decided[1].action, self.decided[2].action,
            self.decided[3].action })
        assert.same({ 5, "nothing_there" }, { #self.ends, self:look().why_not })
        assert.equal(0, self:depth().delayed)
    end)

    it("takes letters of each message, and of moments", function()
        local self = stage.start { outcome = { ["m-2"] = "F" } }
        self:publish(2)
        assert.same({ "m-2 rule" }, self:reasons())
        local other = stage.start { outcome = stage.failing_until(100, "O") }
        other:publish(1)
        other:to(100)
        other:publish(1)
        assert.same({ "m-1 rule" }, other:reasons())
        assert.equal("Other", other.dead[1].headers["mulligan-error-type"])
    end)

    it("knows calls that were cut off", function()
        local self = stage.start { url = "memory:?claim_timeout=300ms", outcome = "F", ms = function(_, call)
            return call == 1 and 1000 or 0
        end }
        self:hold_fails(1000)
        self:publish(1)
        self:advance "10s"
        assert.same({ true, false }, { self.ends[1].cut, self.ends[2].cut })
        assert.same({ 1, 2 }, { self.calls[1].deliveries, self.calls[2].deliveries })
        assert.same({ "m-1 rule" }, self:reasons())
    end)

    it("begins anew on its file, with owners that died", function()
        local self = stage.start { url = "sqlite:", consumer = { paused = true } }
        self:publish(2)
        self:restart({ consumer = { paused = false } }, { ["m-2"] = 3 })
        self:advance "1s"
        assert.same({ 1, 4 }, { self:calls_of("m-1")[1].deliveries, self:calls_of("m-2")[1].deliveries })
    end)

    it("pauses, resumes and reloads", function()
        local self = stage.start { outcome = "FF" }
        self:pause()
        self:publish(1)
        self:to(50)
        assert.same({}, self:begun())
        assert.is_true(self:reload { chain = 'retry { "5ms" }' })
        self:resume()
        self:advance "1s"
        assert.same({ "m-1@50", "m-1@55" }, self:begun())
        assert.is_nil((self:reload { chain = "rety()" }))
    end)

    it("tells a wait from another", function()
        stage.near(100, 100)
        stage.near(100, 125)
        assert.has_error(function()
            stage.near(100, 99)
        end)
        assert.has_error(function()
            stage.near(100, 127)
        end)
    end)
end)
