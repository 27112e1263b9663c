-- blamed.lua: a call that is misuse raises, in these words, and blames a line of the function that makes it.

return function(words, call)
    local well, why = pcall(call)
    assert(not well, "it is taken for well")
    local info = debug.getinfo(call, "S")
    local line = tonumber(why:match("^" .. info.short_src:gsub("%p", "%%%0") .. ":(%d+): "))
    assert(line and line >= info.linedefined and line <= info.lastlinedefined, why)
    assert(why:find(words, 1, true), why)
end
