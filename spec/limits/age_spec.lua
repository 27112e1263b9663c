-- How old a failure is that a limit kept, and what is held against a deadline: on a test's clock, on memory:.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

-- run has one message's calls end as `types` say, under a policy, and gives the verdicts.
local function run(statements, types)
    local text = 'local policy = require "mulligan.policy"\nlocal C = policy.consumer "C"\n' .. statements
    local clock, decided, calls = testing.clock(), {}, 0
    local policy <close> = assert(mulligan.load_text(text))
    local engine <close> = assert(mulligan.engine { policy = policy, clock = clock, seed = 1, event = function(event)
        if event.name == "decided" then
            table.insert(decided, { at = clock:now(), age = event.failure.age_ms, reason = event.verdict.reason,
                action = event.verdict.action })
        end
    end })
    assert(engine:transport("orders", "memory:"))
    assert(engine:consumer("C", { transport = "orders", queue = "work", handler = function()
        calls = calls + 1
        if types[calls] then
            mulligan.error { type = types[calls], message = "by the script" }
        end
    end }))
    assert(engine:start())
    assert(engine:publish("orders", "work", "x", { id = "m-1" }, function(...) assert(...) end))
    clock:advance "1h"
    return decided, calls
end

describe("a message whose failure a limit kept", function()
    local KEEPS = 'C:rate_limit { after = 1, only = "Outage", keep = true, wait = "6s" }\n'

    it("is as old as without the time that it was kept, and its deadline goes on", function()
        local decided, calls = run(KEEPS .. [[
            C:deadline("10s")
            C:default():redeliver { "5s" }
        ]], { "Outage", "Other" })
        assert.equal(2, calls)
        assert.equal(1, #decided)
        assert.same({ "dead_letter", "deadline", 0 }, { decided[1].action, decided[1].reason, decided[1].age })
    end)

    it("is told with its age where it ends without a call", function()
        local decided, calls = run('C:rate_limit { after = 1, wait = "30s" }\n' .. [[
            C:deadline("10s")
            C:default():redeliver { "5s" }
        ]], { "Outage" })
        assert.equal(1, calls)
        assert.same({ "redeliver", "dead_letter" }, { decided[1].action, decided[2].action })
        assert.equal("deadline", decided[2].reason)
        assert.equal(decided[2].at - decided[1].at, decided[2].age)
        assert.is_true(decided[2].age >= 30000)
    end)
end)
