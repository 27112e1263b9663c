-- model.lua: one consumer under `rate_limit` and `limit` statements, as limits.md tells it, event by event in
-- milliseconds. It is told what happened (publish, begin, finish, pause, resume, reload, stop), and says which calls
-- may begin when, which call must have begun by now, and which events follow. Naive and slow on purpose.
--
--   model:may(now, id)     why a call of the message may not begin; nil: it may
--   model:must(now)        the id of a message whose call should have begun by now; nil: there is none
--   model.expected         events that must be told, each { at =, name = }
--   model.messages[id]     place: "queue", "retry", "work", "done", "dead", "discarded"
--
-- A policy is { rate_limits =, limits =, retries =, retry_ms =, redeliveries =, redeliver_ms =, max_attempts =,
-- deadline = }, delays without jitter. Error types with a fate of their own: Bad (unrecoverable), Park (dead_letter),
-- Dup (discard); Child descends from Flaky.

local limiter = require "limits.limiter"

local model = {}
model.__index = model

local CARRIED_OUT = { Bad = "dead", Park = "dead", Dup = "discarded" }
local EPSILON = 1e-6

local function each_statement(now, old, statements, make)
    local named, list = {}, {}
    for _, statement in ipairs(old) do
        named[limiter.per_name(statement.options.per)] = statement
    end
    for _, options in ipairs(statements or {}) do
        local name = limiter.per_name(options.per)
        local statement = named[name]
        named[name] = nil
        if statement then
            statement:reload(options, now)
        end
        list[#list + 1] = statement or make(options)
    end
    return list, named
end

-- new gives the model of a consumer. `readings` replaces limiter.readings.
function model.new(concurrency, policy, readings)
    local self = setmetatable({
        concurrency = concurrency, readings = readings or limiter.readings, messages = {}, order = {}, calls = {},
        at_work = 0, expected = {}, rates = {}, gates = {}, clock = 0,
    }, model)
    self:take(0, policy)
    return self
end

function model:expect(now, name)
    table.insert(self.expected, { at = now, name = name })
end

-- take puts a policy in force. A `rate_limit` that is gone ends, for each value that is limited.
function model:take(now, policy)
    local gone
    self:may_be_over(now)
    self.policy = policy
    self.rates, gone = each_statement(now, self.rates, policy.rate_limits, function(options)
        local rate = limiter.rate_limit(options, self.readings)
        for _, work in pairs(self.calls) do
            table.insert(work.tickets, { rate = rate, ticket = rate:began(work.message) })
        end
        return rate
    end)
    for _, rate in ipairs(self.rates) do
        self.undecided = self.undecided or rate.undecided
    end
    for _, rate in pairs(gone) do
        for _ = 1, rate:limited() do
            self:expect(now, "rate_limit_ended")
        end
        self:loosen(function(message)
            local state = rate.options.per and rate:of(message)
            return state and state.ever
        end)
    end
    self.gates, gone = each_statement(now, self.gates, policy.limits, limiter.limit)
    for _, gate in pairs(gone) do
        self:loosen(function(message)
            return gate.options.per and gate:at(message)
        end)
    end
end

model.reload = model.take

-- loosen marks the messages that may have been put back with a due time that nobody outside knows.
function model:loosen(which)
    for _, message in ipairs(self.order) do
        message.loose = message.loose or which(message) and true or false
    end
end

-- ---- What messages do --------------------------------------------------------------------------

-- publish takes { id =, key =, type =, headers =, due = }.
function model:publish(now, given)
    local message = { place = "queue", attempt = 0, calls = 0, redeliveries = 0, published = now }
    for key, value in pairs(given) do
        message[key] = value
    end
    message.from = given.due or now
    message.by, message.number = message.from, #self.order + 1
    self.messages[message.id] = message
    table.insert(self.order, message)
end

local function waits(message)
    return message.place == "queue" or message.place == "retry"
end

local function too_late(self, message, at)
    return self.policy.deadline and message.first_failure and at > message.first_failure + self.policy.deadline
end

local function used_up(self, message)
    return self.policy.max_attempts and message.calls >= self.policy.max_attempts
end

-- ready says that a message may be called at `now`, and surely has been there since `since`.
local function ready(self, message, now, since)
    return waits(message) and message.by <= since and not message.uncertain and not too_late(self, message, now)
        and not used_up(self, message)
end

-- loose says that a limit with `per` may have put the message back until a moment that nobody outside knows.
local function is_loose(self, message)
    if message.loose then
        return true
    end
    for _, rate in ipairs(self.rates) do
        local state = rate.options.per and rate:of(message)
        if state and state.ever then
            return true
        end
    end
    for _, gate in ipairs(self.gates) do
        if gate.options.per and gate:at(message) then
            return true
        end
    end
    return false
end

-- may_be_over marks what another policy, or nobody, would judge otherwise from now on: whose deadline is over, or calls
-- are used up, may be dead already, since nobody is told when its turn came.
function model:may_be_over(now)
    for _, message in ipairs(self.order) do
        if waits(message) and not self.stopped and not self.paused
            and (too_late(self, message, now) or used_up(self, message)) then
            message.uncertain = true
        end
    end
end

-- The one state of the `rate_limit` without `per`, if it is limited.
local function whole_limit(self)
    for _, rate in ipairs(self.rates) do
        if not rate.options.per then
            local state = rate:of {}
            return state.limited and state or nil, state
        end
    end
end

-- ---- Which calls may begin ---------------------------------------------------------------------

-- Under a limit of the whole consumer: not the last probe's, no poison candidate and no younger one, where another
-- message has been there since before now.
local function not_next(self, now, message)
    local limit = whole_limit(self)
    if not limit or self.lost_at == now then -- what was in hand is lost, and comes again one by one
        return nil
    end
    local crowded = self:crowded(now)
    for _, other in ipairs(self.order) do
        local there = not crowded or other.place == "retry"
        if other ~= message and there and ready(self, other, now, now - 1) and not is_loose(self, other) then
            local callable = not self:why_not(now, other)
            -- A poison candidate comes last of all, behind the last probe, too.
            if callable and limit.last_probe == message.id and (message.candidate or not other.candidate) then
                return "it was the last probe, and " .. other.id .. " is ready"
            elseif callable and message.candidate and not other.candidate then
                return "it is a poison candidate, and " .. other.id .. " is ready"
            elseif callable and not other.candidate and self:fresh(message) and self:fresh(other)
                and other.number < message.number and limit.last_probe ~= other.id then
                return other.id .. " is older"
            end
        end
    end
end

-- crowded says that what waits for its time, or alone, may take all the room, so that others stay in their queue: no
-- more than five times the concurrency is in hand.
function model:crowded(now)
    local count = 0
    for _, message in ipairs(self.order) do
        local in_hand = message.place == "retry"
            or message.place == "queue" and message.from <= now and (message.candidate or self:gated(now, message))
        count = count + (in_hand and 1 or 0)
    end
    return count >= 4 * self.concurrency
end

-- gated says that a message waits for a `limit` with `per`.
function model:gated(now, message)
    for _, gate in ipairs(self.gates) do
        local at = gate.options.per and gate:at(message)
        if at and at > now then
            return true
        end
    end
    return false
end

-- fresh says that a message was never called nor put off, so that its place in the queue is known.
function model:fresh(message)
    return not message.called and not is_loose(self, message)
end

-- why_not says what forbids a call at `now`, order aside.
function model:why_not(now, message)
    if self.stopped then
        return "the engine has stopped"
    elseif self.paused then
        return "the consumer is paused"
    elseif self.at_work >= self.concurrency then
        return ("%d handlers are at work"):format(self.at_work)
    end
    local limit = whole_limit(self)
    if limit and self.at_work > 0 then
        return "it is limited, and handlers are at work"
    end
    for _, rate in ipairs(self.rates) do
        local why = rate:why_not(now, message, self.concurrency)
        if why then
            return why
        end
    end
    for _, gate in ipairs(self.gates) do
        local at = gate:at(message)
        if at and now < at - EPSILON then
            return ("its rate is used up until %g"):format(at)
        end
    end
end

function model:may(now, id)
    local message = self.messages[id]
    if not message then
        return "it was never published"
    elseif not waits(message) then
        return "it is " .. message.place
    elseif now < message.from then
        return ("it is due at %g"):format(message.from)
    elseif too_late(self, message, now) then
        return "its deadline is over"
    elseif used_up(self, message) then
        return ("it had its %d calls"):format(self.policy.max_attempts)
    end
    return self:why_not(now, message) or not_next(self, now, message)
end

-- begin notes a call, `seen` being what its handler saw: attempt, calls, redeliveries. It gives what is wrong, or nil.
function model:begin(now, call, id, seen)
    local message = self.messages[id]
    local problem = self:may(now, id)
    if not message then
        return problem
    end
    if seen and message.place == "retry" and seen.attempt == 1 and is_loose(self, message) then
        message.attempt = 0 -- it was put back, which the contract allows for a limited value
    end
    if seen and not problem then
        if message.forgot and seen.calls < message.calls then
            message.calls = seen.calls
        end
        message.forgot = nil
        local right = { attempt = message.attempt + 1, calls = message.calls, redeliveries = message.redeliveries,
            deliveries = seen.deliveries and (message.deaths or 0) + 1 }
        for name, value in pairs(right) do
            if seen[name] ~= value then
                problem = ("its %s is %s, not %d"):format(name, tostring(seen[name]), value)
            end
        end
    end
    local tickets = {}
    for number, rate in ipairs(self.rates) do
        tickets[number] = { rate = rate, ticket = rate:began(message) }
    end
    for _, gate in ipairs(self.gates) do
        gate:began(now, message)
    end
    message.place, message.called, message.uncertain = "work", true, nil
    self.at_work = self.at_work + 1
    self.calls[call] = { message = message, tickets = tickets }
    return problem
end

-- must gives a message whose call must have begun by `now`; nil: none is sure to.
function model:must(now)
    if self.stopped or self.paused or self.at_work >= self.concurrency then
        return nil
    end
    local limit, state = whole_limit(self)
    if limit and (now < limit.by or self.at_work > 0) then
        return nil
    end
    local held, handlers = self:held(limit), self.concurrency
    if limit then
        handlers = 2 * self.concurrency -- retries hold no slot; three times the concurrency may be in hand
    elseif state then
        handlers = limiter.handlers(state, now, self.concurrency) or handlers
    end
    for _, message in ipairs(self.order) do
        if message.deaths and (waits(message) or message.place == "work") then
            return nil -- a poison candidate is called alone, when others are through
        end
    end
    if self:at_gate(now) then
        return nil
    end
    for _, message in ipairs(self.order) do
        local slots = message.place == "retry" and self.at_work or self.at_work + held
        if slots < handlers and ready(self, message, now, now) and not self:why_not(now, message)
            and not is_loose(self, message) then
            return message.id
        end
    end
    return not limit and #self.gates == 0 and self:must_probe(now, handlers - held) or nil
end

-- at_gate says whether a message waits for a `limit` with `per`: up to a second it may take the place of others.
function model:at_gate(now)
    for _, message in ipairs(self.order) do
        if waits(message) and message.from <= now and self:gated(now, message) then
            return true
        end
    end
    return false
end

-- held counts the retries that hold a slot. Under a limit they hold none, but each still takes memory.
function model:held(limit)
    local held = 0
    for _, message in ipairs(self.order) do
        if message.place == "retry" and (limit or not self:limited_value(message)) then
            held = held + 1
        end
    end
    return held
end

function model:limited_value(message)
    for _, rate in ipairs(self.rates) do
        local state = rate.options.per and rate:of(message)
        if state and state.limited then
            return true
        end
    end
    return false
end

-- must_probe gives a message of a limited value that has had no probe for long, though nothing else forbids it.
function model:must_probe(now, handlers)
    for _, rate in ipairs(self.rates) do
        for _, message in ipairs(self.order) do
            local state = rate.options.per and rate:of(message)
            if state and state.limited and self.at_work < handlers then
                local long = limiter.long(state)
                -- A ramp that this limit cancelled may have put messages back until its own end.
                if now >= math.max(state.by, state.ramp_end or 0) + long and ready(self, message, now, now - long)
                    and not self:why_not(now, message) and not self:elsewhere(message, rate) then
                    return message.id
                end
            end
        end
    end
end

-- elsewhere says whether another statement with `per` may have put the message back, too.
function model:elsewhere(message, but)
    for _, rate in ipairs(self.rates) do
        local state = rate ~= but and rate:of(message)
        if state and state.ever then
            return true
        end
    end
    return message.loose
end

-- ---- What ends do ------------------------------------------------------------------------------

-- A message whose owners died is a poison candidate each time that it comes from the queue, until a call of it ends.
local function give_back(now, message)
    message.place, message.attempt, message.from, message.by = "queue", 0, now, now
    message.candidate = message.deaths
end

-- finish notes a call's end. An outcome is { ok = true }, { type =, hint = } or { cut = true }: cancelled, lost or cut
-- off, which changes nothing. `deaths` in it: the claim was lost, and the message comes again.
function model:finish(now, call, outcome)
    local work = self.calls[call]
    if not work then
        return "no such call is at work"
    end
    self.calls[call] = nil
    self.at_work = self.at_work - 1
    local message, kept = work.message, {}
    message.candidate = work.lost and message.candidate or nil
    message.ended = not work.lost and not outcome.cut and now or message.ended
    outcome = work.lost and { cut = true } or outcome
    for _, began in ipairs(work.tickets) do
        local event, is_kept, state = began.rate:ended(now, began.ticket, message, outcome)
        -- A statement that a reload took away has no say any more.
        for _, rate in ipairs(self.rates) do
            if rate == began.rate then
                if event then
                    self:expect(now, event)
                end
                kept[#kept + 1] = is_kept and state or nil
            end
        end
        self.undecided = self.undecided or began.rate.undecided
    end
    if work.lost then
        return
    elseif outcome.ok then
        message.place = "done"
    elseif outcome.cut then
        give_back(now, message)
    else
        self:judge(now, message, outcome.type, kept)
    end
end

-- lose notes that the claim on a message is lost: it comes again, a death more, while its handler goes on.
function model:lose(now, id)
    local message = self.messages[id]
    if message.ended == now then
        self.undecided = "whether a call's end was heard before its claim was lost"
    end
    for _, work in pairs(self.calls) do
        if work.message == message then
            work.lost = true -- what this handler does in the end settles nothing
        end
    end
    message.forgot = message.attempt > 0 -- a death may take the calls of its hand-out with it
    message.deaths, message.calls = (message.deaths or 0) + 1, message.calls + 1
    give_back(now, message)
    self.lost_at = now
end

local function go(message, place, from, by)
    message.place, message.from, message.by = place, from, by or from
end

-- judge decides a failure, and keeps it where a limit says so.
function model:judge(now, message, error_type, kept)
    message.first_failure = message.first_failure or now
    local carried_out = CARRIED_OUT[error_type]
    if carried_out then
        message.place, message.why = carried_out, error_type
    elseif #kept > 0 then
        self:keep(now, message, kept)
    else
        message.attempt, message.calls = message.attempt + 1, message.calls + 1
        self:carry_on(now, message)
    end
end

-- keep puts a message back until the end of the wait, its failure uncounted.
function model:keep(now, message, kept)
    local from, by = math.huge, 0
    for _, state in ipairs(kept) do
        from, by = math.min(from, state.from), math.max(by, state.by)
    end
    local _, why = self:verdict(now, message, 1)
    -- The contract allows both: a dead letter now, or when its turn comes after the deadline.
    message.uncertain, message.candidate = why == "deadline", message.deaths
    message.attempt = 0
    go(message, "queue", from, by)
end

-- verdict gives what the chain makes of a message after `more` failures: "retry", "redeliver" or "dead", and the
-- moment or the reason.
function model:verdict(now, message, more)
    local policy = self.policy
    local kind, due
    if policy.max_attempts and message.calls + more >= policy.max_attempts then
        return "dead", "max_attempts"
    elseif message.attempt + more <= (policy.retries or 0) then
        kind, due = "retry", now + policy.retry_ms
    elseif message.redeliveries < (policy.redeliveries or 0) then
        kind, due = "redeliver", now + policy.redeliver_ms
    else
        return "dead", "exhausted"
    end
    if too_late(self, message, due) then
        return "dead", "deadline"
    end
    return kind, due
end

function model:carry_on(now, message)
    local kind, due = self:verdict(now, message, 0)
    if kind == "dead" then
        message.place, message.why = "dead", due
    elseif kind == "redeliver" then
        message.redeliveries, message.attempt, message.deaths, message.candidate = message.redeliveries + 1, 0, nil, nil
        go(message, "queue", due)
    elseif self.paused or self.stopped then
        give_back(now, message)
    else
        go(message, "retry", due)
    end
end

-- ---- What the operator does --------------------------------------------------------------------

-- Retries that wait go back counted; what is at work ends as usual.
local function send_back(self, now)
    for _, message in ipairs(self.order) do
        if message.place == "retry" then
            give_back(now, message)
        end
    end
end

function model:pause(now)
    if not self.paused then
        self:may_be_over(now)
        self.paused = true
        send_back(self, now)
    end
end

function model:resume()
    self.paused = false
end

function model:stop(now)
    self:may_be_over(now)
    self.stopped = true
    send_back(self, now)
end

-- restart notes that another engine goes on, with nothing of the first one's counts and limits. What was at work was
-- cut off before.
function model:restart(now)
    self:may_be_over(now)
    if self.stopped then
        self.expected = {} -- of what a reload ended meanwhile nobody told
    end
    send_back(self, now)
    self:loosen(function(message)
        return is_loose(self, message)
    end)
    self.paused, self.stopped, self.rates, self.gates = false, false, {}, {}
    self:take(now, self.policy)
end

-- event notes an event that was told: what is wrong with it, or nil.
function model:event(now, name)
    for number, expected in ipairs(self.expected) do
        if expected.at == now and expected.name == name then
            table.remove(self.expected, number)
            return nil
        end
    end
    return "nothing happened that it tells of"
end

-- fates gives the end of each message: "done", "dead", "discarded", or "left". One whose deadline is over, or that had
-- its calls before a reload, is dead as soon as its turn comes.
function model:fates(now)
    local fates = {}
    for id, message in pairs(self.messages) do
        local over = waits(message) and not self.stopped and not self.paused
            and (too_late(self, message, now) or used_up(self, message))
        fates[id] = over and "dead" or (waits(message) or message.place == "work") and "left" or message.place
    end
    return fates
end

return model
