-- require "mulligan" in a plain Lua, and mulligan.testing.

local function words_of(of)
    return function(name, params, text, more)
        local it = { of = of, before = of == "Module" and "mulligan." or nil, name = name, params = params,
            text = text }
        for key, value in pairs(more or {}) do
            it[key] = value
        end
        return it
    end
end

local module, policy, engine = words_of "Module", words_of "Policy", words_of "Engine"

local problems = { returns = { "mulligan.Policy?", "string?", "mulligan.Code?", "mulligan.Problem[]?" } }
local done = { returns = { "true?", "string?", "mulligan.Code?" } }
local set_up = { returns = { "true?", "string?", "mulligan.Code?", "mulligan.Problem[]?" } }

local failure = { "failure", "mulligan.GivenFailure", "" }
local decide_options = { "options?", "mulligan.DecideOptions", "" }

local deciding = {
    module("load", { { "path", "string", "of the policy" }, { "options?", "mulligan.LoadOptions", "" } },
        "Loads a policy; else nil, what is wrong, a code, and the list of mistakes.", problems),
    module("load_text", { { "text", "string", "of the policy" }, { "options?", "mulligan.LoadTextOptions", "" } },
        "The same for a text, which has no files beside it.", problems),
    {
        class = "LoadOptions",
        exact = true,
        heading = "Options of `load`",
        fields = {
            { "log?", "fun(level: string, text: string)", "gets what the policy prints" },
            { "event?", "fun(event: mulligan.ToldEvent)", "is told of matchers and overrides that failed, and of \z
                reloads" },
            { "host_policy?", "string", "the path of the host policy" },
            { "host_text?", "string", "its text in the place of that; `host_policy` then only names it" },
        },
    },
    {
        class = "LoadTextOptions",
        parent = "LoadOptions",
        exact = true,
        heading = "Options of `load_text`",
        text = "Those of `load`, and:",
        fields = { { "name?", "string", "of its file", default = '`"policy.lua"`' } },
    },
    {
        class = "Problem",
        heading = "A mistake",
        fields = {
            { "file?", "string", "relative to the policy's folder; the host policy's name" },
            { "line?", "integer", "where it is known" },
            { "text", "string", "what is wrong, and what would be right" },
        },
    },
    { class = "Policy", before = "policy:", heading = "A loaded policy", text = "What `mulligan.load` gives." },
    policy("decide", { failure, decide_options }, "Gives the verdict for a failure. An unknown key raises.",
        { returns = "mulligan.Verdict" }),
    policy("explain", { failure, decide_options },
        "Says why a failure gets its verdict and what follows; [explain.md](explain.md#json) has the keys.",
        { returns = "mulligan.Explanation" }),
    policy("table", { { "options?", "mulligan.TableOptions", "" } },
        "Gives what is in force there; [table.md](table.md#json) has the keys.", { returns = "mulligan.InForce" }),
    policy("check", { { "options?", "mulligan.CheckOptions", "" } },
        "Gives findings and bounds; [check.md](check.md#json) has the keys.", { returns = "mulligan.CheckReport" }),
    policy("decide_json", { { "text", "string", "a failure in JSON" }, decide_options },
        "As `decide`, from JSON to JSON; raises where the text is no failure.", { returns = "string" }),
    policy("reload", { { "text?", "string", "the new text, of a policy that was loaded from one" } },
        'Loads the files anew: true, or `"unchanged"`; else as `load`, and what was in force stays.',
        { returns = { 'true|"unchanged"|nil', "string?", "mulligan.Code?", "mulligan.Problem[]?" } }),
    policy("generation", nil, "Gives the name of the generation in force.", { returns = "string" }),
    policy("rules", nil, "Says how many rules it has.", { returns = "integer" }),
    policy("scopes", nil, "Says how many scopes have rules.", { returns = "integer" }),
    policy("close", nil, "Lets go of it. Raises while an engine uses it. A variable with `<close>` does the same."),
    policy("closed", nil, "Says whether it was closed.", { returns = "boolean" }),
    {
        class = "TableOptions",
        exact = true,
        heading = "Options of `table`",
        fields = { { "consumer?", "string", "for which consumer" }, { "transport?", "string", "for which transport" } },
    },
    {
        class = "CheckOptions",
        exact = true,
        heading = "Options of `check`",
        fields = {
            { "consumers?", "mulligan.CheckedConsumer[]", "that the policy is for", default = "any" },
            { "transports?", "string[]", "the names of all transports", default = "those of the consumers" },
        },
    },
    {
        class = "CheckedConsumer",
        exact = true,
        heading = "A consumer that `check` is told of",
        fields = {
            { "name", "string", "what policies call it" },
            { "transport", "string", "the name of its transport" },
            { "url", "string", "that transport's" },
            { "queue", "string", "what it reads" },
            { "timeout?", "mulligan.Duration|false", "how long a call may take; `false`: any time", default = "`30s`" },
        },
    },
    {
        class = "DecideOptions",
        exact = true,
        heading = "Options of `decide`, `explain` and `decide_json`",
        fields = {
            { "seed?", "integer", "changes every jitter", default = "0" },
            { "no_jitter?", "boolean", "as if every jitter were 0", default = "false" },
        },
    },
    {
        class = "GivenFailure",
        exact = true,
        heading = "A failure, as it is given",
        fields = {
            { "error", "mulligan.Raised", "the only key that is required" },
            { "consumer?", "string", "its name", default = "none" },
            { "transport?", "string", "its name", default = "none" },
            { "attempt?", "integer", "from 1", default = "1" },
            { "redeliveries?", "integer", "from 0", default = "0" },
            { "calls?", "integer", "from 1", default = "attempt + redeliveries" },
            { "deliveries?", "integer", "from 1", default = "1" },
            { "age_ms?", "integer", "milliseconds since the first failure", default = "0" },
            { "message?", "mulligan.GivenMessage", "the message that it is about", default = "none" },
            { "can?", "mulligan.Can", "what the transport can do", default = "everything" },
        },
    },
    {
        class = "GivenMessage",
        exact = true,
        heading = "Its message",
        fields = {
            { "id?", "string", "jitter is drawn from it" },
            { "type?", "string", "of the message" },
            { "key?", "string", "of the message" },
            { "size?", "integer", "of its body, in bytes" },
            { "headers?", "table<string, string>", "by name" },
        },
    },
    {
        class = "Can",
        exact = true,
        heading = "What the transport can do",
        fields = {
            { "retry?", "boolean", "hold a message while its handler runs again", default = "true" },
            { "delay?", "boolean", "deliver later", default = "true" },
        },
    },
    {
        class = "ToldEvent",
        heading = "An event, as the program is told",
        text = "The same as a policy's `notify` gets, but plain tables.",
        fields = {
            { "name", "mulligan.EventName", "what happened" },
            { "failure?", "mulligan.GivenFailure", "where it is about a message" },
            { "verdict?", "mulligan.Verdict", "where there is one" },
            { "rule?", "mulligan.RulePlace", "the rule whose matcher failed" },
            { "text?", "string", "why, what, or which" },
            { "generation?", "string", "what is in force" },
            { "consumer?", "string", "the name, where it is about a consumer: a limit, a pause, its concurrency" },
            { "limit?", "mulligan.LimitStatus", "the `rate_limit` that started or ended" },
        },
    },
}

local codes = {
    alias = "Code",
    heading = "Codes",
    text = "The third thing that a failure returns, behind nil and a message.",
    choices = {
        { "invalid", "a name that is taken or isn't known, a URL that can't be, text that isn't UTF-8" },
        { "memory", "out of memory" },
        { "policy", "the policy can't be loaded" },
        { "done", "the call has ended already" },
        { "lost", "the claim on the message is gone" },
        { "io", "the transport, or a file, could not be used" },
        { "state", "not possible in the state that the engine is in" },
        { "too_big", "larger, or more, than allowed" },
        { "refused", "the engine would not work like this" },
        { "down", "the transport is down" },
    },
}

local running = {
    module("engine", { { "options", "mulligan.EngineOptions", "" } }, "Makes an engine, which belongs to this thread.",
        { returns = { "mulligan.Engine?", "string?", "mulligan.Code?", "mulligan.Problem[]?" } }),
    {
        class = "EngineOptions",
        exact = true,
        heading = "Options of an engine",
        fields = {
            { "policy", "mulligan.Policy", "that decides" },
            { "grace?", "mulligan.Duration", "how long a stop waits for handlers", default = "`10s`" },
            { "quiet?", "mulligan.Duration", "how long nothing happens in queues that can't be counted, until \z
                `stop_when_empty` takes them for empty", default = "`10s`" },
            { "log?", "fun(level: string, text: string)", "gets its lines" },
            { "event?", "fun(event: mulligan.ToldEvent)", "is told of verdicts that were carried out, of headers \z
                that were ignored, of a `notify` that failed, of transports that come up, and of limits and pauses of \z
                consumers" },
            { "stop_on_signals?", "boolean", "SIGTERM and SIGINT stop it", default = "false" },
            { "reload_on_sighup?", "boolean", "SIGHUP reloads the policy", default = "false" },
            { "reload_on_change?", "boolean", "a changed file reloads the policy", default = "false" },
            { "patterns?", '"counted"|"lua"', "`counted`: searches for patterns end at a handler's timeout, too",
                default = '`"lua"`' },
            { "seed?", "integer", "for the ids of messages that have none", default = "from the system" },
            { "clock?", "mulligan.Clock", "a test's clock", default = "the real ones" },
        },
    },
    { class = "Engine", before = "engine:", heading = "An engine", text = "What `mulligan.engine` gives. What fails \z
        gives nil, why, and a code." },
    engine("transport", {
        { "name", "string", "for consumers, policies and logs" },
        { "url", "string", "`memory:`, `sqlite:FILE` or `amqp://HOST/VHOST`" },
    }, "Opens a transport.", set_up),
    engine("consumer", { { "name", "string", "unique" }, { "options", "mulligan.ConsumerOptions", "" } },
        "Adds a consumer, before the start or while the engine runs.", set_up),
    engine("remove_consumer", {
        { "name", "string", "of a consumer" },
        { "callback?", "fun(removed?: true, message?: string, code?: string)", "called once it is gone, or the engine \z
            is closed instead" },
    }, "Lets its handlers at work end, gives back the rest, and frees its name.", set_up),
    engine("pause", { { "name", "string", "of a consumer" } }, "Begins no more calls of it, and gives back what waits.",
        set_up),
    engine("resume", { { "name", "string", "of a consumer" } }, "Takes messages for it again.", set_up),
    engine("concurrency", { { "name", "string", "of a consumer" }, { "concurrency", "integer", "from 1" } },
        "Sets how many of its handlers may be at work.", set_up),
    engine("why_not", { { "name", "string", "of a consumer" } }, "Says why it isn't called just now; false: it is.",
        { returns = { "mulligan.WhyNot|false|nil", "string?", "mulligan.Code?", "mulligan.Problem[]?" } }),
    engine("start", nil, "Begins to take messages. `run` starts by itself.", set_up),
    engine("run", nil, "Starts where nothing has, and returns when the engine has stopped.", set_up),
    engine("status", nil, "True, unless it stops or has stopped by itself.", done),
    engine("publish", {
        { "transport", "string", "its name" },
        { "queue", "string", "" },
        { "body", "string", "" },
        { "options?", "mulligan.SendOptions", "" },
        { "callback?", "fun(safe?: true, message?: string, code?: string)", "called once it is safe, or isn't" },
    }, "Puts a message on a queue; true: it was taken.", done),
    engine("depth", {
        { "transport", "string", "its name" },
        { "queue", "string", "" },
        { "callback", "fun(depth?: mulligan.Depth, message?: string, code?: string)", "" },
    }, "Asks how many messages are in a queue.", done),
    engine("counts", nil, "Says what became of messages so far.", { returns = "mulligan.Counts" }),
    engine("snapshot", nil, "Says how its transports, consumers and rules are; nil, why and a code where there is no \z
        memory.", { returns = "mulligan.Snapshot" }),
    engine("stop", nil, "Stops, once the handlers at work have ended, or after the grace time."),
    engine("stop_when_empty", nil, "Stops once its queues are empty.", { returns = "true" }),
    engine("close", nil, "Stops without grace, and lets go of it. A variable with `<close>` does the same."),
    engine("stopped", nil, "Says whether it has stopped.", { returns = "boolean" }),
    engine("closed", nil, "Says whether it was closed.", { returns = "boolean" }),
    engine("emptied", nil, "Says whether it stopped since its queues were empty; `\"quiet\"`: as far as a quiet time \z
        can tell.", { returns = 'boolean|"quiet"' }),
    engine("after", { { "delay", "mulligan.Duration", "" }, { "callback", "fun()", "" } }, "Calls back once, on the \z
        engine's clock."),
    engine("turn", nil, "With a test's clock: runs what is due. Gives the moment of the next timer in ms, or nil.",
        { returns = "integer?" }),
    engine("fault", {
        { "transport", "string", "its name" },
        { "operation", "mulligan.Operation", "" },
        { "options?", "mulligan.FaultOptions", "" },
    }, "For tests: lets the next operations of a transport fail."),
    {
        class = "Depth",
        heading = "How deep a queue is",
        fields = {
            { "ready", "integer", "messages that could be taken now" },
            { "delayed", "integer", "messages that wait for their time" },
            { "claimed", "integer", "messages that some engine has in hand" },
            { "next_due_ms?", "integer", "when the next delayed one is due, in ms since 1970" },
        },
    },
    {
        class = "Counts",
        heading = "What became of messages",
        fields = {
            { "done", "integer", "messages whose handler succeeded" },
            { "retried", "integer", "verdicts carried out" },
            { "redelivered", "integer", "verdicts carried out" },
            { "dead_lettered", "integer", "messages" },
            { "discarded", "integer", "messages" },
            { "notify_failed", "integer", "calls of the policy's `notify`" },
        },
    },
    {
        class = "Snapshot",
        heading = "A snapshot",
        text = "What `engine:snapshot` gives. Times that end in `_ms` are milliseconds since 1970.",
        fields = {
            { "time_ms", "integer", "when it was made" },
            { "generation", "string", "of the policy that is in force" },
            { "transports", "mulligan.TransportSnapshot[]", "in the order in which they were added" },
            { "consumers", "mulligan.ConsumerSnapshot[]", "in the order in which they were added" },
            { "rules", "mulligan.RuleSnapshot[]", "those by which a verdict was carried out, by file and line" },
        },
    },
    {
        class = "TransportSnapshot",
        heading = "A transport in a snapshot",
        fields = {
            { "name", "string", "as it was added" },
            { "health", '"down"|"up"|"broken"', "`down` passes by itself, `broken` doesn't" },
            { "why?", "string", "why it isn't up, in its own words" },
            { "since_ms", "integer", "since when its health is so" },
            { "claimed", "integer", "messages that it handed out, and that aren't settled yet" },
            { "parked", "integer", "messages that it never settles, and keeps claimed; the log says why" },
            { "abandoned", "integer", "messages that can't be settled any more, since it is broken" },
        },
    },
    {
        class = "ConsumerSnapshot",
        heading = "A consumer in a snapshot",
        text = "Its counts begin when it is added.",
        fields = {
            { "name", "string", "as it was added" },
            { "transport", "string", "the name of its transport" },
            { "queue", "string", "what it reads" },
            { "concurrency", "integer", "as it is now" },
            { "paused", "boolean", "whether it is" },
            { "in_flight", "integer", "handlers at work, also those that timed out" },
            { "waiting", "integer", "messages claimed here that wait for a call" },
            { "retrying", "integer", "messages that wait for a retry" },
            { "settling", "integer", "messages that the transport is settling" },
            { "taken", "integer", "messages that it was handed so far" },
            { "why_not?", "mulligan.WhyNot", "why it isn't called just now; nil: it is" },
            { "why_not_text?", "string", "what the transport says of that" },
            { "why_not_since_ms", "integer", "since when it is so" },
            { "done", "integer", "messages whose handler succeeded" },
            { "retried", "integer", "verdicts carried out" },
            { "redelivered", "integer", "verdicts carried out" },
            { "dead_lettered", "integer", "verdicts carried out" },
            { "discarded", "integer", "verdicts carried out" },
            { "reasons", "table<string, integer>", "dead letters and discards by their reason" },
            { "last_error?", "mulligan.LastError", "of the last call that failed" },
            { "times", "integer[]", "calls by how long they lasted: at most 1, 4, 16, 64, 256 ms, 1, 4.1, 16.4, 66 s, \z
                4.4, 17.5 min, or longer" },
            { "limits", "mulligan.LimitStatus[]", "each `rate_limit` in force; of values the 100 that failed longest \z
                ago" },
            { "limited_values", "integer", "all values that are limited" },
        },
    },
    {
        class = "LimitStatus",
        heading = "A limit in force",
        fields = {
            { "per?", "string", '`"key"`, `"type"` or `"header NAME"`; nil: it is for the whole consumer' },
            { "value?", "string", "the value of its `per`" },
            { "file?", "string", "where its statement is, relative to the policy's folder" },
            { "line", "integer", "of its statement" },
            { "since_ms", "integer", "since when it is in force" },
            { "next_ms", "integer", "the next call begins no earlier" },
            { "waits_for_handlers", "boolean", "handlers are at work, and until they end no call begins" },
            { "probes", "integer", "calls that it has let through" },
            { "error_type?", "string", "of the last failure that counted" },
        },
    },
    {
        class = "LastError",
        heading = "A consumer's last error",
        fields = {
            { "type", "string", "cut at 127 bytes" },
            { "message", "string", "cut at 255 bytes" },
            { "time_ms", "integer", "when its call failed" },
        },
    },
    {
        class = "RuleSnapshot",
        heading = "A rule in a snapshot",
        text = "By its file and line, through every reload. The first 10,000 are counted.",
        fields = {
            { "file", "string", "relative to the policy's folder" },
            { "line", "integer", "of its `on` or `default`" },
            { "retried", "integer", "verdicts carried out" },
            { "redelivered", "integer", "verdicts carried out" },
            { "dead_lettered", "integer", "verdicts carried out" },
            { "discarded", "integer", "verdicts carried out" },
        },
    },
    {
        alias = "WhyNot",
        heading = "Why a consumer isn't called",
        text = "The first that holds.",
        choices = {
            { "stopping", "the engine stops, or hasn't started, or the consumer is being removed" },
            { "transport_down", "its transport doesn't work now" },
            { "queue_refused", "its queue can't be read until a person acts" },
            { "queue_waiting", "its queue isn't read yet" },
            { "settling_fails", "a settlement failed, and is tried again" },
            { "paused", "by `engine:pause`, or from the beginning" },
            { "limited", "by a `rate_limit`, until its next probe" },
            { "no_worker", "no worker process is there for it" },
            { "ramp", "as many handlers are at work as may be after a `rate_limit`" },
            { "rate", "a `limit` lets the next call begin later" },
            { "candidate_alone", "a message that may have killed a process is called alone, or waits for that" },
            { "concurrency", "as many of its handlers are at work as may be" },
            { "nothing_there", "no message waits" },
        },
    },
    { alias = "Operation", choices = { { "settle" }, { "note" }, { "publish" }, { "depth" }, { "hold" } },
        text = "What a fault is for." },
    {
        class = "FaultOptions",
        exact = true,
        heading = "Options of a fault",
        fields = {
            { "skip?", "integer", "so many go well first", default = "0" },
            { "times?", "integer", "so many fail", default = "1" },
            { "code?", "mulligan.Code", "of the failure", default = '`"io"`' },
        },
    },
}

return {
    {
        title = "The Lua module",
        text = "`require \"mulligan\"` in a plain Lua 5.4. [lua-module.md](lua-module.md) tells the rest.",
        program = [[
local mulligan = require "mulligan"

local policy = assert(mulligan.load_text [=[
local policy = require "mulligan.policy"
policy.bus():on("TimeoutError"):retry(3, "1s")
]=])
local verdict = policy:decide({ error = { type = "TimeoutError" } }, { no_jitter = true })
assert(verdict.action == "retry" and verdict.delay_ms == 1000)
policy:close()]],
        words = deciding,
    },
    { title = "Running an engine", words = running },
    { title = "What a failure returns", words = { codes } },
    {
        title = "What looking at a policy gives",
        text = "`policy:table`, `policy:explain` and `policy:check` give tables, whose keys are in \z
            [table.md](table.md#json), [explain.md](explain.md#json) and [check.md](check.md#json). Editors know them.",
        words = dofile "tools/docgen/looks.lua",
    },
}
