-- Rules for several types, and those of one scope in another: what counts in which order, and which rules are gone.
local loading = require "support.loading"

local statements = loading.statements

-- "scope line" of the rule that decides; `failure` is an error type or a failure.
local function decided(policy, failure)
    if type(failure) == "string" then failure = { error = { type = failure } } end
    local rule = assert(policy:decide(failure)).rule
    return rule and ("%s %d"):format(rule.scope, rule.line) or "none"
end

describe("a rule for a list of types", function()
    it("is one for each of them, in the place of its word", function()
        local policy = loading.good(statements [[

bus:on("B"):discard()
bus
    :on({ "A", "B", "C" }, { code = 1 })
    :retry()
bus:on { "C", "A" }:dead_letter()]])
        local function line(type_name, code)
            return decided(policy, { error = { type = type_name, code = code } })
        end
        assert.equal(6, policy:rules())
        assert.same({ "bus 4", "bus 6" }, { line("A", 1), line("A") })
        assert.same({ "bus 2", "bus 2" }, { line("B", 1), line("B") })
        assert.same({ "bus 4", "bus 6" }, { line("C", 1), line("C") })
        policy:close()
    end)

    it("replaces, and is replaced, for each type by itself", function()
        local policy = loading.good(statements [[

bus:on { "A", "B" }:retry()
bus:on { "B", "C" }:discard()
bus:on("C"):retry(1)]])
        assert.equal(3, policy:rules())
        assert.same({ "bus 2", "bus 3", "bus 4" }, { decided(policy, "A"), decided(policy, "B"), decided(policy, "C") })
        policy:close()
    end)

    it("has its mistake told once", function()
        assert.same({ 'policy.lua:1: "rety" is no word of a rule; did you mean retry?' },
            (loading.refused(statements 'bus:on({ "A", "B" }):rety()')))
        assert.same({ 'policy.lua:1: the rule for "A" and "B" has no action; :retry, :redeliver, :dead_letter or '
            .. ":discard must follow" }, (loading.refused(statements 'bus:on({ "A", "B" })')))
        assert.equal(1, #loading.refused(statements 'bus:on({ "A", "B" }, {}):retry()'))
    end)
end)

describe("include", function()
    it("puts the rules of another scope behind its own, type by type, with their own places", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus, mail = policy.bus(), policy.consumer("Mail")
mail:include(bus)
bus:on("A"):retry()
bus:on("B", { code = 1 }):discard()
mail:on("B", { code = 1 }):dead_letter()
mail:on("B", { code = 2 }):dead_letter()
bus:on("B", { code = 2 }):discard()
bus:on("B"):discard()
bus:default():dead_letter()
]]
        local function line(type_name, code)
            return decided(policy, { error = { type = type_name, code = code }, consumer = "Mail" })
        end
        assert.equal("bus 4", line("A"))
        assert.equal("consumer:Mail 6", line("B", 1))
        assert.equal("consumer:Mail 7", line("B", 2))
        assert.equal("bus 9", line("B", 3))
        assert.equal("bus 10", line("C"))
        policy:close()
    end)

    it("lets an own plain rule replace an included one, wherever either stands", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus, mail = policy.bus(), policy.consumer("Mail")
mail:on("A"):retry()
bus:on("A", { code = 1 }):discard()
bus:on("A"):discard()
mail:include(bus)
bus:on("B"):discard()
mail:on("B"):retry()
]]
        local function line(type_name, code)
            return decided(policy, { error = { type = type_name, code = code }, consumer = "Mail" })
        end
        assert.equal("consumer:Mail 3", line("A"))
        assert.equal("consumer:Mail 3", line("A", 1))
        assert.equal("consumer:Mail 8", line("B"))
        assert.equal("bus 7", decided(policy, "B"))
        assert.equal(6, policy:rules()) -- three of each
        policy:close()
    end)

    it("takes along what the other scope includes, each rule once, in the order of the includes", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local bus, host, mail = policy.bus(), policy.host(), policy.consumer("Mail")
local orders = policy.transport("orders")
bus:include(host)
orders:include(host)
mail:include(orders)
mail:include(bus)
mail:include(bus)
host:on("A"):discard()
host:on("B"):discard()
bus:on("A", { code = 1 }):retry()
bus:on("B"):retry()
orders:on("C"):retry()
bus:on("C"):discard()
]]
        local function line(type_name, code)
            return decided(policy, { error = { type = type_name, code = code }, consumer = "Mail" })
        end
        assert.same({ "host 9", "host 10", "transport:orders 13" }, { line("A", 1), line("B"), line("C") })
        assert.equal(2 + 4 + 3 + 6, policy:rules()) -- of host, bus (with host), orders (with host), mail
        assert.equal("bus 11", decided(policy, { error = { type = "A", code = 1 } }))
        assert.equal("bus 12", decided(policy, "B"))
        policy:close()
    end)

    it("includes no settings", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local other, mail = policy.consumer("Other"), policy.consumer("Mail")
mail:include(other)
other:default():dead_letter()
other:dead_letter_queue("others")
]]
        local function queue(consumer)
            return policy:decide({ error = { type = "X" }, consumer = consumer }).queue
        end
        assert.same({ "others", "error" }, { queue("Other"), queue("Mail") })
        policy:close()
    end)

    it("makes a scope with rules of one that has none itself", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
policy.bus():on("A"):retry()
policy.consumer("Mail"):include(policy.host())
policy.host():on("B"):discard()
]]
        assert.equal("none", decided(policy, { error = { type = "A" }, consumer = "Mail" }))
        assert.equal("host 4", decided(policy, { error = { type = "B" }, consumer = "Mail" }))
        policy:close()
    end)

    it("goes round in no circle", function()
        local lines = loading.refused [[
local policy = require "mulligan.policy"
local bus, a, b = policy.bus(), policy.consumer("A"), policy.consumer("B")
bus:include(bus)
bus:include(a)
a:include(b)
b:include(a)
b
    :include(bus)
]]
        assert.same({
            "policy.lua:3: bus can't include itself: that goes round in a circle (bus > bus)",
            "policy.lua:6: consumer:B can't include consumer:A: that goes round in a circle "
                .. "(consumer:B > consumer:A > consumer:B)",
            "policy.lua:8: consumer:B can't include bus: that goes round in a circle "
                .. "(consumer:B > bus > consumer:A > consumer:B)",
        }, lines)
    end)

    local wrong = {
        { "include()", "include needs a scope: include(policy.bus())" },
        { 'include("bus")', 'include takes a scope, such as policy.bus(), not "bus"' },
        { "include(nil)", "include takes a scope, such as policy.bus(), not nil" },
        { "include(policy)", "include takes a scope, such as policy.bus(), not a table" },
        { "include(policy.host(), policy.host())", "include has 2 arguments; it takes one scope" },
    }
    for _, row in ipairs(wrong) do
        it("refuses " .. row[1], function()
            assert.same({ "policy.lua:2: " .. row[2] }, (loading.refused(statements("\nbus:" .. row[1]))))
        end)
    end

    it("is no second mistake where its scope is one", function()
        assert.equal(1, #loading.refused(statements 'bus:include(policy.consumer(""))'))
        assert.equal(1, #loading.refused(statements "bus:include(policy.bsu())"))
    end)
end)
