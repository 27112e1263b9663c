-- Budgets: what ends a load and a call of a matcher, that no pcall catches it, and that what is fair fits in.
local mulligan = require "mulligan"
local loading = require "support.loading"

-- What a budget says in a load, and in a call.
local says = {
    instructions = { "more than 50000000 instructions", "more than 100000 instructions" },
    at_once = { "more than 64 MiB of memory;", "more than 1 MiB of memory;" },
    values = { nil, "more than 1 MiB of memory;" }, -- a load has room for so many that it takes minutes
    calls = { nil, "more than 100000 instructions" }, -- loads of these take a while, and say nothing more
    in_all = { "more than 1 GiB of memory in all", "more than 16 MiB of memory in all" },
}

-- What a matcher with that body comes to: whether it passed, and why it failed.
local function matched(body, before, message)
    local events = {}
    local policy = loading.good(loading.statements(("%s\nbus:on('A', function(err, ctx) %s end):discard()")
        :format(before or "", body)), { event = function(event) events[#events + 1] = event end })
    local verdict = assert(policy:decide { error = { type = "A", message = message or "some text" } })
    policy:close()
    return verdict.reason == "rule", events[1] and events[1].text
end

local attacks = {
    ["while true do end"] = "calls",
    ["while true do pcall(function() while true do end end) end"] = "calls",
    ["local function f() pcall(f) while true do end end f()"] = "calls",
    ["local function f() return 1 + f() end f()"] = "at_once",
    ["local function f(...) return f(1, ...) end f()"] = "values",
    ["for _ in function() return 1 end do end"] = "calls",
    ["('a'):rep(9000):find(('.-'):rep(6) .. 'b')"] = "instructions",
    ["('a'):rep(9000):match(('a*'):rep(6) .. 'b')"] = "instructions",
    ["for _ in ('a'):rep(9000):gmatch(('.-'):rep(6) .. 'b') do end"] = "instructions",
    ["('a'):rep(9000):gsub(('a?'):rep(40) .. 'b', '')"] = "instructions",
    ["local s = ('a'):rep(4000) while true do s:find('b', 1, true) end"] = "calls",
    ["local s = ('a'):rep(4000) while true do s:upper() end"] = "calls",
    ["while true do ('%99.99f'):format(1e308) end"] = "calls",
    ["local f = utf8.codes('a') while true do pcall(f, ('\\x80'):rep(2000), 1) end"] = "calls",
    ["table.move({}, 1, 1 << 62, 2)"] = "instructions",
    ["table.concat({}, '', 1, 1 << 62)"] = "instructions",
    ["local t = {} while true do t = { t } end"] = "at_once",
    ["local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end"] = "at_once",
    ["('x'):rep(1 << 27)"] = "at_once",
    ["('x'):rep(1 << 10):rep(1 << 17)"] = "at_once",
    ["local s = ('x'):rep(1000) while true do local _ = s .. 'y' end"] = "in_all",
}

describe("a budget", function()
    for text, what in pairs(attacks) do
        if says[what][1] then
            it("ends a load that runs " .. text, function()
                local lines = loading.refused(text)
                assert.equal(1, #lines)
                assert.matches(says[what][1], lines[1], 1, true)
            end)
        end

        it("ends a matcher that runs " .. text, function()
            for _, body in ipairs({ text, ("pcall(function() %s end) return true"):format(text),
                ("while true do pcall(pcall, function() %s end) end"):format(text) }) do
                local passed, why = matched(body)
                assert.is_false(passed)
                assert.matches(says[what][2], why, 1, true)
            end
        end)
    end

    it("counts the bytes of a string that is made longer by one, ten million times", function()
        local text = "local s = '' for i = 1, 10000000 do s = s .. 'x' end"
        assert.matches("policy.lua:1: more than ", loading.refused(text)[1], 1, true)
        assert.is_false((matched(text .. " return true")))
    end)

    it("has nothing taken from it for a long text that a function doesn't come to", function()
        local body = "if err.type == '%s' then return err.message == 'x' end return "
            .. ("err.type == 'B' or "):rep(100) .. "true"
        assert.is_true((matched(body:format("B"), nil, ("x"):rep(1000000))))
        assert.is_false((matched(body:format("A"), nil, ("x"):rep(1000000))))
    end)

    -- Each of these goes over a text of that size, and gives next to nothing.
    for before, body in pairs({
        ["local f = ('<'):rep(%d)"] = "string.unpack(f, '')",
        ["local s = ('x'):rep(%d)"] = "string.find('', s)",
        ["local s = 'z' .. (' '):rep(%d)"] = "tonumber(s, 36)",
        ["local s = ('\\xc3\\xa4'):rep(%d)"] = "utf8.len(s)",
        ["local s = '%%f[a' .. ('x'):rep(%d) .. ']b'"] = "string.match('aa', s, 2)",
    }) do
        it("counts what is gone over by " .. body, function()
            body = ("for _ = 1, 2000 do %s end return true"):format(body)
            assert.is_true((matched(body, before:format(2))))
            local passed, why = matched(body, before:format(4000))
            assert.is_false(passed)
            assert.matches(says.instructions[2], why, 1, true)
        end)
    end

    it("counts the ancestors that err:is goes through", function()
        local declared = "for i = 1, %d do policy.errors { [i == 1 and 'A' or 'A' .. i] = 'A' .. i + 1 } end"
        local body = "for _ = 1, 2000 do local _ = err:is('B') end return err:is('A%d')"
        assert.is_true((matched(body:format(11), declared:format(10))))
        local passed, why = matched(body:format(3001), declared:format(3000))
        assert.is_false(passed)
        assert.matches(says.instructions[2], why, 1, true)
    end)

    it("lets pass what is fair", function()
        for _, body in ipairs({
            "local function down(n) return n == 0 and 0 or 1 + down(n - 1) end return down(150) == 150",
            "local t = {} for i = 1, 2000 do t[i] = i end return select('#', table.unpack(t)) == 2000",
            "for i = 1, 10000 do local _ = err.message end return true",
            "local n = 0 for _ in (('word '):rep(1000)):gmatch('%a+') do n = n + 1 end return n == 1000",
            "return #('x'):rep(300000) == 300000",
            "local s = ('x'):rep(9000) for i = 1, #s do local _ = s:byte(i) end return true",
            "local s = ('x'):rep(100000) for i = 1, 6 do local _ = table.concat({ s, i, s }) end return true",
            "local s = ('x'):rep(60000) for i = 1, 100 do local _ = s == err.message end return true",
        }) do
            local passed, why = matched(body)
            assert.is_true(passed, why)
        end
    end)

    -- From Lua 5.4.6 on this crashed: the memory ran out while Lua moved the stack.
    it("refuses more values on the stack than there is memory for, and says where", function()
        for body, why in pairs {
            ["\nreturn #{ table.unpack({}, 1, 200000) } > 0"] = "policy.lua:3: too many results to unpack",
            ["\nreturn #{ ('x'):rep(200000):byte(1, -1) } > 0"] =
                "policy.lua:3: stack overflow (string slice too long)",
            ["local function f(...)\n return 1 + f(1, ...) end return f()"] = "policy.lua:3: more than 1",
        } do
            local passed, message = matched(body)
            assert.is_false(passed)
            assert.matches(why, message, 1, true)
        end
    end)

    it("of a call is beside what the policy holds", function()
        local before = "local keep = {} for i = 1, 3000 do keep[i] = ('x'):rep(1000) .. i end"
        assert.is_true((matched("return #(('y'):rep(200000)) == 200000 and keep[1] ~= nil", before)))
        local body = "local s, t = ('z'):rep(3000), {} for i = 1, 500 do t[i] = s .. i end return true"
        local passed, why = matched(body, before)
        assert.is_false(passed)
        assert.matches(says.at_once[2], why, 1, true)
    end)

    it("of a call ends one that has next to no memory left, and finds a little by collecting its garbage every time",
        function()
            local body = [[
local x, y, t = ('x'):rep(1500), ('y'):rep(450), {}
for i = 1, %d do t[i] = x .. x end
for _ = 1, %d do local _ = y .. y end return true]]
            local few, many = 0, 400 -- strings with which it passes; with which it doesn't
            while many - few > 1 do
                local some = (few + many) // 2
                if matched(body:format(some, 2000)) then few = some else many = some end
            end
            assert.is_true(few > 300)
            assert.is_true((matched(body:format(many, 20))))
            local _, why = matched(body:format(many, 2000))
            assert.matches(says.at_once[2], why, 1, true)
        end)

    it("of a call begins anew with each", function()
        local policy = loading.good(loading.statements [[
bus:on("A", function() for i = 1, 30000 do end return ("x"):rep(100000) ~= nil end):discard()]])
        for _ = 1, 200 do
            assert.equal("rule", policy:decide({ error = { type = "A" } }).reason)
        end
        policy:close()
    end)

    it("isn't spent by texts that are gone, of whatever size they were", function()
        for _, sizes in ipairs { "40, 100, 200, 300, 350, 400, 450, 480", "480, 450, 400, 350, 300, 200, 100, 40" } do
            loading.good(([[
for _, size in ipairs { %s } do
    local s, t = ("x"):rep(size), {}
    for i = 1, (20 << 20) // (size + 50) do t[i] = s .. i end
end]]):format(sizes)):close()
        end
    end)

    it("of bytes in all that just sufficed is enough for the second run", function()
        local text = loading.statements [[
local s = ("x"):rep(3000)
for i = 1, %d do local _ = s .. i end
bus:on("A", function() return true end):discard("yes")]]
        local policy = loading.good(text:format(350000))
        assert.equal("yes", policy:decide({ error = { type = "A" } }).note)
        policy:close()
        assert.matches(says.in_all[1], loading.refused(text:format(358000))[1], 1, true)
    end)

    it("of instructions that just sufficed is enough for the second run", function()
        local text = loading.statements [[
for i = 1, %d do end
bus:on("A", function() return true end):discard("yes")]]
        local policy = loading.good(text:format(49900000))
        assert.equal("yes", policy:decide({ error = { type = "A" } }).note)
        policy:close()
        assert.matches(says.instructions[1], loading.refused(text:format(50100000))[1], 1, true)
    end)
end)

describe("what a budget leaves room for", function()
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
        local rows = {}
        for i = 1, 10000 do rows[i] = ("[%d]=%d"):format(1000000 + 7 * i, 1000 * i) end
        loading.good("local t = {" .. table.concat(rows, ",") .. "}"):close()
    end)

    it("is what the words keep for many rules, each unlike all others", function()
        local policy = loading.good(loading.statements [[
for i = 1, 12000 do bus:on("Type" .. i):retry(3, i .. "ms") end
bus:on("A", function() for i = 1, 40000 do end return true end):discard()]])
        assert.equal("rule", policy:decide({ error = { type = "A" } }).reason)
        policy:close()
    end)
end)

describe("bytecode", function()
    it("is refused, whichever of its bytes is another", function()
        local code = string.dump(assert(load("local t = {} for i = 1, 10 do t[i] = i end return t", "=x")))
        local seed = tonumber(os.getenv "MULL_SEED") or os.time()
        print(("# MULL_SEED=%d"):format(seed))
        math.randomseed(seed)
        for i = 1, 100 do
            local at = i == 1 and #code or math.random(2, #code)
            local flipped = code:sub(1, at - 1) .. string.char(code:byte(at) ~ math.random(255)) .. code:sub(at + 1)
            assert.same({ "policy.lua:1: this is bytecode; a policy is text" }, loading.refused(flipped))
        end
    end)
end)

describe("the methods of strings", function()
    it("can't be changed", function()
        for text, why in pairs({
            ["getmetatable('').__index = {}"] = "a policy has no getmetatable",
            ["setmetatable({}, { __gc = function() while true do end end })"] = "a policy has no setmetatable",
            ["xpcall(error, function() while true do end end)"] = "a policy has no xpcall",
            ["('').x.y = 1"] = "attempt to index a nil value",
            ["string.upper = 1"] = "string is read-only",
        }) do
            assert.matches(why, loading.refused(text)[1], 1, true)
        end
        assert.is_false((matched "getmetatable('').__index = {} return true"))
        assert.is_nil(mulligan.load_text("(''):dump()"))
    end)
end)
