-- cmd/serve.lua: verdicts for other programs, on a Unix socket; docs/serve.md. What is asked most is answered in C
-- (src/control), the rest here.

local ansi = require "mulligan.format.ansi"
local cli = require "mulligan.cli"
local core = require "mulligan.core"
local explain = require "mulligan.cmd.explain"
local log = require "mulligan.log"
local mulligan = require "mulligan"
local program = require "mulligan.program"
local text = require "mulligan.policy.text"

local json = mulligan.json

local serve = {}

-- asks gives what answers a question of C's: ask(what, object) gives JSON; or nil and what is wrong with the object.
local function asks(path, host, policy)
    -- C that is called by pcall says no place in this file.
    local asked = {}

    function asked.decide(failure)
        return pcall(core.policy_functions.decide_json, policy, failure)
    end

    function asked.explain(failure)
        return explain.answer(path, host, policy, failure)
    end

    function asked.policy()
        local files, run, why = program.standing(policy)
        return true, cli.json {
            generation = policy:generation(),
            files = json.list(files),
            stale = not run,
            problem = why or json.null,
        }
    end

    return function(what, object)
        local well, answer, why = asked[what](object)
        if well and answer then
            return answer
        end
        why = well and why or type(answer) == "table" and answer.message or tostring(answer)
        return nil, text.mend(why)
    end
end

-- path_of gives the path of what is to be listened on; nil and what is wrong.
local function path_of(listen)
    local path = listen and listen:match "^unix:(.+)$"
    if not path then
        return nil, ("--listen must be unix:PATH, such as unix:/run/user/1000/verdicts.sock%s"):format(
            listen and ", not " .. text.show(listen) or "")
    end
    return path
end

-- load_policy gives the policy; else nil and the problems. `on_change()` hears of another generation.
local function load_policy(path, host, lines, on_change)
    return cli.load_policy(path, {
        host_policy = host,
        log = lines.line,
        event = function(event)
            lines.event(event)
            if event.name == "policy_loaded" then
                on_change()
            end
        end,
    })
end

local function started(path, policy, listen)
    local generation = policy:generation()
    return {
        name = "policy_loaded",
        text = ("%s: %s, generation %s; listening on %s"):format(path, text.count(policy:rules(), "rule", "rules"),
            generation, listen),
        generation = generation,
    }
end

-- run goes on until a signal ends it; true, or nil and why not.
local function run(engine, lines, begun)
    local well, why = engine:start()
    if not well then
        return nil, why
    end
    lines.event(begun)
    return engine:run()
end

function serve.main(words)
    local path, host, listen = words[1], words.host_policy, words.listen
    local socket, wrong = path_of(listen)
    if wrong then
        return cli.complain("serve: %s", wrong)
    end
    -- A pipe that nobody reads must not hold up the clients.
    local queued, why = core.stderr_queue(log.lost "text")
    if not queued then
        return cli.complain("%s", why)
    end
    ansi.plain()
    local lines, server = log.new("text", "info", core.stderr_write), nil
    local policy, problems = load_policy(path, host, lines, function()
        server:changed()
    end)
    if not policy then
        return cli.complain_of(problems)
    end
    local engine, message = mulligan.engine {
        policy = policy,
        log = lines.line,
        event = lines.event,
        stop_on_signals = true,
        reload_on_sighup = true,
        reload_on_change = true,
    }
    if not engine then
        return cli.complain("serve: %s", message)
    end
    program.serve_policy(engine)
    server, why = program.serve(engine, socket, asks(path, host, policy), lines.line)
    if not server then
        return cli.complain("serve: %s: %s", listen, why)
    end
    local well
    well, message = run(engine, lines, started(cli.both(path, host), policy, listen))
    server:close()
    engine:close()
    policy:close()
    return well and 0 or cli.complain("serve: %s", message)
end

return serve
