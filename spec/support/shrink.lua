-- shrink.lua: makes a failing case small. `fails(case)` says whether a case (a table of tables and plain values) still
-- fails; parts are taken out of it one at a time, as long as it does. It takes a part out in place and puts it back
-- where the case no longer fails, so that `fails` may keep what it finds in the case.

-- Where parts may be taken out: every element of a list, every key of a map, deepest last.
local function parts(value, found)
    found = found or {}
    if type(value) ~= "table" then return found end
    for key, inner in pairs(value) do
        found[#found + 1] = { holder = value, key = key }
        parts(inner, found)
    end
    return found
end

local function take(part)
    if math.type(part.key) == "integer" then return table.remove(part.holder, part.key) end
    local value = part.holder[part.key]
    part.holder[part.key] = nil
    return value
end

local function put_back(part, value)
    if math.type(part.key) == "integer" then
        table.insert(part.holder, part.key, value)
    else
        part.holder[part.key] = value
    end
end

return function(case, fails)
    local smaller
    repeat
        smaller = false
        for _, part in ipairs(parts(case)) do
            local value = take(part)
            if value ~= nil and fails(case) then
                smaller = true
                break
            end
            put_back(part, value)
        end
    until not smaller
    return case
end
