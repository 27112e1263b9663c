-- types.lua: policy.errors { Child = "Parent", ... }.

local types = {}

local lost = require "mulligan.policy.lost"
local order = require "mulligan.policy.order"
local text = require "mulligan.policy.text"
local words = require "mulligan.policy.words"

local ROOT = "Error"

-- The way from a type up to the root, as far as it is declared.
local function way_up(book, type_name)
    local way = { type_name }
    local entry = book.parents[type_name]
    while entry do
        way[#way + 1] = entry.parent
        entry = book.parents[entry.parent]
    end
    return way
end

-- What speaks against a parent for a child; nil: nothing.
local function objection(book, child, parent)
    if child == ROOT then
        return "Error is the root of all types and has no parent"
    end
    local earlier = book.parents[child]
    if earlier and earlier.parent ~= parent then
        return ("%s has the parent %s already (%s:%d); a type has one"):format(text.name(child),
            text.show(earlier.parent), earlier.place.file, earlier.place.line)
    end
    local way = way_up(book, parent)
    for _, above in ipairs(way) do
        if above == child then
            table.insert(way, 1, child)
            return ("%s can't be a child of %s: that goes round in a circle (%s)"):format(text.name(child),
                text.show(parent), text.way(way, " < "))
        end
    end
end

local function declare(book, here, child, parent)
    child = words.name(book, here, "the name of an error type", child)
    parent = words.name(book, here, "the parent of " .. text.show(child), parent)
    if not child or not parent then
        return
    end
    local why = objection(book, child, parent)
    if why then
        book:problem(here, why)
    elseif not book.parents[child] then
        book.parents[child] = { parent = parent, place = here }
    end
end

-- errors is the word policy.errors.
function types.errors(book, here, n, declared)
    if words.too_many(book, here, "errors", n, 1, 'one table: errors { DeadlockError = "DatabaseError" }')
        or declared == lost then
        return
    end
    local keys, strange
    if type(declared) == "table" then
        keys, strange = order.keys(declared)
    end
    if strange then
        book:problem(here, ("the name of an error type must be a string, not a %s"):format(strange))
    elseif not keys then
        book:problem(here, ('errors takes a table, errors { DeadlockError = "DatabaseError" }, not %s'):format(
            text.show(declared)))
    elseif #keys == 0 then
        book:problem(here, "errors has an empty table; leave it out, or name a child and its parent in it")
    else
        for _, child in ipairs(keys) do
            if math.type(child) then
                book:problem(here, ('errors takes child = parent, errors { DeadlockError = "DatabaseError" }; '
                    .. "%s has no parent"):format(text.show(declared[child])))
            else
                declare(book, here, child, declared[child])
            end
        end
    end
end

-- parent_of gives what was declared, child -> parent; list gives it as a list, ordered by child.
function types.parent_of(book)
    local parents = {}
    for child, entry in pairs(book.parents) do
        parents[child] = entry.parent
    end
    return parents
end

function types.list(book)
    local list = {}
    for child, parent in pairs(types.parent_of(book)) do
        list[#list + 1] = { child = child, parent = parent }
    end
    return order.sort_by(list, "child")
end

return types
