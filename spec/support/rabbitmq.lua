-- rabbitmq.lua: the real server, for specs: on free ports of 127.0.0.1, with its data in a temporary
-- folder, under a node name of its own.
--
--   local server = rabbitmq.start()     -- nil, why: it isn't installed
--   server.url                          -- "amqp://guest:guest@127.0.0.1:23456"
--   server:ctl { "add_vhost", "other" } -- as rabbitmqctl
--   server:kill()                       -- SIGKILL; :stop_gently() ends it as an administrator would
--   server:again()                      -- the same one, with the data that it left
--   server:remove()                     -- ends it, and removes all of it

local process = require "support.process"

local rabbitmq = { control = "/usr/lib/rabbitmq/bin/rabbitmqctl" }

local PROGRAM = "/usr/lib/rabbitmq/bin/rabbitmq-server"
local STARTED = "Server startup complete"

-- A quorum queue counts its messages for rabbitmqctl now and then; unless it is told, every five seconds.
local COUNT_OFTEN = "[{rabbit, [{quorum_tick_interval, 500}]}].\n"

local server = {}
server.__index = server

-- missing says why there can be no server here, or nobody who speaks to it; nil: there can.
function rabbitmq.missing()
    if not process.read(PROGRAM) then
        return "RabbitMQ isn't installed (package rabbitmq-server)"
    elseif not process.read(process.build .. "/modules/amqp.so") then
        return "librabbitmq isn't installed (package librabbitmq-dev), so there is no module amqp"
    end
    return nil
end

-- ---- Ports -------------------------------------------------------------------------------------

local given_out = {}

-- Ports that somebody listens at, or that are in use by a connection.
local function used_ports()
    local used = {}
    for _, name in ipairs { "/proc/net/tcp", "/proc/net/tcp6" } do
        for port in (process.read(name) or ""):gmatch("\n%s*%d+: %x+:(%x+)") do
            used[tonumber(port, 16)] = true
        end
    end
    return used
end

local seed = io.open("/dev/urandom", "rb")
local random_state = string.unpack("<I4", seed:read(4))
seed:close()

-- free_port gives one below those that the system gives out by itself.
function rabbitmq.free_port()
    local used = used_ports()
    while true do
        random_state = (random_state * 1103515245 + 12345) % (1 << 31)
        local port = 20000 + (random_state >> 8) % 12000
        if not used[port] and not given_out[port] then
            given_out[port] = true
            return port
        end
    end
end

-- ---- The server --------------------------------------------------------------------------------

local function config(self, given)
    local lines = {
        "listeners.tcp.1 = 127.0.0.1:" .. self.port,
        "log.file.level = info",
        "log.console = false",
        "disk_free_limit.absolute = 1MB",
    }
    if given.tls then
        self.tls_port = rabbitmq.free_port()
        lines[#lines + 1] = "listeners.ssl.1 = 127.0.0.1:" .. self.tls_port
        for name, value in pairs(given.tls) do
            lines[#lines + 1] = ("ssl_options.%s = %s"):format(name, value)
        end
    end
    lines[#lines + 1] = given.config
    return table.concat(lines, "\n") .. "\n"
end

-- start starts one and waits until it serves. given.config: more lines of rabbitmq.conf; given.tls:
-- its ssl_options, for a second port, server.tls_port; given.advanced: a file advanced.config; given.plugins: names of
-- plugins, with commas between them.
function rabbitmq.start(given)
    local why = rabbitmq.missing()
    if why then
        return nil, why
    end
    given = given or {}
    local self = setmetatable({ folder = process.folder(), port = rabbitmq.free_port(), starts = 0 }, server)
    self.epmd_port, self.dist_port = rabbitmq.free_port(), rabbitmq.free_port()
    self.url = "amqp://guest:guest@127.0.0.1:" .. self.port
    self.node = ("mulligan-%d@localhost"):format(self.port)
    self.folder:write("rabbitmq.conf", config(self, given))
    self.folder:write("enabled_plugins", ("[%s].\n"):format(given.plugins or ""))
    self.folder:write("advanced.config", given.advanced or COUNT_OFTEN)
    self.folder:write("env.conf", "")
    self.epmd = self.folder:start({ "epmd", "-port", self.epmd_port, "-address", "127.0.0.1" })
    self:again()
    return self
end

function server:environment()
    local root = self.folder.root
    return {
        HOME = root,
        RABBITMQ_NODENAME = self.node,
        RABBITMQ_DIST_PORT = self.dist_port,
        RABBITMQ_BASE = root,
        RABBITMQ_MNESIA_BASE = root .. "/data",
        RABBITMQ_LOG_BASE = root .. "/log",
        RABBITMQ_LOGS = root .. "/log/server.log",
        RABBITMQ_CONFIG_FILE = root .. "/rabbitmq.conf",
        RABBITMQ_ADVANCED_CONFIG_FILE = root .. "/advanced.config",
        RABBITMQ_ENABLED_PLUGINS_FILE = root .. "/enabled_plugins",
        RABBITMQ_CONF_ENV_FILE = root .. "/env.conf",
        RABBITMQ_GENERATED_CONFIG_DIR = root .. "/generated",
        RABBITMQ_PID_FILE = root .. "/server.pid",
        -- Else its script stays, as the parent of what is to be killed.
        RABBITMQ_ALLOW_INPUT = "1",
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS = "-noinput -kernel inet_dist_use_interface {127,0,0,1}",
        ERL_EPMD_PORT = self.epmd_port,
        ERL_EPMD_ADDRESS = "127.0.0.1",
    }
end

function server:log()
    return self.folder:read("log/server.log") or ""
end

-- again starts it, after it was ended.
function server:again()
    self.starts = self.starts + 1
    self.job = self.folder:start({ PROGRAM }, { env = self:environment() })
    process.await("RabbitMQ", function()
        local _, starts = self:log():gsub(STARTED, "")
        if starts >= self.starts then
            return true
        end
        assert(self.job.state(), "RabbitMQ ended: " .. self.job.err() .. self.job.out())
        return false
    end)
end

function server:kill()
    self.job.kill("KILL")
    self.job.wait()
end

function server:stop_gently()
    self.job.kill("TERM")
    self.job.wait()
end

-- stand_still stops it for a while without ending it; go_on wakes it.
function server:stand_still()
    self.job.kill("STOP")
end

function server:go_on()
    self.job.kill("CONT")
end

-- ctl runs rabbitmqctl, and gives what it writes.
function server:ctl(words)
    local done = self.folder:run({ rabbitmq.control, "-q", table.unpack(words) }, { env = self:environment() })
    assert(done.code == 0, done.err .. done.out)
    return done.out
end

-- depths gives how many messages each queue had when it counted them last, by its name.
function server:depths()
    local depths = {}
    for name, count in self:ctl({ "list_queues", "--no-table-headers", "name", "messages" }):gmatch "([^\n]+)\t(%d+)" do
        depths[name] = math.tointeger(count)
    end
    return depths
end

-- await_depths waits until each queue of `wanted` has as many messages as that says, and each other none.
function server:await_depths(wanted)
    process.await("the depths of the queues", function()
        local depths, other = self:depths(), {}
        for name, count in pairs(depths) do
            if count ~= (wanted[name] or 0) then
                other[#other + 1] = ("%s has %d"):format(name, count)
            end
        end
        for name in pairs(wanted) do
            if not depths[name] then
                other[#other + 1] = name .. " isn't there"
            end
        end
        return #other == 0, table.concat(other, ", ")
    end)
end

function server:remove()
    self.folder:remove()
end

return rabbitmq
