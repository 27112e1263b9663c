-- matcher.lua: matchers in words, and why one lost.

local text = require "mulligan.policy.text"

local matcher = {}

local MOST_PIECES = 60

local pieces -- so many more tests, values and parts of a matcher are shown, and then "…"

-- each gives the words of each item.
local function each(items, words)
    local out = {}
    for number, item in ipairs(items) do
        if pieces == 0 then
            out[number] = "…"
            break
        end
        pieces = pieces - 1
        out[number] = words(item)
    end
    return out
end

local function shown(values)
    return text.list(each(values, text.show))
end

local function bounds(value)
    if value.low ~= nil and value.high ~= nil then
        return ("from %s to %s"):format(text.show(value.low), text.show(value.high))
    elseif value.low ~= nil then
        return "at least " .. text.show(value.low)
    end
    return "at most " .. text.show(value.high)
end

-- What is tested, as the policy names it.
local function fact(test)
    local name = test.name:find("^[%a_][%w_]*$") and text.name(test.name) or text.show(test.name)
    if test.subject == "ctx" then
        return "ctx." .. name
    elseif test.subject == "message" then
        return "ctx.message." .. name
    elseif test.subject == "header" then
        return "header " .. text.show(test.name)
    end
    return name
end

-- Each gives what stands behind the name of a fact: where the value is wanted, and where it isn't.
local wanted = {
    one_of = function(value, is)
        return (is and "is " or "is not ") .. shown(value.literals)
    end,
    between = function(value, is)
        return (is and "is " or "is not ") .. bounds(value)
    end,
    contains = function(value, is)
        return (is and "contains " or "doesn't contain ") .. text.show(value.text)
    end,
    matches = function(value, is)
        return (is and "matches " or "doesn't match ") .. text.show(value.text)
    end,
    present = function(_, is)
        return is and "is there" or "is absent"
    end,
    absent = function(_, is)
        return is and "is absent" or "is there"
    end,
}

wanted["not"] = function(value, is)
    return wanted[value.value.kind](value.value, not is)
end

local describe

local function described(parts, joint)
    return table.concat(each(parts, function(part)
        local words = describe(part)
        local is_simple = part.kind == "function" or part.kind == "tests" and #part.tests == 1
        return (is_simple or #parts == 1) and words or "(" .. words .. ")"
    end), joint)
end

local function wanted_of(test)
    return ("%s %s"):format(fact(test), wanted[test.value.kind](test.value, true))
end

function describe(of)
    if of.kind == "function" then
        return "a function"
    elseif of.kind == "tests" then
        return #of.tests > 0 and table.concat(each(of.tests, wanted_of), " and ") or "always"
    elseif of.kind == "none" then
        return "none of: " .. described(of.parts, ", ")
    end
    return described(of.parts, of.kind == "all" and " and " or " or ")
end

-- describe gives a matcher in words; "always" for none.
function matcher.describe(of)
    pieces = MOST_PIECES
    return of and describe(of) or "always"
end

-- ---- Why one lost ------------------------------------------------------------------------------

-- Each gives what stands behind "status is 404", where that isn't what was wanted.
local missed = {
    one_of = function(value)
        return ", not " .. shown(value.literals)
    end,
    between = function(value)
        return ", not " .. bounds(value)
    end,
    contains = function(value)
        return ", which doesn't contain " .. text.show(value.text)
    end,
    matches = function(value)
        return ", which doesn't match " .. text.show(value.text)
    end,
    present = function()
        return ""
    end,
    absent = function()
        return ", and should be absent"
    end,
}

missed["not"] = function(value)
    local inner = value.value
    if inner.kind == "present" then
        return missed.absent()
    elseif inner.kind == "absent" then
        return missed.present()
    elseif inner.kind == "not" then
        return missed[inner.value.kind](inner.value)
    end
    return ", and should be one that " .. wanted[inner.kind](inner, false)
end

local function test_lost(test)
    if test.given == nil then
        local kind = test.value.kind
        local says_more = kind == "one_of" or kind == "between"
        return fact(test) .. " is absent" .. (says_more and missed[kind](test.value) or "")
    end
    return ("%s is %s%s"):format(fact(test), text.show(test.given), missed[test.value.kind](test.value))
end

-- lost gives why a candidate lost, or what it raised.
function matcher.lost(candidate)
    pieces = MOST_PIECES
    if candidate.why then
        return "raised: " .. text.clean(candidate.why)
    elseif candidate.test then
        return test_lost(candidate.test)
    elseif candidate.matcher.kind == "function" then
        return "its function gave nil or false"
    elseif candidate.matcher.kind == "all" then
        return "not all of its parts pass"
    end
    return candidate.matcher.kind == "any" and "none of its parts passes" or "one of its parts passes"
end

return matcher
