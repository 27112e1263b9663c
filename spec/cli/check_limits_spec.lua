-- What `mulligan check` says of limits and overrides, and of texts and types that were meant to be others.
local json = require("mulligan").json
local process = require "support.process"

describe("mulligan check", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function run(...)
        return folder:mulligan { ... }
    end

    -- What check says of a policy with these lines, on stdout.
    local function said(...)
        folder:write("policy.lua", 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n'
            .. table.concat({ ... }, "\n"))
        local checked = run("check", "policy.lua")
        assert.same({ 0, "" }, { checked.code, checked.err })
        return checked.out
    end

    it("says how late the last call can be by max_age, and that a deadline ends calls", function()
        local steps = 'bus:default():redeliver { "6h", "12h", "18h", "24h" }'
        local out = said(steps, 'bus:max_age("24h")')
        assert.matches("\nbus, by any of its rules +4 +0ms +1d12h +1d12h\n", out)
        assert.matches("\nbus: max_age %(1d%) only ends redeliveries: the last call may begin after 1d12h; "
            .. "deadline ends calls\n", out)
        out = said(steps, 'bus:max_age("24h")', 'bus:deadline("24h")')
        assert.matches("\nbus, by any of its rules +3 +0ms +18h1m +18h1m\n", out)
        assert.is_nil(out:find("only ends", 1, true))
        local bounds = json.decode(run("check", "policy.lua", "--format", "json").out).bounds[1]
        assert.same({ 86400000, 86400000, 18 * 3600000 + 30000 }, { bounds.max_age_ms, bounds.deadline_ms,
            bounds.last_call_ms })
        out = said('bus:default():retry { "1m", "1m", "1m" }', 'bus:deadline("2m")')
        assert.matches("\n  policy.lua:3 Error +3 +1m +2m30s +2m\n", out)
        assert.is_nil(said(steps, 'bus:max_age("30d")'):find("max_age", 1, true))
    end)

    it("finds a redelivery that would begin after the deadline", function()
        local rule = 'bus:default():redeliver { delay = "1h", attempts = 2, backoff = "constant", jitter = 0 }'
        local late = "policy.lua:3: MUL007 redelivery 2 can't come: "
        local function found(...)
            return (said(...):match("^(%S+ MUL007 [^\n]*)\n"))
        end
        assert.equal(late .. "it would begin after the deadline, 1h59m59s", found(rule, 'bus:deadline("1h59m59s")'))
        assert.is_nil(found(rule, 'bus:deadline("2h")')) -- due exactly then is in time
        assert.is_nil(found(rule, 'bus:on("A"):redeliver { "1m" }', 'bus:deadline("90m")'))
        assert.equal(late .. "it would begin after the deadline, 1h30m", found(rule, 'bus:deadline("90m")',
            'bus:max_age("1h")')) -- by then it is just as old as max_age
        assert.equal(late .. "by then the message is older than max_age, 59m", found(rule, 'bus:deadline("90m")',
            'bus:max_age("59m")'))
        assert.is_nil(found(rule, 'bus:deadline("90m")', 'policy.consumer("C"):deadline("2h")'))
    end)

    it("says of an override that the limits alone bound it", function()
        local override = "bus:override(function() end)"
        local out = said("bus:default():retry()", override, 'bus:max_age("1d")')
        assert.matches("\nbus, whatever the override answers +none +0ms +none +none\n", out)
        assert.matches("\nbus: an override is in force, so only max_attempts and deadline bound calls and time\n", out)
        assert.matches("\nbus: max_age %(1d%) only ends redeliveries: the last call may begin at any time; ", out)
        assert.is_nil(out:find("config.retry", 1, true))
        out = said('bus:on("A"):retry()', override, "bus:max_attempts(7)", 'bus:deadline("1h")')
        assert.matches("\nbus, whatever the override answers +7 +0ms +1h1m +1h\n", out)
        assert.matches("\n  policy.lua:3 A +7 +0ms +1h1m +1h\n", out)
        assert.matches("\nbus: its rules have no default%(%), so config.retry and config.redeliver have 0 attempts in "
            .. "the override\n", out)
        local bounds = json.decode(run("check", "policy.lua", "--format", "json").out).bounds[1]
        assert.same({ true, false, 7 }, { bounds.overridden, bounds.default, bounds.max_attempts })
    end)

    it("finds an override that nothing ends, wherever it is in force", function()
        local rules, override = "bus:default():retry()", "bus:override(function() end)"
        local endless = "policy.lua:4: MUL019 nothing ends what this override calls again: no max_attempts, max_age "
            .. "or deadline is in force with it\n"
        local function is_found(...)
            return said(rules, override, ...):find(endless, 1, true) == 1
        end
        assert.is_true(is_found())
        for _, limit in ipairs { "max_attempts(9)", 'max_age("1d")', 'deadline("1d")' } do
            assert.is_false(is_found("bus:" .. limit))
            assert.is_true(is_found(('policy.consumer("C"):%s'):format(limit)))
        end
        assert.is_true(is_found("bus:max_attempts(9)", 'policy.consumer("C"):max_attempts(false)'))
        assert.is_false(is_found("bus:max_attempts(9)", 'policy.consumer("C"):max_age("1d")'))
        assert.is_false(is_found("bus:override(false)"))
        folder:write("service.lua", [[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("t", "memory:")
            m.consumer("C", { transport = "t", queue = "q", handler = print })]])
        said(rules, override, 'policy.consumer("C"):max_attempts(9)')
        assert.is_nil(run("check", "policy.lua", "--for", "service.lua").out:find("MUL019", 1, true))
        said(rules, override)
        assert.equal(1, run("check", "policy.lua", "--for", "service.lua").out:find(endless, 1, true))
    end)

    it("doesn't say that failures are dead letters where an override decides", function()
        local override = "bus:override(function() end)"
        local out = said(override, "bus:max_attempts(9)")
        assert.equal("policy.lua: MUL013 the policy has no rules: what no override decides is a dead letter, and "
            .. "config.retry and config.redeliver have 0 attempts\npolicy.lua: 0 rules in 0 scopes\n", out)
        assert.matches("MUL019", said(override))
        out = said(override, "bus:max_attempts(9)", "bus:default():retry()", 'policy.consumer("C"):on("A"):retry()')
        assert.matches('MUL005 consumer "C" has rules and no default: what they don\'t match is left to the override, ',
            out)
    end)

    it("finds texts that look like a comparison", function()
        for written, meant in pairs {
            [">= 500"] = "policy.at_least(500)", ["<5"] = "policy.at_most(4)", ["!= 404"] = "policy.is_not(404)",
            [" > 1.5 "] = "policy.at_least(1.5)", ["<=-3"] = "policy.at_most(-3)", [">499"] = "policy.at_least(500)",
            ["== 0"] = "0", ["~=1"] = "policy.is_not(1)", ["<>1"] = "policy.is_not(1)", ["=7"] = "7",
        } do
            local wanted = ("policy.lua:3: MUL020 status is compared with the text %q, letter by letter; did you mean "
                .. "%s?\n"):format(written, meant)
            for _, matcher in ipairs { "{ status = %q }", "{ status = { 1, %q } }", "{ status = policy.is_not(%q) }",
                "policy.any({ a = 1 }, policy.none { status = %q })" } do
                local code = matcher:format(written)
                assert.equal(1, said(('bus:on("A", %s):retry()'):format(code), "bus:default():discard()")
                    :find(wanted, 1, true), code)
            end
        end
        assert.matches("MUL020", said('bus:unrecoverable("A", { status = ">1" })', "bus:default():retry()"))
        for _, other in ipairs { ">", ">= x", "500", ">=5s", "> 1.", "a > 1", "=> 1", ">=500,", "> 1 2", "-1", "" } do
            assert.is_nil(said(('bus:on("A", { status = %q }):retry()'):format(other), "bus:default():discard()")
                :find("MUL020", 1, true), other)
        end
        for _, matcher in ipairs { '{ message = ">1" }', 'policy.ctx { message = { headers = { h = ">1" } } }',
            'policy.ctx { message = { key = ">1" } }', '{ status = policy.contains ">1" }' } do
            assert.is_nil(said(('bus:on("A", %s):retry()'):format(matcher), "bus:default():discard()")
                :find("MUL020", 1, true), matcher)
        end
    end)

    it("finds a type that is one letter away from one that is known", function()
        local function is_found(declared, used)
            local out = said(('policy.errors { [%q] = "Error" }'):format(declared),
                ('bus:on(%q):retry()'):format(used), "bus:default():discard()")
            return out:find(("policy.lua:4: MUL006 %q looks misspelt; did you mean %q?"):format(used, declared), 1,
                true) == 1
        end
        for used, declared in pairs { HtpError = "HttpError", HttppError = "HttpError", HtxpError = "HttpError",
            HttpErrr = "HttpError", ttpError = "HttpError", HTTError = "HXTTError",
            httpError = "HttpError" } do
            assert.is_true(is_found(declared, used), used)
        end
        for used, declared in pairs { TypeAError = "TypeBError", ErrorA = "ErrorB", Http4 = "Http5",
            DbError = "DcError", HttpsxError = "HttpError" } do
            assert.is_false(is_found(declared, used), used)
        end
        assert.matches('MUL006 "Eror" looks misspelt; did you mean "Error"', said('bus:on("Eror"):retry()',
            "bus:default():discard()"))
        assert.is_nil(said('policy.errors { HttpError = "Error", HtpError = "Error" }', 'bus:on("HtpError"):retry()',
            "bus:default():discard()"):find("MUL006", 1, true))
    end)
end)
