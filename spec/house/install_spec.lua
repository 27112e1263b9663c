-- What `cmake --install` puts below a prefix has to work from there.
local build = os.getenv("MULL_BUILD") or "build/dev"

local function run(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read("a")
    assert.is_true(pipe:close(), output)
    return output
end

describe("an installed mulligan", function()
    local prefix

    setup(function()
        prefix = os.tmpname()
        os.remove(prefix)
        run(("cmake --install '%s' --prefix '%s'"):format(build, prefix))
    end)

    teardown(function()
        run("rm -rf '" .. prefix .. "'")
    end)

    it("has a program that runs", function()
        assert.is_truthy(run(prefix .. "/bin/mulligan --help"):find("usage: mulligan ", 1, true))
    end)

    it("has a library that a program runs with", function()
        local here = "LD_LIBRARY_PATH='" .. prefix .. "/lib' "
        local libraries = run(here .. "ldd " .. build .. "/examples/run")
        assert.is_truthy(libraries:find(prefix .. "/lib/libmulligan.so.0", 1, true), libraries)
        assert.is_truthy(run(here .. build .. "/examples/run"):find("\ndone %d+\n"))
    end)

    it("exports what the headers declare, and nothing else", function()
        local declared = {}
        local headers = run("cat include/mulligan.h include/mulligan/transport.h")
        for name in headers:gmatch("MULL_API[^;(]-(mull_[%w_]+)%(") do
            declared[#declared + 1] = name
        end
        local exported = {}
        for name in run("nm -D --defined-only '" .. prefix .. "/lib/libmulligan.so'"):gmatch(" T ([%w_]+)") do
            exported[#exported + 1] = name
        end
        table.sort(declared)
        table.sort(exported)
        assert.same(declared, exported)
    end)

    it("has the headers, as they are in the tree", function()
        run(("diff -r include '%s/include'"):format(prefix))
    end)

    it("has the types for editors, where init finds them", function()
        local types = prefix .. "/share/lua/5.4/mulligan/meta"
        run(("diff -r lua/mulligan/meta '%s'"):format(types))
        run(("cd '%s' && bin/mulligan init new && cd new && ../bin/mulligan check --strict policy.lua"):format(prefix))
        assert.is_truthy(run(("cat '%s/new/.luarc.json'"):format(prefix)):find(('"%s"'):format(types), 1, true))
    end)

    it("has a Lua module without a Lua of its own", function()
        local path = prefix .. "/lib/lua/5.4/mulligan.so"
        assert.is_function(package.loadlib(path, "luaopen_mulligan"))
        assert.is_nil(run("ldd '" .. path .. "'"):find("liblua", 1, true))
    end)
end)
