-- duration.lua: spans of time for people.

local span = {}

local units = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } }

local DAY, HOUR, MINUTE, SECOND = 86400000, 3600000, 60000, 1000

-- seconds is for what is less than a minute.
local function seconds(ms)
    local whole, rest = ms // SECOND, ms % SECOND
    if rest == 0 then
        return whole .. "s"
    elseif rest % 100 == 0 then
        return whole .. "." .. rest // 100 .. "s"
    end
    return (rest % 10 == 0 and "%d.%02ds" or "%d.%03ds"):format(whole, rest % 10 == 0 and rest // 10 or rest)
end

-- exact gives a span as a policy would write it: "1h30m", "1.5s", "200ms".
function span.exact(ms)
    if ms < SECOND then
        return ms .. "ms"
    elseif ms < MINUTE then
        return seconds(ms)
    end
    local out, rest = "", ms % MINUTE
    if ms >= DAY then
        out = ms // DAY .. "d"
    end
    if ms % DAY >= HOUR then
        out = out .. ms % DAY // HOUR .. "h"
    end
    if ms % HOUR >= MINUTE then
        out = out .. ms % HOUR // MINUTE .. "m"
    end
    return rest > 0 and out .. seconds(rest) or out
end

-- about gives the two largest units of a span: "12m30s", "3d4h"; of less than a minute, all of it.
function span.about(ms)
    if ms < 60000 then
        return span.exact(ms)
    end
    for number, unit in ipairs(units) do
        if ms >= unit[2] then
            local next_unit = units[number + 1]
            local count = (ms + next_unit[2] // 2) // next_unit[2]
            return span.exact(count * next_unit[2])
        end
    end
end

-- between gives a span of which both ends are known.
function span.between(low, high)
    local from, to = span.about(low), span.about(high)
    return from == to and from or from .. " … " .. to
end

return span
