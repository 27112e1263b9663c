-- facts.lua: what the naive evaluator knows of a failure: fields, counters, lineages.

local saw = require "support.naive.counts".saw

local facts = {}

-- Lineages ------------------------------------------------------------------------------------------------------------

-- The type, then the sent lineage, both without Error and repeats, then the declared parents of the last of these;
-- Error comes last. `tree` has the parents.
function facts.lineage(tree, err)
    local names, seen = {}, { Error = true }
    local function add(name)
        if not seen[name] then
            seen[name] = true
            names[#names + 1] = name
        end
    end
    add(err.type)
    for _, name in ipairs(err.lineage or {}) do add(name) end
    if err.lineage and #names > 1 then saw("lineage", "sent") end
    local last = names[#names]
    while last and last ~= "Error" do
        add(last)
        local parent = "Error"
        for _, p in ipairs(tree.parents) do
            if p.child == last then parent = p.parent end
        end
        if parent ~= "Error" then saw("lineage", "declared") end
        last = parent
    end
    names[#names + 1] = "Error"
    return names
end

function facts.has(lineage, name)
    for _, n in ipairs(lineage) do
        if n == name then return true end
    end
    return false
end

-- Fields and counters -------------------------------------------------------------------------------------------------

-- A field as functions see it: lists and maps, too; null is absent.
function facts.raw(err, name)
    if name == "message" or name == "stack" then return err[name] or "" end
    if name == "lineage" or name == "cause" or type(err[name]) == "userdata" then return nil end
    return err[name]
end

-- A field as table matchers see it: a string, number, boolean, or nil.
function facts.field(err, name)
    local value = facts.raw(err, name)
    if type(value) == "table" then return nil end
    return value
end

local DEFAULTS = { attempt = 1, redeliveries = 0, deliveries = 1, age_ms = 0 }

function facts.counter(failure, name)
    if name == "calls" then -- as doubles: the sum of two large ones doesn't wrap around
        return failure.calls or facts.counter(failure, "attempt") + 0.0 + facts.counter(failure, "redeliveries")
    end
    return failure[name] or DEFAULTS[name]
end

-- What ctx holds under a name.
function facts.ctx(failure, name)
    if name == "calls" or DEFAULTS[name] then return facts.counter(failure, name) end
    return failure[name]
end

-- What ctx.message holds; a message that says no size has no bytes.
function facts.message(failure, name)
    local value = failure.message and failure.message[name]
    if name == "size" then return value or 0 end
    return value
end

function facts.header(failure, name)
    local headers = failure.message and failure.message.headers
    return headers and headers[name]
end

return facts
