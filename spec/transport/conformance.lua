-- conformance.lua: what every transport does, through the public module. What a transport owes by its own
-- contract, settlement by settlement, is conformance.c. A transport's spec calls
--
--   conformance(name, has, make)
--
-- where make() gives a place for one test: { url =, remove = function or nil }. `has` says what the
-- transport has: `durable`, where another engine finds what the first one left; `claim_timeout`,
-- where the place has a claim_timeout_url, with a timeout of 30 s.

local busted = require "busted" -- has what a spec has as globals
local assert = require "luassert"
local mulligan = require "mulligan"
local testing = require "mulligan.testing"


local POLICY = [[
local bus = require("mulligan.policy").bus()
bus:on("Later"):redeliver { "5m", "10m" }
bus:on("Soon"):redeliver { "1s", "1s", "1s" }
bus:on("Again"):retry { "1s", "1s" }
bus:on("Drop"):discard("not needed")
bus:on("Dead"):dead_letter("parked")
]]

-- Bytes and texts that a careless transport spoils.
local function every_byte()
    local bytes = {}
    for byte = 0, 255 do
        bytes[#bytes + 1] = string.char(byte)
    end
    return table.concat(bytes)
end

local function noise(size)
    local random, words = testing.random(42), {}
    for number = 1, size // 8 do
        words[number] = string.pack("<I7B", random(1 << 55) - 1, number % 256)
    end
    return table.concat(words)
end

local BODIES = {
    empty = "",
    ["one NUL"] = "\0",
    ["every byte"] = every_byte(),
    ["1 MiB"] = noise(1 << 20),
    ["what looks like SQL"] = "'); DROP TABLE messages; --",
}

local HEADERS = {
    plain = "value",
    empty = "",
    ["a name with \"quotes\", \\ and \n"] = "x",
    quotes = "\"'\\/\b\f\n\r\t",
    control = "\1\2\31\127",
    ["naïve"] = "Straße, 東京, \u{1F600}, \u{10FFFF}, \u{FFFE}, \u{2028}",
    ["mulligan"] = "not one of ours",
    json = '{"a":[1,null]}',
    long = ("x"):rep(20000),
}

local place, open

-- rig gives an engine on the test's place; what isn't closed is closed after the test.
local function rig(given)
    given.url = given.url or place.url
    given.policy = given.policy or POLICY
    local made = testing.rig(given)
    open[#open + 1] = made
    return made
end

local function close(made)
    for number, other in ipairs(open) do
        if other == made then
            table.remove(open, number)
        end
    end
    made:close()
end

-- reader gives a consumer that notes what it gets, then does what `act` says.
local function reader(seen, act, more)
    local consumer = {
        queue = "q",
        handler = function(msg)
            seen[#seen + 1] = msg
            if act then
                act(msg)
            end
        end,
    }
    for key, value in pairs(more or {}) do
        consumer[key] = value
    end
    return consumer
end

local function ids(seen)
    local list = {}
    for number, msg in ipairs(seen) do
        list[number] = msg.id
    end
    return table.concat(list, " ")
end

local function counted(r, queue, ready, delayed, claimed)
    local depth = assert(r:depth(queue))
    assert.are.same({ ready, delayed, claimed }, { depth.ready, depth.delayed, depth.claimed })
    return depth
end

-- publish publishes messages with these ids, in this order.
local function publish(r, list, given)
    for id in list:gmatch("%S+") do
        local options = { id = id }
        for key, value in pairs(given or {}) do
            options[key] = value
        end
        assert(r:publish("q", "body of " .. id, options))
    end
end

-- ---- The list of tests -------------------------------------------------------------------------

local tests, prefix = {}, ""

local function group(words)
    prefix = words .. " "
end

-- test adds one; `need`: only for a transport that has that.
local function test(words, run, need)
    tests[#tests + 1] = { name = prefix .. words, run = run, need = need }
end

-- ---- A message --------------------------------------------------------------------------------

group "a message"

test("is handled and then gone", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    publish(r, "a")
    r:run_until_empty()
    assert.are.equal("a", ids(seen))
    assert.are.equal("body of a", seen[1].body)
    assert.are.equal("q", seen[1].queue)
    assert.are.equal(1, seen[1].deliveries)
    assert.are.equal(1, r:counts().done)
    counted(r, "q", 0, 0, 0)
end)

test("waits for a consumer that comes later", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) }, start = false }
    publish(r, "a b")
    counted(r, "q", 2, 0, 0)
    assert(r.engine:start())
    r:run_until_empty()
    assert.are.equal("a b", ids(seen))
end)

test("keeps its id, type and key", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    assert(r:publish("q", "x", { id = "id-東京", type = "OrderPlaced", key = "42'\"" }))
    assert(r:publish("q", "x", { id = "" , type = "", key = "" }))
    assert(r:publish("q", "x", { id = "bare" }))
    r:run_until_empty()
    assert.are.same({ "id-東京", "OrderPlaced", "42'\"" }, { seen[1].id, seen[1].type, seen[1].key })
    assert.are.same({ "", "" }, { seen[2].type, seen[2].key })
    assert.is_nil(seen[3].type)
    assert.is_nil(seen[3].key)
end)

for what, body in pairs(BODIES) do
    test("keeps its body byte for byte: " .. what, function()
        local seen = {}
        local r = rig {
            consumers = { C = reader(seen, function(msg)
                if msg.redeliveries == 0 then
                    mulligan.error { type = "Soon" }
                end
                mulligan.error { type = "Dead" }
            end) },
            collect = { "parked" },
        }
        assert(r:publish("q", body, { id = "a" }))
        r:run_until_empty()
        local dead = r:collected("parked")
        assert.are.equal(2, #seen)
        assert.are.equal(1, #dead)
        -- Not are.equal: a megabyte in its message helps nobody.
        assert.is_true(seen[1].body == body, "as published")
        assert.is_true(seen[2].body == body, "redelivered")
        assert.is_true(dead[1].body == body, "as a dead letter")
    end)
end

test("keeps its headers", function()
    local seen = {}
    local r = rig {
        consumers = { C = reader(seen, function()
            mulligan.error { type = "Dead" }
        end) },
        collect = { "parked" },
    }
    assert(r:publish("q", "x", { id = "a", headers = HEADERS }))
    assert(r:publish("q", "x", { id = "b" }))
    r:run_until_empty()
    assert.are.same(HEADERS, seen[1].headers)
    assert.are.same({}, seen[2].headers)
    local dead = r:collected("parked")[1]
    for header, value in pairs(HEADERS) do
        assert.are.equal(value, dead.headers[header])
    end
end)

test("without an id keeps the one that it is given", function()
    local seen = {}
    local r = rig {
        consumers = { C = reader(seen, function(msg)
            if msg.redeliveries == 0 then
                mulligan.error { type = "Later" }
            end
            mulligan.error { type = "Dead" }
        end) },
        collect = { "parked" },
    }
    assert(r:publish("q", "x"))
    r:run_until_empty()
    assert.are.equal(2, #seen)
    assert.is_true(#seen[1].id > 0)
    assert.are.equal(seen[1].id, seen[2].id)
    assert.are.equal(seen[1].id, r:collected("parked")[1].id)
end)

-- ---- Order ------------------------------------------------------------------------------------

group "order:"

test("what is ready comes in the order in which it was published", function()
    local seen, list = {}, {}
    local r = rig { consumers = { C = reader(seen) } }
    for number = 1, 100 do
        list[number] = "m" .. number
    end
    publish(r, table.concat(list, " "))
    r:run_until_empty()
    assert.are.equal(table.concat(list, " "), ids(seen))
end)

test("what is put off comes when it is due, not before", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    publish(r, "late", { delay = "2h" })
    publish(r, "early", { delay = "1h" })
    publish(r, "now")
    counted(r, "q", 0, 2, 0)
    r:advance("59m59.999s")
    assert.are.equal("now", ids(seen))
    r:advance("1ms")
    assert.are.equal("now early", ids(seen))
    r:advance("59m59.999s")
    assert.are.equal("now early", ids(seen))
    r:advance("1ms")
    assert.are.equal("now early late", ids(seen))
end)

test("what has come to be due goes first, by due time, then by sequence", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) }, start = false }
    publish(r, "x y")
    publish(r, "third", { delay = "2s" })
    publish(r, "first", { delay = "1s" })
    publish(r, "second", { delay = "1s" })
    publish(r, "never", { delay = "1h" })
    r:advance("3s")
    assert(r.engine:start())
    r:advance(0)
    assert.are.equal("first second third x y", ids(seen))
end)

test("what is redelivered at once goes to the end", function()
    local seen = {}
    local r = rig {
        policy = 'require("mulligan.policy").bus():default():redeliver(1, 0)',
        consumers = { C = reader(seen, function(msg)
            if msg.id == "a" and msg.redeliveries == 0 then
                mulligan.error "once more"
            end
        end, { concurrency = 1, prefetch = 1 }) },
        start = false,
    }
    publish(r, "a b c d e f")
    assert(r.engine:start())
    r:run_until_empty()
    assert.are.equal("a b c d e f a", ids(seen))
end)

test("a wall clock that is set back stalls nothing, and hurries nothing", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    publish(r, "before", { delay = "1h" })
    r.clock:step("24h", true)
    publish(r, "after", { delay = "2h" })
    publish(r, "now")
    r:advance("59m")
    assert.are.equal("now", ids(seen))
    r:advance("1m")
    assert.are.equal("now before", ids(seen))
    r:advance("59m")
    assert.are.equal("now before", ids(seen))
    r:advance("1m")
    assert.are.equal("now before after", ids(seen))
end)

-- ---- Credit -----------------------------------------------------------------------------------

group "credit"

test("bounds what is out", function()
    local at_work, most = 0, 0
    local r = rig { consumers = { C = {
        queue = "q", concurrency = 2, prefetch = 3, timeout = false,
        handler = function()
            at_work = at_work + 1
            most = math.max(most, at_work)
            mulligan.sleep "1m"
            at_work = at_work - 1
        end,
    } } }
    publish(r, ("m "):rep(20))
    counted(r, "q", 15, 0, 5)
    r:advance("59s")
    counted(r, "q", 15, 0, 5)
    -- From then on as many again as the prefetch, for those that are being settled.
    for _ = 1, 4 do
        r:advance("1m")
        local claimed = r:depth("q").claimed
        assert.is_true(claimed <= 2 + 3 + 3, claimed)
    end
    r:run_until_empty()
    assert.are.equal(2, most)
    assert.are.equal(20, r:counts().done)
end)

test("is each consumer's own, and no message is handed to two", function()
    local seen, by = {}, { C = 0, D = 0 }
    local function consumer(which)
        return {
            queue = "q", concurrency = 3, prefetch = 1,
            handler = function(msg)
                assert(not seen[msg.id], "handed out twice")
                seen[msg.id] = true
                by[which] = by[which] + 1
                mulligan.sleep "1s"
            end,
        }
    end
    local r = rig { consumers = { C = consumer "C", D = consumer "D" } }
    for number = 1, 60 do
        publish(r, "m" .. number)
    end
    r:run_until_empty()
    assert.are.equal(60, by.C + by.D)
    assert.is_true(by.C > 10 and by.D > 10, "both had their share")
    assert.are.same({}, r:events("decided"))
end)

test("of one queue isn't used up by another", function()
    local seen = {}
    local r = rig { consumers = {
        Stuck = { queue = "stuck", concurrency = 1, timeout = false, handler = function()
            mulligan.sleep "1h"
        end },
        C = reader(seen),
    } }
    for _ = 1, 50 do
        assert(r:publish("stuck", "x"))
    end
    publish(r, "a b c")
    r:advance "1s"
    assert.are.equal("a b c", ids(seen))
end)

-- ---- Settling ---------------------------------------------------------------------------------

group "settling:"

test("a redelivery comes back when it is due, with new counters and the same content", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        if msg.redeliveries < 2 then
            mulligan.error { type = "Later" }
        end
    end) } }
    assert(r:publish("q", "x", { id = "a", key = "k", headers = { mine = "1" } }))
    r:advance(0)
    local depth = counted(r, "q", 0, 1, 0)
    assert.is_true(depth.next_due_ms > r.clock:wall())
    r:run_until_empty()
    assert.are.equal("a a a", ids(seen))
    for number, msg in ipairs(seen) do
        assert.are.equal(number - 1, msg.redeliveries)
        assert.are.equal(1, msg.deliveries)
        assert.are.equal("1", msg.headers.mine)
        assert.are.equal("k", msg.key)
    end
    assert.is_nil(seen[3].headers["mulligan-reason"])
    assert.are.equal(2, r:counts().redelivered)
end)

test("a dead letter is one copy elsewhere, and the original is gone", function()
    local r = rig {
        consumers = { C = reader({}, function()
            mulligan.error { type = "Dead", message = "because" }
        end) },
        collect = { "parked" },
    }
    assert(r:publish("q", "x", { id = "a", type = "T", key = "k", headers = { mine = "1" } }))
    r:run_until_empty()
    local dead = r:collected("parked")
    assert.are.equal("a", ids(dead))
    assert.are.same({ "T", "k", "x", "parked", 1 },
        { dead[1].type, dead[1].key, dead[1].body, dead[1].queue, dead[1].deliveries })
    assert.are.equal("1", dead[1].headers.mine)
    assert.are.equal("q", dead[1].headers["mulligan-queue"])
    assert.are.equal("Dead", dead[1].headers["mulligan-error-type"])
    assert.are.equal("because", dead[1].headers["mulligan-error-message"])
    counted(r, "q", 0, 0, 0)
end)

test("a dead letter stays where nobody reads its queue", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Unknown" }
    end) } }
    publish(r, "a b")
    r:run_until_empty()
    counted(r, "error", 2, 0, 0)
end)

test("a discarded message is gone", function()
    local r = rig { consumers = { C = reader({}, function()
        mulligan.error { type = "Drop" }
    end) } }
    publish(r, "a")
    r:run_until_empty()
    counted(r, "q", 0, 0, 0)
    counted(r, "error", 0, 0, 0)
    counted(r, "parked", 0, 0, 0)
    assert.are.equal(1, r:counts().discarded)
end)

test("a retry is no new hand-out", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        if msg.attempt < 3 then
            mulligan.error { type = "Again" }
        end
    end) } }
    publish(r, "a")
    r:advance "1s"
    counted(r, "q", 0, 0, 1)
    r:run_until_empty()
    assert.are.equal(3, #seen)
    assert.are.equal(1, seen[3].deliveries)
end)

test("a stop gives back what was claimed", function()
    local consumer = reader({}, function()
        mulligan.sleep "1h"
    end, { concurrency = 2, prefetch = 3, timeout = false })
    local r = rig { consumers = { C = consumer }, grace = "10s" }
    publish(r, "a b c d e f g")
    counted(r, "q", 2, 0, 5)
    r:stop()
    counted(r, "q", 7, 0, 0)
end)

test("what was given back is uncounted, and at its old place", function()
    local seen, asleep = {}, true
    local consumer = reader(seen, function()
        if asleep then
            mulligan.sleep "1h"
        end
    end, { concurrency = 2, prefetch = 3, timeout = false })
    local first = rig { consumers = { C = consumer } }
    publish(first, "a b c d e f g")
    first:stop()
    close(first)
    asleep, seen[1], seen[2] = false, nil, nil
    consumer.concurrency = 1
    rig({ consumers = { C = consumer } }):run_until_empty()
    assert.are.equal("a b c d e f g", ids(seen))
    for _, msg in ipairs(seen) do
        assert.are.same({ 1, 1, 0 }, { msg.deliveries, msg.attempt, msg.calls })
    end
end, "durable")

test("what waits to be redelivered survives a stop", function()
    local seen = {}
    local consumer = reader(seen, function(msg)
        if msg.redeliveries == 0 then
            mulligan.error { type = "Later" }
        end
    end)
    local first = rig { consumers = { C = consumer } }
    publish(first, "a")
    first:stop()
    local clock = first.clock
    close(first)
    local second = rig { consumers = { C = consumer }, clock = clock }
    counted(second, "q", 0, 1, 0)
    second:run_until_empty()
    assert.are.equal("a a", ids(seen))
    assert.are.same({ 1, 1 }, { seen[2].redeliveries, seen[2].calls })
end, "durable")

test("a close with a handler at work ends, and loses nothing", function()
    local seen, asleep = {}, true
    local consumer = reader(seen, function()
        if asleep then
            mulligan.sleep "1h"
        end
    end, { timeout = false })
    local first = rig { consumers = { C = consumer } }
    publish(first, "a b")
    assert.are.equal(1, #seen)
    close(first)
    asleep, seen[1] = false, nil
    rig({ consumers = { C = consumer } }):run_until_empty()
    assert.are.equal("a b", ids(seen))
end, "durable")

-- ---- What a handler sends ---------------------------------------------------------------------

group "what a handler sends"

local function sender(fails)
    return reader({}, function(msg)
        mulligan.send("next", "to " .. msg.id, { id = "s-" .. msg.id, headers = { from = msg.id } })
        mulligan.send("next", "later", { id = "l-" .. msg.id, delay = "1h" })
        if msg.attempt <= fails then
            mulligan.error { type = fails < 9 and "Again" or "Dead" }
        end
    end)
end

test("goes out with the acknowledgement", function()
    local r = rig { consumers = { C = sender(0) }, collect = { "next" } }
    publish(r, "a")
    r:advance(0)
    local sent = r:collected("next")
    assert.are.equal("s-a", ids(sent))
    assert.are.equal("to a", sent[1].body)
    assert.are.equal("a", sent[1].headers.from)
    r:advance "1h"
    assert.are.equal("s-a l-a", ids(sent))
end)

test("goes out once, after the retry that succeeds", function()
    local r = rig { consumers = { C = sender(2) }, collect = { "next" } }
    publish(r, "a")
    r:advance "1.999s"
    assert.are.equal("", ids(r:collected("next")))
    r:run_until_empty()
    assert.are.equal("s-a l-a", ids(r:collected("next")))
end)

test("never goes out where it fails", function()
    local r = rig { consumers = { C = sender(9) }, collect = { "next", "parked" } }
    publish(r, "a")
    r:run_until_empty()
    assert.are.equal("a", ids(r:collected("parked")))
    assert.are.equal("", ids(r:collected("next")))
end)

-- ---- Faults -----------------------------------------------------------------------------------

group "faults:"

test("a settle that fails is tried again, and nothing is done twice", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen, function(msg)
        mulligan.send("next", "x", { id = "s-" .. msg.id })
    end) }, collect = { "next" } }
    r:fault("settle", { times = 3, code = "io" })
    publish(r, "a b")
    r:run_until_empty()
    assert.are.equal("a b", ids(seen))
    assert.are.equal("s-a s-b", ids(r:collected("next")))
    assert.are.equal(0, #r:events("decided"))
end)

test("a publish that fails says so, and the next one works", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:fault("publish", { times = 1, code = "io" })
    local done, _, code = r:publish("q", "x", { id = "a" })
    assert.is_nil(done)
    assert.are.equal("io", code)
    publish(r, "b")
    r:run_until_empty()
    assert.are.equal("b", ids(seen))
end)

test("whatever fails when, each message comes to one end", function()
    local random = testing.random(7)
    local ends, expected = {}, {}
    local r = rig {
        policy = [[
            local bus = require("mulligan.policy").bus()
            bus:on("Soon"):redeliver(50, "1s", "constant")
            bus:on("Drop"):discard()
            bus:on("Dead"):dead_letter("parked")
            bus:default():dead_letter()
        ]],
        consumers = { C = {
            queue = "q", concurrency = 7, prefetch = 4,
            handler = function(msg)
                if random:chance(0.3) then
                    mulligan.sleep "700ms"
                end
                if msg.redeliveries < #msg.body % 4 then
                    mulligan.error { type = "Soon" }
                end
                local last = #msg.body // 4
                if last == 1 then
                    mulligan.error { type = "Drop" }
                elseif last == 2 then
                    mulligan.error { type = "Dead" }
                end
                mulligan.send("next", "x", { id = msg.id })
            end,
        } },
        collect = { "next", "parked" },
    }
    local discarded = 0
    for number = 1, 300 do
        local id, size = "m" .. number, random(12) - 1
        if random:chance(0.1) then
            r:fault("settle", { skip = random(3) - 1, times = random(4) })
        end
        assert(r:publish("q", ("x"):rep(size), { id = id }))
        if size // 4 == 1 then
            discarded = discarded + 1
        else
            expected[id] = size // 4 == 2 and "parked" or "next"
        end
    end
    r:run_until_empty()
    for _, queue in ipairs { "next", "parked" } do
        for _, msg in ipairs(r:collected(queue)) do
            assert.is_nil(ends[msg.id], msg.id .. " has two ends")
            ends[msg.id] = queue
        end
    end
    assert.are.same(expected, ends)
    assert.are.equal(discarded, r:counts().discarded)
end)

-- ---- The rest ---------------------------------------------------------------------------------

group "counting:"

test("depth tells ready, delayed and claimed apart", function()
    local r = rig { consumers = { C = {
        queue = "q", concurrency = 1, prefetch = 1, timeout = false,
        handler = function()
            mulligan.sleep "30m"
        end,
    } } }
    counted(r, "q", 0, 0, 0)
    assert.is_nil(r:depth("q").next_due_ms)
    publish(r, "a b c d e")
    publish(r, "f", { delay = "2h" })
    publish(r, "g", { delay = "1h" })
    local depth = counted(r, "q", 3, 2, 2)
    assert.are.equal(r.clock:wall() + 3600000, depth.next_due_ms)
    counted(r, "another", 0, 0, 0)
end)

group "claims:"

test("a claim with a timeout is held as long as its handler works", function()
    local seen = {}
    local r = rig { url = place.claim_timeout_url, consumers = { C = reader(seen, function()
        mulligan.sleep "10m"
    end, { timeout = false }) } }
    publish(r, "a")
    r:run_until_empty()
    assert.are.equal("a", ids(seen))
    assert.are.equal(1, r:counts().done)
end, "claim_timeout")

test("a claim that isn't held is lost: handed out again, counted, and the late end settles nothing", function()
    local seen = {}
    local r = rig { url = place.claim_timeout_url, consumers = { C = reader(seen, function(msg)
        if msg.deliveries == 1 then
            mulligan.sleep "45s"
        end
    end, { timeout = false, concurrency = 4 }) } }
    r:fault("hold", { times = 3 })
    publish(r, "a")
    r:advance "29.999s"
    assert.are.equal("a", ids(seen))
    r:advance "1ms"
    assert.are.equal("a a", ids(seen))
    assert.are.equal(2, seen[2].deliveries)
    r:run_until_empty()
    r:advance "1h"
    assert.are.equal(2, #seen)
    assert.are.equal(1, r:counts().done)
    counted(r, "q", 0, 0, 0)
end, "claim_timeout")

test("several that are lost come again in their order", function()
    local seen = {}
    local r = rig { url = place.claim_timeout_url, consumers = { C = reader(seen, function(msg)
        if msg.deliveries == 1 then
            mulligan.sleep "45s"
        end
    end, { timeout = false, concurrency = 8, prefetch = 1 }) } }
    r:fault("hold", { times = 30 })
    publish(r, "a b c")
    r:run_until_empty()
    assert.are.equal("a b c a b c", ids(seen))
end, "claim_timeout")

-- ---- What a spec calls -------------------------------------------------------------------------

return function(name, has, make)
    busted.describe("transport " .. name .. ":", function()
        busted.before_each(function()
            place, open = make(), {}
        end)
        busted.after_each(function()
            while #open > 0 do
                close(open[#open])
            end
            if place.remove then
                place.remove()
            end
        end)
        for _, one in ipairs(tests) do
            if not one.need or has[one.need] then
                busted.it(one.name, one.run)
            end
        end
    end)
end
