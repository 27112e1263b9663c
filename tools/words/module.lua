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

local problems = { returns = { "mulligan.Policy?", "string?", "string?", "mulligan.Problem[]?" } }
local done = { returns = { "true?", "string?", "string?" } }

local name = { "name", "string", "" }
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
        "Says why a failure gets its verdict and what follows; keys as of `mulligan explain --format json`.",
            { returns = "table" }),
    policy("table", { { "options?", "mulligan.TableOptions", "" } },
        "Gives what is in force there; keys as of `mulligan table --format json`.", { returns = "table" }),
    policy("check", { { "options?", "table", "`consumers` and `transports` that it is for" } },
        "Gives findings and bounds; keys as of `mulligan check --format json`.", { returns = "table" }),
    policy("decide_json", { { "text", "string", "a failure in JSON" }, decide_options },
        "As `decide`, from JSON to JSON; raises where the text is no failure.", { returns = "string" }),
    policy("reload", { { "text?", "string", "the new text, of a policy that was loaded from one" } },
        'Loads the files anew: true, or `"unchanged"`; else as `load`, and what was in force stays.',
        { returns = { 'true|"unchanged"|nil', "string?", "string?", "mulligan.Problem[]?" } }),
    policy("generation", nil, "Gives the name of the generation in force.", { returns = "string" }),
    policy("rules", nil, "Says how many rules it has.", { returns = "integer" }),
    policy("scopes", nil, "Says how many scopes it has.", { returns = "integer" }),
    policy("close", nil, "Lets go of it. Raises while an engine uses it. A variable with `<close>` does the same."),
    policy("closed", nil, "Says whether it was closed.", { returns = "boolean" }),
    {
        class = "TableOptions",
        exact = true,
        heading = "Options of `table`",
        fields = { { "consumer?", "string", "for which consumer" }, { "transport?", "string", "for which transport" } },
    },
    {
        class = "DecideOptions",
        exact = true,
        heading = "Options of `decide` and `explain`",
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

local running = {
    module("engine", { { "options", "mulligan.EngineOptions", "" } }, "Makes an engine, which belongs to this thread.",
        { returns = { "mulligan.Engine?", "string?", "string?" } }),
    {
        class = "EngineOptions",
        exact = true,
        heading = "Options of an engine",
        fields = {
            { "policy", "mulligan.Policy", "that decides" },
            { "grace?", "mulligan.Duration", "how long a stop waits for handlers" },
            { "log?", "fun(level: string, text: string)", "gets its lines" },
            { "event?", "fun(event: mulligan.ToldEvent)", "is told of each message's verdict" },
            { "stop_on_signals?", "boolean", "SIGTERM and SIGINT stop it", default = "false" },
            { "reload_on_sighup?", "boolean", "SIGHUP reloads the policy", default = "false" },
            { "reload_on_change?", "boolean", "a changed file reloads the policy", default = "false" },
            { "seed?", "integer", "changes every jitter", default = "0" },
            { "clock?", "mulligan.Clock", "a test's clock" },
        },
    },
    { class = "Engine", before = "engine:", heading = "An engine", text = "What `mulligan.engine` gives. What fails \z
        gives nil, why, and a code." },
    engine("transport", { name, { "url", "string", "" } }, "Opens a transport.", done),
    engine("consumer", { name, { "options", "mulligan.ConsumerOptions", "" } }, "Adds a consumer.", done),
    engine("start", nil, "Begins to take messages.", done),
    engine("run", nil, "Starts, and returns when the engine has stopped.",
        { returns = { "true?", "string?", "string?", "mulligan.Problem[]?" } }),
    engine("status", nil, "True, unless it stops or has stopped by itself.", done),
    engine("publish", {
        { "transport", "string", "its name" },
        { "queue", "string", "" },
        { "body", "string", "" },
        { "options?", "mulligan.SendOptions", "" },
        { "callback?", "fun(safe?: true, message?: string, code?: string)", "once it is safe" },
    }, "Puts a message on a queue.", done),
    engine("depth", {
        { "transport", "string", "its name" },
        { "queue", "string", "" },
        { "callback", "fun(depth?: mulligan.Depth, message?: string, code?: string)", "" },
    }, "Asks how many messages are in a queue.", done),
    engine("counts", nil, "Says what became of messages so far.", { returns = "mulligan.Counts" }),
    engine("stop", nil, "Stops, once the handlers at work have ended, or after the grace time."),
    engine("stop_when_empty", nil, "Stops once its queues are empty."),
    engine("close", nil, "Stops without grace, and lets go of it. A variable with `<close>` does the same."),
    engine("stopped", nil, "Says whether it has stopped.", { returns = "boolean" }),
    engine("closed", nil, "Says whether it was closed.", { returns = "boolean" }),
    engine("emptied", nil, "Says whether it stopped since its queues were empty.", { returns = "boolean" }),
    engine("after", { { "delay", "mulligan.Duration", "" }, { "callback", "fun()", "" } }, "Calls back once, on the \z
        engine's clock.",
        done),
    engine("turn", nil, "With a test's clock: runs what is due. Gives the moment of the next timer in ms, or nil.",
        { returns = "integer?" }),
    engine("fault", {
        { "transport", "string", "its name" },
        { "operation", "mulligan.Operation", "" },
        { "options?", "mulligan.FaultOptions", "" },
    }, "For tests: lets the next operations of a transport fail.", done),
    {
        class = "Depth",
        heading = "How deep a queue is",
        fields = {
            { "ready", "integer", "messages" },
            { "delayed", "integer", "messages" },
            { "claimed", "integer", "messages" },
            { "next_due_ms?", "integer", "until the next delayed one is due" },
        },
    },
    {
        class = "Counts",
        heading = "What became of messages",
        fields = {
            { "done", "integer", "messages" },
            { "retried", "integer", "verdicts" },
            { "redelivered", "integer", "verdicts" },
            { "dead_lettered", "integer", "messages" },
            { "discarded", "integer", "messages" },
            { "notify_failed", "integer", "calls" },
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
            { "code?", "string", "of the failure", default = '`"io"`' },
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
}
