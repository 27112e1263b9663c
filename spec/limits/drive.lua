-- drive.lua: runs a schedule on the product's engine, with a test's clock and the transport memory:, and records what
-- happens as limits.check reads it.

local mulligan = require "mulligan"
local process = require "support.process"
local schedule = require "limits.schedule"
local testing = require "mulligan.testing"

local drive = {}

local function put(self, entry)
    entry.at = self.clock:now()
    table.insert(self.record, entry)
    return entry
end

-- handler records each call. What ends without its say was cut off: at its timeout, or by the stop.
local function handler_of(self)
    return function(msg)
        local message, began = self.sent[msg.id], self.clock:now()
        self.begun[msg.id] = (self.begun[msg.id] or 0) + 1
        self.calls = self.calls + 1
        local call = self.calls
        local ms, outcome, hint = schedule.call(self.plan, message, self.begun[msg.id], began)
        put(self, { what = "begin", call = call, id = msg.id,
            seen = { attempt = msg.attempt, calls = msg.calls, redeliveries = msg.redeliveries,
                deliveries = msg.deliveries } })
        local ended
        local _ <close> = setmetatable({}, { __close = function()
            if not ended then
                local timed_out = self.clock:now() - began >= self.plan.timeout
                put(self, { what = "end", call = call, id = msg.id,
                    outcome = timed_out and { type = "HandlerTimeoutError" } or { cut = true } })
            end
        end })
        mulligan.sleep((outcome == "HandlerTimeoutError" and 10 * ms or ms) .. "ms")
        ended = true
        if outcome == "ok" then
            put(self, { what = "end", call = call, id = msg.id, outcome = { ok = true } })
            self.ended[msg.id] = "done"
        else
            put(self, { what = "end", call = call, id = msg.id, outcome = { type = outcome, hint = hint } })
            mulligan.error { type = outcome, message = "by schedule", retry_after = hint }
        end
    end
end

local LIMIT_EVENTS = { rate_limit_started = true, rate_limit_ended = true }

-- Dead letters are collected, too: after a stop nobody reads their queue any more.
local ENDS = { dead_letter = "dead", discard = "discarded" }

local function on_event(self)
    return function(event)
        if LIMIT_EVENTS[event.name] then
            put(self, { what = "event", name = event.name, text = event.text })
        elseif event.name == "decided" then
            local id = event.failure.message.id
            self.ended[id] = ENDS[event.verdict.action] or self.ended[id]
        end
    end
end

local function log_to(self)
    return function(level, line)
        table.insert(self.log, level .. ": " .. line)
        local lost = line:match "^C: the claim on message (%S+) is gone"
        if lost then
            put(self, { what = "lose", id = lost })
        end
    end
end

-- url_of gives the plan's URL. A file is the plan's own.
local function url_of(self)
    if self.plan.url ~= "sqlite:" then
        return self.plan.url or "memory:"
    end
    self.folder = self.folder or process.folder()
    return "sqlite:" .. self.folder:path("limits.db")
end

local function start(self)
    local plan = self.plan
    local text = schedule.text(self.given)
    self.policy = assert(mulligan.load_text(text, { event = on_event(self), log = log_to(self) }))
    self.engine = assert(mulligan.engine { policy = self.policy, clock = self.clock, grace = plan.grace .. "ms",
        seed = plan.seed or 1, event = on_event(self), log = log_to(self) })
    assert(self.engine:transport("orders", url_of(self)))
    assert(self.engine:consumer("C", { transport = "orders", queue = "work", concurrency = plan.concurrency,
        timeout = plan.timeout .. "ms", handler = handler_of(self) }))
    assert(self.engine:consumer("collector", { transport = "orders", queue = "error", handler = function(msg)
        self.ended[msg.id] = "dead"
    end }))
    assert(self.engine:start())
    self.clock:turn()
end

local function close(self)
    if self.engine then
        self.engine:close()
    end
    if self.policy then
        self.policy:close()
    end
    self.engine, self.policy = nil, nil
end

local act = {}

function act.publish(self, step)
    local message = step.message
    self.sent[message.id] = message
    put(self, { what = "publish", message = message, id = message.id })
    assert(self.engine:publish("orders", "work", "x", { id = message.id, type = message.type, key = message.key,
        headers = message.headers }))
end

function act.pause(self)
    put(self, { what = "pause" })
    assert(self.engine:pause "C")
end

function act.resume(self)
    put(self, { what = "resume" })
    assert(self.engine:resume "C")
end

function act.reload(self, step)
    put(self, { what = "reload", policy = step.policy })
    self.given = step.policy
    assert(self.policy:reload(schedule.text(step.policy)))
end

function act.restart(self)
    close(self)
    put(self, { what = "restart" })
    start(self)
end

function act.fault(self, step)
    self.engine:fault("orders", "hold", { times = step.times })
end

function act.stop(self)
    put(self, { what = "stop" })
    self.engine:stop()
end

local function all_ended(self)
    for id in pairs(self.sent) do
        if not self.ended[id] then
            return false
        end
    end
    return true
end

-- perform goes on for 20 s after the last end, and sets the plan's horizon to where it stopped.
local function perform(self, plan)
    start(self)
    for _, step in ipairs(plan.steps) do
        self.clock:advance(math.max(step.at - self.clock:now(), 0) .. "ms")
        act[step.what](self, step)
        self.clock:turn()
    end
    local latest = plan.horizon
    repeat
        local over = self.engine:stopped() or all_ended(self)
        self.clock:advance "20s"
        plan.horizon = self.clock:now()
    until over or plan.horizon >= latest
end

-- run gives the record of a plan, the ends of its messages ("done", "dead", "discarded" or "left"), and the log.
function drive.run(plan)
    local self = { plan = plan, given = plan.policy, clock = testing.clock(), record = {}, sent = {},
        begun = {}, ended = {}, log = {}, calls = 0 }
    local fine, why = xpcall(perform, debug.traceback, self, plan)
    close(self)
    if self.folder then
        self.folder:remove()
    end
    if not fine then
        error(why, 0)
    end
    for id in pairs(self.sent) do
        self.ended[id] = self.ended[id] or "left"
    end
    return self.record, self.ended, self.log
end

-- refusal gives why a policy is no policy for an engine yet: the loader's words, or the engine's; nil: it is one.
function drive.refusal(given)
    local policy, why = mulligan.load_text(schedule.text(given))
    if not policy then
        return (why:gsub("\n.*", " …"))
    end
    local engine = assert(mulligan.engine { policy = policy, clock = testing.clock(), log = function() end })
    assert(engine:transport("orders", "memory:"))
    assert(engine:consumer("C", { transport = "orders", queue = "work", handler = function() end }))
    local started, refused = engine:start()
    engine:close()
    policy:close()
    return not started and refused or nil
end

return drive
