-- The examples, as they are installed, are built against an installed mulligan, and work, in each of
-- the ways there are: by CMake, and by the commands in their heads, which ask pkg-config; each shared
-- and static. What they print is the matter of spec/examples.
local examples = require "support.examples"
local installed = require "support.installed"
local process = require "support.process"

local SOURCES = { "decide.c", "decide.cpp", "run.c", "threads.c", "own_loop.c", "own_transport.c" }

describe("the examples against an installed mulligan", function()
    local place

    setup(function()
        place = installed.new()
        place:sh("cp -R moved/share/doc/mulligan/examples .")
        local policy = process.read("README.md"):match("\n```lua\n(.-)\n```")
        place.folder:write("examples/policy.lua", policy)
    end)

    teardown(function()
        place:remove()
    end)

    -- The program that the command in the head of an example makes, and the command without running it.
    local function built_by(source)
        local command = examples.command(place.folder:read("examples/" .. source)):gsub("\\\n", " ")
        local compile, program = command:match("^(.*%-o (%g+)) && %./")
        return compile, assert(program, command)
    end

    -- works runs a program in the folder of examples, and says whether it is linked to the shared library.
    local function works(program, linked)
        local run = ("cd examples && timeout 60 %s"):format(program)
        assert.not_equal("", place:sh("export LD_LIBRARY_PATH=$PWD/$LIB; " .. run))
        local libraries = place:sh("LD_LIBRARY_PATH=$PWD/$LIB ldd " .. program:gsub("^%./", "examples/"))
        local soname = ("%s/%s/libmulligan.so.0"):format(place.prefix, place.lib)
        assert.equal(linked == "shared", libraries:find(soname, 1, true) ~= nil, libraries)
        assert.equal(linked == "shared", libraries:find("libmulligan", 1, true) ~= nil, libraries)
    end

    it("are all of them", function()
        local sources = table.move(SOURCES, 1, #SOURCES, 1, {})
        table.sort(sources)
        assert.equal(table.concat(sources, "\n") .. "\n", place:sh("cd examples && LC_ALL=C ls *.c *.cpp"))
    end)

    for _, linked in ipairs { "shared", "static" } do
        it("are built by CMake, " .. linked, function()
            local static = linked == "static" and "ON" or "OFF"
            place:sh(("cmake -S examples -B %s -G Ninja -DCMAKE_PREFIX_PATH=$PWD/moved -DMULL_EXAMPLES_STATIC=%s"
                .. " && cmake --build %s"):format(linked, static, linked))
            for _, source in ipairs(SOURCES) do
                local _, program = built_by(source)
                works(("%s/%s"):format(place.folder:path(linked), program), linked)
            end
        end)

        it("are built by pkg-config, " .. linked, function()
            for _, source in ipairs(SOURCES) do
                local compile, program = built_by(source)
                if linked == "static" then
                    compile = compile:gsub("%$%(pkg%-config (.-)%)",
                        "$(pkg-config --static %1 | sed s/-lmulligan/-l:libmulligan.a/)")
                end
                place:sh("cd examples && " .. compile)
                works("./" .. program, linked)
            end
        end)
    end
end)
