-- cmd/check.lua: loads a policy and says what is wrong with it, what is suspicious, and how many calls
-- and how much time a message can take by it.

local cli = require "mulligan.cli"
local config = require "mulligan.config"
local json = require("mulligan").json
local options = require "mulligan.options"
local ansi = require "mulligan.format.ansi"
local duration = require "mulligan.format.duration"
local handlers = require "mulligan.handlers"
local text = require "mulligan.policy.text"

local check = {}

-- ---- What it is for ----------------------------------------------------------------------------

-- used_by gives the options of policy:check for a service.lua; else nil and what is wrong with it.
local function used_by(path)
    local read = config.load(path)
    local problems = read.problems
    for _, consumer in ipairs(#problems == 0 and read.consumers or {}) do
        local why = handlers.why_not(consumer.options.handler)
        problems[#problems + 1] = why and { file = path, line = consumer.line, text = why }
    end
    if #problems == 0 and #read.consumers == 0 then
        problems = { { file = path, text = "there is no m.consumer, so nothing that a policy could be for" } }
    end
    if #problems > 0 then
        return nil, problems
    end
    local given = { mulligan = path, consumers = {}, transports = {}, lines = {}, transport_lines = {} }
    for number, transport in ipairs(read.transports) do
        given.transports[number] = transport.name
        given.transport_lines[transport.name] = transport.line
    end
    for number, consumer in ipairs(read.consumers) do
        local checked = options.read(consumer.options, options.consumer)
        given.consumers[number] = {
            name = consumer.name,
            transport = checked.transport,
            url = read.transport_named(checked.transport).url,
            queue = checked.queue,
            timeout = consumer.options.timeout,
        }
        given.lines[consumer.name] = consumer.line
    end
    return given
end

-- place gives findings the files that they are in as seen from here: the policy's, the host policy, or
-- service.lua.
local function place(findings, path, seen, given)
    for _, finding in ipairs(findings) do
        if finding.file then
            finding.file = seen(finding.file)
        elseif finding.consumer then
            finding.file, finding.line = given.mulligan, given.lines[finding.consumer]
        else
            finding.file = path
        end
    end
end

-- place_refused does so with what `run` would refuse: what has no file is in service.lua, and what
-- begins with a transport on the line of that.
local function place_refused(refused, seen, given)
    for _, problem in ipairs(refused) do
        if problem.file then
            problem.file = seen(problem.file)
        else
            local name = problem.text:match "^transport '(.-)': "
            problem.file, problem.line = given.mulligan, name and given.transport_lines[name]
        end
    end
end

-- ---- For programs ------------------------------------------------------------------------------

local function fill(list, ...)
    for _, item in ipairs(list) do
        for _, key in ipairs { ... } do
            if item[key] == nil then
                item[key] = json.null
            end
        end
    end
    return json.list(list)
end

local measures = { "calls", "shortest_ms", "longest_ms", "last_call_ms" }

local function as_json(result)
    fill(result.problems, "file", "line")
    fill(result.findings, "line", "consumer")
    fill(result.bounds, "max_attempts", "max_age_ms", "deadline_ms", table.unpack(measures))
    for _, scope in ipairs(result.bounds) do
        fill(scope.rules, table.unpack(measures))
    end
    cli.say(json.encode(result) .. "\n")
end

local function refused(problems, format)
    if format == "json" then
        as_json { ok = false, rules = json.null, scopes = json.null, generation = json.null, problems = problems,
            findings = {}, bounds = {} }
        return 2
    end
    return cli.complain_of(problems)
end

-- ---- For people --------------------------------------------------------------------------------

local function show_finding(finding)
    local at = finding.line and ("%s:%d"):format(finding.file, finding.line) or finding.file
    cli.say(("%s: %s %s\n"):format(ansi.bold(text.clean(at)), ansi.yellow(finding.code), text.clean(finding.text)))
end

local function time(ms)
    return ms and duration.about(ms) or "none"
end

local function row(name, of)
    local rough = of.rough and " rough" or ""
    return { name, (of.calls and tostring(of.calls) or "none"), time(of.shortest_ms), time(of.longest_ms) .. rough,
        time(of.last_call_ms) }
end

local function rule_name(rule)
    local matcher = rule.matcher and ", with a matcher" or ""
    local cause = rule.cause and "cause " or ""
    return ("  %s:%d %s%s%s"):format(text.clean(rule.file), rule.line, cause, text.name(rule.type), matcher)
end

-- notes says of a scope's bounds what they come from, where that may be a surprise.
local function notes(of)
    local list = {}
    local is_late = of.max_age_ms and not of.deadline_ms and (of.last_call_ms or math.maxinteger) > of.max_age_ms
    if of.overridden then
        list[1] = "an override is in force, so only max_attempts and deadline bound calls and time"
    end
    if of.overridden and not of.default then
        list[#list + 1] = "its rules have no default(), so config.retry and config.redeliver have 0 attempts in the "
            .. "override"
    end
    if is_late then
        list[#list + 1] = ("max_age (%s) only ends redeliveries: the last call may begin %s; deadline ends calls")
            :format(duration.exact(of.max_age_ms), of.last_call_ms and "after " .. duration.about(of.last_call_ms)
            or "at any time")
    end
    return list
end

local function show_bounds(bounds, known)
    local rows = { { "from the first failure on", "calls", "shortest", "longest", "last call" } }
    for _, scope in ipairs(bounds) do
        local by = scope.overridden and ", whatever the override answers" or ", by any of its rules"
        rows[#rows + 1] = row(text.name(scope.scope) .. by, scope)
        for _, rule in ipairs(scope.rules) do
            rows[#rows + 1] = row(rule_name(rule), rule)
        end
    end
    for number, line in ipairs(ansi.columns(rows, 0)) do
        cli.say((number == 1 and ansi.dim(line) or line) .. "\n")
    end
    for _, scope in ipairs(bounds) do
        for _, note in ipairs(notes(scope)) do
            cli.say(("%s: %s\n"):format(text.name(scope.scope), note))
        end
    end
    if not known then
        cli.say(ansi.dim "where each call may take 30s; --for service.lua knows the timeouts" .. "\n")
    end
end

local function show(path, policy, found, known)
    for _, finding in ipairs(found.findings) do
        show_finding(finding)
    end
    cli.say(("%s: %s in %s\n"):format(path, text.count(policy:rules(), "rule", "rules"),
        text.count(policy:scopes(), "scope", "scopes")))
    if #found.bounds > 0 then
        cli.say "\n"
        show_bounds(found.bounds, known)
    end
end

-- ---- All of it ---------------------------------------------------------------------------------

function check.main(words)
    local path, host, given = words[1], words.host_policy, nil
    local policy, problems = cli.load_policy(path, { log = cli.print, host_policy = host })
    if policy and words["for"] then
        given, problems = used_by(words["for"])
        if not given then
            policy:close()
        end
    end
    if problems then
        return refused(problems, words.format)
    end
    local found = policy:check(given and { consumers = given.consumers, transports = given.transports })
    local seen = cli.sight(path, host)
    place(found.findings, path, seen, given)
    place_refused(found.refused, seen, given)
    local is_refused, code = #found.refused > 0, words.strict and #found.findings > 0 and 1 or 0
    if words.format == "json" then
        as_json { ok = not is_refused, rules = policy:rules(), scopes = policy:scopes(), generation = found.generation,
            problems = found.refused, findings = found.findings, bounds = found.bounds }
    else
        show(cli.both(path, host), policy, found, given)
        code = is_refused and cli.complain_of(found.refused) or code
    end
    policy:close()
    return is_refused and 2 or code
end

return check
