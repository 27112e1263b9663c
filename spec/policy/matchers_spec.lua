-- Table matchers: every form and value, what passes and what doesn't.
local loading = require "support.loading"

local statements = loading.statements

-- Whether a matcher passes for each of several failures, whose error is of type A.
local function passes(matcher, ...)
    local policy = loading.good(statements(('bus:on("A", %s):discard()'):format(matcher)))
    local results = {}
    for i, failure in ipairs { ... } do
        failure.error = failure.error or {}
        failure.error.type = "A"
        results[i] = assert(policy:decide(failure)).action == "discard"
    end
    policy:close()
    return results
end

-- The same for the values of one field, x; "none" is a failure without it.
local function fields(value, ...)
    local failures = {}
    for i, x in ipairs { ... } do
        failures[i] = { error = {} }
        if x ~= "none" then failures[i].error.x = x end
    end
    return passes(("{ x = %s }"):format(value), table.unpack(failures))
end

describe("a value", function()
    local rows = {
        -- value, those that match, those that don't
        { "503", { 503, 503.0 }, { "503", 504, true, "none" } },
        { '"x"', { "x" }, { "X", "", "xx", "none" } },
        { "false", { false }, { true, 0, "false", "none" } },
        { "9007199254740993", { 9007199254740993 }, { 9007199254740992, 9007199254740992.0 } },
        { "{ 502, 503 }", { 502, 503, 503.0 }, { 504, "502", "none" } },
        { '{ "a", 1, true }', { "a", 1, true }, { "b", 2, false, "true", "none" } },
        { "policy.between(500, 599)", { 500, 599, 550.5 }, { 499, 599.5, "550", true, "none" } },
        { "policy.between(5, 5)", { 5, 5.0 }, { 4, 6 } },
        { "policy.at_least(3)", { 3, 4, 3.5, math.huge }, { 2, 2.9, "3", "none", 0 / 0 } },
        { "policy.at_most(3)", { 3, 2, -math.huge }, { 4, 3.1, "3", "none", 0 / 0 } },
        { 'policy.contains("a.c")', { "a.c", "xa.cx" }, { "abc", "a.", "", 5, "none" } },
        { 'policy.matches("^a.c$")', { "a.c", "abc" }, { "xabc", "ac", 5, "none" } },
        { 'policy.matches("%d+")', { "x42" }, { "x", "", 42 } },
        { "policy.present", { 0, "", false, "x" }, { "none" } },
        { "policy.absent", { "none" }, { 0, "", false } },
        { "policy.is_not(503)", { 504, "503", "none" }, { 503, 503.0 } },
        { "policy.is_not { 502, 503 }", { 504, "none" }, { 502, 503 } },
        { 'policy.is_not(policy.contains("x"))', { "y", 5, "none" }, { "x" } },
        { "policy.is_not(policy.present)", { "none" }, { 0, false } },
        { "policy.is_not(policy.is_not(1))", { 1 }, { 2, "none" } },
    }
    for _, row in ipairs(rows) do
        it(row[1] .. " matches what it says, and nothing else", function()
            for _, result in ipairs(fields(row[1], table.unpack(row[2]))) do assert.is_true(result) end
            for _, result in ipairs(fields(row[1], table.unpack(row[3]))) do assert.is_false(result) end
        end)
    end

    it("looks for no list, no map and no cause", function()
        for _, x in ipairs { { 1 }, { a = 1 } } do
            assert.same({ false }, passes("{ x = policy.present }", { error = { x = x } }))
        end
        assert.same({ true }, passes("{ cause = policy.absent }", { error = { cause = { type = "B" } } }))
    end)

    it("may stand in several matchers", function()
        local policy = loading.good(statements [[
local server = policy.between(500, 599)
bus:on("A", { x = server, y = policy.is_not(server) }):discard("x")
bus:on("A", { y = server }):discard("y")]])
        local function note(x, y)
            return policy:decide({ error = { type = "A", x = x, y = y } }).note
        end
        assert.same({ "x", "y", "y" }, { note(500, 1), note(500, 500), note(1, 500) })
        policy:close()
    end)
end)

describe("a table matcher", function()
    it("passes where all of its fields do; type, message and stack are fields", function()
        assert.same({ true, false, false }, passes('{ x = 1, y = policy.present, message = policy.contains("boom") }',
            { error = { x = 1, y = 0, message = "a boom" } }, { error = { x = 1, y = 0 } },
            { error = { x = 1, message = "boom" } }))
        assert.same({ true }, passes('{ type = "A", stack = "" }', {}))
    end)
end)

describe("policy.ctx", function()
    it("asks for the counters", function()
        for _, name in ipairs { "attempt", "redeliveries", "deliveries", "calls", "age_ms" } do
            assert.same({ true, false }, passes(("policy.ctx { %s = policy.between(2, 3) }"):format(name),
                { [name] = 3 }, { [name] = 4 }), name)
        end
    end)

    it("asks for the names of consumer and transport, which may be absent", function()
        for _, name in ipairs { "consumer", "transport" } do
            assert.same({ true, false, false }, passes(('policy.ctx { %s = "a" }'):format(name), { [name] = "a" },
                { [name] = "b" }, {}))
            assert.same({ false, true }, passes(("policy.ctx { %s = policy.absent }"):format(name), { [name] = "a" },
                {}))
        end
    end)

    it("asks for the message and its headers", function()
        local matcher = [[policy.ctx {
            redeliveries = 0,
            message = { type = { "Order", "Invoice" }, size = policy.at_most(300), headers = { tenant = "acme" } },
        }]]
        local function message(type_name, size, headers)
            return { message = { type = type_name, size = size, headers = headers } }
        end
        assert.same({ true, true, false, false, false, false }, passes(matcher,
            message("Order", 300, { tenant = "acme", more = "x" }), message("Invoice", 0, { tenant = "acme" }),
            message("Order", 301, { tenant = "acme" }), message("Other", 300, { tenant = "acme" }),
            message("Order", 300, { Tenant = "acme" }), message("Order", 300)))
        for _, name in ipairs { "id", "type", "key" } do
            assert.same({ true, false, false }, passes(('policy.ctx { message = { %s = "a" } }'):format(name),
                { message = { [name] = "a" } }, { message = { [name] = "b" } }, {}))
        end
    end)
end)

describe("policy.all, any and none", function()
    local function four(word)
        return passes(("policy.%s({ a = 1 }, { b = 1 })"):format(word), { error = { a = 1, b = 1 } },
            { error = { a = 1 } }, { error = { b = 1 } }, {})
    end

    it("combine matchers", function()
        assert.same({ true, false, false, false }, four "all")
        assert.same({ true, true, true, false }, four "any")
        assert.same({ false, false, false, true }, four "none")
    end)

    it("take functions, ctx and each other", function()
        local matcher = [[policy.any(
            policy.all({ a = 1 }, policy.ctx { attempt = 2 }, function(err) return err.b end),
            policy.none(policy.any({ a = 1 }, { c = 1 }))
        )]]
        assert.same({ true, false, false, true, false }, passes(matcher, { error = { a = 1, b = 1 }, attempt = 2 },
            { error = { a = 1 }, attempt = 2 }, { error = { a = 1, b = 1 } }, {}, { error = { c = 1 } }))
    end)

    it("may stand in several rules, each with its own chain", function()
        local policy = loading.good(statements [[
local busy = policy.all({ status = 503 }, function(err) return err.soon end)
bus:on("A", busy):discard("a")
bus:on({ "B", "C" }, busy):discard("b")
bus:on("D", policy.none(busy)):discard("d")]])
        local function note(type_name, soon)
            return policy:decide({ error = { type = type_name, status = 503, soon = soon } }).note
        end
        assert.same({ "a", "b", "b", "d" }, { note("A", true), note("B", true), note("C", true), note("D") })
        assert.same({}, { note("A"), note("B"), note("D", true) })
        policy:close()
    end)

    it("don't match as a whole where one that was looked at raises", function()
        local events = {}
        local policy = loading.good(statements [[

bus:on("A", policy.any({ a = 1 }, function() error("no", 0) end, { b = 1 })):discard()
bus:on("A", policy.none(function() error("nor this", 0) end)):discard()]], {
            event = function(event) events[#events + 1] = event end,
        })
        assert.equal("discard", policy:decide({ error = { type = "A", a = 1 } }).action)
        assert.equal(0, #events)
        assert.equal("no_rule", policy:decide({ error = { type = "A", b = 1 } }).reason)
        assert.same({ 2, 3 }, { events[1].rule.line, events[2].rule.line })
        assert.matches("no", events[1].text, 1, true)
        policy:close()
    end)

    it("may be nested 100 deep, and beyond that are one mistake, in the line of the word, among the others", function()
        local text = [[

local m, v = policy.all({ a = 1 }), policy.is_not(1)
for _ = 1, %d do
    m = policy.any(
        policy.none({ b = 1 }), m)
    v = policy.is_not(v)
end
bus:on("A", m):retry()
bus:on("A", { v = v }):retry(%s)]]
        loading.good(statements(text:format(98, ""))):close()
        assert.same({
            "policy.lua:4: any is nested more than 100 deep",
            "policy.lua:6: is_not is nested more than 100 deep",
            'policy.lua:9: retry: attempts must be a whole number from 0 to 1000, not "5"',
        }, (loading.refused(statements(text:format(150, '"5"')))))
    end)

    it("may stand in others as often as their parts can be looked at", function()
        local text = [[

local m = policy.all({ a = 1 }, { b = 2 })
for _ = 1, %d do
    m = policy.any(m, m)
end
bus:on("A", m):retry()]]
        loading.good(statements(text:format(10))):close()
        local lists = [[

local list, m = {}, {}
for i = 1, 10000 do
    list[i] = i
end
local all = policy.all({ a = list })
for i = 1, %d do
    m[i] = all
end
bus:on("A", policy.any(table.unpack(m))):retry()]]
        loading.good(statements(lists:format(40))):close()
        for _, refused in ipairs { text:format(50), lists:format(60) } do
            assert.same(
                { "policy.lua: matchers with more than 500000 parts and values, "
                    .. "each as often as it stands in another" },
                (loading.refused(statements(refused)))
            )
        end
    end)
end)
