local conformance = require "transport.conformance"
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

conformance.of("memory", {
    url = "memory:",
    clock = true,
    old_place = true,
    claim_timeout = true,
    skip = function(why)
        pending(why)
    end,
    program = function()
        return { "--forgets", "memory:" }
    end,
}, function()
    return {
        url = "memory:orders",
        claim_timeout_url = function()
            return "memory:?claim_timeout=30s"
        end,
    }
end)

describe("transport memory:", function()
    local r

    after_each(function()
        if r then
            r:close()
            r = nil
        end
    end)

    local function open(url, policy, handler)
        r = testing.rig {
            url = url, policy = policy,
            consumers = { C = { queue = "q", timeout = false, handler = handler or function() end } },
        }
        return r
    end

    it("is private to each engine", function()
        local policy = assert(mulligan.load_text "")
        local clock = testing.clock()
        local one = testing.rig { policy = policy, url = "memory:same", clock = clock, start = false }
        local two = testing.rig { policy = policy, url = "memory:same", clock = clock, start = false }
        assert(one:publish("q", "x"))
        assert.are.equal(1, one:depth("q").ready)
        assert.are.equal(0, two:depth("q").ready)
        one:close()
        two:close()
        policy:close()
    end)

    describe("an option of its URL", function()
        local engine, policy

        before_each(function()
            policy = assert(mulligan.load_text "")
            engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
        end)

        after_each(function()
            engine:close()
            policy:close()
        end)

        for url, why in pairs {
            ["memory:?claim=30s"] =
                "claim is no option; there are claim_timeout, hold, retry, delay, longest_delay and deliveries",
            ["memory:a?claim_timeout=30"] = "claim_timeout needs a unit after each number: ms, s, m, h or d",
            ["memory:?claim_timeout=0s"] = "claim_timeout must be more than 0; leave it out for no limit",
            ["memory:?claim_timeout"] = "claim_timeout must be a number with a unit",
            ["memory:?retry=maybe"] = "retry must be yes or no",
            ["memory:?retry=no&delay"] = "delay must be yes or no",
            ["memory:?deliveries=no&&retry=no"] = "is no option",
        } do
            it("is refused where it is wrong: " .. url, function()
                local opened, message, code = engine:transport("t", url)
                assert.is_nil(opened)
                assert.are.equal("invalid", code)
                assert.is_truthy(message:find(why, 1, true), message)
            end)
        end

        it("is taken where it is right", function()
            assert(engine:transport("a", "memory:name?claim_timeout=1h30m&retry=yes&delay=no&deliveries=no"))
            assert(engine:transport("b", "memory:?"))
        end)
    end)

    it("retry=no: a policy that retries is refused", function()
        local policy = assert(mulligan.load_text 'require("mulligan.policy").bus():default():retry(3)')
        local engine = assert(mulligan.engine { policy = policy, clock = testing.clock() })
        assert(engine:transport("t", "memory:?retry=no"))
        assert(engine:consumer("C", { transport = "t", queue = "q", handler = function() end }))
        local started, message, code = engine:start()
        assert.is_nil(started)
        assert.are.equal("refused", code)
        assert.is_truthy(message:find("can't hold a message for a retry", 1, true), message)
        engine:close()
        policy:close()
    end)

    it("delay=no: nothing can be put off", function()
        open("memory:?delay=no", "")
        local done, _, code = r:publish("q", "x", { delay = "1s" })
        assert.is_nil(done)
        assert.are.equal("refused", code)
        assert(r:publish("q", "x", { delay = 0 }))
        r:run_until_empty()
        assert.are.equal(1, r:counts().done)
    end)

    it("deliveries=no: each one is the first", function()
        local seen = {}
        open("memory:?claim_timeout=30s&deliveries=no", "", function(msg)
            seen[#seen + 1] = msg.deliveries
            if #seen == 1 then
                mulligan.sleep "45s"
            end
        end)
        r:fault("hold", { times = 3 })
        assert(r:publish("q", "x"))
        r:advance "1h"
        assert.are.same({ 1, 1 }, seen)
    end)
end)
