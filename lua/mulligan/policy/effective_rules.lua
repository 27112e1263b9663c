-- effective_rules.lua: which rules of a scope count once the load is over: its own, then those that it
-- includes, without those that a later one of the same kind replaced.

local force = {}

local kinds = { { list = "rules", word = "on" }, { list = "cause_rules", word = "on_cause" } }

-- The rules that one statement for a list of types means, one for each type: always the same ones.
local function copies(rule)
    if not rule.copies then
        rule.copies = {}
        for i, name in ipairs(rule.types) do
            local copy = {}
            for key, item in next, rule do
                copy[key] = item
            end
            copy.type, copy.types, copy.copies = name, nil, nil
            rule.copies[i] = copy
        end
    end
    return rule.copies
end

local function spread(rules)
    local all
    for i = 1, #rules do
        local rule = rules[i]
        if rule.types then
            all = all or table.move(rules, 1, i - 1, 1, {})
            table.move(copies(rule), 1, #rule.types, #all + 1, all)
        elseif all then
            all[#all + 1] = rule
        end
    end
    return all or rules
end

local function note(replaced, kind, rule, by)
    local entry = {
        type = rule.type,
        word = kind.word,
        file = rule.file,
        line = rule.line,
        by_file = by.file,
        by_line = by.line,
    }
    replaced[#replaced + 1] = entry
    return entry
end

-- own gives a scope's own rules that count, and the plain ones among them by type.
local function own(rules, kind, replaced)
    local plain, gone = {}, {}
    for i = 1, #rules do
        local rule = rules[i]
        local type_name = rule.type
        if type_name and not rule.matcher then -- a rule without a type is a mistake, and noted
            local before = plain[type_name]
            if before then
                gone[before] = true
                note(replaced, kind, before, rule)
            end
            plain[type_name] = rule
        end
    end
    if next(gone) == nil then
        return rules, plain
    end
    local kept = {}
    for _, rule in ipairs(rules) do
        if not gone[rule] then
            kept[#kept + 1] = rule
        end
    end
    return kept, plain
end

-- with_included gives the rules of a scope and behind them those that it includes.
local function with_included(data, kind, rules, plain, replaced)
    local all, seen = table.move(rules, 1, #rules, 1, {}), {}
    for _, include in ipairs(data.includes) do
        for _, rule in ipairs(force.of(include.data)[kind.list]) do
            local by = not rule.matcher and plain[rule.type]
            if by and not seen[rule] then
                note(replaced, kind, rule, by).scope = rule.scope
            elseif not seen[rule] then
                all[#all + 1] = rule
            end
            seen[rule] = true
        end
    end
    return all
end

-- of gives what counts in a scope: { rules =, cause_rules =, replaced = }, as docs/plain-rules.md has
-- them.
function force.of(data)
    if not data.force then
        local result = { replaced = {} }
        for _, kind in ipairs(kinds) do
            local rules, plain = own(spread(data[kind.list]), kind, result.replaced)
            if #data.includes > 0 then
                rules = with_included(data, kind, rules, plain, result.replaced)
            end
            result[kind.list] = rules
        end
        data.force = result
    end
    return data.force
end

return force
