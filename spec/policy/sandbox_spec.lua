-- What a policy's text has around it, and that nothing leads out of it.
local mulligan = require "mulligan"
local loading = require "support.loading"

-- What a text prints, line by line, where it loads.
local function printed(text)
    local lines = {}
    loading.good(text, { log = function(level, line)
        assert.equal("info", level)
        lines[#lines + 1] = line
    end }):close()
    return lines
end

describe("the sandbox", function()
    it("has what is on its list, and nothing else", function()
        local function keys(name)
            return printed(([[
local keys = {}
for key in pairs(%s) do keys[#keys + 1] = key end
print(table.concat(keys, " "))]]):format(name))[1]
        end
        assert.equal("assert error ipairs math next pairs pcall print require select string table tonumber tostring "
            .. "type utf8", keys "_ENV")
        assert.equal("byte char find format gmatch gsub len lower match pack packsize rep reverse sub unpack upper",
            keys "string")
        assert.equal("concat insert move pack remove sort unpack", keys "table")
        assert.equal("abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min mininteger modf pi "
            .. "rad sin sqrt tan tointeger type ult", keys "math")
        assert.equal("char charpattern codepoint codes len offset", keys "utf8")
    end)

    it("lets no library be changed, while the policy loads or after", function()
        for _, name in ipairs({ "string", "table", "math", "utf8" }) do
            local lines = loading.refused(name .. ".new = 1")
            assert.same({ "policy.lua:1: " .. name .. " is read-only" }, lines)
        end
        assert.matches("string is read%-only", loading.refused("table.insert(string, 1)")[1])
        assert.matches("^policy.lua:1: attempt to index a string value", loading.refused("local s = 'x'; s.rep = 1")[1])
    end)

    it("lets globals be set while the policy loads", function()
        assert.same({ "5" }, printed "x = 5; print(x); pairs = nil")
    end)

    it("reaches its own functions through the methods of strings", function()
        assert.same({ "xxx", "nil", "table|false" },
            printed 'print(("x"):rep(3)); print(("x").dump); print(("%s|%s"):format({}, ("x").dump ~= nil))')
    end)

    it("walks tables in a fixed order", function()
        local text = [[
local t = { [2] = 1, [1] = 1, [0] = 1, [-1.5] = 1, [1e300] = 1, [5] = 1, b = 1, a = 1, B = 1, [true] = 1, [false] = 1,
    [""] = 1, ["a\0"] = 1, ["\xff"] = 1 }
local keys = {}
for key in %s do keys[#keys + 1] = (tostring(key):gsub("[^%%g]", "?")) end
print(table.concat(keys, " "))]]
        for _, walk in ipairs({ "pairs(t)", "next, t" }) do
            assert.same({ "1 2 -1.5 0 5 1e+300  B a a? b ? false true" }, printed(text:format(walk)))
        end
        for _, walk in ipairs({ "pairs({ [print] = 1 })", "next, { [{}] = 1 }" }) do
            local lines = loading.refused(("for _ in %s do end"):format(walk))
            assert.matches("^policy.lua:1: a key that is a %l+ has no place in a fixed order", lines[1])
        end
    end)

    it("walks a word's owner, which has no fields of its own, to the end", function()
        assert.same({ "none" }, printed [[
local policy = require "mulligan.policy"
for key in pairs(policy) do print(key) end
for key in pairs(policy.bus()) do print(key) end
print("none")]])
    end)

    it("lets a table lose and change elements while it is walked", function()
        assert.same({ "1 2 3", "a b", "0" }, printed [[
local t = { 1, 2, 3 }
local seen = {}
for key in pairs(t) do seen[#seen + 1] = key; t[key] = key * 2 end
print(table.concat(seen, " "))
t, seen = { a = 1, b = 2 }, {}
for key in next, t do seen[#seen + 1] = key; t[key] = nil end
print(table.concat(seen, " "))
t = { 1, 2, 3 }
for key in pairs(t) do t[1], t[2], t[3] = nil, nil, nil end
print(#t)]])
    end)

    it("has next for single questions", function()
        assert.same({ "nil", "1 x", "a 1", "true", "nil" }, printed [[
print(next({}))
print(next({ "x" }))
print(next({ [true] = 2, a = 1 }))
print((next({ [true] = 2, a = 1 }, "a")))
print(next({ 1 }, 1))]])
        assert.matches("invalid key to 'next'", loading.refused("next({}, nil) next({ 1 }, 'x')")[1])
        assert.matches("bad argument #1 to 'next' %(table expected, got nil%)", loading.refused("next(nil)")[1])
        assert.matches("bad argument #1 to 'pairs' %(table expected, got string%)", loading.refused("pairs('x')")[1])
    end)

    it("shows no addresses", function()
        assert.same({ "table function function table", "table|function|nil|true|  1.5|x|%", "nan" }, printed [[
print({}, print, function() end, require "mulligan.policy")
print(("%s|%s|%s|%s|%5s|%s|%%"):format({}, print, nil, true, 1.5, "x"))
print(tostring(0/0))]])
        for _, form in ipairs({ "%p", "%5p", "%-20p", "%d%p" }) do
            local lines = loading.refused(("string.format(%q, 1, {})"):format(form))
            assert.matches("'%p' shows an address", lines[1], 1, true)
        end
    end)

    it("shows nan without the sign that the processor gave it", function()
        assert.same({ "nan|  nan|nan  |nan|     nan|nan|nan|%|1.5" }, printed [[
local nan = 0/0
print(("%f|%5.1f|%-5g|%+e|%08.3f|%s|%.1f|%%|%g"):format(nan, -nan, nan, nan, nan, nan, -nan, 1.5))]])
    end)

    it("formats as Lua does", function()
        assert.same({ '"a" 007 1f 2.5 x%' }, printed 'print(("%q %03d %x %.1f %s%%"):format("a", 7, 31, 2.5, "x"))')
        assert.matches("bad argument #2 to 'format' %(no value%)", loading.refused('string.format("%s")')[1])
        assert.matches("^policy.lua:1: bad argument #2 to 'format' %(number expected, got string%)",
            loading.refused('string.format("%d", "x")')[1])
    end)

    it("sorts stably, and the same everywhere", function()
        assert.same({ "1 3 5 9", "9 5 3 1", "a b c", "same", "" }, printed [[
local t = { 5, 3, 9, 1 }
table.sort(t) print(table.concat(t, " "))
table.sort(t, function(a, b) return a > b end) print(table.concat(t, " "))
t = { "c", "a", "b" } table.sort(t) print(table.concat(t, " "))
local many = {}
for i = 1, 1000 do many[i] = { key = i * 7919 % 13, i = i } end
table.sort(many, function(a, b) return a.key < b.key end)
for i = 2, 1000 do
    local a, b = many[i - 1], many[i]
    assert(a.key < b.key or a.key == b.key and a.i < b.i)
end
print("same")
t = {} table.sort(t) print(table.concat(t))]])
        assert.matches("attempt to compare number with string", loading.refused("table.sort({ 1, 'x' })")[1])
        assert.matches("attempt to compare two table values", loading.refused("table.sort({ {}, {} })")[1])
        assert.matches("bad argument #2 to 'sort'", loading.refused("table.sort({}, 5)")[1])
        assert.matches("^policy.lua:1: mine", loading.refused("table.sort({ 1, 2 }, function() error('mine') end)")[1])
    end)

    it("reads text with a byte order mark and CRLF, and any UTF-8", function()
        assert.same({ "ä 2" }, printed "\xEF\xBB\xBFlocal s = 'ä'\r\nprint(s, #s)\r\n")
        local lines = loading.refused("\xEF\xBB\xBFlocal x\r\n\r\nerror('here')\r\n")
        assert.same({ "policy.lua:3: here" }, lines)
    end)

    it("runs a required file once, with its own name", function()
        local folder, remove = loading.folder {
            ["policy.lua"] = [[
local one, two = require "lib.one", require "lib.one"
print(one == two, one.name, one.file, require "lib.none", shared)]],
            ["lib/one.lua"] = 'print("once") shared = 7 local name, file = ... return { name = name, file = file }',
            ["lib/none.lua"] = "",
        }
        local lines = {}
        local policy = mulligan.load(folder .. "/policy.lua", { log = function(_, line) lines[#lines + 1] = line end })
        remove()
        assert.same({ "once", "true lib.one lib/one.lua true 7" }, lines)
        policy:close()
    end)

    it("runs a required file once more where it raised before", function()
        local folder, remove = loading.folder {
            ["policy.lua"] = 'print(pcall(require, "a")) print(pcall(require, "a")) print(require "a")',
            ["a.lua"] = 'times = (times or 0) + 1 if times == 1 then error("first", 0) end return times',
        }
        local lines = {}
        local policy = assert(mulligan.load(folder .. "/policy.lua", { log = function(_, line)
            lines[#lines + 1] = line
        end }))
        remove()
        assert.same({ "false first", "true 2", "2" }, lines)
        policy:close()
    end)

    it("names a policy by the content of all its files", function()
        local function name(texts)
            local folder, remove = loading.folder(texts)
            local policy = assert(mulligan.load(folder .. "/policy.lua"))
            remove()
            local generation = policy:generation()
            policy:close()
            return generation
        end
        local main = 'require "a"'
        local first = name { ["policy.lua"] = main, ["a.lua"] = "x = 1" }
        assert.matches("^%x+$", first)
        assert.equal(32, #first)
        assert.equal(first, name { ["policy.lua"] = main, ["a.lua"] = "x = 1", ["b.lua"] = "not required" })
        assert.not_equal(first, name { ["policy.lua"] = main, ["a.lua"] = "x = 2" })
        assert.not_equal(first, name { ["policy.lua"] = main .. " ", ["a.lua"] = "x = 1" })
    end)

    it("keeps the files for its functions: what is on the disk later doesn't count", function()
        local folder, remove = loading.folder {
            ["policy.lua"] = 'local policy, a = require "mulligan.policy", require "a"\n'
                .. 'policy.bus():on("X", function() return a.yes end):discard(a.note)',
            ["a.lua"] = 'return { yes = true, note = "kept" }',
        }
        local policy = assert(mulligan.load(folder .. "/policy.lua"))
        remove()
        assert.equal("kept", policy:decide({ error = { type = "X" } }).note)
        policy:close()
    end)
end)

describe("a budget", function()
    local endless = {
        ["while true do end"] = "instructions",
        ["while true do pcall(function() while true do end end) end"] = "instructions",
        ["local function f() pcall(f) while true do end end f()"] = "instructions",
        ["repeat local ok = pcall(error) until ok"] = "instructions",
        ["for _ in function() return 1 end do end"] = "instructions",
        ["('x'):rep(10):gsub('x', function() while true do end end)"] = "instructions",
        ["local s = 'x' while true do s = s .. s end"] = "memory",
        ["local s = 'x' while true do pcall(function() s = s .. s end) end"] = "memory",
        ["local t = {} while true do t[#t + 1] = {} end"] = "memory",
        ["local t = {} while true do pcall(function() t[#t + 1] = ('x'):rep(100000) .. #t end) end"] = "memory",
        ["local s = ('x'):rep(1 << 30)"] = "memory",
        ["local s = ('x'):rep(1 << 20):rep(1 << 20)"] = "",
    }
    for text, what in pairs(endless) do
        it("ends " .. text, function()
            local lines = loading.refused("\n" .. text)
            assert.equal(1, #lines)
            assert.matches(what == "memory" and "^policy.lua:2: more than 64 MiB" or "^policy.lua:2: ", lines[1])
            assert.matches(what, lines[1], 1, true)
        end)
    end

    it("isn't spent by loops in C over nothing", function()
        loading.good([[assert(("").rep("", 1 << 60) == "" and (""):rep(1 << 60, "") == "")]]):close()
        assert.matches("^policy.lua:1: more than 50000000 instr", loading.refused("table.move({}, 1, 1 << 62, 2)")[1])
        assert.same({ "1 1 2" }, printed "print(table.concat(table.move({ 1, 2 }, '1', 0x2, 2), ' '))")
    end)

    it("that is spent leaves the mistakes before it told", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
policy.bus():on("A"):rety()
local t = {}
while true do t[#t + 1] = {} end
]]
        assert.equal(2, #lines)
        assert.matches('^policy.lua:2: "rety" is no word', lines[1])
        assert.matches("^policy.lua:4: more than 64 MiB of memory", lines[2])
    end)

    it("isn't spent by an error that says so", function()
        assert.same({ "false not enough memory" }, printed 'print(pcall(error, "not enough memory", 0))')
        assert.same({ "policy.lua:1: not enough memory" }, loading.refused 'error("not enough memory", 0)')
    end)

    -- The longer a policy runs below the limit, the less is left for what follows; that must not count.
    it("of memory that just sufficed is enough for all that follows", function()
        local good, refused = 0, 0
        for pieces = 3400, 4000, 50 do
            local policy, message, _, problems = mulligan.load_text(([[
local bus = require("mulligan.policy").bus()
for i = 1, 8000 do bus:on("E" .. i):discard() end
keep = {}
local x = ("x"):rep(16 * 1024)
for i = 1, %d do keep[i] = x .. i end
bus:on("A", function() return ("y"):rep(128 * 1024) .. keep[1] ~= nil end):discard("yes")]]):format(pieces))
            if policy then
                good = good + 1
                local verdict = assert(policy:decide { error = { type = "A" } })
                assert.equal("yes", verdict.note)
                policy:close()
            else
                refused = refused + 1
                assert.equal(1, #problems)
                assert.matches("^policy.lua:%d+: more than 64 MiB of memory", message)
            end
            collectgarbage()
        end
        assert.is_true(good > 0)
        assert.is_true(refused > 0)
    end)

    it("is enough for a large policy", function()
        local policy = loading.good(loading.statements [[
for i = 1, 5000 do bus:on("Error" .. i, { code = i }):retry(3, "1s"):then_redeliver(2):then_dead_letter("q" .. i) end]])
        assert.equal(5000, policy:rules())
        policy:close()
    end)
end)
