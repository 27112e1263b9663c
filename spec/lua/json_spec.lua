-- mulligan.json: what it reads and writes, and what it refuses.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local json = mulligan.json

describe("json.decode", function()
    it("reads every kind of value", function()
        assert.same({
            a = { 1, 2.5, "x", true, false, json.null, {} },
            b = { c = "ü\0€\u{1F600}" },
        }, json.decode [[
            { "a": [1, 2.5, "x", true, false, null, {}], "b": {"c": "\u00fc\u0000\u20ac\ud83d\ude00"} }
        ]])
    end)

    it("leaves null out of objects, keeps its place in lists, and is nil alone", function()
        assert.same({ b = 1 }, json.decode '{"a":null,"b":1}')
        local list = json.decode "[null,1]"
        assert.equal(json.null, list[1])
        assert.equal(1, list[2])
        assert.is_nil(json.decode "null")
    end)

    it("keeps whole numbers whole", function()
        local numbers = json.decode "[1, 1.0, 9223372036854775807, -9223372036854775808, 1e2]"
        assert.same({ "integer", "float", "integer", "integer", "float" }, {
            math.type(numbers[1]), math.type(numbers[2]), math.type(numbers[3]), math.type(numbers[4]),
            math.type(numbers[5]),
        })
        assert.equal(math.maxinteger, numbers[3])
        assert.equal(math.mininteger, numbers[4])
    end)

    it("reads whole numbers that don't fit as floats, and those beside them as they are", function()
        local text = [[{"9223372036854775808": [9223372036854775807, 9223372036854775808, -9223372036854775809,
            12345678901234567890123, -9223372036854775808, 7, "a\\\"9223372036854775808", 1.5e1, true, null]}]]
        local list = json.decode(text)["9223372036854775808"]
        assert.same({ math.maxinteger, 2.0 ^ 63, -2.0 ^ 63, 12345678901234567890123.0, math.mininteger, 7,
            'a\\"9223372036854775808', 15.0, true, json.null }, list)
        assert.same({ "integer", "float", "float", "float", "integer", "integer" }, {
            math.type(list[1]), math.type(list[2]), math.type(list[3]), math.type(list[4]), math.type(list[5]),
            math.type(list[6]),
        })
        assert.equal(2.0 ^ 63, json.decode "9223372036854775808")
        assert.equal("MessageDeserializationError", select(2, pcall(json.decode, "[9223372036854775808")).type)
    end)

    for _, bad in ipairs {
        "", " ", "{", "[1,]", "{'a':1}", '{"a" 1}', "01", "nan", '"\xFF"', '"\\x"', "1 2", "1e400", ("9"):rep(400),
        ("["):rep(129) .. ("]"):rep(129), ("["):rep(200) .. ("]"):rep(200), ("["):rep(100000),
    } do
        it(("refuses %q"):format(bad:sub(1, 20)), function()
            local well, err = pcall(json.decode, bad)
            assert.is_false(well)
            assert.equal("MessageDeserializationError", err.type)
            assert.is_truthy(tostring(err):find("^MessageDeserializationError: "))
        end)
    end

    for text, why in pairs {
        [""] = "line 1, column 1: expected a value, not the end",
        ["[1,\n 2 3]"] = 'line 2, column 4: expected "," or "]", not 3',
        ['["é", tru]'] = "line 1, column 7: expected a value, not tru",
        ["[1,]"] = "line 1, column 4: expected a value, not ]",
        ['{"a":1 "b":2}'] = 'line 1, column 8: expected "," or "}", not "b"',
        ['{"a" 1}'] = 'line 1, column 6: expected ":", not 1',
        ["{1:2}"] = "line 1, column 2: expected a name in quotes, not 1",
        ["1\0"] = "line 1, column 2: expected the end, not ?",
        ["[-]"] = "line 1, column 2: a number lacks a digit: -]",
        ["1.e5"] = "line 1, column 1: a number lacks a digit: 1.e",
        ['["a'] = "line 1, column 2: a string has no closing quote",
        ['"\t"'] = "line 1, column 2: a control character in a string must be escaped",
        ['"a\\x"'] = "line 1, column 3: no such escape",
        ['"\\u12g4"'] = "line 1, column 2: \\u takes four hexadecimal digits",
        ['"\\ud800\\u0041"'] = "line 1, column 2: half of a surrogate pair",
        ['{"a\\u0000":1}'] = "line 1, column 2: a name must not hold \\u0000",
        [("9"):rep(400)] = "line 1, column 1: a number is too large: " .. ("9"):rep(31),
    } do
        it(("says what is wrong with %q, and where"):format(text:sub(1, 20)), function()
            local _, err = pcall(json.decode, text)
            assert.equal("not JSON: " .. why, err.message)
        end)
    end

    it("reads 128 levels", function()
        assert.equal("table", type(json.decode(("["):rep(128) .. ("]"):rep(128))))
    end)

    it("raises for what is no text", function()
        assert.has_error(function()
            json.decode {}
        end)
    end)
end)

describe("json.encode", function()
    local cases = {
        { "null", nil }, { "null", json.null }, { "true", true }, { "false", false }, { "1", 1 }, { "1.0", 1.0 },
        { "-9223372036854775808", math.mininteger }, { "0.1", 0.1 }, { "1e+100", 1e100 },
        { "0.30000000000000004", 0.1 + 0.2 }, { '""', "" }, { '"a\\"\\\\\\n\\u0001\\u0000ü"', 'a"\\\n\1\0ü' },
        { "{}", {} }, { "[]", json.list {} }, { "[1,2]", { 1, 2 } }, { '{"a":1,"b":[]}', { b = json.list {}, a = 1 } },
        { "[1,null,2]", { 1, json.null, 2 } },
    }
    for _, case in ipairs(cases) do
        it("writes " .. case[1], function()
            assert.equal(case[1], json.encode(case[2]))
        end)
    end

    it("writes what it read, the same each time", function()
        local text = '{"a":[1,2.5,"x",true,null,[],{}],"b":{"c":{"d":-0.5}},"e":1e+300}'
        assert.equal(text, json.encode(json.decode(text)))
    end)

    it("writes numbers that read back to the same", function()
        local random = testing.random(7)
        for _ = 1, 2000 do
            local bits = string.pack("i8", random(1 << 62) * (random:chance(0.5) and 1 or -1))
            local number = string.unpack("d", bits)
            if number == number and math.abs(number) ~= math.huge then
                assert.equal(number, json.decode(json.encode(number)))
            end
        end
    end)

    local cyclic = {}
    cyclic.self = cyclic
    for name, bad in pairs {
        ["a function"] = print,
        ["a number that isn't finite"] = 0 / 0,
        ["infinity"] = math.huge,
        ["text that isn't UTF-8"] = "\xFF",
        ["keys of two kinds"] = { 1, a = 2 },
        ["a list with holes"] = { [1] = 1, [3] = 3 },
        ["a table in itself"] = cyclic,
    } do
        it("refuses " .. name, function()
            assert.has_error(function()
                json.encode(bad)
            end)
        end)
    end
end)

-- The cases of JSONTestSuite: y_ is JSON, n_ isn't, and i_ may be either. One of y_ is refused: names with a NUL are.
describe("what JSONTestSuite has", function()
    local cases = {
        i_structure_500_nested_arrays = ("["):rep(500) .. ("]"):rep(500),
        n_structure_100000_opening_arrays = ("["):rep(100000),
        n_structure_open_array_object = ('[{"":'):rep(50000),
    }
    for line in io.lines "spec/lua/json_suite.txt" do
        local name, text = line:match '^([yni]_%S+) (".*")$'
        if name then
            cases[name] = load("return " .. text)()
        end
    end

    local policy

    setup(function()
        policy = assert(mulligan.load_text "require('mulligan.policy').bus():default():retry()")
    end)

    teardown(function()
        policy:close()
    end)

    -- A verdict, or what is wrong with a failure that has this text in a field.
    local function decide(text)
        local well, verdict = pcall(policy.decide_json, policy, '{"error": {"type": "A", "field": ' .. text .. "}}")
        return well and verdict or verdict.message or verdict
    end

    it("is all there", function()
        local count = 0
        for _ in pairs(cases) do
            count = count + 1
        end
        assert.equal(318, count)
    end)

    it("is read where it is JSON, and refused where it isn't", function()
        for name, text in pairs(cases) do
            local well, value = pcall(json.decode, text)
            if name == "y_object_escaped_null_in_key" then
                assert.matches("must not hold", value.message, 1, true)
            elseif name:find "^y" then
                assert.is_true(well, name)
                assert.is_nil(decide(text):find("^not JSON: .* expected"), name)
            else
                assert.is_true(well and name:find "^i" ~= nil or value.type == "MessageDeserializationError", name)
            end
            if not well then
                assert.is_nil(decide(text):find('"action"', 1, true), name)
            end
        end
    end)
end)
