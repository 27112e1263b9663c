-- text.lua: the text of a tree. text(tree) also sets the line of each statement in it: that of its word.
-- text(tree, says) has blank lines in the place of what `says` is false for: of a statement, or of a child's parent.

local functions = require "support.generate.functions"
local overrides = require "support.generate.overrides"

-- Values --------------------------------------------------------------------------------------------------------------

local function number(value)
    local text = tostring(value)
    if value == math.mininteger or tonumber(text) ~= value then return ("%q"):format(value) end
    return text
end

local function literal(value)
    if type(value) == "table" then
        return value.whole and tostring(value.whole) or value.ms and ("policy.ms(%d)"):format(value.ms)
            or ("policy.seconds(%s)"):format(value.seconds)
    end
    if type(value) == "string" then return ("%q"):format(value) end
    return type(value) == "number" and number(value) or tostring(value)
end

local function joined(list, write)
    local parts = {}
    for i, item in ipairs(list) do parts[i] = write(item) end
    return table.concat(parts, ", ")
end

local function key(name) return name:find("^[%a_]+$") and name or ("[%q]"):format(name) end

-- Matchers ------------------------------------------------------------------------------------------------------------

local value_text

local VALUES = {
    literal = function(v) return literal(v.value) end,
    list = function(v) return "{ " .. joined(v.values, literal) .. " }" end,
    between = function(v) return ("policy.between(%s, %s)"):format(literal(v.low), literal(v.high)) end,
    at_least = function(v) return ("policy.at_least(%s)"):format(literal(v.low)) end,
    at_most = function(v) return ("policy.at_most(%s)"):format(literal(v.high)) end,
    contains = function(v) return ("policy.contains(%s)"):format(literal(v.text)) end,
    matches = function(v) return ("policy.matches(%s)"):format(literal(v.text)) end,
    present = function() return "policy.present" end,
    absent = function() return "policy.absent" end,
    is_not = function(v) return ("policy.is_not(%s)"):format(value_text(v.value)) end,
}

function value_text(v) return VALUES[v.is](v) end

local function tests_text(tests)
    return joined(tests, function(test) return key(test[1]) .. " = " .. value_text(test[2]) end)
end

local function ctx_text(m)
    local parts, message = {}, {}
    if #m.tests > 0 then parts[1] = tests_text(m.tests) end
    if m.message then message[1] = tests_text(m.message) end
    if m.headers then message[#message + 1] = "headers = { " .. tests_text(m.headers) .. " }" end
    if #message > 0 then parts[#parts + 1] = "message = { " .. table.concat(message, ", ") .. " }" end
    return "policy.ctx { " .. table.concat(parts, ", ") .. " }"
end

local function matcher_text(m)
    if m.form == "function" then return functions.text(m, literal) end
    if m.form == "ctx" then return ctx_text(m) end
    if m.form == "fields" then return "{ " .. tests_text(m.tests) .. " }" end
    return ("policy.%s(%s)"):format(m.form, joined(m.parts, matcher_text))
end

-- Chains --------------------------------------------------------------------------------------------------------------

local NAMED = { "attempts", "delay", "backoff", "factor", "max_delay", "jitter", "hint" }

local function named_text(args)
    local parts = {}
    assert(not args.delays or args.delays[1], "a list without delays can't be written")
    for _, delay in ipairs(args.delays or {}) do parts[#parts + 1] = literal(delay) end
    for _, name in ipairs(NAMED) do
        if args[name] ~= nil then parts[#parts + 1] = name .. " = " .. literal(args[name]) end
    end
    return #parts > 0 and " { " .. table.concat(parts, ", ") .. " }" or "()"
end

-- The forms "(n)", "(n, delay)" and so on.
local function positional_text(args)
    local parts = {}
    for i = 1, 3 do
        local value = args[NAMED[i]]
        if value ~= nil then parts[#parts + 1] = literal(value) end
    end
    return "(" .. table.concat(parts, ", ") .. ")"
end

local function step_text(step)
    if step.args then
        return ":" .. step.word .. (step.form:find("%(") and positional_text or named_text)(step.args)
    end
    local word = step.queue or step.note
    return (":%s(%s)"):format(step.word, word and literal(word) or "")
end

-- Rules ---------------------------------------------------------------------------------------------------------------

local function scope_text(scope)
    return ("policy.%s(%s)"):format(scope.kind, scope.name and literal(scope.name) or "")
end

local function types_text(types)
    if #types == 1 then return literal(types[1]) end
    return "{ " .. joined(types, literal) .. " }"
end

local function on_text(s)
    local plain = not s.matcher
    if s.word == "on" and #s.types == 1 and s.types[1] == "Error" and plain and s.style > 1 then
        return ":default()"
    end
    return (":%s(%s%s)"):format(s.word, types_text(s.types), plain and "" or ", " .. matcher_text(s.matcher))
end

local function chain_text(chain)
    local steps = {}
    for i, step in ipairs(chain) do steps[i] = step_text(step) end
    return table.concat(steps)
end

-- How a rule is written down. The line of a rule is that of its `on`.
local STYLES = {}

-- On one line.
STYLES[1] = function(out, s) s.line = out(scope_text(s.scope) .. on_text(s) .. chain_text(s.chain)) end
STYLES[2] = STYLES[1] -- with `default`, as the others

-- A line for each step.
STYLES[3] = function(out, s)
    out(scope_text(s.scope))
    s.line = out("    " .. on_text(s))
    for _, step in ipairs(s.chain) do out("    " .. step_text(step)) end
end

-- Kept in a variable, and gone on with at the end of the file.
STYLES[4] = function(out, s, later)
    later.kept = (later.kept or 0) + 1
    local name = "kept" .. later.kept
    s.line = out(("local %s = %s%s%s"):format(name, scope_text(s.scope), on_text(s), step_text(s.chain[1])))
    for i = 2, #s.chain do later[#later + 1] = { of = s, line = name .. " = " .. name .. step_text(s.chain[i]) } end
end

-- With its arguments on lines of their own.
STYLES[5] = function(out, s)
    s.line = out(scope_text(s.scope) .. ":" .. s.word .. "(")
    out("    " .. types_text(s.types) .. (s.matcher and "," or ""))
    if s.matcher then out("    " .. matcher_text(s.matcher)) end
    out(")" .. chain_text(s.chain))
end

-- Once for each type, in a loop.
STYLES[6] = function(out, s)
    out(("for _, name in ipairs { %s } do"):format(joined(s.types, literal)))
    local matcher = s.matcher and ", " .. matcher_text(s.matcher) or ""
    s.line = out(("    %s:%s(name%s)%s"):format(scope_text(s.scope), s.word, matcher, chain_text(s.chain)))
    out("end")
end

-- Other statements ----------------------------------------------------------------------------------------------------

local function option_text(value)
    if type(value) ~= "table" then return literal(value) end
    if value.header then return ("policy.header(%q)"):format(value.header) end
    return value[1] and "{ " .. joined(value, literal) .. " }" or literal(value)
end

local function limit_text(limit)
    local names = {}
    for name in pairs(limit) do names[#names + 1] = name end
    table.sort(names)
    return " { " .. joined(names, function(name) return name .. " = " .. option_text(limit[name]) end) .. " }"
end

local function setting_text(s)
    if s.setting == "override" and s.value then return "(" .. overrides.text(s.value, literal) .. ")" end
    if s.setting == "notify" and s.value then return "(function(event) print(event.name) end)" end
    if (s.setting == "rate_limit" or s.setting == "limit") and s.value then return limit_text(s.value) end
    return "(" .. literal(s.value) .. ")"
end

local PRESET_OPTIONS = { "immediate", "delayed", "increase", "max_age" }

local function preset_text(s)
    local options = s.options
    if not options then return ("policy.preset.%s(%s)"):format(s.preset, scope_text(s.scope)) end
    local parts = {}
    for _, name in ipairs(PRESET_OPTIONS) do
        if options[name] ~= nil then parts[#parts + 1] = name .. " = " .. literal(options[name]) end
    end
    if options.unrecoverable then
        parts[#parts + 1] = "unrecoverable = { " .. joined(options.unrecoverable, literal) .. " }"
    end
    return ("policy.preset.%s(%s, { %s })"):format(s.preset, scope_text(s.scope), table.concat(parts, ", "))
end

local function unrecoverable_text(s)
    local matcher = s.matcher and ", " .. matcher_text(s.matcher) or ""
    return (":unrecoverable(%s%s)"):format(types_text(s.unrecoverable), matcher)
end

local function write(out, s, later)
    if s.word then return STYLES[s.style](out, s, later) end
    if s.preset then
        s.line = out(preset_text(s))
        return
    end
    local scope = scope_text(s.scope)
    if s.unrecoverable then
        s.line = out(scope .. unrecoverable_text(s))
    elseif s.include then
        s.line = out(scope .. ":include(" .. scope_text(s.include) .. ")")
    else
        s.line = out(scope .. ":" .. s.setting .. setting_text(s))
    end
end

-- Up to three in one statement.
local function write_parents(out, parents, says)
    for first = 1, #parents, 3 do
        local own = table.move(parents, first, math.min(first + 2, #parents), 1, {})
        local any = false
        for _, entry in ipairs(own) do any = any or says(entry) end
        out(any and "policy.errors {" or "")
        for _, entry in ipairs(own) do
            out(says(entry) and ("    [%q] = %q,"):format(entry.child, entry.parent) or "")
        end
        out(any and "}" or "")
    end
end

local function always() return true end

return function(tree, says)
    local lines, later, silent = {}, {}, false
    says = says or always
    local function out(line)
        lines[#lines + 1] = silent and "" or line
        return #lines
    end
    out('local policy = require "mulligan.policy"')
    write_parents(out, tree.parents, says)
    for _, statement in ipairs(tree.statements) do
        silent = not says(statement)
        write(out, statement, later)
    end
    for _, rest in ipairs(later) do
        silent = not says(rest.of)
        out(rest.line)
    end
    return table.concat(lines, "\n") .. "\n"
end
