-- matcher.lua: whether a matcher passes.
--
--   a matcher:  nil
--               { form = "fields", tests = { { name, value }, … } }
--               { form = "ctx", tests = { … }, message = { … } or nil, headers = { … } or nil }     lists of the same
--               { form = "all" | "any" | "none", parts = { matcher, … } }
--               { form = "function", kind = …, … }: naive/functions.lua
--   a value:    { is = "literal", value = … }, { is = "list", values = { … } }
--               { is = "between", low =, high = }, { is = "at_least", low = }, { is = "at_most", high = }
--               { is = "contains" | "matches", text = … }, { is = "present" }, { is = "absent" }
--               { is = "is_not", value = value }

local facts = require "support.naive.facts"
local functions = require "support.naive.functions"
local saw = require "support.naive.counts".saw

local matcher = {}

local RAISED, OVER = {}, {} -- what is raised where the policy's matcher would raise; by its budget
local SKIPPED = {}          -- ... where the decision's budget leaves it none

-- Steps, of 1,000,000 for a decision: a call over its budget, and the telling of one that raised. Others cost next to
-- nothing.
local CALL, TELLING = 100000, 10000
matcher.DECISION = 10 * CALL

local is_spent -- the decision's budget was spent before the matcher that is looked at

-- Values --------------------------------------------------------------------------------------------------------------

local function is_number(x) return type(x) == "number" end

-- What matching a pattern means is what string.find does; this one goes over the budget on a long text.
matcher.BOMB = ".-.-b"
local LONG = 200

local function finds(text, pattern)
    if is_spent then error(SKIPPED) end
    if pattern == matcher.BOMB and #text >= LONG then
        saw("pattern", "over the budget")
        error(OVER)
    end
    local found = text:find(pattern) ~= nil
    saw("pattern", ("%s %s"):format(pattern, found and "finds" or "doesn't"))
    return found
end

local values = {
    literal = function(v, x) return x == v.value end,
    list = function(v, x)
        for _, value in ipairs(v.values) do
            if x == value then return true end
        end
        return false
    end,
    between = function(v, x) return is_number(x) and x >= v.low and x <= v.high end,
    at_least = function(v, x) return is_number(x) and x >= v.low end,
    at_most = function(v, x) return is_number(x) and x <= v.high end,
    contains = function(v, x) return type(x) == "string" and x:find(v.text, 1, true) ~= nil end,
    matches = function(v, x) return type(x) == "string" and finds(x, v.text) end,
    present = function(_, x) return x ~= nil end,
    absent = function(_, x) return x == nil end,
    is_not = function(v, x) return not matcher.matches(v.value, x) end,
}

local function kind_of(x) return math.type(x) or type(x) end

-- Whether a value matches what is there (a string, number or boolean; nil: nothing is).
function matcher.matches(v, x)
    local answer = values[v.is](v, x)
    saw("value", (v.is == "literal" and kind_of(v.value) or v.is) .. (answer and " matches" or " doesn't"))
    if v.is == "is_not" then saw("value", "is_not of " .. v.value.is) end
    if answer and is_number(v.value) and math.type(v.value) ~= math.type(x) then saw("value", "503 is 503.0") end
    return answer
end

-- Forms ---------------------------------------------------------------------------------------------------------------

-- Every test must match; they are looked at in the order of their names, and no further than the first that doesn't.
local function all_match(tests, family, get)
    local sorted = table.move(tests, 1, #tests, 1, {})
    table.sort(sorted, function(a, b) return a[1] < b[1] end)
    for _, test in ipairs(sorted) do
        local answer = matcher.matches(test[2], get(test[1]))
        saw(family, test[1] .. (answer and " matches" or " doesn't"))
        if not answer then return false end
    end
    return true
end

local holds -- whether a matcher does; raises RAISED, OVER or SKIPPED

local forms = {
    fields = function(m, view)
        return all_match(m.tests, "field", function(name) return facts.field(view.err, name) end)
    end,
    ctx = function(m, view)
        local failure = view.failure
        return all_match(m.tests, "ctx", function(name) return facts.ctx(failure, name) end)
            and all_match(m.message or {}, "message", function(name) return facts.message(failure, name) end)
            and all_match(m.headers or {}, "header", function(name) return facts.header(failure, name) end)
    end,
    ["function"] = function(m, view)
        if is_spent then error(SKIPPED) end
        local good, answer = pcall(functions.run, m, view)
        saw("function", m.kind)
        if not good then error(m.kind == "endless" and OVER or RAISED) end
        return answer ~= nil and answer ~= false
    end,
    all = function(m, view)
        for _, part in ipairs(m.parts) do
            if not holds(part, view) then return false end
        end
        return true
    end,
    any = function(m, view)
        for _, part in ipairs(m.parts) do
            if holds(part, view) then return true end
        end
        return false
    end,
    none = function(m, view)
        for _, part in ipairs(m.parts) do
            if holds(part, view) then return false end
        end
        return true
    end,
}

local function depth_of(m)
    local deepest = 0
    for _, part in ipairs(m.parts or {}) do deepest = math.max(deepest, depth_of(part)) end
    return deepest + 1
end

function holds(m, view)
    local good, answer = pcall(forms[m.form], m, view)
    local raised = answer == RAISED or answer == OVER
    if not good and not raised and answer ~= SKIPPED then error(answer, 0) end
    saw("matcher", m.form .. (good and (answer and " passes" or " loses") or raised and " raises" or " is skipped"))
    if not good then error(answer) end
    for _, part in ipairs(m.parts or {}) do saw("matcher", part.form .. " in " .. m.form) end
    return answer
end

-- true, false, "raised" or "skipped". `err` is the error that is looked at: the failure's own, or a cause. What it
-- costs is taken from `case.steps`.
function matcher.passes(case, m, err)
    if not m then return true end
    is_spent = case.steps <= 0
    local good, answer = pcall(holds, m, { reading = case.reading, failure = case.failure, err = err })
    if good then return answer end
    if answer == SKIPPED then return "skipped" end
    if answer ~= RAISED and answer ~= OVER then error(answer, 0) end
    case.steps = case.steps - TELLING - (answer == OVER and CALL or 0)
    return "raised"
end

-- Counts the matcher of the rule that decided.
function matcher.count_decides(m)
    saw("matcher", (m and m.form or "none at all") .. " decides")
    if m then saw("matcher depth", depth_of(m)) end
end

return matcher
