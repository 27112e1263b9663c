-- Short matchers, whose err has at hand what they read from it: each gives what the same one gives that isn't short.
-- MULL_SEED repeats a run.
local loading = require "support.loading"

local SEED = math.tointeger(tonumber(os.getenv("MULL_SEED"))) or os.time()
local FAILURES = 2000

local bodies = {
    "return err.a == 1",
    "return err.ab == 1 or err.a == 'x'",
    "return err.is == true or err.is == 1 or err.is == 'x'",
    "return err.a",
    "return not err.a and err.b",
    "return err.a and err.b and err.c and err.d and err.e and err.f",
    "return err.a == err.b",
    "return err.a < err.b",
    "return err.a + err.b > 1.5",
    "return #err.a > 1",
    "return err.a[1] == 1 or err.a.x == 'x'",
    "return err.a == ctx.consumer",
    "return err.message == err.a or err.message == ''",
    "return err.stack ~= err.message",
    "return err.type == err.a or err.type == err.b",
    "return err.is and err.cause",
    "return err.cause.a == err.a and err.cause.type == 'C'",
    "return err[ctx.consumer] == err.a",
    "return err['a\\0b'] or err[''] or err[1]",
    "return #err == 0 and err == err and err.a",
    "err = err.cause return err.a",
    "err = ctx return err.attempt == 1 and err.message.id",
    "local a, b = err.a, err.b return a and a == b and a == err.a",
}

-- Each body twice, for a type of its own: as it is, and with a loop around it.
local function both()
    local rules = {}
    for i, body in ipairs(bodies) do
        rules[#rules + 1] = ("bus:on('S%d', function(err, ctx) %s end):discard()"):format(i, body)
        rules[#rules + 1] = ("bus:on('L%d', function(err, ctx) for _ = 1, 1 do %s end end):discard()"):format(i, body)
    end
    return loading.statements(table.concat(rules, " "))
end

local values = { 1, 2.5, 0, "", "x", "text", ("y"):rep(63), ("y"):rep(64), ("z"):rep(5000), true, false, { 1, "x" },
    { x = "x" } }

local function random_text()
    return ({ "", "x", ("y"):rep(63), ("z"):rep(5000) })[math.random(5)]
end

local function random_error(type)
    local error = { type = type, message = random_text(), stack = random_text() }
    for _, name in ipairs { "ab", "a", "b", "c", "d", "e", "f", "is" } do
        if math.random(3) > 1 then error[name] = values[math.random(#values)] end
    end
    for i = 1, math.random(20) == 1 and 70 or 0 do error["more" .. i] = i end
    return error
end

describe("a short matcher", function()
    local events = {}
    local function keep(event) events[#events + 1] = event end

    before_each(function() events = {} end)

    -- Whether the matcher passed, and why it failed.
    local function answer(policy, failure, kind, number)
        local before = #events
        failure.error.type = kind .. number
        local verdict = assert(policy:decide(failure))
        return verdict.reason == "rule", events[before + 1] and events[before + 1].text
    end

    it("gives what the same matcher gives with a loop around it", function()
        print(("# MULL_SEED=%d"):format(SEED))
        math.randomseed(SEED)
        local policy = loading.good(both(), { event = keep })
        local passed, failed = 0, 0
        for _ = 1, FAILURES do
            local number = math.random(#bodies)
            local failure = { error = random_error("A"), consumer = "a", message = { id = "m-1" } }
            if math.random(2) == 1 then failure.error.cause = random_error(math.random(2) == 1 and "C" or "D") end
            local passes, why = answer(policy, failure, "S", number)
            local wanted, because = answer(policy, failure, "L", number)
            assert.equal(wanted, passes, bodies[number])
            assert.equal(because, why, bodies[number])
            passed, failed = passed + (passes and 1 or 0), failed + (why and 1 or 0)
        end
        policy:close()
        assert.is_true(passed > FAILURES / 5 and failed > FAILURES / 50, passed .. " " .. failed)
    end)

    it("that is an override as well finds nothing there of its calls as a matcher", function()
        local policy = loading.good(loading.statements [[
local function f(given)
    if given.error then return given.error.status == 1 or nil end
    return given.status == 1
end
bus:on("A", f):discard()
bus:override(f)
]], { event = keep })
        local function decide(type, status)
            return assert(policy:decide { error = { type = type, status = status } }).reason, #events
        end
        assert.same({ "rule", 1 }, { decide("A", 1) })
        assert.same({ "no_rule", 1 }, { decide("B", 2) })
        assert.same({ "no_rule", 2 }, { decide("B", 1) })
        policy:close()
    end)
end)
