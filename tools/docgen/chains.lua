-- What a rule does: chains and the arguments of their words.

local backoff = { "backoff?", "mulligan.Backoff", "how delays grow from step to step" }
local attempts = { "attempts?", "integer", "how many, 0 to 1000; 0 switches the tier off" }
local endless = { "attempts?", 'integer|"unlimited"', attempts[3] .. '; or `"unlimited"`' }
local delay = { "delay?", "mulligan.Duration", "the base delay" }
local hint = { "hint?", "string", "the name of a field of the error, in seconds: where it is longer than the delay, \z
    it is waited for instead, up to `max_delay`" }

local function with(field, default)
    return { field[1], field[2], field[3], default = default }
end

-- The options of a tier, and its list of delays.
local function options(class, heading, d)
    return {
        class = class,
        exact = true,
        heading = heading,
        text = d.text,
        fields = {
            with(d.attempts, "3"),
            with(delay, d.delay),
            with(backoff, d.backoff),
            { "factor?", "number", "of an exponential backoff, which must be in force; from 1", default = "2" },
            { "max_delay?", "mulligan.Duration", "no delay is longer than this", default = d.max_delay },
            { "jitter?", "mulligan.Jitter", "chance in the delays, after the cap", default = "0.25" },
            with(hint, "none"),
        },
        example = d.example,
        tries = d.tries,
    }
end

local function delays(class, heading, word)
    return {
        class = class,
        exact = true,
        heading = heading,
        text = "Exactly these delays, as many attempts as there are; beside them may stand only what is listed here.",
        fields = {
            { "[integer]", "mulligan.Duration", "the delays, at most 1000" },
            { "jitter?", "mulligan.ListJitter", "chance in the delays", default = "0" },
            { "max_delay?", "mulligan.Duration", "no delay is longer than this", default = "none" },
            with(hint, "none"),
        },
        example = ('bus:on("TimeoutError"):%s { "100ms", "500ms", "2s", jitter = 0.1 }'):format(word),
        tries = { { 'error = { type = "TimeoutError" }', word .. " 100" } },
    }
end

local queue = { "queue?", "string", "where the dead letter goes; the scope's `dead_letter_queue` if left out" }
local note = { "note?", "string", "for the log and the verdict" }

return {
    {
        title = "Chains",
        text = "What follows a rule's beginning says what happens to its messages: first `retry`, `redeliver`, \z
            `dead_letter` or `discard`, then what the word before leaves open. A chain that names no end ends in a \z
            dead letter. A message that fails always is handled (retries + 1) × (redeliveries + 1) times.",
        words = {
            { class = "Rule", before = ":", text = "A rule that has no action yet." },
            { class = "Retried", before = ":", text = "A rule behind its `retry`." },
            { class = "Redelivered", before = ":", text = "A rule behind its `redeliver` or `then_redeliver`." },
            { class = "Ended", text = "The end of a statement: nothing may follow." },
            {
                of = "Rule",
                name = "retry",
                params = { attempts, delay, backoff },
                overload = "mulligan.RetryOptions|mulligan.RetryDelays",
                returns = "Retried",
                text = "The handler runs again in the same process. The message stays in memory and keeps its place \z
                    among the consumer's `concurrency`. Without arguments: 3 attempts after 200ms, 400ms and 800ms.",
                example = 'bus:on("TimeoutError"):retry(5, "1s", "linear")',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 2', "retry 2000" } },
            },
            {
                of = "Rule",
                name = "redeliver",
                params = { endless, delay, backoff },
                overload = "mulligan.RedeliverOptions|mulligan.RedeliverDelays",
                returns = "Redelivered",
                text = "The message goes back to its transport, to be handed out again later; its place is free \z
                    meanwhile. Without arguments: after 5m, 15m and 30m.",
                example = 'bus:on("HttpError"):redeliver(4)',
                tries = { { 'error = { type = "HttpError" }, redeliveries = 1', "redeliver 600000" } },
            },
            {
                of = "Rule",
                name = "dead_letter",
                params = { queue },
                returns = "Ended",
                text = "A copy with the record of the failure goes to a dead-letter queue; then the message is \z
                    acknowledged.",
                example = 'bus:on("ValidationError"):dead_letter("invalid-orders")',
                tries = { { 'error = { type = "ValidationError" }', "dead_letter invalid-orders rule" } },
            },
            {
                of = "Rule",
                name = "discard",
                params = { note },
                returns = "Ended",
                text = "The message is acknowledged and gone. It is counted and logged.",
                example = 'bus:on("DuplicateMessage"):discard("already processed")',
                tries = { { 'error = { type = "DuplicateMessage" }', "discard rule (already processed)" } },
            },
            {
                of = "Retried",
                name = "then_redeliver",
                params = { endless, delay, backoff },
                overload = "mulligan.RedeliverOptions|mulligan.RedeliverDelays",
                returns = "Redelivered",
                text = "Once the retries are used up, the message is redelivered; each redelivery has a fresh round \z
                    of retries. Arguments as of `redeliver`.",
                example = 'bus:on("TimeoutError"):retry(2):then_redeliver { "30s", "5m" }',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 3', "redeliver 30000" } },
            },
            {
                of = { "Retried", "Redelivered" },
                name = "then_dead_letter",
                params = { queue },
                returns = "Ended",
                text = "Names where the message goes once all is used up. It switches nothing off that stands before \z
                    it.",
                example = 'bus:on("TimeoutError"):retry(1):then_dead_letter("timeouts")',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 2', "dead_letter timeouts exhausted" } },
            },
            {
                of = { "Retried", "Redelivered" },
                name = "then_discard",
                params = { note },
                returns = "Ended",
                text = "Drops the message once all is used up. It switches nothing off that stands before it.",
                example = 'bus:on("PriceTick"):redeliver(1, "10s"):then_discard("stale")',
                tries = { { 'error = { type = "PriceTick" }, redeliveries = 1', "discard exhausted (stale)" } },
            },
        },
    },
    {
        title = "Arguments of retry and redeliver",
        text = "By position, as a list of delays, or by name; `then_redeliver` takes what `redeliver` does. What is \z
            computed is rounded up to milliseconds, then cut to `max_delay`, then jittered, never above `max_delay`.",
        words = {
            options("RetryOptions", "Options of `retry`", {
                text = "Each by its name, in any selection.",
                attempts = attempts,
                delay = "`200ms`", backoff = "`exponential`", max_delay = "`30s`",
                example = 'bus:on("TimeoutError"):retry { attempts = 5, delay = "100ms", factor = 3, max_delay = \z
                    "1m", jitter = "full" }',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 3', "retry 900" } },
            }),
            delays("RetryDelays", "Delays of `retry`", "retry"),
            options("RedeliverOptions", "Options of `redeliver` and `then_redeliver`", {
                text = "The delays are 5m, 15m and 30m until attempts, delay, backoff or decorrelated jitter is \z
                    named. Attempts without "
                    .. 'end, `"unlimited"`, need a `max_age` in each scope that has the rule, or of the bus or the \z
                    host.',
                attempts = endless,
                delay = "`5m`", backoff = "`linear`", max_delay = "`1h`",
                example = 'bus:max_age("1d")\nbus:on("HttpError"):redeliver { attempts = "unlimited", delay = "2m", \z
                    backoff = "constant", hint = "retry_after" }',
                tries = {
                    { 'error = { type = "HttpError" }, redeliveries = 90', "redeliver 120000" },
                    { 'error = { type = "HttpError", retry_after = 300 }', "redeliver 300000" },
                },
            }),
            delays("RedeliverDelays", "Delays of `redeliver` and `then_redeliver`", "redeliver"),
            {
                alias = "Backoff",
                choices = {
                    { "constant", "d each time" },
                    { "linear", "d · k at the k-th step" },
                    { "exponential", "d · factor^(k−1)" },
                },
                heading = "Backoff",
                text = "With the base delay d, at the k-th step of the tier, from 1.",
                example = 'bus:on("TimeoutError"):retry(3, "1s", "linear")',
                tries = { { 'error = { type = "TimeoutError" }, attempt = 3', "retry 3000" } },
            },
            {
                alias = "Jitter",
                type = "number",
                choices = {
                    { "full", "from 0 to d" },
                    { "decorrelated", "from the base delay to three times what came before; without `backoff` and \z
                        `factor`" },
                },
                heading = "Jitter",
                text = "A fraction f from 0 to 1, which draws from d · (1−f) to d · (1+f); or one of these words. \z
                    Chance depends on the message's id, so the same failure always gets the same delay.",
                example = 'bus:on("TimeoutError"):retry { attempts = 3, delay = "1s", jitter = "decorrelated" }',
                tries = { { 'error = { type = "TimeoutError" }', "retry 1000" } },
            },
            {
                alias = "ListJitter",
                type = "number",
                choices = { { "full", "from 0 to d" } },
                text = "As jitter, but never decorrelated: a list has no delays to grow from.",
            },
        },
    },
}
