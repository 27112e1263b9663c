-- attempts = "unlimited": redeliveries without a limit but max_age or deadline.
local loading = require "support.loading"

local statements = loading.statements

local UNLIMITED = ':redeliver { attempts = "unlimited", delay = "1m", jitter = 0 }'

local function needs(line, label)
    return ('policy.lua:%d: attempts = "unlimited" ends by max_age or deadline only, and %s has neither; set one '
        .. 'there, on the bus or on the host: bus:max_age("1d")'):format(line, label)
end

local function not_off(line, other, word)
    return ('policy.lua:%d: %s(false) can\'t stand in a policy with attempts = "unlimited" (policy.lua:%d), which '
        .. "ends by max_age or deadline only"):format(line, word or "max_age", other)
end

describe("a redelivery without a limit", function()
    it("goes on until max_age", function()
        local policy = loading.good(statements('bus:max_age("1d"); bus:on("A"):retry(1)'
            .. UNLIMITED:gsub(":redeliver", ":then_redeliver")))
        local function asked(redeliveries, age_ms)
            return policy:decide { error = { type = "A" }, attempt = 2, redeliveries = redeliveries, age_ms = age_ms }
        end
        local verdict = asked(100000, 86400000)
        assert.same({ "redeliver", 100001, 3600000 }, { verdict.action, verdict.step, verdict.delay_ms })
        assert.is_nil(verdict.of)
        assert.equal("max_age", asked(100000, 86400001).reason)
        policy:close()
    end)

    it("may be said by place as well", function()
        local policy = loading.good(statements [[
bus:max_age("1d"); bus:on("A"):redeliver("unlimited", "2m", "constant")]])
        local verdict = policy:decide({ error = { type = "A" }, redeliveries = 5000 }, { no_jitter = true })
        assert.same({ "redeliver", 5001, 120000 }, { verdict.action, verdict.step, verdict.delay_ms })
        policy:close()
    end)

    local good = {
        ["its own scope sets"] = { 'mail:max_age("1d")' },
        ["the bus sets"] = { 'bus:max_age("1d")' },
        ["the host sets"] = { 'policy.host():max_age("1d")' },
        ["a later line sets"] = { "", 'mail:max_age("1d")' },
        ["is a deadline"] = { 'mail:deadline("1d")' },
        ["is the bus's deadline"] = { 'bus:deadline("1d")' },
        ["is a deadline, where a max_age is off"] = { 'bus:deadline("1d"); mail:max_age(false)' },
        ["stands, where a deadline is off"] = { 'mail:max_age("1d"); bus:deadline(false)' },
    }
    for name, lines in pairs(good) do
        it("is good with a max_age that " .. name, function()
            loading.good(statements(('local mail = policy.consumer("Mail"); %s; mail:on("A")%s; %s'):format(lines[1],
                UNLIMITED, lines[2] or ""))):close()
        end)
    end

    it("is refused without one, in the line of its word", function()
        assert.same({ needs(3, "consumer:Mail"), needs(4, "bus"), needs(5, "transport:orders") },
            (loading.refused(statements([[

policy.consumer("Mail"):on("A"):retry()
   :then_redeliver { attempts = "unlimited" }
bus:on_cause("A"):redeliver { attempts = "unlimited" }
policy.transport("orders"):on({ "A", "B" }):redeliver("unlimited")
policy.consumer("Other"):max_age("1d")]]))))
    end)

    it("is refused in each scope that has it by include", function()
        assert.same({ needs(7, "consumer:Far"), needs(8, "consumer:Near") }, (loading.refused(statements([[

local first, near, far = policy.consumer("First"), policy.consumer("Near"), policy.consumer("Far")
local own = policy.consumer("Own")
first:max_age("1d")
first:on("A"):redeliver { attempts = "unlimited" }
far:on("B"):retry()
far:include(near)
near:include(first)
own:include(first)
own:on("A"):retry()]]))))
    end)

    it("is refused in the line of the include that it comes by, of several", function()
        assert.same({ needs(9, "consumer:Mail") }, (loading.refused(statements([[

local one, two, mail = policy.transport("one"), policy.transport("two"), policy.consumer("Mail")
one:max_age("1d")
two:max_age("1d")
one:on("A"):redeliver { attempts = "unlimited" }
two:on("B"):redeliver { attempts = "unlimited" }
mail:on("A"):retry()
mail:include(one)
mail:include(two)]]))))
    end)

    it("is none once it is replaced", function()
        loading.good(statements([[
bus:on("A")]] .. UNLIMITED .. [[

bus:on("A"):retry()
bus:max_age(false)]])):close()
    end)

    it("lets no scope switch max_age off, even where it is set again", function()
        assert.same({ not_off(3, 2), not_off(4, 2) }, (loading.refused(statements([[

bus:on("A"):redeliver { attempts = "unlimited" }
bus:max_age(false)
policy.consumer("Mail"):max_age(false)
bus:max_age("1d")]]))))
        loading.good(statements 'bus:on("A"):redeliver(); bus:max_age(false)'):close()
    end)

    it("lets none be off where both are needed", function()
        local first, second = 'policy.consumer("A"):max_age("1d") policy.consumer("A"):on("X")' .. UNLIMITED,
            'policy.consumer("B"):deadline("1d") policy.consumer("B"):on("X")' .. UNLIMITED
        loading.good(statements("\n" .. first .. "\n" .. second)):close()
        assert.same({ not_off(4, 2), not_off(5, 2, "deadline") }, (loading.refused(statements("\n" .. first .. "\n"
            .. second .. "\nbus:max_age(false)\nbus:deadline(false)"))))
        assert.same({ not_off(3, 2, "deadline") }, (loading.refused(statements('\nbus:deadline("1d") bus:on("X")'
            .. UNLIMITED .. '\npolicy.consumer("A"):deadline(false)'))))
    end)

    it("goes on until a deadline", function()
        local policy = loading.good(statements('bus:deadline("1d"); bus:on("A")' .. UNLIMITED))
        local function asked(age_ms)
            return policy:decide { error = { type = "A" }, redeliveries = 1000, age_ms = age_ms }
        end
        assert.same({ "redeliver", 3600000 }, { asked(82800000).action, asked(82800000).delay_ms })
        assert.same({ "dead_letter", "deadline" }, { asked(82800001).action, asked(82800001).reason })
        policy:close()
    end)

    it("isn't asked for a max_age whose own mistake is told", function()
        assert.equal(1, #loading.refused(statements('bus:max_age("1x"); bus:on("A")' .. UNLIMITED)))
        assert.equal(1, #loading.refused(statements('policy.consumer(5):max_age("1d"); policy.consumer(5):on("A")'
            .. UNLIMITED)))
        assert.equal(1, #loading.refused(statements('bus:on("A")' .. UNLIMITED .. "; error('no', 0)")))
    end)
end)
