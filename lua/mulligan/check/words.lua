-- words.lua: what a finding says to people. Its code is "MUL" and its kind, of src/analysis/lint.h;
-- docs/findings/ has a page for each.

local duration = require "mulligan.format.duration"
local text = require "mulligan.policy.text"

local words = {}

local show = text.show

-- Where another statement is: "line 3", with its file where it is in another one.
local function place(finding)
    local other = finding.other
    if other.file == finding.file then
        return "line " .. other.line
    end
    return ("%s:%d"):format(other.file, other.line)
end

-- "consumer PaymentHandler" of a label; "the bus".
local function scope(label)
    local kind, name = label:match("^(%l+):(.*)$")
    return kind and ("%s %s"):format(kind, show(name)) or "the " .. label
end

local function unrecoverable(finding)
    local other = finding.other
    local whose = other.type == finding.type and "" or (" and so is every %s that brings no lineage of its own")
        :format(text.name(finding.type))
    if not other.file then
        return ("this rule for %s can't come into play: %s is unrecoverable,%s unless a rule names it"):format(
            show(finding.type), text.name(other.type), whose)
    elseif finding.word then
        return ("this rule for %s can't come into play: what its matcher asks for is unrecoverable by %s%s"):format(
            show(finding.type), place(finding), whose ~= "" and ", where it brings no lineage of its own" or "")
    end
    return ("this rule for %s can't come into play: %s is unrecoverable by %s%s"):format(show(finding.type),
        text.name(other.type), place(finding), whose ~= "" and "," .. whose or "")
end

local no_effect = {
    jitter = "jitter has no effect: every delay is 0",
    max_delay = "max_delay has no effect: no delay comes near it",
    factor = "factor has no effect: there is no second delay that it could make longer",
}

local function without_effect(finding)
    if finding.word == "delay" then
        return ("a delay of %s has no effect: max_delay is %s, and nothing waits longer"):format(
            duration.exact(finding.number), duration.exact(finding.limit))
    end
    return no_effect[finding.word] or finding.word .. " does nothing; leave it out"
end

local function too_late(f)
    local why = f.word == "deadline" and "it would begin after the deadline"
        or "by then the message is older than max_age"
    return ("redelivery %d can't come: %s, %s"):format(f.number, why, duration.exact(f.limit))
end

-- What a search was for that stopped.
local searches = {
    never = "rules that can't come into play",
    misspelt = "types that look misspelt",
    limits = "what max_age, deadline and max_attempts take from rules",
    max_age = "a max_age without effect",
    override = "overrides that nothing ends",
}

local function no_default(f)
    local rest = f.word and "left to the override" or "dead-lettered"
    return ("%s has rules and no default: what they don't match is %s, and the rules of %s aren't asked; "
        .. "add a default()%s"):format(scope(f.scope), rest, scope(f.other.scope),
        f.number == 1 and ", or include them" or "")
end

local function no_rules(f)
    return f.word and "the policy has no rules: what no override decides is a dead letter, and config.retry and "
        .. "config.redeliver have 0 attempts" or "the policy has no rules: every failure is a dead letter"
end

-- What a comparison that was written as a text may have been meant to be, by its operator.
local function at_least(number) return ("policy.at_least(%s)"):format(number) end
local function at_most(number) return ("policy.at_most(%s)"):format(number) end
local function is_not(number) return ("policy.is_not(%s)"):format(number) end

local meant = {
    [">="] = at_least,
    ["<="] = at_most,
    [">"] = function(number) return at_least(math.tointeger(number) and math.tointeger(number) + 1 or number) end,
    ["<"] = function(number) return at_most(math.tointeger(number) and math.tointeger(number) - 1 or number) end,
    ["!="] = is_not, ["~="] = is_not, ["<>"] = is_not,
    ["="] = tostring, ["=="] = tostring,
}

local function compares_text(f)
    local operator, number = f.other.type:match("^ *([<>=!~]+) *(%-?[%d.]+)")
    return ("%s is compared with the text %s, letter by letter; did you mean %s?"):format(text.name(f.word),
        show(f.other.type), meant[operator](math.tointeger(tonumber(number)) or number))
end

local of = {
    function(f) return ("this rule for %s can't come into play: %s has no matcher, and decides before it"):format(
        show(f.type), place(f)) end,
    function(f) return ("this rule for %s can't come into play: the matcher of %s passes wherever its own does")
        :format(show(f.type), place(f)) end,
    unrecoverable,
    function(f) return ("this rule for %s is replaced by %s"):format(show(f.type), place(f)) end,
    no_default,
    function(f) return ("%s looks misspelt; did you mean %s?"):format(show(f.type), show(f.other.type)) end,
    too_late,
    function(f) return ("this rule asks for up to %d calls, of which max_attempts lets %d through"):format(f.number,
        f.limit) end,
    function(f) return ("this matcher for %s can never pass"):format(show(f.type)) end,
    without_effect,
    function() return "max_age has no effect: nothing is redelivered where it holds" end,
    function(f) return ("%s has no rules that could be included"):format(scope(f.other.scope)) end,
    no_rules,
}

of[15] = function(f)
    return ("consumer %s reads the queue %s, where the dead letters of consumer %s go"):format(show(f.word),
        show(f.other.type), show(f.other.scope))
end

of[16] = function(f)
    return ("a delay of up to %s is made of several, since transport %s can't delay for longer than %s"):format(
        duration.about(f.number), show(f.word), duration.exact(f.limit))
end

of[17] = function(f)
    return ("there is no %s%s"):format(scope(f.scope), f.near and "; did you mean " .. show(f.near) .. "?" or "")
end

of[18] = function(f)
    return ("from here on check hasn't looked for %s: it would take too long"):format(searches[f.word])
end

of[19] = function()
    return "nothing ends what this override calls again: no max_attempts, max_age or deadline is in force with it"
end

of[20] = compares_text

function words.code(finding)
    return ("MUL%03d"):format(finding.kind)
end

function words.of(finding)
    return of[finding.kind](finding)
end

return words
