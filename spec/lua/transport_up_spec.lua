-- An engine whose transport isn't up yet: what a program hears of it, and of queues that can't be counted.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

describe("an engine", function()
    local clock, engine, told, printed

    before_each(function()
        clock, told, printed = testing.clock(), {}, {}
    end)

    after_each(function()
        engine:close()
    end)

    local function open(url, given)
        given = given or {}
        given.policy = assert(mulligan.load_text([[require("mulligan.policy").bus():notify(function(event)
            print(event.name)
        end)]], {
            log = function(_, text)
                printed[#printed + 1] = text
            end,
        }))
        given.clock = clock
        function given.event(event)
            told[#told + 1] = event
        end
        engine = assert(mulligan.engine(given))
        assert(engine:transport("odd", url))
        assert(engine:consumer("C", { transport = "odd", queue = "work", handler = function() end }))
        assert(engine:start())
        clock:turn()
    end

    local function publish()
        return engine:publish("odd", "work", "x")
    end

    describe("with a transport that isn't up yet", function()
        it("answers a publish at once, with the reason", function()
            open "memory:?connect=5s"
            local why = "transport 'odd' is down: it connects later, as connect= of its URL says"
            assert.same({ n = 3, nil, why, "down" }, table.pack(publish()))
        end)

        it("tells its program when that is up, once, and no notify", function()
            open "memory:?connect=5s"
            clock:advance "4999ms"
            assert.same({}, told)
            clock:advance "1ms"
            assert.same({ { name = "transport_up", text = "odd" } }, told)
            assert(publish())
            clock:advance "1s"
            assert.equal(1, engine:counts().done)
            assert.same({ { name = "transport_up", text = "odd" } }, told)
            assert.same({ "policy_loaded" }, printed)
        end)

        it("says nothing of one that is up at the start", function()
            open "memory:"
            assert.same({}, told)
        end)
    end)

    describe("until empty, where a queue can't be counted,", function()
        -- It goes by the last thing that happened there.
        for quiet, ms in pairs { ["2s"] = 2000, default = 10000 } do
            it("takes quiet for empty, and says so: " .. quiet, function()
                open("memory:?depth=none", { quiet = quiet ~= "default" and quiet or nil })
                assert(engine:stop_when_empty())
                clock:advance(("%dms"):format(ms // 2))
                assert(publish())
                clock:advance(("%dms"):format(ms - 1))
                assert.is_false(engine:stopped())
                assert.is_false(engine:emptied())
                clock:advance "1ms"
                assert.is_true(engine:stopped())
                assert.equal("quiet", engine:emptied())
                assert.equal(1, engine:counts().done)
            end)
        end

        it("takes a quiet time of 0", function()
            open("memory:?depth=none", { quiet = 0 })
            assert(engine:stop_when_empty())
            clock:advance "1ms"
            assert.equal("quiet", engine:emptied())
        end)

        it("says true where it can be", function()
            open("memory:", { quiet = "1h" })
            assert(engine:stop_when_empty())
            clock:turn()
            assert.is_true(engine:emptied())
        end)
    end)

    it("doesn't wait until empty for what is in a queue that is refused", function()
        open "memory:?refuse=work"
        assert(publish())
        assert(engine:stop_when_empty())
        clock:advance "1s"
        assert.is_true(engine:stopped())
        assert.is_false(engine:emptied())
        assert.equal("refused", select(3, engine:status()))
    end)
end)
