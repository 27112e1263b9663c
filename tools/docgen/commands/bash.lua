-- bash.lua: completions/mulligan, for bash.

local TEXT = [=[
# Completion of mulligan for bash, made by tools/docgen.lua.
# shellcheck shell=bash

# _mulligan_options COMMAND: its options.
_mulligan_options()
{
    case $1 in
%s    esac
}

# _mulligan_value COMMAND OPTION: the kind of its value, and choices; fails where it takes none.
_mulligan_value()
{
    case "$1 $2" in
%s    *) return 1 ;;
    esac
}

# _mulligan_word COMMAND N: the kind of its N-th other word, from 0.
_mulligan_word()
{
    case "$1 $2" in
%s    esac
}

# _mulligan_offer WORD KIND [CHOICE...]: what of a kind begins with the word.
_mulligan_offer()
{
    local word=$1 kind=${2-}
    shift $(($# < 2 ? $# : 2))
    case $kind in
    choice) mapfile -t COMPREPLY < <(compgen -W "$*" -- "$word") ;;
    lua) mapfile -t COMPREPLY < <(compgen -f -X '!*.lua' -- "$word"; compgen -d -- "$word") ;;
    file) mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
    folder) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
    esac
    [ "$kind" = choice ] || compopt -o filenames
}

_mulligan()
{
    local command=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}
    local at=2 count=0 only_words="" kind
    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        _mulligan_offer "$word" choice %s --help --version
        return
    fi
    while ((at < COMP_CWORD)); do
        case ${COMP_WORDS[at]} in
        --) only_words=1 ;;
        -?*)
            if [ -n "$only_words" ]; then
                count=$((count + 1))
            elif _mulligan_value "$command" "${COMP_WORDS[at]}" >/dev/null; then
                at=$((at + 1)) # its value, or the = before that
                [ "${COMP_WORDS[at]-}" != = ] || at=$((at + 1))
            fi
            ;;
        *) count=$((count + 1)) ;;
        esac
        at=$((at + 1))
    done
    # bash cuts --format=json into three words.
    if [ "$word" = = ]; then
        word=
    elif [ "$before" = = ]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    if [ -z "$only_words" ] && kind=$(_mulligan_value "$command" "$before"); then
        :
    elif [ -z "$only_words" ] && [[ $word = -* ]]; then
        kind="choice $(_mulligan_options "$command")"
    else
        kind=$(_mulligan_word "$command" "$count")
    fi
    # shellcheck disable=SC2086 # a kind, and choices
    _mulligan_offer "$word" $kind
}

complete -F _mulligan mulligan
]=]

return function(commands, kind_of)
    local names, options, values, words = {}, {}, {}, {}

    local function echo(to, pattern, kind)
        local said = type(kind) == "table" and "choice " .. table.concat(kind, " ") or kind or "none"
        to[#to + 1] = ("    %s) echo %s ;;\n"):format(pattern, said)
    end

    for number, command in ipairs(commands) do
        names[number] = command.name
        local own = {}
        for i, option in ipairs(command.options) do
            own[i] = option[1]
            if option[2] then
                echo(values, ("'%s %s'"):format(command.name, option[1]), kind_of(option[2]))
            end
        end
        options[number] = ("    %s) echo %s ;;\n"):format(command.name, table.concat(own, " "))
        for i, word in ipairs(command.words) do
            echo(words, word.many and ("'%s '*"):format(command.name) or ("'%s %d'"):format(command.name, i - 1),
                word.kind)
        end
    end
    return { {
        path = "completions/mulligan",
        text = TEXT:format(table.concat(options), table.concat(values), table.concat(words), table.concat(names, " ")),
    } }
end
