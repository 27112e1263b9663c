-- opaque_value.lua: what a word makes for another one to take, such as the value that policy.between gives:
-- an object that a policy can hand on and do nothing else with.

local made = {}

local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local text = require "mulligan.policy.text"

-- object -> { context =, kind = "value", "matcher", "per" or "answer", word =, plain =, depth = }
local inside = setmetatable({}, { __mode = "k" })

local purposes = {
    value = "is the value of a field, { status = %s }, and nothing else can be done with it",
    matcher = 'is a matcher, on("TimeoutError", %s), and nothing else can be done with it',
    per = 'is what a limit counts for, limit { rate = "10/s", per = %s }, and nothing else can be done with it',
    answer = "is what an override may return, and nothing else can be done with it; a rule begins with on",
}

local function refuse(object)
    local it = inside[object]
    if it.context.closed then
        error("a policy can't be changed once it is loaded", 2)
    end
    local called = "policy." .. it.word
    it.context:problem(dispatch.place(), called .. " " .. purposes[it.kind]:format(called))
    return error_value
end

local metatable = { __index = refuse, __newindex = refuse, __call = refuse, __metatable = false }

-- new gives an object of a kind that stands for `plain`; `word` is its word of policy, as a mistake
-- shows it. `depth` is for one that has others in it, as made.around gives it.
function made.new(context, kind, word, plain, depth)
    local object = setmetatable({}, metatable)
    inside[object] = { context = context, kind = kind, word = word, plain = plain, depth = depth or 1 }
    return object
end

local DEEPEST = 100 -- MULL__NESTING_MAX of src/policy/model.h

-- around gives the depth of what `word` makes of the first n of the given things; nil, noted, where
-- that is more than can be looked at.
function made.around(context, here, word, given, n)
    local deepest = 1
    for i = 1, n do
        local it = inside[given[i]]
        deepest = math.max(deepest, it and it.depth or 1)
    end
    if deepest < DEEPEST then
        return deepest + 1
    end
    context:problem(here, ("%s is nested more than %d deep"):format(word, DEEPEST))
end

-- plain gives what an object of a kind stands for; nil: the value is none.
function made.plain(kind, value)
    local it = value ~= nil and inside[value] or nil
    return it and it.kind == kind and it.plain or nil
end

-- show gives a value as a mistake shows it.
function made.show(value)
    local it = value ~= nil and inside[value]
    return it and "policy." .. it.word or text.show(value)
end

return made
