-- program.lua: the cases of conformance.c, as those of the suite in Lua are reported: the program that
-- they are runs once, and each case is what its line of TAP says.
local process = require "support.process"

local program = {}

local function lines_of(words)
    local folder = process.folder()
    local ended = folder:run(words)
    folder:remove()
    return ended.out .. "\n", ended
end

-- path is a program of the build's.
function program.path(name)
    return process.build .. "/spec/transport/" .. name
end

-- names gives the names of all cases, in order.
function program.names(path)
    local names = {}
    for line in lines_of({ path, "--list" }):gmatch("([^\n]+)\n") do
        names[#names + 1] = line
    end
    assert(#names > 0, path)
    return names
end

-- run runs it with these words: by each case's name true, or a list of why it failed or was skipped.
function program.run(path, words)
    local out, ended = lines_of { path, table.unpack(words) }
    local results, last = {}, nil
    for line in out:gmatch("([^\n]*)\n") do
        local verdict, name = line:match("^(n?o?t? ?ok) %d+ %- (.*)$")
        if verdict == "ok" then
            local case, why = name:match("^(.*) # SKIP (.*)$")
            results[case or name] = why and { skipped = why } or true
        elseif verdict then
            last = { failed = "it failed" }
            results[name] = last
        elseif last and line:find "^# " then
            last.failed, last = line:sub(3), nil
        end
    end
    results.code, results.err = ended.code, ended.err
    return results
end

return program
