-- installed.lua: the build that is tested, installed into a folder and then moved to another, as
-- packages and people do. Programs are built against it as an embedder would.

local process = require "support.process"

local installed = {}

local methods = {}

-- sh runs a line of shell in the folder, which must end in 0, and gives what it printed. LIB is the
-- folder of the libraries.
function methods:sh(line)
    local env = { PKG_CONFIG_PATH = ("%s/%s/pkgconfig"):format(self.prefix, self.lib), LIB = "moved/" .. self.lib }
    local ended = self.folder:run({ "sh", "-c", line }, { env = env })
    if ended.code ~= 0 then
        error(("%s\nended in %d:\n%s%s"):format(line, ended.code, ended.out, ended.err), 2)
    end
    return ended.out
end

function methods:remove()
    self.folder:remove()
end

-- new installs; `files` are more files of the folder. It gives { folder =, prefix =, lib = }: `lib`
-- is seen from the prefix, "lib" or Debian's "lib/x86_64-linux-gnu".
function installed.new(files)
    local self = setmetatable({ folder = process.folder(files) }, { __index = methods })
    self.prefix = self.folder:path("moved")
    self.lib = process.read(process.build .. "/CMakeCache.txt"):match("\nCMAKE_INSTALL_LIBDIR:%u+=([^\n]*)")
    self:sh(("cmake --install '%s' --prefix first && mv first moved"):format(process.build))
    return self
end

return installed
