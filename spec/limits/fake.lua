-- fake.lua: an engine for tests of the checker. It asks a model of its own which calls may begin, so it does what the
-- contract says, as early or as late as that allows; a planted fault changes that model.

local limiter = require "limits.limiter"
local model = require "limits.model"
local schedule = require "limits.schedule"

local fake = {}

local LAZY_MS = 400 -- so long a lazy engine puts off what need not begin
local LOOK_MS = 25 -- it looks at least this often
local LONGEST_MS = 600000

local function put(self, entry)
    entry.at = self.now
    table.insert(self.record, entry)
end

-- flush tells the events that the last step made.
local function flush(self)
    for _, event in ipairs(self.model.expected) do
        if not (self.fault.hush and self.fault.hush(event.name)) then
            put(self, { what = "event", name = event.name })
        end
    end
    self.model.expected = {}
end

local function finish(self, number, cut_off)
    local call = table.remove(self.calls, number)
    local outcome = { type = call.outcome, hint = call.hint }
    if cut_off or self.stop_at and self.now >= self.stop_at and call.ends > self.now then
        outcome = { cut = true }
    elseif call.outcome == "ok" then
        outcome = { ok = true }
    end
    put(self, { what = "end", call = call.call, id = call.id, outcome = outcome })
    self.model:finish(self.now, call.call, outcome)
    flush(self)
end

local function step(self, given)
    if given.what == "fault" then
        return -- it loses no claims
    elseif given.what == "publish" then
        put(self, { what = "publish", message = given.message, id = given.message.id })
        self.model:publish(self.now, given.message)
    else
        while given.what == "restart" and #self.calls > 0 do
            finish(self, 1, true)
        end
        put(self, { what = given.what, policy = given.policy })
        local policy = given.policy and (self.fault.policy or schedule.copy)(given.policy)
        self.model[given.what](self.model, self.now, policy)
        self.stop_at = given.what ~= "restart" and self.stop_at or nil
        self.stop_at = given.what == "stop" and self.now + self.plan.grace or self.stop_at
    end
    flush(self)
end

local function begin(self, message)
    local number = (self.begun[message.id] or 0) + 1
    self.begun[message.id], self.last_call = number, self.last_call + 1
    local ms, outcome, hint = schedule.call(self.plan, message, number, self.now)
    put(self, { what = "begin", call = self.last_call, id = message.id, seen = {
        attempt = message.attempt + 1, calls = message.calls, redeliveries = message.redeliveries } })
    self.model:begin(self.now, self.last_call, message.id)
    table.insert(self.calls, { call = self.last_call, id = message.id, ends = self.now + ms, outcome = outcome,
        hint = hint })
end

-- begin_all begins what may begin: all of it, or, where the engine is lazy, what must.
local function begin_all(self)
    local again
    repeat
        again = false
        local late = self.lazy and self.model:must(self.now)
        for _, message in ipairs(self.model.order) do
            local wanted = not self.lazy or late or self.idle > LAZY_MS
            if wanted and not self.model:may(self.now, message.id) then
                begin(self, message)
                again, self.idle = true, 0
                break
            end
        end
    until not again
end

local function waiting(self)
    for _, fate in pairs(self.model:fates(self.now)) do
        if fate == "left" then
            return true
        end
    end
    return #self.calls > 0
end

-- next_look gives the next moment at which something may change.
local function next_look(self, next_step)
    local least = self.now + LOOK_MS
    local function at(moment)
        if moment and moment > self.now and moment < least then
            least = math.ceil(moment)
        end
    end
    at(next_step and next_step.at)
    at(self.stop_at)
    for _, call in ipairs(self.calls) do
        at(call.ends)
    end
    for _, message in ipairs(self.model.order) do
        at(message.from)
        at(message.by)
        for _, gate in ipairs(self.model.gates) do
            at(gate:at(message))
        end
    end
    for _, rate in ipairs(self.model.rates) do
        for _, state in pairs(rate.states) do
            at(state.from)
            at(state.by)
            at(state.limited and state.by + limiter.long(state))
            for _, message in ipairs(state.limited and self.model.order or {}) do
                at(message.by + limiter.long(state))
            end
            for handlers = 1, state.ramp_from and self.plan.concurrency or 0 do
                at(state.ramp_from + handlers * state.ramp_span / self.plan.concurrency)
            end
        end
    end
    return least
end

-- run gives the record of a plan, and the ends of its messages. A fault may have `policy`, which gives the policy that
-- the engine goes by instead, `model`, which changes its model, and `hush`, which swallows events by name.
function fake.run(plan, lazy, fault)
    fault = fault or {}
    local policy = (fault.policy or schedule.copy)(plan.policy)
    local self = { plan = plan, model = model.new(plan.concurrency, policy), record = {}, calls = {}, begun = {},
        last_call = 0, now = 0, idle = 0, lazy = lazy, fault = fault }
    if fault.model then
        fault.model(self.model)
    end
    local next_step = 1
    while self.now < LONGEST_MS do
        for number = #self.calls, 1, -1 do
            if self.calls[number].ends <= self.now then
                finish(self, number)
            end
        end
        while plan.steps[next_step] and plan.steps[next_step].at <= self.now do
            step(self, plan.steps[next_step])
            next_step = next_step + 1
        end
        while self.stop_at and self.now >= self.stop_at and #self.calls > 0 do
            finish(self, 1)
        end
        begin_all(self)
        if next_step > #plan.steps and (self.stop_at and #self.calls == 0 or not waiting(self)) then
            break
        end
        local later = next_look(self, plan.steps[next_step])
        self.now, self.idle = later, self.idle + later - self.now
    end
    return self.record, self.model:fates(self.now)
end

return fake
