-- init.lua: require "mulligan"; docs/lua-module.md is its manual. What is C is in mulligan.core;
-- here options are checked, so that C gets what it knows.

local core = require "mulligan.core"
local handlers = require "mulligan.handlers"
local json = require "mulligan.json"
local options = require "mulligan.options"
local outcome = require "mulligan.outcome"
local report = require "mulligan.check.report"
local text = require "mulligan.policy.text"

local mulligan = {
    version = core.version,
    json = json,
    error = core.error,
    sleep = core.sleep,
    send = core.send,
    run = handlers.run,
    fetch = handlers.fetch,
}

-- ---- Deciding ----------------------------------------------------------------------------------

local load_options = { log = "callback", event = "callback", host_policy = "path", host_text = "text" }
local load_text_options = { name = "name" }
for option, kind in pairs(load_options) do
    load_text_options[option] = kind
end

function mulligan.load(path, given)
    if type(path) ~= "string" or path:find("\0", 1, true) then
        error("mulligan.load: the path must be a string without a NUL, not " .. text.show(path), 2)
    end
    local read = options.demand("mulligan.load", given or {}, load_options, 2)
    return core.load(path, nil, nil, read.log, read.event, read.host_policy, read.host_text)
end

function mulligan.load_text(source, given)
    if type(source) ~= "string" then
        error("mulligan.load_text: the text must be a string, not " .. text.show(source), 2)
    end
    local read = options.demand("mulligan.load_text", given or {}, load_text_options, 2)
    return core.load(nil, source, read.name, read.log, read.event, read.host_policy, read.host_text)
end

-- What stands in front of a function in C calls that, never what the methods have by now: this file
-- may be loaded again in the same state.
local methods, policy = core.policy_methods, core.policy_functions

local decide_options = { seed = "seed", no_jitter = "flag" }

-- failure_and_options checks what `name` is given, for the line that called that: a failure of a
-- type, "table" or "string".
local function failure_and_options(name, kind, failure, given)
    if type(failure) ~= kind then
        error(("%s: the failure must be a %s, not %s"):format(name, kind, text.show(failure)), 3)
    elseif given ~= nil then
        given = options.demand(name, given, decide_options, 3)
    end
    return failure, given
end

function methods:decide(failure, given)
    return outcome.of("decide",
        pcall(policy.decide, self, failure_and_options("policy:decide", "table", failure, given)))
end

function methods:decide_json(failure, given)
    return outcome.of("decide_json",
        pcall(policy.decide_json, self, failure_and_options("policy:decide_json", "string", failure, given)))
end

-- ---- Looking -----------------------------------------------------------------------------------

function methods:explain(failure, given)
    return outcome.of("explain",
        pcall(policy.explain, self, failure_and_options("policy:explain", "table", failure, given)))
end

function methods:table(given)
    local read = options.demand("policy:table", given or {}, { consumer = "name", transport = "name" }, 2)
    local well, of, view = pcall(policy.table, self, read.consumer, read.transport)
    if well then
        local _ <close> = view
        for _, key in ipairs { "rules", "cause_rules" } do
            local list = {}
            for number = 1, of[key]() do
                list[number] = of[key](number)
            end
            of[key] = json.list(list)
        end
    end
    return outcome.of("table", well, of)
end

function methods:check(given)
    local read = options.demand("policy:check", given or {}, { consumers = "consumers", transports = "names" }, 2)
    return outcome.of("check", pcall(report.of, self, read.consumers, read.transports))
end

-- ---- Running -----------------------------------------------------------------------------------

function mulligan.engine(given)
    local read = options.demand("mulligan.engine", given, {
        policy = "policy!",
        grace = "span",
        quiet = "span",
        log = "callback",
        event = "callback",
        stop_on_signals = "flag",
        reload_on_sighup = "flag",
        reload_on_change = "flag",
        patterns = "patterns",
        seed = "seed",
        clock = "clock",
    }, 2)
    read.count_patterns = read.patterns == "counted"
    for _, span in ipairs { "grace_ms", "quiet_ms" } do
        read[span] = read[span] == 0 and 1 or read[span] -- to C, 0 is the default
    end
    return outcome.of("engine", pcall(core.engine, read))
end

local engine_methods, engine = core.engine_methods, core.engine_functions

function engine_methods:consumer(name, given)
    local read = options.demand("engine:consumer", given, options.consumer, 2)
    local why = handlers.why_not(read.handler)
    if why then
        return nil, why, "invalid", { { text = why } }
    end
    return outcome.of("consumer", pcall(function()
        read.workers = handlers.pool_of(self, read.handler)
        return engine.consumer(self, name, read)
    end))
end

function engine_methods:after(delay, callback)
    local read = options.demand("engine:after", { delay = delay, callback = callback }, {
        delay = "span!",
        callback = "callback!",
    }, 2)
    return outcome.of("after", pcall(engine.after, self, read.delay_ms, read.callback))
end

function engine_methods:fault(transport, operation, given)
    local allowed = { skip = "seed", times = "count", code = "name" }
    local read = options.demand("engine:fault", given or {}, allowed, 2)
    read.times = read.times or 1
    return outcome.of("fault", pcall(engine.fault, self, transport, operation, read))
end

function mulligan.exec(given)
    local handler, wrong = handlers.exec(given)
    return handler or error("mulligan.exec " .. wrong, 2)
end

function mulligan.http(given)
    local handler, wrong = handlers.http(given)
    return handler or error("mulligan.http: the URL " .. wrong, 2)
end

function mulligan.worker(given)
    local handler, wrong = handlers.worker(given)
    return handler or error("mulligan.worker " .. wrong, 2)
end

-- ---- The words of a service.lua ---------------------------------------------------------------

-- lua/mulligan/config.lua puts working ones in their place while it loads such a file.
for word, why in pairs {
    policy = "belongs in a service.lua, while `mulligan run` loads it",
    transport = "belongs in a service.lua, while `mulligan run` loads it",
    consumer = "belongs in a service.lua, while `mulligan run` loads it",
    patterns = "belongs in a service.lua, while `mulligan run` loads it",
    on = "is not in this version yet",
} do
    mulligan[word] = function()
        error(("mulligan.%s %s"):format(word, why), 2)
    end
end

return mulligan
