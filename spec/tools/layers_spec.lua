local sample = require "tools.sample"

describe("tools/layers.lua", function()
    -- Runs it on one file with one include, beside the headers that it may find.
    local function include(path, header)
        local files = {
            ["include/mulligan.h"] = "",
            ["include/mulligan/transport.h"] = "",
            ["src/base/clock.h"] = "",
            ["src/base/list.h"] = "",
            ["src/policy/table.h"] = "",
            ["src/analysis/bounds.h"] = "",
            ["src/decide/decide.h"] = "",
            ["src/runtime/engine_state.h"] = "",
            ["src/lua/values/values.h"] = "",
            ["src/lua/binding/engine.h"] = "",
            ["src/transport/transports.h"] = "",
            ["src/transport/memory.h"] = "",
            ["src/transport/sqlite/store.h"] = "",
        }
        files[path] = "/* first */\n\n#include " .. header .. "\n"
        return sample.run("layers", files)
    end

    local function allows(path, header)
        local passed, output = include(path, header)
        assert.is_true(passed, output)
    end

    local function refuses(path, header)
        local passed, output = include(path, header)
        assert.is_false(passed, output)
        assert.equal(path .. ":3: " .. header:sub(2, -2) .. ": ", output:match("^.-:%d+: [^:]+: "))
        assert.is_truthy(output:find("\n%d+ files, 1 includes that break the layers\n$"), output)
    end

    it("lets each room include what stands below it", function()
        allows("src/policy/build.c", '"table.h"')
        allows("src/policy/build.c", '"base/list.h"')
        allows("src/policy/build.c", "<string.h>")
        allows("src/analysis/lint.c", '"policy/table.h"')
        allows("src/lua/binding/policy_check.c", '"analysis/bounds.h"')
        allows("src/decide/policy.c", '"policy/table.h"')
        allows("src/decide/policy.c", "<pthread.h>")
        allows("src/runtime/delivery.c", '"decide/decide.h"')
        allows("src/runtime/delivery.c", '"transport/transports.h"')
        allows("src/runtime/delivery.c", '"mulligan/transport.h"')
        allows("src/lua/binding/module.c", "<lua.h>")
        allows("src/transport/sqlite/store.c", "<sqlite3.h>")
        allows("src/transport/sqlite/store.c", '"store.h"')
        allows("src/transport/sqlite.c", '"transport/sqlite/store.h"')
    end)

    it("refuses what stands above, with file, line and header", function()
        refuses("src/base/alloc.c", '"policy/table.h"')
        refuses("src/policy/build.c", '"decide/decide.h"')
        refuses("src/policy/table.h", '"runtime/engine_state.h"')
        refuses("src/policy/evaluate.c", '"analysis/bounds.h"')
        refuses("src/decide/policy.c", '"analysis/bounds.h"')
        refuses("src/runtime/check.c", '"analysis/bounds.h"')
        refuses("src/decide/policy.c", '"runtime/engine_state.h"')
        refuses("src/transport/memory.c", '"policy/table.h"')
        refuses("src/cli/main.c", '"runtime/engine_state.h"')
        refuses("include/mulligan.h", '"policy/table.h"')
    end)

    it("keeps loops, Lua, threads and clocks out of the decision", function()
        refuses("src/policy/build.c", "<uv.h>")
        refuses("src/policy/build.c", "<lua.h>")
        refuses("src/policy/build.c", "<pthread.h>")
        refuses("src/policy/build.c", "<time.h>")
        refuses("src/policy/build.c", '"base/clock.h"')
        refuses("src/decide/policy.c", "<uv.h>")
    end)

    it("keeps Lua in its room, and client libraries in their transports", function()
        refuses("src/runtime/delivery.c", "<lua.h>")
        refuses("src/runtime/delivery.c", "<sqlite3.h>")
        refuses("src/transport/memory.c", "<sqlite3.h>")
        refuses("src/lua/binding/module.c", "<sqlite3.h>")
        refuses("src/lua/binding/module.c", "<jansson.h>")
    end)

    it("keeps transports apart, but for the registry", function()
        allows("src/transport/transports.c", '"transport/sqlite/store.h"')
        allows("src/transport/memory.c", '"transports.h"')
        refuses("src/transport/memory.c", '"transport/sqlite/store.h"')
        refuses("src/transport/sqlite/store.c", '"transport/memory.h"')
        refuses("src/runtime/delivery.c", '"transport/memory.h"')
    end)

    it("keeps the rooms of src/lua one above the other", function()
        allows("src/lua/binding/engine.c", '"lua/values/values.h"')
        allows("src/lua/binding/engine.c", '"runtime/engine_state.h"')
        allows("src/lua/program/program.c", '"lua/binding/engine.h"')
        refuses("src/lua/values/from_lua.c", '"lua/binding/engine.h"')
        refuses("src/lua/language/compile.c", '"lua/binding/engine.h"')
        refuses("src/lua/language/compile.c", '"runtime/engine_state.h"')
        refuses("src/lua/machine/budgets.c", '"policy/table.h"')
        refuses("src/cli/main.c", '"lua/binding/engine.h"')
        refuses("src/lua/attic.c", '"lua/binding/engine.h"')
    end)

    it("refuses a header or a room that it doesn't know", function()
        refuses("src/base/alloc.c", "<curl/curl.h>")
        refuses("src/base/alloc.c", '"base/none.h"')
        refuses("src/attic/old.c", "<stdio.h>")
    end)

    it("finds an include however it is spaced", function()
        local passed, output = sample.run("layers", { ["src/policy/x.c"] = "  #  include<uv.h>", ["include/x.h"] = "" })
        assert.is_false(passed)
        assert.is_truthy(output:find("src/policy/x.c:1: uv.h: ", 1, true), output)
    end)

    it("doesn't pass where there is nothing to read", function()
        assert.is_false((sample.run("layers", { ["src/x.txt"] = "", ["include/x.txt"] = "" })))
    end)
end)
