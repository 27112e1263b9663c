-- planted.lua: a copy of the tree, in the build folder, that bugs are planted into, one at a time, to
-- see whether a test finds them. The copy stays, so that the next run is short.
local process = require "support.process"

local planted = {}
planted.__index = planted

planted.build = os.getenv("MULL_BUILD") or "build/dev"

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
-- `files` is what the copy has, as arguments of find.
function planted.tree(name, bugs, files)
    return setmetatable({ folder = planted.build .. "/" .. name, bugs = bugs, files = files }, planted)
end

local function files_below(self, path)
    local found = {}
    for file in must(("cd %s && find %s -type f"):format(path, self.files)):gmatch("[^\n]+") do
        found[file] = true
    end
    return found
end

-- Makes the copy what the tree is. Only what differs is written, and so built again.
function planted:sync()
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

function planted:configure()
    self:sync()
    must(("cmake -G Ninja -S %s/tree/%s -B %s/build"):format(self.folder, self.bugs, self.folder))
end

function planted:compile()
    must(("timeout 300 cmake --build %s/build -j 2"):format(self.folder))
end

-- plant plants a patch. git would look for the patched files in the repository around the copy.
function planted:plant(patch)
    must(("cd %s/tree && GIT_CEILING_DIRECTORIES=$(dirname $PWD) git apply -C1 --whitespace=nowarn %s/%s"):format(
        self.folder, self.bugs, patch))
end

-- patches gives a list of names and titles.
function planted:patches()
    local found = {}
    for name in must("ls " .. self.bugs):gmatch("([%w-]+%.patch)\n") do
        found[#found + 1] = { name = name, title = process.read(self.bugs .. "/" .. name):match("^[^\n]+") }
    end
    return found
end

return planted
