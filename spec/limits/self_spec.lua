-- The model of limits by itself: what starts and ends a limit, and that the checker finds an engine that is wrong.
local check = require "limits.check"
local fake = require "limits.fake"
local limiter = require "limits.limiter"
local model = require "limits.model"
local schedule = require "limits.schedule"
local testing = require "mulligan.testing"

-- told gives the events of a row of ends, one a second: S, F, O (an error that doesn't count), each of a message of its
-- own unless `id` names one; as "start 5", "end 8".
local function told(options, row, id)
    local rate, events = limiter.rate_limit(options), {}
    options.wait = options.wait or 1000
    for number = 1, #row do
        local message = { id = id or tostring(number) }
        local letter = row:sub(number, number)
        local outcome = letter == "S" and { ok = true } or { type = letter == "O" and "Other" or "Flaky" }
        local event = rate:ended(1000 * number, rate:began(message), message, outcome)
        if event then
            events[#events + 1] = event:gsub("rate_limit_", "") .. " " .. number
        end
    end
    return table.concat(events, ", ")
end

describe("a count of failures", function()
    for _, case in ipairs {
        { 5, "FFFFF", "started 5" },
        { 5, "FFFF", "" },
        { 5, "FFFFSFFFF", "" },
        { 5, "FFFFFFFS", "started 5, ended 8" },
        { 1, "FFFS", "started 1, ended 4" },
        { 1, "S", "" },
        { 2, "FFSFFS", "started 2, ended 3, started 5, ended 6" },
        { 2, "FSFSF", "" },
        { 100, ("F"):rep(10), "" },
        { 100, ("F"):rep(100), "started 100" },
    } do
        it(("of %d, %s: %s"):format(case[1], case[2], case[3]), function()
            assert.equal(case[3], told({ after = case[1] }, case[2]))
        end)
    end

    it("looks through errors that don't count", function()
        assert.equal("started 4", told({ after = 2, only = "Flaky" }, "FOOF"))
        assert.equal("started 4", told({ after = 2, except = "Other" }, "FOOF"))
        assert.equal("started 2", told({ after = 2 }, "FOOF"))
        assert.equal("started 2, ended 5", told({ after = 2, only = "Flaky" }, "FFOOS"))
    end)

    it("wants so many messages", function()
        assert.equal("", told({ after = 2, messages = 2 }, "FFFF", "one"))
        assert.equal("started 3", told({ after = 3, messages = 2 }, "FFFF"))
    end)

    it("wants failures that lie together", function()
        assert.equal("started 3", told({ after = 3, within = 2000 }, "FFF"))
        assert.equal("", told({ after = 3, within = 1999 }, "FFFFFF"))
    end)

    it("ends after so many successes in a row", function()
        assert.equal("started 1, ended 6", told({ after = 1, successes = 2, only = "Flaky" }, "FSFSOS"))
    end)

    it("starts by a ratio of at least so many calls in the window", function()
        local options = { ratio = 0.5, least = 4, window = 10500 }
        assert.equal("", told(options, "FFF"))
        assert.equal("started 4", told(options, "FFFF"))
        assert.equal("started 6", told({ ratio = 0.5, least = 4, window = 10500 }, "SSSFFF"))
        assert.equal("", told({ ratio = 0.5, least = 4, window = 3500 }, "FSSSFSSSF"))
    end)
end)

-- A limited consumer by hand: `after` 1, wait 100 ms.
local function limited(options, concurrency, more)
    local given = { after = 1, wait = 100 }
    for key, value in pairs(options or {}) do
        given[key] = value
    end
    local policy = { rate_limits = { given }, retries = 0, redeliveries = 1, redeliver_ms = 10 }
    for key, value in pairs(more or {}) do
        policy[key] = value
    end
    local self = model.new(concurrency or 4, policy)
    for number = 1, 8 do
        self:publish(0, { id = "m-" .. number, key = number % 2 == 0 and "even" or "odd" })
    end
    return self
end

local FLAKY, OK = { type = "Flaky" }, { ok = true }

describe("a limited consumer", function()
    it("has one probe after the wait, and others when it has ended", function()
        local self = limited()
        assert.is_nil(self:begin(0, 1, "m-1"))
        self:finish(10, 1, FLAKY)
        assert.same({ { at = 10, name = "rate_limit_started" } }, self.expected)
        assert.matches("not before 110", self:may(109, "m-2"))
        assert.is_nil(self:may(110, "m-2"))
        assert.is_nil(self:must(135))
        assert.is_truthy(self:must(136)) -- jitter only adds
        assert.is_nil(self:begin(110, 2, "m-2"))
        assert.matches("handlers are at work", self:may(500, "m-3"))
        self:finish(500, 2, OK)
        assert.is_nil(self:may(500, "m-3"))
    end)

    it("waits for handlers that were at work, and their failures begin the wait anew", function()
        local self = limited()
        for number = 1, 3 do
            assert.is_nil(self:begin(0, number, "m-" .. number))
        end
        self:finish(10, 1, FLAKY)
        assert.matches("at work", self:may(400, "m-4"))
        self:finish(400, 2, FLAKY)
        self:finish(450, 3, { cut = true })
        assert.matches("not before 500", self:may(499, "m-4"))
        assert.is_nil(self:may(500, "m-4"))
    end)

    it("ends by a success of a handler that was at work", function()
        local self = limited()
        self:begin(0, 1, "m-1")
        self:begin(0, 2, "m-2")
        self:finish(10, 1, FLAKY)
        self:finish(11, 2, OK)
        assert.equal("rate_limit_ended", self.expected[2].name)
        assert.is_nil(self:may(11, "m-3"))
    end)

    it("doubles the wait up to its largest, and begins with the first again", function()
        local self, now = limited { max_wait = 350 }, 0
        local waits = {}
        for number = 1, 4 do
            assert.is_nil(self:begin(now, number, "m-" .. number))
            self:finish(now + 5, number, FLAKY)
            waits[number] = self.rates[1]:of({}).from - now - 5
            now = self.rates[1]:of({}).from
        end
        assert.same({ 100, 200, 350, 350 }, waits)
        self:begin(now, 5, "m-5")
        self:finish(now, 5, OK)
        self:begin(now, 6, "m-6")
        self:finish(now, 6, FLAKY)
        assert.equal(now + 100, self.rates[1]:of({}).from)
    end)

    it("takes the longer of hint and wait", function()
        local self = limited { hint = "retry_after" }
        self:begin(0, 1, "m-1")
        self:finish(0, 1, { type = "Flaky", hint = 0.3 })
        assert.equal(300, self.rates[1]:of({}).from)
        self:begin(300, 2, "m-2")
        self:finish(300, 2, { type = "Flaky", hint = 0.01 })
        assert.equal(400, self.rates[1]:of({}).from)
    end)

    it("has another message for the next probe, where there is one", function()
        local self = limited()
        self:begin(0, 1, "m-1")
        self:finish(0, 1, FLAKY)
        self:begin(100, 2, "m-2")
        self:finish(100, 2, FLAKY)
        assert.matches("last probe", self:may(300, "m-2"))
        assert.matches("m%-3 is older", self:may(300, "m-4"))
        assert.is_nil(self:may(300, "m-3"))
    end)

    it("has a poison candidate when nothing else is there", function()
        local self = limited()
        self:begin(0, 1, "m-1")
        self:begin(0, 2, "m-2")
        self:lose(5, "m-2")
        self:finish(5, 1, FLAKY)
        assert.matches("at work", self:may(300, "m-3"))
        self:finish(300, 2, OK) -- of a claim that was lost: no success
        assert.equal(1, #self.expected)
        assert.matches("poison", self:may(300, "m-2"))
        assert.is_nil(self:may(300, "m-3"))
        assert.equal(1, self.messages["m-2"].calls)
    end)

    it("keeps failures uncounted, and no earlier one", function()
        local self = limited({ after = 2, keep = true }, 4, { retries = 1, retry_ms = 10 })
        self:begin(0, 1, "m-1")
        self:finish(0, 1, FLAKY)
        assert.same({ "retry", 10 }, { self.messages["m-1"].place, self.messages["m-1"].from })
        self:begin(10, 2, "m-1")
        self:finish(10, 2, FLAKY)
        local message = self.messages["m-1"]
        assert.same({ "queue", 110, 0, 1 }, { message.place, message.from, message.attempt, message.calls })
        self:begin(110, 3, "m-2")
        self:finish(110, 3, { type = "Bad" })
        assert.equal("dead", self.messages["m-2"].place)
    end)

    it("lets more handlers work by and by after its end", function()
        local self = limited { ramp = 400 }
        self:begin(0, 1, "m-1")
        self:finish(0, 1, FLAKY)
        self:begin(100, 2, "m-2")
        self:finish(100, 2, OK)
        self:begin(100, 3, "m-3")
        assert.matches("ramp allows 1", self:may(299, "m-4"))
        assert.is_nil(self:may(300, "m-4"))
        assert.is_nil(self:begin(300, 4, "m-4"))
        assert.matches("ramp allows 3", (self:begin(400, 5, "m-5") or "") .. (self:may(499, "m-6") or ""))
        assert.is_nil(self:may(500, "m-6"))
    end)

    it("goes on by a reload, and ends where its `per` is gone", function()
        local self = limited()
        self:begin(0, 1, "m-1")
        self:finish(0, 1, FLAKY)
        self:reload(50, { rate_limits = { { after = 1, wait = 10 } } })
        assert.matches("not before 100", self:may(99, "m-2"))
        assert.equal(1, #self.expected)
        self:reload(60, { rate_limits = { { after = 1, wait = 10, per = "key" } } })
        assert.same({ at = 60, name = "rate_limit_ended" }, self.expected[2])
        assert.is_nil(self:may(60, "m-2"))
    end)

    it("limits a value, and no other", function()
        local self = limited { per = "key" }
        self:publish(0, { id = "none" })
        self:begin(0, 1, "m-1")
        self:finish(0, 1, FLAKY)
        assert.matches("not before 100", self:may(99, "m-3"))
        assert.is_nil(self:may(0, "m-2"))
        assert.is_nil(self:may(0, "none"))
    end)
end)

describe("a limit of calls", function()
    it("is GCRA", function()
        local gate, begun = limiter.limit { rate = "10/s", burst = 3 }, {}
        for now = 0, 1000 do
            while now >= gate:at {} do
                gate:began(now, {})
                begun[#begun + 1] = now
            end
        end
        assert.same({ 0, 0, 0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000 }, begun)
    end)
end)

-- ---- The checker -------------------------------------------------------------------------------

local SCHEDULES = tonumber(os.getenv "MULL_LIMITS_SCHEDULES") or 300

local function each_plan(count, check_one)
    for seed = 1, count do
        local plan = schedule.plan(testing.random(seed))
        for _, lazy in ipairs { false, true } do
            check_one(plan, lazy, seed)
        end
    end
end

describe("the checker", function()
    it("finds nothing wrong with an engine that does as the contract says, early or late", function()
        local undecided, begun, limits = 0, 0, 0
        each_plan(SCHEDULES // 3, function(plan, lazy, seed)
            local record, ended = fake.run(plan, lazy)
            local problem, number, open = check.problem(plan, record, ended)
            undecided = undecided + (open and 1 or 0)
            for _, entry in ipairs(record) do
                begun = begun + (entry.what == "begin" and 1 or 0)
                limits = limits + (entry.what == "event" and 1 or 0)
            end
            if problem then
                error(("seed %d, lazy %s: %s\n%s"):format(seed, tostring(lazy), problem,
                    check.trace(plan, record, number)), 0)
            end
        end)
        assert.is_true(undecided < SCHEDULES // 10, undecided)
        assert.is_true(begun > 10 * SCHEDULES // 3 and limits > SCHEDULES // 3, begun .. " " .. limits)
    end)

    local function with_options(change)
        return function(policy)
            local new = schedule.copy(policy)
            for _, options in ipairs(new.rate_limits) do
                change(options)
            end
            return new
        end
    end

    -- each_rate changes every rate_limit of the fake's model, those of a later reload too.
    local function each_rate(change)
        return function(self)
            local take = self.take
            local function again(...)
                take(...)
                for _, rate in ipairs(self.rates) do
                    change(rate)
                end
            end
            self.take, self.reload = again, again
            for _, rate in ipairs(self.rates) do
                change(rate)
            end
        end
    end

    local function forget(word)
        return function(policy)
            local new = schedule.copy(policy)
            new[word] = nil
            return new
        end
    end

    local faults = {
        ["a probe too many"] = { model = function(self)
            local why_not, may = self.why_not, self.may
            local function two(method)
                return function(me, ...)
                    local at_work, held = me.at_work, {}
                    for _, rate in ipairs(me.rates) do
                        for _, state in pairs(rate.states) do
                            held[state], state.at_work = state.at_work, math.max(state.at_work - 1, 0)
                        end
                    end
                    me.at_work = at_work == 1 and at_work < me.concurrency and 0 or at_work
                    local answer = method(me, ...)
                    me.at_work = at_work
                    for state, number in pairs(held) do
                        state.at_work = number
                    end
                    return answer
                end
            end
            self.why_not, self.may = two(why_not), two(may)
        end },
        ["a wait too short"] = { policy = with_options(function(options)
            options.wait = options.wait - 1
        end) },
        ["a wait too long"] = { policy = with_options(function(options)
            options.wait = 3 * options.wait
            options.max_wait = options.max_wait and 3 * options.max_wait
        end) },
        ["a wait that doesn't double"] = { policy = with_options(function(options)
            options.max_wait = nil
        end) },
        ["a limit that never ends"] = { policy = with_options(function(options)
            options.successes = 1000
        end) },
        ["a limit that ends too early"] = { policy = with_options(function(options)
            options.successes = nil
        end) },
        ["a count that leaks between keys"] = { model = each_rate(function(rate)
            rate.value = function(me, message)
                return limiter.value_of(me.options.per, message) and "all"
            end
        end) },
        ["a limit for messages without a value"] = { model = each_rate(function(rate)
            rate.value = function(me, message)
                return limiter.value_of(me.options.per, message) or "none"
            end
        end) },
        ["a start one failure early"] = { policy = with_options(function(options)
            options.after = options.after and math.max(options.after - 1, 1)
        end) },
        ["a start one failure late"] = { policy = with_options(function(options)
            options.after = options.after and options.after + 1
        end) },
        ["a count of one message"] = { policy = with_options(function(options)
            options.messages = nil
        end) },
        ["failures that count however far apart"] = { policy = with_options(function(options)
            options.within = nil
        end) },
        ["a count of every error"] = { policy = with_options(function(options)
            options.only, options.except = nil, nil
        end) },
        ["a success that doesn't begin the count anew"] = { model = each_rate(function(rate)
            rate.ended = function(me, now, ticket, message, outcome)
                local state = ticket and ticket.state
                local row = state and state.row
                local event, kept, of = getmetatable(me).ended(me, now, ticket, message, outcome)
                if state and not state.limited and event == nil then
                    state.row = #state.row == 0 and row or state.row
                end
                return event, kept, of
            end
        end) },
        ["a hint that isn't heard"] = { policy = with_options(function(options)
            options.hint = nil
        end) },
        ["kept failures that count"] = { model = function(self)
            self.keep = function(me, now, message)
                message.attempt, message.calls = message.attempt + 1, message.calls + 1
                me:carry_on(now, message)
            end
        end },
        ["failures that are kept unasked"] = { policy = with_options(function(options)
            options.keep = true
        end) },
        ["no ramp"] = { policy = with_options(function(options)
            options.ramp = nil
        end) },
        ["the last probe again"] = { model = each_rate(function(rate)
            rate.began = function(me, message)
                local ticket = getmetatable(me).began(me, message)
                if ticket then
                    ticket.state.last_probe = nil
                end
                return ticket
            end
        end) },
        ["an event that isn't told"] = { hush = function(name)
            return name == "rate_limit_ended"
        end },
        ["a start that isn't told"] = { hush = function(name)
            return name == "rate_limit_started"
        end },
        ["calls while it is paused"] = { model = function(self)
            self.pause = function() end
        end },
        ["a reload that forgets"] = { model = function(self)
            local take = self.take
            self.reload = function(me, now, policy)
                me.rates, me.gates = {}, {}
                take(me, now, policy)
            end
        end },
        ["a rate that isn't held"] = { policy = forget "limits" },
        ["a deadline that isn't held"] = { policy = forget "deadline" },
        ["a call beyond max_attempts"] = { policy = forget "max_attempts" },
        ["a limit that outlives its engine"] = { model = function(self)
            local restart = self.restart
            self.restart = function(me, now)
                local rates = me.rates
                restart(me, now)
                me.rates = rates
            end
        end },
        ["a deadline that a restart forgets"] = { model = function(self)
            local restart = self.restart
            self.restart = function(me, now)
                restart(me, now)
                for _, message in ipairs(me.order) do
                    message.first_failure = nil
                end
            end
        end },
        ["an engine that begins work late"] = { model = function(self)
            local must = self.must
            self.must = function(me, now)
                return must(me, now - 50)
            end
        end },
    }

    local names = {}
    for name in pairs(faults) do
        names[#names + 1] = name
    end
    table.sort(names)
    for _, name in ipairs(names) do
        it("finds " .. name, function()
            local found, tried = 0, 0
            each_plan(300, function(plan, lazy)
                if found < 3 then
                    tried = tried + 1
                    local record, ended = fake.run(plan, lazy, faults[name])
                    found = found + (check.problem(plan, record, ended) and 1 or 0)
                end
            end)
            assert.is_true(found >= 3, ("found in %d of %d runs"):format(found, tried))
        end)
    end
end)
