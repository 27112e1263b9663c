-- cmd/table.lua: the decision table as it is in force for a consumer on a transport; docs/table.md.

local chain = require "mulligan.format.chain"
local cli = require "mulligan.cli"
local core = require "mulligan.core"
local json = require("mulligan").json
local matcher = require "mulligan.format.matcher"
local ansi = require "mulligan.format.ansi"
local scopes = require "mulligan.format.scopes"
local settings = require "mulligan.format.settings"
local text = require "mulligan.policy.text"

local command = {}

local seen -- what names a file as it is called from here

-- place gives where something is said, with the scope where that isn't `here`.
local function place(of, here)
    local from = of.scope and of.scope ~= here and " " .. text.name(of.scope) or ""
    return scopes.place(seen, of) .. from
end

-- ---- Rules -------------------------------------------------------------------------------------

-- by_type gives what stands in the table for the rules of each type: a list of { type =, rows = },
-- in the order of their first rules. Of many rules no more than that is kept.
local function by_type(rules, rows_of)
    local groups, group_of = {}, {}
    for number = 1, rules() do
        local rule = rules(number)
        local group = group_of[rule.type]
        if not group then
            group = { type = rule.type, rows = {} }
            group_of[rule.type] = group
            groups[#groups + 1] = group
        end
        rows_of(group.rows, rule)
    end
    return groups
end

local MOST_ANCESTORS = 20

-- ancestry gives a type and what it descends from: "DeadlockError < DatabaseError".
local function ancestry(parents, name)
    local out = { text.name(name) }
    while parents[name] and #out <= MOST_ANCESTORS do
        name = parents[name]
        out[#out + 1] = text.name(name)
    end
    if parents[name] then
        out[#out + 1] = "…"
    end
    return table.concat(out, " < ")
end

-- A matcher that is longer stands on a line of its own, above what the rule does.
local SHORT = 36

local function add_rule(rows, rule, here)
    local when, steps = matcher.describe(rule.matcher), chain.steps(rule)
    local is_short = utf8.len(when) <= SHORT
    if not is_short then
        rows[#rows + 1] = { place(rule, here), when }
    end
    steps[#steps + 1] = ansi.dim("(" .. chain.bounds(rule.bounds) .. ")")
    for number, step in ipairs(steps) do
        local is_first = is_short and number == 1
        rows[#rows + 1] = { is_first and place(rule, here) or "", is_first and when or "", step }
    end
end

local function add_group(lines, group, head)
    lines[#lines + 1] = "  " .. ansi.cyan(head)
    table.move(ansi.columns(group.rows, 4), 1, #group.rows, #lines + 1, lines)
end

local function add_rules(lines, of)
    local here = scopes.in_force(of.scopes)
    local function rows_of(rows, rule)
        add_rule(rows, rule, here)
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "rules" .. "  as they are tried: for the type, for what it descends from, "
        .. "for its causes, for all"
    lines[#lines + 1] = "       in brackets what a rule alone leads to, with handlers that take up to 30s"
    local last
    for _, group in ipairs(by_type(of.rules, rows_of)) do
        if group.type == "Error" then
            last = group
        else
            add_group(lines, group, ancestry(of.parents, group.type))
        end
    end
    for _, group in ipairs(by_type(of.cause_rules, rows_of)) do
        add_group(lines, group, "caused by " .. ancestry(of.parents, group.type))
    end
    if last then
        add_group(lines, last, "Error: whatever no rule above matched")
    else
        lines[#lines + 1] = ansi.yellow("  no rule for Error: whatever no rule matches is a dead letter"
            .. (of.settings.override.value and ", unless the override says otherwise" or ""))
    end
end

local function add_unrecoverable(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "unrecoverable" .. "  dead letters at the first failure, before any rule"
    local rows = {}
    for number, declared in ipairs(of.unrecoverable) do
        rows[number] = { place(declared), ancestry(of.parents, declared.type),
            declared.matcher and matcher.describe(declared.matcher) or "" }
    end
    if #rows == 0 then
        lines[#lines + 1] = "  nothing"
    end
    table.move(ansi.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

local function add_replaced(lines, of)
    if #of.replaced == 0 then
        return
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "replaced" .. "  a later rule for the same type stands in their place"
    local rows, here = {}, scopes.in_force(of.scopes)
    for number, rule in ipairs(of.replaced) do
        rows[number] = { place(rule, here), ("%s(%s)"):format(rule.word, text.show(rule.type)),
            "by " .. scopes.place(seen, { file = rule.by_file, line = rule.by_line, scope = rule.scope }) }
    end
    table.move(ansi.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

local function add_bounds(lines, of)
    lines[#lines + 1] = ""
    local by = of.settings.override.value and "whatever the override answers: " or "by whichever of these rules: "
    lines[#lines + 1] = ansi.bold "bounds" .. "  whatever fails, " .. by .. chain.bounds(of.bounds)
end

-- ---- Settings ----------------------------------------------------------------------------------

local function add_settings(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "settings"
    local rows = settings.rows(seen, of.settings)
    table.move(ansi.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

-- ---- All of it ---------------------------------------------------------------------------------

local MOST_OTHERS = 100

local function add_scopes(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "scopes" .. "  the nearest one with rules is in force, as a whole"
    local rows = scopes.lines(seen, of.scopes)
    table.move(rows, 1, #rows, #lines + 1, lines)
    local names = {}
    for number, other in ipairs(of.others) do
        names[number] = text.name(other.scope)
    end
    if #names > 0 then
        lines[#lines + 1] = ansi.dim("  others, each with a table of its own: "
            .. table.concat(text.some(names, MOST_OTHERS), ", "))
    end
end

local function as_text(path, of)
    local lines = {
        ("%s (generation %s), for %s"):format(ansi.bold(text.clean(path)), of.generation:sub(1, 8), scopes.whom(of)),
    }
    add_scopes(lines, of)
    add_unrecoverable(lines, of)
    add_rules(lines, of)
    add_bounds(lines, of)
    add_replaced(lines, of)
    add_settings(lines, of)
    return table.concat(lines, "\n") .. "\n"
end

local function say_json(of)
    of.consumer = of.consumer or json.null
    of.transport = of.transport or json.null
    cli.say_json(of)
end

function command.main(words)
    for _, name in ipairs { "consumer", "transport" } do
        if words[name] and not text.valid(words[name]) then
            return cli.complain("table: --%s must be UTF-8, which %s isn't", name, text.show(words[name]))
        end
    end
    local host = words.host_policy
    seen = cli.sight(words[1], host)
    local policy, problems = cli.load_policy(words[1], { log = cli.print, host_policy = host })
    if not policy then
        return cli.complain_of(problems)
    end
    local of, _ <close> = core.policy_table(policy, words.consumer, words.transport)
    if words.format == "json" then
        say_json(of)
    else
        collectgarbage("incremental", 700) -- most of what is made is kept to the end
        cli.say(as_text(cli.both(words[1], host), of))
    end
    policy:close()
    return 0
end

return command
