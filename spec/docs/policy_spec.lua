-- What docs/policy.md says is what the program does, as far as a page can be held to it: its samples load, what is
-- worked out beside them comes out, its tests pass, what it shows of commands is what they say. The samples of the
-- other pages load as well, and links lead somewhere.
local pages = require "support.pages"
local process = require "support.process"
local testing = require "mulligan.testing"
local worked = require "support.worked"

local PAGE = "docs/policy.md"

worked.describe("README.md", 1)
worked.describe(PAGE, 75)
worked.describe("docs/running.md", 0)

describe("links", function()
    for path in assert(io.popen "ls *.md docs/*.md docs/*/*.md"):read("a"):gmatch "%S+" do
        it("of " .. path .. " lead somewhere", function()
            local folder = path:match("^(.*/)[^/]*$") or ""
            for link in pages.read(path):gsub("\n```.-\n```", ""):gmatch("%]%(([^)]*)%)") do
                local file, anchor = link:match("^([^#]*)#?(.*)$")
                local to = file == "" and path or folder .. file
                if not link:find("^https://") then
                    assert(io.open(to), link):close()
                    assert(anchor == "" or pages.anchors(to)[anchor], link)
                end
            end
        end)
    end
end)

describe(PAGE, function()
    local folder

    before_each(function()
        folder = process.folder { ["policy.lua"] = pages.blocks(PAGE, "lua")[1].text }
    end)

    after_each(function()
        folder:remove()
    end)

    it("begins with a policy of ten lines", function()
        local first = pages.blocks(PAGE, "lua")[1]
        assert.equal(10, #first)
        assert.is_true(first.line < 10)
    end)

    it("begins with a policy in which check finds nothing", function()
        assert.equal(0, folder:mulligan({ "check", "policy.lua", "--strict" }).code)
    end)

    local tests = 0
    for _, block in ipairs(pages.blocks(PAGE, "lua")) do
        if block.text:find('"policy.lua"', 1, true) then
            tests = tests + 1
            it(("has a test in line %d, which passes"):format(block.line), function()
                local text = block.text:gsub('"policy%.lua"', ("%q"):format(folder:path "policy.lua"))
                assert(load(text, "=" .. PAGE, "t"))()
            end)
        end
    end

    local commands = 0
    for _, block in ipairs(pages.blocks(PAGE, "")) do
        local words, shown = block.text:match("^%$ mulligan ([^\n]*)\n(.*)$")
        commands = commands + 1
        it("shows what is said by " .. words, function()
            local given = {}
            for word in words:gmatch("%S+") do given[#given + 1] = word end
            local run = folder:mulligan(given)
            assert.same({ code = 0, out = shown, err = "" }, run)
        end)
    end

    it("has a notify that prints", function()
        local rules
        for _, sample in ipairs((worked.samples(PAGE))) do
            rules = sample.text:find("bus:notify", 1, true) and sample.text or rules
        end
        local rig = testing.rig {
            policy = worked.whole(rules),
            consumers = { Mail = { queue = "mail", handler = function() error("no such address", 0) end } },
        }
        rig:publish("mail", "x")
        rig:run_until_empty()
        local lines = rig:log()
        rig:close()
        assert.equal("info: exhausted of Mail: no such address", lines[1])
    end)

    it("has tests, and shows commands", function()
        assert.equal(2, tests)
        assert.equal(2, commands)
    end)
end)
