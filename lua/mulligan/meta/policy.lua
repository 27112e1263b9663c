---@meta mulligan.policy

-- Made of tools/docgen by tools/docgen.lua.

---What `require "mulligan.policy"` gives.
---@class mulligan.policy
---@field present mulligan.Test Matches a field that is there.
---@field absent mulligan.Test Matches a field that is not there.
---@field preset mulligan.Presets Holds the presets.
local PolicyWords = {}

---What an option that doesn't exist would have to be: there is no such value.
---@class mulligan.UnknownOption

---These are always there. They are children of `Error`; a policy may give one another parent.
---```lua
---bus:on("HandlerTimeoutError"):redeliver(3, "10m")
---```
---@alias mulligan.ErrorType
---| "Error" # the root of all types: what a handler raised without a type
---| "MessageDeserializationError" # the message could not be read
---| "HandlerTimeoutError" # the handler ran longer than its consumer's `timeout`
---| "HandlerCrashError" # the process that handled the message died
---| "NoConsumerError" # no consumer of its queue takes messages of this type
---| string

---A text with the units `d h m s ms`, largest first, each at most once: `"200ms"`, `"1.5s"`,
---`"1h30m"`; or the number 0. Whole milliseconds, at most 365 days. Any other number is a mistake,
---since it has no unit.
---```lua
---bus:on("TimeoutError"):retry(1, "1h30m"):then_redeliver { "1.5s", 0 }
---```
---@alias mulligan.Duration string|0

---What `policy.host`, `bus`, `transport` and `consumer` give: rules and settings are said to it.
---@class mulligan.Scope
local Scope = {}

---What `policy.ctx`, `all`, `any` and `none` give.
---@class mulligan.MadeMatcher

---Passes where every field of the error that is named has the value. `type`, `message` and `stack` may
---be named as well; the error's cause is never looked at.
---```lua
---bus:on("HttpError", { status = { 502, 503 }, method = "GET" }):retry(1, 0)
---```
---@alias mulligan.Fields table<string, mulligan.Value>

---Passes where it returns anything but nil and false. It may not rely on a variable that it changes:
---each thread has a copy of its own.
---```lua
---bus:on("HttpError", function(err, ctx) return err.host == ctx.message.headers.host end):retry(1, 0)
---```
---@alias mulligan.MatcherFunction fun(err: mulligan.Err, ctx: mulligan.Ctx): any

---Any of these.
---@alias mulligan.Matcher mulligan.Fields|mulligan.MatcherFunction|mulligan.MadeMatcher

---What `policy.ctx` may ask for
---@class (exact) mulligan.CtxTests
---@field attempt? mulligan.Value failed calls since the message was last handed out, this one included; from 1
---@field redeliveries? mulligan.Value redeliveries done so far
---@field deliveries? mulligan.Value how often the transport has handed this copy out; 1 where it doesn't count
---@field calls? mulligan.Value failed calls in all, over every delivery, this one included
---@field age_ms? mulligan.Value milliseconds since the first failure
---@field consumer? mulligan.Value the name of the consumer
---@field transport? mulligan.Value the name of the transport
---@field message? mulligan.MessageTests a table of what the message has
---@field [string] mulligan.UnknownOption there is no such option

---What its `message` may ask for
---@class (exact) mulligan.MessageTests
---@field id? mulligan.Value the id of the message
---@field type? mulligan.Value the type of the message
---@field key? mulligan.Value the key of the message
---@field size? mulligan.Value the size of its body in bytes
---@field headers? mulligan.Fields a table of headers; names are exact, values strings
---@field [string] mulligan.UnknownOption there is no such option

---What the words below give.
---@class mulligan.Test

---Matches what is equal, type included.
---```lua
---bus:on("HttpError", { transient = true }):retry(1, 0)
---```
---@alias mulligan.Literal string|number|boolean

---A list of literals matches what is equal to one of them.
---```lua
---bus:on("HttpError", { status = { 502, 503, 504 } }):retry(1, 0)
---```
---@alias mulligan.Value mulligan.Literal|mulligan.Literal[]|mulligan.Test

---`err`
---@class mulligan.Err
---@field type string the error's type
---@field message string `""` where it has none
---@field stack string `""` where it has none
---@field cause? mulligan.Err the error behind it, at most 16 deep
---@field [string] any every other field that the failure carries; lists and maps are read-only tables
local Err = {}

---`ctx`
---@class mulligan.Ctx
---@field attempt integer failed calls since the message was last handed out, this one included; from 1
---@field redeliveries integer redeliveries done so far
---@field deliveries integer how often the transport has handed this copy out; 1 where it doesn't count
---@field calls integer failed calls in all, over every delivery, this one included
---@field age_ms integer milliseconds since the first failure
---@field consumer? string the name of the consumer
---@field transport? string the name of the transport
---@field message mulligan.CtxMessage the message, without its body

---`ctx.message`
---@class mulligan.CtxMessage
---@field id? string the id of the message
---@field type? string the type of the message
---@field key? string the key of the message
---@field size? integer the size of its body in bytes
---@field headers table<string, string> always a table; names are exact

---A rule that has no action yet.
---@class mulligan.Rule
local Rule = {}

---A rule behind its `retry`.
---@class mulligan.Retried
local Retried = {}

---A rule behind its `redeliver` or `then_redeliver`.
---@class mulligan.Redelivered
local Redelivered = {}

---The end of a statement: nothing may follow.
---@class mulligan.Ended

---Each by its name, in any selection.
---```lua
---bus:on("TimeoutError"):retry { attempts = 5, delay = "100ms", factor = 3, max_delay = "1m", jitter = "full" }
---```
---@class (exact) mulligan.RetryOptions
---@field attempts? integer how many, 0 to 1000; 0 switches the tier off (default: 3)
---@field delay? mulligan.Duration the base delay (default: `200ms`)
---@field backoff? mulligan.Backoff how delays grow from step to step (default: `exponential`)
---@field factor? number of an exponential backoff, which must be in force; from 1 (default: 2)
---@field max_delay? mulligan.Duration no delay is longer than this (default: `30s`)
---@field jitter? mulligan.Jitter chance in the delays, after the cap (default: 0.25)
---@field hint? string the name of a field of the error, in seconds: where it is longer than the delay, it is waited for instead, up to `max_delay` (default: none)
---@field [string] mulligan.UnknownOption there is no such option

---Exactly these delays, as many attempts as there are; beside them may stand only what is listed here.
---```lua
---bus:on("TimeoutError"):retry { "100ms", "500ms", "2s", jitter = 0.1 }
---```
---@class (exact) mulligan.RetryDelays
---@field [integer] mulligan.Duration the delays, at most 1000
---@field jitter? mulligan.ListJitter chance in the delays (default: 0)
---@field max_delay? mulligan.Duration no delay is longer than this (default: none)
---@field hint? string the name of a field of the error, in seconds: where it is longer than the delay, it is waited for instead, up to `max_delay` (default: none)
---@field [string] mulligan.UnknownOption there is no such option

---The delays are 5m, 15m and 30m until attempts, delay, backoff or decorrelated jitter is named.
---Attempts without end, `"unlimited"`, need a `max_age` in each scope that has the rule, or of the bus
---or the host.
---```lua
---bus:max_age("1d")
---bus:on("HttpError"):redeliver { attempts = "unlimited", delay = "2m", backoff = "constant", hint = "retry_after" }
---```
---@class (exact) mulligan.RedeliverOptions
---@field attempts? integer|"unlimited" how many, 0 to 1000; 0 switches the tier off; or `"unlimited"` (default: 3)
---@field delay? mulligan.Duration the base delay (default: `5m`)
---@field backoff? mulligan.Backoff how delays grow from step to step (default: `linear`)
---@field factor? number of an exponential backoff, which must be in force; from 1 (default: 2)
---@field max_delay? mulligan.Duration no delay is longer than this (default: `1h`)
---@field jitter? mulligan.Jitter chance in the delays, after the cap (default: 0.25)
---@field hint? string the name of a field of the error, in seconds: where it is longer than the delay, it is waited for instead, up to `max_delay` (default: none)
---@field [string] mulligan.UnknownOption there is no such option

---Exactly these delays, as many attempts as there are; beside them may stand only what is listed here.
---```lua
---bus:on("TimeoutError"):redeliver { "100ms", "500ms", "2s", jitter = 0.1 }
---```
---@class (exact) mulligan.RedeliverDelays
---@field [integer] mulligan.Duration the delays, at most 1000
---@field jitter? mulligan.ListJitter chance in the delays (default: 0)
---@field max_delay? mulligan.Duration no delay is longer than this (default: none)
---@field hint? string the name of a field of the error, in seconds: where it is longer than the delay, it is waited for instead, up to `max_delay` (default: none)
---@field [string] mulligan.UnknownOption there is no such option

---With the base delay d, at the k-th step of the tier, from 1.
---```lua
---bus:on("TimeoutError"):retry(3, "1s", "linear")
---```
---@alias mulligan.Backoff
---| "constant" # d each time
---| "linear" # d · k at the k-th step
---| "exponential" # d · factor^(k−1)

---A fraction f from 0 to 1, which draws from d · (1−f) to d · (1+f); or one of these words. Chance
---depends on the message's id, so the same failure always gets the same delay.
---```lua
---bus:on("TimeoutError"):retry { attempts = 3, delay = "1s", jitter = "decorrelated" }
---```
---@alias mulligan.Jitter
---| "full" # from 0 to d
---| "decorrelated" # from the base delay to three times what came before; without `backoff` and `factor`
---| number

---As jitter, but never decorrelated: a list has no delays to grow from.
---@alias mulligan.ListJitter
---| "full" # from 0 to d
---| number

---One of `after` and `ratio` is needed.
---@class (exact) mulligan.RateLimit
---@field after? integer it begins at so many failures in a row
---@field ratio? number it begins when so large a part of the calls in `window` failed; above 0, at most 1
---@field window? mulligan.Duration of `ratio`: how far it looks back (default: `"30s"`)
---@field least? integer of `ratio`: with fewer calls in the window it doesn't begin (default: `20`)
---@field messages? integer so many different messages must be among these failures; at most `after` or `least`, and 1000 (default: `1`)
---@field within? mulligan.Duration of `after`: the failures must lie no further apart in all (default: however far)
---@field only? mulligan.ErrorType|mulligan.ErrorType[] errors that count, descendants included (default: all)
---@field except? mulligan.ErrorType|mulligan.ErrorType[] errors that don't count, descendants included; beside `only`: of those (default: none)
---@field wait? mulligan.Duration from the end of a failed call to the next call (default: `"1s"`)
---@field max_wait? mulligan.Duration the wait doubles with each failure up to this (default: `wait`)
---@field hint? string a field of the error, in seconds: the wait is the longer of both (default: none)
---@field successes? integer so many in a row end it (default: `1`)
---@field keep? boolean failures while it is limited aren't counted against the message (default: `false`)
---@field ramp? mulligan.Duration how long it takes after the end until all handlers work again (default: at once)
---@field per? mulligan.Per a count and a limit for each value of this (default: one for all)
---@field [string] mulligan.UnknownOption there is no such option

---Options of `limit`
---@class (exact) mulligan.CallLimit
---@field rate string calls in a second, a minute or an hour: `"100/s"`, `"100/m"`, `"100/h"`
---@field burst? integer so many calls may come at once (default: `1`)
---@field per? mulligan.Per a rate for each value of this (default: one for all)
---@field [string] mulligan.UnknownOption there is no such option

---What a limit counts for: the message's key, its type, or a header of it.
---@alias mulligan.Per "key"|"type"|mulligan.Header

---What `policy.header` gives.
---@class mulligan.Header

---What `override` takes.
---@alias mulligan.OverrideFunction fun(failure: mulligan.Failure, verdict: mulligan.Verdict, config: mulligan.Config): mulligan.Answer?

---What `notify` takes.
---@alias mulligan.NotifyFunction fun(event: mulligan.Event)

---What these words give.
---@class mulligan.Answer

---All that `ctx` has, and:
---@class mulligan.Failure: mulligan.Ctx
---@field error mulligan.Err the error, as matchers get it

---`verdict`
---@class mulligan.Verdict
---@field action mulligan.Action what is to be done
---@field delay_ms integer whole milliseconds; 0 for a dead letter and a discard
---@field queue? string of a dead letter
---@field reason? mulligan.Reason why a dead letter or a discard; of a retry or redelivery `"override"` or nothing
---@field note? string the text given to a discard
---@field tier? mulligan.Tier of a retry or a redelivery
---@field step? integer the how-manyth of the tier
---@field of? integer of how many; nil where there is no end, and where an override answered
---@field rule? mulligan.RulePlace the rule that decided; of reason `unrecoverable` the declaration
---@field fallback? mulligan.Fallback what the transport could not do
---@field generation string the content hash of the policy's files

---`verdict.rule`
---@class mulligan.RulePlace
---@field file string relative to the policy's folder
---@field line integer of its `on`, `on_cause`, `default` or `unrecoverable`
---@field scope string `host`, `bus`, `transport:NAME` or `consumer:NAME`
---@field type string the type that it is for

---@alias mulligan.Action
---| "retry" # the handler runs again
---| "redeliver" # the message is handed out again later
---| "dead_letter" # a copy is put aside
---| "discard" # it is dropped

---Where a message waits.
---@alias mulligan.Tier
---| "retry" # in the process
---| "redeliver" # by the transport

---Why a message ends. The first that holds is given.
---@alias mulligan.Reason
---| "fallback" # the transport can't do what was due
---| "override" # an override answered so
---| "max_deliveries" # handed out too often
---| "unrecoverable" # declared so
---| "no_rule" # no rule of the scope in force matches
---| "rule" # the chain is just this action
---| "exhausted" # retries and redeliveries are used up
---| "max_attempts" # too many handler calls in all
---| "max_age" # too long since the first failure, and a redelivery was due
---| "deadline" # the next call would begin too long after the first failure

---The message becomes a dead letter of the default queue.
---@alias mulligan.Fallback
---| "no_retry" # it can't hold a message while its handler runs again
---| "no_delay" # it has no delayed delivery

---`config`
---@class mulligan.Config
---@field dead_letter_queue string in force for the message
---@field max_age_ms? integer nil: none
---@field max_attempts? integer nil: none
---@field unrecoverable string[] the names of the types
---@field retry mulligan.ConfigTier of the `default()` in force, whatever failed
---@field redeliver mulligan.ConfigTier of the `default()` in force, whatever failed
---@field rule? mulligan.ConfigRule of the rule that decided; nil: none did

---`config.rule`
---@class mulligan.ConfigRule
---@field retry mulligan.ConfigTier of the rule that decided
---@field redeliver mulligan.ConfigTier of the rule that decided

---`config.retry`, `config.redeliver`, and those of `config.rule`
---@class mulligan.ConfigTier
---@field attempts integer|"unlimited" 0 where the tier is off, or the transport hasn't it
---@field delay_ms? integer the base delay in milliseconds
---@field backoff? mulligan.Backoff how it grows
---@field max_delay_ms? integer the cap in milliseconds; nil: none

---`event`
---@class mulligan.Event
---@field name mulligan.EventName what happened
---@field failure? mulligan.Failure where it is about a message; before its handler is called it has no `error`
---@field verdict? mulligan.Verdict the verdict that is carried out
---@field rule? mulligan.RulePlace the rule whose matcher failed
---@field text? string why something failed, the header that was ignored, what was loaded or why not
---@field generation? string what is in force
---@field consumer? string where it is about a consumer
---@field limit? mulligan.LimitStatus the `rate_limit` that started or ended

---@alias mulligan.EventName
---| "decided" # a verdict was carried out
---| "matcher_failed" # a matcher raised, or ran over its budget; its rule was skipped, or the rest of them, since one decision has one budget
---| "override_failed" # an override raised, or gave a wrong answer; the verdict stood
---| "notify_failed" # a `notify` raised, or ran over its budget; told to the embedder only
---| "header_ignored" # a counter or a time in a header can't be read
---| "policy_loaded" # it is in force since a reload, or, as a `notify` hears, since the start
---| "policy_refused" # a reload changed nothing
---| "transport_up" # a transport came up after the engine's start, for the first time or again; told to the embedder only
---| "rate_limit_started" # a `rate_limit` is in force; `text` says why, and when the next call begins
---| "rate_limit_ended" # enough calls succeeded, the policy has it no more, or there are too many values; `text` says which
---| "rate_limit_forgot" # there are too many values, and what failed of one is forgotten
---| "paused" # a consumer is, and begins no more calls
---| "resumed" # it goes on
---| "concurrency_changed" # a consumer's

---What `policy.preset` holds.
---@class mulligan.Presets
local Presets = {}

---Options of `nservicebus`
---@class (exact) mulligan.NServiceBusOptions
---@field immediate? integer retries, 0 to 1000 (default: 5)
---@field delayed? integer redeliveries, 0 to 1000 (default: 3)
---@field increase? mulligan.Duration the delay grows by this each time (default: `10s`)
---@field max_age? mulligan.Duration|false of the scope (default: `24h`)
---@field unrecoverable? mulligan.ErrorType[] types; the list may be empty (default: none)
---@field [string] mulligan.UnknownOption there is no such option

---Declares the parents of error types. Several calls add up. A type that nothing declares is a child
---of `Error`; a circle, a second, different parent, and a parent for `Error` are mistakes.
---```lua
---policy.errors { DeadlockError = "DatabaseError", LockTimeout = "DatabaseError" }
---bus:on("DatabaseError"):retry(5, "200ms")
---```
---@param parents table<string, string> child = parent
---@return mulligan.Ended
function PolicyWords.errors(parents) end

---Makes a duration of a number of seconds.
---```lua
---bus:on("TimeoutError"):retry(3, policy.seconds(0.5), "constant")
---```
---@param n number seconds, from 0; whole milliseconds, at most 365 days
---@return mulligan.Duration
function PolicyWords.seconds(n) end

---Makes a duration of a number of milliseconds.
---```lua
---bus:on("TimeoutError"):retry(3, policy.ms(50 * 2), "constant")
---```
---@param n number milliseconds, whole, from 0; at most 365 days
---@return mulligan.Duration
function PolicyWords.ms(n) end

---The scope behind all others: for what several policies of one machine share. Where there is a [host
---policy](policy.md#the-host-policy), it is said there alone.
---```lua
---policy.host():default():redeliver()
---```
---@return mulligan.Scope
function PolicyWords.host() end

---The scope of the whole process.
---```lua
---policy.bus():default():retry(1, 0):then_redeliver()
---```
---@return mulligan.Scope
function PolicyWords.bus() end

---The scope of all that comes from one transport.
---```lua
---policy.transport("orders"):default():dead_letter("orders-failed")
---```
---@param name string as it was set up with `m.transport`, not its URL
---@return mulligan.Scope
function PolicyWords.transport(name) end

---The scope of one consumer, the nearest of all. Its rules stand in the place of the bus's, so give it
---a `default()`, or `include` the bus.
---```lua
---local payments = policy.consumer("PaymentHandler")
---payments:on("TimeoutError"):retry(5, "500ms")
---payments:default():redeliver()
---```
---@param name string as it was set up with `m.consumer`
---@return mulligan.Scope
function PolicyWords.consumer(name) end

---Puts the rules of another scope behind the own ones for the same type, as they stand when the load
---ends. An own rule without a matcher replaces an included one without. Settings are not included.
---```lua
---bus:default():retry(3, "1s", "constant")
---local payments = policy.consumer("PaymentHandler")
---payments:on("CardDeclined"):dead_letter("declined")
---payments:include(bus)
---```
---@param other mulligan.Scope whose rules are wanted as well; no circle
---@return mulligan.Ended
function Scope:include(other) end

---Begins a rule, which needs an action. Without a matcher it replaces an earlier one without for the
---same type; rules with matchers never replace each other.
---```lua
---bus:on("HttpError", { status = 429 }):redeliver(5, "2m")
---bus:on { "TimeoutError", "HttpError" }:retry()
---```
---@param type mulligan.ErrorType|mulligan.ErrorType[] a type; a list is the same as the statement once for each
---@param matcher? mulligan.Matcher passes always if left out
---@return mulligan.Rule
function Scope:on(type, matcher) end

---Begins a rule for errors that were caused by one of a type: the cause, its cause, and so on, at most
---16 deep. Rules for the error's own types come first, those for `Error` last.
---```lua
---bus:on_cause("TimeoutError"):retry(3)
---bus:default():dead_letter()
---```
---@param type mulligan.ErrorType|mulligan.ErrorType[] the type of the cause
---@param matcher? mulligan.Matcher gets the cause as its error
---@return mulligan.Rule
function Scope:on_cause(type, matcher) end

---Begins the rule for all that no other rule matches. It is `on("Error")`.
---```lua
---bus:default():retry():then_redeliver()
---```
---@return mulligan.Rule
function Scope:default() end

---Makes a matcher of what surrounds the failure, as a table of fields does of the error.
---```lua
---bus:on("HttpError", policy.ctx { redeliveries = 0, message = { headers = { tenant = "acme" } } }):retry(1, 0)
---```
---@param tests mulligan.CtxTests each name with the value that is asked for
---@return mulligan.MadeMatcher
function PolicyWords.ctx(tests) end

---Makes a matcher that passes where all of the given ones do.
---```lua
---bus:on("HttpError", policy.all({ status = 503 }, policy.ctx { redeliveries = 0 })):retry(1, 0)
---```
---@param ... mulligan.Matcher one at least; looked at in the order written, no further than needed
---@return mulligan.MadeMatcher
function PolicyWords.all(...) end

---Makes a matcher that passes where one of the given ones do.
---```lua
---bus:on("HttpError", policy.any({ status = 503 }, { code = "EAGAIN" })):retry(1, 0)
---```
---@param ... mulligan.Matcher one at least; looked at in the order written, no further than needed
---@return mulligan.MadeMatcher
function PolicyWords.any(...) end

---Makes a matcher that passes where none of the given ones do.
---```lua
---bus:on("HttpError", policy.none({ status = 404 }, { status = 410 })):retry(1, 0)
---```
---@param ... mulligan.Matcher one at least; looked at in the order written, no further than needed
---@return mulligan.MadeMatcher
function PolicyWords.none(...) end

---Matches a number from one to the other, both included.
---```lua
---bus:on("HttpError", { status = policy.between(500, 599) }):retry(1, 0)
---```
---@param low number the least
---@param high number the most; not below `low`
---@return mulligan.Test
function PolicyWords.between(low, high) end

---Matches a number that is as great, or greater.
---```lua
---bus:on("HttpError", { status = policy.at_least(500) }):retry(1, 0)
---```
---@param n number the least
---@return mulligan.Test
function PolicyWords.at_least(n) end

---Matches a number that is as small, or smaller.
---```lua
---bus:on("HttpError", { retries_left = policy.at_most(0) }):retry(1, 0)
---```
---@param n number the most
---@return mulligan.Test
function PolicyWords.at_most(n) end

---Matches a string that has the text somewhere in it.
---```lua
---bus:on("HttpError", { message = policy.contains("deadlock") }):retry(1, 0)
---```
---@param text string taken as it is, no pattern
---@return mulligan.Test
function PolicyWords.contains(text) end

---Matches a string in which the pattern finds something.
---```lua
---bus:on("HttpError", { code = policy.matches("^40") }):retry(1, 0)
---```
---@param pattern string a Lua pattern; checked at load
---@return mulligan.Test
function PolicyWords.matches(pattern) end

---Matches what the value doesn't, a missing field too.
---```lua
---bus:on("HttpError", { status = policy.is_not { 404, 410 } }):retry(1, 0)
---```
---@param value mulligan.Value any value of these
---@return mulligan.Test
function PolicyWords.is_not(value) end

---Says whether a type is in the error's effective lineage.
---```lua
---bus:on("HttpError", function(err) return err.cause and err.cause:is("TimeoutError") end):retry(1, 0)
---```
---@param type mulligan.ErrorType a type
---@return boolean
function Err:is(type) end

---The handler runs again in the same process. The message stays in memory and keeps its place among
---the consumer's `concurrency`. Without arguments: 3 attempts after 200ms, 400ms and 800ms.
---```lua
---bus:on("TimeoutError"):retry(5, "1s", "linear")
---```
---@overload fun(self: mulligan.Rule, options: mulligan.RetryOptions|mulligan.RetryDelays): mulligan.Retried
---@param attempts? integer how many, 0 to 1000; 0 switches the tier off
---@param delay? mulligan.Duration the base delay
---@param backoff? mulligan.Backoff how delays grow from step to step
---@return mulligan.Retried
function Rule:retry(attempts, delay, backoff) end

---The message goes back to its transport, to be handed out again later; its place is free meanwhile.
---Without arguments: after 5m, 15m and 30m.
---```lua
---bus:on("HttpError"):redeliver(4)
---```
---@overload fun(self: mulligan.Rule, options: mulligan.RedeliverOptions|mulligan.RedeliverDelays): mulligan.Redelivered
---@param attempts? integer|"unlimited" how many, 0 to 1000; 0 switches the tier off; or `"unlimited"`
---@param delay? mulligan.Duration the base delay
---@param backoff? mulligan.Backoff how delays grow from step to step
---@return mulligan.Redelivered
function Rule:redeliver(attempts, delay, backoff) end

---A copy with the record of the failure goes to a dead-letter queue; then the message is acknowledged.
---```lua
---bus:on("ValidationError"):dead_letter("invalid-orders")
---```
---@param queue? string where the dead letter goes; the scope's `dead_letter_queue` if left out
---@return mulligan.Ended
function Rule:dead_letter(queue) end

---The message is acknowledged and gone. It is counted and logged.
---```lua
---bus:on("DuplicateMessage"):discard("already processed")
---```
---@param note? string for the log and the verdict
---@return mulligan.Ended
function Rule:discard(note) end

---Once the retries are used up, the message is redelivered; each redelivery has a fresh round of
---retries. Arguments as of `redeliver`.
---```lua
---bus:on("TimeoutError"):retry(2):then_redeliver { "30s", "5m" }
---```
---@overload fun(self: mulligan.Retried, options: mulligan.RedeliverOptions|mulligan.RedeliverDelays): mulligan.Redelivered
---@param attempts? integer|"unlimited" how many, 0 to 1000; 0 switches the tier off; or `"unlimited"`
---@param delay? mulligan.Duration the base delay
---@param backoff? mulligan.Backoff how delays grow from step to step
---@return mulligan.Redelivered
function Retried:then_redeliver(attempts, delay, backoff) end

---Names where the message goes once all is used up. It switches nothing off that stands before it.
---```lua
---bus:on("TimeoutError"):retry(1):then_dead_letter("timeouts")
---```
---@param queue? string where the dead letter goes; the scope's `dead_letter_queue` if left out
---@return mulligan.Ended
function Retried:then_dead_letter(queue) end

---Names where the message goes once all is used up. It switches nothing off that stands before it.
---```lua
---bus:on("TimeoutError"):retry(1):then_dead_letter("timeouts")
---```
---@param queue? string where the dead letter goes; the scope's `dead_letter_queue` if left out
---@return mulligan.Ended
function Redelivered:then_dead_letter(queue) end

---Drops the message once all is used up. It switches nothing off that stands before it.
---```lua
---bus:on("PriceTick"):redeliver(1, "10s"):then_discard("stale")
---```
---@param note? string for the log and the verdict
---@return mulligan.Ended
function Retried:then_discard(note) end

---Drops the message once all is used up. It switches nothing off that stands before it.
---```lua
---bus:on("PriceTick"):redeliver(1, "10s"):then_discard("stale")
---```
---@param note? string for the log and the verdict
---@return mulligan.Ended
function Redelivered:then_discard(note) end

---Where dead letters go for which the chain names no queue. Default: `"error"`.
---```lua
---bus:dead_letter_queue("parked")
---bus:on("TimeoutError"):dead_letter()
---```
---@param name string|false a queue
---@return mulligan.Ended
function Scope:dead_letter_queue(name) end

---Once the first failure is longer ago than this, nothing is redelivered any more: the chain's end
---follows. Retries go on. Default: none.
---```lua
---bus:max_age("1d")
---bus:on("TimeoutError"):redeliver()
---```
---@param age mulligan.Duration|false since the first failure
---@return mulligan.Ended
function Scope:max_age(age) end

---No handler call begins later than this after the first failure. A retry or a redelivery that would
---be due later isn't made: the chain's end follows. Due exactly then is in time. Default: none.
---```lua
---bus:deadline("24h")
---bus:on("TimeoutError"):redeliver()
---```
---@param span mulligan.Duration|false since the first failure
---@return mulligan.Ended
function Scope:deadline(span) end

---No more handler calls than this in all, over every delivery and whatever rules came into play; then
---the chain's end. Default: none.
---```lua
---bus:max_attempts(10)
---bus:on("TimeoutError"):retry(5):then_redeliver()
---```
---@param n integer|false handler calls, from 1
---@return mulligan.Ended
function Scope:max_attempts(n) end

---A copy that was handed out more often than this is dead-lettered before its handler runs, with a
---`HandlerCrashError`: its handler kills the process, perhaps. What was given back on purpose doesn't
---count where the transport can tell. Default: `20`.
---```lua
---bus:max_deliveries(3)
---bus:on("TimeoutError"):retry()
---```
---@param n integer|false hand-outs of one copy, from 1
---@return mulligan.Ended
function Scope:max_deliveries(n) end

---Errors that are dead-lettered at their first failure, before any rule; causes are never looked at.
---The declarations of all four scopes add up. `MessageDeserializationError` is one by itself, unless
---an `on` of the scope in force names it. Default: `MessageDeserializationError`.
---```lua
---bus:unrecoverable { "ValidationError", "AuthorizationError" }
---bus:default():retry()
---```
---@param type mulligan.ErrorType|mulligan.ErrorType[] a type, or a list of them
---@param matcher? mulligan.Matcher passes always if left out
---@return mulligan.Ended
function Scope:unrecoverable(type, matcher) end

---Slows down a consumer whose calls fail: it takes one message at a time and waits after each failure,
---until a success. Statements with another `per` add up; one with the same `per` replaces the earlier
---one. Default: off.
---```lua
---bus:rate_limit { after = 10, wait = "5s" }
---bus:on("TimeoutError"):retry()
---```
---@param options mulligan.RateLimit|false when it begins, and how it waits
---@return mulligan.Ended
function Scope:rate_limit(options) end

---Handler calls in a second, a minute or an hour, retries included. Statements with another `per` add
---up; one with the same `per` replaces the earlier one. Default: off.
---```lua
---bus:limit { rate = "100/s", burst = 20 }
---bus:on("TimeoutError"):retry()
---```
---@param options mulligan.CallLimit|false how many calls
---@return mulligan.Ended
function Scope:limit(options) end

---Names a header for `per`. A message without it isn't limited there.
---```lua
---bus:limit { rate = "10/s", per = policy.header("tenant") }
---bus:on("TimeoutError"):retry()
---```
---@param name string of a header of the message, exactly
---@return mulligan.Header
function PolicyWords.header(name) end

---Sees each verdict, and may answer another: `policy.retry`, `redeliver`, `dead_letter` or `discard`.
---Returning nothing keeps the verdict. No answer passes `max_attempts`, `max_age` or `deadline`, and
---of one by `max_deliveries` only a dead letter or a discard. Where it raises or answers anything
---else, the verdict stands, and the event `override_failed` says why. Default: none.
---```lua
---bus:override(function(failure, verdict, config)
---    if verdict.action == "dead_letter" and failure.message.headers.tenant == "trial" then
---        return policy.discard("trial")
---    end
---end)
---bus:default():dead_letter()
---```
---@param f mulligan.OverrideFunction|false has the last word
---@return mulligan.Ended
function Scope:override(f) end

---Called on the engine's thread after each verdict is carried out, and for every other event. It can't
---change anything; what it raises is logged and counted. Default: none.
---```lua
---bus:notify(function(event)
---    print(event.name, event.verdict and event.verdict.action)
---end)
---bus:default():retry()
---```
---@param f mulligan.NotifyFunction|false is told each event
---@return mulligan.Ended
function Scope:notify(f) end

---Retries after a delay, which has no cap but 365 days.
---```lua
---bus:override(function(failure)
---    if failure.error.type == "Busy" then return policy.retry("1s") end
---end)
---bus:default():retry()
---```
---@param delay? mulligan.Duration|integer a whole number is milliseconds; 0 if left out
---@return mulligan.Answer
function PolicyWords.retry(delay) end

---Redelivers after a delay, which has no cap but 365 days.
---```lua
---bus:override(function(failure)
---    if failure.error.type == "Busy" then return policy.redeliver("5m") end
---end)
---bus:default():retry()
---```
---@param delay mulligan.Duration|integer from now; a whole number is milliseconds
---@return mulligan.Answer
function PolicyWords.redeliver(delay) end

---Dead-letters the message. The queue that it came from is a wrong answer.
---```lua
---bus:override(function(failure)
---    if failure.error.type == "Busy" then return policy.dead_letter("busy") end
---end)
---bus:default():retry()
---```
---@param queue? string the scope's `dead_letter_queue` if left out
---@return mulligan.Answer
function PolicyWords.dead_letter(queue) end

---Drops the message.
---```lua
---bus:override(function(failure)
---    if failure.error.type == "Busy" then return policy.discard("too busy") end
---end)
---bus:default():retry()
---```
---@param note? string for the log and the verdict
---@return mulligan.Answer
function PolicyWords.discard(note) end

---Immediate retries without delay, then redeliveries after `increase` × k, without jitter: 24
---attempts by default.
---```lua
---policy.preset.nservicebus(bus, { immediate = 2, delayed = 2, increase = "30s" })
---```
---@param scope mulligan.Scope where its rules and settings are said
---@param options? mulligan.NServiceBusOptions the defaults if left out
---@return mulligan.Ended
function Presets.nservicebus(scope, options) end

---`scope:default():retry():then_redeliver()`.
---```lua
---policy.preset.mocha(bus)
---```
---@param scope mulligan.Scope where its rule is said
---@return mulligan.Ended
function Presets.mocha(scope) end

return PolicyWords
