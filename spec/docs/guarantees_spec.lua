-- docs/guarantees.md names a test for each promise: there is one of that name, in that file.
local process = require "support.process"

local page = process.read "docs/guarantees.md"

-- The name of a test in Lua is a text, or the end of one that is put together; in C, a function.
local function has_test(source, path, name)
    if path:find "%.c$" then
        return source:find(("[( ]%s[,)]"):format(name)) ~= nil
    end
    return source:find(('"%s'):format(name), 1, true) ~= nil or source:find(('%s"'):format(name), 1, true) ~= nil
end

describe("docs/guarantees.md", function()
    for path, name in page:gsub(" ⁺", ""):gmatch "`(spec/[^`]+)`: ([^|\n]-) |\n" do
        it(("knows what shows it: %s: %s"):format(path, name), function()
            assert.is_true(has_test(assert(process.read(path), "there is no " .. path), path, name))
        end)
    end

    it("has a test in each line of its tables", function()
        for line in page:match("^(.-)\n## What is not promised"):gmatch "\n(|[^\n]+)" do
            local is_head = line:find("| shown by |", 1, true) or line:find "^| %-%-%-"
            assert.is_truthy(is_head or line:find("`spec/[^`]+`: "), line)
        end
    end)

    it("marks what has a longer form, and says how it runs", function()
        for path in page:gmatch "`(spec/[^`]+)`: [^|\n]- ⁺ |" do
            local name = path:match "([^/]+)%.c$" or path:match "([^/]+)_spec%.lua$"
            assert.is_truthy(page:match("\n## The longer forms.*"):find(name, 1, true), name)
        end
    end)
end)
