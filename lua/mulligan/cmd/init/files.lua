-- cmd/init/files.lua: the files that `mulligan init` writes: a list of { name =, text = } for where the
-- types for editors are.

local json = require("mulligan").json

local POLICY = [[
-- What becomes of messages whose handling failed.
--
--   mulligan check policy.lua                          what is wrong in it, and what is suspicious
--   mulligan explain policy.lua --error TimeoutError   what happens to an error, and which line says so

local policy = require "mulligan.policy"

-- Your types of errors: child = parent. What isn't named here is a child of "Error".
policy.errors {
    DeadlockError = "DatabaseError",
    ConnectionError = "DatabaseError",
}

local bus = policy.bus()

-- Trying again can't help: put aside for a person, in a queue of their own.
bus:on("ValidationError"):dead_letter("invalid")

-- Nothing is lost by dropping it.
bus:on("DuplicateMessage"):discard("already processed")

-- Often over in moments: again in the same process, then later.
bus:on("DatabaseError"):retry(5, "200ms"):then_redeliver { "1m", "10m", "1h" }

-- The other side is busy, and may say for how long: its `retry_after` is in seconds. No wait is
-- longer than 1h; max_delay = "6h" allows more.
bus:on("HttpError", { status = 429 }):redeliver { attempts = 5, delay = "2m", hint = "retry_after" }
bus:on("HttpError", { status = policy.between(500, 599) }):retry(3):then_redeliver { "30s", "5m", "30m" }

-- Whatever else: 3 retries, after 5m, 15m and 30m once more, and then the queue "error".
bus:default():retry():then_redeliver()

-- What failed first a day ago isn't redelivered any more.
bus:max_age("1d")
]]

local SPEC = [[
-- What policy.lua must do. Run it in the folder of policy.lua: busted --lua=lua5.4 spec

-- Lua looks for ./mulligan.lua, which is yours, before it looks for the module.
package.path = package.path:gsub("%./%?%.lua;?", ""):gsub("%./%?/init%.lua;?", "")

local mulligan = require "mulligan"
local testing = require "mulligan.testing"

describe("policy.lua", function()
    local policy

    setup(function()
        policy = assert(mulligan.load("policy.lua"))
    end)

    teardown(function()
        policy:close()
    end)

    -- The verdict for an error; `more` is what else is known of the failure.
    local function verdict_for(err, more)
        local failure = { error = err }
        for key, value in pairs(more or {}) do
            failure[key] = value
        end
        return policy:decide(failure, { no_jitter = true })
    end

    it("puts aside what is invalid, without trying again", function()
        local verdict = verdict_for { type = "ValidationError" }
        assert.same({ "dead_letter", "invalid" }, { verdict.action, verdict.queue })
    end)

    it("retries a deadlock as a DatabaseError, then redelivers", function()
        local first = verdict_for { type = "DeadlockError" }
        local fifth = verdict_for({ type = "DeadlockError" }, { attempt = 5 })
        local sixth = verdict_for({ type = "DeadlockError" }, { attempt = 6 })
        assert.same({ "retry", 200 }, { first.action, first.delay_ms })
        assert.equal("retry", fifth.action)
        assert.same({ "redeliver", 60000 }, { sixth.action, sixth.delay_ms })
    end)

    it("waits as long as the other side says", function()
        assert.equal(300000, verdict_for({ type = "HttpError", status = 429, retry_after = 300 }).delay_ms)
        assert.equal(120000, verdict_for({ type = "HttpError", status = 429 }).delay_ms)
    end)

    it("ends in the queue error after three redeliveries", function()
        local third = verdict_for({ type = "AnythingElse" }, { attempt = 4, redeliveries = 2 })
        local verdict = verdict_for({ type = "AnythingElse" }, { attempt = 4, redeliveries = 3 })
        assert.same({ "redeliver", 1800000 }, { third.action, third.delay_ms })
        assert.same({ "dead_letter", "error", "exhausted" }, { verdict.action, verdict.queue, verdict.reason })
    end)

    it("brings a message through an outage", function()
        local rig = testing.rig {
            policy = policy,
            consumers = { OrderHandler = { queue = "orders", handler = function(msg)
                if msg.redeliveries < 2 then
                    mulligan.error { type = "ConnectionError" }
                end
            end } },
        }
        assert(rig:publish("orders", "an order"))
        rig:run_until_empty() -- eleven minutes, on the test's clock
        local counts = rig:counts()
        rig:close()
        assert.same({ 1, 2 }, { counts.done, counts.redelivered })
    end)
end)
]]

local LUACHECK = [[
std = "lua54"
files["spec"] = { std = "+busted" }

-- A policy has these names of Lua's and no others.
stds.policy = {
    read_globals = {
        "assert", "error", "ipairs", "next", "pairs", "pcall", "print", "require", "select", "tonumber", "tostring",
        "type", "math", "string", "table", "utf8",
    },
}
files["policy.lua"] = { std = "policy" }
]]

-- For lua-language-server, which brings the types of busted along; `types` is the folder of ours, nil
-- where it isn't known.
local function luarc(types)
    local library = { "${3rd}/busted/library", "${3rd}/luassert/library" }
    if types then
        table.insert(library, 1, types)
    end
    local globals = { "describe", "it", "setup", "teardown", "before_each", "after_each" }
    return ([[
{
  "runtime.version": "Lua 5.4",
  "workspace.library": %s,
  "workspace.checkThirdParty": false,
  "diagnostics.globals": %s
}
]]):format(json.encode(library), json.encode(globals))
end

return function(types)
    return {
        { name = "policy.lua", text = POLICY },
        { name = "spec/policy_spec.lua", text = SPEC },
        { name = ".luarc.json", text = luarc(types) },
        { name = ".luacheckrc", text = LUACHECK },
    }
end
