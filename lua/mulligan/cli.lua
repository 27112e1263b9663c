-- cli.lua: the program `mulligan`: which command, and how its mistakes are told. Each command is a
-- file in cmd/, which gives its exit code: 0 done, 1 the answer is no, 2 wrong usage or a file that
-- can't be loaded, 75 start it again.

local arguments = require "mulligan.arguments"
local commands = require "mulligan.commands"
local core = require "mulligan.core"
local mulligan = require "mulligan"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"

local cli = {}

local names = {}
for number, command in ipairs(commands) do
    names[number] = command.name
end

local later = { "reload", "status", "stop", "dead" }

-- The events that are told where there is no log that they go to.
local failed = { matcher_failed = "the matcher failed", override_failed = "the override failed" }

local unwritten = false -- something that was to be said is lost

-- say writes to stdout, which may be full, or a pipe that nobody reads any more: that is told once,
-- and the exit code won't be 0. It gives whether everything was written so far.
function cli.say(words)
    io.stdout:setvbuf("full") -- by lines, C's library says that a failed write went well
    local well, why = io.stdout:write(words)
    if well then
        well, why = io.stdout:flush()
    end
    if not well and not unwritten then
        unwritten = true
        cli.complain("stdout: %s", why)
    end
    return not unwritten
end

-- complain tells one mistake, in one line.
function cli.complain(words, ...)
    core.stderr_write("mulligan: " .. text.clean(words:format(...)) .. "\n")
    return 2
end

-- complain_of tells a list of { file =, line =, text = }.
function cli.complain_of(problems)
    for _, problem in ipairs(problems) do
        local place = (problem.file and problem.file .. ":" or "") .. (problem.line and problem.line .. ":" or "")
        cli.complain("%s%s", place ~= "" and place .. " " or "", problem.text)
    end
    return 2
end

-- sight gives a function that names a file of the policy at `path` as it is called from here: one in the
-- policy's folder, or its host policy at `host`, if it has one. Where the scope is known in which
-- something stands, that says which: a file of the policy may have the host policy's name.
function cli.sight(path, host)
    local folder, own = path:match("^(.*/)[^/]*$") or "", path:match("[^/]*$")
    local name = host and host:match("[^/]*$")
    return function(file, scope)
        local is_host = host and (file == host or file == name and name ~= own)
        if is_host and (scope or "host") == "host" then
            return host
        end
        return folder .. file
    end
end

-- both names a policy, with its host policy if it has one.
function cli.both(path, host)
    return host and ("%s and %s"):format(path, host) or path
end

-- seen_from_here names the files of the problems of a policy as they are called from here.
function cli.seen_from_here(path, problems, host)
    local seen = cli.sight(path, host)
    for _, problem in ipairs(problems) do
        problem.file = problem.file and seen(problem.file) or path
    end
    return problems
end

-- no_file is the problem of a path that can't be that of a file, which `what` should be; nil: it may be one.
local function no_file(path, what)
    if url.is_url(path) and url.mask(path) ~= path or path:find("://", 1, true) then
        return { file = url.mask(path), text = ("this is a URL; %s is a file"):format(what) }
    elseif path:find("/$") then
        return { file = path, text = ("this is a folder; %s is a file"):format(what) }
    end
end

-- load_policy loads a policy's file; else nil and the problems, whose files are seen from here.
function cli.load_policy(path, given)
    local problem = no_file(path, "a policy") or given.host_policy and no_file(given.host_policy, "a host policy")
    if problem then
        return nil, { problem }
    end
    local policy, message, _, problems = mulligan.load(path, given)
    if policy then
        return policy
    end
    if #problems == 0 then
        return nil, { { file = path, text = message } }
    end
    return nil, cli.seen_from_here(path, problems, given.host_policy)
end

-- print shows what a policy prints, where there is no log that it goes to.
function cli.print(_, words)
    core.stderr_write(text.clean(words) .. "\n")
end

-- events gives what tells, on stderr, of a policy's functions that fail while something is decided;
-- what `where` gives comes first.
function cli.events(path, where)
    local seen = cli.sight(path)
    return function(event)
        local words = failed[event.name]
        local rule = event.rule or event.verdict and event.verdict.rule
        if words then
            cli.complain("%s%s%s: %s", where(), rule and ("%s:%d: "):format(seen(rule.file), rule.line) or "",
                words, event.text)
        end
    end
end

-- finite gives a value as JSON can say it: what is beyond all numbers becomes "inf" or "-inf".
function cli.finite(value)
    if type(value) == "table" then
        for key, item in next, value do
            value[key] = cli.finite(item)
        end
    elseif value == math.huge or value == -math.huge then
        return value > 0 and "inf" or "-inf"
    end
    return value
end

-- say_json writes an object as one line of JSON. What would be too much at once is a function in it:
-- f() says how many items the list has, f(n) gives one.
function cli.say_json(object)
    local encode, out = mulligan.json.encode, {}
    local function say(words)
        out[#out + 1] = words
        if #out >= 1000 then
            cli.say(table.concat(out))
            out = {}
        end
    end
    local keys = {}
    for key in next, object do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    for number, key in ipairs(keys) do
        local value = object[key]
        say((number == 1 and "{" or ",") .. encode(key) .. ":")
        if type(value) == "function" then
            for n = 1, value() do
                say((n == 1 and "[" or ",") .. encode(cli.finite(value(n))))
            end
            say(value() == 0 and "[]" or "]")
        else
            say(encode(cli.finite(value)))
        end
    end
    say "}\n"
    cli.say(table.concat(out))
end

-- json gives a table of the library's as one line of JSON.
function cli.json(value)
    return mulligan.json.encode(cli.finite(value)) .. "\n"
end

local function command_named(name)
    for _, command in ipairs(commands) do
        if command.name == name then
            return command
        end
    end
end

local function help()
    local lines = {
        "usage: mulligan COMMAND ...",
        "",
        "A policy decides what happens to messages whose handling failed: retry, redelivery, dead letter, discard.",
        "",
    }
    for _, command in ipairs(commands) do
        lines[#lines + 1] = ("  %-8s %s"):format(command.name, command.summary)
    end
    lines[#lines + 1] = ""
    lines[#lines + 1] = "`mulligan COMMAND --help` says more of each; `mulligan --version` says which this is."
    return table.concat(lines, "\n") .. "\n"
end

local function no_command(name)
    for _, known in ipairs(later) do
        if known == name then
            return cli.complain("%s is not in this version yet", name)
        end
    end
    local near = text.nearest(name, name:sub(1, 1) == "-" and { "--help", "--version" } or names)
    return cli.complain("unknown %s %s%s", name:sub(1, 1) == "-" and "option" or "command", url.mask(name),
        near and "; did you mean " .. near .. "?" or "; `mulligan --help` lists them")
end

local function run(name, words)
    local command = command_named(name)
    if not command then
        return no_command(name)
    end
    local read, problem = arguments.read(command, words)
    if not read then
        return cli.complain("%s: %s", name, problem)
    elseif read.help then
        cli.say(arguments.help(command))
        return 0
    end
    return require("mulligan.cmd." .. name).main(read)
end

-- main runs the command that the words name, and gives the exit code.
function cli.main(words)
    local name, code = words[1], 0
    if not name then
        io.stderr:write(help())
        return 2
    elseif name == "--help" or name == "-h" then
        cli.say(help())
    elseif name == "--version" then
        cli.say("mulligan " .. mulligan.version .. "\n")
    else
        code = run(name, table.move(words, 2, #words, 1, {}))
    end
    return code == 0 and unwritten and 1 or code
end

return cli
