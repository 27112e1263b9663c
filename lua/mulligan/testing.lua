-- testing.lua: require "mulligan.testing": time, chance and faults that a test owns.
-- docs/lua-module.md is its manual.

local core = require "mulligan.core"
local duration = require "mulligan.policy.duration"
local mulligan = require "mulligan"

local testing = {}

local NEW_YEAR_2026_MS = 1767225600000

-- ---- The clock ---------------------------------------------------------------------------------

local function span(what, value)
    local ms, why = duration.read(value)
    if not ms then
        error(what .. ": " .. why, 3)
    end
    return ms
end

-- clock gives a clock that stands still, at `wall_ms` since 1970.
function testing.clock(wall_ms)
    return core.clock(wall_ms or NEW_YEAR_2026_MS)
end

local clock = core.clock_methods
local move, engines_of = clock.move, clock.engines

local function live_engines(self)
    local live, engines = {}, engines_of(self)
    for number = 1, #engines do
        if not engines[number]:closed() then
            live[#live + 1] = engines[number]
        end
    end
    -- Those that are closed are let go of.
    for number = math.max(#live, #engines), 1, -1 do
        engines[number] = live[number]
    end
    return live
end

-- turn runs what is due in every engine on this clock: the moment of the next timer, or nil. What
-- one engine does may wake another, so each has a turn after the last one that fired something.
local function turn(self)
    local next_ms
    for _ = 1, 2 do
        next_ms = nil
        for _, engine in ipairs(live_engines(self)) do
            local due = engine:turn()
            if due and (not next_ms or due < next_ms) then
                next_ms = due
            end
        end
    end
    return next_ms
end

clock.turn = turn
clock.move, clock.engines = nil, nil

-- move_to moves both times on to a moment; false where there is none.
local function move_to(self, moment_ms)
    if not moment_ms then
        return false
    end
    local ms = math.max(moment_ms - self:now(), 0)
    move(self, ms, ms)
    return true
end

-- advance moves both times on, and stops at every timer on the way.
function clock:advance(value)
    local target = self:now() + span("clock:advance", value)
    while true do
        local next_ms = turn(self)
        if next_ms and next_ms <= target then
            move_to(self, next_ms)
        elseif self:now() < target then
            move_to(self, target)
        else
            return
        end
    end
end

-- step moves the wall only, as an operator or a time server does.
function clock:step(value, backwards)
    local ms = span("clock:step", value)
    move(self, 0, backwards and -ms or ms)
end

-- ---- Chance ------------------------------------------------------------------------------------

local random = {}
random.__index = random

-- SplitMix64: the same on every machine.
local function next_bits(self)
    self.state = self.state + 0x9E3779B97F4A7C15
    local z = self.state
    z = (z ~ (z >> 30)) * 0xBF58476D1CE4E5B9
    z = (z ~ (z >> 27)) * 0x94D049BB133111EB
    return z ~ (z >> 31)
end

-- random(n): a whole number from 1 to n.
function random:__call(n)
    n = math.tointeger(n)
    if not n or n < 1 then
        error("random(n) takes a whole number from 1", 2)
    end
    return (next_bits(self) >> 1) % n + 1
end

function random:pick(list)
    return list[self(#list)]
end

-- chance is true with the probability p.
function random:chance(p)
    return (next_bits(self) >> 11) * 0x1p-53 < p
end

function testing.random(seed)
    return setmetatable({ state = assert(math.tointeger(seed), "the seed must be a whole number") }, random)
end

-- ---- The rig -----------------------------------------------------------------------------------

local TRANSPORT = "orders"

local rig = {}
rig.__index = rig

-- Whoever collects a queue must not dead-letter into it, so collectors have a scope of their own.
local function collector_name(queue)
    return "collector of " .. queue
end

local function policy_for(given)
    local lines = { given.policy or "" }
    for _, queue in ipairs(given.collect or {}) do
        lines[#lines + 1] = ('require("mulligan.policy").consumer(%q):dead_letter_queue("uncollected")'):format(
            collector_name(queue))
        lines[#lines + 1] = ('require("mulligan.policy").consumer(%q):default():dead_letter()'):format(
            collector_name(queue))
    end
    return table.concat(lines, "\n")
end

local function load_policy(self, given)
    if type(given.policy) == "userdata" then
        return given.policy
    end
    self.own_policy = assert(mulligan.load_text(policy_for(given), {
        event = function(event)
            table.insert(self.told, event)
        end,
        log = function(level, text)
            table.insert(self.lines, level .. ": " .. text)
        end,
    }))
    return self.own_policy
end

local function new_engine(self, given)
    return assert(mulligan.engine {
        policy = load_policy(self, given),
        clock = self.clock,
        grace = given.grace,
        seed = given.seed or 1,
        reload_on_sighup = given.reload_on_sighup,
        reload_on_change = given.reload_on_change,
        log = function(level, text)
            table.insert(self.lines, level .. ": " .. text)
        end,
        event = function(event)
            table.insert(self.told, event)
        end,
    })
end

local function add_consumers(self, given)
    for _, name in ipairs(self.names) do
        local consumer = { transport = TRANSPORT }
        for key, value in pairs(given.consumers[name]) do
            consumer[key] = value
        end
        assert(self.engine:consumer(name, consumer))
        self.queues[#self.queues + 1] = consumer.queue
    end
    for _, queue in ipairs(given.collect or {}) do
        self.caught[queue] = {}
        assert(self.engine:consumer(collector_name(queue), {
            transport = TRANSPORT,
            queue = queue,
            handler = function(msg)
                table.insert(self.caught[queue], msg)
            end,
        }))
        self.queues[#self.queues + 1] = queue
    end
end

local function sorted_names(map)
    local names = {}
    for name in pairs(map or {}) do
        names[#names + 1] = name
    end
    table.sort(names)
    return names
end

local known = {
    policy = true, url = true, clock = true, consumers = true, collect = true, grace = true, seed = true,
    start = true, reload_on_sighup = true, reload_on_change = true,
}

-- rig gives an engine on a test's clock, with one transport, "orders". Besides what the manual names:
-- grace, seed and both reload_on_... of the engine; start = false leaves starting to the test.
function testing.rig(given)
    for name in pairs(given) do
        if not known[name] then
            error(("testing.rig: unknown option %q"):format(name), 2)
        end
    end
    local self = setmetatable({ lines = {}, told = {}, caught = {}, queues = {} }, rig)
    self.clock = given.clock or testing.clock()
    self.names = sorted_names(given.consumers)
    self.engine = new_engine(self, given)
    assert(self.engine:transport(TRANSPORT, given.url or "memory:"))
    add_consumers(self, given)
    if given.start ~= false then
        assert(self.engine:start())
        self.clock:turn()
    end
    return self
end

-- publish returns when the message is safe: true; or nil, why and the code.
function rig:publish(queue, body, given)
    local answer
    local taken, message, code = self.engine:publish(TRANSPORT, queue, body, given, function(...)
        answer = table.pack(...)
    end)
    if not taken then
        return nil, message, code
    end
    self.clock:turn()
    if not answer then
        error("the publish was not answered", 2)
    end
    return table.unpack(answer, 1, answer.n)
end

function rig:advance(value)
    self.clock:advance(value)
end

-- depth gives { ready, delayed, claimed, next_due_ms }; or nil, why and the code.
function rig:depth(queue)
    local answer
    assert(self.engine:depth(TRANSPORT, queue, function(...)
        answer = table.pack(...)
    end))
    self.clock:turn()
    if not answer then
        error("the question for the depth was not answered", 2)
    end
    return table.unpack(answer, 1, answer.n)
end

local function is_empty(self)
    for _, queue in ipairs(self.queues) do
        local depth = assert(self:depth(queue))
        if depth.ready + depth.delayed + depth.claimed > 0 then
            return false
        end
    end
    return true
end

-- run_until_empty moves the clock from timer to timer until nothing is left in the queues that are
-- read. The engine goes on.
function rig:run_until_empty()
    while not is_empty(self) do
        if not move_to(self.clock, self.clock:turn()) and not is_empty(self) then
            error("something is left, and nothing will happen to it any more", 2)
        end
    end
end

-- stop stops the engine, moving the clock over its grace time as far as it needs.
function rig:stop()
    self.engine:stop()
    local next_ms = self.clock:turn()
    while not self.engine:stopped() do
        if not move_to(self.clock, next_ms) then
            error("the engine does not stop", 2)
        end
        next_ms = self.clock:turn()
    end
end

function rig:collected(queue)
    return self.caught[queue] or error(("queue %q is not in `collect`"):format(queue), 2)
end

function rig:fault(operation, given)
    self.engine:fault(TRANSPORT, operation, given)
end

-- log gives the lines so far, as "level: text".
function rig:log()
    return self.lines
end

-- events gives the events so far; with a name, those of that name.
function rig:events(name)
    if not name then
        return self.told
    end
    local some = {}
    for _, event in ipairs(self.told) do
        if event.name == name then
            some[#some + 1] = event
        end
    end
    return some
end

function rig:counts()
    return self.engine:counts()
end

function rig:close()
    self.engine:close()
    if self.own_policy then
        self.own_policy:close()
    end
end

return testing
