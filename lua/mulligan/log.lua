-- log.lua: what `run` writes to stderr: one line an event, as text for people or as JSON. A line that
-- is equal to one of the same second, but for its time, is counted instead.

local core = require "mulligan.core"
local json = require "mulligan".json
local text = require "mulligan.policy.text"

local log = {}

local ranks = { debug = 1, info = 2, warning = 3, error = 4 }

local levels = {
    retry = "info",
    discard = "info",
    redeliver = "warning",
    dead_letter = "error",
    matcher_failed = "warning",
    override_failed = "warning",
    notify_failed = "warning",
    header_ignored = "warning",
    policy_loaded = "info",
    policy_refused = "error",
}

-- ---- As text -----------------------------------------------------------------------------------

-- Milliseconds as people write them: "1m30s".
local function span(ms)
    local parts = {}
    for _, unit in ipairs { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } } do
        if ms >= unit[2] then
            parts[#parts + 1] = ("%d%s"):format(ms // unit[2], unit[1])
            ms = ms % unit[2]
        end
    end
    return table.concat(parts)
end

local function other(event)
    local failure, words = event.failure, {}
    if event.name ~= "log" then
        words[1] = event.name
    end
    if failure and failure.message.id then
        words[#words + 1] = ("message %s, consumer %s"):format(failure.message.id, failure.consumer)
    end
    local place = event.rule and ("%s:%d"):format(event.rule.file, event.rule.line)
    -- What Lua says of a matcher begins with a place, often the rule's.
    if place and (event.text or ""):sub(1, #place + 1) ~= place .. ":" then
        words[#words + 1] = place
    end
    words[#words + 1] = event.text
    return table.concat(words, ": ")
end

local as_text = {}

local function worded(level, words)
    return ("%-7s %s"):format(level, words)
end

function as_text.body(level, event)
    return worded(level, text.clean(other(event)))
end

function as_text.line(moment, body, again, ending)
    return moment .. " " .. body .. (again and (" (again %s)"):format(text.count(again, "time", "times")) or "")
        .. ending
end

-- ---- As JSON -----------------------------------------------------------------------------------

-- Those between "time" and "times", and how each begins.
local keys = {
    "level", "event", "text", "message", "consumer", "transport", "attempt", "redeliveries", "calls",
    "deliveries", "age_ms", "error", "action", "delay_ms", "queue", "reason", "note", "tier", "step", "of", "rule",
    "fallback", "generation",
}
local begin = {}
for number, key in ipairs(keys) do
    begin[number] = json.encode(key) .. ":"
end

-- Another program may have put bytes into a message that are no text.
local function mended(value)
    return type(value) == "string" and text.mend(value) or value
end

local function some_of(from, names)
    if not from then
        return nil
    end
    local some = {}
    for _, name in ipairs(names) do
        some[name] = from[name] == nil and json.null or mended(from[name])
    end
    return some
end

local as_json = {}

-- Every key is always there, in this order.
function as_json.body(level, event)
    local failure, verdict = event.failure or {}, event.verdict or {}
    local fields = { level = level, event = event.name, text = event.text }
    for _, from in ipairs { failure, verdict } do
        for name, value in pairs(from) do
            fields[name] = value
        end
    end
    fields.message = some_of(failure.message, { "id", "type", "key", "size" })
    fields.error = some_of(failure.error, { "type", "message" })
    fields.rule = some_of(verdict.rule or event.rule, { "file", "line", "scope", "type" })
    fields.generation = verdict.generation or event.generation
    local parts = {}
    for number, key in ipairs(keys) do
        local value = fields[key]
        parts[number] = begin[number] .. (value == nil and "null" or json.encode(mended(value)))
    end
    return table.concat(parts, ",")
end

function as_json.line(moment, body, again, ending)
    return ('{"time":%s,%s,"times":%d}%s'):format(json.encode(moment), body, again or 1, ending)
end

-- A line of a body: `again` is how often it came again, where it was written before.
local formats = { text = as_text, json = as_json }

-- ---- The log -----------------------------------------------------------------------------------

-- lost is the line, in which a writer puts "@time@" and "@count@", that tells how many are lost.
function log.lost(format)
    local shape = formats[format]
    return shape.line("@time@", shape.body("warning", {
        name = "log",
        text = "lines of this log that could not be written, and are lost: @count@",
    }), nil, "")
end

-- What is remembered of one second: so many bodies, each of at most so many bytes, and so many bytes
-- in all, which are little beside the least memory that handlers may have.
local MOST, LARGEST, MOST_BYTES = 1000, 4096, 65536

-- counter calls put(body) for each body when it comes first, and, once its second is over, put(body,
-- again) where it came again meanwhile. `in_a_second(tell)` is to call tell then; without it, every
-- body is put when it comes.
local function counter(put)
    local bodies, again, bytes, waits, in_a_second = {}, {}, 0, false, nil
    local counted = {}

    -- tell puts what is counted, in the order in which it first came, and begins anew.
    local function tell()
        local told, times = bodies, again
        bodies, again, bytes = {}, {}, 0
        for _, body in ipairs(told) do
            if times[body] > 0 then
                put(body, times[body])
            end
        end
    end

    local function on_second()
        waits = false
        tell()
    end

    local function remember(body)
        if #bodies == MOST or bytes + #body > MOST_BYTES then
            tell()
        end
        bodies[#bodies + 1], again[body], bytes = body, 0, bytes + #body
        if not waits then
            waits = true
            if not pcall(in_a_second, on_second) then
                on_second() -- no memory, or no engine any more: nothing is counted
            end
        end
    end

    function counted.add(body)
        if again[body] then
            again[body] = again[body] + 1
            return
        end
        put(body)
        if in_a_second and #body <= LARGEST then
            remember(body)
        end
    end

    function counted.begin(given)
        in_a_second = given
    end

    function counted.finish()
        in_a_second = nil
        tell()
    end

    return counted
end

local after_held = {
    held = "; nothing else goes on until it returns",
    ["goes on"] = "; now it goes on",
    ["too long"] = ", which is beyond the grace time; the process ends with 75, and what it has claimed will be handed "
        .. "out again",
}

local function held_words(held)
    local by = "by no handler: by a finalizer, a load of the policy, a slow disk, or a pipe that nobody reads"
    if held.consumer then
        by = "by its handler"
            .. (held.file and held.line > 0 and (", last seen at %s:%d"):format(held.file, held.line) or "")
    end
    return ("the loop %s held for %s %s%s"):format(held.state == "goes on" and "was" or "has been", span(held.ms), by,
        after_held[held.state])
end

-- held tells of what holds the loop, from outside of the loop's thread and of its Lua state.
function log.held(format, level, held)
    local lines = log.new(format, level, core.stderr_write)
    local failure = held.consumer and { consumer = held.consumer, message = { id = held.message } }
    lines.line(held.state == "too long" and "error" or "warning", held_words(held), failure)
end

-- new gives a log that writes lines of at least `level` with write(line).
function log.new(format, level, write)
    local shape, least = formats[format], ranks[level]
    local made = {}

    local counted = counter(function(body, again)
        write(shape.line(core.moment(), body, again, "\n"))
    end)

    local function line(of_level, event)
        if ranks[of_level] >= least then
            counted.add(shape.body(of_level, event))
        end
    end

    -- What the engine is to call for a verdict, where lines are text: src/lua/binding/log_words.c has the words.
    made.decided = shape == as_text and function(action, words)
        local of_level = levels[action]
        if ranks[of_level] >= least then
            counted.add(worded(of_level, words))
        end
    end or nil

    -- From count_equal to flush equal lines are counted; in_a_second(tell) is to call tell back then.
    made.count_equal = counted.begin
    made.flush = counted.finish

    -- What the engine or the policy says in words; `failure` names the message that it is about.
    function made.line(of_level, words, failure)
        line(of_level, { name = "log", text = words, failure = failure })
    end

    function made.event(event)
        if event.name == "transport_up" or event.consumer then
            return -- the log says so in words
        elseif event.name == "policy_refused" then
            event.text = ("%s; generation %s runs on"):format(event.text, event.generation)
        end
        local verdict = event.name == "decided" and event.verdict
        line(levels[verdict and verdict.action or event.name] or "info", event)
    end

    -- Events, and actions of verdicts, of which no line is written, as keys. `but` is needed for more than its line.
    function made.unwritten(but)
        local names = {}
        for name, of_level in pairs(levels) do
            names[name] = name ~= but and ranks[of_level] < least or nil
        end
        return names
    end

    return made
end

return log
