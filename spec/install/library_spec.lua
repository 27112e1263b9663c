-- A program finds the installed library, shared and static, by CMake and by pkg-config, wherever the
-- prefix was moved to.
local examples = require "support.examples"
local installed = require "support.installed"
local pages = require "support.pages"
local process = require "support.process"

-- It has a name of its own that the library has inside as well: the static one must keep its own.
local PROGRAM = [[
#include <mulligan.h>
#include <stdio.h>

int mull__policy_new(void);

int mull__policy_new(void)
{
    return 42;
}

int main(void)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = "policy.lua";
    mull_policy *policy;
    if (mull_policy_load(&policy, &options) != 0)
        return 1;
    printf("%s %d %d", mull_version(), (int)mull_policy_rules(policy), mull__policy_new());
    mull_policy_free(policy);
#ifdef MULL_STATIC
    printf(" static");
#endif
    return 0;
}
]]

local LISTS = [[
cmake_minimum_required(VERSION 3.13)
project(embedder C)
find_package(mulligan ${WANTED})
if(NOT mulligan_FOUND)
    message(FATAL_ERROR "refused: ${mulligan_CONSIDERED_VERSIONS} ${mulligan_NOT_FOUND_MESSAGE}")
endif()
foreach(target IN LISTS LINKED)
    add_executable(${target} embedder.c)
    target_link_libraries(${target} PRIVATE mulligan::${target})
endforeach()
]]

local POLICY = 'require("mulligan.policy").bus():default():retry(3)\n'

describe("the installed library", function()
    local place, version, soname

    setup(function()
        place = installed.new { ["embedder.c"] = PROGRAM, ["CMakeLists.txt"] = LISTS, ["policy.lua"] = POLICY }
        soname = ("%s/%s/libmulligan.so.0"):format(place.prefix, place.lib)
        version = place:sh("pkg-config --modversion mulligan"):match("^[%d.]+")
    end)

    teardown(function()
        place:remove()
    end)

    -- configure runs CMake on the project; `given` are variables.
    local function configure(given)
        return ("cmake -S . -B built -G Ninja --fresh -DCMAKE_PREFIX_PATH=moved %s 2>&1"):format(given)
    end

    local function refused(given)
        local ended = place.folder:run({ "sh", "-c", configure(given) })
        assert.equal(1, ended.code, ended.out)
        return ended.out
    end

    local function libraries_of(program)
        return place:sh("ldd " .. program)
    end

    it("is found by CMake, shared and static", function()
        place:sh(configure("-DWANTED=0.1 '-DLINKED=mulligan;static'") .. " && cmake --build built")
        assert.equal(version .. " 1 42", place:sh("built/mulligan"))
        assert.equal(version .. " 1 42 static", place:sh("built/static"))
        assert.matches(soname, libraries_of("built/mulligan"), 1, true)
        assert.not_matches("libmulligan", libraries_of("built/static"), 1, true)
    end)

    it("is found by CMake for its own minor version only", function()
        local minor = tonumber(version:match("^0%.(%d+)%."))
        place:sh(configure(("-DWANTED=%s -DLINKED=mulligan"):format(version)))
        for _, other in ipairs { "0." .. minor - 1, "0." .. minor + 1, "1.0" } do
            assert.matches("refused: " .. version, refused("-DWANTED=" .. other), 1, true)
        end
    end)

    it("needs nothing else for the shared one, and says what the static one needs", function()
        local alone = " -DLINKED=mulligan -DPKG_CONFIG_EXECUTABLE=/bin/false"
        place:sh(configure("-DWANTED=0.1" .. alone) .. " && cmake --build built && built/mulligan")
        local said = refused("'-DWANTED=0.1;COMPONENTS;static'" .. alone)
        assert.matches("mulligan::static needs pkg-config", said, 1, true)
        assert.matches("libuv", said, 1, true)
    end)

    it("is found by pkg-config, shared", function()
        place:sh("cc embedder.c -o shared $(pkg-config --cflags --libs mulligan) -Wl,-rpath,$PWD/$LIB")
        assert.equal(version .. " 1 42", place:sh("./shared"))
        assert.matches(soname, libraries_of("./shared"), 1, true)
    end)

    it("is found by pkg-config, static", function()
        place:sh("mkdir shared-aside && mv $LIB/libmulligan.so* shared-aside/")
        local command = "cc embedder.c -o static $(pkg-config --static --cflags --libs mulligan) && ./static; "
            .. "status=$?; mv shared-aside/* $LIB/; exit $status"
        assert.equal(version .. " 1 42 static", place:sh(command))
        assert.not_matches("libmulligan", libraries_of("./static"), 1, true)
    end)

    it("is found by pkg-config, static beside the shared one", function()
        place:sh("cc embedder.c -o beside $(pkg-config --static --cflags --libs mulligan "
            .. "| sed s/-lmulligan/-l:libmulligan.a/)")
        assert.equal(version .. " 1 42 static", place:sh("./beside"))
        assert.not_matches("libmulligan", libraries_of("./beside"), 1, true)
    end)

    it("brings the conformance suite, which a transport passes by its URL", function()
        place:sh("cc -DMULL_CONFORMANCE_MAIN moved/share/mulligan/conformance.c -o conformance "
            .. "$(pkg-config --cflags --libs mulligan) -Wl,-rpath,$PWD/$LIB")
        local out = place:sh("./conformance --forgets memory:")
        assert.matches("ok 2 - publish: a message keeps what it says", out, 1, true)
        assert.not_matches("not ok", out, 1, true)
        local ended = place.folder:run({ "./conformance", "--forgets", "memory:?settle=refused" })
        assert.equal(1, ended.code)
        assert.matches("not ok %d+ %- settle: a dead letter", ended.out)
    end)

    it("brings the conformance suite, which a program runs by the command in its head", function()
        place:sh("cp -R moved/share/doc/mulligan/examples/board .")
        local command = examples.command(place.folder:read "board/conforms.c")
        place:sh("cd board && " .. command:gsub("P/share", "../moved/share") .. " -Wl,-rpath,$PWD/../$LIB")
        local out = place:sh("board/conforms")
        assert.matches("passed: settle: given back, it has its old place\n", out, 1, true)
        assert.matches("passed: close: what is out comes back\n", out, 1, true)
        assert.not_matches("failed: ", out, 1, true)
    end)

    it("brings the conformance suite, which the smallest transport passes by the command of its page", function()
        local command
        for _, block in ipairs(pages.blocks("docs/embedding.md", "sh")) do
            command = block.text:find("array_transport", 1, true) and block.text or command
        end
        place:sh("cp moved/share/doc/mulligan/examples/array/array.c .")
        local out = place:sh("export LD_LIBRARY_PATH=$PWD/$LIB\n" .. command:gsub("P/share", "moved/share"))
        assert.matches("ok 2 - publish: a message keeps what it says", out, 1, true)
        assert.not_matches("not ok", out, 1, true)
    end)

    it("names no folder of the build or of the first prefix", function()
        local line = "! grep -rF -e first -e '%s' $LIB/cmake $LIB/pkgconfig"
        assert.equal("", place:sh(line:format(process.here)))
    end)

    it("has the same names in both, and no others", function()
        local function names(file, option)
            local line = "nm %s --defined-only $LIB/%s | awk 'NF == 3 { print $3 }' | sort"
            return place:sh(line:format(option, file))
        end
        assert.matches("mull_decide\n", names("libmulligan.a", "-g"), 1, true)
        assert.equal(names("libmulligan.so", "-D"), names("libmulligan.a", "-g"))
    end)
end)
