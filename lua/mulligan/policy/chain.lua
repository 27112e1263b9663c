-- chain.lua: what is done with a message that a rule matches, and which words may follow which.
--
--   start ── retry ──────────> retried ── then_redeliver ──> redelivered
--     │                          │                              │
--     ├──── redeliver ───────────│──────────────────────────────┘
--     │                          └── then_dead_letter, then_discard ──> ended
--     └──── dead_letter, discard ─────────────────────────────────────> ended
--
-- The state is the rule's own, so a stage kept in a variable can't be used twice. A rule is a list as
-- well: its state, then each word that was said and its line.

local chain = {}

local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local text = require "mulligan.policy.text"
local retry_options = require "mulligan.policy.retry_options"
local vocabulary = require "mulligan.policy.vocabulary"
local dsl_object = require "mulligan.policy.dsl_object"

local may_follow = {
    start = { "retry", "redeliver", "dead_letter", "discard" },
    retried = { "then_redeliver", "then_dead_letter", "then_discard" },
    redelivered = { "then_dead_letter", "then_discard" },
    ended = {},
}

local leads_to = {
    retry = "retried",
    redeliver = "redelivered",
    then_redeliver = "redelivered",
    dead_letter = "ended",
    then_dead_letter = "ended",
    discard = "ended",
    then_discard = "ended",
}

-- The state that a word leads to, from each state that it may follow.
local function ways(word)
    local leads = {}
    for state, list in next, may_follow do
        for _, other in ipairs(list) do
            if other == word then
                leads[state] = leads_to[word]
            end
        end
    end
    return leads
end

-- may_stand says which words may stand where a rule is now; nil: none.
local function may_stand(rule)
    local choices = {}
    for i, other in ipairs(may_follow[rule[1]]) do
        choices[i] = ":" .. other
    end
    return #choices > 0 and "here may stand " .. text.list(choices) or nil
end

local function order_mistake(rule, word)
    local may = may_stand(rule)
    if #rule == 1 then
        return (":%s can't come first; %s"):format(word, may)
    end
    local after, line = rule[#rule - 1], rule[#rule]
    if line ~= rule.line then
        after = ("%s in line %d"):format(after, line)
    end
    for at = 2, #rule, 2 do
        if rule[at] == word then
            return (":%s is said already, in line %d; %s"):format(word, rule[at + 1],
                may or "nothing may follow :" .. after)
        end
    end
    if not may then
        return (":%s can't follow :%s, which ends the rule; nothing may follow it"):format(word, after)
    end
    return (":%s can't follow :%s; %s"):format(word, after, may)
end

-- What each word gives the rule for its arguments; nil where these are wrong: that is noted, and
-- nobody asks for the rule.
local read = {}

local function read_tier(context, here, word, n, ...)
    local result = retry_options.read(context, here, word, n, ...)
    return result, result and result.attempts == "unlimited"
end

read.retry, read.redeliver, read.then_redeliver = read_tier, read_tier, read_tier

local function read_queue(context, here, word, n, queue)
    if n == 0 then
        return false
    elseif not dsl_object.too_many(context, here, word, n, 1, "one queue at most") then
        return dsl_object.name(context, here, word .. ": the queue", queue)
    end
end

read.dead_letter, read.then_dead_letter = read_queue, read_queue

-- note_mistake says what is wrong with the note of a discard; nil: nothing.
function chain.note_mistake(note)
    if type(note) ~= "string" then
        return ("must be a string, not %s"):format(text.show(note))
    elseif not text.valid(note) then
        return ("must be valid UTF-8 without a zero byte, which %s isn't"):format(text.show(note))
    end
end

local function read_note(context, here, word, n, note)
    if n == 0 then
        return true
    elseif dsl_object.too_many(context, here, word, n, 1, "one note at most") or note == error_value then
        return nil
    end
    local why = chain.note_mistake(note)
    if why then
        context:problem(here, word .. ": the note " .. why)
    end
    return not why and note or nil
end

read.discard, read.then_discard = read_note, read_note

-- The field that each word sets. The same arguments give the same value, so many rules may share one;
-- but not a tier without a limit, of which unlimited.lua knows where it was said.
local fields = {
    retry = "retry",
    redeliver = "redeliver",
    then_redeliver = "redeliver",
    dead_letter = "queue",
    then_dead_letter = "queue",
    discard = "discard",
    then_discard = "discard",
}

-- hear gives the act of a word: it moves the rule on to the next state, and gives it the value for the
-- word's arguments, read now or before.
local function hear(context, word)
    local leads, work, field = ways(word), read[word], fields[word]
    local values = context.values[field]
    return function(rule, here, n, ...)
        local state = leads[rule[1]]
        if not state then
            rule.touched = true
            context:problem(here, order_mistake(rule, word))
            return error_value
        end
        local said = #rule
        rule[1], rule[said + 1], rule[said + 2] = state, word, here.line
        local value, key = dispatch.recall(values, n, ...)
        if value == nil then
            local own
            value, own = work(context, here, word, n, ...)
            if key and not own then
                values[key] = value
            end
        end
        rule[field] = value
    end
end

-- begin gives a new rule, with room for the fields and the words that most have.
function chain.begin(type_name, label, here)
    return {
        "start", nil, nil, nil, nil, nil, nil,
        type = type_name, scope = label, file = here.file, line = here.line,
        retry = nil, redeliver = nil, matcher = nil, discard = nil,
    }
end

-- kind gives what makes that to which a rule's chain is said.
function chain.kind(context)
    local acts = {}
    for _, word in ipairs(vocabulary.words.rule) do
        acts[word] = hear(context, word)
    end
    return dsl_object.kind(context, "rule", acts, function(rule)
        rule.touched = true
        return may_stand(rule) or "nothing may follow here"
    end)
end

return chain
