-- What refuses a policy, and how that is told: file, line, what is wrong, and what would be right.
local mulligan = require "mulligan"
local loading = require "support.loading"

local statements = loading.statements

describe("a mistake", function()
    it("is one of several, told together in the order of lines", function()
        local lines, problems = loading.refused [[
local policy = require "mulligan.policy"
local bus = policy.bus()
bus:on("A")
   :retry(3, 200)
   :then_dead_leter()
bus:on("B")
bus:max_agge("1d")
policy.errors { A = "A" }
bus:defualt():retry():then_retry()
bus:default():discard():retry()
]]
        local expected = {
            '^policy.lua:4: retry: delay 200 has no unit; "200ms" or "200s"%?',
            '^policy.lua:5: "then_dead_leter" is no word of a rule; did you mean then_dead_letter%?',
            '^policy.lua:6: the rule for "B" has no action',
            '^policy.lua:7: "max_agge" is no word of a scope; did you mean max_age%?',
            "^policy.lua:8: A can't be a child of",
            '^policy.lua:9: "defualt" is no word of a scope; did you mean default%?',
            "^policy.lua:10: :retry can't follow :discard",
        }
        assert.equal(#expected, #lines)
        for i, pattern in ipairs(expected) do assert.matches(pattern, lines[i]) end
        assert.equal("policy.lua", problems[1].file)
        assert.equal(4, problems[1].line)
        assert.matches("^retry: delay 200", problems[1].text)
    end)

    it("is told once, however often it is made, and not for ever", function()
        assert.equal(1, #loading.refused(statements 'for _ = 1, 1000 do bus:on("") : retry() end'))
        local lines = loading.refused(statements 'for i = 1, 1000 do bus["w" .. i]() end')
        assert.equal(101, #lines)
        assert.matches("more than 100 mistakes", lines[101])
    end)

    it("ends no load: what a wrong word gives can be used", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
local odd = policy.odd(5).x:y("z")
odd.field = odd
for _ in pairs(odd) do error "no" end
assert(#odd == 0)
policy.bus():on("A", { x = odd }):retry(odd):then_dead_letter(odd)
policy.bus():on(odd, odd):retry(1, odd):then_redeliver { delay = odd, jitter = odd, backoff = odd, factor = odd }
policy.bus():max_age(odd)
policy.bus():max_attempts(odd)
policy.consumer(odd):default():discard(odd)
policy.errors { A = odd }
policy.errors(odd)
policy.bus():on("B", odd):retry { odd, "1s" }:then_discard(5)
]]
        assert.equal(2, #lines)
        assert.matches('^policy.lua:2: "odd" is no word of policy; there are errors, host, bus', lines[1])
        assert.matches("^policy.lua:13: then_discard: the note must be a string", lines[2])
    end)

    local places = {
        ["policy.on('X')"] = 'on belongs to a scope: local bus = policy.bus(); bus:on(...)',
        ["policy.then_discard()"] = "then_discard belongs to a rule",
        ["bus:retry(3)"] = 'retry belongs to a rule: on("TimeoutError"):retry(...)',
        ["bus:seconds(3)"] = "seconds belongs to policy: policy.seconds(...)",
        ["bus:on('X'):on('Y')"] = "on belongs to a scope",
        ["bus:on('X'):errors()"] = "errors belongs to policy",
        ["policy.bsu()"] = '"bsu" is no word of policy; did you mean bus?',
        ["policy[1]()"] = "policy has words, no field 1",
        ["bus:maxAge()"] = '"maxAge" is no word of a scope; did you mean max_age?',
        ["bus['\\xff\\n']()"] = '"? " is no word of a scope; there are on, on_cause, default,',
    }
    for text, expected in pairs(places) do
        it("is the word in " .. text, function()
            local lines = loading.refused(statements("\n" .. text))
            assert.equal(1, #lines)
            assert.matches("^policy.lua:2: ", lines[1])
            assert.matches(expected, lines[1], 1, true)
        end)
    end

    it("shows nan without the sign that the processor gave it", function()
        for _, nan in ipairs { "0/0", "-(0/0)" } do
            assert.same({
                "policy.lua:2: retry: attempts must be a whole number from 0 to 1000, not nan",
                'policy.lua:3: retry: delay nan is no span of time: a number with a unit is right, such as "200ms", '
                    .. '"1.5s" or "1h30m"',
            }, loading.refused(statements(("\nbus:on('X'):retry(%s)\nbus:on('X'):retry(1, %s)"):format(nan, nan))))
        end
    end)

    it("shows of a long text whole characters only", function()
        for shift = 0, 3 do
            local text = ("x"):rep(shift) .. ("\u{1F600}"):rep(40)
            local line = loading.refused(statements(('bus:on("X"):retry(%q)'):format(text)))[1]
            assert.is_truthy(utf8.len(line))
            assert.is_nil(line:find("?", 1, true))
        end
    end)

    it("is a bracket too deep, whose line Lua doesn't give", function()
        for _, pair in ipairs { { "(", ")" }, { "{", "}" } } do
            local deep = pair[1]:rep(300) .. "1" .. pair[2]:rep(300)
            local lines = loading.refused("\nlocal a = 1\nlocal b = " .. deep .. "\n\nlocal c = 1")
            assert.same({ "policy.lua: brackets or blocks are nested too deeply; Lua reads less than 200 levels" },
                lines)
        end
    end)

    it("is a name that was never made; where most policies make it in one way, that is told", function()
        for text, told in pairs {
            ["policy.bus()"] = [[index a nil value (global 'policy'); add the line: ]]
                .. [[local policy = require "mulligan.policy"]],
            ["bus:on('X')"] = [[index a nil value (global 'bus'); add the line: ]]
                .. [[local bus = require("mulligan.policy").bus()]],
            ["host:max_age('1d')"] = [[index a nil value (global 'host'); add the line: ]]
                .. [[local host = require("mulligan.policy").host()]],
            ["orders:on('X')"] = "index a nil value (global 'orders')",
            ["local bus; bus:on('X')"] = "index a nil value (local 'bus')",
            ["('x').bus()"] = "call a nil value (field 'bus')",
        } do
            assert.same({ "policy.lua:2: attempt to " .. told }, (loading.refused("\n" .. text)))
        end
    end)

    it("is a name without quotes", function()
        local told = "must be a string, not nil; a name needs its quotes"
        for text, what in pairs {
            ["bus:on(HttpError):retry()"] = "the error type",
            ["policy.consumer(PaymentHandler):default():retry()"] = "the name of a consumer",
            ["bus:default():dead_letter(parked)"] = "dead_letter: the queue",
        } do
            assert.same({ ("policy.lua:1: %s %s"):format(what, told) }, (loading.refused(statements(text))))
        end
        assert.same({ "policy.lua:1: the error type must be a string, not 5" },
            (loading.refused(statements "bus:on(5):retry()")))
    end)

    it("is an assignment to policy, a scope or a rule", function()
        local lines = loading.refused(statements [[

policy.bus = nil
bus.on = function() end
local rule = bus:on("X")
rule.retry = 5
rule:retry()]])
        assert.equal(3, #lines)
        assert.matches('^policy.lua:2: policy can\'t be assigned to %("bus"%)', lines[1])
        assert.matches('^policy.lua:3: a scope can\'t be assigned to %("on"%)', lines[2])
        assert.matches('^policy.lua:5: a rule can\'t be assigned to %("retry"%)', lines[3])
    end)
end)

describe("a word that ends its statement", function()
    it("takes no other behind it, and hides no later mistake", function()
        local lines = loading.refused(statements [[

bus:max_attempts(3):max_age("1d"):max_deliveries(2)
bus:max_age("1x")
   :on("X"):retry()
bus:dead_letter_queue("a").b = 1
policy.errors { A = "B" }.errors { A = "C" }
bus:max_deliveries(5)()
bus:buss()
]])
        local nothing = "ends its statement; nothing may follow it"
        assert.equal(7, #lines)
        assert.equal("policy.lua:2: max_attempts ends its statement; max_age is one of its own: bus:max_age(...)",
            lines[1])
        assert.matches('^policy.lua:3: max_age: "1x" is no span of time', lines[2])
        assert.equal("policy.lua:4: max_age ends its statement; on is one of its own: bus:on(...)", lines[3])
        assert.equal("policy.lua:5: dead_letter_queue " .. nothing, lines[4])
        assert.equal("policy.lua:6: errors ends its statement; errors is one of its own: policy.errors(...)", lines[5])
        assert.equal("policy.lua:7: max_deliveries " .. nothing, lines[6])
        assert.matches('^policy.lua:8: "buss" is no word of a scope', lines[7])
    end)
end)

describe("override and notify", function()
    for call, expected in pairs {
        ["bus:overide(bus)"] = '"overide" is no word of a scope; did you mean override?',
        ["policy.override(bus)"] = "override belongs to a scope: local bus = policy.bus(); bus:override(...)",
        ["bus:on('X'):notify()"] = "notify belongs to a scope: local bus = policy.bus(); bus:notify(...)",
        ["bus:override('X')"] = 'override must be a function, function(failure, verdict, config) ... end, or false, '
            .. 'not "X"',
        ["bus:notify({})"] = "notify must be a function, function(event) ... end, or false, not a table",
        ["bus:notify()"] = "notify needs a value: a function, or false",
        ["bus:override(print, print)"] = "override has 2 arguments; it takes a function, or false",
    } do
        it("are refused where they are wrong: " .. call, function()
            assert.same({ "policy.lua:2: " .. expected }, loading.refused(statements("\n" .. call)))
        end)
    end
end)

describe("an error of Lua", function()
    it("is a syntax error", function()
        local lines = loading.refused("local x = 1\nlocal y = = 2\n")
        assert.same({ "policy.lua:2: unexpected symbol near '='" }, lines)
        assert.matches("^policy.lua:1: ", loading.refused("x = \xff")[1])
        assert.matches("^policy.lua:1: ", loading.refused("goto nowhere")[1])
    end)

    it("is raised while the policy runs, and stands among the mistakes, without a traceback", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
policy.bus():on("A"):rety()
local function deep(t)
    return t.x.y
end
policy.bus():on("B")
local _ = deep({}) + 1
]]
        assert.equal(3, #lines)
        assert.matches('^policy.lua:2: "rety" is no word', lines[1])
        assert.matches("^policy.lua:4: attempt to index a nil value %(field 'x'%)$", lines[2])
        assert.matches('^policy.lua:6: the rule for "B" has no action', lines[3])
    end)

    it("in the middle of a statement is not its rule's fault", function()
        local lines = loading.refused(statements 'bus:on("A"):retry(1 + nil)')
        assert.equal(1, #lines)
        assert.matches("^policy.lua:1: attempt to perform arithmetic on a nil value", lines[1])
    end)

    it("is none of its rule's in a statement over several lines, where a word of it was begun", function()
        assert.same({ "policy.lua:4: attempt to perform arithmetic on a nil value (field 'x')" },
            (loading.refused(statements [[

bus:on("A")
   :retry(policy.seconds(1) and
      ({}).x + 1)]])))
        local lines = loading.refused(statements [[

bus:on("A")
bus:on("B"):retry(1 + nil)]])
        assert.equal(2, #lines)
        assert.matches('^policy.lua:2: the rule for "A" has no action', lines[1])
        lines = loading.refused(statements 'bus:on("A"); local _ = 1 + nil')
        assert.equal(2, #lines)
    end)

    local values = {
        ['error("boom")'] = "^policy.lua:1: boom$",
        ['error("boom", 0)'] = "^policy.lua:1: boom$",
        ['error("boom", 2)'] = "^policy.lua:1: boom$",
        ['error("two\\nlines", 0)'] = "^policy.lua:1: two lines$",
        ['error("\\xff", 0)'] = "^policy.lua:1: %?$",
        ["error({})"] = "^policy.lua:1: error was called with a table, where a text says more$",
        ["error(print)"] = "^policy.lua:1: error was called with a function",
        ["error()"] = "^policy.lua:1: error was called with a nil",
        ["error(true)"] = "^policy.lua:1: error was called with a boolean",
        ["error(5)"] = "^policy.lua:1: 5$",
        ["assert(false)"] = "^policy.lua:1: assertion failed!$",
        ['assert(nil, "why")'] = "^policy.lua:1: why$",
        ["assert(false, {})"] = "^policy.lua:1: error was called with a table",
        ["local t = {} t[nil] = 1"] = "^policy.lua:1: .*index is nil$",
        ["os.exit(3)"] = "^policy.lua:1: attempt to index a nil value %(global 'os'%); a policy has no os$",
        ["setmetatable({}, {})"] = "a policy has no setmetatable$",
        ["local _ = { status > 500 }"] =
            "number with nil; a matcher compares a field so: { status = policy.at_least%(500%) }$",
        ["local _ = { status <= 500 }"] =
            "nil with number; a matcher compares a field so: { status = policy.at_least%(500%) }$",
        ["local x = math.random(5)"] = "a policy has no random$",
        ["local function f() return f() + 1 end f()"] = "^policy.lua:1: ",
    }
    for text, pattern in pairs(values) do
        it("is told as it is: " .. text, function()
            local lines = loading.refused(text)
            assert.equal(1, #lines)
            assert.matches(pattern, lines[1])
        end)
    end

    it("can be caught by the policy", function()
        loading.good([[
local ok, value = pcall(error, { code = 5 })
assert(not ok and value.code == 5)
local good, a, b = pcall(function(...) return ... end, 1, nil)
assert(good and a == 1 and b == nil)
assert(select("#", pcall(error)) == 2 and select(2, pcall(error)) == nil)
local _, text = pcall(function() error("deep") end)
assert(text == "policy.lua:6: deep", text)
assert(not pcall(pcall))
]]):close()
    end)

    it("is bytecode", function()
        local lines = loading.refused(string.dump(function() end))
        assert.same({ "policy.lua:1: this is bytecode; a policy is text" }, lines)
        lines = loading.refused("\xEF\xBB\xBF" .. string.dump(function() end))
        assert.same({ "policy.lua:1: this is bytecode; a policy is text" }, lines)
    end)
end)

describe("a file", function()
    local function refused(texts, main)
        local folder, remove = loading.folder(texts)
        local policy, message, code = mulligan.load(folder .. "/" .. (main or "policy.lua"))
        remove()
        assert.is_nil(policy)
        assert.equal("policy", code)
        return message:gsub(folder, "FOLDER")
    end

    it("that isn't there is said where it was looked for", function()
        assert.matches("^policy.lua:?0?: there is no file FOLDER/policy.lua", refused({}))
        assert.matches('^policy.lua:2: require%("a.b"%): there is no file FOLDER/a/b.lua$',
            (refused { ["policy.lua"] = '\npcall(require, "a.b")' }))
    end)

    it("that is a folder, or too large, is refused", function()
        assert.matches("can't be read: Is a directory", refused({ ["policy.lua/x"] = "" }))
        assert.matches("larger than 16 MiB", refused({ ["policy.lua"] = ("-"):rep(16 * 1024 * 1024 + 1) }))
    end)

    it("that looks for too many others doesn't get them", function()
        local folder, remove = loading.folder {
            ["policy.lua"] = 'for i = 1, 999 do require("f" .. i) end require "f5"',
            ["more.lua"] = 'for i = 1, 1000 do require("f" .. i) end',
        }
        for i = 1, 1000 do
            assert(io.open(("%s/f%d.lua"):format(folder, i), "w")):close()
        end
        local policy, wrong = mulligan.load(folder .. "/policy.lua")
        local _, message = mulligan.load(folder .. "/more.lua")
        remove()
        assert(policy, wrong):close()
        assert.equal("more.lua:1: require(\"f1000\"): a policy can't look for more than 1000 files", message)
    end)

    it("that is a pipe or a device is refused, and nobody waits for what comes out of it", function()
        local folder, remove = loading.folder { ["policy.lua"] = 'require "pipe"', ["kept.lua"] = "" }
        assert(os.execute(("mkfifo '%s/pipe.lua' && ln -s /dev/zero '%s/device.lua'"):format(folder, folder)))
        local kept = assert(mulligan.load(folder .. "/kept.lua"))
        assert(os.execute(("ln -sf pipe.lua '%s/kept.lua'"):format(folder)))
        local _, refused_reload = kept:reload()
        local messages = { refused_reload }
        for _, name in ipairs { "pipe", "device", "policy" } do
            local _, message = mulligan.load(("%s/%s.lua"):format(folder, name))
            messages[#messages + 1] = message
        end
        kept:close()
        remove()
        assert.equal(4, #messages)
        for _, message in ipairs(messages) do
            assert.matches("%.lua is no regular file", message)
        end
    end)

    it("that is required names itself in its mistakes", function()
        local message = refused {
            ["policy.lua"] = 'local rules = require "rules.common"\nrules("C")\nrequire "bad"',
            ["rules/common.lua"] = [[
local policy = require "mulligan.policy"
policy.bus():on("A")
return function(name)
    policy.bus():on(name):rety()
end]],
            ["bad.lua"] = "\n\n]",
        }
        local first, second, third = message:match("^(.-)\n(.-)\n(.-)$")
        assert.equal("bad.lua:3: unexpected symbol near ']'", first)
        assert.matches('^rules/common.lua:2: the rule for "A" has no action', second)
        assert.equal('rules/common.lua:4: "rety" is no word of a rule; did you mean retry?', third)
    end)

    it("is required by a name that leads to no other place", function()
        local names = {
            ["..x"] = true, ["../x"] = true, ["/etc/passwd"] = true, ["a..b"] = true, ["a/b"] = true, [""] = true,
            ["."] = true, ["a."] = true, [".a"] = true, ["a\\\\b"] = true, ["a\\0b"] = true, ["..\\\\x"] = true,
        }
        for name in pairs(names) do
            local message = refused { ["policy.lua"] = ('require "%s"'):format(name), ["a/b.lua"] = "" }
            assert.matches("^policy.lua:1: require.*means the file a/b.lua beside the policy", message)
        end
        for _, name in ipairs({ "mulligan.testing", "mulligan.policy.text", "mulligan.sandbox.offers" }) do
            local message = refused { ["policy.lua"] = ('require "%s"'):format(name), ["mulligan/testing.lua"] = "" }
            assert.matches('a policy has "mulligan.policy" of these, and the files beside it', message, 1, true)
        end
        local message = refused { ["policy.lua"] = 'require "mulligan.preset.mocha"' }
        assert.matches("a preset needs none: policy.preset.mocha(policy.bus())", message, 1, true)
        assert.matches("bad argument #1 to 'require' %(string expected, got nil%)",
            (refused { ["policy.lua"] = "require(nil)" }))
    end)

    it("can't require itself, nor one that requires it", function()
        local message = refused {
            ["policy.lua"] = 'require "policy"\nrequire "a"', ["a.lua"] = 'require "b"', ["b.lua"] = '\nrequire "a"',
        }
        local why = "this file is being run already; files can't require each other in a circle"
        assert.equal(('b.lua:2: require("a"): %s\npolicy.lua:1: require("policy"): %s'):format(why, why), message)
    end)

    it("is not beside a policy that was given as a text", function()
        local lines = loading.refused('require "os"')
        assert.matches("the policy was given as a text, so there are no files beside it", lines[1], 1, true)
    end)
end)
