-- `luarocks make` builds the module from a tree of its own and installs it: what is installed works, in a
-- plain Lua, and what the rockspec asks for is what the build needs. Built once, in the run without
-- sanitizers.
local process = require "support.process"
local types = require "support.types"

local ROCKSPEC = "mulligan-scm-1.rockspec"

local function read_rockspec()
    local rock = {}
    assert(loadfile(ROCKSPEC, "t", rock))()
    return rock
end

-- The words of a text that begins behind `before` in a file and ends before `after`.
local function words_in(path, before, after)
    local text = assert(process.read(path))
    local _, first = assert(text:find(before, 1, true))
    local words = {}
    for word in text:sub(first + 1, text:find(after, first + 1, true) - 1):gmatch("[^%s`]+") do
        words[word] = true
    end
    return words
end

describe("the rockspec", function()
    it("asks for the libraries that the build asks for", function()
        local asked = {}
        for name in process.read("CMakeLists.txt"):gmatch("pkg_check_modules%((%u+) REQUIRED") do
            asked[name == "UV" and "LIBUV" or name] = true
        end
        assert.is_true(#types.names(asked) > 2)
        assert.same(types.names(asked), types.names(read_rockspec().external_dependencies))
    end)

    it("leads the build to each of them", function()
        local path = read_rockspec().build.variables.CMAKE_PREFIX_PATH
        for name in pairs(read_rockspec().external_dependencies) do
            assert(path:find(("$(%s_DIR)"):format(name), 1, true), name)
        end
    end)

    it("has the headers that are in the packages which README.md and do name", function()
        local folder = process.folder()
        local packages = {}
        for _, dependency in pairs(read_rockspec().external_dependencies) do
            local found = folder:run { "dpkg", "-S", "/usr/include/" .. dependency.header }
            packages[assert(found.out:match("^([%w-]+)[:,]"), found.err)] = true
        end
        folder:remove()
        local others = { ["liblua5.4-dev"] = true, ["libc6-dev"] = true }
        for _, named in ipairs {
            words_in("README.md", "| building | `", "`,"),
            words_in("do", 'build_packages="', '"'),
            words_in(ROCKSPEC, "-- On Debian: ", "\n"),
        } do
            local plain = {}
            for word in pairs(named) do
                plain[(word:gsub("[,;]$", ""))] = true
            end
            for package in pairs(packages) do
                assert(plain[package], package)
            end
            for word in pairs(plain) do
                assert(packages[word] or others[word] or not word:find("%-dev$"), word)
            end
        end
    end)
end)

local sanitized = (os.getenv("MULL_BUILD") or ""):find("san$") ~= nil

describe("luarocks make", function()
    if sanitized then
        it("is looked at", function()
            pending("in the run without sanitizers")
        end)
        return
    end

    local folder, made

    -- A prefix of its own for libuv, to see whether the build looks where luarocks was told to.
    local function lay_out_libuv()
        local there = folder:run { "pkg-config", "--variable=libdir", "libuv" }.out:gsub("\n$", "")
        folder:write("uv/lib/pkgconfig/libuv.pc", ([[
prefix=%s
Name: libuv
Description: the machine's own, by another way
Version: %s
Libs: -L${prefix}/lib -luv
Cflags: -I${prefix}/include
]]):format(folder:path "uv", folder:run { "pkg-config", "--modversion", "libuv" }.out:gsub("\n$", "")))
        folder:run { "ln", "-s", there .. "/libuv.so", folder:path "uv/lib/libuv.so" }
        folder:run { "ln", "-s", "/usr/include", folder:path "uv/include" }
    end

    -- The watchdog is for a machine that is busy with other builds.
    local function luarocks(words)
        local job = folder:start({ "sh", "-c", 'cd tree && exec luarocks --lua-version 5.4 --tree ../rocks "$@"', "sh",
            table.unpack(words) }, { env = { HOME = folder.root, CMAKE_GENERATOR = "Ninja",
            CMAKE_BUILD_PARALLEL_LEVEL = "2" } })
        return { code = job.wait(500), out = job.out(), err = job.err() }
    end

    setup(function()
        folder = process.folder()
        lay_out_libuv()
        local copied = folder:run { "sh", "-c", 'mkdir tree && cd "$1" && tar --exclude=./build --exclude=./.git '
            .. '-cf - . | tar -xf - -C "$2"', "sh", process.here, folder:path "tree" }
        assert(copied.code == 0, copied.err)
        made = luarocks { "make", ROCKSPEC, "LIBUV_DIR=" .. folder:path "uv" }
    end)

    teardown(function()
        folder:remove()
    end)

    it("succeeds, and a look at the rockspec finds nothing", function()
        assert.equal(0, made.code, made.out .. made.err)
        local looked = luarocks { "lint", ROCKSPEC }
        assert.equal(0, looked.code, looked.out .. looked.err)
    end)

    it("builds with what it was told to", function()
        local cache = folder:read "tree/build.luarocks/CMakeCache.txt"
        assert.equal(folder:path "uv", cache:match("\nUV_PREFIX:INTERNAL=([^\n]*)"))
    end)

    it("installs the module and the types for editors", function()
        local found = folder:run { "sh", "-c", "cd rocks && find lib/lua share/lua -type f | sort" }
        local expected = { "lib/lua/5.4/mulligan.so" }
        for _, name in ipairs { "mulligan", "policy", "testing" } do
            local path = ("share/lua/5.4/mulligan/meta/%s.lua"):format(name)
            expected[#expected + 1] = path
            assert.is_true(folder:read("rocks/" .. path) == process.read(("lua/mulligan/meta/%s.lua"):format(name)))
        end
        assert.equal(table.concat(expected, "\n") .. "\n", found.out)
    end)

    it("gives a module that works in a plain Lua, where luarocks says that it is", function()
        folder:write("try.lua", [[
local mulligan, testing = require "mulligan", require "mulligan.testing"
print(package.searchpath("mulligan", package.cpath))
local policy <close> = assert(mulligan.load_text 'require("mulligan.policy").bus():default():retry(1, "1s")')
print(policy:decide({ error = { type = "E" } }, { no_jitter = true }).delay_ms)
local rig <close> = testing.rig { consumers = { C = { queue = "q", handler = print } } }
rig:publish("q", "x")
print(rig:counts().done)
]])
        local paths = luarocks { "path" }
        folder:write("paths.sh", paths.out)
        local tried = folder:run { "sh", "-c", '. ./paths.sh && exec lua5.4 try.lua' }
        assert.equal(0, tried.code, tried.err)
        local lines = {}
        for line in tried.out:gmatch("[^\n]+") do
            lines[#lines + 1] = line
        end
        assert.matches("/rocks/lib/lua/5.4/mulligan.so", lines[1], 1, true)
        assert.same({ "1000", "1" }, { lines[2], lines[4] })
    end)

    it("can be taken back", function()
        local removed = luarocks { "remove", "mulligan" }
        assert.equal(0, removed.code, removed.err)
        assert.is_nil(folder:read "rocks/lib/lua/5.4/mulligan.so")
    end)
end)
