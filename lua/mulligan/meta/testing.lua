---@meta mulligan.testing

-- Made of tools/docgen by tools/docgen.lua.

---What `require "mulligan.testing"` gives.
---@class mulligan.testing
local Testing = {}

---Options of a rig
---@class (exact) mulligan.RigOptions
---@field policy? string|mulligan.Policy its text, or a loaded one (default: an empty text)
---@field url? string of the transport (default: `"memory:"`)
---@field clock? mulligan.Clock shared with other rigs (default: its own)
---@field consumers? table<string, mulligan.RigConsumer> by name
---@field collect? string[] queues whose messages are kept for the test
---@field grace? mulligan.Duration as of an engine
---@field seed? integer as of an engine (default: 1)
---@field reload_on_sighup? boolean as of an engine (default: false)
---@field reload_on_change? boolean as of an engine (default: false)
---@field patterns? "counted"|"lua" as of an engine (default: `"lua"`)
---@field start? boolean `false` leaves starting to the test (default: true)
---@field [string] mulligan.UnknownOption there is no such option

---The options of a consumer; its transport is the rig's.
---@class (exact) mulligan.RigConsumer
---@field queue string what it reads
---@field handler mulligan.Handler what is called for each message
---@field concurrency? integer handlers at work, at most
---@field prefetch? integer claimed but not started, at most
---@field timeout? mulligan.Duration|false how long a call may take
---@field max_body? integer|string bytes, or a text such as `"16MiB"`
---@field paused? boolean it begins paused
---@field fault_headers? "mulligan"|"nservicebus" whose headers its dead letters have, besides
---@field types? string[] the message types that are its own
---@field transport? string another one that the test opened
---@field [string] mulligan.UnknownOption there is no such option

---A rig
---@class mulligan.Rig
---@field engine mulligan.Engine its engine
---@field clock mulligan.Clock its clock
local Rig = {}

---A clock
---@class mulligan.Clock
local Clock = {}

---`random(n)` gives a whole number from 1 to n.
---@class mulligan.Random
---@overload fun(n: integer): integer
local Random = {}

---Makes a clock that stands still.
---@param wall_ms? integer since 1970; the beginning of 2026 if left out
---@return mulligan.Clock
function Testing.clock(wall_ms) end

---Makes an engine on a test's clock, with one transport, "orders", and starts it.
---@param options mulligan.RigOptions
---@return mulligan.Rig
function Testing.rig(options) end

---Makes a generator that gives the same on every machine.
---@param seed integer
---@return mulligan.Random
function Testing.random(seed) end

---Puts a message on a queue, and returns when it is safe.
---@param queue string
---@param body string
---@param options? mulligan.SendOptions
---@return true?
---@return string?
---@return string?
function Rig:publish(queue, body, options) end

---Moves the clock, over every timer on the way.
---@param span mulligan.Duration
function Rig:advance(span) end

---Moves the clock from timer to timer until nothing is left in the queues that are read.
function Rig:run_until_empty() end

---Gives the messages that arrived in a queue named in `collect`.
---@param queue string
---@return mulligan.Message[]
function Rig:collected(queue) end

---Says how many messages are in a queue.
---@param queue string
---@return mulligan.Depth?
---@return string?
---@return string?
function Rig:depth(queue) end

---Lets the next operations fail.
---@param operation mulligan.Operation
---@param options? mulligan.FaultOptions
function Rig:fault(operation, options) end

---Says what became of messages so far.
---@return mulligan.Counts
function Rig:counts() end

---Gives the lines so far, as "level: text".
---@return string[]
function Rig:log() end

---Gives the events so far.
---@param name? mulligan.EventName all if left out
---@return mulligan.ToldEvent[]
function Rig:events(name) end

---Stops the engine, over its grace time.
function Rig:stop() end

---Lets go of it, and of a policy that was given as a text.
function Rig:close() end

---Gives the milliseconds that only move on.
---@return integer
function Clock:now() end

---Gives the milliseconds since 1970.
---@return integer
function Clock:wall() end

---Moves both on, over every timer on the way, in order.
---@param span mulligan.Duration
function Clock:advance(span) end

---Moves the wall only.
---@param span mulligan.Duration
---@param backwards? boolean
function Clock:step(span, backwards) end

---Runs what is due: the moment of the next timer in ms, or nil.
---@return integer?
function Clock:turn() end

---Gives one of a list.
---@param list any[] not empty
---@return any
function Random:pick(list) end

---True with the probability p.
---@param p number 0 to 1
---@return boolean
function Random:chance(p) end

return Testing
