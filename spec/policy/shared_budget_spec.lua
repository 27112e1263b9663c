-- The budget that all functions and patterns of one decision share: that of ten calls.
local loading = require "support.loading"

-- The verdict on an A by 4,000 such rules for it and what follows them, the events that came with it, and the verdict
-- on a B, which has no such rules.
local function decided(case)
    local events = {}
    local text = ("%s\nfor i = 1, 4000 do bus:on('A', %s):retry(1) end\n%s"):format(case.before or "", case.matcher,
        case.after or "bus:on('A'):discard('well')")
    local policy = loading.good(loading.statements(text), { event = function(event) events[#events + 1] = event end })
    local verdict
    for _ = 1, 2 do -- each decision has a budget of its own
        events = {}
        verdict = assert(policy:decide { error = { type = "A", message = ("a"):rep(9000) } })
    end
    policy:close()
    return verdict, events
end

local SPENT = "the matchers before took what one decision may spend on functions and patterns, ten calls' budget"

local hostile = {
    ["loop"] = { matcher = "function() while true do end end", told = 10 },
    ["loop in pcall"] = {
        matcher = "function() while true do pcall(function() while true do end end) end end",
        told = 10,
    },
    ["loop as a part"] = { matcher = "policy.any({ x = 1 }, function() while true do end end)", told = 10 },
    ["try a pattern of a table for long"] = {
        matcher = "{ message = policy.matches(('.-'):rep(6) .. 'b') }",
        told = 10,
    },
    ["nearly loop, and don't pass"] = { matcher = "function() for _ = 1, 95000 do end return false end", told = 0 },
    ["make strings"] = {
        matcher = "function() local s = ('x'):rep(60000) while true do local _ = s .. s end end",
        told = 10,
    },
    ["make one string"] = {
        matcher = "function() local x = ('x'):rep(60000) local s = x for _ = 1, 6 do s = s .. x end return false end",
        told = 0,
    },
    ["let a large state be searched for garbage"] = {
        matcher = "function() for _ = 1, 6 do local _ = x .. x end return false end",
        before = "local x, keep = ('x'):rep(300000), {} for i = 1, 300000 do keep[i] = { i } end",
        told = 0,
    },
    ["raise"] = { matcher = "function() error 'no' end", told = 100 },
}

describe("4,000 matchers of one type", function()
    for what, case in pairs(hostile) do
        it("that " .. what .. " share a budget: those beyond it are skipped, which is told once", function()
            local verdict, events = decided(case)
            assert.equal("well", verdict.note)
            assert.is_true(#events <= case.told + 1, #events .. " events")
            local last = events[#events]
            assert.equal("matcher_failed", last.name)
            assert.equal("A", last.failure.error.type)
            assert.matches("policy.lua", last.rule.file, 1, true)
            local more = tonumber(last.text:match "^skipped, as were (%d+) more: ")
            assert.is_true(more and more >= 4000 - 1 - 1000, last.text)
            assert.matches(SPENT, last.text, 1, true)
        end)
    end

    it("that cost next to nothing are all asked", function()
        local verdict, events = decided {
            matcher = "function(err) return i == 4000 and err.message:find('a', 1, true) end",
            after = "bus:on('A'):discard('nobody')",
        }
        assert.same({}, events)
        assert.equal("retry", verdict.action)
    end)

    it("that use up the budget leave none for an override, whose verdict stands", function()
        local verdict, events = decided {
            matcher = "function() while true do end end",
            after = "bus:on('A'):discard('well') bus:override(function() return policy.retry() end)",
        }
        assert.equal("well", verdict.note)
        assert.equal(12, #events)
        assert.equal("override_failed", events[12].name)
        assert.equal("not called: " .. SPENT, events[12].text)
    end)
end)

it("one matcher of many parts has the budget of a decision, too", function()
    local part = "function() for _ = 1, 95000 do end end"
    local policy = loading.good(loading.statements(([[
local parts = {}
for i = 1, 200 do parts[i] = %s end
bus:on("A", policy.any(table.unpack(parts))):retry(1)
bus:on("A", %s):retry(1)
bus:on("A"):discard("well")]]):format(part, part)))
    local found = assert(policy:explain { error = { type = "A" } })
    policy:close()
    assert.equal("well", found.verdict.note)
    assert.equal("skipped: " .. SPENT, found.candidates[1].why)
    assert.equal("skipped: " .. SPENT, found.candidates[2].why)
end)
