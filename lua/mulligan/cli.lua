-- cli.lua: the program `mulligan`: which command, and how its mistakes are told. Each command is a
-- file in cmd/, which gives its exit code: 0 done, 1 the answer is no, 2 wrong usage or a file that
-- can't be loaded.

local arguments = require "mulligan.arguments"
local mulligan = require "mulligan"
local text = require "mulligan.policy.text"

local cli = {}

local names = { "run", "send", "check" }
local later = { "table", "explain", "decide", "reload", "status", "stop", "dead" }

-- complain tells one mistake, in one line.
function cli.complain(words, ...)
    io.stderr:write("mulligan: " .. text.clean(words:format(...)) .. "\n")
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

-- load_policy loads a policy's file; else nil and the problems, whose files are seen from here.
function cli.load_policy(path, given)
    local policy, message, _, problems = mulligan.load(path, given)
    if policy then
        return policy
    end
    local folder = path:match("^(.*/)[^/]*$") or ""
    for _, problem in ipairs(problems) do
        problem.file = problem.file and folder .. problem.file or path
    end
    if #problems == 0 then
        problems = { { file = path, text = message } }
    end
    return nil, problems
end

local function command_named(name)
    for _, known in ipairs(names) do
        if known == name then
            return require("mulligan.cmd." .. name)
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
    for _, name in ipairs(names) do
        local command = command_named(name)
        lines[#lines + 1] = ("  %-8s %s"):format(name, command.summary)
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
    return cli.complain("unknown %s %s%s", name:sub(1, 1) == "-" and "option" or "command", name,
        near and "; did you mean " .. near .. "?" or "; `mulligan --help` lists them")
end

-- say writes to stdout, which may be a pipe that nobody reads any more.
function cli.say(words)
    return io.stdout:write(words) and io.stdout:flush()
end

-- main runs the command that the words name, and gives the exit code.
function cli.main(words)
    local name = words[1]
    if not name then
        io.stderr:write(help())
        return 2
    elseif name == "--help" or name == "-h" then
        return cli.say(help()) and 0 or 1
    elseif name == "--version" then
        return cli.say("mulligan " .. mulligan.version .. "\n") and 0 or 1
    end
    local command = command_named(name)
    if not command then
        return no_command(name)
    end
    local read, problem = arguments.read(command, table.move(words, 2, #words, 1, {}))
    if not read then
        return cli.complain("%s: %s", name, problem)
    elseif read.help then
        return cli.say(arguments.help(command)) and 0 or 1
    end
    return command.main(read)
end

return cli
