-- installed.lua: the build that is tested, installed into a folder and then moved to another, as
-- packages and people do. Programs are built against it as an embedder would.

local process = require "support.process"

local installed = {}

local methods = {}

-- sh runs a line of shell in the folder, which must end in 0, and gives what it printed.
function methods:sh(line)
    local ended = self.folder:run({ "sh", "-c", line }, { env = { PKG_CONFIG_PATH = self.prefix .. "/lib/pkgconfig" } })
    if ended.code ~= 0 then
        error(("%s\nended in %d:\n%s%s"):format(line, ended.code, ended.out, ended.err), 2)
    end
    return ended.out
end

function methods:remove()
    self.folder:remove()
end

-- new installs; `files` are more files of the folder. It gives { folder =, prefix = }.
function installed.new(files)
    local self = setmetatable({ folder = process.folder(files) }, { __index = methods })
    self.prefix = self.folder:path("moved")
    self:sh(("cmake --install '%s' --prefix first && mv first moved"):format(process.build))
    return self
end

return installed
