-- The files of src/runtime use each other in one direction, by the symbols of their object files: an include may be
-- there for a type alone.
local sample = require "tools.sample"

local build = os.getenv("MULL_BUILD") or "build/dev"

local function run(root, folder)
    local pipe = assert(io.popen(("lua5.4 tools/circles.lua '%s' '%s' 2>&1"):format(root, folder)))
    local output = pipe:read("a")
    return pipe:close() == true, output
end

-- Compiles a tree of these files, and looks at it.
local function look(files)
    local root = sample.write(files)
    for path in pairs(files) do
        local to = ("%s/b/mulligan_objects.dir/%s.o"):format(root, path)
        assert(os.execute(("mkdir -p '%s' && cc -c '%s/%s' -o '%s'"):format(to:match("^(.*)/"), root, path, to)))
    end
    local passed, output = run(root, root .. "/b")
    assert(os.execute(("rm -r '%s'"):format(root)))
    return passed, output
end

local function refuses(text, files)
    local passed, output = look(files)
    assert.is_false(passed)
    assert.is_truthy(output:find(text, 1, true), output)
end

describe("tools/circles.lua", function()
    it("finds none in this tree", function()
        local passed, output = run(".", build)
        assert.is_true(passed, output)
        assert.is_true(tonumber(output:match("^(%d+) files, 0 problems\n$")) > 100, output)
    end)

    it("lets a file use one before it", function()
        assert.is_true((look {
            ["src/runtime/engine_state.c"] = "int a(void) { return 1; }",
            ["src/runtime/loop.c"] = "int a(void); int b(void) { return a(); }",
        }))
    end)

    it("refuses what comes later", function()
        refuses("src/runtime/engine_state.c: it uses b of src/runtime/loop.c, which comes later\n", {
            ["src/runtime/engine_state.c"] = "int b(void); int a(void) { return b(); }",
            ["src/runtime/loop.c"] = "int b(void) { return 1; }",
        })
    end)

    it("refuses a circle in a step, over a variable too", function()
        refuses("a circle: src/runtime/copy.c -> src/runtime/timers.c -> src/runtime/copy.c\n", {
            ["src/runtime/copy.c"] = "int b(void); const int one = 1; int a(void) { return b(); }",
            ["src/runtime/timers.c"] = "extern const int one; int b(void) { return one; }",
        })
    end)

    it("refuses a circle across rooms", function()
        refuses("a circle: src/base/x.c -> src/wire/y.c -> src/base/x.c\n", {
            ["src/base/x.c"] = "int b(void); int a(void) { return b(); }",
            ["src/wire/y.c"] = "int a(void); int b(void) { return a(); }",
        })
    end)

    it("refuses a file that has no place", function()
        refuses("src/runtime/more.c: tools/circles.lua doesn't say where it stands\n", {
            ["src/runtime/more.c"] = "int a(void) { return 1; }",
        })
    end)
end)
