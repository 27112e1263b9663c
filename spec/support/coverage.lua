-- coverage.lua: how often each thing of the language decided or was tried while the naive evaluator ran, and whether
-- that was often enough.

local counts = require "support.naive.counts"
local functions = require "support.generate.functions"
local words = require "support.generate.words"

local coverage = {}

-- What is to be seen: family -> names.
local expected = {}

local function expect(family, names)
    expected[family] = expected[family] or {}
    table.move(names, 1, #names, #expected[family] + 1, expected[family])
end

-- Each name with each ending.
local function with(names, endings)
    local list = {}
    for _, name in ipairs(names) do
        for _, ending in ipairs(endings) do list[#list + 1] = name .. " " .. ending end
    end
    return list
end

local function numbers(first, last)
    local list = {}
    for i = first, last do list[#list + 1] = i end
    return list
end

local EITHER = { "matches", "doesn't" }
local SCOPES = { "consumer", "transport", "bus", "host" }
local ENDS = { "", ":then_dead_letter", ":then_dead_letter(queue)", ":then_discard", ":then_discard(note)" }

expect("action", { "retry", "redeliver", "dead_letter", "discard" })
expect("reason", { "none", "fallback", "max_deliveries", "unrecoverable", "no_rule", "rule", "exhausted" })
expect("reason", { "max_attempts", "max_age", "deadline" })
expect("deadline", { "by jitter" })
expect("fallback", { "no_retry", "no_delay" })
expect("rules of", { "consumer", "transport", "bus", "host", "no scope" })
expect("rule for", { "own type", "ancestor", "Error" })
expect("lineage", { "sent", "declared" })
expect("decides", { "on", "replaced an earlier one" })
expect("decides", with({ "written in style" }, numbers(1, 5)))
expect("chain", { "dead_letter", "dead_letter(queue)", "discard", "discard(note)" })
for _, chain in ipairs { "retry", "redeliver", "retry:then_redeliver" } do
    for _, last in ipairs(ENDS) do expect("chain", { chain .. last }) end
end
for _, tier in ipairs { "retry", "redeliver" } do
    expect("arguments of " .. tier, { "()", "(n)", "(n, delay)", "(n, delay, backoff)", "list", "named" })
    expect("option of " .. tier, { "attempts", "delay", "backoff", "factor", "max_delay", "jitter" })
    expect("backoff of " .. tier, { "constant", "linear", "exponential" })
end
expect("delay", { "computed", "capped" })
expect("jitter", { "fraction", "none asked for" })
for _, setting in ipairs { "dead_letter_queue", "max_age", "deadline", "max_attempts", "max_deliveries" } do
    expect("setting " .. setting, SCOPES)
    expect("setting " .. setting, { "false", "not set" })
end
expect("matcher", { "none at all decides", "function raises" })
expect("matcher", with({ "fields", "function" }, { "passes", "loses", "decides" }))
expect("function", functions.KINDS)
expect("field", with(words.FIELD_NAMES, EITHER))
expect("value", with({ "string", "boolean", "integer", "float" }, EITHER))
expect("value", { "503 is 503.0" })

-- The same for each part of the language.
local parts = {}

function parts.type_lists() expect("decides", { "one of a list of types", "written in style 6" }) end

function parts.on_cause()
    expect("decides", { "on_cause" })
    expect("rule for", { "cause", "Error as a cause" })
    expect("cause at depth", numbers(1, 16))
    expect("cause at depth", { "too deep to be looked at" })
end

function parts.values()
    local forms = { "list", "between", "at_least", "at_most", "contains", "present", "absent", "is_not" }
    expect("value", with(forms, EITHER))
    expect("value", with({ "is_not of" }, forms))
    expect("value", { "is_not of literal" })
    expect("field", with({ "type" }, EITHER))
end

function parts.patterns()
    expect("value", with({ "matches" }, EITHER))
    expect("value", { "is_not of matches" })
    expect("pattern", with(words.PATTERNS, { "finds", "doesn't" }))
    expect("pattern", { "over the budget" })
    expect("matcher", { "fields raises" })
end

function parts.ctx()
    expect("matcher", with({ "ctx" }, { "passes", "loses", "decides" }))
    expect("ctx", with(words.CTX_NAMES, EITHER))
    expect("message", with(words.MESSAGE_NAMES, EITHER))
    expect("header", with(words.HEADER_NAMES, EITHER))
end

function parts.composite()
    local forms = { "all", "any", "none" }
    expect("matcher", with(forms, { "passes", "loses", "raises", "decides" }))
    expect("matcher", with(with({ "fields", "ctx", "function", "all", "any", "none" }, { "in" }), forms))
    expect("matcher depth", numbers(1, 4))
end

function parts.unrecoverable()
    expect("unrecoverable by", SCOPES)
    expect("unrecoverable by", { "the built-in one" })
    expect("unrecoverable with", { "type", "list", "fields", "ctx", "function", "all", "any", "none" })
end

function parts.include()
    expect("include", with({ "into a", "of a" }, SCOPES))
    expect("include", { "on", "on_cause", "through another", "replaced by an own rule" })
end

function parts.override()
    expect("reason", { "override" })
    expect("setting override", SCOPES)
    expect("setting override", { "false", "not set" })
    local limits = { "max_attempts", "max_age", "deadline" }
    expect("override", { "retry", "redeliver", "dead_letter", "discard", "keep", "raises" })
    expect("override", { "number", "text", "table", "word", "no_delay" })
    expect("override", { "retry carried out", "redeliver carried out" })
    expect("override", with({ "answer ended by" }, limits))
    expect("override", with({ "after max_deliveries:" }, { "retry", "redeliver", "dead_letter", "discard" }))
    expect("override condition", require "support.generate.overrides".CONDITIONS)
end

function parts.presets()
    expect("preset", { "nservicebus", "mocha" })
    expect("decides", { "written in style preset" })
end

function parts.hint()
    expect("option of retry", { "hint" })
    expect("option of redeliver", { "hint" })
    expect("hint", { "usable", "missing", "no number from 0" })
    expect("delay", { "from the hint" })
end

function parts.jitter()
    expect("jitter of retry", { "full", "decorrelated" })
    expect("jitter of redeliver", { "full", "decorrelated" })
    expect("jitter", { "full", "decorrelated" })
end

function parts.unlimited() expect("option of redeliver", { "unlimited" }) end

function parts.limits() expect("present", { "rate_limit", "limit" }) end

function parts.notify() expect("present", { "notify" }) end

for _, expect_it in pairs(parts) do expect_it() end

-- The counts as a table, a family a line.
function coverage.text()
    local lines = {}
    for family, names in pairs(counts.of) do
        local cells = {}
        for name, count in pairs(names) do cells[#cells + 1] = ("%s %d"):format(name, count) end
        table.sort(cells)
        lines[#lines + 1] = ("%s: %s"):format(family, table.concat(cells, ", "))
    end
    table.sort(lines)
    return table.concat(lines, "\n")
end

-- What was seen less often than `least` times: a list of "family: name count".
function coverage.missing(least)
    local list = {}
    for family, names in pairs(expected) do
        for _, name in ipairs(names) do
            local count = counts.of[family] and counts.of[family][name] or 0
            if count < least then list[#list + 1] = ("%s: %s %d"):format(family, name, count) end
        end
    end
    table.sort(list)
    return list
end

return coverage
