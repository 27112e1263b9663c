-- arguments.lua: reads the words behind a command.
--
-- A command says what it takes: options = { { "--log-format", "text|json", help = "..." }, ... },
-- without a second word a flag; `many` may be repeated, `later` isn't in this version; and how many
-- other words: at_least, at_most.

local duration = require "mulligan.policy.duration"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"

local arguments = {}

local function find(command, name)
    for _, option in ipairs(command.options) do
        if option[1] == name then
            return option
        end
    end
end

local function unknown(command, name)
    local names = { "--help" }
    for _, option in ipairs(command.options) do
        names[#names + 1] = not option.later and option[1] or nil
    end
    local near = text.nearest(name, names)
    return ("unknown option %s%s"):format(text.clean(name), near and "; did you mean " .. near .. "?" or
        ("; `mulligan %s --help` lists them"):format(command.name))
end

-- The choices of "text|json", or nil for anything else.
local function choices_of(option)
    return option[2]:find("|", 1, true) and option[2] or nil
end

local function check(option, value)
    local choices = choices_of(option)
    if value == "" then
        return option[1] .. " must not be empty"
    elseif choices and not ("|" .. choices .. "|"):find("|" .. value .. "|", 1, true) then
        return ("%s must be %s, not %s"):format(option[1], choices:gsub("|", " or "), text.show(value))
    end
end

-- take puts an option's value where the command finds it; what is wrong with it.
local function take(read, option, value)
    local key = option[1]:gsub("^%-%-", ""):gsub("%-", "_")
    local problem = option[2] and check(option, value)
    if problem then
        return problem
    elseif option.many then
        read[key] = read[key] or {}
        table.insert(read[key], value)
    elseif read[key] ~= nil then
        return option[1] .. " is given twice"
    else
        read[key] = value
    end
end

-- word reads the word at `at`: the number of the next one, or nil and what is wrong.
local function read_option(command, words, at, read)
    local name, value = words[at]:match("^(%-%-[^=]*)=(.*)$")
    name = name or words[at]
    local option = find(command, name)
    if not option then
        return nil, unknown(command, name)
    elseif option.later then
        return nil, name .. " is not in this version yet"
    elseif not option[2] then
        if value then
            return nil, name .. " takes no value"
        end
        value = true
    elseif not value then
        at = at + 1
        value = words[at]
        if not value then
            return nil, ("%s needs a value: %s %s"):format(name, name, option[2])
        end
    end
    local problem = take(read, option, value)
    if problem then
        return nil, problem
    end
    return at + 1
end

-- read gives the options by their names (log_format) and the other words as a list in it; { help =
-- true } where that is asked for; or nil and what is wrong.
function arguments.read(command, words)
    local read, at, only_words = {}, 1, false
    while at <= #words do
        local word = words[at]
        if word == "" then
            return nil, "a word is empty; usage: mulligan " .. command.usage
        elseif only_words or word == "-" or word:sub(1, 1) ~= "-" then
            read[#read + 1], at = word, at + 1
        elseif word == "--" then
            only_words, at = true, at + 1
        elseif word == "--help" or word == "-h" then
            return { help = true }
        else
            local next_one, problem = read_option(command, words, at, read)
            if not next_one then
                return nil, problem
            end
            at = next_one
        end
    end
    local strange = read[(command.at_most or math.huge) + 1]
    if strange then
        return nil, ("%s is a word too many; usage: mulligan %s"):format(url.show(strange), command.usage)
    elseif #read < (command.at_least or 0) then
        return nil, "usage: mulligan " .. command.usage
    end
    return read
end

-- span gives the value of an option that is a span of time, or 0; else nil and what is wrong.
function arguments.span(name, value)
    local span = value ~= "0" and value or 0
    local ms, why = duration.read(span)
    if not ms then
        return nil, ("%s %s"):format(name, why)
    end
    return span
end

-- help is what --help shows of a command.
function arguments.help(command)
    local lines = { "usage: mulligan " .. command.usage, "", command.about }
    if #command.options > 0 then
        lines[#lines + 1] = ""
    end
    for _, option in ipairs(command.options) do
        if not option.later then
            local left = option[1] .. (option[2] and " " .. option[2] or "")
            lines[#lines + 1] = ("  %-36s %s"):format(left, option.help)
        end
    end
    return table.concat(lines, "\n") .. "\n"
end

return arguments
