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
            setting("deadline", { "span", "mulligan.Duration|false", "since the first failure" },
                "No handler call begins later than this after the first failure. A retry or a redelivery that would \z
                    be due later isn't made: the chain's end follows. Due exactly then is in time.",
                "none", 'bus:deadline("24h")\n' .. ON .. "redeliver()",
                {
                    { 'error = { type = "TimeoutError" }', "redeliver 300000" },
                    { 'error = { type = "TimeoutError" }, redeliveries = 2, age_ms = 86000000', "dead_letter error \z
                        deadline" },
                }),
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
                "Slows down a consumer whose calls fail: it takes one message at a time and waits after each failure, \z
                    until a success. Statements with another `per` add up; one with the same `per` replaces the \z
                    earlier one.",
                "off", 'bus:rate_limit { after = 10, wait = "5s" }\n' .. ON .. "retry()",
                { { 'error = { type = "TimeoutError" }', "retry 200" } }),
            {
                class = "RateLimit",
                exact = true,
                heading = "Options of `rate_limit`",
                text = "One of `after` and `ratio` is needed.",
                fields = {
                    { "after?", "integer", "it begins at so many failures in a row" },
                    { "ratio?", "number", "it begins when so large a part of the calls in `window` failed; above 0, \z
                        at most 1" },
                    { "window?", "mulligan.Duration", "of `ratio`: how far it looks back", default = '`"30s"`' },
                    { "least?", "integer", "of `ratio`: with fewer calls in the window it doesn't begin",
                        default = "`20`" },
                    { "messages?", "integer", "so many different messages must be among these failures; at most \z
                        `after` or `least`, and 1000", default = "`1`" },
                    { "within?", "mulligan.Duration", "of `after`: the failures must lie no further apart in all",
                        default = "however far" },
                    { "only?", "mulligan.ErrorType|mulligan.ErrorType[]", "errors that count, descendants included",
                        default = "all" },
                    { "except?", "mulligan.ErrorType|mulligan.ErrorType[]", "errors that don't count, descendants \z
                        included; beside `only`: of those", default = "none" },
                    { "wait?", "mulligan.Duration", "from the end of a failed call to the next call",
                        default = '`"1s"`' },
                    { "max_wait?", "mulligan.Duration", "the wait doubles with each failure up to this",
                        default = "`wait`" },
                    { "hint?", "string", "a field of the error, in seconds: the wait is the longer of both",
                        default = "none" },
                    { "successes?", "integer", "so many in a row end it", default = "`1`" },
                    { "keep?", "boolean", "failures while it is limited aren't counted against the message",
                        default = "`false`" },
                    { "ramp?", "mulligan.Duration", "how long it takes after the end until all handlers work again",
                        default = "at once" },
                    { "per?", "mulligan.Per", "a count and a limit for each value of this", default = "one for all" },
                },
            },
            setting("limit", { "options", "mulligan.CallLimit|false", "how many calls" },
                "Handler calls in a second, a minute or an hour, retries included. Statements with another `per` add \z
                    up; one with the same `per` replaces the earlier one.",
                "off", 'bus:limit { rate = "100/s", burst = 20 }\n' .. ON .. "retry()",
                { { 'error = { type = "TimeoutError" }', "retry 200" } }),
            {
                class = "CallLimit",
                exact = true,
                heading = "Options of `limit`",
                fields = {
                    { "rate", "string", 'calls in a second, a minute or an hour: `"100/s"`, `"100/m"`, `"100/h"`' },
                    { "burst?", "integer", "so many calls may come at once", default = "`1`" },
                    { "per?", "mulligan.Per", "a rate for each value of this", default = "one for all" },
                },
            },
            { alias = "Per", type = '"key"|"type"|mulligan.Header',
                text = "What a limit counts for: the message's key, its type, or a header of it." },
            { class = "Header", text = "What `policy.header` gives." },
            {
                of = "PolicyWords",
                name = "header",
                params = { { "name", "string", "of a header of the message, exactly" } },
                returns = "Header",
                text = "Names a header for `per`. A message without it isn't limited there.",
                example = 'bus:limit { rate = "10/s", per = policy.header("tenant") }\n' .. ON .. "retry()",
                tries = { { 'error = { type = "TimeoutError" }', "retry 200" } },
            },
            setting("override", { "f", "mulligan.OverrideFunction|false", "has the last word" },
                "Sees each verdict, and may answer another: `policy.retry`, `redeliver`, `dead_letter` or `discard`. \z
                    Returning nothing keeps the verdict. No answer passes `max_attempts`, `max_age` or `deadline`, \z
                    and of one by `max_deliveries` only a dead letter or a discard. Where it raises or answers \z
                    anything else, the verdict stands, and the event `override_failed` says why.",
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
