-- cmd/run.lua: runs the consumers of a service.lua.

local arguments = require "mulligan.arguments"
local cli = require "mulligan.cli"
local config = require "mulligan.config"
local core = require "mulligan.core"
local handlers = require "mulligan.handlers"
local log = require "mulligan.log"
local mulligan = require "mulligan"
local options = require "mulligan.options"
local program = require "mulligan.program"
local report = require "mulligan.check.report"
local text = require "mulligan.policy.text"

local run = {}

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

-- short_of_descriptors raises the limit of open files for what handlers do outside of the process; the
-- list of what is wrong.
local function short_of_descriptors(read)
    local needed, largest = 0, nil
    for _, consumer in ipairs(read.consumers) do
        local takes = handlers.descriptors(consumer.options.handler, consumer.options.concurrency or 1)
        needed = needed + takes
        if takes > 0 and takes >= (largest and largest.takes or 0) then
            largest = { takes = takes, name = consumer.name, line = consumer.line }
        end
    end
    local most = needed > 0 and program.descriptors(needed)
    if not most then
        return {}
    end
    return { { file = read.path, line = largest.line, text = ("consumer %s: its concurrency takes %d file \z
        descriptors, all handlers together %d, and %d can be had; lower it, or raise the limit of open files \z
        (ulimit -n)"):format(text.show(largest.name), largest.takes, needed, most) } }
end

-- What the engine says of rules has the policy's file, seen from its folder.
local function refused(read, problems, message)
    local seen = cli.sight(read.policy.path, read.host_policy)
    for _, problem in ipairs(problems or {}) do
        problem.file = problem.file and seen(problem.file)
    end
    return cli.complain_of(placed(problems, message, read.path))
end

-- summary says what became of messages, and where "empty" only means that it was quiet for so long.
local function summary(engine, quiet)
    local counts = engine:counts()
    return ("done %d, retried %d, redelivered %d, dead-lettered %d, discarded %d%s\n"):format(counts.done,
        counts.retried, counts.redelivered, counts.dead_lettered, counts.discarded,
        engine:emptied() == "quiet" and ("; quiet for %s: not every queue can be counted"):format(quiet) or "")
end

local function names_of(list)
    local names = {}
    for number, item in ipairs(list) do
        names[number] = item.name
    end
    return names
end

-- What runs now: the policy and the consumers.
local function started(read, policy)
    local names = names_of(read.consumers)
    local generation = policy:generation()
    return {
        name = "policy_loaded",
        text = ("%s: %s, generation %s; %s"):format(cli.both(read.policy.path, read.host_policy),
            text.count(policy:rules(), "rule", "rules"), generation,
            (#names == 1 and "consumer " or "consumers ") .. table.concat(names, ", ")),
        generation = generation,
    }
end

local MOST_SCOPES = 10

-- warn_of_scopes tells of consumers and transports that the policy names and the file doesn't have.
local function warn_of_scopes(read, policy, lines)
    local consumers, transports = names_of(read.consumers), names_of(read.transports)
    local findings, count = report.not_there(policy, consumers, transports, MOST_SCOPES)
    local seen = cli.sight(read.policy.path, read.host_policy)
    for _, finding in ipairs(findings) do
        local place = finding.line and ("%s:%d"):format(seen(finding.file), finding.line)
        lines.line("warning", ("%s: %s"):format(place or read.policy.path, finding.text))
    end
    if count > #findings then
        lines.line("warning", ("%s: %d more scopes are for nobody here"):format(read.policy.path, count - #findings))
    end
end

-- The exit code that asks whoever started it to do so again.
local START_AGAIN = 75

-- conclude says how it went; the exit code. `why` is a list of problems, where it stopped by itself;
-- `code` names what kind they are of.
local function conclude(engine, words, why, code)
    if words.until_empty then
        cli.say(summary(engine, words.quiet or "10s"))
    end
    if why then
        cli.complain_of(why)
        return code == "memory" and START_AGAIN or 1
    elseif words.until_empty and not engine:emptied() then
        cli.complain("stopped before the queues were empty")
        return 1
    end
    return 0
end

local function work(read, policy, engine, lines, words)
    local fits, why = program.main_engine(engine)
    if not fits then
        return cli.complain("%s: the memory limit %s", read.path, why)
    elseif words.until_empty then
        engine:stop_when_empty()
    end
    program.begin_work()
    config.refuse_exit(program.is_worker)
    local well, message, _, found = engine:start()
    if not well then
        return refused(read, found, message)
    end
    program.mute_policy(policy, lines.unwritten "policy_loaded")
    program.mute(engine, lines.unwritten())
    if lines.decided then
        core.in_words(engine, lines.decided)
    end
    lines.event(started(read, policy))
    warn_of_scopes(read, policy, lines)
    if policy:rules() == 0 then
        lines.line("warning", ("%s: %s"):format(read.policy.path, policy:check().findings[1].text))
    end
    local code
    well, message, code, found = engine:run()
    return conclude(engine, words, not well and placed(found, message) or nil, code)
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
local function load_policy(read, lines, event)
    local policy, problems
    if read.policy then
        policy, problems = cli.load_policy(read.policy.path, {
            log = lines.line,
            event = event,
            host_policy = read.host_policy,
        })
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

-- quiet_of gives how long it has to be quiet; what is wrong.
local function quiet_of(words)
    if not words.quiet then
        return nil
    elseif not words.until_empty then
        return nil, "run: --quiet goes with --until-empty"
    end
    local quiet, why = arguments.span("--quiet", words.quiet)
    return quiet, why and "run: " .. why
end

function run.main(words)
    -- Handlers may print, and a pipe should see it when it happens.
    io.stdout:setvbuf("line")
    local quiet, wrong = quiet_of(words)
    wrong = wrong or words.memory_limit and limit_memory(words.memory_limit)
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
    program.guard_handlers()
    local read = config.load(words[1], "to name another: mulligan run path/service.lua")
    read.host_policy = words.host_policy
    local engine, message
    local policy, of_policy, loaded
    policy, of_policy, loaded = load_policy(read, lines, function(event)
        lines.event(event)
        if event.name == "policy_loaded" then
            engine:after(0, function()
                warn_of_scopes(read, policy, lines)
            end)
        end
    end)
    engine, message = mulligan.engine {
        policy = policy,
        log = lines.line,
        event = lines.event,
        quiet = quiet,
        stop_on_signals = true,
        reload_on_sighup = loaded,
        reload_on_change = loaded,
        patterns = read.patterns or "counted",
    }
    if not engine then
        return cli.complain("%s", message)
    end
    lines.count_equal(function(tell)
        engine:after("1s", tell)
    end)
    local watched, why_not = program.watch(format, words.log_level or "info")
    if not watched then
        return cli.complain("%s", why_not)
    end
    local problems = read.problems
    if #problems == 0 then
        add_all(problems, incomplete(read))
        add_all(problems, set_up(engine, read))
        add_all(problems, short_of_descriptors(read))
    end
    add_all(problems, of_policy)
    local code = #problems > 0 and cli.complain_of(problems)
        or work(read, policy, engine, lines, words)
    lines.flush() -- there is no engine's clock any more for what it counts
    engine:close()
    policy:close()
    return code
end

return run
