-- testing.lua: require "mulligan.testing": time, chance and faults that a test owns.
-- docs/lua-module.md is its manual.

local core = require "mulligan.core"
local duration = require "mulligan.policy.duration"
local mulligan = require "mulligan"
local options = require "mulligan.options"
local outcome = require "mulligan.outcome"
local text = require "mulligan.policy.text"

local testing = {}

local NEW_YEAR_2026_MS = 1767225600000

-- ---- The clock ---------------------------------------------------------------------------------

-- whole gives a whole number, or blames the line that called our caller.
local function whole(what, value)
    return math.type(value) and math.tointeger(value)
        or error(("%s must be a whole number, not %s"):format(what, text.show(value)), 3)
end

-- clock gives a clock that stands still, at `wall_ms` since 1970.
function testing.clock(wall_ms)
    return core.clock(whole("testing.clock: wall_ms", wall_ms or NEW_YEAR_2026_MS))
end

local clock = core.clock_methods
local now, move, engines_of = core.clock_functions.now, core.clock_functions.move, core.clock_functions.engines

-- span gives the moment of a clock and a time in ms, for the method `name`, or blames its caller.
local function span(name, self, value)
    local well, moment = pcall(now, self)
    if not well then
        error((moment:gsub("'%?'", "'" .. name .. "'", 1)), 3)
    end
    local ms, why = duration.read(value)
    if not ms then
        error(("clock:%s: %s"):format(name, why), 3)
    end
    return moment, ms
end

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
    local moment, ms = span("advance", self, value)
    local target = moment + ms
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
    local _, ms = span("step", self, value)
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
    if type(list) ~= "table" or #list == 0 then
        error("random:pick takes a list that has something in it, not " .. text.show(list), 2)
    end
    return list[self(#list)]
end

-- chance is true with the probability p.
function random:chance(p)
    if type(p) ~= "number" or not (p >= 0 and p <= 1) then
        error("random:chance takes a number from 0 to 1, not " .. text.show(p), 2)
    end
    return (next_bits(self) >> 11) * 0x1p-53 < p
end

function testing.random(seed)
    return setmetatable({ state = whole("testing.random: the seed", seed) }, random)
end

-- ---- The rig -----------------------------------------------------------------------------------

local TRANSPORT = "orders"

local rig = {}
rig.__index = rig

-- Whoever collects a queue must not dead-letter into it, so collectors have a scope of their own.
local function collector_name(queue)
    return "collector of " .. queue
end

-- sure gives what may not be nil; else what is raised is for testing.rig, whose caller is to blame.
local function sure(value, message)
    return value or error(message, 0)
end

local function policy_for(given)
    local lines = { given.policy }
    for _, queue in ipairs(given.collect) do
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
    self.own_policy = sure(mulligan.load_text(policy_for(given), {
        event = function(event)
            table.insert(self.told, event)
        end,
        log = function(level, line)
            table.insert(self.lines, level .. ": " .. line)
        end,
    }))
    return self.own_policy
end

local function new_engine(self, given)
    return sure(mulligan.engine {
        policy = load_policy(self, given),
        clock = self.clock,
        grace = given.grace,
        patterns = given.patterns,
        seed = given.seed,
        reload_on_sighup = given.reload_on_sighup,
        reload_on_change = given.reload_on_change,
        log = function(level, line)
            table.insert(self.lines, level .. ": " .. line)
        end,
        event = function(event)
            table.insert(self.told, event)
        end,
    })
end

local function add_consumer(self, name, consumer)
    sure(self.engine:consumer(name, consumer))
    self.queues[#self.queues + 1] = consumer.queue
end

-- with_transport gives a consumer's options, on the rig's transport where they name none.
local function with_transport(name, given)
    local consumer = { transport = TRANSPORT }
    for key, value in pairs(given) do
        consumer[key] = value
    end
    local _, problems = options.read(consumer, options.consumer)
    sure(#problems == 0, ("testing.rig: consumer %s: %s"):format(text.show(name), table.concat(problems, "; ")))
    return consumer
end

local function add_consumers(self, given)
    for _, name in ipairs(self.names) do
        add_consumer(self, name, given.consumers[name])
    end
    for _, queue in ipairs(given.collect) do
        self.caught[queue] = {}
        add_consumer(self, collector_name(queue), {
            transport = TRANSPORT,
            queue = queue,
            handler = function(msg)
                table.insert(self.caught[queue], msg)
            end,
        })
    end
end

local known = {
    policy = "source", url = "text", clock = "clock", consumers = "table", collect = "names", grace = "span",
    patterns = "patterns", seed = "seed", start = "flag", reload_on_sighup = "flag", reload_on_change = "flag",
}

-- read_rig gives the options with what is missing, and the consumers' names in order.
local function read_rig(given)
    local _, problems = options.read(given, known)
    sure(#problems == 0, "testing.rig: " .. table.concat(problems, "; "))
    local read = { policy = "", url = "memory:", clock = testing.clock(), collect = {}, seed = 1, start = true }
    for option, value in pairs(given) do
        read[option] = value
    end
    read.consumers = {}
    local names = {}
    for name, consumer in pairs(given.consumers or {}) do
        sure(type(name) == "string" and type(consumer) == "table",
            "testing.rig: consumers must be tables of options by name")
        names[#names + 1] = name
        read.consumers[name] = with_transport(name, consumer)
    end
    table.sort(names)
    return read, names
end

local function make_rig(given)
    local read, names = read_rig(given)
    local self = setmetatable({ names = names, lines = {}, told = {}, caught = {}, queues = {} }, rig)
    self.clock = read.clock
    self.engine = new_engine(self, read)
    sure(self.engine:transport(TRANSPORT, read.url))
    add_consumers(self, read)
    if read.start then
        sure(self.engine:start())
        self.clock:turn()
    end
    return self
end

-- rig gives an engine on a test's clock, with one transport, "orders".
function testing.rig(given)
    return outcome.of("rig", pcall(make_rig, given))
end

-- publish returns when the message is safe: true; or nil, why and the code.
function rig:publish(queue, body, given)
    local answer
    local engine = self.engine
    local taken, message, code = outcome.within("publish",
        pcall(engine.publish, engine, TRANSPORT, queue, body, given, function(...)
            answer = table.pack(...)
        end))
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
    return outcome.of("advance", pcall(self.clock.advance, self.clock, value))
end

-- depth gives { ready, delayed, claimed, next_due_ms }; or nil, why and the code.
function rig:depth(queue)
    local answer
    local engine = self.engine
    local asked, message, code = outcome.within("depth",
        pcall(engine.depth, engine, TRANSPORT, queue, function(...)
            answer = table.pack(...)
        end))
    if not asked then
        return nil, message, code
    end
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
    outcome.within("run_until_empty", pcall(self.engine.counts, self.engine)) -- is it open?
    while not is_empty(self) do
        if not move_to(self.clock, self.clock:turn()) and not is_empty(self) then
            error("something is left, and nothing will happen to it any more", 2)
        end
    end
end

-- stop stops the engine, moving the clock over its grace time as far as it needs.
function rig:stop()
    outcome.within("stop", pcall(self.engine.stop, self.engine))
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
    return outcome.of("fault", pcall(self.engine.fault, self.engine, TRANSPORT, operation, given))
end

-- log gives the lines so far, as "level: text".
function rig:log()
    return self.lines
end

local is_event = {}
for _, name in ipairs(core.events) do
    is_event[name] = true
end

-- events gives the events so far; with a name, those of that name.
function rig:events(name)
    if not name then
        return self.told
    elseif not is_event[name] then
        local near = text.nearest(name, core.events)
        error(("there is no event %s; %s"):format(text.show(name), near and ("did you mean %q?"):format(near)
            or "there are " .. text.list(core.events, "and")), 2)
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
    return outcome.of("counts", pcall(self.engine.counts, self.engine))
end

-- close may be called by a handler: then the engine closes later, and the collector its policy.
function rig:close()
    self.engine:close()
    if self.own_policy then
        pcall(self.own_policy.close, self.own_policy)
    end
end

rig.__close = rig.close

return testing
