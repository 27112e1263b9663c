-- cmd/check.lua: loads a policy and says what is wrong with it, and what is suspicious: so far, that
-- it has no rules.

local cli = require "mulligan.cli"
local json = require("mulligan").json
local text = require "mulligan.policy.text"

local check = {
    name = "check",
    summary = "loads a policy, and lists every mistake in it",
    usage = "check POLICY [OPTION]...",
    about = "Loads a policy, and lists every mistake that can be found in one go. Says so if it has no rules.",
    options = {
        { "--format", "text|json", help = "for people or for programs (text)" },
        { "--strict", help = "end in 1 if it has no rules" },
        { "--for", "mulligan.lua", later = true },
    },
    at_least = 1,
    at_most = 1,
}

local function findings_of(path, policy)
    if policy:rules() > 0 then
        return {}
    end
    return { { file = path, text = "the policy has no rules: every failure is a dead letter" } }
end

local function as_json(result)
    for _, name in ipairs { "problems", "findings" } do
        for _, problem in ipairs(result[name]) do
            problem.line = problem.line or json.null
        end
        json.list(result[name])
    end
    cli.say(json.encode(result) .. "\n")
end

local function refused(problems, format)
    if format == "json" then
        as_json { ok = false, rules = json.null, scopes = json.null, generation = json.null, problems = problems,
            findings = {} }
        return 2
    end
    return cli.complain_of(problems)
end

function check.main(words)
    local path = words[1]
    local policy, problems = cli.load_policy(path, { log = cli.print })
    if not policy then
        return refused(problems, words.format)
    end
    local findings = findings_of(path, policy)
    local rules, scopes = policy:rules(), policy:scopes()
    if words.format == "json" then
        as_json { ok = true, rules = rules, scopes = scopes, generation = policy:generation(), problems = {},
            findings = findings }
    else
        for _, finding in ipairs(findings) do
            cli.say(("%s: %s\n"):format(finding.file, finding.text))
        end
        cli.say(("%s: %s in %s\n"):format(path, text.count(rules, "rule", "rules"),
            text.count(scopes, "scope", "scopes")))
    end
    policy:close()
    return words.strict and #findings > 0 and 1 or 0
end

return check
