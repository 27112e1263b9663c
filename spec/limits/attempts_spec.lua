-- limits.md, "`max_attempts` and `deadline`".
local ledger = require "support.ledger"
local process = require "support.process"
local stage = require "limits.stage"

if stage.waits "attempts_spec.lua" then
    return
end

local RETRIES = 'retry { "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s", "1s" }'
local REDELIVERIES = "redeliver" .. RETRIES:match " .*$"
local ALWAYS = ("F"):rep(100)

describe("max_attempts", function()
    after_each(stage.close_all)

    it("counts failed calls", function()
        for _, chain in ipairs { RETRIES, REDELIVERIES, 'retry { "1s" }:then_' .. REDELIVERIES } do
            local self = stage.start { policy = "C:max_attempts(4)", chain = chain, outcome = ALWAYS }
            self:publish(1)
            self:advance "1m"
            assert.equal(4, #self.calls)
            assert.same({ "m-1 max_attempts" }, self:reasons())
        end
    end)

    it("counts deaths", function()
        local self = stage.start { policy = "C:max_attempts(4)", chain = RETRIES, url = "sqlite:",
            consumer = { paused = true }, outcome = ALWAYS }
        self:publish(1)
        self:restart({ consumer = { paused = false } }, { ["m-1"] = 2 })
        self:advance "1m"
        assert.equal(2, #self.calls)
        assert.same({ "m-1 max_attempts" }, self:reasons())
    end)

    it("doesn't count kept failures", function()
        local self = stage.start { policy = 'C:max_attempts(2) C:rate_limit { after = 1, only = "Flaky", keep = true }',
            chain = RETRIES, outcome = "FFFFFOOS" }
        self:publish(1)
        self:advance "1m"
        assert.equal(7, #self.calls)
        assert.same({ "m-1 max_attempts" }, self:reasons())
    end)

    it("doesn't count calls cut off by our own stop", function()
        local self = stage.start { policy = "C:max_attempts(2)", chain = RETRIES, url = "sqlite:", outcome = ALWAYS,
            grace = "1s", ms = function(_, call)
                return call <= 2 and 10000 or 0
            end }
        self:publish(1)
        for _ = 1, 2 do
            self.engine:stop()
            self:advance "5s"
            assert.is_true(self.ends[#self.ends].cut)
            self:restart()
        end
        self:advance "1m"
        assert.same({ 0, 0, 1 }, { self.calls[2].calls, self.calls[3].calls, self.calls[4].calls })
        assert.same({ 4, "m-1 max_attempts" }, { #self.calls, self:reasons()[1] })
    end)

    it("is held before every call against the policy in force then, the first of a hand-out too", function()
        for _, chain in ipairs { RETRIES, REDELIVERIES } do
            local self = stage.start { policy = "C:max_attempts(9)", chain = chain, outcome = ALWAYS }
            self:publish(1)
            self:to(2500)
            assert.equal(3, #self.calls)
            assert.is_true(self:reload { policy = "C:max_attempts(3)" })
            self:to(60000)
            assert.equal(3, #self.calls)
            assert.same({ "m-1 max_attempts" }, self:reasons())
        end
    end)

    it("delays the call where a journal's write fails", function()
        local self = stage.start { policy = "C:max_attempts(9)", chain = 'retry { "10ms" }', url = "sqlite:",
            outcome = "F" }
        self:journal_fails(3)
        self:publish(1)
        self:to(10)
        assert.same({ "m-1@0" }, self:begun())
        self:to(60000)
        assert.equal(2, #self.calls)
        assert.is_true(self.calls[2].at > 10, self.calls[2].at)
    end)

    it("counts from then on where a reload sets it in the middle of a round", function()
        local self = stage.start { chain = RETRIES, url = "sqlite:", outcome = ALWAYS }
        self:publish(1)
        self:to(2500)
        assert.is_true(self:reload { policy = "C:max_attempts(5)" })
        self:to(60000)
        assert.equal(5, #self.calls) -- the three before it are known to this process
        assert.same({ "m-1 max_attempts" }, self:reasons())
    end)
end)

describe("whatever is killed,", function()
    local folder

    after_each(function()
        folder:remove()
    end)

    -- killed runs a service until its messages have ended: in `die` (Lua) its handler may kill its process.
    local function killed(policy, die)
        folder = process.folder {
            ["service.lua"] = ledger.WORDS .. [[
                m.policy "policy.lua"
                m.transport("orders", "sqlite:orders.db")
                m.consumer("C", { transport = "orders", queue = "work", handler = function(msg)
                    note(msg.attempt == 1 and "begin" or "again", msg)
                    local function kill() note("kill", msg) os.execute "kill -s KILL $PPID" end
                    ]] .. die .. [[
                    note("failed", msg)
                    m.error { type = "Flaky" }
                end })
                m.consumer("dead", { transport = "orders", queue = "error", handler = function(msg)
                    note("dead", msg)
                    note(msg.headers["mulligan-reason"]:gsub("_", ""), msg)
                end })]],
            ["policy.lua"] = 'local policy = require "mulligan.policy"\nlocal C = policy.consumer "C"\n'
                .. 'policy.consumer("dead"):dead_letter_queue "uncollected"\n' .. policy,
        }
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = "one\n" })
        assert.equal(0, sent.code, sent.err)
        local runs = 0
        repeat
            runs = runs + 1
            local code = folder:mulligan({ "run", "--until-empty" }).code
            assert.is_true(runs < 30)
        until code == 0
    end

    local function count(word)
        return ledger.count(folder, { word = word })
    end

    for name, die in pairs {
        ["in every second call"] = "if msg.deliveries % 2 == 1 and msg.attempt == 2 then kill() end",
        ["in the first call of a hand-out"] = "if msg.deliveries < 4 and msg.attempt == 1 then kill() end",
        ["in the fourth call"] = "if msg.calls == 3 then kill() end",
    } do
        it("max_attempts: never more than n calls; failed calls and deaths are n at the end: " .. name, function()
            killed('C:default():retry { "1ms", "1ms", "1ms", "1ms", "1ms", "1ms" } C:max_attempts(6)', die)
            local calls, failed, deaths = count "begin" + count "again", count "failed", count "kill"
            assert.is_true(deaths >= 1)
            assert.is_true(calls <= 6 and failed + deaths >= 6, ("%d calls, %d failed, %d deaths"):format(calls, failed,
                deaths))
            assert.same({ 1, 1 }, { count "dead", count "maxattempts" })
        end)
    end

    it("max_age isn't journalled: its first failure is that of this process", function()
        killed('C:default():retry { "300ms", "300ms" } C:max_age("500ms") C:max_deliveries(4)',
            "if msg.attempt == 2 then kill() end")
        assert.same({ 1, 1, 4 }, { count "dead", count "maxdeliveries", count "kill" })
    end)

    it("a deadline knows the first failure of before", function()
        -- Each hand-out takes 300 ms: if it began anew with each process, no deadline would ever be reached.
        killed('C:default():retry { "300ms", "300ms" } C:deadline("1s")', "if msg.attempt == 2 then kill() end")
        assert.same({ 1, 1 }, { count "dead", count "deadline" })
        assert.is_true(count "begin" + count "again" <= 7)
    end)
end)

describe("deadline", function()
    after_each(stage.close_all)

    local function start(policy, chain, given)
        given = given or {}
        given.policy, given.chain, given.outcome = policy, chain, given.outcome or ALWAYS
        return stage.start(given)
    end

    it("begins with the first failure, not with the message", function()
        local self = start('C:deadline("5s")', 'retry { "2s", "2s", "2s" }', { ms = 10000 })
        self:publish(1)
        self:to(60000)
        assert.same({ "m-1@0", "m-1@12000" }, self:begun())
        assert.same({ "m-1 deadline" }, self:reasons())
    end)

    it("is journalled once, at the first failure", function()
        local self = start('C:deadline("6s")', 'retry { "4s", "4s" }', { url = "sqlite:" })
        self:publish(1)
        self:to(3000)
        self:restart()
        self:to(60000)
        assert.is_true(#self.calls == 2 and self.calls[2].at <= 4000) -- a call at 7 or 8 s would be too late
        assert.same({ "m-1 deadline" }, self:reasons())
    end)

    it("is looked at when a failure is judged: what would be due later isn't scheduled", function()
        for _, tier in ipairs { "retry", "redeliver" } do
            local self = start('C:deadline("5s")', tier .. ' { "10s" }')
            self:publish(1)
            assert.same({ "m-1 deadline" }, self:reasons())
            self:to(60000)
            assert.equal(1, #self.calls)
        end
    end)

    it("has the chain's end follow", function()
        local parked = start('C:deadline("5s")', 'retry { "10s" }:then_dead_letter "parked"')
        parked:publish(1)
        assert.same({ "parked", "deadline" }, { parked.dead[1].queue, parked.dead[1].reason })
        local stale = start('C:deadline("5s")', 'retry { "10s" }:then_discard "stale"')
        stale:publish(1)
        assert.same({ "discard", "deadline", 0 }, { stale.decided[1].action, stale.decided[1].reason, #stale.dead })
    end)

    -- late gives a stage in which the message's turn comes later than its deadline: another one is at work.
    local function late(tier, more)
        local self = start('C:deadline("5s")\n' .. (more or ""), tier .. ' { "4s" }:then_dead_letter "parked"', {
            outcome = { ["m-1"] = "FF" }, ms = function(msg)
                return msg.id == "long" and 10000 or 0
            end })
        self:publish(1)
        self:to(3000)
        self:publish { id = "long" }
        self:to(60000)
        return self
    end

    it("is looked at again when the message's turn comes: a call that would begin later is not made", function()
        local self = late "redeliver"
        assert.same({ "m-1@0", "long@3000" }, self:begun())
        assert.same({ "m-1 deadline" }, self:reasons())
    end)

    it("dead-letters it to the default queue then, with the last error's type, no rule asked", function()
        local self = late("redeliver", 'C:override(function() return policy.discard "asked" end)')
        assert.equal("discard", self.decided[1].action) -- it is asked at the failure
        self = late "redeliver"
        local letter = self.dead[1]
        assert.same({ "error", "deadline", "Flaky" }, { letter.queue, letter.reason,
            letter.headers["mulligan-error-type"] })
        assert.is_nil(letter.headers["mulligan-rule"])
    end)

    it("has no rule asked: an override that changes what is late isn't called", function()
        local self = late("redeliver", [[C:override(function(failure, verdict)
            if verdict.action == "dead_letter" then return policy.discard "asked" end
        end)]])
        assert.same({ "m-1 deadline" }, self:reasons())
    end)

    it("holds under a limit, too", function()
        local self = start('C:deadline("5s") C:rate_limit { after = 1, wait = "20s" }', 'retry { "1s" }')
        self:publish(1)
        self:to(100000)
        assert.same({ "m-1@0" }, self:begun())
        assert.same({ "m-1 deadline" }, self:reasons())
    end)

    it("has what is due exactly at it be in time", function()
        for _, tier in ipairs { "retry", "redeliver" } do
            local self = start('C:deadline("5s")', tier .. ' { "5s" }', { outcome = "F" })
            self:publish(1)
            self:to(60000)
            assert.same({ "m-1@0", "m-1@5000" }, self:begun())
            local other = start('C:deadline("4999ms")', tier .. ' { "5s" }', { outcome = "F" })
            other:publish(1)
            other:to(60000)
            assert.same({ "m-1@0" }, other:begun())
        end
    end)

    it("is not `max_age`, which is the age when a failure is judged", function()
        local self = start('C:max_age("5s")', 'redeliver { "10s", "10s", "10s" }')
        self:publish(1)
        self:to(60000)
        assert.same({ "m-1@0", "m-1@10000" }, self:begun())
        assert.same({ "m-1 max_age" }, self:reasons())
    end)
end)
