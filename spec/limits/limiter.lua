-- limiter.lua: one `rate_limit` and one `limit` statement, as limits.md tells them, for each value of `per`.
-- Naive on purpose: a model for specs, which shares no code and no idea with the engine.
-- Times are whole milliseconds. Where the contract leaves freedom, a time is a pair: `from` (no earlier) and
-- `by` (no later).

local limiter = {}

-- Where two readers of the contract would build differently: the reading that the model goes by.
limiter.readings = {
    first_failed_probe_doubles = true, -- waits are w, 2w, 4w; else w, w, 2w
    late_failure_lengthens = true, -- a failure of a handler that was at work at the start begins the wait anew
    success_resets_wait = false, -- a success that doesn't end the limit takes the wait back to `wait`
    ratio_at_success = false, -- a success can start a limit by `ratio`
    hint_is_capped = false, -- `max_wait` caps the hint
    timeout_counts = true, -- HandlerTimeoutError is a failure like any other
}

local JITTER = 0.25
local ALL = {} -- the value of every message where there is no `per`

-- value_of gives the value of a message for a `per`; nil: not limited by it.
function limiter.value_of(per, message)
    if not per then
        return ALL
    elseif per == "key" or per == "type" then
        return message[per]
    end
    return message.headers and message.headers[per.header]
end

-- per_name names a `per`: statements with the same name are the same one after a reload.
function limiter.per_name(per)
    return type(per) == "table" and "header " .. per.header or per or ""
end

local parents = { Child = "Flaky" } -- what the policies of these specs declare

local function descends(error_type, name)
    while error_type do
        if error_type == name or name == "Error" then
            return true
        end
        error_type = parents[error_type]
    end
    return false
end

local function among(error_type, names)
    for _, name in ipairs(type(names) == "table" and names or { names }) do
        if descends(error_type, name) then
            return true
        end
    end
    return false
end

-- ---- rate_limit --------------------------------------------------------------------------------

local rate = {}
rate.__index = rate

function limiter.rate_limit(options, readings)
    return setmetatable({ options = options, readings = readings or limiter.readings, states = {} }, rate)
end

function rate:value(message)
    return limiter.value_of(self.options.per, message)
end

-- state gives the count and the limit of a value.
function rate:state(value)
    local state = self.states[value]
    if not state then
        state = { row = {}, window = {}, limited = false, ever = false, at_work = 0, epoch = 0 }
        self.states[value] = state
    end
    return state
end

-- of gives the state that holds for a message, or nil.
function rate:of(message)
    local value = self:value(message)
    return value ~= nil and self:state(value) or nil
end

-- counts says whether the end of a call counts.
function rate:counts(outcome)
    if outcome.cut then
        return false
    elseif outcome.ok then
        return true
    elseif outcome.type == "HandlerTimeoutError" and not self.readings.timeout_counts then
        return false
    end
    local options = self.options
    return (not options.only or among(outcome.type, options.only))
        and not (options.except and among(outcome.type, options.except))
end

local function max_wait(options)
    return options.max_wait or options.wait
end

-- put_off begins a wait at a counted failure.
local function put_off(self, state, now, outcome)
    local low, high = state.wait_low, state.wait_high
    local hint = self.options.hint and outcome.hint
    if hint and hint >= 0 then
        local ms = hint * 1000
        if self.readings.hint_is_capped then
            ms = math.min(ms, max_wait(self.options))
        end
        low, high = math.max(low, ms), math.max(high, ms)
    end
    state.widest = math.max(state.widest or 0, high)
    state.from = math.max(state.from or 0, now + low)
    state.by = math.max(state.by or 0, now + math.ceil(high * (1 + JITTER)) + 1)
end

local function start(self, state, now, outcome)
    state.limited, state.ever, state.ramp_from = true, true, nil
    state.epoch = state.epoch + 1
    state.row, state.window, state.in_a_row, state.failed_probes = {}, {}, 0, 0
    state.wait_low, state.wait_high = self.options.wait, self.options.wait
    state.from, state.by, state.last_probe = nil, nil, nil
    put_off(self, state, now, outcome)
    return "rate_limit_started"
end

local function finish_limit(self, state, now)
    state.limited, state.row, state.window = false, {}, {}
    state.ramp_from, state.ramp_span = self.options.ramp and now or nil, self.options.ramp
    state.ramp_end = self.options.ramp and now + self.options.ramp
    return "rate_limit_ended"
end

-- enough_in_a_row says whether the failures in a row start a limit.
local function enough_in_a_row(self, state, now)
    local options = self.options
    local count, different, seen = 0, 0, {}
    for _, failure in ipairs(state.row) do
        if not options.within or now - failure.at <= options.within then
            count = count + 1
            different = different + (seen[failure.id] and 0 or 1)
            seen[failure.id] = true
        end
    end
    return count >= options.after and different >= (options.messages or 1)
end

-- enough_in_window does so for `ratio`. A call that lies exactly at the window's edge makes it undecided.
local function enough_in_window(self, state, now)
    local options = self.options
    local window = options.window or 30000
    local calls, failed, different, seen = 0, 0, 0, {}
    for _, ended in ipairs(state.window) do
        if now - ended.at == window then
            self.undecided = "a call at the edge of the window"
        end
        if now - ended.at < window then
            calls = calls + 1
            if ended.failed then
                failed = failed + 1
                different = different + (seen[ended.id] and 0 or 1)
                seen[ended.id] = true
            end
        end
    end
    return calls >= (options.least or 20) and failed > 0 and failed / calls >= options.ratio
        and different >= (options.messages or 1)
end

local function finish_unlimited(self, state, now, message, outcome)
    if self.options.ratio then
        table.insert(state.window, { at = now, id = message.id, failed = not outcome.ok })
        if (not outcome.ok or self.readings.ratio_at_success) and enough_in_window(self, state, now) then
            return start(self, state, now, outcome)
        end
    end
    if outcome.ok then
        state.row = {}
    else
        table.insert(state.row, { at = now, id = message.id })
        if self.options.after and enough_in_a_row(self, state, now) then
            return start(self, state, now, outcome)
        end
    end
end

-- Another look at the clock only: what changes nothing may hold up the next probe by one wait, no more.
local function changes_nothing(state, now)
    if state.limited then
        state.by = math.max(state.by, now + math.ceil(state.wait_high * (1 + JITTER)) + 1)
    end
end

local function double(self, state, was_probe)
    local cap = max_wait(self.options)
    if not was_probe then
        state.wait_high = math.min(2 * state.wait_high, cap) -- the contract doesn't say
        return
    end
    state.failed_probes = state.failed_probes + 1
    if state.failed_probes > 1 or self.readings.first_failed_probe_doubles then
        state.wait_low, state.wait_high = math.min(2 * state.wait_low, cap), math.min(2 * state.wait_high, cap)
    end
end

local function finish_limited(self, state, now, was_probe, outcome)
    if outcome.ok then
        state.in_a_row = state.in_a_row + 1
        if state.in_a_row >= (self.options.successes or 1) then
            return finish_limit(self, state, now)
        end
        if self.readings.success_resets_wait then
            state.wait_low, state.wait_high = self.options.wait, self.options.wait
        end
        changes_nothing(state, now)
        return
    end
    state.in_a_row = 0
    double(self, state, was_probe)
    if was_probe or self.readings.late_failure_lengthens then
        put_off(self, state, now, outcome)
    else
        changes_nothing(state, now)
    end
end

-- began notes a call: what it returns is given back to `ended`.
function rate:began(message)
    local state = self:of(message)
    if not state then
        return nil
    end
    state.at_work = state.at_work + 1
    if state.limited then
        state.last_probe = message.id
    end
    return { state = state, epoch = state.limited and state.epoch or nil }
end

-- ended notes a call's end: the event that it makes, if any, and whether the failure is kept.
function rate:ended(now, ticket, message, outcome)
    if not ticket then
        return nil, false
    end
    local state = ticket.state
    state.at_work = state.at_work - 1
    if not self:counts(outcome) then
        changes_nothing(state, now)
        return nil, false
    end
    local event
    if state.limited then
        event = finish_limited(self, state, now, ticket.epoch == state.epoch, outcome)
    else
        event = finish_unlimited(self, state, now, message, outcome)
    end
    return event, not outcome.ok and state.limited and self.options.keep or false, state
end

-- handlers gives how many of `concurrency` a ramp allows; nil: no ramp.
function limiter.handlers(state, now, concurrency)
    if not state.ramp_from or now - state.ramp_from >= state.ramp_span then
        return nil
    end
    return math.max(1, concurrency * (now - state.ramp_from) // state.ramp_span)
end

-- long gives how long a value may go without a probe, though the wait is over and a message is ready: three waits, of
-- the longest that there were, since what an earlier limit put back stays so.
function limiter.long(state)
    return 3 * (state.widest + state.by - state.from)
end

-- why_not says why a call of a message may not begin now; nil: it may.
function rate:why_not(now, message, concurrency)
    local state = self:of(message)
    if not state then
        return nil
    elseif state.limited then
        if state.at_work > 0 then
            return "it is limited, and another call is at work"
        elseif now < state.from then
            return ("it is limited, and the next probe is not before %g"):format(state.from)
        end
        return nil
    end
    local handlers = limiter.handlers(state, now, concurrency)
    if handlers and state.at_work >= handlers then
        return ("the ramp allows %d"):format(handlers)
    end
end

-- needs_more says whether new numbers ask for what needn't be noted by the old ones, such as the moments of failures.
local function needs_more(new, old)
    return (new.ratio == nil) ~= (old.ratio == nil) or (new.messages or 1) > (old.messages or 1)
        or new.ratio and (new.window or 30000) > (old.window or 30000)
        or new.within and (not old.within or new.after > old.after)
end

-- reload takes new numbers: what waits goes on as it was.
function rate:reload(options)
    local more = needs_more(options, self.options)
    for _, state in pairs(self.states) do
        if more and not state.limited and #state.row + #state.window > 0 then
            self.undecided = "what was noted for a count that a reload changes"
        end
        if state.limited and options.wait ~= self.options.wait then
            state.wait_low = math.min(state.wait_low, options.wait)
            state.wait_high = math.max(state.wait_high, options.wait)
        end
    end
    self.options = options
end

-- limited counts the values that are limited.
function rate:limited()
    local count = 0
    for _, state in pairs(self.states) do
        count = count + (state.limited and 1 or 0)
    end
    return count
end

-- ---- limit -------------------------------------------------------------------------------------

local gate = {}
gate.__index = gate

local units = { s = 1000, m = 60000, h = 3600000 }

-- limit is GCRA: a call may begin at `now` where now >= theoretical arrival - (burst - 1) · interval.
function limiter.limit(options)
    local count, unit = options.rate:match "^(%d+)/([smh])$"
    local interval = units[unit] / tonumber(count)
    return setmetatable({ options = options, interval = interval, burst = options.burst or 1, arrivals = {} }, gate)
end

-- at gives the moment from which a call of a message may begin; nil: always.
function gate:at(message)
    local value = limiter.value_of(self.options.per, message)
    if value == nil then
        return nil
    end
    return (self.arrivals[value] or 0) - (self.burst - 1) * self.interval
end

function gate:began(now, message)
    local value = limiter.value_of(self.options.per, message)
    if value ~= nil then
        self.arrivals[value] = math.max(now, self.arrivals[value] or 0) + self.interval
    end
end

-- reload takes other numbers: nothing waits for longer than if all had begun just now that they let begin at once.
function gate:reload(options, now)
    local new = limiter.limit(options)
    self.options, self.interval, self.burst = options, new.interval, new.burst
    for value, arrival in pairs(self.arrivals) do
        self.arrivals[value] = math.min(arrival, now + self.burst * self.interval)
    end
end

return limiter
