-- Error types, and spans of time.

return {
    {
        title = "Error types",
        text = "A type is a name, UTF-8 and not empty, such as `DeadlockError` or \z
            `psycopg2.errors.DeadlockDetected`. All types descend from `Error`.",
        words = {
            { class = "PolicyWords", called = "mulligan.policy", before = "policy.", text = "What `require \z
                \"mulligan.policy\"` gives." },
            {
                class = "UnknownOption",
                text = "What an option that doesn't exist would have to be: there is no such value.",
            },
            {
                of = "PolicyWords",
                name = "errors",
                params = { { "parents", "table<string, string>", "child = parent" } },
                returns = "Ended",
                text = "Declares the parents of error types. Several calls add up. A type that nothing declares is a \z
                    child of `Error`; a circle, a second, different parent, and a parent for `Error` are mistakes.",
                example = [[
policy.errors { DeadlockError = "DatabaseError", LockTimeout = "DatabaseError" }
bus:on("DatabaseError"):retry(5, "200ms")]],
                tries = { { 'error = { type = "DeadlockError" }', "retry 200" } },
            },
            {
                alias = "ErrorType",
                choices = {
                    { "Error", "the root of all types: what a handler raised without a type" },
                    { "MessageDeserializationError", "the message could not be read" },
                    { "HandlerTimeoutError", "the handler ran longer than its consumer's `timeout`" },
                    { "HandlerCrashError", "the process that handled the message died" },
                    { "NoConsumerError", "no consumer of its queue takes messages of this type" },
                },
                open = true,
                heading = "Built-in types",
                text = "These are always there. They are children of `Error`; a policy may give one another parent.",
                example = 'bus:on("HandlerTimeoutError"):redeliver(3, "10m")',
                tries = { { 'error = { type = "HandlerTimeoutError" }', "redeliver 600000" } },
            },
        },
    },
    {
        title = "Spans of time",
        words = {
            {
                alias = "Duration",
                type = "string|0",
                heading = "Durations",
                text = "A text with the units `d h m s ms`, largest first, each at most once: `\"200ms\"`, \z
                    `\"1.5s\"`, `\"1h30m\"`; or the number 0. Whole milliseconds, at most 365 days. Any other number \z
                    is a mistake, since it has no unit.",
                example = 'bus:on("TimeoutError"):retry(1, "1h30m"):then_redeliver { "1.5s", 0 }',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 2', "redeliver 1500" } },
            },
            {
                of = "PolicyWords",
                name = "seconds",
                params = { { "n", "number", "seconds, from 0; whole milliseconds, at most 365 days" } },
                returns = "Duration",
                text = "Makes a duration of a number of seconds.",
                example = 'bus:on("TimeoutError"):retry(3, policy.seconds(0.5), "constant")',
                tries = { { 'error = { type = "TimeoutError" }', "retry 500" } },
            },
            {
                of = "PolicyWords",
                name = "ms",
                params = { { "n", "number", "milliseconds, whole, from 0; at most 365 days" } },
                returns = "Duration",
                text = "Makes a duration of a number of milliseconds.",
                example = 'bus:on("TimeoutError"):retry(3, policy.ms(50 * 2), "constant")',
                tries = { { 'error = { type = "TimeoutError" }', "retry 100" } },
            },
        },
    },
}
