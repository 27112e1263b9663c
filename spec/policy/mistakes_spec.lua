-- Mistakes in matchers and values, each in its line: what is wrong, and what would be right; and all mistakes wherever
-- they are made: in a pcall, in another file, in a chain over several lines, several at once.
local mulligan = require "mulligan"
local loading = require "support.loading"

local statements = loading.statements

local NOT_A_VALUE = "must be a string, a number, a boolean, a list of these, or what such a word as "
    .. "policy.between gives, not "

-- statement -> what is told of it
local mistakes = {
    -- the values of fields
    { "bus:on('X', { a = print }):retry()",
        "the value of a " .. NOT_A_VALUE .. "a function; a function in the place of "
        .. "the whole table can look at anything" },
    { "bus:on('X', { a = policy.between }):retry()", "the value of a " .. NOT_A_VALUE .. "a function" },
    { "bus:on('X', { a = bus }):retry()", "the value of a " .. NOT_A_VALUE .. "a table" },
    { "bus:on('X', { a = policy.ctx { attempt = 1 } }):retry()",
        "the value of a " .. NOT_A_VALUE .. "policy.ctx(...)" },
    { "bus:on('X', { a = {} }):retry()",
        "the value of a is an empty table; a list needs a value at least: { 502, 503 }" },
    { "bus:on('X', { a = { b = 1 } }):retry()",
        "the value of a is a table with names in it; a list of values has none" },
    { "bus:on('X', { headers = { tenant = 'acme' } }):retry()",
        "the value of headers is a table with names in it; what isn't of the error is asked for by "
        .. 'policy.ctx { message = { headers = { tenant = "acme" } } }' },
    { "bus:on('X', { message = { type = 'A' } }):retry()",
        "the value of message is a table with names in it; what isn't of the error is asked for by "
        .. 'policy.ctx { message = { type = "OrderPlaced" } }' },
    { "bus:on('X', { ctx = { attempt = 1 } }):retry()",
        "the value of ctx is a table with names in it; what isn't of the error is asked for by "
        .. "policy.ctx { redeliveries = 0 }" },
    { "policy.ctx { message = { headers = { message = { a = 1 } } } }",
        "the value of the header message is a table with names in it; a list of values has none" },
    { "bus:on('X', { a = { 1, nil, 3 } }):retry()", "the value of a is a table with names in it" },
    { "bus:on('X', { a = { [print] = 1 } }):retry()", "the value of a is a table with names in it" },
    { "bus:on('X', { a = { 1, {} } }):retry()",
        "the value of a has a list in which number 2 must be a string, a number "
        .. "or a boolean, not a table" },
    { "bus:on('X', { a = { policy.present } }):retry()", "the value of a has a list in which number 1 must be a "
        .. "string, a number or a boolean, not policy.present" },
    { "bus:on('X', { a = { 1, 0/0 } }):retry()", "the value of a is not a number (nan), which equals nothing" },
    { "bus:on('X', { a = { '\\xff' } }):retry()", "the value of a must be valid UTF-8 without a zero byte" },
    { "bus:on('X', { ['a\\nb'] = {} }):retry()", "the value of a b is an empty table" },

    -- the words that make values
    { "policy.between(1)", "between: the second must be a number, not nil" },
    { "policy.between('1', 2)", 'between: the first must be a number, not "1"' },
    { "policy.between(2, 0/0)", "between: the second must be a number, not nan" },
    { "policy.between(599, 500)", "between: 599 is greater than 500, so nothing is between them; between(500, 599)?" },
    { "policy.between(1, 2, 3)", "between has 3 arguments; it takes two numbers" },
    { "policy.at_least('3')", 'at_least: the least must be a number, not "3"' },
    { "policy.at_least(0/0)", "at_least: the least must be a number, not nan" },
    { "policy.at_most()", "at_most: the most must be a number, not nil" },
    { "policy.at_most(1, 2)", "at_most has 2 arguments; it takes one number" },
    { "policy.contains(5)", "contains: the text must be a string, not 5" },
    { "policy.contains('a\\0')", "contains: the text must be valid UTF-8 without a zero byte" },
    { "policy.contains('a', 'b')", "contains has 2 arguments; it takes one text" },
    { "policy.matches(5)", "matches: the pattern must be a string, not 5" },
    { "policy.matches('[a')", "matches: the pattern \"[a\" is no Lua pattern: malformed pattern (missing ']')" },
    { "policy.matches('%')", "matches: the pattern \"%\" is no Lua pattern: malformed pattern (ends with '%')" },
    { "policy.matches('a(')", 'matches: the pattern "a(" is no Lua pattern: unfinished capture' },
    { "policy.matches('a\0b')", "matches: the pattern must be valid UTF-8 without a zero byte" },
    { "policy.matches('a', true)", "matches has 2 arguments; it takes one pattern" },
    { "policy.is_not()", "the value of is_not " .. NOT_A_VALUE .. "nil" },
    { "policy.is_not({})", "the value of is_not is an empty table" },
    { "policy.is_not(1, 2)", "is_not has 2 arguments; it takes one value" },
    { "policy.is_not(policy.all({ a = 1 }))", "the value of is_not " .. NOT_A_VALUE .. "policy.all(...)" },
    { "policy.present()", "policy.present is the value of a field, { status = policy.present }, and nothing else" },
    { "policy.absent.x = 5", "policy.absent is the value of a field, { status = policy.absent }, and nothing else" },
    { "policy.between(1, 2):retry()", "policy.between(...) is the value of a field" },
    { "bus:present()", "present belongs to policy: policy.present" },
    { "bus:on('X'):between(1, 2)", "between belongs to policy: policy.between(...)" },
    { "policy:between(1, 2)", "between is called with a point: policy.between(...)" },
    { "policy.betwen(1, 2)", '"betwen" is no word of policy; did you mean between?' },
    { "local _ = policy.presnt", '"presnt" is no word of policy; did you mean present?' },

    -- ctx
    { "policy.ctx()", "ctx must be a table, { redeliveries = 0 }, not nil" },
    { "policy.ctx(function() end)", "ctx must be a table, { redeliveries = 0 }, not a function" },
    { "policy.ctx {}", "ctx is an empty table; leave it out, or name a field: { redeliveries = 0 }" },
    { "policy.ctx({ attempt = 1 }, 2)", "ctx has 2 arguments; it takes one table" },
    { "policy.ctx { 5 }",
        "ctx has no 1; there are attempt, redeliveries, deliveries, calls, age_ms, consumer, transport "
        .. "and message" },
    { "policy.ctx { [print] = 1 }", "ctx has a function for the name of a field; names are strings" },
    { "policy.ctx { atempt = 1 }", 'ctx has no "atempt"; did you mean attempt?' },
    { "policy.ctx { headers = { a = 1 } }", "ctx has no \"headers\"; it is the message's: "
        .. "ctx { message = { headers = ... } }" },
    { "policy.ctx { status = 1 }", 'ctx has no "status"; there are attempt' },
    { "policy.ctx { attempt = {} }", "the value of ctx.attempt is an empty table" },
    { "policy.ctx { message = 'x' }", 'ctx.message must be a table, { type = "OrderPlaced" }, not "x"' },
    { "policy.ctx { message = policy.present }", "ctx.message must be a table, { type = \"OrderPlaced\" }, not "
        .. "policy.present" },
    { "policy.ctx { message = false }", "ctx.message must be a table" },
    { "policy.ctx { message = {} }", "ctx.message is an empty table" },
    { "policy.ctx { message = { tpye = 'x' } }", 'ctx.message has no "tpye"; did you mean type?' },
    { "policy.ctx { message = { id = print } }", "the value of ctx.message.id " .. NOT_A_VALUE .. "a function" },
    { "policy.ctx { message = { headers = 5 } }", 'ctx.message.headers must be a table, { tenant = "acme" }, not 5' },
    { "policy.ctx { message = { headers = {} } }", "ctx.message.headers is an empty table" },
    { "policy.ctx { message = { headers = { 'x' } } }",
        'ctx.message.headers must name its fields, { tenant = "acme" }; '
        .. '"x" has no name' },
    { "policy.ctx { message = { headers = { [''] = 'x' } } }", "the name of a field must not be empty" },
    { "policy.ctx { message = { headers = { a = {} } } }", "the value of the header a is an empty table" },

    -- all, any, none
    { "policy.all()", "all is empty; it needs a matcher at least: all({ status = 503 })" },
    { "policy.any(5)", "any: matcher 1 must be a table, { status = 503 }, or a function, not 5" },
    { "policy.none({ a = 1 }, nil)", "none: matcher 2 must be a table, { status = 503 }, or a function, not nil" },
    { "policy.all({ a = 1 }, {})", "all: matcher 2 is an empty table; leave it out" },
    { "policy.all { { a = 1 }, { b = 1 } }", "all takes its matchers side by side, all(a, b), not in a table" },
    { "policy.any(policy.present)",
        "any: matcher 1 must be a table, { status = 503 }, or a function, not policy.present" },
    { "policy.all({ a = 1 }):retry()",
        'policy.all(...) is a matcher, on("TimeoutError", policy.all(...)), and nothing' },
    { "bus:on('X', policy.between(1, 2)):retry()", "the matcher must be a table, { status = 503 }, or a function, not "
        .. "policy.between(...); it needs its field: { status = policy.between(...) }" },
    { "bus:on('X', bus):retry()", "the matcher must be a table, { status = 503 }, or a function, not a table" },

    -- answers of an override
    { "policy.retry(0.5)", "retry: delay 0.5 is no whole number of milliseconds" },
    { "policy.retry(nil)", "retry: delay nil is no span of time" },
    { "policy.retry('1s', '2s')", "retry has 2 arguments; it takes one delay at most" },
    { "policy.redeliver()", 'redeliver needs a delay: policy.redeliver("5m")' },
    { "policy.redeliver('5 min')", 'redeliver: delay "5 min" is no span of time' },
    { "policy.redeliver('1s', 1)", "redeliver has 2 arguments; it takes one delay" },
    { "policy.dead_letter('')", "dead_letter: the queue must not be empty" },
    { "policy.dead_letter(nil)", "dead_letter: the queue must be a string, not nil" },
    { "policy.dead_letter('a', 'b')", "dead_letter has 2 arguments; it takes one queue at most" },
    { "policy.discard(5)", "discard: the note must be a string, not 5" },
    { "policy.discard('\xff')", "discard: the note must be valid UTF-8" },
    { "policy.discard('a', 'b')", "discard has 2 arguments; it takes one note at most" },
    { "policy:retry('1s')", "retry is called with a point: policy.retry(...)" },
    { "policy.retry('1s'):then_redeliver()",
        "policy.retry(...) is what an override may return, and nothing else can be "
        .. "done with it; a rule begins with on" },
    { "policy.discard().note = 'x'",
        "policy.discard(...) is what an override may return, and nothing else can be done" },
    { "bus:on('X', policy.retry()):retry()", "the matcher must be a table, { status = 503 }, or a function, not "
        .. "policy.retry(...)" },
    { "bus:on('X', { a = policy.discard() }):retry()", "the value of a " .. NOT_A_VALUE .. "policy.discard(...)" },

    -- words of scopes
    { "bus:on_cause():retry()", 'on_cause needs an error type: on_cause("TimeoutError")' },
    { "bus:on_cause('X', {}):retry()", "the matcher is an empty table" },
    { "bus:on_cause('X', { a = 1 }, 5):retry()", "on_cause has 3 arguments; it takes a type and a matcher" },
    { "bus:on_cause('X')", 'the rule for "X" has no action; :retry, :redeliver, :dead_letter or :discard must follow' },
    { "bus:on_cause('X'):then_redeliver()", ":then_redeliver can't come first; here may stand :retry, :redeliver, "
        .. ":dead_letter or :discard" },
    { "bus:on_cuase('X'):retry()", '"on_cuase" is no word of a scope; did you mean on_cause?' },
    { "policy.unrecoverable('X')",
        "unrecoverable belongs to a scope: local bus = policy.bus(); bus:unrecoverable(...)" },
    { "bus:on('X'):include(bus)", "include belongs to a scope" },
}

describe("a mistake in a statement", function()
    for _, row in ipairs(mistakes) do
        local text, told = row[1], row[2]
        it("is told, and nothing besides: " .. text, function()
            local lines = loading.refused(statements("\n\n" .. text .. "\n"))
            assert.equal(1, #lines)
            assert.equal("policy.lua:3: " .. told, lines[1]:sub(1, #told + 14))
        end)
    end

    it("can't be swallowed by the policy's own pcall", function()
        for _, row in ipairs(mistakes) do
            local lines = loading.refused(statements(("\n\npcall(function() %s end)"):format(row[1])))
            assert.same(loading.refused(statements("\n\n" .. row[1])), lines)
        end
    end)

    it("is one of all, each in its line", function()
        for first = 1, #mistakes, 100 do -- more at a time aren't listed
            local text, expected = {}, {}
            for i, row in ipairs({ table.unpack(mistakes, first, math.min(first + 99, #mistakes)) }) do
                text[i], expected[i] = row[1], ("policy.lua:%d: %s"):format(i + 1, row[2])
            end
            local lines = loading.refused(statements("\n" .. table.concat(text, "\n")))
            assert.equal(#expected, #lines)
            for i, told in ipairs(expected) do
                assert.equal(told, lines[i]:sub(1, #told))
            end
        end
    end)

    it("of a required file names that file", function()
        local folder, remove = loading.folder {
            ["policy.lua"] = '\nrequire "rules"\nrequire "more.rules"',
            ["rules.lua"] = '\n\nrequire("mulligan.policy").bus():on_cause("A", {}):retry()',
            ["more/rules.lua"] = '\nlocal policy = require "mulligan.policy"\npolicy.preset.mocha(5)',
        }
        local _, message = mulligan.load(folder .. "/policy.lua")
        remove()
        assert.equal("more/rules.lua:3: mocha takes a scope first, such as policy.bus(), not 5\n"
            .. "rules.lua:3: the matcher is an empty table; leave it out, or name a field: { status = 503 }", message)
    end)

    it("has the line of its own word, over several lines too", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
policy
    .bus()
    :on_cause("A", policy
        .all(
            { a = policy
                .between(2, 1) },
            {}
        ))
    :retry {
        jitter = "ful",
    }
    :then_redeliver("unlimted")
    :then_discrd()
policy
    .consumer("Mail")
    :unrecoverable({
        "A", 5,
    })
]]
        local expected = {
            "5: all: matcher 2 is an empty table", "7: between: 2 is greater than 1", '10: retry: jitter must be',
            "13: then_redeliver: attempts must be a whole number", '14: "then_discrd" is no word of a rule',
            "17: type 2 of the list must be a string, not 5",
        }
        assert.equal(#expected, #lines)
        for i, told in ipairs(expected) do assert.equal("policy.lua:" .. told, lines[i]:sub(1, #told + 11)) end
    end)
end)
