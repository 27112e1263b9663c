-- functions.lua: what each kind of function matcher gives; spec/support/generate/functions.lua writes the same as Lua
-- text. What raises here raises there.

local facts = require "support.naive.facts"

local functions = {}

local function is(view, err, type) return facts.has(facts.lineage(view.reading, err), type) end

-- The causes that a function sees behind the error that it is given: those of the failure's error, 16 deep.
local function causes(view)
    local depth, err = 0, view.failure.error
    while err ~= view.err do
        depth, err = depth + 1, err.cause
    end
    local list, cause = {}, err.cause
    while cause and depth < 16 do
        list[#list + 1] = cause
        depth, cause = depth + 1, cause.cause
    end
    return list
end

local kinds = {
    always = function() return true end,
    never = function() return nil end,
    no = function() return false end,
    zero = function() return 0 end,
    empty = function() return "" end,
    raises = function() error("raised") end,
    writes = function() error("read-only") end,
    writes_ctx = function() error("read-only") end,
    endless = function() error("over the budget") end,
    equals = function(m, view) return facts.raw(view.err, m.name) == m.value end,
    at_least = function(m, view) return facts.raw(view.err, m.name) >= m.value end,
    counter = function(m, view) return facts.counter(view.failure, m.name) >= m.value end,
    is = function(m, view) return is(view, view.err, m.type) end,
    type = function(m, view) return view.err.type == m.type end,
    cause_is = function(m, view)
        local cause = causes(view)[1]
        return cause and is(view, cause, m.type)
    end,
    cause_type = function(m, view) return causes(view)[1].type == m.type end,
    causes = function(m, view) return #causes(view) >= m.value end,
    tag = function(m, view)
        local tags = facts.raw(view.err, "tags")
        return type(tags) == "table" and tags[1] == m.value
    end,
    detail = function(m, view) return facts.raw(view.err, "detail").k == m.value end,
    find = function(m, view) return facts.raw(view.err, "message"):find(m.value, 1, true) end,
    message_type = function(m, view) return facts.message(view.failure, "type") == m.value end,
    message_size = function(m, view) return facts.message(view.failure, "size") >= m.value end,
    header = function(m, view) return facts.header(view.failure, m.name) == m.value end,
    consumer = function(m, view) return facts.ctx(view.failure, "consumer") == m.value end,
    transport = function(m, view) return facts.ctx(view.failure, "transport") == m.value end,
}

-- What the function returns to the matcher `m`; raises where it raises.
function functions.run(m, view) return kinds[m.kind](m, view) end

return functions
