-- commands.lua: what each command of the program takes, in the order in which they are listed: data that
-- cli.lua and arguments.lua read, and tools/docgen for the completions and the man pages. What a command
-- does is in cmd/NAME.lua.

return {
    {
        name = "run",
        summary = "runs the consumers of a service.lua",
        usage = "run [service.lua] [OPTION]...",
        about = "Runs the consumers of service.lua, or of the file named. SIGTERM and SIGINT let handlers end\n"
            .. "and give back the rest, uncounted. SIGHUP, or a change of one of its files, reloads the policy.\n"
            .. "The log goes to stderr.",
        options = {
            { "--until-empty", help = "end with a summary once the queues are empty; with 1 if a signal comes first" },
            { "--quiet", "SPAN", help = "with it: where a queue can't be counted, empty is quiet for so long (10s)" },
            { "--host-policy", "FILE", help = "the host policy, policy.host() in a file of its own" },
            { "--log-format", "text|json", help = "one line an event, for people or for programs (text)" },
            { "--log-level", "debug|info|warning|error", help = "leave out what is below (info)" },
            { "--memory-limit", "SIZE", help = "what handlers may use in all: 512MiB (3/4 of what there is)" },
        },
        at_most = 1,
    },
    {
        name = "send",
        summary = "puts messages on a queue: each file, or each line of stdin",
        usage = "send QUEUE --transport T [OPTION]... [FILE]...",
        about = "Puts each FILE, or each line of stdin, on a queue as one message, and ends once all are safe.\n"
            .. "T is a URL, a name in ./service.lua, or env:NAME for a URL in the environment.",
        options = {
            { "--transport", "T", help = "where the queue is; required" },
            { "--id", "ID", help = "the message's id, for one message only" },
            { "--type", "TYPE", help = "its type" },
            { "--key", "KEY", help = "its key" },
            { "--header", "NAME=VALUE", many = true, help = "one of its headers; may be repeated, each name once" },
            { "--delay", "SPAN", help = 'keep it back for a while, such as "30s" or "1h30m"' },
            { "--wait", "SPAN", help = "how long to wait for a transport that is down; 0: not at all (10s)" },
        },
        at_least = 1,
    },
    {
        name = "init",
        summary = "writes a policy to begin with, its spec, and the settings of editors",
        usage = "init [FOLDER] [--force]",
        about = "Writes policy.lua, spec/policy_spec.lua, .luarc.json (lua-language-server then knows every word of a\n"
            .. "policy, by the types in .mulligan/types) and .luacheckrc to a folder; nothing, where one of them is\n"
            .. "there already.",
        options = {
            { "--force", help = "replace files that are there" },
        },
        at_most = 1,
    },
    {
        name = "check",
        summary = "lists every mistake in a policy, and what is suspicious",
        usage = "check POLICY [OPTION]...",
        about = "Loads a policy, and lists every mistake that can be found in one go. Without any, it says what is\n"
            .. "suspicious, and how many calls of its handler, and how long, a message can take.",
        options = {
            { "--host-policy", "FILE", help = "the host policy, policy.host() in a file of its own" },
            { "--for", "service.lua", help = "what it is for: its Lua is run for its consumers and transports" },
            { "--format", "text|json", help = "for people or for programs (text)" },
            { "--strict", help = "exit code 1 if anything is suspicious" },
        },
        at_least = 1,
        at_most = 1,
    },
    {
        name = "table",
        summary = "shows the decision table as it is in force: rules, delays, settings",
        usage = "table POLICY [OPTION]...",
        about = "Shows what is in force for a consumer on a transport: which scope's rules, in the order in which "
            .. "they\nare tried, and every setting with the place where it was set. Without a name, or with "
            .. "one\nfor which the policy has no scope, what the bus and the host say is shown.",
        options = {
            { "--host-policy", "FILE", help = "the host policy, policy.host() in a file of its own" },
            { "--consumer", "C", help = "for this consumer" },
            { "--transport", "T", help = "on this transport" },
            { "--format", "text|json", help = "for people or for programs (text)" },
        },
        at_least = 1,
        at_most = 1,
    },
    {
        name = "explain",
        summary = "says why a failure gets its verdict, and what becomes of it",
        usage = "explain POLICY --failure FILE | --error TYPE [OPTION]...",
        about = "Shows the verdict on a failure, the rule that decided, why the others that were looked at before it\n"
            .. "lost, and the timeline to the end if every later call fails with the same error.",
        options = {
            { "--host-policy", "FILE", help = "the host policy, policy.host() in a file of its own" },
            { "--failure", "FILE", help = "the failure, as one of decide's objects; - is stdin" },
            { "--error", "TYPE", help = "or the type of its error, with these:" },
            { "--field", "NAME=VALUE", many = true,
                help = "a field: a number, true, false, else a text; may be repeated" },
            { "--consumer", "C", help = "the consumer whose handler failed" },
            { "--transport", "T", help = "the transport that the message is on" },
            { "--attempt", "N", help = "failed calls since it was handed out, this one included (1)" },
            { "--redeliveries", "N", help = "redeliveries so far (0)" },
            { "--format", "text|json", help = "for people or for programs (text)" },
        },
        at_least = 1,
        at_most = 1,
    },
    {
        name = "decide",
        summary = "gives the verdict on each failure of stdin, JSON lines in and out",
        usage = "decide POLICY [OPTION]...",
        about = "Reads failures from stdin, a JSON object a line, and writes the verdict on each in the same order.\n"
            .. "A line that is none gets {\"error\": ...} in its place; then it ends in 1.",
        options = {
            { "--seed", "N", help = "a 64-bit whole number that changes every jitter (0)" },
            { "--no-jitter", help = "as if every jitter were 0" },
            { "--watch", help = "reload the policy between two lines, when its files change or at SIGHUP" },
        },
        at_least = 1,
        at_most = 1,
    },
    {
        name = "serve",
        summary = "gives verdicts to other programs, on a Unix socket",
        usage = "serve POLICY --listen unix:PATH [OPTION]...",
        about = "Answers other programs over MessagePack-RPC: decide, decide_many, explain and policy. SIGHUP, or a\n"
            .. "change of one of its files, reloads the policy; SIGTERM and SIGINT end it. The log goes to stderr.",
        options = {
            { "--listen", "unix:PATH", help = "the socket, for programs of this user alone; required" },
            { "--host-policy", "FILE", help = "the host policy, policy.host() in a file of its own" },
        },
        at_least = 1,
        at_most = 1,
    },
}
