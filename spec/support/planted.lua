-- planted.lua: a copy of the tree, in the build folder, that bugs are planted into, one at a time, to
-- see whether a test finds them. The copy stays, so that the next run is short.
local assert = require "luassert"
local busted = require "busted"
local process = require "support.process"

local planted = {}
planted.__index = planted

local build = os.getenv("MULL_BUILD") or "build/dev"

function planted.output_of(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read("a")
    return output, pipe:close() == true
end

local function must(command)
    local output, good = planted.output_of(command)
    assert(good, command .. ":\n" .. output)
    return output
end

-- tree names a copy. `bugs` is the folder of its patches and of the CMakeLists.txt that it is built by;
-- `files` is what the copy has besides, as arguments of find.
function planted.tree(name, bugs, files)
    files = ("%s %s spec/support/planted.cmake"):format(files, bugs)
    return setmetatable({ folder = build .. "/" .. name, bugs = bugs, files = files }, planted)
end

local function files_below(self, path)
    local found = {}
    for file in must(("cd %s && find %s -type f"):format(path, self.files)):gmatch("[^\n]+") do
        found[file] = true
    end
    return found
end

-- sync makes the copy what the tree is. Only what differs is written, and so built again.
local function sync(self)
    local copy = self.folder .. "/tree/"
    local wanted = files_below(self, ".")
    for file in must(("mkdir -p %s && cd %s && find . -type f"):format(copy, copy)):gmatch("%./([^\n]+)") do
        if not wanted[file] then
            os.remove(copy .. file)
        end
    end
    for file in pairs(wanted) do
        local bytes = process.read(file)
        if process.read(copy .. file) ~= bytes then
            must("mkdir -p " .. (copy .. file):match("^(.*)/"))
            process.write(copy .. file, bytes)
        end
    end
end

local function compile(self)
    must(("timeout 300 cmake --build %s/build -j 2"):format(self.folder))
end

-- plant plants a patch. git would look for the patched files in the repository around the copy.
local function plant(self, patch)
    must(("cd %s/tree && GIT_CEILING_DIRECTORIES=$(dirname $PWD) git apply -C1 --whitespace=nowarn %s/%s"):format(
        self.folder, self.bugs, patch))
end

-- patches gives a list of names and titles.
local function patches(self)
    local found = {}
    for name in must("ls " .. self.bugs):gmatch("([%w-]+%.patch)\n") do
        found[#found + 1] = { name = name, title = process.read(self.bugs .. "/" .. name):match("^[^\n]+") }
    end
    return found
end

-- prepare is called in a `describe`. It tests that `look` finds nothing where there is nothing, and gives
-- the patches; `look` answers what the program says, and whether it found nothing.
function planted:prepare(look)
    if not build:find("/dev$") then
        busted.pending("is looked at in the run without sanitizers")
        return {}
    end
    busted.setup(function()
        sync(self)
        must(("cmake -G Ninja -S %s/tree/%s -B %s/build"):format(self.folder, self.bugs, self.folder))
    end)
    busted.after_each(function()
        sync(self)
    end)
    busted.it("finds nothing where there is nothing", function()
        compile(self)
        local output, good = look()
        assert.is_true(good, output)
    end)
    return patches(self)
end

-- output_with plants a patch, and gives what `look` answers then, which must have found something.
function planted:output_with(patch, look)
    plant(self, patch.name)
    compile(self)
    local output, good = look()
    assert.is_false(good, "nothing found:\n" .. output)
    return output
end

-- finds_by_seed has each bug found by the simulator of that name, among so many seeds. It says at which: that one
-- alone goes wrong in the same way.
function planted:finds_by_seed(simulator, seeds)
    local function simulate(words)
        return planted.output_of(("timeout 300 %s/build/%s %s"):format(self.folder, simulator, words))
    end
    local function simulate_all()
        return simulate("--seeds 1-" .. seeds)
    end
    for _, patch in ipairs(self:prepare(simulate_all)) do
        busted.it("finds that " .. patch.title, function()
            local output = self:output_with(patch, simulate_all)
            local seed = output:match("\nseed (%d+), step %d+, at %d+ ms: ")
            assert.is_truthy(seed, output)
            local again = simulate("--seed " .. seed)
            assert.equal(output:match("\nseed .*$"), again:match("\nseed .*$"))
        end)
    end
end

return planted
