-- The sandbox's functions of strings, tables and UTF-8 give what Lua's give, and raise what Lua's raise:
-- the same text runs in a policy and in Lua, over random input. So do those that count a handler's
-- searches: the same text runs in a handler.
--
--   MULL_SEED, MULL_CASES   the seed, which is printed, and how many calls of each kind
local loading = require "support.loading"
local rigs = require "support.rigs"

local seed = tonumber(os.getenv "MULL_SEED") or os.time()
local cases = tonumber(os.getenv "MULL_CASES") or 1000

-- What runs on both sides, before the cases: it prints what each gives, strings as their bytes.
local prologue = [[
local pack = table.pack
local function show(value)
    if type(value) ~= "string" then
        return type(value) == "number" and tostring(value) or type(value) == "table" and "table" or tostring(value)
    end
    local bytes = {}
    for i = 1, #value do bytes[i] = value:byte(i) end
    return '"' .. table.concat(bytes, " ") .. '"'
end
local function case(f)
    local result = pack(pcall(f))
    for i = 1, result.n do result[i] = show(result[i]) end
    print(table.concat(result, ", ", 1, result.n))
end
local function all(walk, ...)
    local found = {}
    for a, b, c in walk(...) do
        found[#found + 1] = show(a) .. show(b) .. show(c)
        if #found == 50 then break end
    end
    return table.concat(found, "; ")
end
local function list(t) for i = 1, 12 do t[i] = show(t[i]) end return table.concat(t, " ", 1, 12) end
]]

local function of_policy(text)
    local lines = {}
    loading.good(text, { log = function(_, line) lines[#lines + 1] = line end }):close()
    return lines
end

local function of_lua(text)
    local lines = {}
    local environment = setmetatable({ print = function(line) lines[#lines + 1] = line end }, { __index = _G })
    assert(load(text, "@policy.lua", "t", environment))()
    return lines
end

local function of_handler(text)
    local lines
    local rig = rigs.start("", function() lines = of_lua(text) end, { patterns = "counted" }, { timeout = false })
    assert(rig:publish("work", "x"))
    rigs.close()
    return lines
end

local function below(n) return math.random(0, n - 1) end
local function one_of(list) return list[math.random(#list)] end

local letters = { "a", "b", "a", "b", "c", "A", "1", " ", "-", ".", "%", "(", "]", "\n", "\0", "\xff",
    "\xc3\xa4", "_" }
local items = {
    "a", "b", ".", "%a", "%d", "%s", "%w", "%W", "[ab]", "[^a]", "[a-c]", "[]]", "%%", "%.", "%f[%w]", "%b()",
    "%1", "(a*)",
    "(.)", "()", "(", ")", "(.-)", "^", "$", "[", "%", "%f", "x",
}
local suffixes = { "", "", "", "*", "+", "-", "?" }

local function string_of(list, most)
    local parts = {}
    for i = 1, below(most) do parts[i] = one_of(list) end
    return table.concat(parts)
end

local function quoted(text)
    return '"' .. text:gsub(".", function(byte) return ("\\%03d"):format(byte:byte()) end) .. '"'
end

-- The Lua text of an argument.
local draw = {}

function draw.text() return quoted(string_of(letters, 12)) end

function draw.pattern()
    local parts = {}
    for i = 1, below(6) do parts[i] = one_of(items) .. one_of(suffixes) end
    return quoted((below(4) == 0 and "^" or "") .. table.concat(parts) .. (below(5) == 0 and "$" or ""))
end

function draw.replacement()
    local form = one_of { "text", "text", "table", "function" }
    if form == "text" then
        return quoted(string_of({ "a", "%0", "%1", "%2", "%%", "-", "%", "%x" }, 4))
    elseif form == "table" then
        return one_of { '{ a = "x", b = 5, c = false, [1] = "one" }', "{ a = {} }" }
    end
    return one_of { "function(a, b) return b or a end", "function() end", "function(a) return #tostring(a) end",
        "function() return {} end", "function() error 'mine' end" }
end

function draw.number()
    return one_of { "0", "1", "2", "3", "-1", "-2", "-5", "20", "-20", "nil", "1.0", "'2'", "1.5", "math.mininteger",
        "math.maxinteger" }
end

function draw.small() return tostring(below(9) - 2) end

function draw.value()
    return one_of { "1", "-7", "2.5", "1e300", "'text'", "nil", "true", "'12'", "1/0", "'a b'", "''", "255", "-0.0" }
end

function draw.form()
    return quoted(string_of({ "a", "%d", "%5d", "%-5d|", "%s", "%5s", "%-6s|", "%.2s", "%q", "%x", "%g",
        "%.3f", "%+e", "%c",
        "%%", "%i", "%5.1f", "%03d", "%", "%y", "%10", "%a" }, 4))
end

function draw.list()
    local parts = {}
    for i = 1, below(7) do parts[i] = one_of { "1", "2.5", "'a'", "'bc'", "''", "4", "5", "'d'" } end
    if below(6) == 0 then parts[#parts + 1] = one_of { "nil", "{}", "true", "false" } end
    return "{ " .. table.concat(parts, ", ") .. " }"
end

local function draw_call(form)
    return (form:gsub("%$(%l+)", function(kind) return draw[kind]() end))
end

local kinds = {
    ["string.find"] = { "string.find($text, $pattern)", "string.find($text, $pattern, $number)",
        "string.find($text, $text, $number, true)", "string.find($value, $pattern)" },
    ["string.match"] = { "string.match($text, $pattern)", "string.match($text, $pattern, $number)",
        "($text):match($value)" },
    ["string.gmatch"] = { "all(string.gmatch, $text, $pattern)", "all(string.gmatch, $text, $pattern, $number)",
        "all(string.gmatch, $value, $value)" },
    ["string.gsub"] = { "string.gsub($text, $pattern, $replacement)",
        "string.gsub($text, $pattern, $replacement, $number)",
        "string.gsub($text, $pattern, $value)" },
    ["string.format"] = { "string.format($form)", "string.format($form, $value)",
        "string.format($form, $value, $value, $value)",
        "string.format($value, 1)" },
    ["of strings"] = { "string.rep($text, $small)", "string.rep($text, $small, $text)", "string.rep($value, $value)",
        "string.byte($text, $number, $number)", "string.sub($text, $number, $number)",
        "string.char($small, 65, $value)",
        "string.upper($value)", "string.lower($text)", "string.reverse($text)", "string.len($value)",
        "string.pack('<i4z', $value, $text)", "string.unpack('<i2z', $text)", "string.packsize('i4i8')",
        "tonumber($value)",
        "tonumber($text, $small)", "select($number, 1, 2, 3)" },
    ["of tables"] = { "table.concat($list)", "table.concat($list, $value)",
        "table.concat($list, $text, $small, $small)",
        "table.concat($value)", "table.unpack($list)", "table.unpack($list, $small, $small)",
        "table.pack($value, $value).n",
        "(function(t) table.insert(t, $value) return list(t) end)($list)",
        "(function(t) table.insert(t, $small, $value) return list(t) end)($list)",
        "(function(t) table.insert(t, $number, $value) return list(t) end)($list)",
        "(function(t) return show(table.remove(t)), list(t) end)($list)",
        "(function(t) return show(table.remove(t, $small)), list(t) end)($list)",
        "(function(t) return show(table.remove(t, $number)), list(t) end)($list)",
        "list(table.move($list, $small, $small, $small))", "list(table.move($list, $small, $small, $small, $list))",
        "table.insert($value, $value)", "table.remove($value)", "table.insert($list)" },
    ["of UTF-8"] = { "utf8.len($text)", "utf8.len($text, $number, $number)", "utf8.offset($text, $small)",
        "utf8.offset($text, $number, $number)", "utf8.codepoint($text, $small, $small)",
        "utf8.char($small, 228, $value)",
        "all(utf8.codes, $text)", "utf8.len($value)" },
}

-- compare runs as many calls of these forms by a function of the above as by Lua's own.
local function compare(run, forms)
    print(("# MULL_SEED=%d"):format(seed))
    math.randomseed(seed)
    local text = { prologue }
    for i = 1, cases do text[i + 1] = ("case(function() return %s end)"):format(draw_call(one_of(forms))) end
    local whole = table.concat(text, "\n")
    local ours, lua = run(whole), of_lua(whole)
    assert.equal(cases, #lua)
    local raised = 0
    for i = 1, cases do
        if ours[i] ~= lua[i] then error(("%s\nLua:  %s\nours: %s"):format(text[i + 1], lua[i], ours[i]), 0) end
        raised = raised + (lua[i]:find("^false") and 1 or 0)
    end
    assert.is_true(raised > 0 and raised < cases)
end

describe("the sandbox's functions", function()
    for name, forms in pairs(kinds) do
        it("do what Lua's do: " .. name, function()
            compare(of_policy, forms)
        end)
    end
end)

describe("a handler's searches that are counted", function()
    for _, name in ipairs { "string.find", "string.match", "string.gmatch", "string.gsub" } do
        it("do what Lua's do: " .. name, function()
            compare(of_handler, kinds[name])
        end)
    end
end)
