-- compile_context.lua: what one load of a policy has found so far: mistakes, types, scopes, functions.
--
-- Mistakes are noted here and not raised: a policy's own pcall must not swallow them.

local context = {}
context.__index = context

local key_order = require "mulligan.policy.key_order"
local offers = require "mulligan.sandbox.offers"

local MOST_PROBLEMS = 100

function context.new()
    return setmetatable({
        problems = {},
        noted = {},
        is_host = offers.is_host, -- it is the host policy
        host = offers.host, -- what the host policy told; nil: there is none
        parents = offers.host and offers.host.parents or {}, -- child -> { parent =, place = }
        scopes = {}, -- kind -> name or true -> scope
        functions = {},
        numbers = {}, -- function -> its place among the functions, from 0
        -- By what gave them, as hearing.recall has it:
        values = { retry = {}, redeliver = {}, queue = {}, discard = {} }, -- of the words of rules
        matchers = {},
        closed = false, -- the load is over
        pinned = nil, -- where a preset is called that is at work: all that it says stands there
    }, context)
end

-- number_of gives the number of a function, the same one each time.
function context:number_of(given)
    local number = self.numbers[given]
    if not number then
        number = #self.functions
        self.numbers[given] = number
        self.functions[number + 1] = given
    end
    return number
end

-- problem notes a mistake, the same one once: a loop may make it a thousand times.
function context:problem(place, text)
    place = self.pinned or place
    local key = ("%s\0%d\0%s"):format(place.file, place.line, text)
    if self.noted[key] or #self.problems > MOST_PROBLEMS then
        return
    end
    self.noted[key] = true
    if #self.problems == MOST_PROBLEMS then
        text = ("here and further on: more than %d mistakes; the rest isn't listed"):format(MOST_PROBLEMS)
    end
    self.problems[#self.problems + 1] = { file = place.file, line = place.line, text = text, number = #self.problems }
end

-- sorted gives the mistakes by file and line; those of one line in the order in which they came.
function context:sorted()
    table.sort(self.problems, function(a, b)
        if a.file ~= b.file then
            return key_order.before(a.file, b.file)
        elseif a.line ~= b.line then
            return a.line < b.line
        end
        return a.number < b.number
    end)
    return self.problems
end

return context
