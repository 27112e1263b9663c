-- The host policy, in a file of its own: what it may say, how it decides with the policy before it, its budgets, and
-- how both are reloaded.
local mulligan = require "mulligan"
local generate = require "support.generate"
local loading = require "support.loading"
local testing = require "mulligan.testing"

local WORDS = 'local policy = require "mulligan.policy"; '
local HOST = WORDS .. "local host = policy.host(); "
local BUS = WORDS .. "local bus = policy.bus(); "

-- A policy whose host says this, which must be good.
local function good(own, host, options)
    local given = { host_text = host }
    for name, value in pairs(options or {}) do given[name] = value end
    local policy, message = mulligan.load_text(own, given)
    if not policy then error("refused:\n" .. message, 2) end
    return policy
end

-- The lines of what is wrong with one that must be refused.
local function refused(own, host, options)
    local given = { host_text = host }
    for name, value in pairs(options or {}) do given[name] = value end
    local policy, message, code, problems = mulligan.load_text(own, given)
    if policy then error("loaded, though it is wrong", 2) end
    assert.equal("policy", code)
    local lines = {}
    for line in message:gmatch "[^\n]+" do lines[#lines + 1] = line end
    assert.equal(#lines, #problems)
    return lines
end

local function verdict(policy, error_type, more)
    local failure = { error = { type = error_type } }
    for key, value in pairs(more or {}) do failure[key] = value end
    return assert(policy:decide(failure, { no_jitter = true }))
end

-- ---- Deciding -----------------------------------------------------------------------------------

describe("a host policy", function()
    it("decides where no nearer scope has a rule, and its file is named", function()
        local policy = good('require("mulligan.policy").consumer("Mail"):default():discard("own")',
            HOST .. '\nhost:on("A"):dead_letter("host")\nhost:max_deliveries(5)')
        local got = verdict(policy, "A")
        assert.equal("host", got.queue)
        assert.same({ file = "host.lua", line = 2, scope = "host", type = "A" }, got.rule)
        assert.equal("own", verdict(policy, "A", { consumer = "Mail" }).note)
        assert.equal("policy.lua", verdict(policy, "A", { consumer = "Mail" }).rule.file)
        assert.equal("max_deliveries", verdict(policy, "A", { consumer = "Mail", deliveries = 6 }).reason)
        assert.equal(2, policy:rules())
        policy:close()
    end)

    it("has every word of the host's scope, values, answers and presets", function()
        local policy = good("", HOST .. [[
host:on("HttpError", { status = policy.between(500, 599) }):retry(2, policy.ms(7))
host:on("HttpError", policy.any(policy.ctx { attempt = 1 }, function() return true end)):redeliver(1, "3s")
host:on_cause("Cause"):discard("cause")
host:unrecoverable("Never")
host:limit { rate = "10/s", per = policy.header("tenant") }
host:override(function(failure) return failure.error.type == "O" and policy.discard("by the override") or nil end)
policy.preset.nservicebus(host, { delayed = 0 })]])
        assert.equal(7, verdict(policy, "HttpError", { error = { type = "HttpError", status = 500 } }).delay_ms)
        assert.equal(3000, verdict(policy, "HttpError", { error = { type = "HttpError", status = 404 } }).delay_ms)
        assert.equal("cause", verdict(policy, "X", { error = { type = "X", cause = { type = "Cause" } } }).note)
        assert.equal("unrecoverable", verdict(policy, "Never").reason)
        assert.equal("by the override", verdict(policy, "O").note)
        assert.equal("retry", verdict(policy, "Y").action)
        policy:close()
    end)

    it("may say nothing, as may the policy before it", function()
        local policy = good("", "")
        assert.equal("no_rule", verdict(policy, "A").reason)
        policy:close()
    end)

    it("shares the types with the policy before it, in functions too", function()
        local policy = good(WORDS .. [[
policy.errors { Deep = "HostType", OwnType = "OwnParent" }
local mail = policy.consumer("Mail")
mail:on("HostParent", function(err) return err:is("HostParent") and err:is("HostType") end):discard("own")]], HOST .. [[
policy.errors { HostType = "HostParent" }
host:on("OwnParent", function(err) return err:is("OwnType") end):discard("host")]])
        assert.equal("own", verdict(policy, "Deep", { consumer = "Mail" }).note)
        assert.equal("host", verdict(policy, "OwnType").note)
        policy:close()
    end)

    it("has functions and globals of its own", function()
        local policy = good([[
kept = (kept or "") .. "own"
local policy = require "mulligan.policy"
policy.consumer("Mail"):on("A", function() return kept == "own" end):discard("own")
policy.consumer("Other"):on("A", function(err) return err.nothing.more end):discard("raises")
policy.bus():notify(function() print(kept) end)]], [[
kept = (kept or "") .. "host"
local host = require("mulligan.policy").host()
host:on("A", function() return kept == "host" end):discard("host")
host:on("B", function(err) return err.nothing.more end):discard("raises")]])
        assert.equal("own", verdict(policy, "A", { consumer = "Mail" }).note)
        assert.equal("host", verdict(policy, "A").note)
        policy:close()
    end)

    it("is told of by events with its own lines", function()
        local told = {}
        local policy = good("", HOST .. '\nhost:on("A", function(err)\n    return err.nothing.more\nend):retry()', {
            event = function(event) told[#told + 1] = event end,
        })
        verdict(policy, "A")
        assert.same({ "matcher_failed", "host.lua", 2 }, { told[1].name, told[1].rule.file, told[1].rule.line })
        assert.matches("^host.lua:3: ", told[1].text)
        policy:close()
    end)

    it("prints to the same log", function()
        local lines = {}
        local function log(_, line) lines[#lines + 1] = line end
        good('print "own"', 'print "host"', { log = log }):close()
        assert.same({ "host", "own" }, lines)
    end)
end)

-- ---- What is refused -----------------------------------------------------------------------------

describe("a host policy is refused", function()
    local ONLY = " can't stand in a host policy, which has policy.host() and policy.errors alone; say this in the "
        .. "policy itself"

    it("with any other scope in it, and goes on to the next mistake", function()
        assert.same({
            "host.lua:2: policy.bus()" .. ONLY,
            "host.lua:3: policy.transport(...)" .. ONLY,
            "host.lua:4: policy.consumer(...)" .. ONLY,
            'host.lua:4: "rety" is no word of a rule; did you mean retry?',
            'host.lua:5: require("other"): a host policy is one file; say here what the other one says',
        }, refused("", WORDS .. [[

policy.bus():default():retry()
policy.transport("orders"):max_age("1d")
policy.consumer("Mail"):default():rety()
require "other"]]))
    end)

    it("where the policy before it says the host's scope as well", function()
        assert.same({ "policy.lua:2: policy.host() can't stand here, since there is a host policy; say this there, in "
            .. "host.lua, or say policy.bus()" }, refused(BUS .. "\nbus:include(policy.host())", ""))
    end)

    it("with the mistakes of both", function()
        local rety = '"rety" is no word of a rule; did you mean retry?'
        assert.same({ "host.lua:3: " .. rety, "policy.lua:2: " .. rety },
            refused(BUS .. "\nbus:default():rety()", HOST .. "\n\nhost:default():rety()"))
    end)

    it("with an error in it, which ends it alone", function()
        local lines = refused(BUS .. '\nbus:default():rety()', HOST .. "\nhost:max_age('1d')\nerror 'no more'")
        assert.same({ "host.lua:3: no more", 'policy.lua:2: "rety" is no word of a rule; did you mean retry?' }, lines)
        assert.matches("^host.lua:2: ", refused("", "\nif")[1])
    end)

    it("where the two don't agree on a type's parent", function()
        assert.same({ 'policy.lua:2: A has the parent "Host" already (host.lua:1); a type has one' },
            refused(WORDS .. '\npolicy.errors { A = "Own" }', WORDS .. 'policy.errors { A = "Host" }'))
        assert.same({ "policy.lua:2: B can't be a child of \"A\": that goes round in a circle (B < A < B)" },
            refused(WORDS .. '\npolicy.errors { B = "A" }', WORDS .. 'policy.errors { A = "B" }'))
        good(WORDS .. 'policy.errors { A = "P" }', WORDS .. 'policy.errors { A = "P" }'):close()
    end)

    it("with a global that its words are missing for, and no advice to say what it may not", function()
        assert.equal("host.lua:1: attempt to index a nil value (global 'bus')", refused("", "bus:default():retry()")[1])
        assert.equal("policy.lua:1: attempt to index a nil value (global 'host')",
            refused("host:default():retry()", "")[1])
        assert.matches('add the line: local host = ', refused("", "host:default():retry()")[1], 1, true)
    end)

    it("where its file isn't there, or is none", function()
        local folder, remove = loading.folder { ["policy.lua"] = "" }
        local missing = folder .. "/none.lua"
        assert.same({ ("none.lua: there is no file %s"):format(missing) }, refused("", nil, { host_policy = missing }))
        assert.same({ ("%s: %s can't be read: Is a directory"):format(folder:match "[^/]*$", folder) },
            refused("", nil, { host_policy = folder }))
        remove()
    end)

    it("with options that are none", function()
        assert.has_error(function() mulligan.load_text("", { host_policy = "" }) end,
            'mulligan.load_text: host_policy must be the path of a file, not ""')
        assert.has_error(function() mulligan.load("policy.lua", { host_text = 5 }) end,
            "mulligan.load: host_text must be a string, not 5")
    end)
end)

describe("a redelivery without a limit", function()
    local UNLIMITED = ':on("A"):redeliver { attempts = "unlimited" }'

    local function needs(file, line, label)
        return ('%s:%d: attempts = "unlimited" ends by max_age or deadline only, and %s has neither; set one '
            .. 'there, on the bus or on the host: bus:max_age("1d")'):format(file, line, label)
    end

    it("may be ended by the host, or the host's by the bus", function()
        good(BUS .. "bus" .. UNLIMITED, HOST .. 'host:max_age("1d")'):close()
        good(BUS .. 'bus:deadline("1d")', HOST .. "host" .. UNLIMITED):close()
        good("", HOST .. 'host:max_age("1d") host' .. UNLIMITED):close()
    end)

    it("is refused in either where nothing ends it", function()
        assert.same({ needs("host.lua", 2, "host") }, refused("", HOST .. "\nhost" .. UNLIMITED))
        assert.same({ needs("policy.lua", 2, "bus") },
            refused(BUS .. "\nbus" .. UNLIMITED, HOST .. "host:max_attempts(5)"))
    end)

    it("lets neither switch off what ends it", function()
        local function off(file, other)
            return { ('%s:2: max_age(false) can\'t stand in a policy with attempts = "unlimited" (%s:2), which '
                .. "ends by max_age or deadline only"):format(file, other) }
        end
        assert.same(off("policy.lua", "host.lua"), refused(WORDS .. '\npolicy.consumer("Mail"):max_age(false)',
            HOST .. '\nhost:max_age("1d") host' .. UNLIMITED))
        assert.same(off("host.lua", "policy.lua"),
            refused(BUS .. '\nbus:max_age("1d") bus' .. UNLIMITED, HOST .. "\nhost:max_age(false)"))
    end)

    it("isn't missed where the host policy ended by an error", function()
        assert.same({ "host.lua:1: no more" }, refused(BUS .. "bus" .. UNLIMITED, "error 'no more'"))
    end)
end)

-- ---- Names and generations -----------------------------------------------------------------------

describe("the file of a host policy", function()
    local folder, remove

    after_each(function()
        if remove then remove() end
        remove = nil
    end)

    local function at(own, host)
        return assert(mulligan.load(folder .. "/" .. own, { host_policy = host and folder .. "/" .. host }))
    end

    local function generation(...)
        local policy <close> = at(...)
        return policy:generation()
    end

    it("belongs to the generation by its bytes, not by its path or name", function()
        local host = HOST .. "host:default():retry()"
        folder, remove = loading.folder {
            ["app/policy.lua"] = BUS, ["etc/host.lua"] = host, ["opt/other.lua"] = host, ["etc/more.lua"] = host .. " ",
            ["etc/empty.lua"] = "",
        }
        local name = generation("app/policy.lua", "etc/host.lua")
        assert.equal(name, generation("app/policy.lua", "opt/other.lua"))
        local others = { name, generation("app/policy.lua", "etc/more.lua"),
            generation("app/policy.lua", "etc/empty.lua"), generation("app/policy.lua") }
        for i, one in ipairs(others) do
            for j, other in ipairs(others) do assert.equal(i == j, one == other) end
        end
        local text <close> = good(BUS, host)
        assert.equal(name, text:generation())
    end)

    it("is called by its path where the policy has the same name", function()
        folder, remove = loading.folder {
            ["app/policy.lua"] = WORDS .. 'policy.consumer("Mail"):default():retry()',
            ["etc/policy.lua"] = HOST .. "host:default():retry()",
        }
        local policy <close> = at("app/policy.lua", "etc/policy.lua")
        assert.equal(folder .. "/etc/policy.lua", verdict(policy, "A").rule.file)
        assert.equal("policy.lua", verdict(policy, "A", { consumer = "Mail" }).rule.file)
    end)

    it("is another than one of the same name beside the policy", function()
        folder, remove = loading.folder {
            ["app/policy.lua"] = 'require "host"',
            ["app/host.lua"] = WORDS .. '\npolicy.consumer("Mail"):default():retry()',
            ["etc/host.lua"] = HOST .. "host:default():discard()",
        }
        local policy <close> = at("app/policy.lua", "etc/host.lua")
        assert.same({ "host.lua", 1, "host" }, { verdict(policy, "A").rule.file, verdict(policy, "A").rule.line,
            verdict(policy, "A").rule.scope })
        local mail = verdict(policy, "A", { consumer = "Mail" })
        assert.same({ "retry", "host.lua", 2 }, { mail.action, mail.rule.file, mail.rule.line })
    end)
end)

-- ---- Budgets -------------------------------------------------------------------------------------

describe("the budgets of a host policy", function()
    local function loops(count) return ("for _ = 1, %d do end "):format(count) end
    local function holds(mib) return ("kept = ('x'):rep(%d << 20) "):format(mib) end

    it("are its own in a load", function()
        good(loops(40000000), loops(40000000)):close()
        good(holds(25), holds(25)):close()
        assert.same({ "host.lua:1: more than 50000000 instructions; is there a loop without an end?" },
            refused(loops(40000000), loops(60000000)))
        assert.same({ "policy.lua:1: more than 50000000 instructions; is there a loop without an end?" },
            refused(loops(60000000), loops(40000000)))
        assert.matches("^host.lua:1: more than 64 MiB of memory", refused(holds(25), holds(70))[1])
    end)

    it("are its own in each call", function()
        local told = {}
        local policy = good(WORDS .. 'policy.consumer("Mail"):on("A", function() while true do end end):retry()',
            HOST .. 'host:on("A", function() while true do end end):retry()', {
                event = function(event) told[#told + 1] = event.text end,
            })
        verdict(policy, "A")
        verdict(policy, "A", { consumer = "Mail" })
        assert.matches("^host.lua:1: more than 100000 instructions", told[1])
        assert.matches("^policy.lua:1: more than 100000 instructions", told[2])
        policy:close()
    end)
end)

-- ---- Reloading -----------------------------------------------------------------------------------

describe("a reload with a host policy", function()
    local folder, remove, policy, told

    local function save(name, text)
        local file <close> = assert(io.open(folder .. "/" .. name, "wb"))
        file:write(text)
    end

    local function says(note, scope)
        return WORDS .. ('policy.%s():on("A", function() return true end):discard(%q)'):format(scope, note)
    end

    before_each(function()
        folder, remove = loading.folder {
            ["app/policy.lua"] = WORDS .. 'policy.consumer("Mail"):default():discard("own")',
            ["etc/host.lua"] = says("host", "host"),
        }
        told = {}
        policy = assert(mulligan.load(folder .. "/app/policy.lua", {
            host_policy = folder .. "/etc/host.lua",
            event = function(event) told[#told + 1] = event end,
        }))
        assert.equal("host", verdict(policy, "A").note)
    end)

    after_each(function()
        policy:close()
        remove()
    end)

    it("takes either file in, and changes nothing without a change", function()
        assert.equal("unchanged", policy:reload())
        save("etc/host.lua", says("host 2", "host"))
        assert.is_true(policy:reload())
        assert.equal("host 2", verdict(policy, "A").note)
        save("app/policy.lua", says("bus", "bus"))
        assert.is_true(policy:reload())
        assert.equal("bus", verdict(policy, "A").note)
        assert.equal(("%s/app/policy.lua and %s/etc/host.lua: 2 rules, generation %s"):format(folder, folder,
            policy:generation()), told[#told].text)
    end)

    it("keeps what runs where the host's is broken, and says why", function()
        local before = policy:generation()
        save("etc/host.lua", "\n" .. says("bus", "bus"))
        local well, message, code = policy:reload()
        assert.is_nil(well)
        assert.equal("policy", code)
        assert.matches("^host.lua:2: policy.bus%(%) can't stand in a host policy", message)
        assert.equal("policy_refused", told[#told].name)
        assert.same({ before, "host" }, { policy:generation(), verdict(policy, "A").note })
        os.remove(folder .. "/etc/host.lua")
        assert.matches("^host.lua: there is no file ", (select(2, policy:reload())))
        save("etc/host.lua", says("host", "host"))
        assert.equal("unchanged", policy:reload())
    end)

    it("refuses either where nothing is left in it, and takes one with settings alone", function()
        save("etc/host.lua", "")
        assert.equal("host.lua: there is nothing left in it, where the one in force has 1 rule; if no rule is meant, "
            .. "say a setting: policy.host():dead_letter_queue(false)", (select(2, policy:reload())))
        save("etc/host.lua", says("host", "host"))
        save("app/policy.lua", "")
        assert.equal("policy.lua: there is nothing left in it, where the one in force has 1 rule; if no rule is meant, "
            .. "say a setting: policy.bus():dead_letter_queue(false)", (select(2, policy:reload())))
        save("app/policy.lua", BUS .. "bus:dead_letter_queue(false)")
        assert.is_true(policy:reload())
        save("etc/host.lua", "")
        assert.matches("there is no rule left, where the policy in force has 1;", (select(2, policy:reload())), 1, true)
    end)

    it("takes a text in the place of the policy, not of its host", function()
        assert.is_true(policy:reload(WORDS .. 'policy.consumer("Mail"):default():discard("text")'))
        assert.same({ "text", "host" }, { verdict(policy, "A", { consumer = "Mail" }).note, verdict(policy, "A").note })
    end)

    it("reads the host's file beside a policy that was given as a text", function()
        local text <close> = good("", nil, { host_policy = folder .. "/etc/host.lua" })
        save("etc/host.lua", says("host 2", "host"))
        assert.is_true(text:reload())
        assert.equal("host 2", verdict(text, "A").note)
    end)

    it("comes by itself in an engine that looks at its files, which may be the host's alone", function()
        local text <close> = good("", nil, { host_policy = folder .. "/etc/host.lua" })
        local rig <close> = testing.rig {
            policy = text,
            reload_on_change = true,
            consumers = { C = { queue = "work", handler = function() mulligan.error { type = "A" } end } },
        }
        rig:advance "1s"
        save("etc/host.lua", says("host 2", "host"))
        rig:advance "1s"
        assert.equal("host 2", verdict(text, "A").note)
    end)
end)

-- ---- Random policies -----------------------------------------------------------------------------

local SEED = math.tointeger(tonumber(os.getenv "MULL_SEED")) or os.time()
local POLICIES, FAILURES_A_POLICY = 400, 25

local function of_host(statement)
    return statement.scope.kind == "host"
end

local function without_includes_of_host(statements)
    local kept = {}
    for _, statement in ipairs(statements) do
        local other = statement.include
        if not (other and (other.kind == "host" or of_host(statement))) then kept[#kept + 1] = statement end
    end
    return kept
end

-- load gives a policy with what it tells, and the places of that told apart by file.
local function load(text, options)
    local told = {}
    options.event = function(event)
        told[#told + 1] = { event.name, event.rule and event.rule.line, event.rule and event.rule.scope }
    end
    local policy, message = mulligan.load_text(text, options)
    return policy and { policy = policy, told = told }, message
end

describe("a policy with its host's rules in a file of their own", function()
    it(("decides as the same text with them inside, MULL_SEED=%d"):format(SEED), function()
        local random, seen = testing.random(SEED), { host = 0, other = 0, none = 0, told = 0 }
        for _ = 1, POLICIES do
            local tree = generate.policy(random)
            tree.statements = without_includes_of_host(tree.statements)
            for _, entry in ipairs(tree.parents) do entry.of_host = random:chance(0.5) end
            local function in_host(entry)
                if entry.scope then return of_host(entry) end
                return entry.of_host
            end
            local function in_own(entry) return not in_host(entry) end
            local inside, why = load(generate.text(tree), {})
            local apart, why_apart = load(generate.text(tree, in_own), { host_text = generate.text(tree, in_host) })
            assert.equal(inside ~= nil, apart ~= nil, why or why_apart)
            for i = 1, inside and FAILURES_A_POLICY or 0 do
                local failure = generate.failure(random, i, tree)
                local expected, got = assert(inside.policy:decide(failure)), assert(apart.policy:decide(failure))
                local rule = got.rule
                if rule then
                    assert.equal(rule.scope == "host" and "host.lua" or "policy.lua", rule.file)
                    rule.file, expected.rule.file = nil, nil
                end
                local where = not rule and "none" or rule.scope == "host" and "host" or "other"
                seen[where] = seen[where] + 1
                got.generation, expected.generation = nil, nil
                assert.same(expected, got)
            end
            if inside then
                assert.same(inside.told, apart.told)
                seen.told = seen.told + #apart.told
                inside.policy:close()
                apart.policy:close()
            end
        end
        for what, count in pairs(seen) do assert.is_true(count > 200, ("%s: %d"):format(what, count)) end
    end)
end)
