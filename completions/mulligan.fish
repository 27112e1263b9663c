# Completion of mulligan for fish, made by tools/docgen.lua.

# __mulligan_is COMMAND: whether that is the first word; a queue may be called like one, too.
function __mulligan_is
    set -l words (commandline -opc)
    test "$words[2]" = $argv[1]
end

complete -c mulligan -f
complete -c mulligan -n __fish_use_subcommand -l help -d 'say what commands there are'
complete -c mulligan -n __fish_use_subcommand -l version -d 'say which version this is'

complete -c mulligan -n __fish_use_subcommand -a run -d 'runs the consumers of a service.lua'
complete -c mulligan -n '__mulligan_is run' -l until-empty -d 'end with a summary once the queues are empty; with 1 if a signal comes first'
complete -c mulligan -n '__mulligan_is run' -l quiet -x -d 'with it: where a queue can\'t be counted, empty is quiet for so long (10s)'
complete -c mulligan -n '__mulligan_is run' -l host-policy -r -F -d 'the host policy, policy.host() in a file of its own'
complete -c mulligan -n '__mulligan_is run' -l log-format -x -a 'text json' -d 'one line an event, for people or for programs (text)'
complete -c mulligan -n '__mulligan_is run' -l log-level -x -a 'debug info warning error' -d 'leave out what is below (info)'
complete -c mulligan -n '__mulligan_is run' -l memory-limit -x -d 'what handlers may use in all: 512MiB (3/4 of what there is)'
complete -c mulligan -n '__mulligan_is run' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is run' -a '(__fish_complete_suffix .lua)'

complete -c mulligan -n __fish_use_subcommand -a send -d 'puts messages on a queue: each file, or each line of stdin'
complete -c mulligan -n '__mulligan_is send' -l transport -x -d 'where the queue is; required'
complete -c mulligan -n '__mulligan_is send' -l id -x -d 'the message\'s id, for one message only'
complete -c mulligan -n '__mulligan_is send' -l type -x -d 'its type'
complete -c mulligan -n '__mulligan_is send' -l key -x -d 'its key'
complete -c mulligan -n '__mulligan_is send' -l header -x -d 'one of its headers; may be repeated, each name once'
complete -c mulligan -n '__mulligan_is send' -l delay -x -d 'keep it back for a while, such as "30s" or "1h30m"'
complete -c mulligan -n '__mulligan_is send' -l wait -x -d 'how long to wait for a transport that is down; 0: not at all (10s)'
complete -c mulligan -n '__mulligan_is send' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is send' -F

complete -c mulligan -n __fish_use_subcommand -a init -d 'writes a policy to begin with, its spec, and the settings of editors'
complete -c mulligan -n '__mulligan_is init' -l force -d 'replace files that are there'
complete -c mulligan -n '__mulligan_is init' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is init' -a '(__fish_complete_directories)'

complete -c mulligan -n __fish_use_subcommand -a check -d 'lists every mistake in a policy, and what is suspicious'
complete -c mulligan -n '__mulligan_is check' -l host-policy -r -F -d 'the host policy, policy.host() in a file of its own'
complete -c mulligan -n '__mulligan_is check' -l for -x -a '(__fish_complete_suffix .lua)' -d 'what it is for: its Lua is run for its consumers and transports'
complete -c mulligan -n '__mulligan_is check' -l format -x -a 'text json' -d 'for people or for programs (text)'
complete -c mulligan -n '__mulligan_is check' -l strict -d 'exit code 1 if anything is suspicious'
complete -c mulligan -n '__mulligan_is check' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is check' -a '(__fish_complete_suffix .lua)'

complete -c mulligan -n __fish_use_subcommand -a table -d 'shows the decision table as it is in force: rules, delays, settings'
complete -c mulligan -n '__mulligan_is table' -l host-policy -r -F -d 'the host policy, policy.host() in a file of its own'
complete -c mulligan -n '__mulligan_is table' -l consumer -x -d 'for this consumer'
complete -c mulligan -n '__mulligan_is table' -l transport -x -d 'on this transport'
complete -c mulligan -n '__mulligan_is table' -l format -x -a 'text json' -d 'for people or for programs (text)'
complete -c mulligan -n '__mulligan_is table' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is table' -a '(__fish_complete_suffix .lua)'

complete -c mulligan -n __fish_use_subcommand -a explain -d 'says why a failure gets its verdict, and what becomes of it'
complete -c mulligan -n '__mulligan_is explain' -l host-policy -r -F -d 'the host policy, policy.host() in a file of its own'
complete -c mulligan -n '__mulligan_is explain' -l failure -r -F -d 'the failure, as one of decide\'s objects; - is stdin'
complete -c mulligan -n '__mulligan_is explain' -l error -x -d 'or the type of its error, with these:'
complete -c mulligan -n '__mulligan_is explain' -l field -x -d 'a field: a number, true, false, else a text; may be repeated'
complete -c mulligan -n '__mulligan_is explain' -l consumer -x -d 'the consumer whose handler failed'
complete -c mulligan -n '__mulligan_is explain' -l transport -x -d 'the transport that the message is on'
complete -c mulligan -n '__mulligan_is explain' -l attempt -x -d 'failed calls since it was handed out, this one included (1)'
complete -c mulligan -n '__mulligan_is explain' -l redeliveries -x -d 'redeliveries so far (0)'
complete -c mulligan -n '__mulligan_is explain' -l format -x -a 'text json' -d 'for people or for programs (text)'
complete -c mulligan -n '__mulligan_is explain' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is explain' -a '(__fish_complete_suffix .lua)'

complete -c mulligan -n __fish_use_subcommand -a decide -d 'gives the verdict on each failure of stdin, JSON lines in and out'
complete -c mulligan -n '__mulligan_is decide' -l seed -x -d 'a 64-bit whole number that changes every jitter (0)'
complete -c mulligan -n '__mulligan_is decide' -l no-jitter -d 'as if every jitter were 0'
complete -c mulligan -n '__mulligan_is decide' -l watch -d 'reload the policy between two lines, when its files change or at SIGHUP'
complete -c mulligan -n '__mulligan_is decide' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is decide' -a '(__fish_complete_suffix .lua)'

complete -c mulligan -n __fish_use_subcommand -a serve -d 'gives verdicts to other programs, on a Unix socket'
complete -c mulligan -n '__mulligan_is serve' -l listen -x -d 'the socket, for programs of this user alone; required'
complete -c mulligan -n '__mulligan_is serve' -l host-policy -r -F -d 'the host policy, policy.host() in a file of its own'
complete -c mulligan -n '__mulligan_is serve' -l help -d 'say what it takes'
complete -c mulligan -n '__mulligan_is serve' -a '(__fish_complete_suffix .lua)'
