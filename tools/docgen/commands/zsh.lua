-- zsh.lua: completions/_mulligan, for zsh.

local TEXT = [=[
#compdef mulligan
# Completion of mulligan for zsh, made by tools/docgen.lua.

_mulligan() {
    local curcontext="$curcontext" state line
    local -A opt_args
    _arguments -C \
        '(- *)--help[say what commands there are]' \
        '(- *)--version[say which version this is]' \
        '1:command:->command' \
        '*::argument:->argument' && return
    case $state in
    command)
        local -a commands=(
%s        )
        _describe -t commands command commands
        ;;
    argument)
        case $words[1] in
%s        esac
        ;;
    esac
}

_mulligan "$@"
]=]

local ACTIONS = { lua = '_files -g "*.lua"', file = "_files", folder = "_files -/" }

local function action(kind)
    return type(kind) == "table" and ("(%s)"):format(table.concat(kind, " ")) or ACTIONS[kind] or " "
end

local function quote(words)
    return "'" .. words:gsub("'", "'\\''") .. "'"
end

-- What means something to _arguments and _describe.
local function plain(words)
    return (words:gsub("[%[%]:\\]", "\\%0"))
end

local function option_of(option, kind_of)
    local name, help = option[1], plain(option.help)
    if name == "--help" then
        return ("(- *)--help[%s]"):format(help)
    elseif not option[2] then
        return ("%s[%s]"):format(name, help)
    end
    local many = option.many and "*" or ""
    return ("%s%s=[%s]:%s:%s"):format(many, name, help, plain(option[2]), action(kind_of(option[2])))
end

local function arguments_of(command, kind_of)
    local lines = { ("        %s)\n            _arguments"):format(command.name) }
    for _, option in ipairs(command.options) do
        lines[#lines + 1] = "                " .. quote(option_of(option, kind_of))
    end
    for number, word in ipairs(command.words) do
        local which = word.many and "*" or tostring(number)
        lines[#lines + 1] = "                " .. quote(("%s:%s:%s"):format(which, plain(word.name), action(word.kind)))
    end
    return table.concat(lines, " \\\n") .. "\n            ;;\n"
end

return function(commands, kind_of)
    local names, arguments = {}, {}
    for number, command in ipairs(commands) do
        names[number] = ("            %s\n"):format(quote(command.name .. ":" .. plain(command.summary)))
        arguments[number] = arguments_of(command, kind_of)
    end
    return { { path = "completions/_mulligan", text = TEXT:format(table.concat(names), table.concat(arguments)) } }
end
