-- types.lua: lists of error types, and policy.errors { Child = "Parent", ... }.

local types = {}

local error_value = require "mulligan.policy.error_value"
local key_order = require "mulligan.policy.key_order"
local text = require "mulligan.policy.text"
local dsl_object = require "mulligan.policy.dsl_object"

local ROOT = "Error"

local LIST = '{ "TimeoutError", "HttpError" }'

-- read_list reads a list of types; nil where something in it was wrong. `prefix` begins a mistake.
function types.read_list(context, here, prefix, given)
    local keys = key_order.keys(given)
    local count = keys and #keys or 0
    if count == 0 or keys[count] ~= count then
        context:problem(here, ("%sa list of types must be names and nothing else, %s"):format(prefix, LIST))
        return nil
    end
    local seen, good = {}, true
    for i = 1, count do
        local name = dsl_object.name(context, here, ("%stype %d of the list"):format(prefix, i), given[i])
        if name and seen[name] then
            context:problem(here, ("%s%s is in the list of types twice"):format(prefix, text.show(name)))
        end
        good = good and name ~= nil and not seen[name]
        seen[name or 0] = true
    end
    return good and table.move(given, 1, count, 1, {}) or nil
end

-- The way from a type up to the root, as far as it is declared.
local function way_up(context, type_name)
    local way = { type_name }
    local entry = context.parents[type_name]
    while entry do
        way[#way + 1] = entry.parent
        entry = context.parents[entry.parent]
    end
    return way
end

-- What speaks against a parent for a child; nil: nothing.
local function objection(context, child, parent)
    if child == ROOT then
        return "Error is the root of all types and has no parent"
    end
    local earlier = context.parents[child]
    if earlier and earlier.parent ~= parent then
        return ("%s has the parent %s already (%s:%d); a type has one"):format(text.name(child),
            text.show(earlier.parent), earlier.place.file, earlier.place.line)
    end
    local way = way_up(context, parent)
    for _, above in ipairs(way) do
        if above == child then
            table.insert(way, 1, child)
            return ("%s can't be a child of %s: that goes round in a circle (%s)"):format(text.name(child),
                text.show(parent), text.way(way, " < "))
        end
    end
end

local function declare(context, here, child, parent)
    child = dsl_object.name(context, here, "the name of an error type", child)
    parent = dsl_object.name(context, here, "the parent of " .. text.show(child), parent)
    if not child or not parent then
        return
    end
    local why = objection(context, child, parent)
    if why then
        context:problem(here, why)
    elseif not context.parents[child] then
        context.parents[child] = { parent = parent, place = here }
    end
end

-- errors is the word policy.errors.
function types.errors(context, here, n, declared)
    if dsl_object.too_many(context, here, "errors", n, 1, 'one table: errors { DeadlockError = "DatabaseError" }')
        or declared == error_value then
        return
    end
    local keys, strange
    if type(declared) == "table" then
        keys, strange = key_order.keys(declared)
    end
    if strange then
        context:problem(here, ("the name of an error type must be a string, not a %s"):format(strange))
    elseif not keys then
        context:problem(here, ('errors takes a table, errors { DeadlockError = "DatabaseError" }, not %s'):format(
            text.show(declared)))
    elseif #keys == 0 then
        context:problem(here, "errors has an empty table; leave it out, or name a child and its parent in it")
    else
        for _, child in ipairs(keys) do
            if math.type(child) then
                context:problem(here, ('errors takes child = parent, errors { DeadlockError = "DatabaseError" }; '
                    .. "%s has no parent"):format(text.show(declared[child])))
            else
                declare(context, here, child, declared[child])
            end
        end
    end
end

-- parent_of gives what was declared, child -> parent; list gives it as a list, ordered by child.
function types.parent_of(context)
    local parents = {}
    for child, entry in pairs(context.parents) do
        parents[child] = entry.parent
    end
    return parents
end

function types.list(context)
    local list = {}
    for child, parent in pairs(types.parent_of(context)) do
        list[#list + 1] = { child = child, parent = parent }
    end
    return key_order.sort_by(list, "child")
end

return types
