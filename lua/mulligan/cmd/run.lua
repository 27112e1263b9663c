-- cmd/run.lua: runs the consumers of a mulligan.lua.

local cli = require "mulligan.cli"
local config = require "mulligan.config"
local core = require "mulligan.core"
local log = require "mulligan.log"
local mulligan = require "mulligan"
local options = require "mulligan.options"
local program = require "mulligan.program"
local text = require "mulligan.policy.text"

local run = {
    name = "run",
    summary = "runs the consumers of a mulligan.lua",
    usage = "run [mulligan.lua] [OPTION]...",
    about = "Runs the consumers of mulligan.lua, or of the file named. SIGTERM and SIGINT let handlers end\n"
        .. "and give back the rest, uncounted. SIGHUP, or a change of one of its files, reloads the policy.\n"
        .. "The log goes to stderr.",
    options = {
        { "--until-empty", help = "end, with a summary, once the queues are empty; in 1 if a signal comes first" },
        { "--log-format", "text|json", help = "one line an event, for people or for programs (text)" },
        { "--log-level", "debug|info|warning|error", help = "leave out what is below (info)" },
        { "--memory-limit", "SIZE", help = "what handlers may use in all: 512MiB (3/4 of what there is)" },
    },
    at_most = 1,
}

-- Problems with the file and line that they belong to, where the library doesn't know them.
local function placed(problems, message, file, line)
    if not problems or #problems == 0 then
        return { { file = file, line = line, text = message } }
    end
    for _, problem in ipairs(problems) do
        problem.file = problem.file or file
        problem.line = problem.line or line
    end
    return problems
end

local function add_all(to, problems)
    table.move(problems, 1, #problems, #to + 1, to)
end

-- set_up gives the engine what the file says; the list of what went wrong.
local function set_up(engine, read)
    local problems = {}
    local function note(line, well, message, _, found)
        if not well then
            add_all(problems, placed(found, message, read.path, line))
        end
    end
    for _, transport in ipairs(read.transports) do
        note(transport.line, engine:transport(transport.name, transport.url))
    end
    if #problems > 0 then
        return problems -- each consumer of these would complain as well
    end
    for _, consumer in ipairs(read.consumers) do
        note(consumer.line, engine:consumer(consumer.name, consumer.options))
    end
    return problems
end

-- What the engine says of rules has the policy's file, seen from its folder.
local function refused(read, problems, message)
    local folder = read.policy.path:match("^(.*/)[^/]*$") or ""
    for _, problem in ipairs(problems or {}) do
        problem.file = problem.file and folder .. problem.file
    end
    return cli.complain_of(placed(problems, message, read.path))
end

local function summary(counts)
    return ("done %d, retried %d, redelivered %d, dead-lettered %d, discarded %d\n"):format(counts.done,
        counts.retried, counts.redelivered, counts.dead_lettered, counts.discarded)
end

-- What runs now: the policy and the consumers.
local function started(read, policy)
    local names = {}
    for number, consumer in ipairs(read.consumers) do
        names[number] = consumer.name
    end
    local generation = policy:generation()
    return {
        name = "policy_loaded",
        text = ("%s: %s, generation %s; %s"):format(read.policy.path, text.count(policy:rules(), "rule", "rules"),
            generation, (#names == 1 and "consumer " or "consumers ") .. table.concat(names, ", ")),
        generation = generation,
    }
end

-- conclude says how it went; the exit code. `why` is a list of problems, where it stopped by itself.
local function conclude(engine, until_empty, why)
    if until_empty then
        cli.say(summary(engine:counts()))
    end
    if why then
        cli.complain_of(why)
        return 1
    elseif until_empty and not engine:emptied() then
        cli.complain("stopped before the queues were empty")
        return 1
    end
    return 0
end

local function work(read, policy, engine, lines, until_empty)
    if until_empty then
        engine:stop_when_empty()
    end
    local well, message, _, found = engine:start()
    if not well then
        return refused(read, found, message)
    end
    lines.event(started(read, policy))
    if policy:rules() == 0 then
        lines.line("warning", read.policy.path .. " has no rules: every failure is a dead letter")
    end
    well, message, _, found = engine:run()
    return conclude(engine, until_empty, not well and placed(found, message) or nil)
end

local function incomplete(read)
    if not read.policy then
        return { { file = read.path, text = 'm.policy is missing; name its file, as in m.policy "policy.lua"' } }
    elseif #read.consumers == 0 then
        return { { file = read.path, text = "there is no m.consumer, so there is nothing to run" } }
    end
    return {}
end

-- load_policy gives the policy that the file names, what is wrong with it, and whether it could be
-- loaded; else it is an empty one, with which the rest of the file can be looked at.
local function load_policy(read, lines)
    local policy, problems
    if read.policy then
        policy, problems = cli.load_policy(read.policy.path, { log = lines.line, event = lines.event })
    end
    return policy or assert(mulligan.load_text ""), problems or {}, policy ~= nil
end

-- limit_memory sets the limit that was asked for; what is wrong with it.
local function limit_memory(given)
    local well, why = options.bytes(math.tointeger(given) or given)
    if well then
        well, why = program.memory_limit(well)
    end
    return not well and ("run: --memory-limit %s"):format(why)
end

function run.main(words)
    -- Handlers may print, and a pipe should see it when it happens.
    io.stdout:setvbuf("line")
    local wrong = words.memory_limit and limit_memory(words.memory_limit)
    if wrong then
        return cli.complain("%s", wrong)
    end
    local format = words.log_format or "text"
    -- A pipe that nobody reads must not hold up handlers, timeouts and signals.
    local queued, why = core.stderr_queue(log.lost(format))
    if not queued then
        return cli.complain("%s", why)
    end
    local lines = log.new(format, words.log_level or "info", core.stderr_write)
    local read = words[1] and config.load(words[1])
        or config.load("mulligan.lua", "to name another: mulligan run path/mulligan.lua")
    local policy, of_policy, loaded = load_policy(read, lines)
    local engine, message = mulligan.engine {
        policy = policy,
        log = lines.line,
        event = lines.event,
        stop_on_signals = true,
        reload_on_sighup = loaded,
        reload_on_change = loaded,
    }
    if not engine then
        return cli.complain("%s", message)
    end
    local problems = read.problems
    if #problems == 0 then
        add_all(problems, incomplete(read))
        add_all(problems, set_up(engine, read))
    end
    add_all(problems, of_policy)
    local code = #problems > 0 and cli.complain_of(problems)
        or work(read, policy, engine, lines, words.until_empty)
    program.hold_signals()
    engine:close()
    program.survive_signals()
    policy:close()
    return code
end

return run
