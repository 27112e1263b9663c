-- A small tree in a folder of its own, for the specs of tools/.
local sample = {}

-- Writes { path = text, … } below a new folder; gives the folder.
function sample.write(files)
    local root = os.tmpname()
    os.remove(root)
    for path, text in pairs(files) do
        assert(os.execute(("mkdir -p '%s/%s'"):format(root, path:match("^(.*)/"))))
        local file = assert(io.open(root .. "/" .. path, "w"))
        file:write(text)
        file:close()
    end
    return root
end

-- Runs a tool on such a tree, which is gone afterwards; gives whether it passed, and its output.
function sample.run(tool, files)
    local root = sample.write(files)
    local pipe = assert(io.popen(("lua5.4 tools/%s.lua '%s' 2>&1"):format(tool, root)))
    local output = pipe:read("a")
    local passed = pipe:close()
    assert(os.execute(("rm -r '%s'"):format(root)))
    return passed == true, output
end

return sample
