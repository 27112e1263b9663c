-- words.lua: writes what is made of the words in tools/docgen: docs/reference.md, the types for
-- editors in lua/mulligan/meta, and docs/man/*.5.scd; and what is made of the options that commands
-- have in lua/mulligan/commands.lua: completions/*, and parts of docs/man/*.1.scd.
--
--   lua5.4 tools/docgen.lua           writes them
--   lua5.4 tools/docgen.lua --check   ends in 1 where one isn't what the words give

local book = dofile "tools/docgen/book.lua"

local function read(path)
    local file = io.open(path, "rb")
    local bytes = file and file:read("a")
    if file then
        file:close()
    end
    return bytes
end

local stale = 0
for _, made in ipairs(book.files()) do
    if read(made.path) == made.text then
        goto continue
    elseif arg[1] == "--check" then
        stale = stale + 1
        print(made.path .. ": isn't what tools/docgen gives; run lua5.4 tools/docgen.lua")
    else
        local file = assert(io.open(made.path, "wb"))
        assert(file:write(made.text))
        assert(file:close())
        print("wrote " .. made.path)
    end
    ::continue::
end
os.exit(stale == 0)
