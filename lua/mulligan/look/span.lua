-- span.lua: spans of time for people.

local span = {}

local units = { { "d", 86400000 }, { "h", 3600000 }, { "m", 60000 }, { "s", 1000 }, { "ms", 1 } }

-- exact gives a span as a policy would write it: "1h30m", "1.5s", "200ms".
function span.exact(ms)
    if ms < 1000 then
        return ms .. "ms"
    end
    local out, rest = {}, ms
    for number = 1, 3 do
        local unit = units[number]
        if rest >= unit[2] then
            out[#out + 1] = rest // unit[2] .. unit[1]
            rest = rest % unit[2]
        end
    end
    if rest > 0 then
        out[#out + 1] = ("%.3f"):format(rest / 1000):gsub("%.?0+$", "") .. "s"
    end
    return table.concat(out)
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
