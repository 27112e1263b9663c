---@meta mulligan

-- Made of tools/docgen by tools/docgen.lua.

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
---@field paused? boolean it begins paused, until `engine:resume` (default: false)
---@field fault_headers? "mulligan"|"nservicebus" `"nservicebus"`: its dead letters have the headers that ServiceControl reads, too (default: `"mulligan"`)
---@field types? string[] the message types that are its own, where consumers share a queue (default: all, or the rest)
---@field [string] mulligan.UnknownOption there is no such option

---What `m.worker` takes
---@class mulligan.Worker
---@field processes? integer how many are started, 1,024 at most (default: 1)
---@field [integer] string the program, and its arguments

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

---What `m.run` takes
---@class mulligan.Command
---@field [integer] string the program, then its arguments
---@field stdin? string what it reads (default: `""`)
---@field timeout? mulligan.Duration|false how long it may run, at most what the call has left (default: that)

---What `m.run` gives
---@class mulligan.Ran
---@field status integer its exit code; 128 and the signal where one ended it
---@field signal? integer that ended it
---@field stdout string at most 16 MiB
---@field stderr string the last 64 KiB

---What `m.fetch` takes
---@class (exact) mulligan.Request
---@field url string `http:` or `https:`
---@field method? string in capitals (default: `"GET"`, with a body `"POST"`)
---@field headers? table<string, string> by name
---@field body? string bytes
---@field timeout? mulligan.Duration|false how long it may take, at most what the call has left (default: that)
---@field redirects? boolean follows up to 10 (default: false)
---@field raise? boolean an answer other than 2xx raises `HttpError` (default: false)
---@field [string] mulligan.UnknownOption there is no such option

---What `m.fetch` gives
---@class mulligan.Fetched
---@field status integer such as 200
---@field headers table<string, string> by name in small letters
---@field body string at most 16 MiB

---`m.json`
---@class mulligan.Json
---@field null userdata stands for null in lists
local Json = {}

---Options of `load`
---@class (exact) mulligan.LoadOptions
---@field log? fun(level: string, text: string) gets what the policy prints
---@field event? fun(event: mulligan.ToldEvent) is told of matchers and overrides that failed, and of reloads
---@field host_policy? string the path of the host policy
---@field host_text? string its text in the place of that; `host_policy` then only names it
---@field [string] mulligan.UnknownOption there is no such option

---Those of `load`, and:
---@class (exact) mulligan.LoadTextOptions: mulligan.LoadOptions
---@field name? string of its file (default: `"policy.lua"`)
---@field [string] mulligan.UnknownOption there is no such option

---A mistake
---@class mulligan.Problem
---@field file? string relative to the policy's folder; the host policy's name
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

---Options of `check`
---@class (exact) mulligan.CheckOptions
---@field consumers? mulligan.CheckedConsumer[] that the policy is for (default: any)
---@field transports? string[] the names of all transports (default: those of the consumers)
---@field [string] mulligan.UnknownOption there is no such option

---A consumer that `check` is told of
---@class (exact) mulligan.CheckedConsumer
---@field name string what policies call it
---@field transport string the name of its transport
---@field url string that transport's
---@field queue string what it reads
---@field timeout? mulligan.Duration|false how long a call may take; `false`: any time (default: `30s`)
---@field [string] mulligan.UnknownOption there is no such option

---Options of `decide`, `explain` and `decide_json`
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
---@field consumer? string the name, where it is about a consumer: a limit, a pause, its concurrency
---@field limit? mulligan.LimitStatus the `rate_limit` that started or ended

---Options of an engine
---@class (exact) mulligan.EngineOptions
---@field policy mulligan.Policy that decides
---@field grace? mulligan.Duration how long a stop waits for handlers (default: `10s`)
---@field quiet? mulligan.Duration how long nothing happens in queues that can't be counted, until `stop_when_empty` takes them for empty (default: `10s`)
---@field log? fun(level: string, text: string) gets its lines
---@field event? fun(event: mulligan.ToldEvent) is told of verdicts that were carried out, of headers that were ignored, of a `notify` that failed, of transports that come up, and of limits and pauses of consumers
---@field stop_on_signals? boolean SIGTERM and SIGINT stop it (default: false)
---@field reload_on_sighup? boolean SIGHUP reloads the policy (default: false)
---@field reload_on_change? boolean a changed file reloads the policy (default: false)
---@field patterns? "counted"|"lua" `counted`: searches for patterns end at a handler's timeout, too (default: `"lua"`)
---@field seed? integer for the ids of messages that have none (default: from the system)
---@field clock? mulligan.Clock a test's clock (default: the real ones)
---@field [string] mulligan.UnknownOption there is no such option

---What `mulligan.engine` gives. What fails gives nil, why, and a code.
---@class mulligan.Engine
local Engine = {}

---How deep a queue is
---@class mulligan.Depth
---@field ready integer messages that could be taken now
---@field delayed integer messages that wait for their time
---@field claimed integer messages that some engine has in hand
---@field next_due_ms? integer when the next delayed one is due, in ms since 1970

---What became of messages
---@class mulligan.Counts
---@field done integer messages whose handler succeeded
---@field retried integer verdicts carried out
---@field redelivered integer verdicts carried out
---@field dead_lettered integer messages
---@field discarded integer messages
---@field notify_failed integer calls of the policy's `notify`

---What `engine:snapshot` gives. Times that end in `_ms` are milliseconds since 1970.
---@class mulligan.Snapshot
---@field time_ms integer when it was made
---@field generation string of the policy that is in force
---@field transports mulligan.TransportSnapshot[] in the order in which they were added
---@field consumers mulligan.ConsumerSnapshot[] in the order in which they were added
---@field rules mulligan.RuleSnapshot[] those by which a verdict was carried out, by file and line

---A transport in a snapshot
---@class mulligan.TransportSnapshot
---@field name string as it was added
---@field health "down"|"up"|"broken" `down` passes by itself, `broken` doesn't
---@field why? string why it isn't up, in its own words
---@field since_ms integer since when its health is so
---@field claimed integer messages that it handed out, and that aren't settled yet
---@field parked integer messages that it never settles, and keeps claimed; the log says why
---@field abandoned integer messages that can't be settled any more, since it is broken

---Its counts begin when it is added.
---@class mulligan.ConsumerSnapshot
---@field name string as it was added
---@field transport string the name of its transport
---@field queue string what it reads
---@field concurrency integer as it is now
---@field paused boolean whether it is
---@field in_flight integer handlers at work, also those that timed out
---@field waiting integer messages claimed here that wait for a call
---@field retrying integer messages that wait for a retry
---@field settling integer messages that the transport is settling
---@field taken integer messages that it was handed so far
---@field why_not? mulligan.WhyNot why it isn't called just now; nil: it is
---@field why_not_text? string what the transport says of that
---@field why_not_since_ms integer since when it is so
---@field done integer messages whose handler succeeded
---@field retried integer verdicts carried out
---@field redelivered integer verdicts carried out
---@field dead_lettered integer verdicts carried out
---@field discarded integer verdicts carried out
---@field reasons table<string, integer> dead letters and discards by their reason
---@field last_error? mulligan.LastError of the last call that failed
---@field times integer[] calls by how long they lasted: at most 1, 4, 16, 64, 256 ms, 1, 4.1, 16.4, 66 s, 4.4, 17.5 min, or longer
---@field limits mulligan.LimitStatus[] each `rate_limit` in force; of values the 100 that failed longest ago
---@field limited_values integer all values that are limited

---A limit in force
---@class mulligan.LimitStatus
---@field per? string `"key"`, `"type"` or `"header NAME"`; nil: it is for the whole consumer
---@field value? string the value of its `per`
---@field file? string where its statement is, relative to the policy's folder
---@field line integer of its statement
---@field since_ms integer since when it is in force
---@field next_ms integer the next call begins no earlier
---@field waits_for_handlers boolean handlers are at work, and until they end no call begins
---@field probes integer calls that it has let through
---@field error_type? string of the last failure that counted

---A consumer's last error
---@class mulligan.LastError
---@field type string cut at 127 bytes
---@field message string cut at 255 bytes
---@field time_ms integer when its call failed

---By its file and line, through every reload. The first 10,000 are counted.
---@class mulligan.RuleSnapshot
---@field file string relative to the policy's folder
---@field line integer of its `on` or `default`
---@field retried integer verdicts carried out
---@field redelivered integer verdicts carried out
---@field dead_lettered integer verdicts carried out
---@field discarded integer verdicts carried out

---The first that holds.
---@alias mulligan.WhyNot
---| "stopping" # the engine stops, or hasn't started, or the consumer is being removed
---| "transport_down" # its transport doesn't work now
---| "queue_refused" # its queue can't be read until a person acts
---| "queue_waiting" # its queue isn't read yet
---| "settling_fails" # a settlement failed, and is tried again
---| "paused" # by `engine:pause`, or from the beginning
---| "limited" # by a `rate_limit`, until its next probe
---| "no_worker" # no worker process is there for it
---| "ramp" # as many handlers are at work as may be after a `rate_limit`
---| "rate" # a `limit` lets the next call begin later
---| "candidate_alone" # a message that may have killed a process is called alone, or waits for that
---| "concurrency" # as many of its handlers are at work as may be
---| "nothing_there" # no message waits

---What a fault is for.
---@alias mulligan.Operation
---| "settle"
---| "note"
---| "publish"
---| "depth"
---| "hold"

---Options of a fault
---@class (exact) mulligan.FaultOptions
---@field skip? integer so many go well first (default: 0)
---@field times? integer so many fail (default: 1)
---@field code? mulligan.Code of the failure (default: `"io"`)
---@field [string] mulligan.UnknownOption there is no such option

---The third thing that a failure returns, behind nil and a message.
---@alias mulligan.Code
---| "invalid" # a name that is taken or isn't known, a URL that can't be, text that isn't UTF-8
---| "memory" # out of memory
---| "policy" # the policy can't be loaded
---| "done" # the call has ended already
---| "lost" # the claim on the message is gone
---| "io" # the transport, or a file, could not be used
---| "state" # not possible in the state that the engine is in
---| "too_big" # larger, or more, than allowed
---| "refused" # the engine would not work like this
---| "down" # the transport is down

---What no message comes beyond; what has no bound isn't there.
---@class mulligan.Bounds
---@field calls? integer of the handler, at most
---@field shortest_ms? integer from the first failure to the end, at least; nil: there is no end
---@field longest_ms? integer at most
---@field last_call_ms? integer no call begins later
---@field rough boolean they hold, but may not be the least

---What `policy:check` gives.
---@class mulligan.CheckReport
---@field generation string the content hash of the policy's files
---@field findings mulligan.Finding[] in the order of the files
---@field bounds mulligan.ScopeBounds[] of each scope
---@field refused mulligan.Refusal[] what `run` would refuse, where the consumers are known

---What `run` would refuse.
---@class mulligan.Refusal
---@field file? string relative to the policy's folder
---@field line? integer in it
---@field text string what, and what would be right

---What is wrong or suspicious.
---@class mulligan.Finding
---@field code string its page under docs/findings
---@field file? string relative to the policy's folder
---@field line? integer in it
---@field text string what, and what would be right
---@field consumer? string whom it is about

---Bounds of a scope.
---@class mulligan.ScopeBounds: mulligan.Bounds
---@field scope string `host`, `bus`, `transport:NAME` or `consumer:NAME`
---@field overridden boolean an override is in force
---@field default boolean a rule for `Error` has no matcher
---@field max_attempts? integer in force; where consumers differ, the loosest
---@field max_age_ms? integer likewise
---@field deadline_ms? integer likewise
---@field rules mulligan.RuleBounds[] as they are tried

---Bounds of a failure that one rule decides every time.
---@class mulligan.RuleBounds: mulligan.Bounds
---@field file string relative to the policy's folder
---@field line integer in it
---@field scope string where it was written
---@field type string that it is for
---@field cause boolean an `on_cause` rule
---@field matcher boolean it has one

---What `policy:explain` gives.
---@class mulligan.Explanation
---@field generation string the content hash of the policy's files
---@field failure mulligan.ExplainedFailure with defaults filled in
---@field verdict mulligan.Verdict as `decide` gives it
---@field override? mulligan.ExplainedOverride where one is in force
---@field scopes mulligan.ScopeInForce[] nearest first
---@field settings mulligan.SettingsInForce by name
---@field candidates mulligan.Candidate[] in the order in which they were looked at
---@field timeline mulligan.Timeline if every call fails with the same error

---What is explained.
---@class mulligan.ExplainedFailure
---@field type string of the error
---@field message? string of the error
---@field consumer? string its name
---@field transport? string its name
---@field attempt integer from 1
---@field redeliveries integer from 0
---@field calls integer from 1
---@field deliveries integer from 1
---@field age_ms integer since the first failure

---What was decided, as in a verdict.
---@class mulligan.Decided
---@field action mulligan.Action what is to be done
---@field queue? string of a dead letter
---@field reason? mulligan.Reason why
---@field note? string of a discard
---@field tier? mulligan.Tier of a retry or a redelivery
---@field step? integer the how-manyth of the tier
---@field of? integer of how many
---@field rule? mulligan.LookedAt the rule that decided
---@field fallback? mulligan.Fallback what the transport could not do

---What an override did.
---@class mulligan.ExplainedOverride
---@field before mulligan.DecidedBefore the verdict of the rules alone
---@field failed? string why its answer doesn't count

---A verdict before its override.
---@class mulligan.DecidedBefore: mulligan.Decided
---@field delay_ms integer whole milliseconds

---A rule, or an `unrecoverable` declaration, of which the built-in one has its type alone.
---@class mulligan.LookedAt
---@field file? string relative to the policy's folder
---@field line? integer in it
---@field scope? string where it was written
---@field type string that it is for

---What was looked at.
---@class mulligan.Candidate
---@field kind "unrecoverable"|"rule"|"cause_rule"
---@field result "passed"|"lost"|"raised"
---@field rule mulligan.LookedAt
---@field matcher? mulligan.PlainMatcher nil: it always passes
---@field test? mulligan.LostTest at which it lost
---@field why? string it raised
---@field depth? integer which cause, from 1
---@field cause? string the cause's type

---What follows, from now on.
---@class mulligan.Timeline
---@field both mulligan.Strip while the shortest and the longest delays lead to the same
---@field shortest? mulligan.Strip from where they part
---@field longest? mulligan.Strip from where they part
---@field cut boolean it goes on

---Calls that failed, in their order.
---@class mulligan.Strip
---@field first mulligan.Step[] at most 1,000
---@field left_out integer how many are not shown behind these
---@field last mulligan.Step[] at most 100, behind those

---A call that failed, and what was decided.
---@class mulligan.Step: mulligan.Decided
---@field calls integer from 1
---@field attempt integer from 1
---@field redeliveries integer from 0
---@field earliest_ms integer when, from now
---@field latest_ms integer when, from now
---@field shortest_delay_ms integer until the next call
---@field longest_delay_ms integer until the next call

---What `policy:table` gives.
---@class mulligan.InForce
---@field generation string the content hash of the policy's files
---@field consumer? string for whom
---@field transport? string for whom
---@field scopes mulligan.ScopeInForce[] nearest first
---@field others mulligan.ScopeSize[] of other consumers and transports
---@field rules mulligan.RuleInForce[] in the order in which they are tried within a type
---@field cause_rules mulligan.RuleInForce[] likewise
---@field bounds mulligan.Bounds of whatever fails, whichever of these rules decide
---@field unrecoverable mulligan.Unrecoverable[] declarations of all scopes
---@field replaced mulligan.Replaced[] rules that are no longer in force
---@field parents table<string, string> declared types: what each descends from
---@field settings mulligan.SettingsInForce by name

---A scope that is looked at.
---@class mulligan.ScopeInForce
---@field scope string `host`, `bus`, `transport:NAME` or `consumer:NAME`
---@field exists boolean it is in the policy
---@field in_force boolean its rules are
---@field rules integer how many it has, included ones too
---@field includes? mulligan.IncludedScope[] of one that exists

---A scope that another one includes.
---@class mulligan.IncludedScope
---@field scope string which
---@field file string relative to the policy's folder
---@field line integer in it

---A scope that isn't looked at.
---@class mulligan.ScopeSize
---@field scope string which
---@field rules integer how many it has

---A rule.
---@class mulligan.RuleInForce
---@field type string that it is for
---@field file string relative to the policy's folder
---@field line integer in it
---@field scope string where it was written
---@field matcher? mulligan.PlainMatcher nil: it always passes
---@field retry? mulligan.TierInForce nil: no such tier
---@field redeliver? mulligan.TierInForce nil: no such tier
---@field action "dead_letter"|"discard" at the end
---@field queue? string of the dead letter
---@field note? string of the discard
---@field bounds mulligan.Bounds of a failure that it decides every time

---Retries or redeliveries.
---@class mulligan.TierInForce
---@field attempts integer|"unlimited" how many
---@field backoff "constant"|"linear"|"exponential"|"list"
---@field factor? number of an exponential one
---@field max_delay_ms? integer no delay is longer
---@field jitter number|"full"|"decorrelated" a fraction from 0 to 1
---@field hint? string the error's field
---@field steps mulligan.TierStep[] the first 32, or six in a table of more than 1,000 rules

---A delay.
---@class mulligan.TierStep
---@field delay_ms integer before jitter and hint
---@field shortest_ms integer with them
---@field longest_ms integer with them

---A declaration; the built-in one has its type alone.
---@class mulligan.Unrecoverable
---@field type string that is never tried again
---@field file? string relative to the policy's folder
---@field line? integer in it
---@field scope? string where it was written
---@field matcher? mulligan.PlainMatcher nil: it always passes

---A rule in whose place a later one stands.
---@class mulligan.Replaced
---@field word "on"|"on_cause"
---@field type string that it was for
---@field scope string where it was written
---@field file string relative to the policy's folder
---@field line integer in it
---@field by_file string the later one's
---@field by_line integer the later one's

---Settings by name.
---@class mulligan.SettingsInForce
---@field dead_letter_queue mulligan.SettingInForce
---@field max_age_ms mulligan.SettingInForce
---@field deadline_ms mulligan.SettingInForce
---@field max_attempts mulligan.SettingInForce
---@field max_deliveries mulligan.SettingInForce
---@field rate_limit mulligan.RateLimitsInForce
---@field limit mulligan.CallLimitsInForce
---@field override mulligan.SettingInForce
---@field notify mulligan.SettingInForce

---A setting.
---@class mulligan.SettingInForce
---@field value any false: none; true: a function
---@field scope? string where it was set; nil: the default holds
---@field file? string relative to the policy's folder
---@field line? integer in it

---All `rate_limit` statements of one scope.
---@class mulligan.RateLimitsInForce: mulligan.SettingInForce
---@field value mulligan.RateLimitInForce[]|false one for each `per`

---All `limit` statements of one scope.
---@class mulligan.CallLimitsInForce: mulligan.SettingInForce
---@field value mulligan.CallLimitInForce[]|false one for each `per`

---A `rate_limit` statement, defaults filled in.
---@class mulligan.RateLimitInForce
---@field per? "key"|"type"|"header" nil: the consumer as a whole
---@field header? string the name of that header
---@field file string relative to the policy's folder
---@field line integer in it
---@field after? integer failures in a row; nil: it goes by `ratio`
---@field ratio? number the failed part of the calls in the window
---@field window_ms? integer of `ratio`
---@field least? integer of `ratio`: so many calls in the window
---@field messages integer so many different ones must be among the failures
---@field within_ms? integer the failures in a row lie no further apart
---@field only? string[] types that count
---@field except? string[] types that don't count
---@field wait_ms integer from a failed call to the next
---@field max_wait_ms integer the wait doubles up to it
---@field hint? string the error's field
---@field successes integer so many in a row end it
---@field keep boolean failures while it is limited aren't counted
---@field ramp_ms? integer until all handlers work again

---A `limit` statement, defaults filled in.
---@class mulligan.CallLimitInForce
---@field per? "key"|"type"|"header" nil: the consumer as a whole
---@field header? string the name of that header
---@field file string relative to the policy's folder
---@field line integer in it
---@field count integer calls in `unit_ms`
---@field unit_ms integer a second, a minute or an hour
---@field burst integer so many at once

---What must hold.
---@class mulligan.PlainMatcher
---@field kind "tests"|"function"|"all"|"any"|"none"
---@field tests? mulligan.PlainTest[] of `tests`
---@field number? integer of `function`: which
---@field parts? mulligan.PlainMatcher[] of the rest

---A test of one field.
---@class mulligan.PlainTest
---@field subject "error"|"ctx"|"message"|"header"
---@field name string of the field
---@field value mulligan.PlainValue that it must have

---The test at which a matcher lost.
---@class mulligan.LostTest: mulligan.PlainTest
---@field given? any what the field was

---What a field must be.
---@class mulligan.PlainValue
---@field kind "one_of"|"between"|"contains"|"matches"|"present"|"absent"|"not"
---@field literals? any[] of `one_of`
---@field low? number of `between`
---@field high? number of `between`
---@field text? string of `contains` and `matches`
---@field value? mulligan.PlainValue of `not`

---Says which policy; once, required.
---@param path string relative to service.lua
function Module.policy(path) end

---Says where queues are.
---@param name string for consumers, policies and logs
---@param url string `memory:`, `sqlite:FILE`, relative to service.lua, or `amqp://HOST/VHOST`
function Module.transport(name, url) end

---Says which handler takes which queue; at least one.
---@param name string unique
---@param options mulligan.ConsumerOptions what it reads, and how
function Module.consumer(name, options) end

---Makes a handler of a program, which gets the message on stdin and in its environment.
---[handlers.md](handlers.md) tells the rest.
---@param command string[] a program and its arguments
---@return mulligan.Handler
function Module.exec(command) end

---Makes a handler of a server, which gets the message by POST. [handlers.md](handlers.md) tells the
---rest.
---@param url string of a server
---@return mulligan.Handler
function Module.http(url) end

---Makes a handler of processes that handle one message after the other, by a protocol on their stdin.
---[workers.md](workers.md) tells the rest.
---@param command mulligan.Worker a program, its arguments, and how many of it
---@return mulligan.Handler
function Module.worker(command) end

---Says whose `string.find`, `match`, `gmatch` and `gsub` handlers have: those that end at the
---handler's timeout, which is the default, or Lua's own.
---@param whose "counted"|"lua"
function Module.patterns(whose) end

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

---Runs a program and lets other handlers work meanwhile; in the handler's own coroutine.
---@param command mulligan.Command
---@return mulligan.Ran
function Module.run(command) end

---Makes an HTTP request and lets other handlers work meanwhile; in the handler's own coroutine.
---@param request mulligan.Request
---@return mulligan.Fetched
function Module.fetch(request) end

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
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Module.load(path, options) end

---The same for a text, which has no files beside it.
---@param text string of the policy
---@param options? mulligan.LoadTextOptions
---@return mulligan.Policy?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Module.load_text(text, options) end

---Gives the verdict for a failure. An unknown key raises.
---@param failure mulligan.GivenFailure
---@param options? mulligan.DecideOptions
---@return mulligan.Verdict
function Policy:decide(failure, options) end

---Says why a failure gets its verdict and what follows; [explain.md](explain.md#json) has the keys.
---@param failure mulligan.GivenFailure
---@param options? mulligan.DecideOptions
---@return mulligan.Explanation
function Policy:explain(failure, options) end

---Gives what is in force there; [table.md](table.md#json) has the keys.
---@param options? mulligan.TableOptions
---@return mulligan.InForce
function Policy:table(options) end

---Gives findings and bounds; [check.md](check.md#json) has the keys.
---@param options? mulligan.CheckOptions
---@return mulligan.CheckReport
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
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Policy:reload(text) end

---Gives the name of the generation in force.
---@return string
function Policy:generation() end

---Says how many rules it has.
---@return integer
function Policy:rules() end

---Says how many scopes have rules.
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
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Module.engine(options) end

---Opens a transport.
---@param name string for consumers, policies and logs
---@param url string `memory:`, `sqlite:FILE` or `amqp://HOST/VHOST`
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:transport(name, url) end

---Adds a consumer, before the start or while the engine runs.
---@param name string unique
---@param options mulligan.ConsumerOptions
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:consumer(name, options) end

---Lets its handlers at work end, gives back the rest, and frees its name.
---@param name string of a consumer
---@param callback? fun(removed?: true, message?: string, code?: string) called once it is gone, or the engine is closed instead
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:remove_consumer(name, callback) end

---Begins no more calls of it, and gives back what waits.
---@param name string of a consumer
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:pause(name) end

---Takes messages for it again.
---@param name string of a consumer
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:resume(name) end

---Sets how many of its handlers may be at work.
---@param name string of a consumer
---@param concurrency integer from 1
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:concurrency(name, concurrency) end

---Says why it isn't called just now; false: it is.
---@param name string of a consumer
---@return mulligan.WhyNot|false|nil
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:why_not(name) end

---Begins to take messages. `run` starts by itself.
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:start() end

---Starts where nothing has, and returns when the engine has stopped.
---@return true?
---@return string?
---@return mulligan.Code?
---@return mulligan.Problem[]?
function Engine:run() end

---True, unless it stops or has stopped by itself.
---@return true?
---@return string?
---@return mulligan.Code?
function Engine:status() end

---Puts a message on a queue; true: it was taken.
---@param transport string its name
---@param queue string
---@param body string
---@param options? mulligan.SendOptions
---@param callback? fun(safe?: true, message?: string, code?: string) called once it is safe, or isn't
---@return true?
---@return string?
---@return mulligan.Code?
function Engine:publish(transport, queue, body, options, callback) end

---Asks how many messages are in a queue.
---@param transport string its name
---@param queue string
---@param callback fun(depth?: mulligan.Depth, message?: string, code?: string)
---@return true?
---@return string?
---@return mulligan.Code?
function Engine:depth(transport, queue, callback) end

---Says what became of messages so far.
---@return mulligan.Counts
function Engine:counts() end

---Says how its transports, consumers and rules are; nil, why and a code where there is no memory.
---@return mulligan.Snapshot
function Engine:snapshot() end

---Stops, once the handlers at work have ended, or after the grace time.
function Engine:stop() end

---Stops once its queues are empty.
---@return true
function Engine:stop_when_empty() end

---Stops without grace, and lets go of it. A variable with `<close>` does the same.
function Engine:close() end

---Says whether it has stopped.
---@return boolean
function Engine:stopped() end

---Says whether it was closed.
---@return boolean
function Engine:closed() end

---Says whether it stopped since its queues were empty; `"quiet"`: as far as a quiet time can tell.
---@return boolean|"quiet"
function Engine:emptied() end

---Calls back once, on the engine's clock.
---@param delay mulligan.Duration
---@param callback fun()
function Engine:after(delay, callback) end

---With a test's clock: runs what is due. Gives the moment of the next timer in ms, or nil.
---@return integer?
function Engine:turn() end

---For tests: lets the next operations of a transport fail.
---@param transport string its name
---@param operation mulligan.Operation
---@param options? mulligan.FaultOptions
function Engine:fault(transport, operation, options) end

return Module
