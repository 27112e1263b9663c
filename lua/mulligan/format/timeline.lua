-- timeline.lua: what becomes of a message whose every call fails, call by call, in words.

local chain = require "mulligan.format.chain"
local ansi = require "mulligan.format.ansi"
local duration = require "mulligan.format.duration"
local limits = require "mulligan.format.limits"
local text = require "mulligan.policy.text"

local timeline = {}

-- A run of like steps that is longer than RUN is shown by its beginning and its end; so is a strip of
-- more lines than LINES.
local RUN, LINES = 12, 60
local RUN_FIRST, RUN_LAST, FIRST, LAST = 5, 2, 40, 12

local function step_row(step)
    return {
        ("%d"):format(step.calls),
        step.latest_ms == 0 and "now" or duration.between(step.earliest_ms, step.latest_ms),
        chain.verdict(step, chain.wait(step.shortest_delay_ms, step.longest_delay_ms)),
    }
end

local function alike(a, b)
    return a.action == b.action and a.tier and a.rule and b.rule and a.rule.file == b.rule.file
        and a.rule.line == b.rule.line
end

-- gap is a row for calls that aren't shown.
local function gap(count)
    return { "…", "", ansi.dim(text.count(count, "more call", "more calls")), count = count }
end

-- fold adds the rows of a run of like steps, `unknown` of which are left out already.
local function fold(rows, run, unknown)
    local is_long = #run > RUN or unknown > 0 and #run > RUN_FIRST + RUN_LAST
    local first = is_long and RUN_FIRST or #run
    for number = 1, first do
        rows[#rows + 1] = step_row(run[number])
    end
    if not is_long and unknown == 0 then
        return
    end
    local last = is_long and RUN_LAST or 0
    rows[#rows + 1] = gap(unknown + #run - first - last)
    for number = #run - last + 1, #run do
        rows[#rows + 1] = step_row(run[number])
    end
end

-- add_runs adds the rows of a strip: what is left out of it belongs to the run before it, and joins
-- that to a like one behind it.
local function add_runs(rows, strip)
    local run, unknown = {}, 0
    for part, steps in ipairs { strip.first, strip.last } do
        for _, step in ipairs(steps) do
            if run[1] and not alike(run[1], step) then
                fold(rows, run, unknown)
                run, unknown = {}, 0
            end
            run[#run + 1] = step
        end
        unknown = part == 1 and strip.left_out or unknown
    end
    fold(rows, run, unknown)
end

-- cut leaves out the middle of what is too long.
local function cut(rows)
    if #rows <= LINES then
        return rows
    end
    local hidden = 0
    for number = FIRST + 1, #rows - LAST do
        hidden = hidden + (rows[number].count or 1)
    end
    local out = table.move(rows, 1, FIRST, 1, {})
    out[#out + 1] = gap(hidden)
    return table.move(rows, #rows - LAST + 1, #rows, #out + 1, out)
end

local function rows_of(strip)
    local rows = {}
    add_runs(rows, strip)
    return cut(rows)
end

local function add_strip(lines, strip)
    local rows = rows_of(strip)
    table.insert(rows, 1, { "call", "fails", "then" })
    rows = ansi.columns(rows, 2)
    rows[1] = ansi.dim(rows[1])
    table.move(rows, 1, #rows, #lines + 1, lines)
end

local function last_of(strip)
    return strip.last[#strip.last] or strip.first[#strip.first]
end

-- total says how many calls there are, and when it ends.
local function total(of)
    if of.cut then
        return "it goes on like this, perhaps for ever: here it is cut"
    elseif of.shortest then
        local low, high = last_of(of.shortest), last_of(of.longest)
        return ("%s and %s, or %s and %s; with delays between these it may end at other times"):format(
            text.count(low.calls, "call", "calls"), duration.about(low.latest_ms),
            text.count(high.calls, "call", "calls"), duration.about(high.latest_ms))
    end
    local last = last_of(of.both)
    local when = last.latest_ms == 0 and "now" or "in " .. duration.between(last.earliest_ms, last.latest_ms)
    return ("%s in all; it ends %s"):format(text.count(last.calls, "call", "calls"), when)
end

local function keeps(rate_limits)
    for _, limit in ipairs(rate_limits) do
        if limit.keep then
            return true
        end
    end
    return false
end

-- add_limits says what may hold calls up, or ends them; `age_ms` is how long ago the first failure was.
local function add_limits(lines, settings, age_ms)
    local function add(line, ...)
        lines[#lines + 1] = "  " .. line:format(...)
    end
    if settings.rate_limit.value then
        local kept = keeps(settings.rate_limit.value) and ", and keep failures uncounted" or ""
        add("a rate_limit may hold calls up%s", kept)
    end
    for _, limit in ipairs(settings.limit.value or {}) do
        add("at most %s: a limit may hold calls up", limits.limit(limit))
    end
    local deadline = settings.deadline_ms.value
    if deadline and deadline < age_ms then
        add "no call any more: the deadline is over"
    elseif deadline then
        add("no call later than %s from now: the deadline", duration.exact(deadline - age_ms))
    end
end

-- lines gives all of it, with the settings in force.
function timeline.lines(of, settings, age_ms)
    local lines = {
        ansi.bold "timeline" .. "  from now on, if every call fails with the same error; handlers take no time",
    }
    add_limits(lines, settings, age_ms)
    if #of.both.first > 0 then
        add_strip(lines, of.both)
    end
    if of.shortest then
        lines[#lines + 1] = "  " .. ansi.cyan "where every delay is the shortest that it may be:"
        add_strip(lines, of.shortest)
        lines[#lines + 1] = "  " .. ansi.cyan "where every delay is the longest that it may be:"
        add_strip(lines, of.longest)
    end
    lines[#lines + 1] = "  " .. ansi.bold(total(of))
    return lines
end

return timeline
