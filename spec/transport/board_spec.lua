-- The transport of examples/board, a module that is loaded, does what every transport does.
local conformance = require "transport.conformance"
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local boards = 0

local function new_board()
    boards = boards + 1
    return "board:" .. boards
end

conformance.of("board", {
    url = "board:",
    clock = true,
    durable = true,
    old_place = true,
    skip = function(why)
        pending(why)
    end,
    program = function()
        return { "board:conformance-{}" }
    end,
}, function()
    return { url = new_board() }
end)

describe("transport board:", function()
    local url, clock, open

    before_each(function()
        url, clock, open = new_board(), testing.clock(), {}
    end)

    after_each(function()
        for _, rig in ipairs(open) do
            rig:close()
        end
    end)

    -- An engine on the board, with one consumer.
    local function engine(handler, more)
        local consumer = { queue = "q", timeout = false, handler = handler }
        for key, value in pairs(more or {}) do
            consumer[key] = value
        end
        open[#open + 1] = testing.rig { url = url, clock = clock, policy = "", consumers = { C = consumer } }
        return open[#open]
    end

    it("keeps what an engine couldn't settle before its end, and counts that hand-out", function()
        local first = engine(function() end)
        first:fault("settle", { times = 1000 })
        assert(first:publish("q", "x", { id = "a" }))
        clock:advance "1s"
        first:close()
        local seen = {}
        local second = engine(function(msg)
            seen[#seen + 1] = msg
        end)
        second:run_until_empty()
        assert.same({ 1, "a", 2 }, { #seen, seen[1].id, seen[1].deliveries })
    end)

    it("serves two engines at once, and hands no message to both", function()
        local seen, by = {}, {}
        local function handler(which)
            by[which] = 0
            return function(msg)
                assert(not seen[msg.id], "handed out twice")
                seen[msg.id] = true
                by[which] = by[which] + 1
                mulligan.sleep "1s"
            end
        end
        local one = engine(handler(1), { concurrency = 2, prefetch = 1 })
        engine(handler(2), { concurrency = 2, prefetch = 1 })
        for number = 1, 40 do
            assert(one:publish("q", "x", { id = tostring(number) }))
        end
        clock:advance "1m"
        assert.equal(40, by[1] + by[2])
        assert.is_true(by[1] >= 10 and by[2] >= 10)
        assert.same({ 0, 0, 0 }, { one:depth("q").ready, one:depth("q").delayed, one:depth("q").claimed })
    end)
end)
