-- types.lua: the words of one module as definitions for lua-language-server (LuaCATS).

local WIDTH = 100

-- wrap adds a text as comments to lines.
local function wrap(lines, words)
    local line = ""
    for word in (words or ""):gmatch("%S+") do
        if line ~= "" and #line + #word >= WIDTH then
            lines[#lines + 1] = "---" .. line
            line = ""
        end
        line = line == "" and word or line .. " " .. word
    end
    if line ~= "" then
        lines[#lines + 1] = "---" .. line
    end
end

local function add_example(lines, word)
    if word.example then
        lines[#lines + 1] = "---```lua"
        for line in (word.example .. "\n"):gmatch("(.-)\n") do
            lines[#lines + 1] = "---" .. line
        end
        lines[#lines + 1] = "---```"
    end
end

local function about(word)
    local words = word.text or word.heading or ""
    return word.default and ("%s Default: %s."):format(words, word.default) or words
end

local function tagged(...)
    return (table.concat({ ... }, " "):gsub("%s+$", ""))
end

local function add_alias(lines, word)
    wrap(lines, word.text)
    add_example(lines, word)
    if not word.choices then
        lines[#lines + 1] = ("---@alias mulligan.%s %s"):format(word.alias, word.type)
        return
    end
    lines[#lines + 1] = "---@alias mulligan." .. word.alias
    for _, choice in ipairs(word.choices) do
        lines[#lines + 1] = ('---| "%s"%s'):format(choice[1], choice[2] and " # " .. choice[2] or "")
    end
    local more = word.type or word.open and "string"
    lines[#lines + 1] = more and "---| " .. more or nil
end

-- Names of classes, as they are written, and what gives what.
local function names_of(book)
    local called, functions, constants = {}, {}, {}
    book.each(function(word)
        if word.class then
            called[word.class] = word.called or "mulligan." .. word.class
        elseif word.alias then
            called[word.alias] = "mulligan." .. word.alias
        elseif word.name then
            for _, class in ipairs(book.classes_of(word)) do
                local into = word.constant and constants or functions
                into[class] = into[class] or {}
                table.insert(into[class], word)
            end
        end
    end)
    return { called = called, functions = functions, constants = constants }
end

-- Editors let a table have keys that its class hasn't, even where it is exact. They do look at the
-- type of each key, so all others have one that no value has.
local UNKNOWN = "---@field [string] mulligan.UnknownOption there is no such option"

local function add_class(lines, names, word)
    wrap(lines, about(word))
    add_example(lines, word)
    lines[#lines + 1] = ("---@class %s%s%s"):format(word.exact and "(exact) " or "", names.called[word.class],
        word.parent and ": " .. names.called[word.parent] or "")
    for _, field in ipairs(word.fields or {}) do
        lines[#lines + 1] = tagged("---@field", field[1], field[2], field[3],
            field.default and ("(default: %s)"):format(field.default))
    end
    for _, constant in ipairs(names.constants[word.class] or {}) do
        lines[#lines + 1] = tagged("---@field", constant.name, names.called[constant.constant], constant.text)
    end
    lines[#lines + 1] = word.exact and UNKNOWN or nil
    if word.call then
        lines[#lines + 1] = "---@overload " .. word.call
    end
    if word.called or names.functions[word.class] then
        lines[#lines + 1] = ("local %s = {}"):format(word.class)
    end
end

local function returned(names, word)
    local list = {}
    for i, name in ipairs(type(word.returns) == "table" and word.returns or { word.returns }) do
        list[i] = names.called[name] or name
    end
    return list
end

local function add_function(book, lines, names, class, word)
    local is_method = book.before(word):find(":$")
    local given, params = returned(names, word), {}
    wrap(lines, about(word))
    add_example(lines, word)
    if word.overload then
        lines[#lines + 1] = ("---@overload fun(self: %s, options: %s): %s"):format(names.called[class], word.overload,
            given[1])
    end
    for i, param in ipairs(word.params or {}) do
        params[i] = param[1]:gsub("%?$", "")
        lines[#lines + 1] = tagged("---@param", param[1], param[2], param[3])
    end
    for _, name in ipairs(given) do
        lines[#lines + 1] = "---@return " .. name
    end
    lines[#lines + 1] = ("function %s%s%s(%s) end"):format(class, is_method and ":" or ".", word.name,
        table.concat(params, ", "))
end

-- module gives the text of a file of types: "policy", "mulligan" or "testing".
return function(book, module)
    local names, first = names_of(book), nil
    local lines, functions = {}, {}
    book.each(function(word, section)
        if section.module ~= module then
            return
        end
        if word.alias or word.class then
            lines[#lines + 1] = ""
            first = first or word.called and word.class
            ;(word.alias and add_alias or add_class)(lines, word.alias and word or names, word)
        elseif word.name and not word.constant then
            for _, class in ipairs(book.classes_of(word)) do
                functions[#functions + 1] = ""
                add_function(book, functions, names, class, word)
            end
        end
    end)
    table.move(functions, 1, #functions, #lines + 1, lines)
    return ("---@meta %s\n\n-- Made of tools/docgen by tools/docgen.lua.\n%s\n\nreturn %s\n"):format(
        module == "mulligan" and module or "mulligan." .. module, table.concat(lines, "\n"), first)
end
