-- proxy.lua: a TCP proxy between a program under test and its server, which does what networks do.
-- spec/support/proxy/main.c lists its commands.
--
--   local between = proxy.start(folder, server_port)
--   ... a client connects to between.port ...
--   between:tell("delay 100 down")
--   between:await("accepted", 2)
--
-- Each call returns when it is done. It ends with its folder.

local process = require "support.process"

local proxy = {}

local started = {}
started.__index = started

-- ask gives the line that answers a command.
function started:ask(command)
    self.commands:write(command, "\n")
    local answer = self.answers:read("l")
    if not answer then
        error(("the proxy has ended at '%s': %s"):format(command, self.job.err()), 3)
    end
    return answer
end

-- tell has it do something.
function started:tell(command)
    local answer = self:ask(command)
    if answer ~= "ok" then
        error(("the proxy answers '%s': %s"):format(command, answer), 2)
    end
end

-- await waits until `what` (see count) is at least a number; "open": until it is that number.
function started:await(what, number)
    self:tell(("await %s %d"):format(what, number))
end

-- count gives { accepted =, open =, up =, down =, held = }.
function started:count()
    local counts = {}
    for name, number in self:ask("count"):gmatch("(%a+) (%d+)") do
        counts[name] = tonumber(number)
    end
    return counts
end

-- stop ends it, and with it all that is connected by it.
function started:stop()
    self.commands:close()
    self.answers:close()
    self.job.finish()
end

-- start begins to listen on a free port of loopback, for a server on another. `folder` is one of
-- process.folder.
function proxy.start(folder, server_port)
    local base = folder:path("proxy" .. #folder.jobs + 1)
    assert(os.execute(("mkfifo %s.commands %s.answers"):format(base, base)))
    local self = setmetatable({}, started)
    self.job = folder:start({
        "sh", "-c", 'exec "$0" "$1" <"$2.commands" >"$2.answers"',
        process.build .. "/spec/proxy", server_port, base,
    })
    self.commands = assert(io.open(base .. ".commands", "w"))
    self.commands:setvbuf("line")
    self.answers = assert(io.open(base .. ".answers"))
    local line = self.answers:read("l")
    self.port = tonumber(line and line:match("^port (%d+)$"))
    if not self.port then
        error("the proxy doesn't start: " .. self.job.err(), 2)
    end
    return self
end

return proxy
