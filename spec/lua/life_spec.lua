-- How policies, engines and rigs end: by close, at the end of a block, and by the collector; and what
-- they show of themselves. spec/unit/lua/ends.c has what the end of a Lua state leaves.
local blamed = require "support.blamed"
local mulligan = require "mulligan"
local core = require "mulligan.core"
local process = require "support.process"
local testing = require "mulligan.testing"

local RETRY = 'require("mulligan.policy").bus():default():retry()'
local FAILURE = { error = { type = "E" } }

local function new_policy(options)
    return assert(mulligan.load_text(RETRY, options))
end

local function new_engine(policy, clock)
    return assert(mulligan.engine { policy = policy, clock = clock or testing.clock() })
end

describe("the end of a block", function()
    it("closes a policy", function()
        local kept
        do
            local policy <close> = new_policy()
            kept = policy
            assert.is_false(policy:closed())
        end
        assert.is_true(kept:closed())
    end)

    it("closes an engine before its policy", function()
        local kept_policy, kept_engine
        do
            local policy <close> = new_policy()
            local engine <close> = new_engine(policy)
            kept_policy, kept_engine = policy, engine
        end
        assert.same({ true, true }, { kept_engine:closed(), kept_policy:closed() })
    end)

    it("may come after a close", function()
        local policy <close> = new_policy()
        local engine <close> = new_engine(policy)
        engine:close()
        policy:close()
    end)

    it("doesn't close a policy under an engine, and says so", function()
        local engine
        assert.error_matches(function()
            local policy <close> = new_policy()
            engine = new_engine(policy)
        end, "an engine uses this policy; close that first", 1, true)
        engine:close()
    end)

    it("lets an error pass that is on its way, be the policy in use", function()
        local engine, kept
        assert.has_error(function()
            local policy <close> = new_policy()
            kept, engine = policy, new_engine(policy)
            error("the real one", 0)
        end, "the real one")
        assert.is_false(kept:closed())
        assert.equal("retry", kept:decide(FAILURE).action)
        engine:close()
        kept:close()
    end)

    it("lets an error pass out of the policy's own event function", function()
        local policy, raised
        policy = assert(mulligan.load_text([[
            require("mulligan.policy").bus():on("E", function() error("oops") end):retry()]], {
            event = function()
                raised = select(2, pcall(function()
                    local again <close> = policy
                    error(again and "the real one", 0)
                end))
            end,
        }))
        policy:decide(FAILURE)
        assert.equal("the real one", raised)
        assert.is_false(policy:closed())
        policy:close()
    end)

    it("closes a rig, and its policy", function()
        local kept
        do
            local rig <close> = testing.rig { policy = RETRY }
            kept = rig
        end
        assert.is_true(kept.engine:closed())
        assert.is_true(kept.own_policy:closed())
    end)
end)

describe("once it is closed", function()
    local rig, policy, engine

    setup(function()
        rig = testing.rig { policy = RETRY }
        policy, engine = rig.own_policy, rig.engine
        rig:close()
    end)

    -- What the methods take that look at that first.
    local arguments = {
        decide = { FAILURE }, explain = { FAILURE }, decide_json = { '{"error": {"type": "E"}}' },
        after = { "1s", print }, consumer = { "C", { transport = "orders", queue = "q", handler = print } },
    }
    local goes_on = { close = true, closed = true, stopped = true }

    for called, methods in pairs { policy = core.policy_methods, engine = core.engine_methods } do
        for name, method in pairs(methods) do
            if not goes_on[name] then
                it(("a policy or an engine says so: %s:%s"):format(called, name), function()
                    blamed(("the %s is closed"):format(called), function()
                        local _ = method(called == "policy" and policy or engine, table.unpack(arguments[name] or {}))
                    end)
                end)
            end
        end
    end

    for _, name in ipairs { "publish", "depth", "fault", "counts", "stop", "run_until_empty" } do
        it("a rig says so: rig:" .. name, function()
            blamed("the engine is closed", function()
                local _ = rig[name](rig, "q", name == "publish" and "x" or nil)
            end)
        end)
    end

    it("a policy is still an argument that engines refuse", function()
        blamed("the policy is closed", function()
            local _ = mulligan.engine { policy = policy }
        end)
    end)
end)

describe("a rig", function()
    it("may be closed by its own handler", function()
        local rig, well
        rig = testing.rig {
            consumers = { C = { queue = "q", handler = function()
                well = pcall(rig.close, rig)
            end } },
        }
        assert(rig:publish("q", "x"))
        assert.same({ true, true }, { well, rig.engine:closed() })
        rig:close()
        assert.is_true(rig.own_policy:closed())
    end)
end)

describe("one policy", function()
    it("serves several engines, until the last is closed", function()
        local clock, policy = testing.clock(), new_policy()
        local engines, ended = {}, {}
        for number = 1, 3 do
            local engine = new_engine(policy, clock)
            assert(engine:transport("t", "memory:"))
            assert(engine:consumer("C", { transport = "t", queue = "q", handler = function()
                error("no")
            end }))
            assert(engine:start())
            assert(engine:publish("t", "q", "x"))
            engines[number] = engine
        end
        clock:advance("1m")
        for number, engine in ipairs(engines) do
            ended[number] = engine:counts().dead_lettered
            assert.has_error(function()
                policy:close()
            end)
            engine:close()
            assert.equal("retry", policy:decide(FAILURE).action)
        end
        assert.same({ 1, 1, 1 }, ended)
        policy:close()
    end)

    it("is reloaded for all of them at once, and refused by any", function()
        local clock, policy = testing.clock(), new_policy()
        local first, second = new_engine(policy, clock), new_engine(policy, clock)
        for _, engine in ipairs { first, second } do
            assert(engine:transport("t", "memory:"))
        end
        assert(second:consumer("Dead", { transport = "t", queue = "error", handler = print }))
        assert(first:start())
        policy:reload('require("mulligan.policy").consumer("Dead"):dead_letter_queue("other")\n' .. RETRY)
        assert(second:start())
        local before = policy:generation()
        local reloaded, _, code = policy:reload(RETRY .. "--")
        assert.same({ nil, "refused", before }, { reloaded, code, policy:generation() })
        second:close()
        assert.is_true(policy:reload(RETRY .. "--"))
        first:close()
        policy:close()
    end)
end)

describe("tostring", function()
    it("says what a policy has, and that it is closed", function()
        local policy = new_policy()
        assert.equal("mulligan.policy: 1 rule, generation " .. policy:generation(), tostring(policy))
        assert(policy:reload(RETRY .. '\nrequire("mulligan.policy").bus():on("A"):discard()'))
        assert.equal("mulligan.policy: 2 rules, generation " .. policy:generation(), tostring(policy))
        policy:close()
        assert.equal("mulligan.policy: closed", tostring(policy))
    end)

    it("says what an engine does", function()
        local policy = new_policy()
        local engine = new_engine(policy)
        local seen = { tostring(engine) }
        assert(engine:transport("t", "memory:"))
        for _, step in ipairs { "start", "stop", "turn", "close" } do
            engine[step](engine)
            seen[#seen + 1] = tostring(engine)
        end
        assert.same({
            "mulligan.engine: not started",
            "mulligan.engine: running",
            "mulligan.engine: running",
            "mulligan.engine: stopped",
            "mulligan.engine: closed",
        }, seen)
        policy:close()
    end)

    it("says what time it is on a clock", function()
        local clock = testing.clock(0)
        clock:advance("1m30s")
        clock:step("1d")
        assert.equal("mulligan.clock: 90000 ms, 1970-01-02T00:01:30.000Z", tostring(clock))
    end)
end)

describe("coroutines", function()
    it("may decide, publish and load, each in its own", function()
        local policy, seen = nil, {}
        local load = coroutine.wrap(function()
            policy = new_policy { event = function(event)
                seen[#seen + 1] = event.name
            end }
            coroutine.yield()
            assert(policy:reload(RETRY .. "--"))
        end)
        load()
        local decide = coroutine.wrap(function()
            for _ = 1, 2 do
                coroutine.yield(policy:decide(FAILURE).action)
            end
        end)
        assert.equal("retry", decide())
        load()
        collectgarbage()
        assert.equal("retry", decide())
        assert.same({ "policy_loaded" }, seen)
        policy:close()
    end)

    it("can't yield out of a callback, which is logged", function()
        local lines = {}
        local policy = new_policy { log = function(level, text)
            lines[#lines + 1] = level .. ": " .. text
        end, event = coroutine.yield }
        assert.is_true(coroutine.wrap(function()
            return policy:reload(RETRY .. "--")
        end)())
        assert.equal(1, #lines)
        assert.matches("^error: the event function raised: attempt to yield", lines[1])
        policy:close()
    end)
end)

-- A program that leaves from within, and closes its state as it does: that unloads the module while the threads
-- of an engine with a database still run in it, were it not marked to stay.
describe("os.exit", function()
    local build = (os.getenv("MULL_BUILD") or "build/dev"):gsub("^[^/]", process.here .. "/%0")
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    for where, program in pairs {
        ["a handler, with another one asleep"] = [[
            local rig = testing.rig { consumers = { C = { queue = "q", concurrency = 2, handler = function(msg)
                if msg.body == "go" then os.exit(7, true) end
                mulligan.sleep("1h")
            end } } }
            rig:publish("q", "stay")
            rig:publish("q", "go")]],
        ["a handler of an engine with a database"] = [[
            local policy = assert(mulligan.load_text "")
            local engine = assert(mulligan.engine { policy = policy })
            assert(engine:transport("t", "sqlite:a.db"))
            assert(engine:consumer("C", { transport = "t", queue = "q", handler = function()
                os.exit(7, true)
            end }))
            assert(engine:publish("t", "q", "x"))
            engine:run()]],
        ["the event function of a policy that decides"] = [[
            local policy = assert(mulligan.load_text(
                'require("mulligan.policy").bus():on("E", function() error "no" end):retry()',
                { event = function() os.exit(7, true) end }))
            policy:decide { error = { type = "E" } }]],
    } do
        it("may be called by " .. where, function()
            folder:write("program", 'local mulligan, testing = require "mulligan", require "mulligan.testing"\n'
                .. program .. "\nerror 'it went on'")
            local ran = folder:run({ build .. "/spec/runner", "program" },
                { env = { LUA_CPATH = build .. "/lua/?.so" } })
            assert.same({ 7, "" }, { ran.code, ran.err })
        end)
    end

    it("leaves the module where it is", function()
        assert.matches("NODELETE", folder:run({ "readelf", "-d", build .. "/lua/mulligan.so" }).out, 1, true)
    end)
end)
