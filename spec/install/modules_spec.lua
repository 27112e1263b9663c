-- Program, library and Lua module find the modules of their own installation, wherever it was moved to.
local examples = require "support.examples"
local installed = require "support.installed"
local process = require "support.process"

local PROGRAM = [[
#include <mulligan.h>
#include <stdio.h>

static void tell(const char *file, int line, const char *text, void *data)
{
    puts(text);
}

int main(void)
{
    mull_policy_options policy_options = MULL_INIT(mull_policy_options);
    policy_options.text = "";
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.problem = tell;
    mull_engine *engine;
    if (mull_policy_load(&options.policy, &policy_options) || mull_engine_new(&engine, &options))
        return 1;
    mull_policy_free(options.policy);
    int status = mull_engine_transport(engine, "shop", "board:one");
    mull_engine_transport(engine, "far", "amqp:one");
    mull_engine_close(engine, NULL, NULL);
    return status != 0;
}
]]

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("shop", "board:one")
m.consumer("C", { transport = "shop", queue = "q", handler = function() end })
]]

local LUA = [[
local mulligan = require "mulligan"
local engine = mulligan.engine { policy = assert(mulligan.load_text "") }
assert(engine:transport("shop", "board:one"))
engine:close()
]]

describe("an installed module", function()
    local place, file

    setup(function()
        place = installed.new { ["program.c"] = PROGRAM, ["service.lua"] = SERVICE, ["policy.lua"] = "",
            ["use.lua"] = LUA }
        place:sh(("cmake --install '%s' --prefix moved --component module_board"):format(process.build))
        file = ("moved/%s/mulligan/modules/board.so"):format(place.lib)
        place:sh(("rm moved/%s/mulligan/modules/amqp.so"):format(place.lib)) -- as where its package isn't
    end)

    teardown(function()
        place:remove()
    end)

    -- What a line of shell prints that ends in `code`.
    local function ends(code, line)
        local ended = place.folder:run({ "sh", "-c", line }, { env = {
            PKG_CONFIG_PATH = ("%s/%s/pkgconfig"):format(place.prefix, place.lib),
            LD_LIBRARY_PATH = ("%s/%s"):format(place.prefix, place.lib),
        } })
        assert.equal(code, ended.code, ended.out .. ended.err)
        return ended.out .. ended.err
    end

    -- without runs something while the module is aside.
    local function without(run)
        place:sh(("mv %s aside"):format(file))
        local said = run()
        place:sh(("mv aside %s"):format(file))
        return said
    end

    local unknown = "there is no 'board:'; known are memory:, sqlite:, amqp:, amqps:"

    it("is found by the program", function()
        local run = "moved/bin/mulligan run --until-empty"
        assert.equal("done 0, retried 0, redelivered 0, dead-lettered 0, discarded 0\n",
            ends(0, run .. " --log-level error"))
        assert.matches(unknown, without(function() return ends(2, run) end), 1, true)
    end)

    it("is found by the shared library", function()
        place:sh("cc program.c -o shared $(pkg-config --cflags --libs mulligan)")
        local amqp = "transport 'far': 'amqp:' needs the package mulligan-amqp\n"
        assert.equal(amqp, ends(0, "./shared"))
        local said = without(function() return ends(1, "./shared") end)
        assert.equal(("transport 'shop': %s\n%s"):format(unknown, amqp), said)
    end)

    it("is found by the Lua module", function()
        local run = ("LUA_CPATH=moved/%s/lua/5.4/?.so lua5.4 use.lua"):format(place.lib)
        assert.equal("", ends(0, run))
        assert.matches(unknown, without(function() return ends(1, run) end), 1, true)
    end)

    it("isn't loaded by the static library, which says what is", function()
        place:sh("cc program.c -o static $(pkg-config --static --cflags --libs mulligan "
            .. "| sed s/-lmulligan/-l:libmulligan.a/)")
        assert.equal(("transport 'shop': %s\ntransport 'far': 'amqp:' isn't linked in here; "
            .. "the build needs MULL_STATIC_MODULES=amqp\n"):format(unknown), ends(1, "./static"))
    end)

    it("is made by the command in its head", function()
        local command = examples.command(place.folder:read "moved/share/doc/mulligan/examples/board/module.c")
        place:sh("cp -R moved/share/doc/mulligan/examples/board . && cd board && " .. command)
        without(function()
            place:sh(("cp board/board.so %s"):format(file))
            return ends(0, "moved/bin/mulligan run --until-empty")
        end)
    end)

    it("is none of what is installed without being asked for", function()
        local other = installed.new()
        assert.equal("", other:sh("find moved -name board.so"))
        other:remove()
    end)
end)
