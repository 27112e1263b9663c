-- What an override returns is made by words that are there in the load and after it.
local loading = require "support.loading"

-- What a function of a policy that is loaded does with `policy`: "yes" where it came to its end, else why not.
local function afterwards(body)
    local why
    local policy = loading.good(loading.statements(('bus:on("A", function() %s return true end):discard("yes")')
        :format(body)), { event = function(event) why = event.text end })
    local note = policy:decide({ error = { type = "A" } }).note
    policy:close()
    return note or why
end

describe("an answer of an override", function()
    local good = {
        "retry()", 'retry("1.5s")', "retry(0)", 'redeliver("365d")', "redeliver(0)", "dead_letter()",
        'dead_letter("parked")', "discard()", 'discard("stale")', 'discard("")', "seconds(1.5)",
        "redeliver(policy.seconds(3))", "retry(1500)", "redeliver(5.0)", "retry(365 * 86400000)", "ms(250)",
        "redeliver(policy.ms(1e3))",
    }
    for _, call in ipairs(good) do
        it("is made during the load and after it: " .. call, function()
            loading.good(loading.statements(("assert(policy.%s)"):format(call))):close()
            assert.equal("yes", afterwards(("assert(policy.%s)"):format(call)))
        end)
    end

    local wrong = {
        ["policy.retry(5.5)"] = "retry: delay 5.5 is no whole number of milliseconds",
        ["policy.redeliver(-1)"] = "redeliver: delay -1 is less than 0: a number with a unit is right, such as "
            .. '"200ms", "1.5s" or "1h30m"',
        ["policy.redeliver(1e300)"] = "redeliver: delay 1e+300 is longer than 365 days",
        ["policy.retry(0/0)"] = "retry: delay nan is no whole number of milliseconds",
        ["policy.retry(true)"] = "retry: delay true is no span of time: a number with a unit is right, such as "
            .. '"200ms", "1.5s" or "1h30m"',
        ["policy.ms(0.5)"] = "ms 0.5 is no whole number of milliseconds",
        ["policy.ms('5')"] = 'ms takes a number, not "5"',
        ["policy.ms(-5)"] = "ms takes 0 or more, not -5",
        ["policy.ms(1, 2)"] = "ms has 2 arguments; it takes one number",
        ["policy:ms(5)"] = "ms is called with a point: policy.ms(...)",
        ["policy.redeliver()"] = 'redeliver needs a delay: policy.redeliver("5m")',
        ["policy.redeliver('1s', 2)"] = "redeliver has 2 arguments; it takes one delay",
        ["policy.dead_letter('')"] = "dead_letter: the queue must not be empty",
        ["policy.discard(5)"] = "discard: the note must be a string, not 5",
        ["policy.seconds('5')"] = "seconds takes a number, not \"5\"",
        ["policy.retry(policy.seconds(1, 2))"] = "seconds has 2 arguments; it takes one number",
        ["policy:seconds(5)"] = "seconds is called with a point: policy.seconds(...)",
        ["policy:retry()"] = "retry is called with a point: policy.retry(...)",
        ["local x = policy.retry().delay_ms"] = "a policy can't be changed once it is loaded",
        ["policy.retry().delay_ms = 5"] = "a policy can't be changed once it is loaded",
    }
    for body, why in pairs(wrong) do
        it("is refused after the load by an error that says why: " .. body, function()
            assert.equal("policy.lua:1: " .. why, afterwards(body))
            assert.equal("yes", afterwards(("assert(not pcall(function() %s end))"):format(body)))
        end)
    end

    it("is refused with the line of its override where a tail call left no nearer one", function()
        local function refusal(override)
            local why
            local policy = loading.good(loading.statements("\n\nbus:override(" .. override .. ")"),
                { event = function(event) why = event.name .. " " .. event.text end })
            assert.equal("no_rule", policy:decide({ error = { type = "A" } }).reason)
            policy:close()
            return why
        end
        assert.equal("override_failed policy.lua:3: redeliver: delay 0.5 is no whole number of milliseconds",
            refusal "function()\n  return policy.redeliver(0.5)\nend")
        assert.equal("override_failed policy.lua:4: redeliver: delay 0.5 is no whole number of milliseconds",
            refusal "function()\n  local answer = policy.redeliver(0.5)\n  return answer\nend")
        assert.equal("override_failed discard has 3 arguments; it takes one note at most", refusal "policy.discard")
        assert.matches("^override_failed policy.lua:3: override must return nothing or one of .*, not a number$",
            refusal "function()\n  return 5\nend")
        assert.matches("^override_failed override must return nothing or one of .*, not a string$", refusal "tostring")
    end)

    it("shows nothing of what is in it", function()
        assert.equal("yes", afterwards [[
local answer = policy.retry("1s")
assert(next(answer) == nil and #answer == 0 and tostring(answer) == "table")]])
    end)
end)
