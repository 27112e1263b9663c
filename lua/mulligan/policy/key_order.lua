-- key_order.lua: the fixed order of keys: 1 ... n, other numbers, strings by bytes, false, true. What
-- Lua's own next gives differs from run to run, and none of that may reach a table or a hash. Strings
-- compare by bytes, since the state of a policy has the locale "C" (src/lua/machine/budgets.h).

local order = {}

local function rank(key)
    if key == true then
        return 4
    end
    return ({ number = 1, string = 2, boolean = 3 })[type(key)]
end

function order.before(a, b)
    local x, y = rank(a), rank(b)
    if x ~= y then
        return x < y
    elseif x == 1 then
        return a < b
    end
    return x == 2 and a < b
end

-- The keys of a table in order; nil and the kind of a key that has no place in it.
function order.keys(data)
    local keys, n = {}, 0
    while rawget(data, n + 1) ~= nil do
        n = n + 1
        keys[n] = n
    end
    local others = {}
    for key in next, data do
        if not rank(key) then
            return nil, type(key)
        end
        if math.type(key) ~= "integer" or key < 1 or key > n then
            others[#others + 1] = key
        end
    end
    table.sort(others, order.before)
    return table.move(others, 1, #others, n + 1, keys)
end

-- Sorts a list of tables by one of their fields, a string.
function order.sort_by(list, field)
    table.sort(list, function(a, b)
        return a[field] < b[field]
    end)
    return list
end

return order
