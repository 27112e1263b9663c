-- The presets: what each does, which place its rules have, and what is wrong with its options.
local loading = require "support.loading"

local statements = loading.statements

-- What an always failing message gets by a policy.
local function timeline(text, options)
    local policy = loading.good(statements(text))
    local steps = loading.timeline(policy, nil, options)
    policy:close()
    return steps
end

-- `rounds` rounds of `immediate` retries without delay, redelivered after increase x k in between.
local function rounds(immediate, delayed, increase)
    local steps = {}
    for round = 1, delayed + 1 do
        for _ = 1, immediate do steps[#steps + 1] = "retry 0" end
        steps[#steps + 1] = round <= delayed and ("redeliver %d"):format(round * increase)
            or "dead_letter error exhausted"
    end
    return steps
end

describe("policy.preset.nservicebus", function()
    it("makes 24 attempts, after 10, 20 and 30 seconds", function()
        local steps = timeline "policy.preset.nservicebus(bus)"
        assert.same(rounds(5, 3, 10000), steps)
        assert.equal(24, #steps)
        assert.same(steps, timeline "policy.preset.nservicebus(bus, {})")
    end)

    it("draws no delay by chance, and caps none", function()
        local text = 'policy.preset.nservicebus(bus, { immediate = 1, increase = "1d", max_age = false })'
        for seed = 1, 20 do assert.same(rounds(1, 3, 86400000), timeline(text, { seed = seed })) end
    end)

    local rows = {
        { "{ immediate = 0 }", rounds(0, 3, 10000) },
        { "{ delayed = 0 }", rounds(5, 0) },
        { "{ immediate = 0, delayed = 0 }", rounds(0, 0) },
        { '{ immediate = 2, delayed = 4, increase = "1m" }', rounds(2, 4, 60000) },
        { "{ increase = 0 }", rounds(5, 3, 0) },
    }
    for _, row in ipairs(rows) do
        it("takes " .. row[1], function()
            assert.same(row[2], timeline(("policy.preset.nservicebus(bus, %s)"):format(row[1])))
        end)
    end

    local function reason(options, failure)
        local policy = loading.good(statements(("policy.preset.nservicebus(bus, %s)"):format(options)))
        failure.error = failure.error or { type = "X" }
        local verdict = policy:decide(failure)
        policy:close()
        return verdict.reason
    end

    it("redelivers nothing that failed first more than a day ago, or than max_age", function()
        local day = 86400000
        local old = function(ms) return { attempt = 6, age_ms = ms } end
        assert.equal(nil, reason("{}", old(day)))
        assert.equal("max_age", reason("{}", old(day + 1)))
        assert.equal("max_age", reason('{ max_age = "1m" }', old(60001)))
        assert.equal(nil, reason("{ max_age = false }", old(9 * day)))
    end)

    it("dead-letters what is unrecoverable at once", function()
        local options = '{ unrecoverable = { "A", "B" } }'
        assert.equal("unrecoverable", reason(options, { error = { type = "A" } }))
        assert.equal("unrecoverable", reason(options, { error = { type = "B" } }))
        assert.equal(nil, reason(options, { error = { type = "C" } }))
        assert.equal(nil, reason("{ unrecoverable = {} }", { error = { type = "A" } }))
    end)

    it("stands in the policy where its word does", function()
        local policy = loading.good [[
local policy = require "mulligan.policy"
local orders = policy.transport("orders")
policy
    .preset
    .nservicebus(orders, {
        immediate = 1,
    })
policy.consumer("Mail"):include(orders)
]]
        local rule = policy:decide({ error = { type = "X" }, consumer = "Mail" }).rule
        assert.same({ file = "policy.lua", line = 5, scope = "transport:orders", type = "Error" }, rule)
        policy:close()
    end)

    it("leaves rules of one's own beside it", function()
        local policy = loading.good(statements [[

policy.preset.nservicebus(bus)
bus:on("A"):discard()
bus:max_age(false)]])
        assert.equal(3, policy:decide({ error = { type = "A" } }).rule.line)
        assert.equal("redeliver", policy:decide({ error = { type = "X" }, attempt = 6, age_ms = 1 << 40 }).action)
        policy:close()
    end)
end)

describe("policy.preset.mocha", function()
    it("retries and redelivers by the defaults", function()
        assert.same(timeline "bus:default():retry():then_redeliver()", timeline "policy.preset.mocha(bus)")
        assert.equal(16, #timeline "policy.preset.mocha(bus)")
    end)
end)

describe("a preset", function()
    local wrong = {
        { "nservicebus()", "nservicebus needs a scope: policy.preset.nservicebus(policy.bus())" },
        { "nservicebus(5)", "nservicebus takes a scope first, such as policy.bus(), not 5" },
        { "nservicebus({ immediate = 5 })", "nservicebus takes a scope first, such as policy.bus(), not a table" },
        { "nservicebus(bus, 5)", "nservicebus: the options must be a table, not 5" },
        { "nservicebus(bus, bus)", "nservicebus: the options must be a table, not a table" },
        { "nservicebus(bus, {}, {})", "nservicebus has 3 arguments; it takes a scope and a table of options" },
        { "nservicebus(bus, { imediate = 5 })", 'nservicebus: unknown option "imediate"; did you mean immediate?' },
        { "nservicebus(bus, { retries = 5 })", 'nservicebus: unknown option "retries"; there are immediate, delayed, '
            .. "increase, max_age and unrecoverable" },
        { "nservicebus(bus, { 5 })", "nservicebus: unknown option 1; there are" },
        { "nservicebus(bus, { [print] = 5 })", "nservicebus: unknown option: a function; there are" },
        { "nservicebus(bus, { immediate = 1001 })",
            "nservicebus: immediate must be a whole number from 0 to 1000, not 1001" },
        { 'nservicebus(bus, { delayed = "3" })',
            'nservicebus: delayed must be a whole number from 0 to 1000, not "3"' },
        { "nservicebus(bus, { increase = 10 })", 'nservicebus: increase 10 has no unit; "10ms" or "10s"?' },
        { "nservicebus(bus, { max_age = true })", "nservicebus: max_age true is no span of time" },
        { 'nservicebus(bus, { unrecoverable = "A" })', 'nservicebus: unrecoverable must be a list of types, not "A"' },
        { "nservicebus(bus, { unrecoverable = { A = 1 } })",
            "nservicebus: unrecoverable: a list of types must be names" },
        { "nservicebus(bus, { unrecoverable = { 5 } })",
            "nservicebus: unrecoverable: type 1 of the list must be a string, not 5" },
        { 'nservicebus(bus, { unrecoverable = { "A", "A" } })',
            'nservicebus: unrecoverable: "A" is in the list of types twice' },
        { "mocha()", "mocha needs a scope: policy.preset.mocha(policy.bus())" },
        { "mocha(bus, {})", "mocha has 2 arguments; it takes one scope" },
        { "mocha(bus):default()", "mocha ends its statement; nothing may follow it" },
        { "mocah(bus)", '"mocah" is no word of policy.preset; did you mean mocha?' },
        { "masstransit(bus)", '"masstransit" is no word of policy.preset; there are nservicebus and mocha' },
    }
    for _, row in ipairs(wrong) do
        it("refuses " .. row[1] .. " in the line of its word", function()
            local lines = loading.refused(statements("\npolicy.preset\n." .. row[1]))
            assert.equal(1, #lines)
            assert.equal("policy.lua:3: " .. row[2], lines[1]:sub(1, #row[2] + 14))
        end)
    end

    it("has all its mistakes told, and is called with a point", function()
        assert.equal(3, #loading.refused(statements "policy.preset.nservicebus(5, { immediate = -1, x = 1 })"))
        assert.same({ "policy.lua:1: mocha is called with a point: policy.preset.mocha(...)" },
            (loading.refused(statements "policy.preset:mocha(bus)")))
        assert.same({ "policy.lua:1: mocha is a preset: policy.preset.mocha(...)" },
            (loading.refused(statements "policy.mocha(bus)")))
        assert.same({ 'policy.lua:1: policy.preset can\'t be assigned to ("mine"); a local can keep a value' },
            (loading.refused(statements "policy.preset.mine = 5")))
    end)
end)
