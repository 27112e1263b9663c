-- cmd/explain.lua: why the verdict on a failure is what it is, and what follows; docs/explain.md.

local chain = require "mulligan.format.chain"
local cli = require "mulligan.cli"
local core = require "mulligan.core"
local json = require("mulligan").json
local matcher = require "mulligan.format.matcher"
local ansi = require "mulligan.format.ansi"
local scopes = require "mulligan.format.scopes"
local duration = require "mulligan.format.duration"
local settings = require "mulligan.format.settings"
local text = require "mulligan.policy.text"
local timeline = require "mulligan.format.timeline"

local LARGEST = 16 * 1024 * 1024

local command = {}

-- ---- The failure -------------------------------------------------------------------------------

-- value_of gives what a field's text means: numbers are written as in JSON.
local function value_of(written)
    if written == "true" or written == "false" then
        return written == "true"
    end
    local whole, fraction, power = written:match("^%-?(%d+)(%.?%d*)([eE]?[+-]?%d*)$")
    local is_number = whole and (whole == "0" or not whole:find("^0")) and (fraction == "" or fraction:find("%d"))
        and (power == "" or power:find("^[eE][+-]?%d"))
    local number = is_number and tonumber(written)
    if number and number ~= math.huge and number ~= -math.huge then
        return number
    end
    return written
end

local function add_field(err, field)
    local name, written = field:match("^([^=]+)=(.*)$")
    if not name then
        return "--field must be NAME=VALUE, not " .. text.show(field)
    elseif not text.valid(field) then
        return ("--field must be UTF-8, which %s isn't"):format(text.show(field))
    elseif name == "type" or name == "lineage" or name == "cause" then
        return ("--field %s: %s"):format(name, name == "type" and "that is what --error says"
            or "only a failure in a file has one; see --failure")
    elseif err[name] ~= nil then
        return ("--field %s is given twice"):format(text.show(name))
    end
    local is_text = name == "message" or name == "stack"
    err[name] = is_text and written or value_of(written)
end

local function whole(words, name, least)
    local written = words[name]
    local number = written and written:find("^%d+$") and math.tointeger(tonumber(written))
    if written and (not number or number < least) then
        return nil, ("--%s must be a whole number from %d, not %s"):format(name, least, text.show(written))
    end
    return number
end

-- of_options gives the failure that the options describe; else nil and what is wrong.
local function of_options(words)
    for _, name in ipairs { "error", "consumer", "transport" } do
        if words[name] and not text.valid(words[name]) then
            return nil, ("--%s must be UTF-8, which %s isn't"):format(name, text.show(words[name]))
        end
    end
    local err = { type = words.error }
    for _, field in ipairs(words.field or {}) do
        local problem = add_field(err, field)
        if problem then
            return nil, problem
        end
    end
    local attempt, wrong_attempt = whole(words, "attempt", 1)
    local redeliveries, wrong_redeliveries = whole(words, "redeliveries", 0)
    if wrong_attempt or wrong_redeliveries then
        return nil, wrong_attempt or wrong_redeliveries
    end
    return {
        error = err,
        consumer = words.consumer,
        transport = words.transport,
        attempt = attempt,
        redeliveries = redeliveries,
    }
end

-- of_file gives the text of a failure; else nil and what is wrong.
local function of_file(path)
    local file, why = io.stdin, nil
    if path ~= "-" then
        file, why = io.open(path, "rb")
    end
    if not file then
        return nil, why
    end
    local read, problem = file:read(LARGEST + 1)
    if path ~= "-" then
        file:close()
    end
    local shown = path == "-" and "stdin" or path
    if problem then
        return nil, ("%s: %s"):format(shown, problem)
    elseif not read or not read:find("%S") then
        return nil, shown .. ": there is no failure in it"
    elseif #read > LARGEST then
        return nil, shown .. ": larger than 16 MiB"
    end
    return read
end

-- failure_of gives what is explained, a table or a JSON text; else nil and what is wrong.
local function failure_of(words)
    if not words.failure and not words.error then
        return nil, "there is nothing to explain: give --error TYPE, or --failure FILE"
    elseif not words.failure then
        return of_options(words)
    end
    for _, name in ipairs { "error", "field", "consumer", "transport", "attempt", "redeliveries" } do
        if words[name] then
            return nil, ("--%s and --failure exclude each other: the file says all"):format(name)
        end
    end
    return of_file(words.failure)
end

-- ---- Text --------------------------------------------------------------------------------------

local seen -- what names a file as it is called from here

-- statement gives a rule as it was written, more or less.
local function statement(kind, rule)
    local words = kind == "unrecoverable" and "unrecoverable" or kind == "cause_rule" and "on_cause" or "on"
    return ("%s(%s)"):format(words, text.show(rule.type))
end

local function wait_of(verdict)
    return verdict.delay_ms == 0 and "at once" or "in " .. duration.exact(verdict.delay_ms)
end

-- override says what an override made of the verdict.
local function override(of, verdict)
    if of.failed then
        return "it failed, and the verdict stands: " .. text.clean(of.failed)
    end
    local before = chain.verdict(of.before, wait_of(of.before))
    if before == chain.verdict(verdict, wait_of(verdict)) then
        return "it lets the verdict stand"
    end
    return "without it: " .. before
end

local function add_verdict(lines, of)
    local verdict = of.verdict
    local first = (of.timeline.both.first[1] or of.timeline.shortest.first[1])
    local longest = of.timeline.longest and #of.timeline.both.first == 0 and of.timeline.longest.first[1] or first
    local said = chain.verdict(verdict, wait_of(verdict))
    if verdict.tier and first.shortest_delay_ms ~= longest.longest_delay_ms then
        said = ("%s; jitter takes it from %s to %s"):format(said, duration.exact(first.shortest_delay_ms),
            duration.exact(longest.longest_delay_ms))
    end
    local rows = { { ansi.bold "verdict", ansi.bold(said) } }
    local rule = verdict.rule
    rows[2] = { ansi.bold "rule", rule and ("%s, %s, for %s"):format(scopes.place(seen, rule),
        text.name(rule.scope), text.name(rule.type)) or "none decided" }
    if of.override then
        rows[3] = { ansi.bold "override", override(of.override, verdict) }
    end
    table.move(ansi.columns(rows, 0), 1, #rows, #lines + 1, lines)
end

local results = { passed = "✓", lost = "✗", raised = "!" }
local colours = { passed = "green", lost = "dim", raised = "red" }

local function candidate_row(candidate, here)
    local rule = candidate.rule
    local from = rule.scope and rule.scope ~= here and " " .. text.name(rule.scope) or ""
    local why
    if candidate.result == "passed" then
        why = candidate.matcher and matcher.describe(candidate.matcher) or "always"
    else
        why = matcher.lost(candidate)
    end
    if candidate.depth then
        why = ("cause %d, %s: %s"):format(candidate.depth, text.name(candidate.cause), why)
    end
    local colour = ansi[colours[candidate.result]]
    return {
        colour(results[candidate.result]),
        scopes.place(seen, rule) .. from,
        statement(candidate.kind, rule),
        colour(why),
    }
end

local function add_candidates(lines, of)
    local here = scopes.in_force(of.scopes)
    lines[#lines + 1] = ansi.bold "candidates" .. "  in the order in which they were looked at"
    local rows = {}
    for number, candidate in ipairs(of.candidates) do
        rows[number] = candidate_row(candidate, here)
    end
    if #rows == 0 then
        lines[#lines + 1] = "  none: " .. (of.verdict.reason == "max_deliveries" and chain.why(of.verdict)
            or "no rule and no declaration is for such a type")
    end
    table.move(ansi.columns(rows, 2), 1, #rows, #lines + 1, lines)
end

local function add_limits(lines, of)
    lines[#lines + 1] = ansi.bold "limits" .. "  in force here"
    local rows = settings.limits(seen, of.settings)
    table.move(ansi.columns(rows, 2), 1, #rows, #lines + 1, lines)
    if #rows == 0 then
        lines[#lines + 1] = "  none"
    end
end

local function title(path, of)
    local failure = of.failure
    local message = failure.message and failure.message ~= "" and " " .. text.show(failure.message) or ""
    return ("%s%s in %s: attempt %d, redeliveries %d, calls %d%s\nby %s (generation %s)"):format(
        ansi.bold(text.name(failure.type)), message, scopes.whom(failure), failure.attempt, failure.redeliveries,
        failure.calls, failure.age_ms > 0 and ", first failed " .. duration.about(failure.age_ms) .. " ago" or "",
        text.clean(path), of.generation:sub(1, 8))
end

local function as_text(path, of)
    local lines = { title(path, of), "" }
    add_verdict(lines, of)
    lines[#lines + 1] = ""
    lines[#lines + 1] = ansi.bold "scopes" .. "  the nearest one with rules is in force, as a whole"
    local rows = scopes.lines(seen, of.scopes)
    table.move(rows, 1, #rows, #lines + 1, lines)
    lines[#lines + 1] = ""
    add_limits(lines, of)
    lines[#lines + 1] = ""
    add_candidates(lines, of)
    lines[#lines + 1] = ""
    rows = timeline.lines(of.timeline, of.settings, of.failure.age_ms)
    table.move(rows, 1, #rows, #lines + 1, lines)
    return table.concat(lines, "\n") .. "\n"
end

-- ---- JSON --------------------------------------------------------------------------------------

local verdict_keys = { "queue", "reason", "note", "tier", "step", "of", "rule", "fallback" }

-- complete gives a verdict every key of decide's.
local function complete(verdict)
    for _, key in ipairs(verdict_keys) do
        verdict[key] = verdict[key] == nil and json.null or verdict[key]
    end
end

local function complete_all(of)
    complete(of.verdict)
    if of.override then
        complete(of.override.before)
    end
    for _, name in ipairs { "both", "shortest", "longest" } do
        for _, part in ipairs { "first", "last" } do
            for _, step in ipairs(of.timeline[name] and of.timeline[name][part] or {}) do
                complete(step)
            end
        end
    end
end

local function as_json(of)
    complete_all(of)
    return cli.json(of)
end

-- ---- For other programs ------------------------------------------------------------------------

local MOST_FIRST, MOST_LAST = 100, 20

-- shorten leaves a strip of the timeline so many steps that all of them fit an answer of `serve`.
local function shorten(strip)
    local first, last = strip.first, strip.last
    if #first > MOST_FIRST then
        table.move(last, 1, #last, #first + 1, first)
        strip.left_out = strip.left_out + math.max(0, #first - MOST_FIRST - MOST_LAST)
        strip.last = table.move(first, math.max(MOST_FIRST, #first - MOST_LAST) + 1, #first, 1, {})
        strip.first = table.move(first, 1, MOST_FIRST, 1, {})
    end
end

-- answer explains a failure in JSON to a program: true and JSON; or what pcall and policy:explain give. The policy is
-- the one at `path`, with its host policy at `host`, if it has one.
function command.answer(path, host, policy, failure)
    seen = cli.sight(path, host)
    local well, of, why = pcall(core.policy_explain, policy, failure)
    if not well or not of then
        return well, of, why
    end
    local words = as_text(cli.both(path, host), of)
    for _, name in ipairs { "both", "shortest", "longest" } do
        if of.timeline[name] then
            shorten(of.timeline[name])
        end
    end
    complete_all(of)
    return true, cli.json {
        text = words,
        rule = of.verdict.rule,
        candidates = json.list(of.candidates),
        timeline = of.timeline,
    }
end

-- ---- All of it ---------------------------------------------------------------------------------

function command.main(words)
    local failure, wrong = failure_of(words)
    if not failure then
        return cli.complain("explain: %s", wrong)
    end
    local host = words.host_policy
    seen = cli.sight(words[1], host)
    local policy, problems = cli.load_policy(words[1], { log = cli.print, host_policy = host })
    if not policy then
        return cli.complain_of(problems)
    end
    local well, of, why = pcall(core.policy_explain, policy, failure)
    local code = 0
    if well and of then
        cli.say(words.format == "json" and as_json(of) or as_text(cli.both(words[1], host), of))
    else
        why = well and why or type(of) == "table" and of.message or tostring(of)
        code = cli.complain("explain: %s%s", words.failure and words.failure .. ": " or "", why)
    end
    policy:close()
    return code
end

return command
