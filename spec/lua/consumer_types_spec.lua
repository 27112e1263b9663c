-- Consumers that share a queue by the types of messages that they name: what they share, and what
-- each has for itself. What every transport does is in spec/transport/conformance/types.lua.
local testing = require "mulligan.testing"

describe("consumers that share a queue by type", function()
    local rig, log

    -- start gives a rig with consumers of "work", each with the types that its name says, "Rest" without.
    local function start(rules, consumers, more)
        log = {}
        for name, consumer in pairs(consumers) do
            consumer.queue = "work"
            consumer.types = name ~= "Rest" and { name } or nil
        end
        local given = { policy = 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n' .. rules,
            consumers = consumers, collect = { "error" } }
        for key, value in pairs(more or {}) do
            given[key] = value
        end
        rig = testing.rig(given)
    end

    after_each(function()
        rig:close()
    end)

    local function publish(type, ids, given)
        for id in ids:gmatch("%S+") do
            assert(rig:publish("work", "x", { id = id, type = type, key = given and given.key }))
        end
    end

    local function note(name, act)
        return function(msg)
            log[#log + 1] = ("%s:%s"):format(name, msg.id)
            if act then
                act(msg)
            end
        end
    end

    local function noted()
        local list = { table.unpack(log) }
        table.sort(list)
        return table.concat(list, " ")
    end

    local function of_consumer(name)
        for _, consumer in ipairs(rig.engine:snapshot().consumers) do
            if consumer.name == name then
                return consumer
            end
        end
    end

    it("have each its own scope, counts and row", function()
        start('policy.consumer("A"):default():discard("A has enough")', {
            A = { handler = note("A", error) },
            B = { handler = note("B", error) },
            Rest = { handler = note "Rest" },
        })
        publish("A", "a1 a2")
        publish("B", "b1")
        publish("C", "c1")
        publish(nil, "c2")
        rig:run_until_empty()
        assert.equal("A:a1 A:a2 B:b1 Rest:c1 Rest:c2", noted())
        assert.equal(2, rig:counts().discarded)
        assert.equal(1, #rig:collected "error")
        local rows = {}
        for _, consumer in ipairs(rig.engine:snapshot().consumers) do
            rows[consumer.name] = ("%s %d %d"):format(consumer.queue, consumer.taken, consumer.done)
        end
        assert.same({ "work 2 0", "work 1 0", "work 2 2" }, { rows.A, rows.B, rows.Rest })
        assert.equal(4, #rig.engine:snapshot().consumers) -- these, and what collects "error"
    end)

    it("count depths once, and end a run until empty", function()
        start("", { A = { handler = note "A" }, Rest = { handler = note "Rest" } })
        publish("A", "a1")
        rig:run_until_empty()
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, (rig:depth "work"))
    end)

    it("have each its own rate limit", function()
        local at = {}
        start('policy.consumer("A"):limit { rate = "1/s", burst = 1 }', {
            A = { handler = function(msg)
                at[msg.id] = rig.clock:now()
            end },
            Rest = { handler = function(msg)
                at[msg.id] = rig.clock:now()
            end },
        })
        publish("A", "a1 a2 a3")
        publish("B", "b1 b2 b3")
        rig:run_until_empty()
        assert.is_true(at.a3 - at.a1 >= 2000, at.a3 - at.a1)
        assert.equal(at.b1, at.b3)
    end)

    it("end a run in which all of them are paused, and say how many are left", function()
        start("", { A = { handler = note "A", paused = true }, Rest = { handler = note "Rest", paused = true } })
        publish("A", "a1")
        publish("B", "b1")
        rig.engine:stop_when_empty()
        rig:advance "1m"
        assert.is_true(rig.engine:stopped())
        assert.same({}, log)
    end)

    it("hand a message that nobody takes to no consumer's functions", function()
        start([[
bus:notify(function(event)
    if event.name == "decided" then
        print(event.failure.error.type, event.failure.consumer == nil)
    end
end)
policy.consumer("A"):override(function() return policy.discard("by A") end)
bus:on("NoConsumerError", function(err, ctx)
    return ctx.consumer == nil and ctx.transport == "orders" and err.message:find("takes messages of this type")
end):redeliver { "1m" }
]], { A = { handler = note "A" } })
        publish("B", "b1")
        rig:run_until_empty()
        assert.equal(1, rig:counts().redelivered)
        assert.equal(1, #rig:collected "error")
        local _, heard = table.concat(rig:log(), "\n"):gsub("NoConsumerError%s+true", "")
        assert.equal(2, heard)
    end)

    it("refuse dead letters of what nobody takes that would come back", function()
        start('bus:dead_letter_queue("work")\npolicy.consumer("A"):dead_letter_queue("error")',
            {}, { consumers = { Other = { queue = "other", handler = print } } })
        local added, why, code = rig.engine:consumer("A", { transport = "orders", queue = "work", types = { "A" },
            handler = print })
        assert.same({ nil, "refused" }, { added, code })
        assert.is_truthy(why:find("no consumer of the queue 'work' takes", 1, true), why)
        assert(rig.engine:consumer("B", { transport = "orders", queue = "free", types = { "A" }, handler = print }))
    end)

    it("say what is wrong with types", function()
        start("", { A = { handler = note "A" }, Rest = { handler = note "Rest" } })
        local function refused(why, types)
            local added, message, code = rig.engine:consumer("X", { transport = "orders", queue = "work", types = types,
                handler = print })
            assert.same({ nil, "invalid" }, { added, code })
            assert.is_truthy(message:find(why, 1, true), message)
        end
        refused("messages of type 'A' on the queue 'work' are taken by consumer 'A' already", { "B", "A" })
        refused("only one may take the rest, and 'Rest' does", nil)
        assert.equal("nothing_there", of_consumer("A").why_not)
    end)
end)
