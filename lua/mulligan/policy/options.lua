-- options.lua: tables in which each key is one of a few names.

local options = {}

local opaque_value = require "mulligan.policy.opaque_value"
local key_order = require "mulligan.policy.key_order"
local text = require "mulligan.policy.text"

function options.has(names, key)
    for _, name in ipairs(names) do
        if name == key then
            return true
        end
    end
    return false
end

-- instead says what might have been meant by a key that is none of the names.
function options.instead(key, names)
    local near = text.nearest(key, names)
    return near and ("did you mean %s?"):format(near) or "there are " .. text.list(names, "and")
end

-- unknown says what is wrong with a key that is none of the names.
function options.unknown(key, names)
    return ("unknown option %s; %s"):format(opaque_value.show(key), options.instead(key, names))
end

-- check notes each key of a table that is none of the names, and is true where there is none such.
-- `what` begins a mistake.
function options.check(context, here, what, given, names)
    local keys, strange = key_order.keys(given)
    if not keys then
        context:problem(here, ("%s: unknown option: a %s; there are %s"):format(what, strange, text.list(names, "and")))
        return false
    end
    local good = true
    for _, key in ipairs(keys) do
        if not options.has(names, key) then
            good = false
            context:problem(here, ("%s: %s"):format(what, options.unknown(key, names)))
        end
    end
    return good
end

-- is_table says whether a value is a table of the policy's own, and nothing that a word gave.
function options.is_table(value)
    return type(value) == "table" and getmetatable(value) == nil
end

return options
