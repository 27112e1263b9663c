-- place.lua: where in the policy something is said: { file =, line = }.
--
-- Lua 5.4.4 gives every call of a chain over several lines the line of the first. The word's own
-- line is known when it is looked up, so that is where it is taken:
--
--   bus:on("TimeoutError")      lookup of "on": 1, call: 1
--      :retry(5, "200ms")       lookup of "retry": 2, call: 1

local place = {}

local getinfo = debug.getinfo

-- The frames that are no policy's: of C and of embedded files, whose names begin with "="; and of
-- these files where they are run from the disk.
local folder = getinfo(1, "S").source:match("^(@.*)/place%.lua$")

local function is_own(source)
    return source:sub(1, 1) == "=" or folder and source:sub(1, #folder) == folder
end

-- find gives the innermost place in a policy's file that is at work now.
function place.find()
    local level = 2
    while true do
        local info = getinfo(level, "Sl")
        if not info then
            return { file = "policy.lua", line = 0 }
        end
        if not is_own(info.source) then
            return { file = (info.source:gsub("^@", "")), line = info.currentline }
        end
        level = level + 1
    end
end

-- of_call gives the place of a word that was looked up at `seen` and is called now; to be called by
-- the function that the lookup gave. A word kept in a variable stands where it is called, below its
-- lookup. After a tail call the caller is gone, and its caller's line means nothing.
function place.of_call(seen)
    if getinfo(2, "t").istailcall then
        return seen
    end
    local here = place.find()
    if here.file == seen.file and here.line <= seen.line then
        return seen
    end
    return here
end

return place
