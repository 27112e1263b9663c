-- basic.lua: the basic functions of a policy; files.lua adds `require`.

local basic = {}

local library = require "mulligan.sandbox.library"
local offers = require "mulligan.sandbox.offers"
local key_order = require "mulligan.policy.key_order"
local text = require "mulligan.policy.text"
local values = require "mulligan.sandbox.values"

basic.assert, basic.error, basic.ipairs, basic.type = assert, error, ipairs, type
basic.select, basic.tonumber = library._G.select, library._G.tonumber
basic.pcall = offers.pcall

function basic.tostring(...)
    if select("#", ...) == 0 then
        error("bad argument #1 to 'tostring' (value expected)", 2)
    end
    return values.to_text((...))
end

function basic.print(...)
    local words = table.pack(...)
    for i = 1, words.n do
        words[i] = values.to_text(words[i])
    end
    offers.log(text.clean(table.concat(words, " ")))
end

-- The keys of a table in their fixed order; `level` is where error points to from here.
local function keys_of(data, level)
    local keys, strange = key_order.keys(data)
    if not keys then
        error(("a key that is a %s has no place in a fixed order"):format(strange), level)
    end
    return keys
end

function basic.pairs(data)
    if type(data) ~= "table" then
        values.bad_argument(1, "pairs", "table", data)
    end
    local keys, at = keys_of(values.inside(data), 3), 0
    local function step()
        repeat
            at = at + 1
        until keys[at] == nil or data[keys[at]] ~= nil
        local key = keys[at]
        if key ~= nil then
            return key, data[key]
        end
        return nil
    end
    return step, data, nil
end

-- Where a walk by next is in each table, so that a step needn't look for its key.
local walks = setmetatable({}, { __mode = "k" })

-- The walk through a table that has come to `key`.
local function walk_to(data, key)
    local walk = walks[data]
    if walk and key ~= nil and walk.keys[walk.at] == key then
        return walk
    end
    walk = { keys = keys_of(data, 4), at = 0 }
    while key ~= nil and walk.keys[walk.at] ~= key do
        walk.at = walk.at + 1
        if walk.at > #walk.keys then
            error("invalid key to 'next'", 3)
        end
    end
    walks[data] = walk
    return walk
end

function basic.next(data, key)
    if type(data) ~= "table" then
        values.bad_argument(1, "next", "table", data)
    end
    local inside = values.inside(data)
    if next(inside) == nil then
        return nil
    end
    local walk = walk_to(inside, key)
    repeat
        walk.at = walk.at + 1
    until walk.keys[walk.at] == nil or inside[walk.keys[walk.at]] ~= nil
    local found = walk.keys[walk.at]
    if found == nil then
        walks[inside] = nil
        return nil
    end
    return found, data[found]
end

return basic
