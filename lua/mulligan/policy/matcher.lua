-- matcher.lua: the second argument of on: a function, or a table of fields and what they must equal.

local matcher = {}

local lost = require "mulligan.policy.lost"
local order = require "mulligan.policy.order"
local text = require "mulligan.policy.text"
local words = require "mulligan.policy.words"

-- What is wrong with the value of a field; nil: nothing. A list is wrong in this version only.
local function value_mistake(name, value)
    local kind = type(value)
    if kind == "table" and rawlen(value) > 0 then
        return ("a list of values (%s) is not in this version yet; a statement for each does the same"):format(name)
    elseif kind == "string" and not text.valid(value) then
        return ("the value of %s must be valid UTF-8 without a zero byte, which %s isn't"):format(name,
            text.show(value))
    elseif kind == "number" and value ~= value then
        return ("the value of %s is not a number (nan), which equals nothing"):format(name)
    elseif kind ~= "string" and kind ~= "number" and kind ~= "boolean" then
        return ("the value of %s must be a string, a number or a boolean, not a %s; a function in the table's place "
            .. "can look at anything"):format(name, kind)
    end
end

local function read_fields(book, here, given)
    local tests, wrong = {}, false
    local keys, strange = order.keys(given)
    if not keys or #keys == 0 then
        local why = keys and "the matcher is an empty table; leave it out, or name a field: { status = 503 }"
            or ("the matcher has a %s for the name of a field; names are strings"):format(strange)
        book:problem(here, why)
        return nil
    end
    for _, key in ipairs(keys) do
        local value = given[key]
        if type(key) ~= "string" then
            wrong = true
            book:problem(here, ("the matcher must name its fields, { status = 503 }; %s has no name"):format(
                text.show(value)))
        else
            local name = words.name(book, here, "the name of a field", key)
            local why = name and value ~= lost and value_mistake(text.clean(name), value)
            if why then
                book:problem(here, why)
            end
            wrong = wrong or not name or value == lost or why
            tests[#tests + 1] = { subject = "error", name = key, value = { kind = "one_of", literals = { value } } }
        end
    end
    return not wrong and { kind = "tests", tests = tests } or nil
end

-- read gives a rule's matcher from what `on` was given; nil where it was wrong.
function matcher.read(book, here, given)
    if given == lost then
        return nil
    elseif type(given) == "function" then
        book.functions[#book.functions + 1] = given
        return { kind = "function", number = #book.functions - 1 }
    elseif type(given) == "table" then
        return read_fields(book, here, given)
    end
    book:problem(here, ("the matcher must be a table, { status = 503 }, or a function, not %s"):format(
        text.show(given)))
end

return matcher
