-- tables.lua: `table` for policies.

local tables = require("mulligan.sandbox.library").table

local values = require "mulligan.sandbox.values"

local move = tables.move

-- merge puts the sorted parts from `low` to `middle` and from there to `high` in order.
local function merge(list, spare, low, middle, high, before)
    move(list, low, middle, low, spare)
    local left, right = low, middle + 1
    for at = low, high do
        if left > middle then
            return
        elseif right <= high and before(list[right], spare[left]) then
            list[at], right = list[right], right + 1
        else
            list[at], left = spare[left], left + 1
        end
    end
end

local function merge_sort(list, before)
    local n, spare, width = #list, {}, 1
    while width < n do
        for low = 1, n - width, 2 * width do
            merge(list, spare, low, low + width - 1, math.min(low + 2 * width - 1, n), before)
        end
        width = 2 * width
    end
end

local function less(a, b)
    return a < b
end

-- What keeps the elements from being compared by <; nil: nothing.
local function mismatch(list)
    local kind = type(list[1])
    for i = 1, #list do
        local other = type(list[i])
        if other ~= kind then
            return ("attempt to compare %s with %s"):format(kind, other)
        elseif kind ~= "number" and kind ~= "string" then
            return ("attempt to compare two %s values"):format(kind)
        end
    end
end

-- Lua's own sort asks the clock where to begin, so equal elements end up anywhere. This one keeps
-- their order.
function tables.sort(data, before)
    if type(data) ~= "table" then
        values.bad_argument(1, "sort", "table", data)
    elseif before ~= nil and type(before) ~= "function" then
        values.bad_argument(2, "sort", "function", before)
    end
    local list = move(values.inside(data), 1, #data, 1, {})
    local why = not before and #list > 1 and mismatch(list)
    if why then
        error(why, 2)
    end
    merge_sort(list, before or less)
    move(list, 1, #list, 1, data)
end

return tables
