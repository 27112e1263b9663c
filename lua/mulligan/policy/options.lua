-- options.lua: tables in which each key is one of a few names.

local options = {}

local made = require "mulligan.policy.made"
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
    return ("unknown option %s; %s"):format(made.show(key), options.instead(key, names))
end

return options
