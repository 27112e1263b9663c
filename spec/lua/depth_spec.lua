-- Until empty, on a transport that can't say how many messages are left.
local testing = require "mulligan.testing"

describe("an engine until empty, where depths can't be had,", function()
    local rig

    -- fail lets the next so many questions fail.
    local function fail(times)
        rig:fault("depth", { times = times, code = "io" })
    end

    local function start(times)
        rig = testing.rig { consumers = { C = { queue = "work", handler = function() end } } }
        fail(times)
        assert(rig.engine:stop_when_empty())
        rig:advance "0s"
    end

    local function warnings()
        local found = {}
        for _, line in ipairs(rig:log()) do
            found[#found + 1] = line:match "^warning: (.*)$"
        end
        return found
    end

    after_each(function()
        rig:close()
    end)

    local WARNING = "transport orders can't say how many messages are in the queue work: "
        .. "the transport could not carry it out; it is asked again"

    it("ends after a minute, with an error, and tells so from the beginning", function()
        start(1000000)
        assert.same({ WARNING }, warnings())
        rig:advance "59s"
        assert.is_false(rig.engine:stopped())
        assert(rig.engine:status())
        rig:advance "1s"
        assert.is_true(rig.engine:stopped())
        assert.is_false(rig.engine:emptied())
        assert.same({ WARNING }, warnings())
        local well, _, code = rig.engine:status()
        assert.same({ n = 2, nil, "io" }, table.pack(well, code))
    end)

    it("is asked again ever more rarely, and ends well once they can be had", function()
        start(10)
        rig:advance "1s"
        assert.is_false(rig.engine:stopped())
        rig:advance "30s"
        assert.is_true(rig.engine:emptied())
        assert(rig.engine:status())
    end)

    it("is patient anew once one could be had, and once a message came", function()
        start(1000000)
        rig:advance "50s"
        assert(rig:publish("work", "x", { delay = "100s" }))
        rig:fault("depth", { skip = 1, times = 1000000, code = "io" })
        rig:advance "80s"
        assert.same({ WARNING, WARNING }, warnings())
        rig:advance "75s"
        assert.equal(1, rig:counts().done)
        assert.same({ WARNING, WARNING, WARNING }, warnings())
        assert.is_false(rig.engine:stopped())
        rig:advance "15s"
        assert.is_true(rig.engine:stopped())
        assert.is_false(rig.engine:emptied())
    end)
end)
