-- What README.md shows has to work as it stands there.
local examples = require "support.examples"
local mulligan = require "mulligan"
local process = require "support.process"

local program = process.mulligan

local function read(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

local function write(path, text)
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
end

describe("README.md", function()
    local folder, blocks

    setup(function()
        folder = os.tmpname()
        os.remove(folder)
        assert(os.execute("mkdir '" .. folder .. "'"))
        blocks = {}
        for language, text in read("README.md"):gmatch("\n```(%w+)\n(.-)\n```") do
            blocks[#blocks + 1] = { language = language, text = text }
        end
        write(folder .. "/policy.lua", blocks[1].text)
        write(folder .. "/service.lua", blocks[2].text)
    end)

    teardown(function()
        assert(os.execute("rm -r '" .. folder .. "'"))
    end)

    it("begins with a policy of ten lines", function()
        local policy = assert(mulligan.load(folder .. "/policy.lua"))
        assert.equal(6, policy:rules())
        policy:close()
        assert.is_true(select(2, blocks[1].text:gsub("\n", "")) < 10)
    end)

    it("shows a service.lua that runs", function()
        local command = "cd '%s' && printf '%%s\\n' '{\"address\":1}' '{}' '{' | "
            .. "'%s' send orders --transport orders && timeout 60 '%s' run --until-empty 2>log"
        local pipe = assert(io.popen(command:format(folder, program, program)))
        local output = pipe:read("a")
        assert.is_true(pipe:close(), read(folder .. "/log"))
        assert.equal("done 1, retried 0, redelivered 0, dead-lettered 2, discarded 0\n", output)
    end)

    -- Each folder that a page lets CMake build or install to, in a tree of its own.
    it("names no folder that git would take", function()
        local tree = process.folder { [".gitignore"] = read ".gitignore" }
        local named, taken = 0, {}
        assert.equal(0, tree:run({ "git", "init", "-q" }).code)
        for _, path in ipairs { "README.md", "docs/embedding.md", "bench/README.md" } do
            for line in read(path):gmatch "cmake [^\n]*" do
                for option, name in line:gmatch "(%-%-?[%w_]+)[ =]([%w/]+)" do
                    if option == "-B" or option == "--prefix" or option == "-DCMAKE_PREFIX_PATH" then
                        named = named + 1
                        tree:write(name .. "/file", "")
                    end
                end
            end
        end
        for file in tree:run({ "git", "status", "--porcelain", "-uall" }).out:gmatch "%?%? ([^\n]*)" do
            taken[#taken + 1] = not file:find "^%.gitignore" and not file:find "job" and file or nil
        end
        tree:remove()
        assert.is_true(named >= 5)
        assert.same({}, taken)
    end)

    it("shows how Lua decides", function()
        local printed = {}
        local text = blocks[3].text:gsub('"policy.lua"', '"' .. folder .. '/policy.lua"')
        local chunk = assert(load(text, "README", "t", {
            require = require,
            assert = assert,
            print = function(...) printed[#printed + 1] = table.concat({ ... }, " ") end,
        }))
        chunk()
        assert.equal(1, #printed)
        local delay = tonumber(printed[1]:match("^retry (%d+) policy.lua:7$"))
        assert.is_true(delay ~= nil and delay >= 300 and delay <= 500, printed[1])
    end)

    it("shows C that compiles and runs by its own command", function()
        assert.equal("c", blocks[4].language)
        assert.equal(read("examples/decide.c"), blocks[4].text .. "\n")
        local ran = examples.run("decide.c", { ["policy.lua"] = blocks[1].text })
        assert.equal(0, ran.code, ran.err)
        assert.equal("", ran.err)
        local delay = tonumber(ran.out:match("^retry in (%d+) ms\n$"))
        assert.is_true(delay ~= nil and delay >= 300 and delay <= 500, ran.out)
    end)

    it("shows C that says what is wrong", function()
        local ran = examples.run("decide.c", { ["policy.lua"] = "no policy" })
        assert.equal(1, ran.code)
        assert.equal("policy.lua: the policy cannot be loaded\n", ran.err)
        assert.equal("", ran.out)
    end)
end)
