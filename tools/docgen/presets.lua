-- Presets.

return {
    {
        title = "Presets",
        text = "A preset says what a policy could say as well. Its rules stand where it is called.",
        words = {
            { class = "Presets", before = "policy.preset.", text = "What `policy.preset` holds." },
            { of = "PolicyWords", name = "preset", constant = "Presets", text = "Holds the presets.",
                example = "policy.preset.mocha(policy.bus())", tries = { { 'error = { type = "TimeoutError" }',
                    "retry 200" } } },
            {
                of = "Presets",
                name = "nservicebus",
                params = {
                    { "scope", "mulligan.Scope", "where its rules and settings are said" },
                    { "options?", "mulligan.NServiceBusOptions", "the defaults if left out" },
                },
                returns = "Ended",
                text = "Immediate retries without delay, then redeliveries after `increase` × k, without jitter: 24 \z
                    attempts by default.",
                example = 'policy.preset.nservicebus(bus, { immediate = 2, delayed = 2, increase = "30s" })',
                tries = {
                    { 'error = { type = "TimeoutError" }', "retry 0" },
                    { 'error = { type = "TimeoutError" }, attempt = 3, redeliveries = 1', "redeliver 60000" },
                },
            },
            {
                class = "NServiceBusOptions",
                exact = true,
                heading = "Options of `nservicebus`",
                fields = {
                    { "immediate?", "integer", "retries, 0 to 1000", default = "5" },
                    { "delayed?", "integer", "redeliveries, 0 to 1000", default = "3" },
                    { "increase?", "mulligan.Duration", "the delay grows by this each time", default = "`10s`" },
                    { "max_age?", "mulligan.Duration|false", "of the scope", default = "`24h`" },
                    { "unrecoverable?", "mulligan.ErrorType[]", "types; the list may be empty", default = "none" },
                },
            },
            {
                of = "Presets",
                name = "mocha",
                params = { { "scope", "mulligan.Scope", "where its rule is said" } },
                returns = "Ended",
                text = "`scope:default():retry():then_redeliver()`.",
                example = "policy.preset.mocha(bus)",
                tries = { { 'error = { type = "TimeoutError" }, attempt = 4', "redeliver 300000" } },
            },
        },
    },
}
