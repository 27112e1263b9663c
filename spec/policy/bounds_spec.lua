-- The bounds that policy:check gives hold for messages that are followed by policy:decide, on whatever consumer and
-- transport: which scope and which settings they are for is part of them. That they are the least is shown by
-- spec/unit/analysis/bounds.c. MULL_SEED repeats a run, MULL_BOUNDS_POLICIES says how long it is.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"
local generate = require "support.generate"
local loading = require "support.loading"

local SEED = math.tointeger(tonumber(os.getenv("MULL_SEED"))) or os.time()
local POLICIES = math.tointeger(tonumber(os.getenv("MULL_BOUNDS_POLICIES"))) or 400
local HANDLER_MS, WALKS, MOST_CALLS = 30000, 10, 400

local function by_scope(bounds)
    local found = {}
    for _, scope in ipairs(bounds) do found[scope.scope] = scope end
    return found
end

-- The bounds for a consumer on a transport; nil: no rules are in force there.
local function bounds_for(scopes, who)
    return scopes["consumer:" .. tostring(who.consumer)] or scopes["transport:" .. tostring(who.transport)]
        or scopes.bus or scopes.host
end

-- Takes a message to its end: how many calls, and when; nil: not within MOST_CALLS.
local function walk(random, policy, who, number, tree)
    local attempt, redeliveries, age = 1, 0, 0
    for calls = 1, MOST_CALLS do
        local failure = {
            error = generate.failure(random, number, tree).error, consumer = who.consumer, transport = who.transport,
            attempt = attempt, redeliveries = redeliveries, calls = calls, age_ms = age,
            message = { id = ("m-%d-%d"):format(number, calls) },
        }
        local verdict = assert(policy:decide(failure))
        if verdict.action ~= "retry" and verdict.action ~= "redeliver" then return calls, age end
        attempt = verdict.action == "retry" and attempt + 1 or 1
        redeliveries = redeliveries + (verdict.action == "redeliver" and 1 or 0)
        age = age + verdict.delay_ms + random:pick { 0, HANDLER_MS, random(HANDLER_MS) }
    end
end

local function holds(bounds, calls, age)
    return calls <= (bounds.calls or math.maxinteger) and age >= (bounds.shortest_ms or math.maxinteger)
        and age <= (bounds.longest_ms or math.maxinteger)
end

it("no message exceeds the bounds of its scope", function()
    local random = testing.random(SEED)
    local ended, bounded = 0, 0
    for number = 1, POLICIES do
        local tree = generate.policy(random)
        local text = generate.text(tree)
        local policy = mulligan.load_text(text)
        local scopes = policy and by_scope(policy:check().bounds) or {}
        for _ = 1, next(scopes) and WALKS or 0 do
            local who = generate.failure(random, number, tree)
            local bounds = bounds_for(scopes, who)
            if bounds then
                local calls, age = walk(random, policy, who, number, tree)
                ended = ended + (calls and 1 or 0)
                bounded = bounded + (bounds.longest_ms and 1 or 0)
                if calls and not holds(bounds, calls, age) then
                    error(("seed %d, policy %d: a message in %s, consumer %s, transport %s, has %d calls and ends "
                        .. "after %d ms; bounds are %s calls, %s to %s ms:\n%s"):format(SEED, number, bounds.scope,
                        who.consumer, who.transport, calls, age, bounds.calls, bounds.shortest_ms, bounds.longest_ms,
                        text))
                end
            end
        end
        if policy then policy:close() end
    end
    io.stderr:write(("# bounds: seed %d, %d messages\n"):format(SEED, ended))
    assert.is_true(ended > POLICIES and bounded > POLICIES)
end)

describe("bounds", function()
    local function check(text, given)
        local policy = loading.good('local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n' .. text)
        local bounds = policy:check(given).bounds
        policy:close()
        return bounds
    end

    -- One scope: its calls, shortest and longest, in seconds where they are whole.
    local function of(text, given)
        local scope = check(text, given)[1]
        return { scope.calls or "none", scope.shortest_ms and scope.shortest_ms / 1000 or "none",
            scope.longest_ms and scope.longest_ms / 1000 or "none" }
    end

    local readable = 'bus:on("MessageDeserializationError"):retry { "1s" }\n'

    it("are those of retries and redeliveries", function()
        assert.same({ 16, 0.0, 4 * (1 + 2 + 3) + 60 + 120 + 180 + 15 * 30.0 },
            of 'bus:default():retry { "1s", "2s", "3s" }:then_redeliver { "1m", "2m", "3m" }')
    end)

    it("are those of the rules together", function()
        assert.same({ 6, 1.0, (1 + 1) * 2 + 10.0 + 5 * 30 }, of(readable
            .. 'bus:default():retry { "1s", "1s" }:then_redeliver { "10s" }'))
    end)

    it("end where max_attempts and max_age do", function()
        assert.same({ 2, 0.0, 60 + 30.0 },
            of [[bus:default():retry { "1s" }:then_redeliver { "1m" }; bus:on("A"):redeliver { "1m" }
                bus:max_attempts(2)]])
        assert.same({ 2, 0.0, 30 * 60 + 30.0 },
            of 'bus:default():redeliver { "30m", "30m", "30m" }; bus:max_age("29m")')
    end)

    it("are none with an override, unless max_attempts is set", function()
        local override = "bus:override(function() return policy.retry() end)\n"
        assert.same({ "none", 0.0, "none" }, of(override .. "bus:default():retry()"))
        assert.same({ 3, 0.0, 2 * (365 * 86400 + 30.0) },
            of(override .. "bus:default():retry(); bus:max_attempts(3)"))
    end)

    it("are none for calls of no duration without end", function()
        assert.same({ "none", 0.0, 3600 + 30.0 },
            of 'bus:default():redeliver { attempts = "unlimited", delay = 0 }; bus:max_age("1h")')
    end)

    it("know the consumers that they are given, and their timeouts", function()
        local text = 'bus:default():retry { "1s" }; policy.transport("slow"):max_attempts(1)'
        local function consumer(transport, timeout)
            local one = { name = "C", transport = transport, url = "memory:", queue = "q", timeout = timeout }
            return { consumers = { one } }
        end
        assert.same({ 2, 0.0, 31.0 }, of(text))
        assert.same({ 2, 0.0, 3.0 }, of(text, consumer("fast", "2s")))
        assert.same({ 1, 0.0, 0.0 }, of(text, consumer("slow", "2s")))
        assert.same({ 2, 0.0, "none" }, of(text, consumer("fast", false)))
    end)

    it("leave out rules that never come into play", function()
        assert.same({ 2, 0.0, 31.0 }, of 'bus:default():retry { "1s" }; bus:on("Error", { x = 1 }):retry(100)')
    end)

    it("tell misuse of policy:check", function()
        local policy = loading.good ""
        assert.error_matches(function() policy:check(3) end, "policy:check: options must be a table, not 3")
        assert.error_matches(function() policy:check { consumer = {} } end,
            'unknown option "consumer"; did you mean "consumers"?', 1, true)
        assert.error_matches(function() policy:check { consumers = 3 } end,
            "policy:check: consumers must be a list, not 3")
        assert.error_matches(function() policy:check { consumers = { { name = "C" } } } end,
            "policy:check: consumers number 1: queue is missing; transport is missing; url is missing")
        assert.error_matches(function() policy:check { transports = { "t", 1 } } end,
            "policy:check: transports number 2 must be a name in UTF-8, not 1", 1, true)
        assert.error_matches(function() policy:check { transports = { t = true } } end,
            "policy:check: transports must be a list of names, not a table")
        policy:close()
    end)
end)
