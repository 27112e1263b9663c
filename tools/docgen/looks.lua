-- What policy:table, policy:explain and policy:check give. docs/table.md, explain.md and check.md tell
-- of the keys, so these are in the types alone.

-- A class: { name, parent or nil, { field, type, text } ... }.
local function class(name, parent, fields)
    return { class = name, parent = parent, text = fields.text, fields = fields }
end

local settings = { text = "Settings by name." }
for number, row in ipairs(dofile "tools/docgen/setting_rows.lua") do
    settings[number] = { row.field, "mulligan.SettingInForce",
        row.kind == "rate" and "its value: `after` and `wait_ms`" or "" }
end

return {
    class("Bounds", nil, {
        text = "What no message comes beyond; what has no bound isn't there.",
        { "calls?", "integer", "of the handler, at most" },
        { "shortest_ms?", "integer", "from the first failure to the end, at least; nil: there is no end" },
        { "longest_ms?", "integer", "at most" },
        { "rough", "boolean", "they hold, but may not be the least" },
    }),

    -- check
    class("CheckReport", nil, {
        text = "What `policy:check` gives.",
        { "generation", "string", "the content hash of the policy's files" },
        { "findings", "mulligan.Finding[]", "in the order of the files" },
        { "bounds", "mulligan.ScopeBounds[]", "of each scope" },
    }),
    class("Finding", nil, {
        text = "What is wrong or suspicious.",
        { "code", "string", "its page under docs/findings" },
        { "file?", "string", "relative to the policy's folder" },
        { "line?", "integer", "in it" },
        { "text", "string", "what, and what would be right" },
        { "consumer?", "string", "whom it is about" },
    }),
    class("ScopeBounds", "Bounds", {
        text = "Bounds of a scope.",
        { "scope", "string", "`host`, `bus`, `transport:NAME` or `consumer:NAME`" },
        { "rules", "mulligan.RuleBounds[]", "as they are tried" },
    }),
    class("RuleBounds", "Bounds", {
        text = "Bounds of a failure that one rule decides every time.",
        { "file", "string", "relative to the policy's folder" },
        { "line", "integer", "in it" },
        { "scope", "string", "where it was written" },
        { "type", "string", "that it is for" },
        { "cause", "boolean", "an `on_cause` rule" },
        { "matcher", "boolean", "it has one" },
    }),

    -- explain
    class("Explanation", nil, {
        text = "What `policy:explain` gives.",
        { "generation", "string", "the content hash of the policy's files" },
        { "failure", "mulligan.ExplainedFailure", "with defaults filled in" },
        { "verdict", "mulligan.Verdict", "as `decide` gives it" },
        { "override?", "mulligan.ExplainedOverride", "where one is in force" },
        { "scopes", "mulligan.ScopeInForce[]", "nearest first" },
        { "candidates", "mulligan.Candidate[]", "in the order in which they were looked at" },
        { "timeline", "mulligan.Timeline", "if every call fails with the same error" },
    }),
    class("ExplainedFailure", nil, {
        text = "What is explained.",
        { "type", "string", "of the error" },
        { "message?", "string", "of the error" },
        { "consumer?", "string", "its name" },
        { "transport?", "string", "its name" },
        { "attempt", "integer", "from 1" },
        { "redeliveries", "integer", "from 0" },
        { "calls", "integer", "from 1" },
        { "deliveries", "integer", "from 1" },
        { "age_ms", "integer", "since the first failure" },
    }),
    class("Decided", nil, {
        text = "What was decided, as in a verdict.",
        { "action", "mulligan.Action", "what is to be done" },
        { "queue?", "string", "of a dead letter" },
        { "reason?", "mulligan.Reason", "why" },
        { "note?", "string", "of a discard" },
        { "tier?", "mulligan.Tier", "of a retry or a redelivery" },
        { "step?", "integer", "the how-manyth of the tier" },
        { "of?", "integer", "of how many" },
        { "rule?", "mulligan.LookedAt", "the rule that decided" },
        { "fallback?", "mulligan.Fallback", "what the transport could not do" },
    }),
    class("ExplainedOverride", nil, {
        text = "What an override did.",
        { "before", "mulligan.DecidedBefore", "the verdict of the rules alone" },
        { "failed?", "string", "why its answer doesn't count" },
    }),
    class("DecidedBefore", "Decided", {
        text = "A verdict before its override.",
        { "delay_ms", "integer", "whole milliseconds" },
    }),
    class("LookedAt", nil, {
        text = "A rule, or an `unrecoverable` declaration, of which the built-in one has its type alone.",
        { "file?", "string", "relative to the policy's folder" },
        { "line?", "integer", "in it" },
        { "scope?", "string", "where it was written" },
        { "type", "string", "that it is for" },
    }),
    class("Candidate", nil, {
        text = "What was looked at.",
        { "kind", '"unrecoverable"|"rule"|"cause_rule"', "" },
        { "result", '"passed"|"lost"|"raised"', "" },
        { "rule", "mulligan.LookedAt", "" },
        { "matcher?", "mulligan.PlainMatcher", "nil: it always passes" },
        { "test?", "mulligan.LostTest", "at which it lost" },
        { "why?", "string", "it raised" },
        { "depth?", "integer", "which cause, from 1" },
        { "cause?", "string", "the cause's type" },
    }),
    class("Timeline", nil, {
        text = "What follows, from now on.",
        { "both", "mulligan.Strip", "while the shortest and the longest delays lead to the same" },
        { "shortest?", "mulligan.Strip", "from where they part" },
        { "longest?", "mulligan.Strip", "from where they part" },
        { "cut", "boolean", "it goes on" },
    }),
    class("Strip", nil, {
        text = "Calls that failed, in their order.",
        { "first", "mulligan.Step[]", "at most 1,000" },
        { "left_out", "integer", "how many are not shown behind these" },
        { "last", "mulligan.Step[]", "at most 100, behind those" },
    }),
    class("Step", "Decided", {
        text = "A call that failed, and what was decided.",
        { "calls", "integer", "from 1" },
        { "attempt", "integer", "from 1" },
        { "redeliveries", "integer", "from 0" },
        { "earliest_ms", "integer", "when, from now" },
        { "latest_ms", "integer", "when, from now" },
        { "shortest_delay_ms", "integer", "until the next call" },
        { "longest_delay_ms", "integer", "until the next call" },
    }),

    -- table
    class("InForce", nil, {
        text = "What `policy:table` gives.",
        { "generation", "string", "the content hash of the policy's files" },
        { "consumer?", "string", "for whom" },
        { "transport?", "string", "for whom" },
        { "scopes", "mulligan.ScopeInForce[]", "nearest first" },
        { "others", "mulligan.ScopeSize[]", "of other consumers and transports" },
        { "rules", "mulligan.RuleInForce[]", "in the order in which they are tried within a type" },
        { "cause_rules", "mulligan.RuleInForce[]", "likewise" },
        { "bounds", "mulligan.Bounds", "of whatever fails, whichever of these rules decide" },
        { "unrecoverable", "mulligan.Unrecoverable[]", "declarations of all scopes" },
        { "replaced", "mulligan.Replaced[]", "rules that are no longer in force" },
        { "parents", "table<string, string>", "declared types: what each descends from" },
        { "settings", "mulligan.SettingsInForce", "by name" },
    }),
    class("ScopeInForce", nil, {
        text = "A scope that is looked at.",
        { "scope", "string", "`host`, `bus`, `transport:NAME` or `consumer:NAME`" },
        { "exists", "boolean", "it is in the policy" },
        { "in_force", "boolean", "its rules are" },
        { "rules", "integer", "how many it has, included ones too" },
        { "includes?", "mulligan.IncludedScope[]", "of one that exists" },
    }),
    class("IncludedScope", nil, {
        text = "A scope that another one includes.",
        { "scope", "string", "which" },
        { "file", "string", "relative to the policy's folder" },
        { "line", "integer", "in it" },
    }),
    class("ScopeSize", nil, {
        text = "A scope that isn't looked at.",
        { "scope", "string", "which" },
        { "rules", "integer", "how many it has" },
    }),
    class("RuleInForce", nil, {
        text = "A rule.",
        { "type", "string", "that it is for" },
        { "file", "string", "relative to the policy's folder" },
        { "line", "integer", "in it" },
        { "scope", "string", "where it was written" },
        { "matcher?", "mulligan.PlainMatcher", "nil: it always passes" },
        { "retry?", "mulligan.TierInForce", "nil: no such tier" },
        { "redeliver?", "mulligan.TierInForce", "nil: no such tier" },
        { "action", '"dead_letter"|"discard"', "at the end" },
        { "queue?", "string", "of the dead letter" },
        { "note?", "string", "of the discard" },
        { "bounds", "mulligan.Bounds", "of a failure that it decides every time" },
    }),
    class("TierInForce", nil, {
        text = "Retries or redeliveries.",
        { "attempts", 'integer|"unlimited"', "how many" },
        { "backoff", '"constant"|"linear"|"exponential"|"list"', "" },
        { "factor?", "number", "of an exponential one" },
        { "max_delay_ms?", "integer", "no delay is longer" },
        { "jitter", 'number|"full"|"decorrelated"', "a fraction from 0 to 1" },
        { "hint?", "string", "the error's field" },
        { "steps", "mulligan.TierStep[]", "the first 32, or six in a table of more than 1,000 rules" },
    }),
    class("TierStep", nil, {
        text = "A delay.",
        { "delay_ms", "integer", "before jitter and hint" },
        { "shortest_ms", "integer", "with them" },
        { "longest_ms", "integer", "with them" },
    }),
    class("Unrecoverable", nil, {
        text = "A declaration; the built-in one has its type alone.",
        { "type", "string", "that is never tried again" },
        { "file?", "string", "relative to the policy's folder" },
        { "line?", "integer", "in it" },
        { "scope?", "string", "where it was written" },
        { "matcher?", "mulligan.PlainMatcher", "nil: it always passes" },
    }),
    class("Replaced", nil, {
        text = "A rule in whose place a later one stands.",
        { "word", '"on"|"on_cause"', "" },
        { "type", "string", "that it was for" },
        { "scope", "string", "where it was written" },
        { "file", "string", "relative to the policy's folder" },
        { "line", "integer", "in it" },
        { "by_file", "string", "the later one's" },
        { "by_line", "integer", "the later one's" },
    }),
    class("SettingsInForce", nil, settings),
    class("SettingInForce", nil, {
        text = "A setting.",
        { "value", "any", "false: none; true: a function" },
        { "scope?", "string", "where it was set; nil: the default holds" },
        { "file?", "string", "relative to the policy's folder" },
        { "line?", "integer", "in it" },
    }),

    -- matchers
    class("PlainMatcher", nil, {
        text = "What must hold.",
        { "kind", '"tests"|"function"|"all"|"any"|"none"', "" },
        { "tests?", "mulligan.PlainTest[]", "of `tests`" },
        { "number?", "integer", "of `function`: which" },
        { "parts?", "mulligan.PlainMatcher[]", "of the rest" },
    }),
    class("PlainTest", nil, {
        text = "A test of one field.",
        { "subject", '"error"|"ctx"|"message"|"header"', "" },
        { "name", "string", "of the field" },
        { "value", "mulligan.PlainValue", "that it must have" },
    }),
    class("LostTest", "PlainTest", {
        text = "The test at which a matcher lost.",
        { "given?", "any", "what the field was" },
    }),
    class("PlainValue", nil, {
        text = "What a field must be.",
        { "kind", '"one_of"|"between"|"contains"|"matches"|"present"|"absent"|"not"', "" },
        { "literals?", "any[]", "of `one_of`" },
        { "low?", "number", "of `between`" },
        { "high?", "number", "of `between`" },
        { "text?", "string", "of `contains` and `matches`" },
        { "value?", "mulligan.PlainValue", "of `not`" },
    }),
}
