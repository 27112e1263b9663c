-- A limit's end is an event, also where its consumer is removed while the engine goes on.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

describe("a limit of a consumer that is removed", function()
    it("ends, and says so once", function()
        local clock, told = testing.clock(), {}
        local policy <close> = assert(mulligan.load_text [[
            local policy = require "mulligan.policy"
            policy.consumer("C"):rate_limit { after = 1, wait = "1m" }
            policy.consumer("C"):default():dead_letter()
        ]])
        local engine <close> = assert(mulligan.engine { policy = policy, clock = clock, event = function(event)
            if event.name:find "^rate_limit" then
                table.insert(told, event.name)
            end
        end })
        assert(engine:transport("orders", "memory:"))
        assert(engine:consumer("C", { transport = "orders", queue = "work", handler = function()
            mulligan.error { type = "Flaky" }
        end }))
        assert(engine:start())
        assert(engine:publish("orders", "work", "x", {}, function(...) assert(...) end))
        clock:advance "1s"
        assert.same({ "rate_limit_started" }, told)
        assert(engine:remove_consumer("C", function(...) assert(...) end))
        clock:advance "1s"
        assert.same({ "rate_limit_started", "rate_limit_ended" }, told)
    end)
end)
