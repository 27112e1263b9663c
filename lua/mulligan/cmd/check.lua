-- cmd/check.lua: loads a policy and says what is wrong with it, what is suspicious, and how many calls
-- and how much time a message can take by it.

local cli = require "mulligan.cli"
local config = require "mulligan.config"
local json = require("mulligan").json
local options = require "mulligan.options"
local ansi = require "mulligan.format.ansi"
local duration = require "mulligan.format.duration"
local text = require "mulligan.policy.text"

local check = {}

-- ---- What it is for ----------------------------------------------------------------------------

-- used_by gives the options of policy:check for a service.lua; else nil and what is wrong with it.
local function used_by(path)
    local read = config.load(path)
    local problems = read.problems
    if #problems == 0 and #read.consumers == 0 then
        problems = { { file = path, text = "there is no m.consumer, so nothing that a policy could be for" } }
    end
    if #problems > 0 then
        return nil, problems
    end
    local given = { consumers = {}, transports = {}, lines = {} }
    for number, transport in ipairs(read.transports) do
        given.transports[number] = transport.name
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

-- place gives findings the files that they are in as seen from here: the policy's, or service.lua.
local function place(findings, path, given)
    local folder = path:match("^(.*/)[^/]*$") or ""
    for _, finding in ipairs(findings) do
        if finding.file then
            finding.file = folder .. finding.file
        elseif finding.consumer then
            finding.file, finding.line = given.mulligan, given.lines[finding.consumer]
        else
            finding.file = path
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

local function as_json(result)
    fill(result.problems, "file", "line")
    fill(result.findings, "line", "consumer")
    fill(result.bounds, "calls", "shortest_ms", "longest_ms")
    for _, scope in ipairs(result.bounds) do
        fill(scope.rules, "calls", "shortest_ms", "longest_ms")
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
    return { name, (of.calls and tostring(of.calls) or "none"), time(of.shortest_ms), time(of.longest_ms) .. rough }
end

local function rule_name(rule)
    local matcher = rule.matcher and ", with a matcher" or ""
    local cause = rule.cause and "cause " or ""
    return ("  %s:%d %s%s%s"):format(text.clean(rule.file), rule.line, cause, text.name(rule.type), matcher)
end

local function show_bounds(bounds, known)
    local rows = { { "from the first failure on", "calls", "shortest", "longest" } }
    for _, scope in ipairs(bounds) do
        rows[#rows + 1] = row(text.name(scope.scope) .. ", by any of its rules", scope)
        for _, rule in ipairs(scope.rules) do
            rows[#rows + 1] = row(rule_name(rule), rule)
        end
    end
    for number, line in ipairs(ansi.columns(rows, 0)) do
        cli.say((number == 1 and ansi.dim(line) or line) .. "\n")
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
    local path, given = words[1], nil
    local policy, problems = cli.load_policy(path, { log = cli.print })
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
    if given then
        given.mulligan = words["for"]
    end
    place(found.findings, path, given)
    if words.format == "json" then
        as_json { ok = true, rules = policy:rules(), scopes = policy:scopes(), generation = found.generation,
            problems = {}, findings = found.findings, bounds = found.bounds }
    else
        show(path, policy, found, given)
    end
    policy:close()
    return words.strict and #found.findings > 0 and 1 or 0
end

return check
