-- The types for editors say what the product does: which word may follow which, which options there
-- are, which names functions see. The product is asked, not its sources.
local mulligan = require "mulligan"
local core = require "mulligan.core"
local testing = require "mulligan.testing"
local fits = require "support.fits"
local loading = require "support.loading"
local process = require "support.process"
local types = require "support.types"

local FILES = { policy = "mulligan.policy", mulligan = "mulligan", testing = "mulligan.testing" }

local paths = {}
for file in pairs(FILES) do
    paths[#paths + 1] = ("lua/mulligan/meta/%s.lua"):format(file)
end
table.sort(paths)
local read = types.read(paths)

-- A class of ours by its short name.
local function class(name)
    return assert(read.classes["mulligan." .. name], name)
end

-- The names of its fields, its parents' too, but for what is said of all others: "[string]".
local function fields_of(name)
    local names = {}
    while name do
        local of = assert(read.classes[name], name)
        for field in pairs(of.fields) do
            names[field] = not field:find("^%[") or nil
        end
        name = of.parent
    end
    return types.names(names)
end

local function without(names, other)
    local rest = {}
    for _, name in ipairs(names) do
        rest[#rest + 1] = name ~= other and name or nil
    end
    return rest
end

-- What a list in a mistake names: 'there are a, b and c'.
local function listed(message)
    local list, names = assert(message:match("there are ([^\n]+)"), message), {}
    for name in list:gsub(" and ", ", "):gmatch("[%w_]+") do
        names[name] = true
    end
    return types.names(names)
end

local function mistake_of(statement)
    local lines = loading.refused(loading.statements(statement))
    return lines[1]
end

describe("the files of types", function()
    for file, module in pairs(FILES) do
        it(("meta/%s.lua is Lua, and for %s"):format(file, module), function()
            local path = ("lua/mulligan/meta/%s.lua"):format(file)
            assert(loadfile(path, "t"))
            assert.equal(path, read.metas[module])
        end)
    end

    it("name no type that isn't there", function()
        local count = 0
        for name, where in pairs(read.used) do
            assert(read.classes[name] or read.aliases[name], where .. ": " .. name)
            count = count + 1
        end
        assert.is_true(count > 40)
    end)

    it("give every class a use", function()
        for name in pairs(read.classes) do
            assert(read.used[name] or read.metas[name], name)
        end
    end)
end)

-- ---- Chains ------------------------------------------------------------------------------------

local words = { "retry", "redeliver", "then_redeliver", "dead_letter", "then_dead_letter", "discard", "then_discard" }

-- Whether the types let the words follow one another.
local function allowed(sequence)
    local at = class("Scope").functions.on.returns[1]
    for _, word in ipairs(sequence) do
        local follows = read.classes[at].functions[word]
        if not follows then
            return false
        end
        at = follows.returns[1]
    end
    return true
end

-- Every sequence of 1 to `longest` words.
local function sequences(longest)
    local all, first = { {} }, 1
    for _ = 1, longest do
        local last = #all
        for i = first, last do
            for _, word in ipairs(words) do
                local longer = table.move(all[i], 1, #all[i], 1, {})
                longer[#longer + 1] = word
                all[#all + 1] = longer
            end
        end
        first = last + 1
    end
    table.remove(all, 1)
    return all
end

-- Loads many chains, one a line, and gives the lines that are mistakes. A load lists 100 at most.
local function mistakes_in(chains)
    local lines = { 'local bus = require("mulligan.policy").bus()' }
    for i, chain in ipairs(chains) do
        lines[i + 1] = ('bus:on("T%d"):%s()'):format(i, table.concat(chain, "():"))
    end
    local policy, _, _, problems = mulligan.load_text(table.concat(lines, "\n"))
    if policy then
        policy:close()
    end
    local wrong = {}
    for _, problem in ipairs(problems or {}) do
        assert(problem.text:find("^:[%w_]+ can't ") or problem.text:find("^:[%w_]+ is said already"), problem.text)
        wrong[problem.line - 1] = true
    end
    return wrong
end

describe("chains in the types", function()
    it("are those that load: each sequence of up to four words", function()
        local all, good = sequences(4), 0
        assert.equal(7 + 49 + 343 + 2401, #all)
        for first = 1, #all, 90 do
            local some = table.move(all, first, math.min(first + 89, #all), 1, {})
            local wrong = mistakes_in(some)
            for i, chain in ipairs(some) do
                local is_allowed = allowed(chain)
                assert.equal(is_allowed, not wrong[i], table.concat(chain, " "))
                good = good + (is_allowed and 1 or 0)
            end
        end
        assert.equal(11, good)
    end)

    it("begin in the same way after on, on_cause and default", function()
        for _, word in ipairs { "on", "on_cause", "default" } do
            assert.same({ "mulligan.Rule" }, class("Scope").functions[word].returns)
        end
    end)

    it("have nothing that an unknown option could be", function()
        assert.same({ {}, {} }, { class("UnknownOption").fields, class("UnknownOption").functions })
    end)

    it("end where nothing is called any more", function()
        assert.same({ {}, {} }, { class("Ended").fields, class("Ended").functions })
    end)

    for _, word in ipairs { "dead_letter_queue", "max_age", "deadline", "max_attempts", "max_deliveries", "rate_limit",
        "limit", "override", "notify", "unrecoverable", "include" } do
        it("don't begin behind " .. word, function()
            assert.same({ "mulligan.Ended" }, class("Scope").functions[word].returns)
            local said = { unrecoverable = '"A"', include = "policy.host()" }
            assert.matches(word .. " ends its statement", mistake_of(("bus:%s(%s):on('A')"):format(word,
                said[word] or "false")), 1, true)
        end)
    end
end)

-- ---- Options -----------------------------------------------------------------------------------

-- What a table of a class is for, with an option that no class has.
local options = {
    RetryOptions = 'bus:on("A"):retry { zzz = 1 }',
    RetryDelays = 'bus:on("A"):retry { "1s", zzz = 1 }',
    RedeliverOptions = 'bus:on("A"):redeliver { zzz = 1 }',
    RedeliverDelays = 'bus:on("A"):retry():then_redeliver { "1s", zzz = 1 }',
    CtxTests = "policy.ctx { zzz = 1 }",
    MessageTests = "policy.ctx { message = { zzz = 1 } }",
    RateLimit = "bus:rate_limit { zzz = 1 }",
    CallLimit = "bus:limit { zzz = 1 }",
    NServiceBusOptions = "policy.preset.nservicebus(bus, { zzz = 1 })",
}

-- The same for tables of programs: each calls something with the table that it is given.
local own = mulligan.load_text 'require("mulligan.policy").bus():default():retry()'
local engine = assert(mulligan.engine { policy = own })
assert(engine:transport("orders", "memory:"))

local function decides(key)
    return function(given)
        return own:decide(key and { error = { type = "A" }, [key] = given } or given)
    end
end

local calls = {
    LoadOptions = function(given) return mulligan.load("nowhere.lua", given) end,
    LoadTextOptions = function(given) return mulligan.load_text("", given) end,
    DecideOptions = function(given) return own:decide({ error = { type = "A" } }, given) end,
    TableOptions = function(given) return own:table(given) end,
    CheckOptions = function(given) return own:check(given) end,
    CheckedConsumer = function(given) return own:check { consumers = { given } } end,
    GivenFailure = decides(nil),
    GivenMessage = decides "message",
    Can = decides "can",
    EngineOptions = function(given) return mulligan.engine(given) end,
    ConsumerOptions = function(given) return engine:consumer("A", given) end,
    SendOptions = function(given) return engine:publish("orders", "queue", "", given) end,
    Request = function(given) return mulligan.fetch(given) end,
    FaultOptions = function(given) return engine:fault("orders", "settle", given) end,
    RigOptions = function(given) return testing.rig(given) end,
    RigConsumer = function(given) return testing.rig { consumers = { A = given } } end,
}

-- Every name that some class has, or that stands in a source that reads options; and one that no
-- class has.
local universe = { zzz = true }
for _, path in ipairs { "src/lua/values/from_lua.c", "src/lua/binding/messages.c", "lua/mulligan/testing.lua",
    "lua/mulligan/options.lua", "lua/mulligan/init.lua" } do
    for name in process.read(path):gmatch("%f[%w_]%l[%l_]+%f[^%w_]") do
        universe[name] = true
    end
end
for name in pairs(read.classes) do
    for field in pairs(read.classes[name].fields) do
        universe[field:match("[%w_]+")] = true
    end
end

-- Whether what is called knows an option, whatever else is wrong.
local function knows(call, name)
    local strange = coroutine.create(print) -- no option takes one
    local _, message = pcall(call, { [name] = strange })
    return not tostring(message):find(('unknown %%a+ "%s"'):format(name))
end

describe("options in the types", function()
    for name, statement in pairs(options) do
        it(name .. " are those that policies take", function()
            assert.same(listed(mistake_of(statement)), fields_of("mulligan." .. name))
            assert.is_true(class(name).exact)
        end)
    end

    for name, call in pairs(calls) do
        it(name .. " are those that programs give", function()
            local known = {}
            for option in pairs(universe) do
                known[option] = knows(call, option) or nil
            end
            assert.same(fields_of("mulligan." .. name), types.names(known))
            assert.is_true(class(name).exact)
        end)
    end

    it("are all looked at", function()
        for name, it in pairs(read.classes) do
            local short = name:match("^mulligan%.(.*)$")
            assert(not it.exact or options[short] or calls[short], name)
            local others = it.fields["[string]"]
            assert.equal(it.exact, others ~= nil and others.type == "mulligan.UnknownOption", name)
        end
    end)

    for name, call in pairs { EngineOptions = calls.EngineOptions, ConsumerOptions = calls.ConsumerOptions } do
        it("are required where the program says so: " .. name, function()
            local _, message = pcall(call, {})
            local missing, required = {}, {}
            for option in message:gmatch("([%w_]+) is missing") do
                missing[option] = true
            end
            for option, field in pairs(class(name).fields) do
                required[option] = not field.optional and not option:find("^%[") or nil
            end
            assert.same(required, missing)
        end)
    end

    it("are required where a policy needs them", function()
        assert.is_false(class("CallLimit").fields.rate.optional)
        assert.matches("limit needs rate", mistake_of "bus:limit { burst = 1 }", 1, true)
        for _, name in ipairs(types.names(options)) do
            for field, it in pairs(class(name).fields) do
                assert(it.optional or field:find("^%[") or field == "rate", name .. "." .. field)
            end
        end
    end)
end)

describe("positions in the types", function()
    local values = { attempts = "3", delay = '"1s"', backoff = '"linear"' }
    for _, word in ipairs { "retry", "redeliver", "then_redeliver" } do
        local owner = word == "then_redeliver" and "Retried" or "Rule"
        local params = class(owner).functions[word].params
        local before = word == "then_redeliver" and "retry():then_redeliver" or word

        it("are as many as " .. word .. " takes, in its order", function()
            local given = {}
            for i, param in ipairs(params) do
                given[i] = assert(values[param.name], param.name)
            end
            loading.good(loading.statements(('bus:on("A"):%s(%s)'):format(before, table.concat(given, ", ")))):close()
            given[#given + 1] = "0"
            assert.matches("it takes attempts, delay and backoff",
                mistake_of(('bus:on("A"):%s(%s)'):format(before, table.concat(given, ", "))), 1, true)
        end)

        it("of " .. word .. " may be without end where the product lets them", function()
            local statement = ('bus:max_age("1d") bus:on("A"):%s("unlimited")'):format(before)
            local policy = mulligan.load_text(loading.statements(statement))
            assert.equal(policy ~= nil, params[1].type:find('"unlimited"', 1, true) ~= nil)
            if policy then
                policy:close()
            end
        end)
    end
end)

-- ---- Choices -----------------------------------------------------------------------------------

-- The names in one of the lists of mulligan.h, such as MULL_REASONS.
local function declared(list)
    local header, names = assert(io.open("include/mulligan.h")):read("a"), {}
    for name in header:match("#define " .. list .. "%(X%)(.-)\n\n"):gmatch('X%(.-, "(.-)"%)') do
        names[#names + 1] = name
    end
    assert(#names > 5)
    return names
end

local function quoted(message)
    local names = {}
    for name in message:gsub(", not .*", ""):gmatch('"(%l+)"') do
        names[#names + 1] = name
    end
    return names
end

describe("choices in the types", function()
    it("are the backoffs and jitters that there are", function()
        local backoffs, jitters = read.aliases["mulligan.Backoff"].choices, read.aliases["mulligan.Jitter"].choices
        assert.same(quoted(mistake_of 'bus:on("A"):retry { backoff = "zzz" }'), backoffs)
        assert.same(quoted(mistake_of 'bus:on("A"):retry { jitter = "zzz" }'), jitters)
        assert.same({ "full" }, read.aliases["mulligan.ListJitter"].choices)
        assert.matches('a fraction and "full" can', mistake_of 'bus:on("A"):retry { "1s", jitter = "decorrelated" }', 1,
            true)
    end)

    it("are the reasons and the events, in their order", function()
        assert.same(declared "MULL_REASONS", read.aliases["mulligan.Reason"].choices)
        assert.same(declared "MULL_EVENTS", read.aliases["mulligan.EventName"].choices)
    end)

    it("are the codes, in their order", function()
        local codes = {}
        for code in assert(process.read "include/mulligan.h"):gmatch('X%(MULL_E%u+, %-%d+, "([%l_]+)", ') do
            codes[#codes + 1] = code
        end
        assert.is_true(#codes > 5)
        assert.same(codes, read.aliases["mulligan.Code"].choices)
    end)

    it("are the actions, tiers and fallbacks", function()
        local policy = loading.good(loading.statements [[
bus:on("A"):retry()
bus:on("B"):redeliver()
bus:on("C"):dead_letter()
bus:on("D"):discard()]])
        local actions, tiers, fallbacks = {}, {}, {}
        for i, type_name in ipairs { "A", "B", "C", "D" } do
            local verdict = policy:decide { error = { type = type_name } }
            actions[i], tiers[#tiers + 1] = verdict.action, verdict.tier
            local can_nothing = policy:decide { error = { type = type_name }, can = { retry = false, delay = false } }
            fallbacks[#fallbacks + 1] = can_nothing.fallback
        end
        policy:close()
        assert.same(actions, read.aliases["mulligan.Action"].choices)
        assert.same(tiers, read.aliases["mulligan.Tier"].choices)
        assert.same(fallbacks, read.aliases["mulligan.Fallback"].choices)
    end)
end)

-- ---- What functions see ------------------------------------------------------------------------

-- A failure that has all that one can have.
local FULL = {
    error = { type = "A", message = "m", stack = "s", cause = { type = "B" } },
    consumer = "c", transport = "t",
    message = { id = "i", type = "t", key = "k", size = 1, headers = { h = "v" } },
}

-- What a policy's function prints of the tables that it is given: label -> its keys.
local function seen_by(statement, failures)
    local seen = {}
    local policy = loading.good([[
local policy = require "mulligan.policy"
local bus = policy.bus()
local function tell(label, view)
    for key in pairs(view or {}) do print(label, key) end
end
]] .. statement, {
        log = function(_, text)
            local label, key = text:match("^(%S+) (%S+)$")
            seen[label] = seen[label] or {}
            seen[label][key] = true
        end,
    })
    for _, failure in ipairs(failures) do
        policy:decide(failure)
    end
    policy:close()
    return seen
end

describe("what functions see in the types", function()
    it("is what matchers see", function()
        local seen = seen_by([[
bus:on("A", function(err, ctx)
    tell("Err", err) tell("Ctx", ctx) tell("CtxMessage", ctx.message)
end):retry()]], { FULL })
        assert.is_table(class("Err").functions.is)
        assert.same(fields_of "mulligan.Err", without(types.names(seen.Err), "is"))
        assert.same(fields_of "mulligan.Ctx", types.names(seen.Ctx))
        assert.same(fields_of "mulligan.CtxMessage", types.names(seen.CtxMessage))
    end)

    local CANNOT = { error = { type = "A" }, can = { retry = false } }

    it("is what overrides see", function()
        local seen = seen_by([[
bus:max_age("1d")
bus:max_attempts(100)
bus:on("A"):retry(1, "1s"):then_redeliver()
bus:on("D"):discard("note")
bus:override(function(failure, verdict, config)
    tell("Failure", failure) tell("Verdict", verdict) tell("RulePlace", verdict.rule)
    tell("Config", config) tell("ConfigRule", config.rule)
    tell("ConfigTier", config.rule and config.rule.retry or config.retry)
end)]], { FULL, CANNOT, { error = { type = "D" } }, { error = { type = "none" } } })
        -- An override sees the verdict before the fallback.
        for _, name in ipairs { "Failure", "RulePlace", "Config", "ConfigRule", "ConfigTier" } do
            assert.same(fields_of("mulligan." .. name), types.names(seen[name]), name)
        end
        assert.same(without(fields_of "mulligan.Verdict", "fallback"), types.names(seen.Verdict))
    end)

    it("is what programs see of a verdict", function()
        local policy = loading.good(loading.statements 'bus:on("A"):retry(); bus:on("D"):discard("note")')
        local keys = {}
        for _, failure in ipairs { FULL, CANNOT, { error = { type = "D" } } } do
            for key in pairs(policy:decide(failure)) do
                keys[key] = true
            end
        end
        policy:close()
        assert.same(fields_of "mulligan.Verdict", types.names(keys))
    end)

    it("is what handlers, events and questions give", function()
        local seen = { msg = {}, event = {} }
        local function note(into, given)
            for key in pairs(given) do
                seen[into][key] = true
            end
        end
        local rig = testing.rig {
            policy = loading.statements [[
bus:on("A", function() error "no" end):retry()
bus:default():dead_letter()]],
            consumers = { C = { queue = "q", handler = function(msg)
                note("msg", msg)
                mulligan.error { type = "A" }
            end } },
        }
        assert(rig:publish("q", "body", { id = "i", type = "t", key = "k", headers = { h = "v" }, delay = "1h" }))
        local depth = rig:depth("q")
        rig:run_until_empty()
        for _, event in ipairs(rig:events()) do
            note("event", event)
        end
        local counts = rig:counts()
        rig:close()
        assert.same(fields_of "mulligan.Depth", types.names(depth))
        assert.same(fields_of "mulligan.Message", types.names(seen.msg))
        assert.same(fields_of "mulligan.Counts", types.names(counts))
        for key in pairs(seen.event) do
            assert(class("ToldEvent").fields[key], key)
        end
        assert.same(class("ToldEvent").fields.name, class("Event").fields.name)
    end)
end)

-- ---- Looking at policies -----------------------------------------------------------------------

-- A policy that has all that one can have, and what is asked of it.
local EVERYTHING = loading.statements [[
policy.errors { A = "B" }
policy.host():on("H"):discard("note")
policy.bus():include(policy.host())
bus:dead_letter_queue("errors")
bus:max_age("1d")
bus:max_attempts(1500)
bus:max_deliveries(7)
bus:deadline("30d")
bus:rate_limit { after = 3, wait = "2s", within = "1m", only = "A", except = { "B" }, hint = "retry_after",
    ramp = "1s" }
bus:rate_limit { ratio = 0.5, per = policy.header("h") }
bus:limit { rate = "100/s", per = policy.header("h") }
bus:unrecoverable("U", { fatal = true })
bus:override(function(failure) if failure.error.type == "O" then return "wrong" end end)
bus:notify(function() end)
bus:on("A", policy.all({ x = policy.between(1, 2), y = policy.is_not(policy.contains("z")) }))
    :retry(1, "1s", "constant")
bus:on("A", policy.any(policy.ctx { attempt = 1000, message = { headers = { h = policy.matches("^v") } } },
    policy.none({ w = policy.present }), function() error "why" end)):retry { "1s", "2s" }
bus:on("A", { x = policy.at_least(9), v = policy.absent }):retry(2, "1s", "exponential")
bus:on("A", function() error "why" end):discard()
bus:on("A", { x = { 1, "a" } }):retry(2, "1s", "linear")
bus:on("B"):retry(2)
bus:on("B"):retry(1):then_redeliver { attempts = "unlimited", delay = "1h", hint = "retry_after", jitter = "full" }
bus:on("D"):redeliver { attempts = 5, delay = "1s", jitter = "decorrelated" }
bus:on_cause("C"):discard()
bus:on("O"):redeliver(30, "1h"):then_dead_letter("parked")
bus:default():redeliver { attempts = "unlimited", delay = 0 }:then_dead_letter("q")
policy.consumer("K"):on("X"):retry()]]

-- How each of the three is asked, and what its answers must fit.
local looks = {}

function looks.table(policy, fitting)
    fitting:check("mulligan.InForce", policy:table())
    fitting:check("mulligan.InForce", policy:table { consumer = "K", transport = "T" })
end

function looks.explain(policy, fitting)
    for _, failure in ipairs {
        { error = { type = "A", x = 5, w = 1, cause = { type = "C" } }, message = { headers = { h = "x" } } },
        { error = { type = "O", message = "m" }, consumer = "C", transport = "T", age_ms = 1000 },
        { error = { type = "U", fatal = true } },
        { error = { type = "U" }, can = { delay = false } },
        { error = { type = "H" } },
        { error = { type = "E", cause = { type = "C" } } },
        { error = { type = "D", cause = { type = "Z" } } },
    } do
        fitting:check("mulligan.Explanation", policy:explain(failure))
    end
end

function looks.check(policy, fitting)
    local function consumer(name, queue)
        return { name = name, transport = "T", url = "memory:", queue = queue }
    end
    -- The second reads what the first puts aside.
    local found = policy:check { consumers = { consumer("K", "orders"), consumer("Reader", "errors") } }
    assert.is_true(#found.findings > 1)
    fitting:check("mulligan.CheckReport", found)
    local cannot_delay = { name = "K", transport = "T", url = "memory:?delay=no", queue = "orders" }
    fitting:check("mulligan.CheckReport", policy:check { consumers = { cannot_delay } })
    fitting:check("mulligan.CheckReport", policy:check())
end

describe("what looking at a policy gives, in the types", function()
    local policy

    setup(function()
        policy = loading.good(EVERYTHING)
    end)

    teardown(function()
        policy:close()
    end)

    for _, name in ipairs(types.names(looks)) do
        it("is what policy:" .. name .. " gives", function()
            looks[name](policy, fits.new(read))
        end)
    end

    it("is no more than that: every key was there", function()
        local fitting, count = fits.new(read), 0
        for _, name in ipairs(types.names(looks)) do
            looks[name](policy, fitting)
        end
        for name in pairs(fitting.seen) do
            for field in pairs(fitting:fields(name)) do
                assert(fitting.seen[name][field], ("%s.%s was never there"):format(name, field))
                count = count + 1
            end
        end
        assert.is_true(count > 130, count)
    end)
end)

-- ---- Modules -----------------------------------------------------------------------------------

-- The functions of a table, but for those that say that they aren't in this version yet.
local function functions_in(given)
    local names = {}
    for name, value in pairs(given) do
        local _, message = pcall(type(value) == "function" and value or print)
        names[name] = type(value) == "function" and not tostring(message):find("not in this version yet") or nil
    end
    return types.names(names)
end

local function methods_in(given)
    local names = {}
    for name, value in pairs(given) do
        names[name] = type(value) == "function" and name:sub(1, 2) ~= "__" or nil
    end
    return types.names(names)
end

describe("functions in the types", function()
    it("are those of the modules", function()
        assert.same(functions_in(mulligan), types.names(read.classes.mulligan.functions))
        assert.same(methods_in(testing), types.names(read.classes["mulligan.testing"].functions))
        assert.same(methods_in(mulligan.json), types.names(class("Json").functions))
    end)

    it("are those of what the modules give", function()
        local rig = testing.rig {}
        local random = testing.random(1)
        local rows = {
            Policy = core.policy_methods, Engine = core.engine_methods, Clock = core.clock_methods,
            Rig = getmetatable(rig).__index, Random = getmetatable(random).__index,
        }
        rig:close()
        for name, methods in pairs(rows) do
            assert.same(methods_in(methods), types.names(class(name).functions), name)
        end
    end)

    it("are called as they are: with a colon or a point", function()
        for name, it in pairs(read.classes) do
            for word, one in pairs(it.functions) do
                local with_point = read.metas[name] or name == "mulligan.Presets" or name == "mulligan.Json"
                assert.equal(not with_point, one.method, name .. "." .. word)
            end
        end
    end)
end)
