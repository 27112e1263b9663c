-- answer.lua: what an override returns: policy.retry, policy.redeliver, policy.dead_letter and
-- policy.discard; and policy.seconds and policy.ms, for delays. They are there during the load and after it.
-- A mistake in their arguments is one of the policy's during the load; after it, it is raised, and
-- the verdict stands.

local answer = {}

local chain = require "mulligan.policy.chain"
local duration = require "mulligan.policy.duration"
local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local dsl_object = require "mulligan.policy.dsl_object"

-- What stands for the context once that is closed.
local raising = {}

function raising.problem(_, _, why)
    error(why, 0)
end

-- read_delay takes milliseconds as well, which is what config has.
local function read_delay(told, here, word, given)
    local ms, why
    if type(given) == "number" then
        ms, why = duration.whole(given)
    else
        ms, why = duration.read(given)
    end
    if not ms and given ~= error_value then
        told:problem(here, ("%s: delay %s"):format(word, why))
    end
    return ms
end

local makers = {}

function makers.retry(told, here, n, delay)
    if not dsl_object.too_many(told, here, "retry", n, 1, "one delay at most") then
        local ms = n == 0 and 0 or read_delay(told, here, "retry", delay)
        return ms and { action = "retry", delay_ms = ms }
    end
end

function makers.redeliver(told, here, n, delay)
    if n == 0 then
        told:problem(here, 'redeliver needs a delay: policy.redeliver("5m")')
    elseif not dsl_object.too_many(told, here, "redeliver", n, 1, "one delay") then
        local ms = read_delay(told, here, "redeliver", delay)
        return ms and { action = "redeliver", delay_ms = ms }
    end
end

function makers.dead_letter(told, here, n, queue)
    if not dsl_object.too_many(told, here, "dead_letter", n, 1, "one queue at most") then
        local name = n == 1 and dsl_object.name(told, here, "dead_letter: the queue", queue)
        return (n == 0 or name) and { action = "dead_letter", queue = name or nil }
    end
end

function makers.discard(told, here, n, note)
    if not dsl_object.too_many(told, here, "discard", n, 1, "one note at most") then
        local why = n == 1 and note ~= error_value and chain.note_mistake(note)
        if why then
            told:problem(here, "discard: the note " .. why)
        end
        return not why and note ~= error_value and { action = "discard", note = note }
    end
end

-- span gives a word that the answers need as well: it makes a span of time of a number of units.
local function span(unit)
    return function(told, here, n, value)
        if dsl_object.too_many(told, here, unit, n, 1, "one number") or value == error_value then
            return nil
        end
        local made, why = duration[unit](value)
        if not made then
            told:problem(here, unit .. " " .. why)
        end
        return made
    end
end

-- always gives a word that may be said during the load and after it; lost: something was wrong.
local function always(context, word, make)
    return function(...)
        local told = context.closed and raising or context
        local here = not context.closed and dispatch.place() or nil
        if (...) ~= nil and (...) == context.policy then
            told:problem(here, ("%s is called with a point: policy.%s(...)"):format(word, word))
            return error_value
        end
        return make(told, here, select("#", ...), ...) or error_value
    end
end

-- words gives the four, policy.seconds and policy.ms.
function answer.words(context)
    local acts = { seconds = always(context, "seconds", span "seconds"), ms = always(context, "ms", span "ms") }
    for word, make in next, makers do
        acts[word] = always(context, word, function(...)
            local plain = make(...)
            return plain and opaque_value.new(context, "answer", word .. "(...)", plain)
        end)
    end
    return acts
end

-- plain gives what a value says as an answer, as docs/plain-rules.md has it; nil: it is none.
function answer.plain(value)
    return opaque_value.plain("answer", value)
end

return answer
