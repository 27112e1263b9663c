-- cmd/table.lua: the decision table as it is in force for a consumer on a transport; docs/table.md.

local chain = require "mulligan.look.chain"
local cli = require "mulligan.cli"
local json = require("mulligan").json
local matcher = require "mulligan.look.matcher"
local paint = require "mulligan.look.paint"
local scopes = require "mulligan.look.scopes"
local span = require "mulligan.look.span"
local text = require "mulligan.policy.text"

local command = {
    name = "table",
    summary = "shows the decision table as it is in force: rules, delays, settings",
    usage = "table POLICY [OPTION]...",
    about = "Shows what is in force for a consumer on a transport: which scope's rules, in the order in which they\n"
        .. "are tried, and every setting with the place where it was set. Names that the policy has no scope for\n"
        .. "get what the bus and the host say, as does who names none.",
    options = {
        { "--consumer", "C", help = "for this consumer" },
        { "--transport", "T", help = "on this transport" },
        { "--format", "text|json", help = "for people or for programs (text)" },
    },
    at_least = 1,
    at_most = 1,
}

local folder -- of the policy, as seen from here

-- place gives where something is said, with the scope where that isn't `here`.
local function place(of, here)
    local from = of.scope and of.scope ~= here and " " .. text.clean(of.scope) or ""
    return scopes.place(folder, of) .. from
end

-- ---- Rules -------------------------------------------------------------------------------------

-- by_type gives the rules of each type: a list of { type =, … }, in the order of their first rules.
local function by_type(rules)
    local groups, group_of = {}, {}
    for _, rule in ipairs(rules) do
        local group = group_of[rule.type]
        if not group then
            group = { type = rule.type }
            group_of[rule.type] = group
            groups[#groups + 1] = group
        end
        group[#group + 1] = rule
    end
    return groups
end

-- ancestry gives a type and what it descends from: "DeadlockError, a DatabaseError".
local function ancestry(parents, name)
    local out = text.clean(name)
    while parents[name] do
        name = parents[name]
        out = out .. " < " .. text.clean(name)
    end
    return out
end

-- A matcher that is longer stands on a line of its own, above what the rule does.
local SHORT = 36

local function add_rule(rows, rule, here)
    local when, steps = matcher.describe(rule.matcher), chain.steps(rule)
    local is_short = utf8.len(when) <= SHORT
    if not is_short then
        rows[#rows + 1] = { place(rule, here), when }
    end
    steps[#steps + 1] = paint.dim("(" .. chain.bounds(rule.bounds) .. ")")
    for number, step in ipairs(steps) do
        local is_first = is_short and number == 1
        rows[#rows + 1] = { is_first and place(rule, here) or "", is_first and when or "", step }
    end
end

local function add_group(lines, group, head, here)
    lines[#lines + 1] = "  " .. paint.cyan(head)
    local rows = {}
    for _, rule in ipairs(group) do
        add_rule(rows, rule, here)
    end
    table.move(paint.columns(rows, 4), 1, #rows, #lines + 1, lines)
end

local function add_rules(lines, of)
    local here = scopes.in_force(of.scopes)
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "rules" .. "  as they are tried: for the type, for what it descends from, "
        .. "for its causes, for all"
    lines[#lines + 1] = "       in brackets what a rule alone leads to, with handlers that take up to 30s"
    local last
    for _, group in ipairs(by_type(of.rules)) do
        if group.type == "Error" then
            last = group
        else
            add_group(lines, group, ancestry(of.parents, group.type), here)
        end
    end
    for _, group in ipairs(by_type(of.cause_rules)) do
        add_group(lines, group, "caused by " .. ancestry(of.parents, group.type), here)
    end
    if last then
        add_group(lines, last, "Error: whatever no rule above matched", here)
    else
        lines[#lines + 1] = paint.yellow("  no rule for Error: whatever no rule matches is a dead letter")
    end
end

local function add_unrecoverable(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "unrecoverable" .. "  dead letters at the first failure, before any rule"
    local rows = {}
    for number, declared in ipairs(of.unrecoverable) do
        rows[number] = { place(declared), ancestry(of.parents, declared.type),
            declared.matcher and matcher.describe(declared.matcher) or "" }
    end
    if #rows == 0 then
        lines[#lines + 1] = "  nothing"
    end
    table.move(paint.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

local function add_replaced(lines, of)
    if #of.replaced == 0 then
        return
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "replaced" .. "  a later rule for the same type stands in their place"
    local rows, here = {}, scopes.in_force(of.scopes)
    for number, rule in ipairs(of.replaced) do
        rows[number] = { place(rule, here), ("%s(%s)"):format(rule.word, text.show(rule.type)),
            "by " .. scopes.place(folder, { file = rule.by_file, line = rule.by_line }) }
    end
    table.move(paint.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

local function add_bounds(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "bounds" .. "  whatever fails, by whichever of these rules: "
        .. chain.bounds(of.bounds)
end

-- ---- Settings ----------------------------------------------------------------------------------

local settings = { "dead_letter_queue", "max_age_ms", "max_attempts", "max_deliveries", "rate_limit", "override",
    "notify" }

local function value_of(name, value)
    if value == false then
        return "none"
    elseif name == "max_age_ms" then
        return span.exact(value)
    elseif name == "rate_limit" then
        return ("after %d failures in a row, wait %s"):format(value.after, span.exact(value.wait_ms))
    elseif value == true then
        return "a function"
    end
    return text.clean(tostring(value))
end

local function add_settings(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "settings"
    local rows = {}
    for number, name in ipairs(settings) do
        local setting = of.settings[name]
        rows[number] = { (name:gsub("_ms$", "")), value_of(name, setting.value),
            setting.file and place(setting) or paint.dim "default" }
    end
    table.move(paint.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

-- ---- All of it ---------------------------------------------------------------------------------

local function add_scopes(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = paint.bold "scopes" .. "  the nearest one with rules is in force, as a whole"
    local rows = scopes.lines(folder, of.scopes)
    table.move(rows, 1, #rows, #lines + 1, lines)
    local names = {}
    for number, other in ipairs(of.others) do
        names[number] = text.clean(other.scope)
    end
    if #names > 0 then
        lines[#lines + 1] = paint.dim("  others, each with a table of its own: " .. table.concat(names, ", "))
    end
end

local function as_text(path, of)
    local lines = {
        ("%s (generation %s), for %s"):format(paint.bold(text.clean(path)), of.generation:sub(1, 8), scopes.whom(of)),
    }
    add_scopes(lines, of)
    add_unrecoverable(lines, of)
    add_rules(lines, of)
    add_bounds(lines, of)
    add_replaced(lines, of)
    add_settings(lines, of)
    return table.concat(lines, "\n") .. "\n"
end

local function as_json(of)
    of.consumer = of.consumer or json.null
    of.transport = of.transport or json.null
    return cli.json(of)
end

function command.main(words)
    for _, name in ipairs { "consumer", "transport" } do
        if words[name] and not text.valid(words[name]) then
            return cli.complain("table: --%s must be UTF-8, which %s isn't", name, text.show(words[name]))
        end
    end
    folder = cli.folder_of(words[1])
    local policy, problems = cli.load_policy(words[1], { log = cli.print })
    if not policy then
        return cli.complain_of(problems)
    end
    local of = policy:table { consumer = words.consumer, transport = words.transport }
    cli.say(words.format == "json" and as_json(of) or as_text(words[1], of))
    policy:close()
    return 0
end

return command
