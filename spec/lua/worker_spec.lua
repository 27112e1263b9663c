-- m.worker in an engine of a program's own: a consumer whose workers aren't there, or go and come.
local mulligan = require "mulligan"
local process = require "support.process"
local rigs = require "support.rigs"

describe("m.worker", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        rigs.close()
        folder:remove()
    end)

    it("leaves messages in their queue while no worker is there", function()
        local rig = rigs.start("bus:default():dead_letter()", mulligan.worker { "sh", "-c", "exit 0" })
        assert(rig:publish("work", "x"))
        assert.equal("no_worker", rig.engine:why_not "C")
        assert.equal(1, rig:depth("work").ready)
    end)

    it("closes an engine that never started, and one whose workers don't listen", function()
        local policy = assert(mulligan.load_text "")
        local engine = assert(mulligan.engine { policy = policy })
        assert(engine:transport("t", "memory:"))
        local handler = mulligan.worker { "sh", "-c", 'echo $$ >"$0"; exec sleep 1000', folder:path "pid" }
        assert(engine:consumer("A", { transport = "t", queue = "a", handler = handler }))
        engine:close()
        assert.is_nil(folder:read "pid")
        local rig = rigs.start("bus:default():dead_letter()", handler)
        process.await("its process", function()
            return folder:read "pid"
        end)
        rig:close()
        process.await("its end", function()
            return not process.read(("/proc/%d/stat"):format(folder:read "pid"))
        end)
    end)

    it("goes on for other consumers when one of them is removed", function()
        local handler = mulligan.worker { "sh", "-c", "sleep 1000" }
        local rig = rigs.start("bus:default():dead_letter()", handler, {
            consumers = { C = { queue = "work", handler = handler }, D = { queue = "more", handler = handler } },
        })
        local removed
        assert(rig.engine:remove_consumer("C", function(well)
            removed = well
        end))
        rig:advance(0)
        assert.is_true(removed)
        assert.equal("no_worker", rig.engine:why_not "D")
    end)

    it("says what is wrong with it", function()
        assert.error_matches(function()
            mulligan.worker "sh"
        end, 'mulligan.worker takes a table, as in { "./invoice", "--one" }, not "sh"', 1, true)
        assert.error_matches(function()
            mulligan.worker { "sh", process = 2 }
        end, 'unknown option "process"; did you mean "processes"?', 1, true)
    end)
end)
