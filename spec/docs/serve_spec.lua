-- The test vectors of docs/serve.md, against the program.
local process = require "support.process"
local serving = require "support.serving"

describe("docs/serve.md", function()
    local page = process.read "docs/serve.md"
    local vectors = page:match "\n## Test vectors\n(.*)"
    local server

    setup(function()
        server = serving.new(vectors:match "\n```lua\n(.-)```"):start()
    end)

    teardown(function()
        server:remove()
    end)

    -- The digits of a line, without spaces.
    local function digits(line)
        return (line:sub(2):gsub("%s", ""))
    end

    it("shows bytes that come as they go", function()
        local count = 0
        for block in vectors:gmatch "\n```hex\n(.-)```" do
            local script, wanted = {}, {}
            for line in block:gmatch "[^\n]+" do
                if line:find "^>" then
                    script[#script + 1] = "> " .. digits(line)
                else
                    script[#script + 1] = "<"
                    wanted[#wanted + 1] = line == "closed" and line or digits(line)
                end
            end
            assert.same(wanted, server:speak(script), block)
            count = count + 1
        end
        assert.is_true(count >= 5)
    end)
end)
