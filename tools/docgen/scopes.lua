-- Scopes, and how rules begin.

return {
    {
        title = "Scopes",
        text = "Rules are taken from one scope as a whole: of consumer, transport, bus and host, in this order, the \z
            first that has a rule, its own or included. Settings are taken one by one, each from the nearest scope \z
            that sets it. The same call gives the same scope again.",
        words = {
            { class = "Scope", before = "scope:", text = "What `policy.host`, `bus`, `transport` and `consumer` \z
                give: rules and settings are said to it." },
            {
                of = "PolicyWords",
                name = "host",
                returns = "Scope",
                text = "The scope behind all others: for what several policies of one machine share. Where there is a \z
                    [host policy](policy.md#the-host-policy), it is said there alone.",
                example = "policy.host():default():redeliver()",
                tries = { { 'error = { type = "TimeoutError" }', "redeliver 300000" } },
            },
            {
                of = "PolicyWords",
                name = "bus",
                returns = "Scope",
                text = "The scope of the whole process.",
                example = "policy.bus():default():retry(1, 0):then_redeliver()",
                tries = { { 'error = { type = "TimeoutError" }', "retry 0" } },
            },
            {
                of = "PolicyWords",
                name = "transport",
                params = { { "name", "string", "as it was set up with `m.transport`, not its URL" } },
                returns = "Scope",
                text = "The scope of all that comes from one transport.",
                example = 'policy.transport("orders"):default():dead_letter("orders-failed")',
                tries = { { 'error = { type = "TimeoutError" }, transport = "orders"', "dead_letter orders-failed \z
                    rule" } },
            },
            {
                of = "PolicyWords",
                name = "consumer",
                params = { { "name", "string", "as it was set up with `m.consumer`" } },
                returns = "Scope",
                text = "The scope of one consumer, the nearest of all. Its rules stand in the place of the bus's, so \z
                    give it a `default()`, or `include` the bus.",
                example = [[
local payments = policy.consumer("PaymentHandler")
payments:on("TimeoutError"):retry(5, "500ms")
payments:default():redeliver()]],
                tries = {
                    { 'error = { type = "TimeoutError" }, consumer = "PaymentHandler"', "retry 500" },
                    { 'error = { type = "CardDeclined" }, consumer = "PaymentHandler"', "redeliver 300000" },
                },
            },
            {
                of = "Scope",
                name = "include",
                params = { { "other", "mulligan.Scope", "whose rules are wanted as well; no circle" } },
                returns = "Ended",
                text = "Puts the rules of another scope behind the own ones for the same type, as they stand when \z
                    the load ends. An own rule without a matcher replaces an included one without. Settings are not \z
                    included.",
                example = [[
bus:default():retry(3, "1s", "constant")
local payments = policy.consumer("PaymentHandler")
payments:on("CardDeclined"):dead_letter("declined")
payments:include(bus)]],
                tries = {
                    { 'error = { type = "TimeoutError" }, consumer = "PaymentHandler"', "retry 1000" },
                    { 'error = { type = "CardDeclined" }, consumer = "PaymentHandler"', "dead_letter declined rule" },
                },
            },
        },
    },
    {
        title = "Rules",
        text = "The nearest type wins, wherever it stands in the file: first the rules for the error's own type, \z
            then those for its parent, and so on; then the rules of `on_cause`; then those for `Error`. Among rules \z
            for one type, the first whose matcher passes. Where none does, the message is dead-lettered.",
        words = {
            {
                of = "Scope",
                name = "on",
                params = {
                    { "type", "mulligan.ErrorType|mulligan.ErrorType[]", "a type; a list is the same as the \z
                        statement once for each" },
                    { "matcher?", "mulligan.Matcher", "passes always if left out" },
                },
                returns = "Rule",
                text = "Begins a rule, which needs an action. Without a matcher it replaces an earlier one without \z
                    for the same type; rules with matchers never replace each other.",
                example = [[
bus:on("HttpError", { status = 429 }):redeliver(5, "2m")
bus:on { "TimeoutError", "HttpError" }:retry()]],
                tries = {
                    { 'error = { type = "HttpError", status = 429 }', "redeliver 120000" },
                    { 'error = { type = "HttpError", status = 500 }', "retry 200" },
                },
            },
            {
                of = "Scope",
                name = "on_cause",
                params = {
                    { "type", "mulligan.ErrorType|mulligan.ErrorType[]", "the type of the cause" },
                    { "matcher?", "mulligan.Matcher", "gets the cause as its error" },
                },
                returns = "Rule",
                text = "Begins a rule for errors that were caused by one of a type: the cause, its cause, and so on, \z
                    at most 16 deep. Rules for the error's own types come first, those for `Error` last.",
                example = [[
bus:on_cause("TimeoutError"):retry(3)
bus:default():dead_letter()]],
                tries = {
                    { 'error = { type = "PaymentError", cause = { type = "TimeoutError" } }', "retry 200" },
                    { 'error = { type = "PaymentError" }', "dead_letter error rule" },
                },
            },
            {
                of = "Scope",
                name = "default",
                returns = "Rule",
                text = 'Begins the rule for all that no other rule matches. It is `on("Error")`.',
                example = "bus:default():retry():then_redeliver()",
                tries = { { 'error = { type = "Anything" }, attempt = 4', "redeliver 300000" } },
            },
        },
    },
}
