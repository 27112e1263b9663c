-- unlimited.lua: where attempts = "unlimited" may stand: only a max_age ends it, so one must hold in
-- each scope that has such a rule, and none may be switched off.

local unlimited = {}

local effective_rules = require "mulligan.policy.effective_rules"
local text = require "mulligan.policy.text"

-- note keeps the place where a tier was said to be without a limit.
function unlimited.note(context, tier, here)
    context.unlimited = context.unlimited or {}
    context.unlimited[tier] = here
end

-- aged keeps that max_age was said in a scope: with `age`, or nil where it was wrong.
function unlimited.aged(data, age, here)
    data.has_age = age ~= false
    if age == false then
        data.ageless = data.ageless or {}
        table.insert(data.ageless, here)
    end
end

-- first gives the first tier without a limit in the rules that count in a scope.
local function first(context, data)
    local rules = effective_rules.of(data)
    for _, list in ipairs({ rules.rules, rules.cause_rules }) do
        for _, rule in ipairs(list) do
            if rule.redeliver and context.unlimited[rule.redeliver] then
                return rule, context.unlimited[rule.redeliver]
            end
        end
    end
end

-- Whether a rule is one of those that count in a scope.
local function counts_in(data, rule)
    for _, list in next, effective_rules.of(data) do
        for _, other in ipairs(list) do
            if other == rule then
                return true
            end
        end
    end
    return false
end

-- Where a scope got a rule from: its own statement, or that which includes it.
local function origin(data, rule, here)
    if rule.scope == data.label then
        return here
    end
    for _, include in ipairs(data.includes) do
        if counts_in(include.data, rule) then
            return include
        end
    end
end

local function is_far(data)
    return data and (data.kind == "bus" or data.kind == "host") and data.has_age
end

-- check notes what is against the rule; `scopes` are all of the load.
function unlimited.check(context, scopes)
    if not context.unlimited then
        return
    end
    local everywhere, any = false, nil
    for _, data in ipairs(scopes) do
        everywhere = everywhere or is_far(data)
    end
    for _, data in ipairs(scopes) do
        local rule, here = first(context, data)
        any = any or here
        if rule and not everywhere and not data.has_age and not data.stray then
            context:problem(origin(data, rule, here), ('attempts = "unlimited" ends by max_age only, and %s has '
                .. 'none; set it there, on the bus or on the host: bus:max_age("1d")'):format(text.name(data.label)))
        end
    end
    for _, data in ipairs(any and scopes or {}) do
        for _, here in ipairs(data.ageless or {}) do
            context:problem(here, ('max_age(false) can\'t stand in a policy with attempts = "unlimited" (%s:%d), which '
                .. "ends by max_age only"):format(any.file, any.line))
        end
    end
end

return unlimited
