-- stage.lua: a consumer "C" on a test's clock, for specs of limits: a policy, how each call ends, and a record of
-- calls, events, verdicts and dead letters. All that these specs use of the engine's interface is here.
--
--   stage.start { policy = 'C:rate_limit { after = 1 }', outcome = "FFS", ms = 5 }
--
--   policy       statements behind `policy`, `bus` and `C`
--   chain        of C's default(), "dead_letter()" unless given
--   outcome      letters, one for each call that ends; or a list of letters for each id, for that message's calls; or
--                function(msg, its, now), which gives a letter or an error. What comes behind the letters succeeds.
--   ms           how long a call takes: a number, or function(msg, call)
--   consumer     more options of C; `others` more consumers by name, with the same handler
--   url          "memory:" unless given; "sqlite:" is a file of the test's own
--   clock, grace as of an engine
--
-- F is a failure of the type Flaky, C of its child, O of Other, B of Bad.

local assert = require "luassert"
local busted = require "busted"
local database = require "support.database"
local drive = require "limits.drive"
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

local stage = {}
stage.__index = stage

local LETTERS = { F = { type = "Flaky" }, C = { type = "Child" }, O = { type = "Other" }, B = { type = "Bad" }, S = {} }

local WORDS = [[
local policy = require "mulligan.policy"
policy.errors { Child = "Flaky" }
local bus, C = policy.bus(), policy.consumer "C"
policy.consumer("collector"):dead_letter_queue "uncollected"
policy.consumer("collector"):default():dead_letter()
]]

-- Every word and option that these specs use.
local EVERYTHING = {
    rate_limits = {
        { after = 2, messages = 2, within = 1000, only = { "Flaky" }, keep = true, wait = 20, max_wait = 40,
            successes = 2, ramp = 100, hint = "retry_after" },
        { ratio = 0.5, window = 1000, least = 4, except = { "Other" }, per = { header = "tenant" } },
        { after = 1, per = "key" },
    },
    limits = { { rate = "100/s", burst = 2 }, { rate = "300/m", per = "key" } },
    retries = 1, retry_ms = 10, redeliveries = 1, redeliver_ms = 100, max_attempts = 3, deadline = 1000,
}

local refusal

-- waits makes a spec file pending, in one line, until engines know limits: true then.
function stage.waits(file)
    refusal = refusal or drive.refusal(EVERYTHING) or ""
    if refusal == "" then
        return false
    end
    io.stderr:write("\nspec/limits/", file, ": SKIPPED: ", refusal, "\n")
    busted.pending(file .. " waits for an engine that knows limits: " .. refusal)
    return true
end

-- ---- What is recorded --------------------------------------------------------------------------

local function put(list, entry)
    list[#list + 1] = entry
    return entry
end

local function outcome_of(self, msg, its)
    local outcome = self.given.outcome or ""
    if type(outcome) == "function" then
        outcome = outcome(msg, its, self.clock:now())
    elseif type(outcome) == "table" then
        outcome = (outcome[msg.id] or ""):sub(its, its)
    else
        outcome = outcome:sub(self.drawn, self.drawn)
    end
    outcome = (outcome == "" or outcome == nil) and "S" or outcome
    return type(outcome) == "table" and outcome or LETTERS[outcome] or { type = outcome }
end

-- A call that ends without its own say was cut off.
local function handler_of(self, consumer)
    return function(msg)
        self.at_work = self.at_work + 1
        self.most = math.max(self.most, self.at_work)
        local call = put(self.calls, { at = self.clock:now(), id = msg.id, attempt = msg.attempt, calls = msg.calls,
            redeliveries = msg.redeliveries, deliveries = msg.deliveries, consumer = consumer, number = #self.calls + 1,
            at_work = self.at_work, what = "begin", key = msg.key })
        put(self.order, call)
        self.begun_of[msg.id] = (self.begun_of[msg.id] or 0) + 1
        local its = self.begun_of[msg.id]
        local _ <close> = setmetatable({}, { __close = function()
            self.at_work = self.at_work - 1
            call.ended = self.clock:now()
            call.cut = not call.drawn
            put(self.ends, call)
        end })
        local ms = self.given.ms or 0
        ms = type(ms) == "function" and ms(msg, call.number, its) or ms
        if ms > 0 then
            mulligan.sleep(ms .. "ms")
        end
        self.drawn = self.drawn + 1
        local outcome = outcome_of(self, msg, its)
        call.drawn, call.type = true, outcome.type
        put(self.order, { what = "end", call = call, at = self.clock:now(), type = outcome.type })
        if outcome.type then
            local raised = { message = "by the script" }
            for key, value in pairs(outcome) do
                raised[key] = value
            end
            mulligan.error(raised)
        end
    end
end

local SHORT = { rate_limit_started = "started", rate_limit_ended = "ended", paused = "paused", resumed = "resumed" }

local function on_event(self)
    return function(event)
        local entry = { at = self.clock:now(), name = event.name, event = event, ends = self.drawn }
        if SHORT[event.name] then
            put(self.limit_events, entry)
        elseif event.name == "decided" and event.failure.consumer ~= "collector" then
            entry.id, entry.action, entry.reason = event.failure.message.id, event.verdict.action, event.verdict.reason
            entry.age_ms = event.failure.age_ms
            put(self.decided, entry)
        end
    end
end

local function collect(self, queue)
    return function(msg)
        put(self.dead, { at = self.clock:now(), id = msg.id, headers = msg.headers, queue = queue,
            reason = msg.headers["mulligan-reason"] })
    end
end

-- ---- Beginning ---------------------------------------------------------------------------------

local open = {}

local function text_of(given)
    local chain = given.chain or "dead_letter()"
    return WORDS .. "C:default():" .. chain .. "\n" .. (given.policy or "")
end

local function with(options, more)
    for key, value in pairs(more or {}) do
        options[key] = value
    end
    return options
end

local function add_consumers(self)
    local function add(name, queue, handler, options)
        assert(self.engine:consumer(name, with({ transport = "orders", queue = queue, handler = handler }, options)))
    end
    add("C", "work", handler_of(self, "C"), self.given.consumer)
    for name, options in pairs(self.given.others or {}) do
        add(name, nil, handler_of(self, name), options)
    end
    add("collector", "error", collect(self, "error"))
    add("collector of parked", "parked", collect(self, "parked"))
end

-- url gives the transport's URL, and the file's path.
function stage:url()
    if self.given.url ~= "sqlite:" then
        return self.given.url or "memory:"
    end
    self.folder = self.folder or process.folder()
    return "sqlite:" .. self.folder:path "limits.db", self.folder:path "limits.db"
end

local function open_engine(self)
    local function log(level, line)
        put(self.log, level .. ": " .. line)
    end
    self.policy = assert(mulligan.load_text(text_of(self.given), { event = on_event(self), log = log }))
    self.engine = assert(mulligan.engine { policy = self.policy, clock = self.clock, seed = 1,
        grace = self.given.grace, event = on_event(self), log = log })
    assert(self.engine:transport("orders", (self:url())))
    add_consumers(self)
    local started, why = self.engine:start()
    self.clock:turn()
    return started, why
end

local function new(given)
    local self = setmetatable({ given = given, clock = given.clock or testing.clock(), sent = 0 }, stage)
    for _, list in ipairs { "calls", "ends", "order", "limit_events", "decided", "dead", "log", "begun_of" } do
        self[list] = {}
    end
    self.at_work, self.most, self.drawn = 0, 0, 0
    return put(open, self)
end

function stage.start(given)
    local self = new(given)
    assert(open_engine(self))
    return self
end

-- refused_by gives why an engine doesn't start with it; nil: it does.
function stage.refused_by(given)
    local _, why = open_engine(new(given))
    return why
end

function stage:close()
    if self.engine then
        self.engine:close()
    end
    if self.policy then
        self.policy:close()
    end
    self.engine, self.policy = nil, nil
end

-- restart closes the engine, and begins anew on the same file, with other options where they are given. `died` are ids
-- of messages whose owners have died meanwhile, each as often as is said.
function stage:restart(given, died)
    self:close()
    for id, times in pairs(died or {}) do
        local statement = "UPDATE messages SET deliveries = deliveries + %d WHERE id = '%s'"
        database.rows(select(2, self:url()), statement:format(times, id))
    end
    with(self.given, given)
    assert(open_engine(self))
end

function stage.close_all()
    while #open > 0 do
        local self = table.remove(open)
        self:close()
        if self.folder then
            self.folder:remove()
        end
    end
end

-- ---- Acting ------------------------------------------------------------------------------------

-- publish puts messages "m-1", "m-2", … on a queue: so many, or one for each table of options.
function stage:publish(what, queue)
    local list = type(what) == "table" and (what[1] and what or { what }) or {}
    for _ = 1, type(what) == "number" and what or 0 do
        put(list, {})
    end
    local safe = 0
    for _, options in ipairs(list) do
        self.sent = self.sent + 1
        local one = with({ id = "m-" .. self.sent }, options)
        assert(self.engine:publish("orders", queue or "work", one.body or "x", { id = one.id, type = one.type,
            key = one.key, headers = one.headers, delay = one.delay }, function(...)
            assert(...)
            safe = safe + 1
        end))
    end
    self.clock:turn()
    assert.equal(#list, safe)
end

function stage:advance(span)
    self.clock:advance(span)
end

-- to moves the clock to a moment.
function stage:to(ms)
    self.clock:advance(math.max(ms - self.clock:now(), 0) .. "ms")
end

function stage:pause()
    assert(self.engine:pause "C")
    self.clock:turn()
end

function stage:resume()
    assert(self.engine:resume "C")
    self.clock:turn()
end

-- reload takes other statements, or another chain.
function stage:reload(given)
    local taken, why = self.policy:reload(text_of(with(self.given, given)))
    self.clock:turn()
    return taken, why
end

-- hold_fails loses the claims of a transport that has a claim timeout.
function stage:hold_fails(times)
    self.engine:fault("orders", "hold", { times = times })
end

-- journal_fails lets writes of what is journalled fail.
function stage:journal_fails(times)
    self.engine:fault("orders", "note", { times = times })
end

-- ---- Looking -----------------------------------------------------------------------------------

-- calls_of gives the calls of a message, or of a consumer.
function stage:calls_of(id, consumer)
    local some = {}
    for _, call in ipairs(self.calls) do
        if (not id or call.id == id) and (not consumer or call.consumer == consumer) then
            put(some, call)
        end
    end
    return some
end

-- begun gives ids and moments of calls, from a number on: "m-1@0".
function stage:begun(from)
    local list = {}
    for number = from or 1, #self.calls do
        put(list, self.calls[number].id .. "@" .. self.calls[number].at)
    end
    return list
end

-- ids gives the ids of calls alone, from a number on, at most so many.
function stage:ids(from, count)
    local list = {}
    for _, call in ipairs { table.unpack(self.calls, from or 1, count and from + count - 1 or #self.calls) } do
        put(list, call.id)
    end
    return list
end

-- moments gives when calls began, of a message where one is named.
function stage:moments(id)
    local list = {}
    for number, call in ipairs(self:calls_of(id)) do
        list[number] = call.at
    end
    return list
end

-- told gives the events of limits and pauses, of C: "started@10".
function stage:told()
    local list = {}
    for _, entry in ipairs(self.limit_events) do
        put(list, SHORT[entry.name] .. "@" .. entry.at)
    end
    return list
end

-- names gives the same without moments, joined by blanks.
function stage:names()
    return (table.concat(self:told(), " "):gsub("@%d+", ""))
end

-- reasons gives the dead letters: "m-1 exhausted".
function stage:reasons()
    local list = {}
    for _, letter in ipairs(self.dead) do
        put(list, letter.id .. " " .. tostring(letter.reason))
    end
    return list
end

-- look gives C in a snapshot, or another consumer.
function stage:look(name)
    for _, consumer in ipairs(assert(self.engine:snapshot()).consumers) do
        if consumer.name == (name or "C") then
            return consumer
        end
    end
end

function stage:depth(queue)
    local found
    assert(self.engine:depth("orders", queue or "work", function(depth)
        found = depth
    end))
    self.clock:turn()
    return assert(found, "the question for the depth wasn't answered")
end

-- ---- Expectations ------------------------------------------------------------------------------

-- near holds a time against a wait: jitter only adds, at most a quarter.
function stage.near(wait, gap)
    local most = wait + (wait + 3) // 4 + 1
    assert.is_true(gap >= wait and gap <= most, ("%s ms is no wait of %d ms"):format(gap, wait))
end

-- failing_until gives an outcome: all calls that end before a moment fail.
function stage.failing_until(ms, letter)
    return function(_, _, now)
        return now < ms and (letter or "F") or "S"
    end
end

return stage
