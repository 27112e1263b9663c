-- limits.md, "Words": what each statement and option means.
local loading = require "support.loading"
local stage = require "limits.stage"

if stage.waits "words_spec.lua" then
    return
end

describe("a statement about limits", function()
    after_each(stage.close_all)

    -- run gives a stage under a statement, to which one message after the other came, `gap_ms` apart.
    local function run(policy, letters, given, gap_ms)
        given = given or {}
        given.policy, given.outcome = policy, letters
        local self = stage.start(given)
        for _ = 1, #letters do
            self:publish(1)
            self:to(self.clock:now() + (gap_ms or 1))
        end
        return self
    end

    -- waits gives the times from the end of each call to the next, of messages that are all there.
    local function waits(policy, outcome, count)
        local self = stage.start { policy = policy, outcome = outcome }
        self:publish(count)
        self:advance "24h"
        local list = {}
        for number = 2, #self.calls do
            list[number - 1] = self.calls[number].at - self.calls[number - 1].ended
        end
        return list, self
    end

    for _, statement in ipairs {
        "rate_limit {}", 'rate_limit { wait = "1s" }', "rate_limit { after = 0 }", "rate_limit { after = 1.5 }",
        'rate_limit { after = "1" }', "rate_limit { ratio = 0 }", "rate_limit { ratio = 1.01 }", "rate_limit(5)",
        "rate_limit { ratio = 0.5, least = 0 }", 'rate_limit { ratio = 0.5, window = "x" }', "rate_limit(true)",
        "rate_limit { after = 1, messages = 0 }", "rate_limit { after = 1, successes = 0 }", "limit(100)",
        "rate_limit { after = 1, wait = 5 }", "rate_limit { after = 1, max_wait = 5 }", "limit {}",
        "rate_limit { after = 1, within = 5 }", "rate_limit { after = 1, ramp = 5 }", 'limit { rate = "5" }',
        "rate_limit { after = 1, only = 5 }", "rate_limit { after = 1, except = {} }", "limit { rate = 5 }",
        'rate_limit { after = 1, keep = "yes" }', 'rate_limit { after = 1, per = "id" }', 'limit { rate = "0/s" }',
        'rate_limit { after = 1, waits = "1s" }', "rate_limit { after = 1, hint = 5 }", 'limit { rate = "5/d" }',
        'limit { rate = "5/s", burst = 0 }', 'limit { rate = "5/s", per = "x" }', "limit(true)", "deadline(5)",
        'deadline("x")', "deadline()", "max_attempts(0)", "max_attempts(1.5)",
    } do
        it("is refused, with its line: " .. statement, function()
            local lines = loading.refused(loading.statements("\nbus:" .. statement .. "\n"))
            assert.matches("^policy%.lua:2: ", lines[1])
        end)
    end

    it("names the option that is meant", function()
        local lines = loading.refused(loading.statements 'bus:rate_limit { after = 1, waits = "1s" }')
        assert.is_truthy(lines[1]:find("wait", 1, true))
        assert.is_truthy(loading.refused(loading.statements "bus:rate_limit {}")[1]:find("after", 1, true))
    end)

    it("is taken with all options of the page", function()
        loading.good(loading.statements [[
            bus:rate_limit { after = 10, wait = "1s" }
            bus:rate_limit { after = 10, messages = 3, within = "5m", only = "HttpError", keep = true,
                wait = "1s", max_wait = "30s", successes = 2, ramp = "30s", hint = "retry_after" }
            bus:rate_limit { ratio = 0.5, window = "30s", least = 20, per = policy.header("tenant") }
            bus:limit { rate = "100/s", burst = 20, per = "key" }
            bus:deadline("24h")
            bus:max_attempts(30)
        ]]):close()
    end)

    it("has the defaults of the page: wait 1s, successes 1, messages 1", function()
        local list, self = waits("C:rate_limit { after = 1 }", "FFS", 4)
        stage.near(1000, list[1])
        stage.near(1000, list[2]) -- max_wait is `wait`: it doesn't double
        assert.equal(self.ends[3].ended, self.limit_events[2].at)
        local one = stage.start { policy = "C:rate_limit { after = 3 }", outcome = "FFF",
            chain = 'retry { "1ms", "1ms", "1ms" }' }
        one:publish(1)
        one:advance "10ms"
        assert.equal("started", one:names())
    end)

    it("has the defaults of the page: keep false, ramp none", function()
        local self = stage.start { policy = "C:rate_limit { after = 1 }", outcome = "FFS", chain = "retry(0)",
            consumer = { concurrency = 3 }, ms = function(_, call)
                return call <= 3 and 0 or 100
            end }
        self:publish(10)
        self:to(5000)
        assert.same({ 2, 3, "started ended" }, { #self.dead, self.most, self:names() })
    end)

    it("has the defaults of the page: window 30s, least 20", function()
        assert.equal("", run("C:rate_limit { ratio = 1 }", ("F"):rep(19)):names())
        assert.same({ "started@1900" }, run("C:rate_limit { ratio = 1 }", ("F"):rep(20), nil, 100):told())
        assert.equal("started", run("C:rate_limit { ratio = 1 }", ("F"):rep(20), nil, 1500):names()) -- 28.5 s
        assert.equal("", run("C:rate_limit { ratio = 1 }", ("F"):rep(40), nil, 1700):names()) -- 18 in 30 s
    end)

    it("`ratio`: so large a part of at least so many calls in the window failed", function()
        local half = 'C:rate_limit { ratio = 0.5, least = 4, window = "10s" }'
        assert.same({ "started@3" }, run(half, "SSFF"):told())
        assert.same({ "started@3" }, run(half, "FSSF"):told())
        assert.same({ "started@7" }, run(half, "SSSSFFFF"):told())
        assert.equal("", run(half, "SSSFSSSF"):names())
        assert.equal("", run(half, "FFF"):names())
    end)

    it("`ratio`: calls before the window don't count", function()
        local half = 'C:rate_limit { ratio = 0.5, least = 4, window = "10s" }'
        local self = run(half, "SSSSSSSS")
        self.given.outcome = ("F"):rep(100)
        self:to(20000)
        self:publish(3)
        assert.equal("", self:names())
        self:publish(1)
        assert.equal("started", self:names())
    end)

    it("`ratio` is of a value where there is a `per`", function()
        local self = stage.start { policy = 'C:rate_limit { ratio = 0.5, least = 4, per = "key" }',
            outcome = ("F"):rep(10) }
        self:publish { { key = "a" }, { key = "b" }, { key = "a" }, { key = "b" }, { key = "a" } }
        assert.equal("", self:names())
        self:publish { key = "a" }
        assert.equal("a", self.limit_events[1].event.limit.value)
    end)

    it("`messages`: so many different messages must be among these failures", function()
        local self = stage.start { policy = 'C:rate_limit { after = 3, messages = 2 }', outcome = ("F"):rep(9),
            chain = 'retry { "1ms", "1ms", "1ms", "1ms" }' }
        self:publish(1)
        self:to(100)
        assert.same({ 5, "" }, { #self.calls, self:names() })
        self:publish(1)
        assert.equal("started", self:names())
    end)

    it("`within`: failures in a row count only if they lie no further apart in all", function()
        assert.same({ "started@2000" }, run('C:rate_limit { after = 3, within = "2s" }', "FFF", nil, 1000):told())
        assert.equal("", run('C:rate_limit { after = 3, within = "1999ms" }', "FFFFFF", nil, 1000):names())
    end)

    it("`within`: older failures of the row are left out, the rest goes on", function()
        local self = run('C:rate_limit { after = 2, within = "100ms" }', "FFF", nil, 1000)
        assert.equal("", self:names())
        self.given.outcome = "FFFFF"
        self:publish(1)
        assert.equal("", self:names())
        self:to(3100)
        self:publish(1)
        assert.same({ "started@3100" }, self:told())
    end)

    it("`only`: error types that count, descendants included", function()
        assert.equal("started", run('C:rate_limit { after = 2, only = "Flaky" }', "FC"):names())
        assert.equal("", run('C:rate_limit { after = 2, only = "Child" }', "FCFF"):names())
        assert.equal("started", run('C:rate_limit { after = 2, only = { "Child", "Other" } }', "FCFO"):names())
        assert.equal("started", run('C:rate_limit { after = 2, only = "Error" }', "FO"):names())
    end)

    it("`except`: error types that don't count, descendants included", function()
        assert.equal("", run('C:rate_limit { after = 2, except = "Flaky" }', "FCFCO"):names())
        assert.equal("started", run('C:rate_limit { after = 2, except = "Child" }', "FCCF"):names())
        assert.equal("", run('C:rate_limit { after = 1, except = { "Flaky", "Other" } }', "FOC"):names())
        assert.equal("started", run('C:rate_limit { after = 2, only = "Flaky", except = "Child" }', "FCCOF"):names())
    end)

    it("`max_wait`: the wait doubles up to it", function()
        local list = waits('C:rate_limit { after = 1, wait = "1s", max_wait = "5s" }', "FFFFFF", 7)
        for number, wait in ipairs { 1000, 2000, 4000, 5000, 5000, 5000 } do -- the first failed probe doubles
            stage.near(wait, list[number])
        end
    end)

    it("`max_wait`: jitter only adds, and is no more than a quarter", function()
        local list = waits('C:rate_limit { after = 1, wait = "1s", max_wait = "1m" }', ("F"):rep(60), 61)
        for number = 8, 60 do
            stage.near(60000, list[number])
        end
    end)

    it("`max_wait`: a new limit begins with `wait` again", function()
        local list = waits('C:rate_limit { after = 1, wait = "1s", max_wait = "1m" }', "FFFFSFS", 8)
        stage.near(8000, list[4])
        stage.near(1000, list[6])
    end)

    it("`hint`: the wait is the longer of both", function()
        local list = waits('C:rate_limit { after = 1, wait = "1s", hint = "retry_after" }', function(_, _, now)
            return now == 0 and { type = "Flaky", retry_after = 5 }
                or now < 8000 and { type = "Flaky", retry_after = 0.5 } or "S"
        end, 4)
        stage.near(5000, list[1])
        stage.near(1000, list[2])
    end)

    it("`hint`: a field that is no number, or is below 0, is none", function()
        for _, value in ipairs { "5", -5, false } do
            local list = waits('C:rate_limit { after = 1, wait = "1s", hint = "retry_after" }', function(_, _, now)
                return now == 0 and { type = "Flaky", retry_after = value } or "S"
            end, 2)
            stage.near(1000, list[1])
        end
    end)

    it("`successes`: so many in a row end it", function()
        local _, self = waits('C:rate_limit { after = 1, wait = "1s", successes = 3 }', "FSSFSSS", 9)
        assert.same({ "started@0", "ended@" .. self.ends[7].ended }, self:told())
    end)

    it("of one scope adds up with those of another `per`: a call begins when all allow it", function()
        local self = stage.start { outcome = { ["m-1"] = "F" },
            policy = 'C:rate_limit { after = 1, wait = "1s" } C:rate_limit { after = 1, wait = "10s", per = "key" }' }
        self:publish { { key = "a" }, { key = "a" }, { key = "b" } }
        assert.equal("started started", self:names())
        self:to(60000)
        assert.same({ "m-1", "m-3", "m-2" }, self:ids())
        stage.near(1000, self.calls[2].at)
        stage.near(10000, self.calls[3].at)
    end)

    it("of one scope is replaced by a later one with the same `per`", function()
        local self = run("C:rate_limit { after = 1 } C:rate_limit { after = 3 }", "FFF")
        assert.same({ "started@2" }, self:told())
        local by_key = stage.start { outcome = "FF",
            policy = 'C:rate_limit { after = 1, per = "key" } C:rate_limit { after = 2, per = "key" }' }
        by_key:publish { key = "a" }
        assert.equal("", by_key:names())
        local rates = stage.start { policy = 'C:limit { rate = "1/h" } C:limit { rate = "1/s" }' }
        rates:publish(2)
        rates:to(1000)
        assert.same({ "m-1@0", "m-2@1000" }, rates:begun())
    end)

    it("of a nearer scope replaces all of a farther one's", function()
        local self = stage.start { outcome = "FFF", policy = 'bus:rate_limit { after = 1, per = "key" } '
            .. "bus:rate_limit { after = 1 } C:rate_limit { after = 3 }" }
        self:publish { { key = "a" }, { key = "a" } }
        assert.equal("", self:names())
        self:publish { key = "a" }
        assert.equal("started", self:names())
        local rates = stage.start {
            policy = 'bus:limit { rate = "1/h" } policy.transport("orders"):limit { rate = "1/s" }',
        }
        rates:publish(2)
        rates:to(1000)
        assert.same({ "m-1@0", "m-2@1000" }, rates:begun())
    end)

    it("is switched off by `false`", function()
        local off = stage.start { outcome = "FFF", policy = "bus:rate_limit { after = 1 } "
            .. 'bus:rate_limit { after = 1, per = "key" } bus:limit { rate = "1/h" } bus:deadline "1ms" '
            .. "bus:max_attempts(1) C:rate_limit(false) C:limit(false) C:deadline(false) C:max_attempts(false)",
            chain = 'retry { "1s", "1s" }' }
        off:publish { key = "a" }
        off:to(10000)
        assert.same({ 3, "" }, { #off.calls, off:names() })
        assert.same({ "m-1 exhausted" }, off:reasons())
    end)

    it("of the bus is for each consumer by itself", function()
        local self = stage.start { policy = "bus:rate_limit { after = 2 } bus:default():dead_letter()",
            outcome = "FFF", others = { D = { queue = "other" } } }
        self:publish(1)
        self:publish(1, "other")
        assert.equal("", self:names())
        self:publish(1)
        self:publish(1, "other")
        assert.same({ "started", "C" }, { self:names(), self.limit_events[1].event.consumer })
        assert.equal(2, #self:calls_of(nil, "D"))
    end)
end)
