-- cmd/init/files.lua: the files that `mulligan init` writes: a list of { name =, text = }, with a copy of
-- the types for editors.

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
exclude_files = { ".mulligan" }
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

-- Where the types are copied to. A path to those that are installed would be one of this machine, in a
-- file that others get from git.
local TYPES = ".mulligan/types"

-- For lua-language-server, which brings the types of busted along; `has_types` says whether ours are there.
local function luarc(has_types)
    local library = { "${3rd}/busted/library", "${3rd}/luassert/library" }
    if has_types then
        table.insert(library, 1, TYPES)
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

-- add_types adds the types' files, which are in a folder: whether all of them could be read.
local function add_types(files, folder)
    local found = {}
    for _, name in ipairs { "mulligan.lua", "policy.lua", "testing.lua" } do
        local file = io.open(folder .. "/" .. name, "rb")
        local text = file and file:read "a"
        if file then
            file:close()
        end
        if not text then
            return false
        end
        found[#found + 1] = { name = TYPES .. "/" .. name, text = text }
    end
    table.move(found, 1, #found, #files + 1, files)
    return true
end

-- The files, and whether the types are among them: `types` is the folder where they are installed, nil where that
-- isn't known.
return function(types)
    local files = {
        { name = "policy.lua", text = POLICY },
        { name = "spec/policy_spec.lua", text = SPEC },
        { name = ".luacheckrc", text = LUACHECK },
    }
    local has_types = types ~= nil and add_types(files, types)
    table.insert(files, 3, { name = ".luarc.json", text = luarc(has_types) })
    return files, has_types
end
