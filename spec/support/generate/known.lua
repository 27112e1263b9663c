-- known.lua: the parts of the language that the product knows, and the generator therefore writes.
return {
    type_lists = true,
    on_cause = false,
    values = false, -- all but literals
    patterns = false, -- policy.matches
    ctx = false,
    composite = false, -- all, any, none
    unrecoverable = false,
    include = false,
    override = false,
    presets = true,
    rate_limit = false,
    notify = false,
    hint = false,
    jitter = false, -- "full", "decorrelated"
    unlimited = false,
}
