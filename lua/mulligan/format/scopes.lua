-- scopes.lua: which scopes were looked at for a consumer on a transport, in words.

local ansi = require "mulligan.format.ansi"
local text = require "mulligan.policy.text"

local scopes = {}

-- place gives where something is said, as seen from here by `seen`, which cli.sight gave.
function scopes.place(seen, of)
    return of.file and ("%s:%d"):format(text.clean(seen(of.file, of.scope)), of.line) or "built in"
end

local MOST_INCLUDES = 20

local function included(seen, scope)
    local names = {}
    for number, include in ipairs(scope.includes or {}) do
        names[number] = ("%s (%s)"):format(text.name(include.scope), scopes.place(seen, include))
    end
    return #names > 0 and ", with those of " .. text.list(text.some(names, MOST_INCLUDES), "and") or ""
end

-- standing gives what became of a scope.
local function standing(seen, scope)
    if not scope.exists then
        return ansi.dim("no scope of its own in the policy")
    elseif scope.in_force then
        return ansi.bold("in force: " .. text.count(scope.rules, "rule", "rules")) .. included(seen, scope)
    elseif scope.rules == 0 then
        return ansi.dim("has no rules, so that the next one is asked")
    end
    return ansi.dim("not asked, since a nearer one has rules: " .. text.count(scope.rules, "rule", "rules"))
end

-- lines gives a line for each scope, the nearest first.
function scopes.lines(seen, of)
    local rows = {}
    for number, scope in ipairs(of) do
        rows[number] = { text.name(scope.scope), standing(seen, scope) }
    end
    return ansi.columns(rows, 2)
end

-- in_force gives the label of the scope whose rules are in force; nil: no scope has rules.
function scopes.in_force(of)
    for _, scope in ipairs(of) do
        if scope.in_force then
            return scope.scope
        end
    end
end

-- whom gives for whom something holds: "consumer C on transport t".
function scopes.whom(of)
    local consumer = of.consumer and "consumer " .. text.name(of.consumer) or "a consumer without a scope"
    local transport = of.transport and "transport " .. text.name(of.transport)
        or of.consumer and "a transport without a scope" or "a transport without one"
    return consumer .. " on " .. transport
end

return scopes
