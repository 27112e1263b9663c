-- fish.lua: completions/mulligan.fish.

local HEAD = [=[
# Completion of mulligan for fish, made by tools/docgen.lua.

# __mulligan_is COMMAND: whether that is the first word; a queue may be called like one, too.
function __mulligan_is
    set -l words (commandline -opc)
    test "$words[2]" = $argv[1]
end

complete -c mulligan -f
complete -c mulligan -n __fish_use_subcommand -l help -d 'say what commands there are'
complete -c mulligan -n __fish_use_subcommand -l version -d 'say which version this is'
]=]

local VALUES = {
    lua = "-x -a '(__fish_complete_suffix .lua)'",
    file = "-r -F",
    folder = "-x -a '(__fish_complete_directories)'",
}
local WORDS = { lua = "-a '(__fish_complete_suffix .lua)'", file = "-F", folder = "-a '(__fish_complete_directories)'" }

local function quote(words)
    return "'" .. words:gsub("[\\']", "\\%0") .. "'"
end

local function value(kind)
    return type(kind) == "table" and ("-x -a '%s'"):format(table.concat(kind, " ")) or VALUES[kind] or "-x"
end

return function(commands, kind_of)
    local lines = { HEAD }
    local function add(words, ...)
        lines[#lines + 1] = ("complete -c mulligan -n " .. words .. "\n"):format(...)
    end
    for _, command in ipairs(commands) do
        lines[#lines + 1] = "\n"
        add("__fish_use_subcommand -a %s -d %s", command.name, quote(command.summary))
        local seen = ("'__mulligan_is %s'"):format(command.name)
        for _, option in ipairs(command.options) do
            local takes = option[2] and " " .. value(kind_of(option[2])) or ""
            add("%s -l %s%s -d %s", seen, option[1]:gsub("^%-%-", ""), takes, quote(option.help))
        end
        for _, word in ipairs(command.words) do
            if word.kind then
                add("%s %s", seen, WORDS[word.kind])
            end
        end
    end
    return { { path = "completions/mulligan.fish", text = table.concat(lines) } }
end
