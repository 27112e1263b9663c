-- coverage.lua: how often each thing of the language decided or was tried while the naive evaluator ran, and whether
-- that was often enough.

local counts = require "support.naive.counts"

local coverage = {}

-- The counts as a table, a family a line.
function coverage.text()
    local lines = {}
    for family, names in pairs(counts.of) do
        local parts = {}
        for name, count in pairs(names) do parts[#parts + 1] = ("%s %d"):format(name, count) end
        table.sort(parts)
        lines[#lines + 1] = ("%s: %s"):format(family, table.concat(parts, ", "))
    end
    table.sort(lines)
    return table.concat(lines, "\n")
end

function coverage.missing() return {} end

return coverage
