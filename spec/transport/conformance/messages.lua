-- messages.lua: what is published comes, byte for byte, and is gone when it was handled.
local assert = require "luassert"
local mulligan = require "mulligan"
local stage = require "transport.conformance.stage"
local testing = require "mulligan.testing"

local ids, reader, rig = stage.ids, stage.reader, stage.rig
local case = stage.group "a message"

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
    { "no byte", "" },
    { "one NUL", "\0" },
    { "every byte", every_byte() },
    { "1 MiB", noise(1 << 20) },
    { "what looks like SQL", "'); DROP TABLE messages; --" },
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

local function a_hundred()
    local headers = {}
    for number = 1, 100 do
        headers["header-" .. number] = ("v"):rep(number % 7) .. number
    end
    return headers
end

-- once_more fails in a way that is redelivered, then in one that is dead-lettered.
local function once_more(msg)
    mulligan.error { type = msg.redeliveries == 0 and "Soon" or "Dead" }
end

-- comes_back gives a message as it was handed out first, as it was redelivered, and as a dead letter.
local function comes_back(body, options)
    local seen = {}
    local r = rig { consumers = { C = reader(seen, once_more) }, collect = { "parked" } }
    assert(r:publish("q", body, options))
    r:ends(2)
    assert.are.equal(2, #seen)
    return seen[1], seen[2], r:collected("parked")[1]
end

case("is handled and then gone", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:send "a"
    r:ends(1)
    assert.are.equal("a", ids(seen))
    assert.are.same({ "body of a", "q", 1 }, { seen[1].body, seen[1].queue, seen[1].deliveries })
    r:counted("q", 0, 0, 0)
end)

case("waits for a consumer that comes later", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) }, start = false }
    r:send "a b"
    r:counted("q", 2, 0, 0)
    assert(r.engine:start())
    r:ends(2)
    assert.are.equal("a b", ids(seen))
end)

case("keeps its id, type and key", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    assert(r:publish("q", "x", { id = "id-東京", type = "OrderPlaced", key = "42'\"" }))
    assert(r:publish("q", "x", { id = "" , type = "", key = "" }))
    assert(r:publish("q", "x", { id = "bare" }))
    r:ends(3)
    assert.are.same({ "id-東京", "OrderPlaced", "42'\"" }, { seen[1].id, seen[1].type, seen[1].key })
    assert.are.same({ "", "" }, { seen[2].type, seen[2].key })
    assert.is_nil(seen[3].type)
    assert.is_nil(seen[3].key)
end)

for _, row in ipairs(BODIES) do
    case("keeps its body byte for byte: " .. row[1], function()
        local body = row[2]
        local first, again, dead = comes_back(body, { id = "a" })
        -- Not are.equal: a megabyte in its message helps nobody.
        assert.is_true(first.body == body, "as published")
        assert.is_true(again.body == body, "redelivered")
        assert.is_true(dead.body == body, "as a dead letter")
    end, "delay")
end

for _, row in ipairs { { "unicode, empty, long ones", HEADERS }, { "100 of them", a_hundred() } } do
    case("keeps its headers: " .. row[1], function()
        local headers = row[2]
        local first, again, dead = comes_back("x", { id = "a", headers = headers })
        assert.are.same(headers, first.headers)
        for header, value in pairs(headers) do
            assert.are.equal(value, again.headers[header])
            assert.are.equal(value, dead.headers[header])
        end
    end, "delay")
end

case("without headers has none", function()
    local seen = {}
    local r = rig { consumers = { C = reader(seen) } }
    r:send "a"
    r:ends(1)
    assert.are.same({}, seen[1].headers)
end)

case("without an id keeps the one that it is given", function()
    local first, again, dead = comes_back("x", {})
    assert.is_true(#first.id > 0)
    assert.are.same({ first.id, first.id }, { again.id, dead.id })
end, "delay")
