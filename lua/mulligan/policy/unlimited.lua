-- unlimited.lua: where attempts = "unlimited" may stand: only a max_age or a deadline ends it, so one
-- of them must hold in each scope that has such a rule, and not be switched off.

local unlimited = {}

local effective_rules = require "mulligan.policy.effective_rules"
local text = require "mulligan.policy.text"

-- note keeps the place where a tier was said to be without a limit.
function unlimited.note(context, tier, here)
    context.unlimited = context.unlimited or {}
    context.unlimited[tier] = here
end

local ends = { "max_age", "deadline" }

-- said keeps that a setting was said in a scope: with `value`, false, or nil where it was wrong.
function unlimited.said(data, word, value, here)
    if word ~= ends[1] and word ~= ends[2] then
        return
    end
    data.ends = data.ends or {}
    data.ends[word] = value ~= false
    if value == false then
        data.endless = data.endless or {}
        table.insert(data.endless, { word = word, here = here })
    end
end

local function sets(data, word)
    return data.ends and data.ends[word]
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

-- told gives what another policy has to know of a scope: { ends =, endless =, here = }, the last the place
-- of its first tier without a limit.
function unlimited.told(context, data)
    local _, here
    if context.unlimited then
        _, here = first(context, data)
    end
    return { ends = data.ends, endless = data.endless, here = here }
end

-- heard gives the host's scope of another policy, as far as it was told.
function unlimited.heard(context, told)
    local rules = {}
    if told.here then
        rules[1] = { scope = "host", redeliver = {} }
        unlimited.note(context, rules[1].redeliver, told.here)
    end
    return {
        kind = "host", label = "host", includes = {}, ends = told.ends, endless = told.endless,
        force = { rules = rules, cause_rules = {}, replaced = {} },
    }
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

-- everywhere says whether a word holds for all scopes, as far as none switches it off.
local function everywhere(scopes, word)
    for _, data in ipairs(scopes) do
        if (data.kind == "bus" or data.kind == "host") and sets(data, word) then
            return true
        end
    end
    return false
end

-- endless gives each place where a word was switched off: { word =, here = }.
local function endless(scopes)
    local all = {}
    for _, data in ipairs(scopes) do
        table.move(data.endless or {}, 1, #(data.endless or {}), #all + 1, all)
    end
    return all
end

-- suffices says whether one word alone ends all that has no limit, so that the other may be off.
local function suffices(scopes, found, word)
    for _, entry in ipairs(endless(scopes)) do
        if entry.word == word then
            return false
        end
    end
    for _, entry in ipairs(everywhere(scopes, word) and {} or found) do
        if not sets(entry.data, word) then
            return false
        end
    end
    return true
end

-- check_scope notes a rule without a limit in a scope where neither word holds.
local function check_scope(context, scopes, entry)
    local data = entry.data
    for _, word in ipairs(ends) do
        if everywhere(scopes, word) or sets(data, word) then
            return
        end
    end
    context:problem(origin(data, entry.rule, entry.here), ('attempts = "unlimited" ends by max_age or deadline only, '
        .. 'and %s has neither; set one there, on the bus or on the host: bus:max_age("1d")'):format(
        text.name(data.label)))
end

-- check notes what is against the rule; `scopes` are all of the load.
function unlimited.check(context, scopes)
    local found = {}
    for _, data in ipairs(context.unlimited and scopes or {}) do
        local rule, here = first(context, data)
        if rule then
            found[#found + 1] = { data = data, rule = rule, here = here }
        end
    end
    if #found == 0 then
        return
    end
    for _, entry in ipairs(found) do
        if not entry.data.stray then
            check_scope(context, scopes, entry)
        end
    end
    if suffices(scopes, found, "max_age") or suffices(scopes, found, "deadline") then
        return
    end
    for _, off in ipairs(endless(scopes)) do
        context:problem(off.here, ('%s(false) can\'t stand in a policy with attempts = "unlimited" (%s:%d), which '
            .. "ends by max_age or deadline only"):format(off.word, found[1].here.file, found[1].here.line))
    end
end

return unlimited
