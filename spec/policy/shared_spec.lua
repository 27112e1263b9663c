-- Rules that are said with the same arguments share what was read of them; those that only look the
-- same don't.
local loading = require "spec.support.loading"

local function decide(policy, type_name, fields)
    local err = { type = type_name }
    for name, value in pairs(fields or {}) do err[name] = value end
    return assert(policy:decide({ error = err, attempt = 1, redeliveries = 0, message = { id = "m" } },
        { no_jitter = true }))
end

describe("what rules share", function()
    it("is no matcher that differs in a value's type, or in where a name ends", function()
        local values = { "1", 1, 1.5, 128, true, false, "true", "", "bc" }
        local forms = {}
        for _, value in ipairs(values) do forms[#forms + 1] = { name = "a", value = value } end
        forms[#forms + 1] = { name = "ab", value = "c" }
        local text = {}
        for i, form in ipairs(forms) do
            text[i] = ('bus:on("T", { %s = %s }):discard("%d")'):format(form.name,
                type(form.value) == "string" and ("%q"):format(form.value) or tostring(form.value), i)
        end
        local policy = loading.good(loading.statements(table.concat(text, "\n")))
        for i, form in ipairs(forms) do
            assert.equal(tostring(i), decide(policy, "T", { [form.name] = form.value }).note)
        end
        policy:close()
    end)

    it("is no matcher whose one text has in it what another one says in two", function()
        local policy = loading.good(loading.statements [[
bus:on("T", { a = "x", b = "y" }):discard("two")
bus:on("T", { a = "xs\1bs\1y" }):discard("one, a first")
bus:on("T", { b = "ys\1as\1x" }):discard("one, b first")
]])
        assert.equal("two", decide(policy, "T", { a = "x", b = "y" }).note)
        assert.equal("one, a first", decide(policy, "T", { a = "xs\1bs\1y" }).note)
        assert.equal("one, b first", decide(policy, "T", { b = "ys\1as\1x" }).note)
        policy:close()
    end)

    it("is no tier that differs in its arguments' number, in one of them, or in its word", function()
        local policy = loading.good(loading.statements [[
bus:on("A"):retry(2)
bus:on("B"):retry(2, "5m")
bus:on("C"):redeliver(2)
bus:on("D"):redeliver(2, "5m")
bus:on("E"):redeliver { "5m", "2m" }
bus:on("F"):redeliver { "2m", "5m" }
bus:on("G"):redeliver { delay = "2m" }
bus:on("H"):redeliver { delay = "2m", attempts = 7 }
bus:on("I"):redeliver { attempts = 7, delay = "2m" }
]])
        local found = {}
        for name in ("ABCDEFGHI"):gmatch(".") do
            local verdict = decide(policy, name)
            found[#found + 1] = ("%s %s %d %d"):format(name, verdict.tier, verdict.of, verdict.delay_ms)
        end
        assert.same({
            "A retry 2 200", "B retry 2 30000", "C redeliver 2 300000", "D redeliver 2 300000",
            "E redeliver 2 300000", "F redeliver 2 120000", "G redeliver 3 120000", "H redeliver 7 120000",
            "I redeliver 7 120000",
        }, found)
        policy:close()
    end)

    it("is the same for every rule with the same arguments, a wrong one's mistake too", function()
        local text = {}
        for i = 1, 3 do text[i] = ('bus:on("T%d", { a = 1, b = "x" }):retry(4, "1s", "constant")'):format(i) end
        local policy = loading.good(loading.statements(table.concat(text, "\n")))
        for i = 1, 3 do
            local verdict = decide(policy, "T" .. i, { a = 1, b = "x" })
            assert.same({ 4, 1000 }, { verdict.of, verdict.delay_ms })
            assert.equal("no_rule", decide(policy, "T" .. i, { a = 1, b = "y" }).reason)
        end
        policy:close()
        local lines = loading.refused(loading.statements [[

bus:on("A"):retry(3, "1parsec")
bus:on("B"):retry(3, "1parsec")]])
        assert.matches("^policy.lua:2: ", lines[1])
        assert.matches("^policy.lua:3: ", lines[2])
    end)
end)
