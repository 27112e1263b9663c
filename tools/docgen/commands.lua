-- commands.lua: the commands of the program, as lua/mulligan/commands.lua has them for --help.
-- They are the one source of the completions, and of names, synopses and options in man pages.
--
--   { name =, summary =, usage =, options = { { "--x", "VALUE", help =, many = }, ... },
--     words = { { name =, kind =, many = }, ... } }
--
-- `words` are the others that a command takes, in their order. The kind of one, and of an option's
-- value, is "lua", "file", "folder", or a list of choices; nil where nothing is known of it.

local commands = {}

local KINDS = { POLICY = "lua", ["service.lua"] = "lua", FILE = "file", FOLDER = "folder" }

function commands.kind(value)
    if value:find("|", 1, true) then
        local choices = {}
        for choice in value:gmatch("[^|]+") do
            choices[#choices + 1] = choice
        end
        return choices
    end
    return KINDS[value]
end

local function option_named(command, name)
    for _, option in ipairs(command.options) do
        if option[1] == name then
            return option
        end
    end
end

-- words_of reads what a usage names beside options: "send QUEUE --transport T [OPTION]... [FILE]...".
local function words_of(command)
    local words, is_value = {}, false
    for word in command.usage:gsub("^%S+", ""):gmatch("%S+") do
        local name = word:match("[%w.-]+")
        if is_value or not name or name == "OPTION" then
            is_value = false
        elseif name:find("^%-%-") then
            is_value = option_named(command, name)[2] ~= nil
        else
            words[#words + 1] = { name = name, kind = KINDS[name], many = word:find("...", 1, true) ~= nil }
        end
    end
    return words
end

-- list gives the commands in the order in which the program lists them.
function commands.list()
    local list = {}
    for number, command in ipairs(dofile "lua/mulligan/commands.lua") do
        local options = {}
        for _, option in ipairs(command.options) do
            options[#options + 1] = not option.later and option or nil
        end
        options[#options + 1] = { "--help", help = "say what it takes" }
        list[number] = { name = command.name, summary = command.summary, usage = command.usage, options = options }
        list[number].words = words_of(list[number])
    end
    return list
end

-- files gives all that is made of the commands: { path =, text = }.
function commands.files()
    local list, files = commands.list(), {}
    for _, name in ipairs { "bash", "zsh", "fish", "man" } do
        local made = dofile(("tools/docgen/commands/%s.lua"):format(name))(list, commands.kind)
        table.move(made, 1, #made, #files + 1, files)
    end
    return files
end

return commands
