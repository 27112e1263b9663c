---@meta mulligan

-- Made of tools/words by tools/words.lua.

---What `require "mulligan"` gives.
---@class mulligan
---@field version string of mulligan
---@field json mulligan.Json JSON
local Module = {}

---Options of a consumer
---@class (exact) mulligan.ConsumerOptions
---@field transport string a name given to `m.transport`
---@field queue string what it reads
---@field handler mulligan.Handler what is called for each message; it runs in a coroutine
---@field concurrency? integer never more handlers at work than this (default: 1)
---@field prefetch? integer claimed but not started, at most (default: 2 × `concurrency`)
---@field timeout? mulligan.Duration|false how long a call may take; `false`: any time (default: `30s`)
---@field max_body? integer|string bytes, or a text in `B`, `KiB`, `MiB`, `GiB`; what is larger is dead-lettered unread (default: `16MiB`)
---@field [string] mulligan.UnknownOption there is no such option

---Succeeds if it returns, fails if it raises.
---@alias mulligan.Handler fun(msg: mulligan.Message)

---`msg`
---@class mulligan.Message
---@field id string the key to drop duplicates by
---@field type? string as sent
---@field key? string as sent
---@field queue string that it was taken from
---@field body string byte for byte as sent
---@field headers table<string, string> `mulligan-` ones too
---@field attempt integer 1 in the first call since it was handed out
---@field redeliveries integer done so far
---@field calls integer failed calls before this one, over every delivery
---@field deliveries integer how often this copy was handed out, where the transport counts

---What `m.error` takes
---@class mulligan.Raised
---@field type string the type that the policy decides by
---@field message? string what happened
---@field stack? string the traceback if left out
---@field lineage? string[] types, nearest ancestor first
---@field cause? mulligan.Raised|string the error behind it
---@field [string] any every other key is a field for matchers

---Options of `m.send`
---@class (exact) mulligan.SendOptions
---@field id? string a random one if left out
---@field type? string of the message
---@field key? string of the message
---@field headers? table<string, string> at most 1,000
---@field delay? mulligan.Duration from now (default: 0)
---@field [string] mulligan.UnknownOption there is no such option

---`m.json`
---@class mulligan.Json
---@field null userdata stands for null in lists
local Json = {}

---Options of `load`
---@class (exact) mulligan.LoadOptions
---@field log? fun(level: string, text: string) gets what the policy prints
---@field event? fun(event: mulligan.ToldEvent) is told of matchers and overrides that failed, and of reloads
---@field [string] mulligan.UnknownOption there is no such option

---Those of `load`, and:
---@class (exact) mulligan.LoadTextOptions: mulligan.LoadOptions
---@field name? string of its file (default: `"policy.lua"`)
---@field [string] mulligan.UnknownOption there is no such option

---A mistake
---@class mulligan.Problem
---@field file? string relative to the policy's folder
---@field line? integer where it is known
---@field text string what is wrong, and what would be right

---What `mulligan.load` gives.
---@class mulligan.Policy
local Policy = {}

---Options of `table`
---@class (exact) mulligan.TableOptions
---@field consumer? string for which consumer
---@field transport? string for which transport
---@field [string] mulligan.UnknownOption there is no such option

---Options of `decide` and `explain`
---@class (exact) mulligan.DecideOptions
---@field seed? integer changes every jitter (default: 0)
---@field no_jitter? boolean as if every jitter were 0 (default: false)
---@field [string] mulligan.UnknownOption there is no such option

---A failure, as it is given
---@class (exact) mulligan.GivenFailure
---@field error mulligan.Raised the only key that is required
---@field consumer? string its name (default: none)
---@field transport? string its name (default: none)
---@field attempt? integer from 1 (default: 1)
---@field redeliveries? integer from 0 (default: 0)
---@field calls? integer from 1 (default: attempt + redeliveries)
---@field deliveries? integer from 1 (default: 1)
---@field age_ms? integer milliseconds since the first failure (default: 0)
---@field message? mulligan.GivenMessage the message that it is about (default: none)
---@field can? mulligan.Can what the transport can do (default: everything)
---@field [string] mulligan.UnknownOption there is no such option

---Its message
---@class (exact) mulligan.GivenMessage
---@field id? string jitter is drawn from it
---@field type? string of the message
---@field key? string of the message
---@field size? integer of its body, in bytes
---@field headers? table<string, string> by name
---@field [string] mulligan.UnknownOption there is no such option

---What the transport can do
---@class (exact) mulligan.Can
---@field retry? boolean hold a message while its handler runs again (default: true)
---@field delay? boolean deliver later (default: true)
---@field [string] mulligan.UnknownOption there is no such option

---The same as a policy's `notify` gets, but plain tables.
---@class mulligan.ToldEvent
---@field name mulligan.EventName what happened
---@field failure? mulligan.GivenFailure where it is about a message
---@field verdict? mulligan.Verdict where there is one
---@field rule? mulligan.RulePlace the rule whose matcher failed
---@field text? string why, what, or which
---@field generation? string what is in force

---Options of an engine
---@class (exact) mulligan.EngineOptions
---@field policy mulligan.Policy that decides
---@field grace? mulligan.Duration how long a stop waits for handlers
---@field log? fun(level: string, text: string) gets its lines
---@field event? fun(event: mulligan.ToldEvent) is told of each message's verdict
---@field stop_on_signals? boolean SIGTERM and SIGINT stop it (default: false)
---@field reload_on_sighup? boolean SIGHUP reloads the policy (default: false)
---@field reload_on_change? boolean a changed file reloads the policy (default: false)
---@field seed? integer changes every jitter (default: 0)
---@field clock? mulligan.Clock a test's clock
---@field [string] mulligan.UnknownOption there is no such option

---What `mulligan.engine` gives. What fails gives nil, why, and a code.
---@class mulligan.Engine
local Engine = {}

---How deep a queue is
---@class mulligan.Depth
---@field ready integer messages
---@field delayed integer messages
---@field claimed integer messages
---@field next_due_ms? integer until the next delayed one is due

---What became of messages
---@class mulligan.Counts
---@field done integer messages
---@field retried integer verdicts
---@field redelivered integer verdicts
---@field dead_lettered integer messages
---@field discarded integer messages
---@field notify_failed integer calls

---What a fault is for.
---@alias mulligan.Operation
---| "settle"
---| "publish"
---| "depth"
---| "hold"

---Options of a fault
---@class (exact) mulligan.FaultOptions
---@field skip? integer so many go well first (default: 0)
---@field times? integer so many fail (default: 1)
---@field code? string of the failure (default: `"io"`)
---@field [string] mulligan.UnknownOption there is no such option

---Says which policy; once, required.
---@param path string relative to mulligan.lua
function Module.policy(path) end

---Says where queues are.
---@param name string for consumers, policies and logs
---@param url string `memory:` or `sqlite:FILE`, relative to mulligan.lua
function Module.transport(name, url) end

---Says which handler takes which queue; at least one.
---@param name string unique
---@param options mulligan.ConsumerOptions what it reads, and how
function Module.consumer(name, options) end

---Raises an error with a type, in a handler. It doesn't return.
---@param raised mulligan.Raised what failed
function Module.error(raised) end

---Puts a message on a queue if the handler succeeds, with its acknowledgement. A call that fails sends
---nothing.
---@param queue string of the consumer's transport
---@param body string at most 16 MiB
---@param options? mulligan.SendOptions
function Module.send(queue, body, options) end

---Lets other handlers work, and comes back later; in the handler's own coroutine.
---@param span mulligan.Duration
function Module.sleep(span) end

---Reads JSON; raises `MessageDeserializationError` where it is none. null is left out of objects.
---@param text string JSON
---@return any
function Json.decode(text) end

---Writes JSON. A table with the keys 1 … n is a list, an empty one an object.
---@param value any
---@return string
function Json.encode(value) end

---Marks a table as a list, be it empty.
---@param t table
---@return table
function Json.list(t) end

---Loads a policy; else nil, what is wrong, a code, and the list of mistakes.
---@param path string of the policy
---@param options? mulligan.LoadOptions
---@return mulligan.Policy?
---@return string?
---@return string?
---@return mulligan.Problem[]?
function Module.load(path, options) end

---The same for a text, which has no files beside it.
---@param text string of the policy
---@param options? mulligan.LoadTextOptions
---@return mulligan.Policy?
---@return string?
---@return string?
---@return mulligan.Problem[]?
function Module.load_text(text, options) end

---Gives the verdict for a failure. An unknown key raises.
---@param failure mulligan.GivenFailure
---@param options? mulligan.DecideOptions
---@return mulligan.Verdict
function Policy:decide(failure, options) end

---Says why a failure gets its verdict and what follows; keys as of `mulligan explain --format json`.
---@param failure mulligan.GivenFailure
---@param options? mulligan.DecideOptions
---@return table
function Policy:explain(failure, options) end

---Gives what is in force there; keys as of `mulligan table --format json`.
---@param options? mulligan.TableOptions
---@return table
function Policy:table(options) end

---Gives findings and bounds; keys as of `mulligan check --format json`.
---@param options? table `consumers` and `transports` that it is for
---@return table
function Policy:check(options) end

---As `decide`, from JSON to JSON; raises where the text is no failure.
---@param text string a failure in JSON
---@param options? mulligan.DecideOptions
---@return string
function Policy:decide_json(text, options) end

---Loads the files anew: true, or `"unchanged"`; else as `load`, and what was in force stays.
---@param text? string the new text, of a policy that was loaded from one
---@return true|"unchanged"|nil
---@return string?
---@return string?
---@return mulligan.Problem[]?
function Policy:reload(text) end

---Gives the name of the generation in force.
---@return string
function Policy:generation() end

---Says how many rules it has.
---@return integer
function Policy:rules() end

---Says how many scopes it has.
---@return integer
function Policy:scopes() end

---Lets go of it. Raises while an engine uses it. A variable with `<close>` does the same.
function Policy:close() end

---Says whether it was closed.
---@return boolean
function Policy:closed() end

---Makes an engine, which belongs to this thread.
---@param options mulligan.EngineOptions
---@return mulligan.Engine?
---@return string?
---@return string?
function Module.engine(options) end

---Opens a transport.
---@param name string
---@param url string
---@return true?
---@return string?
---@return string?
function Engine:transport(name, url) end

---Adds a consumer.
---@param name string
---@param options mulligan.ConsumerOptions
---@return true?
---@return string?
---@return string?
function Engine:consumer(name, options) end

---Begins to take messages.
---@return true?
---@return string?
---@return string?
function Engine:start() end

---Starts, and returns when the engine has stopped.
---@return true?
---@return string?
---@return string?
---@return mulligan.Problem[]?
function Engine:run() end

---True, unless it stops or has stopped by itself.
---@return true?
---@return string?
---@return string?
function Engine:status() end

---Puts a message on a queue.
---@param transport string its name
---@param queue string
---@param body string
---@param options? mulligan.SendOptions
---@param callback? fun(safe?: true, message?: string, code?: string) once it is safe
---@return true?
---@return string?
---@return string?
function Engine:publish(transport, queue, body, options, callback) end

---Asks how many messages are in a queue.
---@param transport string its name
---@param queue string
---@param callback fun(depth?: mulligan.Depth, message?: string, code?: string)
---@return true?
---@return string?
---@return string?
function Engine:depth(transport, queue, callback) end

---Says what became of messages so far.
---@return mulligan.Counts
function Engine:counts() end

---Stops, once the handlers at work have ended, or after the grace time.
function Engine:stop() end

---Stops once its queues are empty.
function Engine:stop_when_empty() end

---Stops without grace, and lets go of it. A variable with `<close>` does the same.
function Engine:close() end

---Says whether it has stopped.
---@return boolean
function Engine:stopped() end

---Says whether it was closed.
---@return boolean
function Engine:closed() end

---Says whether it stopped since its queues were empty.
---@return boolean
function Engine:emptied() end

---Calls back once, on the engine's clock.
---@param delay mulligan.Duration
---@param callback fun()
---@return true?
---@return string?
---@return string?
function Engine:after(delay, callback) end

---With a test's clock: runs what is due. Gives the moment of the next timer in ms, or nil.
---@return integer?
function Engine:turn() end

---For tests: lets the next operations of a transport fail.
---@param transport string its name
---@param operation mulligan.Operation
---@param options? mulligan.FaultOptions
---@return true?
---@return string?
---@return string?
function Engine:fault(transport, operation, options) end

return Module
