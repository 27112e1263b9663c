-- counts.lua: how often each thing of the language decided something, or was tried, as far as the naive evaluator can
-- tell: counts.of[family][name].

local counts = { of = {} }

function counts.saw(family, name)
    local names = counts.of[family]
    if not names then
        names = {}
        counts.of[family] = names
    end
    names[name] = (names[name] or 0) + 1
end

return counts
