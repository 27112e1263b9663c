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
            { "file?", "string", "relative to the policy's folder" },
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
                that were ignored, of a `notify` that failed, and of transports that come up" },
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
        { "url", "string", "`memory:` or `sqlite:FILE`" },
    }, "Opens a transport.", set_up),
    engine("consumer", { { "name", "string", "unique" }, { "options", "mulligan.ConsumerOptions", "" } },
        "Adds a consumer, before the engine starts.", set_up),
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
    { alias = "Operation", choices = { { "settle" }, { "publish" }, { "depth" }, { "hold" } }, text = "What a fault \z
        is for." },
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
