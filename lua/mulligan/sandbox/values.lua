-- values.lua: read-only tables, values as text, and errors that name the policy's line.

local values = {}

local offers = require "mulligan.sandbox.offers"
local text = require "mulligan.policy.text"

local format = string.format
local lua_tostring = tostring

local shown = setmetatable({}, { __mode = "k" }) -- read-only table -> what it shows

-- read_only gives a table that shows `data` and can't be assigned to.
function values.read_only(data, what)
    local proxy = {}
    shown[proxy] = data
    return setmetatable(proxy, {
        __index = data,
        __newindex = function()
            error(what .. " is read-only", 2)
        end,
        __metatable = false,
    })
end

-- freeze makes a table itself read-only: it is emptied, and shows what it had. `refusal` has a %s for
-- the key that was assigned to.
function values.freeze(data, refusal)
    local had = {}
    for key, value in next, data do
        had[key] = value
    end
    for key in next, had do
        data[key] = nil
    end
    shown[data] = had
    setmetatable(data, {
        __index = had,
        __newindex = function(_, key)
            error(format(refusal, text.show(key)), 2)
        end,
        __metatable = false,
    })
end

-- inside gives what a read-only table or a view of err and ctx shows; else the table itself.
function values.inside(data)
    return shown[data] or offers.reveal(data) or data
end

-- to_text is tostring without addresses.
function values.to_text(value)
    local kind = type(value)
    if kind == "table" or kind == "function" then
        return kind
    end
    -- The sign of a nan is the processor's.
    return value ~= value and "nan" or lua_tostring(value)
end

-- bad_argument raises for the caller of a function of the sandbox.
function values.bad_argument(number, name, wanted, value)
    error(format("bad argument #%d to '%s' (%s expected, got %s)", number, name, wanted, type(value)), 3)
end

return values
