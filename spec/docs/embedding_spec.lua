-- docs/embedding.md: its code is out of the examples, its table of errors out of the header, its links lead somewhere.
local pages = require "support.pages"
local process = require "support.process"

local PAGE = "docs/embedding.md"

-- Whether the lines of a block stand in a file, one after the other.
local function stands_in(block, file)
    return ("\n" .. file):find("\n" .. block, 1, true) ~= nil
end

local function sources(pattern)
    local found = {}
    local pipe = assert(io.popen("find examples -name '" .. pattern .. "' | sort"))
    for path in pipe:lines() do
        found[#found + 1] = path
    end
    pipe:close()
    return found
end

describe(PAGE, function()
    local text = pages.read(PAGE)

    for language, pattern in pairs { c = "*.c", cpp = "*.cpp", python = "*.py" } do
        it("shows only what stands in an example: " .. language, function()
            local blocks = pages.blocks(PAGE, language)
            assert.is_true(#blocks > 0)
            for _, block in ipairs(blocks) do
                local found
                for _, path in ipairs(sources(pattern)) do
                    found = found or stands_in(block.text, pages.read(path))
                end
                assert.is_true(found, ("%s:%d: no example has this"):format(PAGE, block.line))
            end
        end)
    end

    it("leads to every example", function()
        for _, pattern in ipairs { "*.c", "*.cpp", "*.py" } do
            for _, path in ipairs(sources(pattern)) do
                assert.is_truthy(text:find("](../" .. path .. ")", 1, true), path)
            end
        end
    end)

    it("has the CMake words of the examples' project", function()
        local project = pages.read "examples/CMakeLists.txt"
        for _, block in ipairs(pages.blocks(PAGE, "cmake")) do
            for word in block.text:gmatch("mulligan[^)]*") do
                assert.is_truthy(project:find(word, 1, true), word)
            end
        end
        assert.is_truthy(project:find("mulligan::static", 1, true))
        assert.is_truthy(project:find("option(MULL_EXAMPLES_STATIC ", 1, true))
    end)

    it("lists every error, with what it says", function()
        local declared = {}
        local header = pages.read "include/mulligan.h"
        for name, said in header:gmatch('X%((MULL_E%u+), %-%d+, "[%w_]+", "([^"]+)"%)') do
            declared[#declared + 1] = { "`" .. name .. "`", said }
        end
        assert.is_true(#declared >= 9)
        local listed = {}
        for number, row in ipairs(pages.rows(PAGE, "Errors")) do
            listed[number] = { row[1], row[2] }
            assert.is_true(#row[3] > 0)
        end
        assert.same(declared, listed)
    end)

    it("has links that lead somewhere", function()
        for target in text:gmatch("%]%(([^)]+)%)") do
            local path, anchor = target:match("^([^#]*)#?(.*)$")
            path = path == "" and PAGE or "docs/" .. path
            assert.is_truthy(process.read(path) or os.execute("test -d " .. path), target)
            assert.is_truthy(anchor == "" or pages.anchors(path)[anchor], target)
        end
    end)
end)
