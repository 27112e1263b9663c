-- files.lua: the files of a policy: its first one, and those beside it that `require` runs, each
-- once.

local offers = require "mulligan.sandbox.offers"
local text = require "mulligan.policy.text"
local values = require "mulligan.sandbox.values"

local files = {}
files.__index = files

-- new: `policy` and `load` are what policy.lua gave, `environment` the globals of the files.
function files.new(policy, load, environment)
    return setmetatable({ policy = policy, load = load, environment = environment, loaded = {}, running = {} }, files)
end

-- Lua's message, "file:line: what", goes to the mistakes in its parts.
function files:note_syntax(file, message)
    local line, what = message:match(":(%d+): (.*)$")
    if message:find("binary chunk", 1, true) then
        line, what = 1, "this is bytecode; a policy is text"
    elseif message:find("C stack overflow", 1, true) then
        what = "brackets or blocks are nested too deeply; Lua reads less than 200 levels"
    end
    self.load.problem(file, tonumber(line) or 0, what or message)
end

function files:run(file, ...)
    local chunk, message = offers.compile(file, self.environment)
    if not chunk then
        self:note_syntax(file, message)
        return self.load.lost
    end
    local result = chunk(...)
    return result == nil and true or result
end

function files:run_main()
    local is_there, why = offers.read(offers.main)
    if is_there then
        self:run(offers.main)
    else
        self.load.problem(offers.main, 0, why)
    end
end

-- The file that a module's name means, or nil: letters, digits, _ and - between single points, so no
-- name leads out of the policy's folder.
local function file_of(name)
    for part in (name .. "."):gmatch("([^.]*)%.") do
        if not part:find("^[%w_-]+$") then
            return nil
        end
    end
    return (name:gsub("%.", "/")) .. ".lua"
end

-- objection says what is wrong with a name that leads to no file to be run; nil: nothing.
function files:objection(name, file)
    if name:find("^mulligan%.preset") then
        return "a preset needs none: policy.preset.mocha(policy.bus())"
    elseif name == "mulligan" then
        return 'a policy has "mulligan.policy"; this looks like a service.lua, whose policy is what m.policy names'
    elseif name:find("^mulligan%.") then
        return 'a policy has "mulligan.policy" of these, and the files beside it'
    elseif offers.is_host then
        return "a host policy is one file; say here what the other one says"
    elseif not file then
        return '"a.b" means the file a/b.lua beside the policy, and no other way leads to a file'
    elseif file == offers.main or self.loaded[file] == self.running then
        return "this file is being run already; files can't require each other in a circle"
    end
end

-- When a file's run is over, in whatever way, it isn't running any more.
local run = {
    __close = function(self)
        if self.all.loaded[self.file] == self.all.running then
            self.all.loaded[self.file] = nil
        end
    end,
}

function files:require(name)
    local file = file_of(name)
    local why = self:objection(name, file)
    if not why and self.loaded[file] ~= nil then
        return self.loaded[file]
    end
    local is_there
    if not why then
        is_there, why = offers.read(file)
    end
    if not is_there then
        return self.load.wrong(("require(%s): %s"):format(text.show(name), why))
    end
    self.loaded[file] = self.running
    local _ <close> = setmetatable({ all = self, file = file }, run)
    self.loaded[file] = self:run(file, name, file)
    return self.loaded[file]
end

-- close: from now on no file is run.
function files:close()
    self.closed = true
end

-- word gives `require` for the files.
function files:word()
    return function(name)
        if type(name) ~= "string" then
            values.bad_argument(1, "require", "string", name)
        elseif name == "mulligan.policy" then
            return self.policy
        elseif self.closed then
            error(("require(%s) must run while the policy is loaded"):format(text.show(name)), 2)
        end
        return (self:require(name))
    end
end

return files
