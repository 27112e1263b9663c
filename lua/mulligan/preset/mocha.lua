-- mocha.lua: policy.preset.mocha(scope): retries, then redeliveries, by the defaults of both.

return {
    options = {},
    apply = function(_, scope)
        scope:default():retry():then_redeliver()
    end,
}
