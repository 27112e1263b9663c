-- Settings of scopes.

local function setting(name, params, text, default, example, tries)
    return {
        of = "Scope",
        name = name,
        params = { params },
        returns = "Ended",
        text = text,
        default = default,
        example = example,
        tries = tries,
    }
end

local ON = 'bus:on("TimeoutError"):'

return {
    {
        title = "Settings",
        text = "Each is a statement of its own. The nearest scope that sets it counts; in one scope, the later \z
            statement. `false` switches a setting off for a nearer scope.",
        words = {
            setting("dead_letter_queue", { "name", "string|false", "a queue" },
                "Where dead letters go for which the chain names no queue.", '`"error"`',
                'bus:dead_letter_queue("parked")\n' .. ON .. "dead_letter()",
                { { 'error = { type = "TimeoutError" }', "dead_letter parked rule" } }),
            setting("max_age", { "age", "mulligan.Duration|false", "since the first failure" },
                "Once the first failure is longer ago than this, nothing is redelivered any more: the chain's end \z
                    follows. Retries go on.",
                "none", 'bus:max_age("1d")\n' .. ON .. "redeliver()",
                { { 'error = { type = "TimeoutError" }, redeliveries = 1, age_ms = 86400001', "dead_letter error \z
                    max_age" } }),
            setting("max_attempts", { "n", "integer|false", "handler calls, from 1" },
                "No more handler calls than this in all, over every delivery and whatever rules came into play; then \z
                    the chain's end.",
                "none", "bus:max_attempts(10)\n" .. ON .. "retry(5):then_redeliver()",
                { { 'error = { type = "TimeoutError" }, calls = 10', "dead_letter error max_attempts" } }),
            setting("max_deliveries", { "n", "integer|false", "hand-outs of one copy, from 1" },
                "A copy that was handed out more often than this is dead-lettered before its handler runs, with a \z
                    `HandlerCrashError`: its handler kills the process, perhaps. What was given back on purpose \z
                    doesn't count where the transport can tell.",
                "`20`", "bus:max_deliveries(3)\n" .. ON .. "retry()",
                { { 'error = { type = "HandlerCrashError" }, deliveries = 4', "dead_letter error max_deliveries" } }),
            {
                of = "Scope",
                name = "unrecoverable",
                params = {
                    { "type", "mulligan.ErrorType|mulligan.ErrorType[]", "a type, or a list of them" },
                    { "matcher?", "mulligan.Matcher", "passes always if left out" },
                },
                returns = "Ended",
                text = "Errors that are dead-lettered at their first failure, before any rule; causes are never \z
                    looked at. The declarations of all four scopes add up. `MessageDeserializationError` is one by \z
                    itself, unless an `on` of the scope in force names it.",
                default = "`MessageDeserializationError`",
                example = 'bus:unrecoverable { "ValidationError", "AuthorizationError" }\nbus:default():retry()',
                tries = { { 'error = { type = "ValidationError" }', "dead_letter error unrecoverable" } },
            },
            setting("rate_limit", { "options", "mulligan.RateLimit|false", "when it begins, and how it waits" },
                "After so many failed attempts in a row, the consumer takes one message at a time, and waits after \z
                    each failure; one success ends it. In this version it is checked and shown, and `run` refuses a \z
                    policy that sets it.",
                "off", 'bus:rate_limit { after = 10, wait = "5s" }\n' .. ON .. "retry()",
                { { 'error = { type = "TimeoutError" }', "retry 200" } }),
            {
                class = "RateLimit",
                exact = true,
                heading = "Options of `rate_limit`",
                fields = {
                    { "after", "integer", "failed attempts in a row, from 1" },
                    { "wait?", "mulligan.Duration", "after each failure", default = "`1s`" },
                },
            },
            setting("override", { "f", "mulligan.OverrideFunction|false", "has the last word" },
                "Sees each verdict, and may answer another: `policy.retry`, `redeliver`, `dead_letter` or `discard`. \z
                    Returning nothing keeps the verdict. No answer passes `max_age` or `max_attempts`, and of one by \z
                    `max_deliveries` only a dead letter or a discard. Where it raises or answers anything else, the \z
                    verdict stands, and the event `override_failed` says why.",
                "none", [[
bus:override(function(failure, verdict, config)
    if verdict.action == "dead_letter" and failure.message.headers.tenant == "trial" then
        return policy.discard("trial")
    end
end)
bus:default():dead_letter()]],
                {
                    { 'error = { type = "TimeoutError" }, message = { headers = { tenant = "trial" } }', "discard \z
                        override (trial)" },
                    { 'error = { type = "TimeoutError" }', "dead_letter error rule" },
                }),
            setting("notify", { "f", "mulligan.NotifyFunction|false", "is told each event" },
                "Called on the engine's thread after each verdict is carried out, and for every other event. It \z
                    can't change anything; what it raises is logged and counted.",
                "none", [[
bus:notify(function(event)
    print(event.name, event.verdict and event.verdict.action)
end)
bus:default():retry()]],
                { { 'error = { type = "TimeoutError" }', "retry 200" } }),
            { alias = "OverrideFunction",
                type = "fun(failure: mulligan.Failure, verdict: mulligan.Verdict, config: mulligan.Config): \z
                    mulligan.Answer?",
                text = "What `override` takes." },
            { alias = "NotifyFunction", type = "fun(event: mulligan.Event)", text = "What `notify` takes." },
        },
    },
}
