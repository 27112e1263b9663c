-- strings.lua: `string` for policies, also behind the methods of strings.

local strings = {}

local offers = require "mulligan.sandbox.offers"
local values = require "mulligan.sandbox.values"

-- Taken before this table stands in for Lua's.
local find, format, gsub, match = string.find, string.format, string.gsub, string.match
local pack, unpack = table.pack, table.unpack

for _, name in ipairs({
    "byte", "char", "find", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize", "reverse", "sub", "unpack",
    "upper",
}) do
    strings[name] = string[name]
end

local guarded_format = values.guarded(format)

function strings.format(form, ...)
    if type(form) ~= "string" then
        return guarded_format(form, ...)
    end
    local arguments, at, address = pack(...), 0, false
    form = gsub(form, "%%([-+ #0-9.]*)(.)", function(flags, kind)
        at = kind == "%" and at or at + 1
        address = address or kind == "p"
        local value = arguments[at]
        local nan = value ~= value and find(kind, "[aAeEfgG]")
        if (kind == "s" or nan) and at <= arguments.n then
            arguments[at] = values.to_text(value)
        end
        return nan and "%" .. match(flags, "^%-?") .. match(flags, "^[-+ #0]*(%d*)") .. "s" or nil
    end)
    if address then
        error("'%p' shows an address, which a policy has no use for", 2)
    end
    local good, made = offers.pcall(format, form, unpack(arguments, 1, arguments.n))
    if not good then
        error(made, 2)
    end
    return made
end

local guarded_rep = values.guarded(string.rep)

-- Nothing, very often, is a loop in C that no budget sees.
function strings.rep(piece, n, separator)
    if piece == "" and (separator == nil or separator == "") then
        n = 0
    end
    return guarded_rep(piece, n, separator)
end

-- Methods of strings are these functions. No word of a policy gives a metatable; this one is shut
-- all the same.
local metatable = getmetatable("")
metatable.__index = strings
metatable.__metatable = false

return strings
