-- stage.lua: what the cases of the conformance suite stand on: the list of them, and rigs on the
-- test's place. A rig goes by a test's clock; in real time that clock follows the machine's, since a
-- broker's delays are real. Cases wait for what happens, never for a time.
local assert = require "luassert"
local mulligan = require "mulligan"
local process = require "support.process"
local testing = require "mulligan.testing"

local WATCHDOG_S = 120
local REST = "300ms" -- in real time what shouldn't come has so long to come

local stage = {}

-- ---- The list of cases -------------------------------------------------------------------------

stage.cases = {}

-- group gives a function that adds a case to the list: its words, what it does, and what a transport
-- needs for it, words of needs.lua.
function stage.group(words)
    return function(case, run, needs)
        local list = {}
        for need in (needs or ""):gmatch("%S+") do
            list[#list + 1] = need
        end
        stage.cases[#stage.cases + 1] = { name = words .. " " .. case, run = run, needs = list }
    end
end

-- ---- Time --------------------------------------------------------------------------------------

local function uptime_ms()
    local file = assert(io.open("/proc/uptime"))
    local seconds = file:read("n")
    file:close()
    return math.floor(seconds * 1000)
end

local function wall_ms()
    local pipe = assert(io.popen("date +%s%3N"))
    local ms = pipe:read("n")
    pipe:close()
    return ms
end

-- follow moves a clock to where the machine's is by now.
local function follow(clock)
    local behind_ms = uptime_ms() - stage.began_ms - clock:now()
    if behind_ms > 0 then
        clock:advance(behind_ms .. "ms")
    end
    return clock:turn()
end

-- came_ms is the moment of the wall clock at which something is seen. In real time the rig's clock is behind
-- by as much as its last turn took, and /proc/uptime has 10 ms: what begins is noted by the rig's clock, what
-- comes of it by this, so that only what is early is taken for that.
function stage.came_ms()
    if not stage.real then
        return stage.clock:wall()
    end
    return stage.began_wall_ms + uptime_ms() - stage.began_ms + 10
end

-- of_time gives the first by a test's clock, the second in real time.
function stage.of_time(by_clock, really)
    if stage.real then
        return really
    end
    return by_clock
end

-- ---- Rigs --------------------------------------------------------------------------------------

local rig = {}
rig.__index = function(self, key)
    return rig[key] or self.inner[key]
end

-- POLICY has a chain for each error that a case raises; shorter ones in real time.
local function policy()
    return ([[
local bus = require("mulligan.policy").bus()
bus:on("Later"):redeliver { "%s", "%s" }
bus:on("Soon"):redeliver { "%s", "%s", "%s" }
bus:on("Again"):retry { "%s", "%s" }
bus:on("Drop"):discard("not needed")
bus:on("Dead"):dead_letter("parked")
for _, name in ipairs { "error", "parked" } do
    local finder = require("mulligan.policy").consumer("Finder of " .. name)
    finder:dead_letter_queue("lost")
    finder:default():dead_letter()
end
]]):format(table.unpack(stage.of_time({ "5m", "10m", "1s", "1s", "1s", "1s", "1s" },
        { "400ms", "600ms", "200ms", "200ms", "200ms", "150ms", "150ms" })))
end

-- rig gives an engine on the test's place, which is up and reads its queues; what isn't closed is
-- closed after the test. given.down: it isn't up yet.
function stage.rig(given)
    local down = given.down
    given.down = nil
    given.url = given.url or stage.place.url
    given.policy = given.policy or policy()
    given.clock = stage.clock
    local made = setmetatable({ inner = testing.rig(given) }, rig)
    stage.open[#stage.open + 1] = made
    if not down then
        made:await_up()
    end
    return made
end

-- In real time a turn follows the machine's clock, and the pause between two saves the processor.
local function turn(self)
    if not stage.real then
        return self.clock:turn()
    end
    os.execute("sleep 0.004")
    return follow(self.clock)
end

-- await lets time go by until `condition` holds, and no longer.
function rig:await(what, condition)
    local deadline = os.time() + WATCHDOG_S
    while not condition() do
        local next_ms = turn(self)
        if condition() then
            return
        elseif os.time() > deadline then
            error(("waited %d s for %s\n%s"):format(WATCHDOG_S, what, table.concat(self:log(), "\n")), 2)
        elseif not stage.real and not next_ms then
            error(("nothing happens any more; waited for %s"):format(what), 2)
        elseif not stage.real then
            local ms = math.max(next_ms - self.clock:now(), 0)
            self.clock:advance(ms > 0 and ms .. "ms" or 0)
        end
    end
end

-- await_up waits until the transport is up, and each queue is read.
function rig:await_up()
    local waits = { transport_down = true, queue_waiting = true }
    self:await("the transport", function()
        local seen = assert(self.engine:snapshot())
        for _, transport in ipairs(seen.transports) do
            if transport.health ~= "up" then
                return false
            end
        end
        for _, consumer in ipairs(seen.consumers) do
            if waits[consumer.why_not] then
                return false
            end
        end
        return true
    end)
end

-- pass lets a time go by.
function rig:pass(span)
    if not stage.real then
        self.clock:advance(span)
        return
    end
    local over = false
    self.engine:after(span, function()
        over = true
    end)
    self:await(span, function()
        return over
    end)
end

-- rest lets come what shouldn't.
function rig:rest()
    if stage.real then
        self:pass(REST)
    elseif stage.has.exact then
        self.inner:run_until_empty()
    else
        self:pass("2h")
    end
end

-- ended is how many messages have come to their end, those too that were collected.
function rig:ended()
    local counts = self:counts()
    return counts.done + counts.dead_lettered + counts.discarded
end

-- ends waits until so many messages have come to their end, and no more do.
function rig:ends(count)
    self:await(count .. " ends", function()
        return self:ended() >= count
    end)
    self:rest()
    assert.equal(count, self:ended())
end

-- ask calls a method of the engine that answers by a callback, its last argument, and gives the answer.
function rig:ask(method, ...)
    local answer
    local words = table.pack(...)
    words[words.n + 1] = function(...)
        answer = table.pack(...)
    end
    local taken, why, code = self.engine[method](self.engine, "orders", table.unpack(words, 1, words.n + 1))
    if not taken then
        return nil, why, code
    end
    self:await("the answer to " .. method, function()
        return answer
    end)
    return table.unpack(answer, 1, answer.n)
end

function rig:publish(queue, body, options)
    return self:ask("publish", queue, body, options or {})
end

function rig:depth(queue)
    return self:ask("depth", queue)
end

-- counted holds a depth against numbers, where depths are exact.
function rig:counted(queue, ready, delayed, claimed)
    if not stage.has.exact then
        return nil
    end
    local depth = assert(self:depth(queue))
    assert.are.same({ ready, delayed, claimed }, { depth.ready, depth.delayed, depth.claimed })
    return depth
end

-- send publishes a message to "q" for each id.
function rig:send(list, given)
    for id in list:gmatch("%S+") do
        local options = { id = id }
        for key, value in pairs(given or {}) do
            options[key] = value
        end
        assert(self:publish("q", "body of " .. id, options))
    end
end

-- find adds a consumer of a queue of dead letters, "error" or "parked", and gives what it finds there.
function rig:find(queue)
    local found = {}
    local finder = stage.reader(found, nil, { queue = queue, transport = "orders" })
    assert(self.engine:consumer("Finder of " .. queue, finder))
    return found
end

function rig:stop()
    if not stage.real then
        return self.inner:stop()
    end
    self.engine:stop()
    self:await("the stop", function()
        return self.engine:stopped()
    end)
end

function rig:close()
    for number, other in ipairs(stage.open) do
        if other == self then
            table.remove(stage.open, number)
        end
    end
    self.inner:close()
end

-- ---- Handlers ----------------------------------------------------------------------------------

-- reader gives a consumer of "q" that notes what it gets, then does what `act` says.
function stage.reader(seen, act, more)
    local consumer = {
        queue = "q",
        handler = function(msg)
            seen[#seen + 1] = msg
            if act then
                act(msg)
            end
        end,
    }
    for key, value in pairs(more or {}) do
        consumer[key] = value
    end
    return consumer
end

-- until_free lets a handler work until the gate is open.
function stage.until_free(gate)
    while not gate.open do
        mulligan.sleep "20ms"
    end
end

function stage.ids(seen)
    local list = {}
    for number, msg in ipairs(seen) do
        list[number] = msg.id
    end
    return table.concat(list, " ")
end

-- all_ids is the ids in order, each once.
function stage.all_ids(seen)
    local list, known = {}, {}
    for _, msg in ipairs(seen) do
        if not known[msg.id] then
            known[msg.id] = true
            list[#list + 1] = msg.id
        end
    end
    table.sort(list)
    return table.concat(list, " ")
end

-- numbered gives the ids m1 … mN, with as many digits each as N has.
function stage.numbered(count)
    local list = {}
    for number = 1, count do
        list[number] = ("m%0" .. #tostring(count) .. "d"):format(number)
    end
    return table.concat(list, " ")
end

-- ---- A test's place ----------------------------------------------------------------------------

function stage.set(has, place)
    stage.has, stage.place, stage.open, stage.folders, stage.real = has, place, {}, {}, has.real_time
    stage.began_wall_ms = stage.real and wall_ms() or nil
    stage.began_ms, stage.clock = uptime_ms(), testing.clock(stage.began_wall_ms)
end

function stage.clear()
    if not stage.place then
        return -- the case was skipped
    end
    while #stage.open > 0 do
        stage.open[#stage.open]:close()
    end
    for _, folder in ipairs(stage.folders) do
        folder:remove()
    end
    if stage.place.remove then
        stage.place.remove()
    end
    stage.place = nil
end

-- folder gives a folder with files, for processes; it is gone after the test.
function stage.folder(files)
    local made = process.folder(files)
    stage.folders[#stage.folders + 1] = made
    return made
end

-- in_real_time has the rest of a test go by the machine's clock: where other processes are waited for.
function stage.in_real_time()
    assert(#stage.open == 0)
    stage.real = true
    stage.began_wall_ms = wall_ms()
    stage.began_ms, stage.clock = uptime_ms(), testing.clock(stage.began_wall_ms)
end

return stage
