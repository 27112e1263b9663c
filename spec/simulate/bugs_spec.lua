-- Each bug of bugs/*.patch, planted into a copy of the tree, is found within 1,000 seeds: so the
-- simulator sees what it should see. Built with AddressSanitizer; in the run without sanitizers
-- only, since it brings its own. The copy stays in the build folder, so that the next run is short.
local process = require "support.process"

local build = os.getenv("MULL_BUILD") or "build/dev"
local folder = build .. "/bugs"

local function output_of(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read("a")
    return output, pipe:close() == true
end

local function must(command)
    local output, good = output_of(command)
    assert(good, command .. ":\n" .. output)
    return output
end

local function files_below(path)
    local files = {}
    local all = must("cd " .. path .. " && find include src spec/simulate spec/unit -type f")
    for file in all:gmatch("[^\n]+") do
        if not file:find("^spec/unit/") or file == "spec/unit/plain.h" then
            files[file] = true
        end
    end
    return files
end

-- Makes the copy what the tree is. Only what differs is written, and so built again.
local function copy_tree()
    must(("mkdir -p %s && cd %s && mkdir -p tree/include tree/src tree/spec/simulate tree/spec/unit"):format(folder,
        folder))
    local wanted = files_below(".")
    for file in pairs(files_below(folder .. "/tree")) do
        if not wanted[file] then
            os.remove(folder .. "/tree/" .. file)
        end
    end
    for file in pairs(wanted) do
        local bytes, path = process.read(file), folder .. "/tree/" .. file
        if process.read(path) ~= bytes then
            must("mkdir -p " .. path:match("^(.*)/"))
            process.write(path, bytes)
        end
    end
end

-- git would look for the patched files in the repository around the copy.
local function plant(patch)
    local apply = "git apply -C1 --whitespace=nowarn spec/simulate/bugs/" .. patch
    must(("cd %s/tree && GIT_CEILING_DIRECTORIES=$(dirname $PWD) %s"):format(folder, apply))
end

local function compile()
    must(("timeout 300 cmake --build %s/build -j 2"):format(folder))
end

local function simulate(words)
    return output_of(("timeout 300 %s/build/simulate %s"):format(folder, words or ""))
end

local function patches()
    local found = {}
    for name in must("ls spec/simulate/bugs"):gmatch("([%w-]+%.patch)\n") do
        found[#found + 1] = name
    end
    return found
end

describe("the simulator, as it was planted", function()
    if not build:find("/dev$") then
        pending("is looked at in the run without sanitizers")
        return
    end

    setup(function()
        copy_tree()
        must(("cmake -G Ninja -S %s/tree/spec/simulate/bugs -B %s/build"):format(folder, folder))
    end)

    after_each(copy_tree)

    it("finds nothing where there is nothing", function()
        compile()
        local output, good = simulate()
        assert.is_true(good, output)
    end)

    for _, patch in ipairs(patches()) do
        local title = process.read("spec/simulate/bugs/" .. patch):match("^[^\n]+")
        it("finds that " .. title, function()
            plant(patch)
            compile()
            local output, good = simulate()
            assert.is_false(good, "1,000 seeds, and nothing found")
            local seed = output:match("\nseed (%d+), step %d+, at %d+ ms: ")
            assert.is_truthy(seed, output)
            -- The same seed alone goes wrong in the same way.
            local again = simulate("--seed " .. seed)
            assert.equal(output:match("\nseed .*$"), again:match("\nseed .*$"))
        end)
    end
end)
