-- Handlers that do their worst, on a test's clock: each ends, its failure is told, and the next
-- message is handled.
local mulligan = require "mulligan"
local rigs = require "support.rigs"

describe("a handler", function()
    local rig

    -- fails runs one that does its worst, and after it one that is well; its error.
    local function fails(worst, more_of_consumer, more)
        rig = rigs.start("bus:default():dead_letter()", function(msg)
            if msg.body == "worst" then
                worst(msg)
            end
        end, more, more_of_consumer or { timeout = "20ms" })
        assert(rig:publish("work", "worst"))
        assert(rig:publish("work", "well"))
        rig:run_until_empty()
        assert.same({ 1, 1 }, { #rig:events("decided"), #rig:collected("error") })
        assert.equal(2, rig:counts().done) -- the one that is well, and the collector's
        return rig:events("decided")[1].failure.error
    end

    after_each(rigs.close)

    local function shown_by(show)
        return setmetatable({}, { __tostring = show })
    end

    local function loop()
        while true do end
    end

    describe("whose error can't be shown, since its __tostring", function()
        for name, show in pairs {
            ["loops for ever"] = loop,
            ["loops for ever, in a pcall"] = function()
                while true do
                    pcall(loop)
                end
            end,
            ["loops for ever, in a coroutine"] = function()
                coroutine.wrap(loop)()
            end,
            ["yields"] = function()
                coroutine.yield("what?")
            end,
            ["sleeps"] = function()
                mulligan.sleep("1s")
            end,
            ["raises another"] = function()
                error(shown_by(error))
            end,
            ["raises itself"] = function(self)
                error(self)
            end,
            ["calls itself"] = function(self)
                return tostring(self) .. "!"
            end,
        } do
            it(name .. ", has failed all the same", function()
                local err = fails(function()
                    error(shown_by(show))
                end)
                assert.same({ "Error", "(a table that can't be shown)" }, { err.type, err.message })
                assert.is_truthy(err.stack:find("faults_spec.lua", 1, true))
            end)
        end
    end)

    it("that ran over is a timeout, whatever it raises then", function()
        local err = fails(function()
            pcall(loop)
            error(shown_by(loop))
        end)
        assert.equal("HandlerTimeoutError", err.type)
    end)

    it("that has a text for its error, and time to make it, is shown", function()
        local err = fails(function()
            error(shown_by(function()
                local n = 0
                for i = 1, 100000 do
                    n = n + i
                end
                return "n is " .. n
            end))
        end, { timeout = "30s" })
        assert.equal("n is 5000050000", err.message)
    end)

    it("that takes the hook away is watched again after its next sleep", function()
        local err = fails(function()
            debug.sethook()
            mulligan.sleep("1ms")
            loop()
        end)
        assert.equal("HandlerTimeoutError", err.type)
    end)

    it("that sleeps for a year is cut off at its timeout", function()
        local err = fails(function()
            mulligan.sleep("365d")
        end, { timeout = "1m" })
        assert.equal("HandlerTimeoutError", err.type)
    end)

    describe("that searches for what takes Lua years", function()
        local text, pattern = ("a"):rep(100000), (".-"):rep(6) .. "b"
        for name, search in pairs {
            ["by string.find"] = function()
                string.find(text, pattern)
            end,
            ["by string.match"] = function()
                string.match(text, pattern)
            end,
            ["by string.gmatch"] = function()
                string.gmatch(text, pattern)()
            end,
            ["by string.gsub"] = function()
                string.gsub(text, pattern, "")
            end,
            ["by a method"] = function()
                text:find(pattern)
            end,
            ["in a pcall, for ever"] = function()
                while true do
                    pcall(text.find, text, pattern)
                end
            end,
            ["in a coroutine"] = function()
                coroutine.wrap(function()
                    text:find(pattern)
                end)()
            end,
            ["in what it closes"] = function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        text:find(pattern)
                    end,
                })
            end,
        } do
            it(name .. " is ended at its timeout, where patterns are counted", function()
                local err = fails(search, nil, { patterns = "counted" })
                assert.equal("HandlerTimeoutError", err.type)
                assert.is_truthy(err.stack:find("faults_spec.lua", 1, true), err.stack)
            end)
        end

        -- Some 0.2 s: it comes back too late, and has succeeded.
        it("isn't ended where they are Lua's own", function()
            for _, more in ipairs { {}, { patterns = "lua" } } do
                rig = rigs.start("bus:default():dead_letter()", function()
                    text:sub(1, 20000):find("^.-.-b")
                end, more, { timeout = "20ms" })
                assert(rig:publish("work", "x"))
                assert.equal(1, rig:counts().done)
            end
        end)

        it("goes on for as long as it takes where there is no timeout", function()
            rig = rigs.start("bus:default():dead_letter()", function()
                assert(text:sub(1, 2000):find("^.-.-b") == nil)
            end, { patterns = "counted" }, { timeout = false })
            assert(rig:publish("work", "x"))
            assert.equal(1, rig:counts().done)
        end)
    end)

    for name, raised in pairs {
        ["a text"] = "no",
        ["an error"] = shown_by(loop),
        ["nothing"] = nil,
    } do
        it("that raises " .. name .. " in what it closes, where it is cut off, has timed out once", function()
            local err = fails(function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        error(raised)
                    end,
                })
                mulligan.sleep("1h")
            end, { timeout = "1m" })
            assert.equal("HandlerTimeoutError", err.type)
        end)
    end

    it("that sleeps, or loops, in what it closes, where it is cut off, has timed out once", function()
        for _, close in ipairs { loop, coroutine.yield, mulligan.sleep } do
            local err = fails(function()
                local _ <close> = setmetatable({}, {
                    __close = function()
                        close("1h")
                    end,
                })
                mulligan.sleep("1h")
            end)
            assert.equal("HandlerTimeoutError", err.type)
        end
    end)

    it("without a timeout that sleeps for a year is given back when the grace of a stop is over", function()
        local closed
        rig = rigs.start("bus:default():discard()", function()
            local _ <close> = setmetatable({}, {
                __close = function()
                    closed = rig.clock:now()
                    error("no")
                end,
            })
            mulligan.sleep("365d")
        end, { grace = "10s" }, { timeout = false })
        assert(rig:publish("work", "x"))
        rig:advance("1d")
        rig:stop()
        assert.equal(86410000, closed)
        local none = { done = 0, retried = 0, redelivered = 0, dead_lettered = 0, discarded = 0, notify_failed = 0 }
        assert.same(none, rig:counts())
        assert.equal(1, rig:depth("work").ready)
    end)
end)
