-- chain.lua: what is done with a message that a rule matches, and which words may follow which.
--
--   start ── retry ──────────> retried ── then_redeliver ──> redelivered
--     │                          │                              │
--     ├──── redeliver ───────────│──────────────────────────────┘
--     │                          └── then_dead_letter, then_discard ──> ended
--     └──── dead_letter, discard ─────────────────────────────────────> ended
--
-- The state is the rule's own, so a stage kept in a variable can't be used twice.

local chain = {}

local lost = require "mulligan.policy.lost"
local text = require "mulligan.policy.text"
local tier = require "mulligan.policy.tier"
local vocabulary = require "mulligan.policy.vocabulary"
local words = require "mulligan.policy.words"

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

local function allowed(rule, word)
    for _, other in ipairs(may_follow[rule.state]) do
        if other == word then
            return true
        end
    end
    return false
end

local function order_mistake(rule, word)
    local choices = {}
    for i, other in ipairs(may_follow[rule.state]) do
        choices[i] = ":" .. other
    end
    if rule.state == "start" then
        return (":%s can't come first; here may stand %s"):format(word, text.list(choices))
    end
    local before = rule.said[#rule.said]
    local after = before.word
    if before.line ~= rule.line then
        after = ("%s in line %d"):format(after, before.line)
    end
    for _, earlier in ipairs(rule.said) do
        if earlier.word == word then
            return (":%s is said already, in line %d; %s"):format(word, earlier.line,
                #choices > 0 and "here may stand " .. text.list(choices) or "nothing may follow :" .. after)
        end
    end
    if #choices == 0 then
        return (":%s can't follow :%s, which ends the rule; nothing may follow it"):format(word, after)
    end
    return (":%s can't follow :%s; here may stand %s"):format(word, after, text.list(choices))
end

-- What each word does with its arguments: it sets fields of the rule. Where these are wrong, that is
-- noted, and nobody asks for the rule.
local act = {}

local function read_tier(book, rule, here, word, n, ...)
    rule[word == "retry" and "retry" or "redeliver"] = tier.read(book, here, word, n, ...)
end

act.retry, act.redeliver, act.then_redeliver = read_tier, read_tier, read_tier

local function dead_letter(book, rule, here, word, n, queue)
    if not words.too_many(book, here, word, n, 1, "one queue at most") and n == 1 then
        rule.queue = words.name(book, here, word .. ": the queue", queue)
    end
    rule.action = "dead_letter"
end

act.dead_letter, act.then_dead_letter = dead_letter, dead_letter

-- note_mistake says what is wrong with the note of a discard; nil: nothing.
function chain.note_mistake(note)
    if type(note) ~= "string" then
        return ("must be a string, not %s"):format(text.show(note))
    elseif not text.valid(note) then
        return ("must be valid UTF-8 without a zero byte, which %s isn't"):format(text.show(note))
    end
end

local function discard(book, rule, here, word, n, note)
    local many = words.too_many(book, here, word, n, 1, "one note at most")
    local why = not many and n == 1 and note ~= lost and chain.note_mistake(note)
    if why then
        book:problem(here, word .. ": the note " .. why)
    end
    rule.note = note
    rule.action = "discard"
end

act.discard, act.then_discard = discard, discard

-- of gives the words that a rule hears.
function chain.of(book, rule)
    rule.state, rule.said, rule.action = "start", {}, "dead_letter"
    local stage
    local acts = {}
    for _, word in ipairs(vocabulary.words.rule) do
        acts[word] = function(here, n, ...)
            rule.touched = true
            if not allowed(rule, word) then
                book:problem(here, order_mistake(rule, word))
                return lost
            end
            rule.state = leads_to[word]
            rule.said[#rule.said + 1] = { word = word, line = here.line }
            act[word](book, rule, here, word, n, ...)
            return stage
        end
    end
    stage = words.object(book, "rule", acts, function()
        rule.touched = true
    end)
    return stage
end

return chain
