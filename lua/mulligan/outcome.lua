-- outcome.lua: whose line misuse is blamed on. C blames the line that called it, which would be one of
-- ours where a function of ours stands between: that calls C by pcall, and passes on what that gave.

local outcome = {}

-- raised gives what is to be raised for what C said of the function `name`; an error with a type stays
-- as it is.
local function raised(name, message)
    return type(message) == "string" and message:gsub("'%?'", "'" .. name .. "'", 1) or message
end

-- of gives what C gave, or blames the line that called the function `name`, which must end in it.
function outcome.of(name, well, ...)
    if not well then
        error(raised(name, (...)), 2)
    end
    return ...
end

-- within is the same in the midst of a function: it may not end in it.
function outcome.within(name, well, ...)
    if not well then
        error(raised(name, (...)), 3)
    end
    return ...
end

return outcome
