-- shrink.lua: makes a failing case small. `fails(case)` says whether a case (a table of tables and plain values) still
-- fails. In place, and as long as it does, parts are taken out of it one at a time, tables give way to one within them
-- (a matcher to one of its parts, an error to its cause), and numbers become 1. `fails` may write into the case (a
-- rule's line, say), so that what counts is whether a round left fewer parts than there were.

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
    local value = part.holder[part.key]
    if value == nil then return nil end
    if math.type(part.key) == "integer" then return table.remove(part.holder, part.key) end
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

local function take_out(case, fails)
    for _, part in ipairs(parts(case)) do
        local value = take(part) -- nil: it went with something larger before
        if value ~= nil and not fails(case) then put_back(part, value) end
    end
end

-- Puts `value` where the part was, if the case fails with it, too.
local function replace(case, fails, part, value)
    local old = part.holder[part.key]
    part.holder[part.key] = value
    if fails(case) then return true end
    part.holder[part.key] = old
    return false
end

-- The tables within a table, and those within these.
local function inner_tables(value)
    local found = {}
    for _, inner in pairs(value) do
        if type(inner) == "table" then
            found[#found + 1] = inner
            for _, innermost in pairs(inner) do
                if type(innermost) == "table" then found[#found + 1] = innermost end
            end
        end
    end
    return found
end

local function simplify(case, fails)
    for _, part in ipairs(parts(case)) do
        local value = part.holder[part.key]
        if type(value) == "table" then
            for _, inner in ipairs(inner_tables(value)) do
                if replace(case, fails, part, inner) then break end
            end
        elseif type(value) == "number" and value ~= 1 then
            replace(case, fails, part, 1)
        end
    end
end

return function(case, fails)
    local before
    repeat
        before = #parts(case)
        take_out(case, fails)
        simplify(case, fails)
    until #parts(case) >= before
    return case
end
