-- mulligan table: what is in force.
local json = require("mulligan").json
local mulligan = require "mulligan"
local process = require "support.process"

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError", ["Odd\ntype"] = "DeadlockError" }
local bus = policy.bus()
bus:on("HttpError", { status = 429, host = "a" }):redeliver { attempts = 8, delay = "2m" }
bus:on("DeadlockError"):retry(3):then_redeliver { "30s", "5m" }
bus:on("HttpError", { status = 503 }):retry { attempts = 2, delay = "1s", backoff = "constant", jitter = 0 }
bus:on("HttpError", function() return false end):retry(0):then_discard("ignored")
bus:on("HttpError"):retry(2, 0):then_dead_letter("http")
bus:on("Odd\ntype"):dead_letter()
bus:default():retry(1)
bus:default():dead_letter()
bus:max_age("1h30m")
bus:dead_letter_queue("lost")
policy.transport("orders"):max_attempts(7)
policy.transport("orders"):max_age(false)
policy.transport("empty"):default():discard()
local mine = policy.consumer("Mine")
mine:on("DatabaseError"):dead_letter()
mine:max_deliveries(3)
policy.host():default():retry()
]]

describe("mulligan table", function()
    local folder

    setup(function()
        folder = process.folder { ["policy.lua"] = POLICY, ["deep/policy.lua"] = POLICY }
    end)

    teardown(function()
        folder:remove()
    end)

    local function table_of(...)
        return folder:mulligan { "table", "policy.lua", ... }
    end

    local function json_of(...)
        local answer = table_of("--format", "json", ...)
        assert.same({ 0, "" }, { answer.code, answer.err })
        assert.is_truthy(answer.out:find("^[^\n]*\n$"), answer.out)
        return json.decode(answer.out)
    end

    it("shows people rules as they are tried, and settings with their places", function()
        local answer = table_of()
        assert.same({ 0, "" }, { answer.code, answer.err })
        assert.equal(([[
policy.lua (generation %s), for a consumer without a scope on a transport without one

scopes  the nearest one with rules is in force, as a whole
  bus   in force: 7 rules
  host  not asked, since a nearer one has rules: 1 rule
  others, each with a table of its own: transport:empty, transport:orders, consumer:Mine

unrecoverable  dead letters at the first failure, before any rule
  built in  MessageDeserializationError

rules  as they are tried: for the type, for what it descends from, for its causes, for all
       in brackets what a rule alone leads to, with handlers that take up to 30s
  HttpError
    policy.lua:4  host is "a" and status is 429  redeliver 8: 2m, 4m, 6m, 8m, 10m, 12m, … ±25%%, at most 1h
                                                 dead letter to lost
                                                 (9 calls at most, ends after 54m … 1h34m)
    policy.lua:6  status is 503                  retry 2: 1s each, at most 30s
                                                 dead letter to lost
                                                 (3 calls at most, ends after 2s … 1m2s)
    policy.lua:7  a function                     retry none
                                                 discard: "ignored"
                                                 (1 call at most, ends at once)
    policy.lua:8  always                         retry 2: at once
                                                 dead letter to http
                                                 (3 calls at most, ends after 0ms … 1m)
  DeadlockError < DatabaseError
    policy.lua:5  always  retry 3: 200ms, 400ms, 800ms ±25%%, at most 30s
                          redeliver 2: 30s, 5m
                          dead letter to lost
                          (12 calls at most, ends after 5m33s … 11m5s)
  Odd type < DeadlockError < DatabaseError
    policy.lua:9  always  dead letter to lost
                          (1 call at most, ends at once)
  Error: whatever no rule above matched
    policy.lua:11  always  dead letter to lost
                           (1 call at most, ends at once)

bounds  whatever fails, by whichever of these rules: 36 calls at most, ends after 0ms … 1h48m

replaced  a later rule for the same type stands in their place
  policy.lua:10  on("Error")  by policy.lua:11

settings
  dead_letter_queue  lost   policy.lua:13 bus
  max_age            1h30m  policy.lua:12 bus
  deadline           none   default
  max_attempts       none   default
  max_deliveries     20     default
  rate_limit         none   default
  limit              none   default
  override           none   default
  notify             none   default
]]):format(answer.out:match("generation (%x+)")), answer.out)
    end)

    it("says when there is no rule for the rest, and which scopes aren't there", function()
        local said = table_of("--consumer", "Mine", "--transport", "none").out
        assert.is_truthy(said:find(", for consumer Mine on transport none\n", 1, true), said)
        assert.is_truthy(said:find([[
  consumer:Mine   in force: 1 rule
  transport:none  no scope of its own in the policy
  bus             not asked, since a nearer one has rules: 7 rules
  host            not asked, since a nearer one has rules: 1 rule
  others, each with a table of its own: transport:empty, transport:orders
]], 1, true), said)
        assert.is_truthy(said:find("\n  no rule for Error: whatever no rule matches is a dead letter\n", 1, true), said)
        assert.is_truthy(said:find("\n  max_deliveries     3      policy.lua:19 consumer:Mine\n", 1, true), said)
        said = table_of("--consumer", "Mine").out
        assert.is_truthy(said:find(", for consumer Mine on a transport without a scope\n", 1, true), said)
    end)

    it("gives programs what policy:table gives", function()
        local found = json_of("--consumer", "Mine", "--transport", "orders")
        local policy = assert(mulligan.load(folder:path("policy.lua")))
        assert.same(policy:table { consumer = "Mine", transport = "orders" }, found)
        assert.equal(policy:generation(), found.generation)
        policy:close()
        assert.same({ "Mine", "orders" }, { found.consumer, found.transport })
        assert.same({
            { scope = "consumer:Mine", exists = true, in_force = true, rules = 1, includes = {} },
            { scope = "transport:orders", exists = true, in_force = false, rules = 0, includes = {} },
            { scope = "bus", exists = true, in_force = false, rules = 7, includes = {} },
            { scope = "host", exists = true, in_force = false, rules = 1, includes = {} },
        }, found.scopes)
        assert.same({ { scope = "transport:empty", rules = 1 } }, found.others)
        assert.same({ { type = "DatabaseError", file = "policy.lua", line = 18, scope = "consumer:Mine",
            action = "dead_letter", queue = "lost",
            bounds = { calls = 1, shortest_ms = 0, longest_ms = 0, last_call_ms = 0, rough = false } } }, found.rules)
        assert.equal(1, found.bounds.calls)
        assert.same({
            dead_letter_queue = { value = "lost", scope = "bus", file = "policy.lua", line = 13 },
            max_age_ms = { value = false, scope = "transport:orders", file = "policy.lua", line = 15 },
            max_attempts = { value = 7, scope = "transport:orders", file = "policy.lua", line = 14 },
            max_deliveries = { value = 3, scope = "consumer:Mine", file = "policy.lua", line = 19 },
            rate_limit = { value = false },
            limit = { value = false },
            deadline_ms = { value = false },
            override = { value = false },
            notify = { value = false },
        }, found.settings)
        assert.same({ DeadlockError = "DatabaseError", ["Odd\ntype"] = "DeadlockError" }, found.parents)
        assert.same({ {}, {}, { { type = "MessageDeserializationError" } } }, { found.cause_rules, found.replaced,
            found.unrecoverable })
    end)

    it("has tiers, matchers and what was replaced in its JSON", function()
        local found = json_of()
        assert.is_truthy(table_of("--format", "json").out:find('"consumer":null', 1, true))
        local first, second = found.rules[1], found.rules[2]
        assert.same({ kind = "tests", tests = {
            { subject = "error", name = "host", value = { kind = "one_of", literals = { "a" } } },
            { subject = "error", name = "status", value = { kind = "one_of", literals = { 429 } } },
        } }, first.matcher)
        assert.same({ 8, "linear", 0.25, 3600000, 8 }, { first.redeliver.attempts, first.redeliver.backoff,
            first.redeliver.jitter, first.redeliver.max_delay_ms, #first.redeliver.steps })
        assert.same({ delay_ms = 120000, shortest_ms = 90000, longest_ms = 150000 }, first.redeliver.steps[1])
        assert.same({ "list", 0.0, 2 }, { second.redeliver.backoff, second.redeliver.jitter, #second.redeliver.steps })
        assert.same({ "exponential", 2.0, 3 }, { second.retry.backoff, second.retry.factor, #second.retry.steps })
        assert.same({ kind = "function", number = 0 }, found.rules[4].matcher)
        assert.same({ calls = 3, shortest_ms = 2000, longest_ms = 62000, last_call_ms = 32000, rough = false },
            found.rules[3].bounds)
        assert.is_true(found.bounds.calls >= 12 and found.bounds.shortest_ms == 0)
        assert.same({ "discard", "ignored", nil }, { found.rules[4].action, found.rules[4].note, found.rules[4].queue })
        assert.same({ { word = "on", type = "Error", scope = "bus", file = "policy.lua", line = 10,
            by_file = "policy.lua", by_line = 11 } }, found.replaced)
    end)

    it("says of an override that the limits alone bound it", function()
        local function said(text)
            folder:write("over.lua", 'local bus = require("mulligan.policy").bus()\n'
                .. "bus:override(function() end)\n" .. text)
            local answer = folder:mulligan { "table", "over.lua" }
            assert.same({ 0, "" }, { answer.code, answer.err })
            return answer.out
        end
        for _, rules in ipairs { "", 'bus:on("A"):retry(); ' } do
            local out = said(rules)
            assert.is_truthy(out:find("\n  no rule for Error: whatever no rule matches is a dead letter, "
                .. "unless the override says otherwise\n", 1, true), out)
            assert.is_truthy(out:find("\nbounds  whatever fails, whatever the override answers: any number of calls, "
                .. "ends after 0ms or any time later\n", 1, true), out)
            out = said(rules .. 'bus:max_attempts(7); bus:deadline("1h")')
            assert.is_truthy(out:find(" the override answers: 7 calls at most, ends after 0ms … 1h1m\n", 1, true), out)
        end
        local found = json.decode(folder:mulligan { "table", "over.lua", "--format", "json" }.out)
        assert.same({ calls = 7, shortest_ms = 0, longest_ms = 3630000, last_call_ms = 3600000, rough = false },
            found.bounds)
    end)

    it("shows an empty policy", function()
        folder:write("empty.lua", "")
        local said = folder:mulligan { "table", "empty.lua" }
        assert.same({ 0, "" }, { said.code, said.err })
        assert.is_truthy(said.out:find("\n  no rule for Error: ", 1, true), said.out)
        assert.equal(0, folder:mulligan { "table", "empty.lua", "--format", "json" }.code)
    end)

    it("shows files as seen from here", function()
        local said = folder:mulligan { "table", "deep/policy.lua" }.out
        assert.is_truthy(said:find("\n  max_age            1h30m  deep/policy.lua:12 bus\n", 1, true), said)
        assert.is_truthy(said:find("\n    deep/policy.lua:11  always  ", 1, true), said)
    end)

    it("says infinity in JSON, which has no number for it", function()
        folder:write("far.lua", 'require("mulligan.policy").bus():on("A", { x = math.huge, y = -math.huge }):retry()')
        local found = json.decode(folder:mulligan { "table", "far.lua", "--format", "json" }.out)
        assert.same({ "inf" }, found.rules[1].matcher.tests[1].value.literals)
        assert.same({ "-inf" }, found.rules[1].matcher.tests[2].value.literals)
    end)

    it("refuses what it can't work with", function()
        folder:write("wrong.lua", "x =")
        local wrong = folder:mulligan { "table", "wrong.lua", "--format", "json" }
        assert.same({ 2, "" }, { wrong.code, wrong.out })
        assert.is_truthy(wrong.err:find("^mulligan: wrong.lua:1: "), wrong.err)
        assert.same({ code = 2, out = "", err = 'mulligan: table: --consumer must be UTF-8, which "?" isn\'t\n' },
            table_of("--consumer", "\xff"))
        assert.same({ code = 2, out = "", err = "mulligan: table: --transport must not be empty\n" },
            table_of("--transport="))
    end)
end)
