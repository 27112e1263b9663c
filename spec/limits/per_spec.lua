-- limits.md, "`per`".
local stage = require "limits.stage"

if stage.waits "per_spec.lua" then
    return
end

local LATER = { concurrency = 4 }

-- messages gives so many of one key.
local function messages(count, key, name)
    local list = {}
    for number = 1, count do
        list[number] = { key = key, id = (name or key) .. "-" .. number }
    end
    return list
end

-- failing gives an outcome: a key's calls fail until a moment.
local function failing(key, until_ms)
    return function(msg, _, now)
        return msg.key == key and now < until_ms and "F" or "S"
    end
end

describe("per:", function()
    after_each(stage.close_all)

    it("there is a count and a limit for each value", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, wait = "1s", per = "key" }',
            outcome = { ["a-1"] = "F", ["b-1"] = "F", ["a-2"] = "F" } }
        self:publish { { id = "a-1", key = "a" }, { id = "b-1", key = "b" } }
        assert.same({}, self:told())
        self:publish { { id = "a-2", key = "a" }, { id = "a-3", key = "a" }, { id = "b-2", key = "b" } }
        assert.same({ "started@0" }, self:told())
        assert.same({ 0, 1 }, { #self:calls_of "a-3", #self:calls_of "b-2" })
    end)

    it("a message without a value isn't limited by it", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }', outcome = "FFFF" }
        self:publish(3)
        assert.same({ 3, "" }, { #self.calls, self:names() })
        self:publish { key = "k" }
        assert.equal("started", self:names())
        self:publish { { id = "of k", key = "k" }, { id = "none" } }
        assert.same({ 0, 1 }, { #self:calls_of "of k", #self:calls_of "none" })
    end)

    it("a value may be that of `type` or of a header", function()
        for per, of in pairs { ['"type"'] = function(value)
            return { type = value }
        end, ['policy.header "tenant"'] = function(value)
            return { headers = { tenant = value } }
        end } do
            local self = stage.start { policy = ('C:rate_limit { after = 1, wait = "1h", per = %s }'):format(per),
                outcome = "F" }
            self:publish { of "a", of "a", of "b", {} }
            assert.same({ "m-1", "m-3", "m-4" }, self:ids())
        end
    end)

    it("at most one message of a limited value comes due for each probe", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", per = "key" }', consumer = LATER,
            outcome = failing("a", 20000), ms = 5 }
        self:publish(messages(60, "a"))
        self:to(20000)
        assert.is_true(#self.calls >= 4 + 15)
        for number = 6, #self.calls do
            stage.near(1000, self.calls[number].at - self.calls[number - 1].ended)
        end
        self:advance "10m"
        assert.equal("started ended", self:names())
        assert.equal(60, #self.calls)
    end)

    it("the others of that value go back with later due times, uncounted", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }', outcome = "F" }
        self:publish(messages(20, "a"))
        self:advance "1s"
        local depth = self:depth()
        assert.same({ 1, 0, 19 }, { #self.calls, depth.ready + depth.claimed, depth.delayed })
        self:advance "48h" -- they are due one after the other
        assert.equal(20, #self.calls)
        for _, call in ipairs(self.calls) do
            assert.same({ 1, 0, 0, 1 }, { call.attempt, call.calls, call.redeliveries, call.deliveries })
        end
    end)

    it("they take no slot, so that they never crowd out the rest", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s", per = "key" }',
            outcome = failing("a", 60000) }
        self:publish(messages(100, "a"))
        self:publish(messages(10, "b"))
        self:to(9000)
        assert.equal(11, #self.calls)
        for number = 1, 10 do
            assert.equal(0, self:calls_of("b-" .. number)[1].at)
        end
        for second = 10, 50, 10 do
            self:to(second * 1000 + 500)
            self:publish { { id = "late" .. second, key = "b" }, { id = "none" .. second } }
            assert.same({ 1, 1 }, { #self:calls_of("late" .. second), #self:calls_of("none" .. second) })
        end
    end)

    it("as many retries as are prefetched wait here, so that their rounds go on", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", per = "key" }', ms = 5,
            chain = 'retry(3, "10ms")', outcome = "FFFF", consumer = { concurrency = 2, prefetch = 1 } }
        self:publish { key = "a" }
        self:advance "1m"
        assert.same({ "m-1 exhausted" }, self:reasons())
        assert.same({ 4, 4 }, { #self.calls, self.calls[4].attempt })
    end)

    it("a retry of a limited value takes no slot either", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "10s", per = "key" }',
            chain = 'retry { "1ms", "1ms" }', outcome = failing("a", 5000) }
        self:publish(messages(1, "a"))
        self:publish(messages(3, "b"))
        self:to(100)
        assert.same({ "a-1", "b-1", "b-2", "b-3" }, self:ids())
        self:advance "1m"
        stage.near(10000, self.calls[5].at)
        assert.same({ "a-1", 2, 1 }, { self.calls[5].id, self.calls[5].attempt, self.calls[5].calls })
    end)

    it("retries that wait when it starts take no slot either, however few are prefetched", function()
        local self = stage.start { policy = 'C:rate_limit { after = 3, wait = "1s", per = "key" }',
            chain = 'retry { "10m", "1s" }', outcome = "FFF", ms = function(msg)
                return msg.key == "a" and 5 or 100
            end, consumer = { concurrency = 3, prefetch = 1 } }
        self:publish(messages(3, "a"))
        self:to(1000)
        assert.equal("started", self:names())
        self:publish(messages(30, "b"))
        self:to(2050)
        assert.equal(30, #self.ends - 3)
        self:to(599000) -- no retry is sooner for that
        assert.equal(33, #self.calls)
        self:advance "10m"
        assert.same({ 0, 3 }, { #self.dead, #self.calls - 33 })
    end)

    it("a retry doesn't wait for the next probe of a limit that has ended", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, wait = "1m", per = "key" }', ms = 5,
            chain = 'retry { "10ms" }', outcome = "FF", consumer = { concurrency = 2 } }
        self:publish(messages(2, "a"))
        self:advance "10m"
        assert.equal("started ended", self:names())
        assert.equal(4, #self.calls)
        assert.equal(self.calls[3].ended, self.calls[4].at)
    end)

    it("a limit that starts anew has a message for its first probe, whenever those of the one before come", function()
        local hinted = { type = "Flaky", retry_after = 3600 }
        local self = stage.start { chain = 'redeliver(9, "1ms", "constant")', consumer = { concurrency = 2 },
            policy = 'C:rate_limit { after = 1, wait = "1s", per = "key", hint = "retry_after" }',
            ms = function(_, call)
                return call == 2 and 100 or 1
            end, outcome = function(_, _, now)
                return now == 1 and hinted or now == 201 and "F" or "S"
            end }
        self:publish(messages(2, "a"))
        self:to(50)
        self:publish(messages(2, "a", "put back")) -- until the hour is over
        self:to(200)
        self:publish { key = "a", id = "anew" }
        self:to(1000)
        assert.equal("started ended started", self:names())
        self:to(1500)
        assert.equal("started ended started ended", self:names())
    end)

    it("order by key isn't kept, but each is called", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", per = "key" }', consumer = LATER,
            outcome = failing("a", 3000), chain = 'redeliver { "1ms", "1ms", "1ms", "1ms" }' }
        self:publish(messages(10, "a"))
        self:advance "10m"
        for number = 1, 10 do
            local calls = self:calls_of("a-" .. number)
            assert.is_nil(calls[#calls].type)
        end
        assert.same({}, self.dead)
    end)

    it("at most 10,000 values are limited: the least recently failed goes first, with an event, and starts anew",
        function()
            local self = stage.start { policy = 'C:rate_limit { after = 2, wait = "1h", per = "key" }',
                chain = "discard()", outcome = function(msg)
                    return msg.id:find "^fail" and "F" or "S"
                end }
            local list = {}
            for number = 1, 10000 do
                list[2 * number - 1] = { key = "k" .. number, id = "fail-" .. number .. "a" }
                list[2 * number] = { key = "k" .. number, id = "fail-" .. number .. "b" }
            end
            self:publish(list)
            assert.equal(10000, #self.limit_events)
            self:publish { { key = "x", id = "fail-xa" }, { key = "x", id = "fail-xb" } }
            local last = self.limit_events[#self.limit_events - 1]
            local ended = last.name == "rate_limit_ended" and last or self.limit_events[#self.limit_events]
            assert.same({ 10002, "rate_limit_ended", "key", "k1" }, { #self.limit_events, ended.name,
                ended.event.limit.per, ended.event.limit.value })
            self:publish { { key = "k1", id = "again" }, { key = "k2", id = "not yet" } }
            assert.same({ 1, 0 }, { #self:calls_of "again", #self:calls_of "not yet" })
            self:publish { { key = "k1", id = "fail-once" } }
            assert.equal(10002, #self.limit_events)
        end)

    it("at most 100,000 values are counted: the least recently failed goes first, and starts anew", function()
        local self = stage.start { policy = 'C:rate_limit { after = 2, wait = "1h", per = "key" }',
            outcome = ("F"):rep(100003), chain = "discard()" }
        for thousand = 0, 99 do
            local list = {}
            for number = 1, 1000 do
                list[number] = { key = "k" .. (1000 * thousand + number) }
            end
            self:publish(list)
        end
        assert.equal("", self:names())
        self:publish { { key = "one more" } }
        self:publish { { key = "k1" } }
        assert.equal("", self:names())
        self:publish { { key = "k100000" } }
        assert.equal("started", self:names())
    end)

    it("a value of which nothing failed is dropped without a word", function()
        local self = stage.start { policy = 'C:rate_limit { ratio = 0.5, per = "key" }', outcome = "F" }
        local list = {}
        for number = 0, 100001 do
            list[#list + 1] = { key = "k" .. number }
            if #list == 1000 or number == 100001 then
                self:publish(list)
                list = {}
            end
        end
        local forgot = {}
        for _, line in ipairs(self.log) do
            forgot[#forgot + 1] = line:match "forgot the failures for key '(.-)'"
        end
        assert.same({ 100002, { "k0" } }, { #self.calls, forgot })
    end)

    it("starts and ends of values are events and log lines", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1s", per = policy.header "tenant" }',
            outcome = "F" }
        self:publish { { headers = { tenant = "acme" } }, { headers = { tenant = "acme" } } }
        self:advance "1m"
        assert.equal("started ended", self:names())
        for number = 1, 2 do
            local limit = self.limit_events[number].event.limit
            assert.same({ "header tenant", "acme" }, { limit.per, limit.value })
        end
        assert.equal(2, select(2, table.concat(self.log, "\n"):gsub("acme", "")))
        assert.same({}, self:look().limits)
    end)

    it("`status` tells of the values that are limited", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }', outcome = "F" }
        self:publish { { key = "acme" } }
        local limit = self:look().limits[1]
        assert.same({ "key", "acme", "Flaky" }, { limit.per, limit.value, limit.error_type })
    end)

    it("beyond ten a second lines are summed up, and events are not", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, wait = "1h", per = "key" }',
            outcome = ("F"):rep(500), consumer = { concurrency = 10 } }
        local before = #self.log
        local list = {}
        for number = 1, 500 do
            list[number] = { key = "value" .. number }
        end
        self:publish(list)
        self:advance "5s"
        local lines = 0
        for number = before + 1, #self.log do
            lines = lines + (self.log[number]:find "value%d" and not self.log[number]:find "m%-%d" and 1 or 0)
        end
        assert.equal(500, #self.limit_events)
        assert.is_true(lines >= 1 and lines <= 12, lines)
    end)

    it("a transport without delayed delivery can't do it: refused by `run`", function()
        for _, statement in ipairs { 'C:rate_limit { after = 1, per = "key" }',
            'C:limit { rate = "1/s", per = "key" }' } do
            local why = stage.refused_by { policy = statement, url = "memory:?delay=no" }
            assert.is_truthy(why and why:find("per", 1, true), why)
            assert.is_truthy(why:find("policy.lua:", 1, true), why)
        end
        assert.is_nil(stage.refused_by { policy = "C:rate_limit { after = 1 }", url = "memory:?delay=no" })
        assert.is_nil(stage.refused_by { policy = 'C:limit { rate = "1/s" }', url = "memory:?delay=no" })
    end)

    it("a transport without delayed delivery can't do it: refused by a reload", function()
        local self = stage.start { url = "memory:?delay=no" }
        local taken, why = self:reload { policy = 'C:rate_limit { after = 1, per = "key" }' }
        assert.is_nil(taken)
        assert.is_truthy(why:find("per", 1, true), why)
    end)

    it("a transport without delayed delivery can't do it: `check --for` says so", function()
        local self = stage.start { policy = 'C:rate_limit { after = 1, per = "key" }' }
        local function refuses(url)
            local consumer = { name = "C", transport = "t", url = url, queue = "work" }
            return #(self.policy:check { consumers = { consumer } }.refused or {}) > 0
        end
        assert.same({ false, true }, { refuses "memory:", refuses "memory:?delay=no" })
    end)
end)
