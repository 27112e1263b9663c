-- nservicebus.lua: policy.preset.nservicebus(scope, options): immediate retries without delay, then
-- redeliveries that wait longer by `increase` each time, and no message older than a day: with the
-- defaults (5 + 1) x (3 + 1) = 24 attempts.

local function rules(rule, options)
    local delayed = {
        attempts = options.delayed,
        delay = options.increase,
        backoff = "linear",
        max_delay = "365d",
        jitter = 0,
    }
    if options.delayed == 0 then
        rule:retry(options.immediate, 0)
    elseif options.immediate == 0 then
        rule:redeliver(delayed)
    else
        rule:retry(options.immediate, 0):then_redeliver(delayed)
    end
end

return {
    options = {
        { name = "immediate", kind = "attempts", default = 5 },
        { name = "delayed", kind = "attempts", default = 3 },
        { name = "increase", kind = "span", default = "10s" },
        { name = "max_age", kind = "span_or_false", default = "24h" },
        { name = "unrecoverable", kind = "types", default = {} },
    },
    apply = function(_, scope, options)
        if #options.unrecoverable > 0 then
            scope:unrecoverable(options.unrecoverable)
        end
        rules(scope:default(), options)
        scope:max_age(options.max_age)
    end,
}
