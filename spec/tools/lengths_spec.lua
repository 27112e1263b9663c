local sample = require "tools.sample"

describe("tools/lengths.lua", function()
    local function lines(count, text)
        return (text .. "\n"):rep(count)
    end

    local function passes(path, text)
        local passed, output = sample.run("lengths", { [path] = text })
        assert.is_true(passed, output)
    end

    local function fails(path, text, expected)
        local passed, output = sample.run("lengths", { [path] = text })
        assert.is_false(passed)
        assert.is_truthy(output:find(expected, 1, true), output)
    end

    it("allows files of 800 lines", function()
        passes("src/a.c", lines(800, "int x;"))
        fails("src/a.c", lines(801, "int x;"), "src/a.c:801: 801 lines, 800 are allowed")
        fails("lua/a.lua", lines(801, "x = 1"), "lua/a.lua:801: 801 lines, 800 are allowed")
        passes("lua/mulligan/meta/a.lua", lines(801, "---@field x"))
    end)

    it("allows C functions of 80 lines, head and braces included", function()
        local function text(body)
            return "int x;\n\nstatic int work(int a,\n                int b)\n{\n" .. lines(body, "    a++;") .. "}\n"
        end
        passes("src/a.c", text(76))
        fails("src/a.c", text(77), "src/a.c:3: work has 81 lines, 80 are allowed")
    end)

    it("tells one C function from the next, and from what is no function", function()
        local short = "int f(void)\n{\n" .. lines(60, "    g();") .. "}\n\n"
        passes("src/a.c", short .. short .. "struct s {\n" .. lines(100, "    int x;") .. "};\n" .. short)
        fails("src/a.c", short .. "int g(void)\n{\n" .. lines(90, "    g();") .. "}\n", "src/a.c:65: g has 93 lines")
    end)

    it("allows Lua functions of 80 lines", function()
        local function text(head, body)
            return "local t = {}\n" .. head .. "\n" .. lines(body, "    if x then y() end") .. "end\n"
        end
        passes("lua/a.lua", text("function t.work(a)", 78))
        fails("lua/a.lua", text("function t.work(a)", 79), "lua/a.lua:2: t.work has 81 lines")
        fails("lua/a.lua", text("local function work(a)", 79), "lua/a.lua:2: work has 81 lines")
        fails("lua/a.lua", text("t.work = function(a)", 79), "lua/a.lua:2: t.work has 81 lines")
    end)

    it("knows Lua's blocks, strings and comments", function()
        passes("lua/a.lua", [==[
local function f()
    local s = "end \" function"
    local l = [[ function
        end end ]]
    -- function
    --[[ function ]] --[=[ function
    ]=]
    for i = 1, 2 do while s do repeat l = -1 until l end end
end
]==] .. lines(90, "x = 1"))
    end)

    it("finds a long function within another, and behind a short one", function()
        local long = "function()\n" .. lines(90, "    x()") .. "end"
        fails("lua/a.lua", "f(" .. long .. ")\n", "lua/a.lua:1: a function has 92 lines")
        fails("lua/a.lua", "function a()\nend\nfunction b()\nc(" .. long .. ")\nend\n", "lua/a.lua:4: a function has")
    end)

    it("takes describe() for a list", function()
        passes("spec/a_spec.lua", 'describe("x", function()\n' .. lines(90, "    it()") .. "end)\n")
        fails("spec/a_spec.lua", 'it("x", function()\n' .. lines(90, "    x()") .. "end)\n", "spec/a_spec.lua:1:")
    end)
end)
