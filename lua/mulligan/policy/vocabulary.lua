-- vocabulary.lua: every word of the language and what it belongs to, so that one in the wrong place
-- is told its right one.

local vocabulary = {}

vocabulary.words = {
    policy = {
        "errors", "host", "bus", "transport", "consumer", "seconds", "ms", "header", "ctx", "all", "any", "none",
        "between", "at_least", "at_most", "contains", "matches", "present", "absent", "is_not", "preset", "retry",
        "redeliver", "dead_letter", "discard",
    },
    scope = { "on", "on_cause", "default", "include", "unrecoverable" }, -- settings.lua adds its own
    rule = { "retry", "redeliver", "then_redeliver", "dead_letter", "then_dead_letter", "discard", "then_discard" },
    preset = { "nservicebus", "mocha" },
}

-- How each is called where a mistake names it.
vocabulary.called = { policy = "policy", scope = "a scope", rule = "a rule", preset = "policy.preset" }

-- Where a word of each belongs.
local belongs = {
    policy = "%s belongs to policy: %s",
    scope = "%s belongs to a scope: local bus = policy.bus(); %s",
    rule = '%s belongs to a rule: on("TimeoutError"):%s(...)',
    preset = "%s is a preset: %s",
}

local statements = { rule = "%s", policy = "policy.%s(...)", scope = "bus:%s(...)", preset = "policy.preset.%s(...)" }

-- Those of policy that aren't called.
local forms = {
    present = "policy.present", absent = "policy.absent", preset = "policy.preset.nservicebus(...)",
}

local function has(list, word)
    for _, other in ipairs(list) do
        if other == word then
            return true
        end
    end
    return false
end

-- statement shows how a word of `owner` is said in a statement of its own; nil: it is none.
function vocabulary.statement(owner, word)
    return has(vocabulary.words[owner], word) and (forms[word] or statements[owner]:format(word)) or nil
end

-- elsewhere says where a word that isn't one of `owner` belongs; nil: nowhere.
function vocabulary.elsewhere(owner, word)
    for _, other in ipairs({ "rule", "scope", "policy", "preset" }) do
        if other ~= owner and has(vocabulary.words[other], word) then
            return belongs[other]:format(word, vocabulary.statement(other, word) or word)
        end
    end
end

return vocabulary
