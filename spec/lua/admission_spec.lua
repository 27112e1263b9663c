-- Admission: who may be called while a candidate is at work, while settles fail, and while the engine
-- stops; and what a message without a count of its calls starts from.
local database = require "support.database"
local mulligan = require "mulligan"
local process = require "support.process"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

describe("the gate", function()
    local rig

    local function start(...)
        rig = rigs.start(...)
    end

    after_each(rigs.close)

    it("lets nobody in while a candidate is at work", function()
        local clock, began = testing.clock(), {}
        start("", function(msg)
            began[#began + 1] = { msg.id, msg.deliveries, clock:now() }
            mulligan.sleep(msg.deliveries == 1 and "2m" or "10s")
        end, { clock = clock, url = "memory:?claim_timeout=1m" }, { timeout = false, concurrency = 4 })
        assert(rig:publish("work", "x", { id = "candidate" }))
        rig:fault("hold", { times = 3 })
        rig:advance("61s") -- its claim is lost, and it is handed out again
        assert.same({ { "candidate", 1, 0 }, { "candidate", 2, 60000 } }, began)
        assert(rig:publish("work", "x", { id = "neighbour" }))
        rig:advance("8s")
        assert.equal(2, #began)
        rig:advance("2s")
        assert.same({ "neighbour", 1, 70000 }, began[3])
    end)

    it("has a candidate wait for others, but not for ever, and not twice for the same ones", function()
        local folder = process.folder()
        finally(function()
            rigs.close()
            folder:remove()
        end)
        local path, clock, began = folder:path("orders.db"), testing.clock(), {}
        local given = { clock = clock, url = "sqlite:" .. path, consumers = {}, collect = {} }
        start("", nil, given)
        for _, id in ipairs { "candidate-1", "candidate-2", "candidate-3", "short" } do
            assert(rig:publish("work", "1s", { id = id }))
        end
        assert(rig:publish("long", "1h", { id = "long" }))
        rigs.close()
        database.rows(path, "UPDATE messages SET deliveries = 1 WHERE id LIKE 'candidate-%'")

        local function handler(msg)
            began[#began + 1] = msg.id .. " at " .. clock:now()
            mulligan.sleep(msg.body)
        end
        given.consumers = {
            C = { queue = "work", handler = handler, concurrency = 4 },
            D = { queue = "long", handler = handler, timeout = false },
        }
        start("", nil, given)
        rig:advance("6500ms")
        -- Between two candidates others begin.
        assert.same({ "candidate-1 at 0", "short at 1000", "long at 1000", "candidate-2 at 6000" }, began)
        assert(rig:publish("work", "2s", { id = "late" }))
        rig:advance("1h")
        assert.same({ "late at 7000", "candidate-3 at 9000" }, { table.unpack(began, 5) })
        local beside = select(2, table.concat(rig:log(), "\n"):gsub("runs beside 1 other call", ""))
        assert.equal(2, beside)
    end)

    it("starts nothing that was claimed before a settle failed", function()
        local clock, began = testing.clock(), {}
        start("", function(msg)
            began[#began + 1] = msg.id .. " at " .. clock:now()
            mulligan.sleep("1s")
        end, { clock = clock })
        rig:fault("settle", { times = 4, code = "io" })
        for number = 1, 3 do
            assert(rig:publish("work", "x", { id = "m-" .. number }))
        end
        rig:run_until_empty()
        -- m-1 is settled at 1000 and again after 100, 200, 400 and 800 ms; m-2 began before it failed.
        assert.same({ "m-1 at 0", "m-2 at 1000", "m-3 at 2500" }, began)
        assert.equal(3, rig:counts().done)
    end)

    it("tells why a settle failed", function()
        start("", function() end)
        rig:fault("settle", { times = 1, code = "memory" })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:run_until_empty()
        assert.is_truthy(table.concat(rig:log(), "\n"):find("m-1 isn't settled (out of memory)", 1, true))
        assert.equal(1, rig:counts().done)
    end)

    it("tells it once, however many settles fail meanwhile, and anew when it begins again", function()
        start("", function()
            mulligan.sleep("1s")
        end, nil, { concurrency = 3 })
        local function lines_after(faults)
            rig:fault("settle", { times = faults, code = "io" })
            for _ = 1, 3 do
                assert(rig:publish("work", "x"))
            end
            rig:run_until_empty()
            return select(2, table.concat(rig:log(), "\n"):gsub("isn't settled", ""))
        end
        assert.equal(1, lines_after(6)) -- two tries of each
        assert.equal(2, lines_after(3))
        assert.equal(6, rig:counts().done)
    end)

    it("gives back what fails while the engine stops, with its calls counted", function()
        local clock, calls = testing.clock(), 0
        start('bus:default():retry(3, "1s")', function()
            calls = calls + 1
            mulligan.sleep("2s")
            error("no")
        end, { clock = clock, grace = "10s", collect = {} })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:stop()
        assert.equal(1, calls)
        assert.equal(2000, clock:now())
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth("work")))
        assert.is_truthy(table.concat(rig:log(), "\n"):find("failed while stopping", 1, true))
    end)

    it("counts on with a dead letter that its own queue's consumer redelivers", function()
        local seen = {}
        start([[
            bus:default():dead_letter("aside")
            local aside = policy.consumer("D")
            aside:dead_letter_queue("out")
            aside:default():redeliver(2, "1m")
        ]], function()
            error("no")
        end, {
            consumers = {
                C = {
                    queue = "work",
                    handler = function()
                        error("no")
                    end,
                },
                D = {
                    queue = "aside",
                    handler = function(msg)
                        seen[#seen + 1] = { msg.redeliveries, msg.calls, msg.headers["mulligan-queue"] }
                        assert(#seen < 10, "it goes round for ever")
                        error("still no")
                    end,
                },
            },
        })
        assert(rig:publish("work", "x", { id = "m-1" }))
        rig:advance("1h")
        assert.same({ { 0, 0, "work" }, { 1, 1, "work" }, { 2, 2, "work" } }, seen)
        assert.equal("aside", rig:collected("out")[1].headers["mulligan-queue"])
    end)

    it("counts as many calls as redeliveries where nobody counted", function()
        local seen
        start("", function(msg)
            seen = { msg.attempt, msg.redeliveries, msg.calls }
        end)
        assert(rig:publish("work", "x", { headers = { ["mulligan-redeliveries"] = "2" } }))
        rig:run_until_empty()
        assert.same({ 1, 2, 2 }, seen)
    end)
end)
