-- shells.lua: what interactive shells offer for a word that is begun. Each shell gets the installed
-- completion, a terminal, and the keys; a function `mulligan` in it marks where one answer ends.

local process = require "support.process"

local shells = {}

local BASH = [=[
PS1=
bind 'set enable-bracketed-paste off'
bind 'set bell-style none'
. '%s/share/bash-completion/completions/mulligan'
mulligan() { printf '%%s\n' "$@" '=='  >>answers; }
]=]

-- What is offered goes through compadd, which zsh asks several times.
local ZSH = [=[
PS1=
fpath=('%s' $fpath)
autoload -Uz compinit && compinit -u -D
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a hits
    builtin compadd -A hits "$@"
    (( $#hits )) && print -rl -- $hits >>answers
    builtin compadd "$@"
}
mulligan() { print -r -- '==' >>answers }
]=]

-- type runs a shell on a terminal of its own, with the keys as its input: the answers, each a text.
local function type_into(folder, command, lines, env)
    env.TERM = "dumb"
    local ended = folder:run({ "script", "-qec", command, "/dev/null" }, {
        stdin = table.concat(lines, "\n") .. "\nexit\n",
        env = env,
    })
    local answers = {}
    for answer in (folder:read("answers") or ""):gmatch("(.-)==\n") do
        answers[#answers + 1] = answer
    end
    os.remove(folder:path("answers"))
    assert(#answers == #lines, ("%s gave %d answers for %d lines:\n%s"):format(command, #answers, #lines, ended.out))
    return answers
end

local function sorted(words)
    table.sort(words)
    return words
end

-- bash inserts all that it offers in the place of the last word; what precedes that is taken off.
function shells.bash(place, lines)
    place.folder:write("bashrc", BASH:format(place.prefix))
    local typed = {}
    for number, line in ipairs(lines) do
        typed[number] = line .. "\27*"
    end
    local answers = type_into(place.folder, "bash --noprofile --rcfile bashrc -i", typed, {})
    for number, answer in ipairs(answers) do
        local offered, before = {}, select(2, lines[number]:gsub("%S+%s", "")) - 1
        for word in answer:gmatch("(.-)\n") do
            before = before - 1
            offered[#offered + 1] = before < 0 and word or nil
        end
        answers[number] = sorted(offered)
    end
    return answers
end

function shells.zsh(place, lines)
    local found = place:sh("find moved -name _mulligan"):match("^(.*)/_mulligan\n")
    place.folder:write("zsh/.zshrc", ZSH:format(place.folder:path(found)))
    local typed = {}
    for number, line in ipairs(lines) do
        typed[number] = line .. "\t"
    end
    local answers = type_into(place.folder, "zsh -i", typed, { ZDOTDIR = place.folder:path("zsh") })
    for number, answer in ipairs(answers) do
        local offered, had = {}, {}
        for word in answer:gmatch("(.-)\n") do
            word = word:gsub("\\", "")
            if not had[word] then
                had[word], offered[#offered + 1] = true, word
            end
        end
        answers[number] = sorted(offered)
    end
    return answers
end

-- fish answers without a terminal.
function shells.fish(place, lines)
    local script = { ("source '%s/share/fish/vendor_completions.d/mulligan.fish'"):format(place.prefix) }
    for _, line in ipairs(lines) do
        script[#script + 1] = ("complete -C '%s'; echo '=='"):format(line)
    end
    place.folder:write("asked.fish", table.concat(script, "\n") .. "\n")
    local ended = place.folder:run({ "fish", "--no-config", "asked.fish" }, { env = { HOME = place.folder.root } })
    assert(ended.code == 0 and ended.err == "", ended.err)
    local answers = {}
    for answer in ended.out:gmatch("(.-)==\n") do
        local offered = {}
        for word in answer:gmatch("([^\t\n]+)[^\n]*\n") do
            offered[#offered + 1] = word
        end
        answers[#answers + 1] = sorted(offered)
    end
    return answers
end

-- there says whether a shell is installed.
function shells.there(name)
    return process.read("/bin/" .. name) ~= nil or process.read("/usr/bin/" .. name) ~= nil
end

return shells
