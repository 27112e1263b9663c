-- Keys that collide: numbers are their own hashes, modulo one less than the places of a table, so that looking one up
-- walks through all of them. None of these tests measures time: without the bounds, most of them wouldn't end.
local loading = require "support.loading"

local spent_load, spent_call = "more than 50000000 instructions", "more than 100000 instructions"

-- What a matcher with that body comes to: whether it passed, and why it failed.
local function matched(body, before)
    local events = {}
    local policy = loading.good(loading.statements(("%s\nbus:on('A', function() %s return true end):discard()")
        :format(before or "", body)), { event = function(event) events[#events + 1] = event end })
    local verdict = assert(policy:decide { error = { type = "A" } })
    policy:close()
    return verdict.reason == "rule", events[1] and events[1].text
end

local function assert_spent_load(text)
    local lines = loading.refused(text)
    assert.equal(1, #lines)
    assert.matches(spent_load, lines[1], 1, true)
end

local function assert_spent_call(body, before)
    local passed, why = matched(body, before)
    assert.is_false(passed)
    assert.matches(spent_call, why, 1, true)
end

-- A table of so many keys that collide.
local function table_of(keys, places)
    return ("local t = {} for i = 1, %d do t[i * %d] = 'x' end"):format(keys, (places or 1 << 20) - 1)
end

-- A list of numbers, as a policy's text.
local function numbers(count, number)
    local list = {}
    for i = 1, count do list[i] = number(i) end
    return table.concat(list, ",")
end

local integers = {
    ["1,000,000 integers"] = table_of(1000000),
    ["1,000,000 integers, which functions of C write"] =
        "local t, one = {}, { 1 } for i = 1, 1000000 do table.move(one, 1, 1, i * 1048575, t) end",
}

-- Loads of these take seconds.
local attacks = {
    ["1,000,000 floats"] = "local t = {} for i = 1, 1000000 do t[2 ^ 40 + i / 4096] = i end",
    ["a table that is filled anew for each key"] =
        "local t, i = {}, 0 while true do i = i + 1 t[i * 32767] = true t[(i - 32767) * 32767] = nil end",
}

describe("keys that collide", function()
    for what, text in pairs(integers) do
        attacks[what] = text
        it("end a load: " .. what, function()
            assert_spent_load(text)
            assert_spent_load(("while true do pcall(function() %s end) end"):format(text))
        end)
    end

    for what, text in pairs(attacks) do
        it("end a matcher: " .. what, function()
            assert_spent_call(text)
            assert_spent_call(("while true do pcall(pcall, function() %s end) end"):format(text))
        end)
    end

    it("are counted for each instruction that may look one up", function()
        local body = "for i = 1, 5000 do local _ = t[-i] end"
        assert.is_true((matched(body, table_of(2000, 2048))))
        assert_spent_call(body, table_of(30000))
        assert_spent_load(table_of(16000) .. " for i = 1, 1000000 do local _ = t[-i] end")
    end)

    for _, body in ipairs {
        "for _ = 1, 100 do table.unpack(t, 1, 200) end",
        "for _ = 1, 100 do pcall(table.concat, t, '', 1, 200) end",
        "for _ = 1, 100 do table.move(t, 1, 200, 1, {}) end",
        "local s = ('a'):rep(200) for _ = 1, 40 do s:gsub('a', t) end",
    } do
        it("are counted for functions of C: " .. body, function()
            assert.is_true((matched(body, table_of(2000))))
            assert_spent_call(body, table_of(30000))
        end)
    end

    it("are counted in a table that a sort fills", function()
        assert_spent_call("for i = 1, 5000 do local _ = t[-i] end", [[
local t = {}
for i = 1, 64 do t[i] = i end
local first = true
table.sort(t, function(a, b)
    if first then
        first = false
        for i = 1, 64 do t[i] = nil end
        for i = 1, 16384 do t[-i * 32767] = i end
    end
    return a < b
end)]])
    end)

    it("are counted where a full table is filled anew for a key, in one instruction", function()
        local text = [[
local t = {}
for i = 1, 8192 do t[-i] = i end
for i = 1, %d do t[-i] = nil t[-i - 8192] = i end]]
        loading.good(text:format(20)):close()
        assert_spent_load(text:format(300))
    end)

    it("of an earlier call cost the next one nothing", function()
        local policy = loading.good(loading.statements [[
local n = 0
bus:on("A", function()
    n = n + 1
    if n == 1 then
        local t = {}
        for i = 1, 5000 do t[-i] = i end
        return true
    end
    for i = 1, 40000 do end
    return true
end):discard()]])
        for _ = 1, 3 do
            assert.equal("rule", policy:decide({ error = { type = "A" } }).reason)
        end
        policy:close()
    end)
end)

describe("a text whose numbers collide", function()
    for what, number in pairs {
        integers = function(i) return tostring(i * 1048575) end,
        ["floats in hexadecimal"] = function(i) return ("0x1.%08xp1"):format(i) end,
        ["numbers that are made of short ones"] = function(i) return ("%d<<10|%d"):format(i // 1000, i % 1000) end,
    } do
        it("ends a load: " .. what, function()
            assert_spent_load("local t = {" .. numbers(200000, number) .. "}")
        end)
    end

    it("ends a load where few of them are looked up beside many names", function()
        local list = numbers(4000, function(i) return tostring(i * 1048575) end)
        loading.good("local t = {" .. list .. "}"):close()
        assert_spent_load("local t = {" .. list .. (",a"):rep(1000000) .. "}")
    end)

    it("has those only that Lua sees: none in strings and comments", function()
        local list = numbers(2000, function(i) return tostring(i * 1048575) end)
        local names = "\nlocal _ = {" .. ("a,"):rep(1600000) .. "}"
        for _, form in ipairs { "--%d\n", "--[[%d]]", "--[==[]]%d]==]", "_='\\'%d'", '_="\\\\" .. "%d"', "_=[[%d]]",
            "_=[=[]]%d]=]", "_='\\z\n%d'" } do
            local lines = list:gsub("(%d+),?", function(number) return form:format(number) .. "\n" end)
            loading.good(lines .. names):close()
        end
        for _, before in ipairs { "--\n", "--[[]]", "--[==[]]]==]", "--[=\n",
            "_='\\\\'", '_="\\""', "_=[[\\]]", "_=[=[]]]=]", "_='\\\r\n\"'", "_=({})[1]" } do
            assert_spent_load(before .. " local _ = {" .. list .. "}" .. names)
        end
    end)
end)

describe("what is fair", function()
    it("is a table of thousands of keys beside thousands of rules", function()
        local policy = loading.good(loading.statements [[
local t = {}
for i = 1, 5000 do t["key" .. i] = i end
for i = 1, 5000 do bus:on("Type" .. i):dead_letter("parked") end
bus:on("A", function(err) return t[err.message] == 7 end):discard()]])
        assert.equal("rule", policy:decide({ error = { type = "A", message = "key7" } }).reason)
        policy:close()
    end)

    it("is a text with a table of thousands of numbers", function()
        local rows = numbers(10000, function(i) return ("[%d]=%d"):format(1000000 + 7 * i, 1000 * i) end)
        loading.good("local t = {" .. rows .. "}"):close()
    end)

    it("is what the words keep for many rules, each unlike all others", function()
        local policy = loading.good(loading.statements [[
for i = 1, 12000 do bus:on("Type" .. i):retry(3, i .. "ms") end
bus:on("A", function() for i = 1, 40000 do end return true end):discard()]])
        assert.equal("rule", policy:decide({ error = { type = "A" } }).reason)
        policy:close()
    end)
end)
