-- limits.lua: rate_limit and limit statements in words, a line each.

local duration = require "mulligan.format.duration"
local text = require "mulligan.policy.text"

local limits = {}

local units = { [1000] = "s", [60000] = "m", [3600000] = "h" }

local function names(list)
    local shown = {}
    for number, name in ipairs(list) do
        shown[number] = text.name(name)
    end
    return text.list(shown, "and")
end

-- for_each says what a statement counts for; nil: the consumer as a whole.
local function for_each(limit)
    return limit.per and "for each " .. (limit.header and "header " .. text.name(limit.header) or limit.per) or nil
end

local function start(limit)
    if limit.after then
        return ("after %s in a row"):format(text.count(limit.after, "failure", "failures"))
    end
    return ("when %.4g%% of %s or more in %s failed"):format(limit.ratio * 100,
        text.count(limit.least, "call", "calls"), duration.exact(limit.window_ms))
end

local function wait(limit)
    local longest = limit.max_wait_ms > limit.wait_ms and " up to " .. duration.exact(limit.max_wait_ms) or ""
    local hint = limit.hint and (", longer where %s says so"):format(text.name(limit.hint)) or ""
    return ("wait %s%s%s"):format(duration.exact(limit.wait_ms), longest, hint)
end

-- rate_limit gives a rate_limit statement: "after 10 failures in a row, wait 5s".
function limits.rate_limit(limit)
    local parts = { start(limit) }
    local function add(part)
        parts[#parts + 1] = part or nil
    end
    add(limit.messages > 1 and ("of %d messages"):format(limit.messages))
    add(limit.within_ms and "within " .. duration.exact(limit.within_ms))
    add(limit.only and "only " .. names(limit.only))
    add(limit.except and "except " .. names(limit.except))
    add(wait(limit))
    add(limit.successes > 1 and ("ends after %d successes"):format(limit.successes))
    add(limit.keep and "keeps messages")
    add(limit.ramp_ms and "ramp " .. duration.exact(limit.ramp_ms))
    add(for_each(limit))
    return table.concat(parts, ", ")
end

-- limit gives a limit statement: "100/s, burst 20, for each key".
function limits.limit(limit)
    local parts = { ("%d/%s"):format(limit.count, units[limit.unit_ms]) }
    if limit.burst > 1 then
        parts[2] = ("burst %d"):format(limit.burst)
    end
    parts[#parts + 1] = for_each(limit)
    return table.concat(parts, ", ")
end

return limits
