-- text.lua: how mistakes are worded: values shown, names guessed, lists written out.

local text = {}

local LONGEST, LONGEST_NAME = 60, 200

-- Whether a string is UTF-8 that C can hold: no byte is 0.
function text.valid(value)
    return utf8.len(value) ~= nil and not value:find("\0", 1, true)
end

-- A string in UTF-8, whatever bytes it has.
function text.mend(value)
    if utf8.len(value) then
        return value
    end
    local out, at = {}, 1
    while at <= #value do
        local _, bad = utf8.len(value, at)
        local stop = bad and bad - 1 or #value
        out[#out + 1] = value:sub(at, stop)
        if bad then
            out[#out + 1] = "?"
        end
        at = stop + 2
    end
    return table.concat(out)
end

-- The same for one line of output.
function text.clean(value)
    if value:find("^[ -~]*$") then
        return value
    end
    return (text.mend(value):gsub("%c", " "))
end

-- A string of at most so many bytes and "...", without half a character at the end.
function text.cut(value, most)
    if #value <= most then
        return value
    end
    local stop = most
    while stop > most - 3 and value:find("^[\x80-\xBF]", stop + 1) do
        stop = stop - 1
    end
    return value:sub(1, stop) .. "..."
end

-- The name of a type, scope, queue or field, or any text of a policy's, as output shows it: in one
-- line, and not too much of it.
function text.name(value)
    return text.clean(text.cut(value, LONGEST_NAME))
end

-- So many of a list, and how many more there are.
function text.some(items, most)
    if #items <= most then
        return items
    end
    local some = table.move(items, 1, most, 1, {})
    some[most + 1] = ("%d more"):format(#items - most)
    return some
end

-- A way over names, as far as it is looked at.
function text.way(names, joint)
    local shown = {}
    for number, name in ipairs(text.some(names, 20)) do
        shown[number] = text.name(name)
    end
    return table.concat(shown, joint)
end

-- A value as it might stand in the policy.
function text.show(value)
    local kind = type(value)
    if kind == "string" then
        return '"' .. text.clean(text.cut(value, LONGEST)) .. '"'
    elseif value ~= value then
        return "nan" -- its sign is the processor's
    elseif kind == "number" or kind == "boolean" or kind == "nil" then
        return tostring(value)
    end
    return "a " .. (kind == "userdata" and "table" or kind) -- which a rule is to a policy
end

-- nil_global gives the name in what Lua says of a global that it tried to use and that is nil.
function text.nil_global(message)
    return message:match("^attempt to %l+ a nil value %(global '([%w_]+)'%)$")
end

-- "1 rule", "2 rules".
function text.count(count, one, many)
    return ("%d %s"):format(count, count == 1 and one or many)
end

-- "a", "b" and "c" with `last` before the last one.
function text.list(items, last)
    if #items < 2 then
        return items[1] or ""
    end
    return table.concat(items, ", ", 1, #items - 1) .. " " .. (last or "or") .. " " .. items[#items]
end

-- How many letters must change, go, come or swap places to make `a` into `b`, as far as these are
-- fewer than `most`: the more cells lie off the middle, the more letters it takes.
local function distance(a, b, most)
    if math.abs(#a - #b) >= most then
        return most
    end
    local before, row = {}, {}
    for j = 0, #b do
        row[j] = j
    end
    for i = 1, #a do
        local above, least = row, most
        row = { [0] = i }
        for j = math.max(1, i - most), math.min(#b, i + most) do
            local cost = a:byte(i) == b:byte(j) and 0 or 1
            row[j] = math.min((above[j] or most) + 1, (row[j - 1] or most) + 1, above[j - 1] + cost)
            if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
                row[j] = math.min(row[j], before[j - 2] + 1)
            end
            least = math.min(least, row[j])
        end
        if least >= most and row[0] >= most then
            return most
        end
        before = above
    end
    return row[#b]
end

-- The candidate that was probably meant, or nil. Of equally near ones the first counts.
function text.nearest(word, candidates)
    if type(word) ~= "string" or #word > LONGEST then
        return nil
    end
    local plain = word:lower():gsub("[^%w]", "")
    local best, least = nil, #word < 4 and 2 or 3
    for _, candidate in ipairs(candidates) do
        local steps = least
        if #candidate <= LONGEST then
            steps = plain == candidate:gsub("[^%w]", "") and 0 or distance(word, candidate, least)
        end
        if steps < least then
            best, least = candidate, steps
        end
    end
    return best
end

-- unknown_key is what is wrong with a key that isn't among those of a table; src/lua/values/from_lua.c raises it.
function text.unknown_key(key, where, known)
    local near = text.nearest(key, known)
    return ('unknown key "%s" in %s; %s'):format(key, where,
        near and ('did you mean "%s"?'):format(near) or "there are " .. text.list(known, "and"))
end

return text
