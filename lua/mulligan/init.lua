-- init.lua: require "mulligan"; docs/lua-module.md is its manual. What is C is in mulligan.core;
-- here options are checked, so that C gets what it knows.

local core = require "mulligan.core"
local options = require "mulligan.options"
local report = require "mulligan.check.report"
local text = require "mulligan.policy.text"

local mulligan = {
    version = core.version,
    json = core.json,
    error = core.error,
    sleep = core.sleep,
    send = core.send,
}

-- ---- Deciding ----------------------------------------------------------------------------------

function mulligan.load(path, given)
    if type(path) ~= "string" then
        error("mulligan.load: the path must be a string", 2)
    end
    local read = options.demand("mulligan.load", given or {}, { log = "callback", event = "callback" }, 2)
    return core.load(path, nil, nil, read.log, read.event)
end

function mulligan.load_text(source, given)
    if type(source) ~= "string" then
        error("mulligan.load_text: the text must be a string", 2)
    end
    local allowed = { log = "callback", event = "callback", name = "name" }
    local read = options.demand("mulligan.load_text", given or {}, allowed, 2)
    return core.load(nil, source, read.name, read.log, read.event)
end

-- C blames misuse on the line that called it, which would be one of these; `outcome` gives what C
-- gave, or blames the line that called the function `name`, which must end in it.
local function outcome(name, well, ...)
    if not well then
        local message = tostring((...)):gsub("'%?'", "'" .. name .. "'", 1)
        error(message, 2)
    end
    return ...
end

local decide, explain, table_of = core.policy_methods.decide, core.policy_methods.explain, core.policy_methods.table

-- failure_and_options checks what `name` is given, for the line that called that.
local function failure_and_options(name, failure, given)
    if type(failure) ~= "table" then
        error(name .. ": the failure must be a table, not " .. text.show(failure), 3)
    elseif given ~= nil then
        given = options.demand(name, given, { seed = "seed", no_jitter = "flag" }, 3)
    end
    return failure, given
end

function core.policy_methods:decide(failure, given)
    return outcome("decide", pcall(decide, self, failure_and_options("policy:decide", failure, given)))
end

-- ---- Looking -----------------------------------------------------------------------------------

function core.policy_methods:explain(failure, given)
    return outcome("explain", pcall(explain, self, failure_and_options("policy:explain", failure, given)))
end

function core.policy_methods:table(given)
    local read = options.demand("policy:table", given or {}, { consumer = "name", transport = "name" }, 2)
    return outcome("table", pcall(table_of, self, read.consumer, read.transport))
end

-- check takes consumers as engine:consumer does, but for a name and the URL of the transport.
function core.policy_methods:check(given)
    local read = given or {}
    if type(read) ~= "table" then
        error("policy:check: options must be a table, not " .. text.show(given), 2)
    end
    for name in pairs(read) do
        if name ~= "consumers" and name ~= "transports" then
            error(("policy:check: unknown option %s; there are consumers and transports"):format(text.show(name)), 2)
        end
    end
    return report.of(self, read, 2)
end

-- ---- Running -----------------------------------------------------------------------------------

function mulligan.engine(given)
    local read = options.demand("mulligan.engine", given, {
        policy = "policy!",
        grace = "span",
        log = "callback",
        event = "callback",
        stop_on_signals = "flag",
        reload_on_sighup = "flag",
        reload_on_change = "flag",
        seed = "seed",
        clock = "clock",
    }, 2)
    if read.grace_ms == 0 then
        read.grace_ms = 1 -- to C, 0 is the default
    end
    return outcome("engine", pcall(core.engine, read))
end

local consumer, fault, after = core.engine_methods.consumer, core.engine_methods.fault, core.engine_methods.after

function core.engine_methods:consumer(name, given)
    local read = options.demand("engine:consumer", given, options.consumer, 2)
    return outcome("consumer", pcall(consumer, self, name, read))
end

function core.engine_methods:after(delay, callback)
    local read = options.demand("engine:after", { delay = delay, callback = callback }, {
        delay = "span!",
        callback = "callback!",
    }, 2)
    return outcome("after", pcall(after, self, read.delay_ms, read.callback))
end

function core.engine_methods:fault(transport, operation, given)
    local allowed = { skip = "seed", times = "count", code = "name" }
    local read = options.demand("engine:fault", given or {}, allowed, 2)
    read.times = read.times or 1
    return outcome("fault", pcall(fault, self, transport, operation, read))
end

-- ---- The words of a mulligan.lua ---------------------------------------------------------------

-- lua/mulligan/config.lua puts working ones in their place while it loads such a file.
for word, why in pairs {
    policy = "belongs in a mulligan.lua, while `mulligan run` loads it",
    transport = "belongs in a mulligan.lua, while `mulligan run` loads it",
    consumer = "belongs in a mulligan.lua, while `mulligan run` loads it",
    exec = "is not in this version yet",
    http = "is not in this version yet",
    on = "is not in this version yet",
} do
    mulligan[word] = function()
        error(("mulligan.%s %s"):format(word, why), 2)
    end
end

return mulligan
