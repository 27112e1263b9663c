-- What overrides and notifies are given, and what an override answers.

local function answer(name, params, text, example, verdict)
    return {
        of = "PolicyWords",
        name = name,
        params = { params },
        returns = "Answer",
        text = text,
        example = ("bus:override(function(failure)\n    if failure.error.type == \"Busy\" then return %s \z
            end\nend)\nbus:default():retry()"):format(example),
        tries = { { 'error = { type = "Busy" }', verdict } },
    }
end

return {
    {
        title = "What an override answers",
        text = "They are for an `override` only; a rule begins with `on`. The same action as the verdict's is an \z
            answer as well: the rule's delay and count no longer hold.",
        words = {
            { class = "Answer", text = "What these words give." },
            answer("retry", { "delay?", "mulligan.Duration|integer", "a whole number is milliseconds; 0 if left \z
                out" }, "Retries after a delay, which has no cap but 365 days.",
                'policy.retry("1s")', "retry 1000"),
            answer("redeliver", { "delay", "mulligan.Duration|integer", "from now; a whole number is milliseconds" },
                "Redelivers after a delay, which has no cap but 365 days.",
                'policy.redeliver("5m")', "redeliver 300000"),
            answer("dead_letter", { "queue?", "string", "the scope's `dead_letter_queue` if left out" },
                "Dead-letters the message. The queue that it came from is a wrong answer.",
                'policy.dead_letter("busy")', "dead_letter busy override"),
            answer("discard", { "note?", "string", "for the log and the verdict" }, "Drops the message.",
                'policy.discard("too busy")', "discard override (too busy)"),
        },
    },
    {
        title = "What overrides and notifies see",
        text = "All of it is read-only, and gone when the function returns. What doesn't apply is nil.",
        words = {
            {
                class = "Failure",
                parent = "Ctx",
                heading = "`failure`",
                text = "All that `ctx` has, and:",
                fields = { { "error", "mulligan.Err", "the error, as matchers get it" } },
            },
            {
                class = "Verdict",
                heading = "`verdict`",
                fields = {
                    { "action", "mulligan.Action", "what is to be done" },
                    { "delay_ms", "integer", "whole milliseconds; 0 for a dead letter and a discard" },
                    { "queue?", "string", "of a dead letter" },
                    { "reason?", "mulligan.Reason", 'why a dead letter or a discard; of a retry or redelivery \z
                        `"override"` or nothing' },
                    { "note?", "string", "the text given to a discard" },
                    { "tier?", "mulligan.Tier", "of a retry or a redelivery" },
                    { "step?", "integer", "the how-manyth of the tier" },
                    { "of?", "integer", "of how many; nil where there is no end, and where an override answered" },
                    { "rule?", "mulligan.RulePlace", "the rule that decided; of reason `unrecoverable` the \z
                        declaration" },
                    { "fallback?", "mulligan.Fallback", "what the transport could not do" },
                    { "generation", "string", "the content hash of the policy's files" },
                },
            },
            {
                class = "RulePlace",
                heading = "`verdict.rule`",
                fields = {
                    { "file", "string", "relative to the policy's folder" },
                    { "line", "integer", "of its `on`, `on_cause`, `default` or `unrecoverable`" },
                    { "scope", "string", "`host`, `bus`, `transport:NAME` or `consumer:NAME`" },
                    { "type", "string", "the type that it is for" },
                },
            },
            {
                alias = "Action",
                heading = "Actions",
                choices = {
                    { "retry", "the handler runs again" },
                    { "redeliver", "the message is handed out again later" },
                    { "dead_letter", "a copy is put aside" },
                    { "discard", "it is dropped" },
                },
            },
            { alias = "Tier", choices = { { "retry", "in the process" }, { "redeliver", "by the transport" } },
                text = "Where a message waits." },
            {
                alias = "Reason",
                heading = "Reasons",
                text = "Why a message ends. The first that holds is given.",
                choices = {
                    { "fallback", "the transport can't do what was due" },
                    { "override", "an override answered so" },
                    { "max_deliveries", "handed out too often" },
                    { "unrecoverable", "declared so" },
                    { "no_rule", "no rule of the scope in force matches" },
                    { "rule", "the chain is just this action" },
                    { "exhausted", "retries and redeliveries are used up" },
                    { "max_attempts", "too many handler calls in all" },
                    { "max_age", "too long since the first failure, and a redelivery was due" },
                    { "deadline", "the next call would begin too long after the first failure" },
                },
            },
            {
                alias = "Fallback",
                heading = "Fallbacks",
                text = "The message becomes a dead letter of the default queue.",
                choices = {
                    { "no_retry", "it can't hold a message while its handler runs again" },
                    { "no_delay", "it has no delayed delivery" },
                },
            },
            {
                class = "Config",
                heading = "`config`",
                fields = {
                    { "dead_letter_queue", "string", "in force for the message" },
                    { "max_age_ms?", "integer", "nil: none" },
                    { "max_attempts?", "integer", "nil: none" },
                    { "unrecoverable", "string[]", "the names of the types" },
                    { "retry", "mulligan.ConfigTier", "of the `default()` in force, whatever failed" },
                    { "redeliver", "mulligan.ConfigTier", "of the `default()` in force, whatever failed" },
                    { "rule?", "mulligan.ConfigRule", "of the rule that decided; nil: none did" },
                },
            },
            {
                class = "ConfigRule",
                heading = "`config.rule`",
                fields = {
                    { "retry", "mulligan.ConfigTier", "of the rule that decided" },
                    { "redeliver", "mulligan.ConfigTier", "of the rule that decided" },
                },
            },
            {
                class = "ConfigTier",
                heading = "`config.retry`, `config.redeliver`, and those of `config.rule`",
                fields = {
                    { "attempts", 'integer|"unlimited"', "0 where the tier is off, or the transport hasn't it" },
                    { "delay_ms?", "integer", "the base delay in milliseconds" },
                    { "backoff?", "mulligan.Backoff", "how it grows" },
                    { "max_delay_ms?", "integer", "the cap in milliseconds; nil: none" },
                },
            },
            {
                class = "Event",
                heading = "`event`",
                fields = {
                    { "name", "mulligan.EventName", "what happened" },
                    { "failure?", "mulligan.Failure", "where it is about a message; before its handler is called it \z
                        has no `error`" },
                    { "verdict?", "mulligan.Verdict", "the verdict that is carried out" },
                    { "rule?", "mulligan.RulePlace", "the rule whose matcher failed" },
                    { "text?", "string", "why something failed, the header that was ignored, what was loaded or why \z
                        not" },
                    { "generation?", "string", "what is in force" },
                    { "consumer?", "string", "where it is about a consumer" },
                    { "limit?", "mulligan.LimitStatus", "the `rate_limit` that started or ended" },
                },
            },
            {
                alias = "EventName",
                heading = "Events",
                choices = {
                    { "decided", "a verdict was carried out" },
                    { "matcher_failed", "a matcher raised, or ran over its budget; its rule was skipped, \z
                        or the rest of them, since one decision has one budget" },
                    { "override_failed", "an override raised, or gave a wrong answer; the verdict stood" },
                    { "notify_failed", "a `notify` raised, or ran over its budget; told to the embedder only" },
                    { "header_ignored", "a counter or a time in a header can't be read" },
                    { "policy_loaded", "it is in force since a reload, or, as a `notify` hears, since the start" },
                    { "policy_refused", "a reload changed nothing" },
                    { "transport_up", "a transport came up after the engine's start, for the first time or again; \z
                        told to the embedder only" },
                    { "rate_limit_started", "a `rate_limit` is in force; `text` says why, and when the next call \z
                        begins" },
                    { "rate_limit_ended", "enough calls succeeded, the policy has it no more, or there are too many \z
                        values; `text` says which" },
                    { "rate_limit_forgot", "there are too many values, and what failed of one is forgotten" },
                    { "paused", "a consumer is, and begins no more calls" },
                    { "resumed", "it goes on" },
                    { "concurrency_changed", "a consumer's" },
                },
            },
        },
    },
}
