-- What `cmake --install` puts below a prefix has to work from there. spec/install has more of it, for
-- builds without sanitizers.
local installed = require "support.installed"
local process = require "support.process"

describe("an installed mulligan", function()
    local place

    setup(function()
        place = installed.new()
    end)

    teardown(function()
        place:remove()
    end)

    it("has a program that runs", function()
        assert.is_truthy(place:sh("moved/bin/mulligan --help"):find("usage: mulligan ", 1, true))
    end)

    it("has a library that a program runs with", function()
        local here = ("LD_LIBRARY_PATH=$LIB %%s '%s/examples/run'"):format(process.build)
        local libraries = place:sh(here:format("ldd"))
        assert.is_truthy(libraries:find(place.lib .. "/libmulligan.so.0", 1, true), libraries)
        assert.is_truthy(place:sh(here:format("")):find("\ndone %d+\n"))
    end)

    it("exports what the headers declare, and nothing else", function()
        local declared, exported = {}, {}
        for _, header in ipairs { "mulligan.h", "mulligan/transport.h" } do
            for name in process.read("include/" .. header):gmatch("MULL_API[^;(]-(mull_[%w_]+)%(") do
                declared[#declared + 1] = name
            end
        end
        for name in place:sh("nm -D --defined-only $LIB/libmulligan.so"):gmatch(" T ([%w_]+)") do
            exported[#exported + 1] = name
        end
        table.sort(declared)
        table.sort(exported)
        assert.same(declared, exported)
    end)

    it("has the headers, as they are in the tree", function()
        place:sh(("diff -r '%s/include' moved/include"):format(process.here))
    end)

    it("has the types for editors, where init finds them", function()
        local types = place.prefix .. "/share/lua/5.4/mulligan/meta"
        place:sh(("diff -r '%s/lua/mulligan/meta' '%s'"):format(process.here, types))
        place:sh("moved/bin/mulligan init new && cd new && ../moved/bin/mulligan check --strict policy.lua")
        place:sh(("diff -r '%s' new/.mulligan/types"):format(types))
    end)

    it("has a Lua module without a Lua of its own", function()
        local path = ("%s/%s/lua/5.4/mulligan.so"):format(place.prefix, place.lib)
        assert.is_function(package.loadlib(path, "luaopen_mulligan"))
        assert.is_nil(place:sh("ldd '" .. path .. "'"):find("liblua", 1, true))
    end)
end)
