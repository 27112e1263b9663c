-- Random policies and failures: the table that C compiled and spec/support/naive.lua, which reads the language's page
-- straight, give the same verdicts. MULL_SEED repeats a run, MULL_PAIRS sets how many pairs it has.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"
local coverage = require "support.coverage"
local generate = require "support.generate"
local naive = require "support.naive"
local shrink = require "support.shrink"

local PAIRS = math.tointeger(tonumber(os.getenv("MULL_PAIRS"))) or 50000
local SEED = math.tointeger(tonumber(os.getenv("MULL_SEED"))) or os.time()
local FAILURES_A_POLICY = 50

-- How often each thing of the language must have been met: 1,000 times in a million pairs; fewer pairs meet some things
-- so seldom that a fifth of that is asked for.
local LEAST = PAIRS // (PAIRS >= 1000000 and 1000 or 5000)

-- Comparing -----------------------------------------------------------------------------------------------------------

local KEYS = { "action", "queue", "reason", "note", "tier", "step", "of", "fallback" }
local RULE_KEYS = { "file", "line", "scope", "type" }

local function show(value)
    if type(value) == "string" then return ("%q"):format(value) end
    if type(value) ~= "table" then return tostring(value) end
    local keys, words = {}, {}
    for key in pairs(value) do keys[#keys + 1] = key end
    table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
    for i, key in ipairs(keys) do
        words[i] = (math.type(key) and "" or key .. " = ") .. show(value[key])
    end
    return "{ " .. table.concat(words, ", ") .. " }"
end

local function differ(what, expected, got)
    return ("%s: the page says %s, the table says %s"):format(what, show(expected), show(got))
end

local function compare_delay(expected, got)
    if math.type(got) ~= "integer" or got < expected[1] or got > expected[2] then
        return differ("delay_ms", expected, got)
    end
end

-- The first difference between a verdict of the product and the naive one, or nil; `told` is what events told.
local function compare(expected, got, told)
    for _, key in ipairs(KEYS) do
        if expected[key] ~= got[key] then return differ(key, expected[key], got[key]) end
    end
    if (expected.rule == nil) ~= (got.rule == nil) then return differ("rule", expected.rule, got.rule) end
    for _, key in ipairs(expected.rule and RULE_KEYS or {}) do
        if expected.rule[key] ~= got.rule[key] then return differ("rule." .. key, expected.rule, got.rule) end
    end
    if show(expected.failed) ~= show(told.failed) then
        return differ("matchers that raised", expected.failed, told.failed)
    end
    if expected.override_failed ~= told.override_failed then
        return differ("the override failed", expected.override_failed, told.override_failed)
    end
    return compare_delay(expected.delay, got.delay_ms)
end

-- One policy ----------------------------------------------------------------------------------------------------------

-- A policy of the product beside the reading of its tree, and what its events told of the last decision.
local function load(tree)
    local told = { failed = {}, override_failed = false }
    local policy, message = mulligan.load_text(generate.text(tree), {
        event = function(event)
            if event.name == "matcher_failed" then told.failed[#told.failed + 1] = event.rule end
            if event.name == "override_failed" then told.override_failed = true end
        end,
    })
    if not policy then return nil, message end
    return { policy = policy, told = told, reading = naive.read(tree) }
end

-- What is wrong with the policy's word on a failure, or nil. Asked twice, it gives the same answer.
local function disagreement(loaded, failure, options, twice)
    local policy, told = loaded.policy, loaded.told
    told.failed, told.override_failed = {}, false
    local got, message = policy:decide(failure, options)
    if not got then return "decide: " .. message end
    local expected = naive.decide(loaded.reading, failure, options)
    local wrong = compare(expected, got, told)
    if wrong and expected.open then
        local late = { seed = options.seed, no_jitter = options.no_jitter, late = true }
        wrong = compare(naive.decide(loaded.reading, failure, late), got, told)
    end
    if wrong then return wrong end
    if got.generation ~= policy:generation() then return "generation: " .. show(got.generation) end
    if twice and show(policy:decide(failure, options)) ~= show(got) then
        return "the same failure got another verdict"
    end
end

-- The same for a case that is loaded anew; one that isn't whole, or doesn't load, is no disagreement.
local function still_wrong(case)
    local whole, wrong = pcall(function()
        local loaded = load(case.tree)
        if not loaded then return nil end
        local decided, found = pcall(disagreement, loaded, case.failure, case.options, true)
        loaded.policy:close()
        return decided and found
    end)
    return whole and wrong or nil
end

local function report(seed, case)
    shrink(case, still_wrong)
    local wrong = still_wrong(case) or "it no longer disagrees when it is loaded again"
    error(("%s\n\nMULL_SEED=%d\n\n%s\nfailure = %s\noptions = %s\n"):format(
        wrong, seed, generate.text(case.tree), show(case.failure), show(case.options)), 0)
end

local function try_policy(seed, random, count)
    local tree = generate.policy(random)
    local loaded, refused = load(tree)
    if not loaded then error(("MULL_SEED=%d: refused:\n%s\n%s"):format(seed, refused, generate.text(tree)), 0) end
    for i = 1, count do
        local failure = generate.failure(random, i, tree)
        local options = { seed = random:chance(0.5) and random(1000) or nil, no_jitter = random:chance(0.3) or nil }
        if disagreement(loaded, failure, options, i % 10 == 0) then
            report(seed, { tree = tree, failure = failure, options = options })
        end
    end
    loaded.policy:close()
end

describe("random policies and failures", function()
    it("get the verdicts that the page gives them", function()
        print(("\n%d pairs, MULL_SEED=%d"):format(PAIRS, SEED))
        local random = testing.random(SEED)
        for done = 0, PAIRS - 1, FAILURES_A_POLICY do
            try_policy(SEED, random, math.min(FAILURES_A_POLICY, PAIRS - done))
        end
        print(coverage.text())
        assert.same({}, coverage.missing(LEAST))
    end)

    it("shrink to little when they don't", function()
        local case = { tree = { 1, 2, { 3, { parts = { { x = 4, n = 5 } } } } }, failure = { a = 1, b = { 2 } } }
        local function is_in(value)
            if type(value) ~= "table" then return false end
            if value.x == 4 and value.n then return true end
            for _, inner in pairs(value) do
                if is_in(inner) then return true end
            end
            return false
        end
        shrink(case, function(c) return is_in(c.tree) end)
        assert.same({ tree = { x = 4, n = 1 } }, case)
    end)
end)
