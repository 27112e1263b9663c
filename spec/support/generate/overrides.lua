-- overrides.lua: random functions for `override`, and their text; spec/support/naive/override.lua says what they give.

local words = require "support.generate.words"

local overrides = {}

-- Answers -------------------------------------------------------------------------------------------------------------

local function delay(random)
    return random:chance(0.3) and { whole = random:pick { 0, 1, 1500, 60000, 86400000 } } or words.delay(random)
end

local answers = {
    retry = function(random) return { delay = random:chance(0.7) and delay(random) or nil } end,
    redeliver = function(random) return { delay = delay(random) } end,
    dead_letter = function(random) return { queue = random:chance(0.6) and random:pick(words.QUEUES) or nil } end,
    discard = function(random) return { note = random:chance(0.6) and random:pick(words.NOTES) or nil } end,
}

-- %s: the delay, queue or note, if there is one.
local ANSWER_TEXT = {
    retry = "policy.retry(%s)",
    redeliver = "policy.redeliver(%s)",
    dead_letter = "policy.dead_letter(%s)",
    discard = "policy.discard(%s)",
    keep = "nil",
    raises = "failure.nothing.more",
    number = "5",
    text = '"retry"',
    table = "{}",
    word = "policy.discard",
    no_delay = "policy.redeliver()",
}
local ANSWERS = {
    "retry", "redeliver", "dead_letter", "discard", "retry", "redeliver", "dead_letter", "discard", "redeliver",
    "redeliver", "keep", "raises", "number", "text", "table", "word", "no_delay",
}

local function random_answer(random)
    local name = random:pick(ANSWERS)
    local answer = answers[name] and answers[name](random) or {}
    answer.answer = name
    return answer
end

-- Conditions ----------------------------------------------------------------------------------------------------------

local function some_verdict(random)
    local name = random:pick { "action", "reason", "tier", "queue", "step" }
    local values = {
        action = { "retry", "redeliver", "dead_letter", "discard" },
        reason = { "unrecoverable", "no_rule", "rule", "exhausted", "max_attempts", "max_age", "deadline" },
        tier = { "retry", "redeliver" },
        queue = { "error", "parked", "dead" },
        step = { 1, 2, 3 },
    }
    return { name = name, value = random:pick(values[name]) }
end

local conditions = {
    error_is = function(random) return { value = words.any_type(random) } end,
    error_field = function(random)
        local name = random:pick(words.FIELD_NAMES)
        return { name = name, value = random:pick(words.FIELDS[name]) }
    end,
    counter = function(random)
        local name = random:pick { "attempt", "redeliveries", "deliveries", "calls", "age_ms" }
        return { name = name, value = random:pick(words.CTX[name]) }
    end,
    consumer = function(random) return { value = random:pick(words.CONSUMERS) } end,
    verdict = some_verdict,
    rule_type = function(random) return { value = words.any_type(random) } end,
    queue = function(random) return { value = random:pick { "error", "dead" } } end,
    max_age = function(random) return { value = random:pick { 0, 60000, 60001, 90000 } } end,
    max_attempts = function(random) return { value = random(3) } end,
    attempts = function(random) return { name = random:pick { "retry", "redeliver" }, value = random(4) - 1 } end,
    rule_attempts = function(random) return { name = random:pick { "retry", "redeliver" }, value = random(4) - 1 } end,
    unrecoverable = function(random)
        return { value = random:chance(0.5) and "MessageDeserializationError" or random:pick(words.TYPES) }
    end,
}

-- %s: the name, if there is one, then the value.
local CONDITION_TEXT = {
    error_is = "failure.error:is(%s)",
    error_field = "failure.error[%s] == %s",
    counter = "failure[%s] >= %s",
    consumer = "failure.consumer == %s",
    verdict = "verdict[%s] == %s",
    rule_type = "verdict.rule.type == %s",
    queue = "config.dead_letter_queue == %s",
    max_age = "config.max_age_ms and config.max_age_ms >= %s",
    max_attempts = "config.max_attempts and config.max_attempts >= %s",
    attempts = "(tonumber(config[%s].attempts) or math.huge) >= %s",
    rule_attempts = "(tonumber(config.rule[%s].attempts) or math.huge) >= %s",
    unrecoverable = '(" " .. table.concat(config.unrecoverable, " ") .. " "):find(" " .. %s .. " ", 1, true)',
}

local CONDITIONS = {}
for kind in pairs(conditions) do CONDITIONS[#CONDITIONS + 1] = kind end
table.sort(CONDITIONS)
overrides.CONDITIONS = CONDITIONS

-- The verdict of max_deliveries more often: not every answer to it holds.
local function random_condition(random)
    if random:chance(0.3) then return { kind = "verdict", name = "reason", value = "max_deliveries" } end
    local kind = random:chance(0.1) and "rule_type" or random:pick(CONDITIONS)
    local when = conditions[kind](random)
    when.kind = kind
    return when
end

-- The last may answer without a condition; what no answer is left for is kept.
function overrides.random(random)
    local list = {}
    for i = 1, random(3) do
        list[i] = random_answer(random)
        list[i].when = random_condition(random)
    end
    if random:chance(0.15) then list[#list].when = nil end
    return list
end

-- `literal` writes a value.
function overrides.text(list, literal)
    local parts = {}
    for i, a in ipairs(list) do
        local given = a.delay or a.queue or a.note
        parts[i] = "return " .. ANSWER_TEXT[a.answer]:format(given and literal(given) or "")
        local when = a.when
        if when then
            local condition = CONDITION_TEXT[when.kind]:format(
                when.name and literal(when.name) or literal(when.value), literal(when.value))
            parts[i] = ("if %s then %s end"):format(condition, parts[i])
        else
            parts[i] = ("do %s end"):format(parts[i])
        end
    end
    return ("function(failure, verdict, config) %s end"):format(table.concat(parts, " "))
end

return overrides
