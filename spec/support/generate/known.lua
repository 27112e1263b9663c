-- known.lua: the parts of the language that the product knows, and the generator therefore writes.
return {
    type_lists = true,
    on_cause = true,
    values = true, -- all but literals
    patterns = true, -- policy.matches
    ctx = true,
    composite = true, -- all, any, none
    unrecoverable = true,
    include = true,
    override = true,
    presets = true,
    rate_limit = true,
    notify = true,
    hint = true,
    jitter = true, -- "full", "decorrelated"
    unlimited = true,
}
