-- policy:decide_json beside policy:decide: a failure as JSON gets the verdict, or the complaint, that it gets as a
-- table. MULL_FAILURES (3000) says how many random ones there are; the seed is printed.
local mulligan = require "mulligan"
local testing = require "mulligan.testing"

local json = mulligan.json

local FAILURES = tonumber(os.getenv "MULL_FAILURES") or 3000
local SEED = tonumber(os.getenv "MULL_SEED") or os.time()

local POLICY = [[
local policy = require "mulligan.policy"
policy.errors { Leaf = "Stem", Stem = "Root" }
local bus = policy.bus()
bus:max_age("1h")
bus:on("Leaf", { status = 503 }):retry { attempts = 3, delay = "1s", jitter = 0.5 }
bus:on("Leaf", { name = "x", flag = true }):discard("a \"note\"\n\u{20ac}")
bus:on("Root", function(err, ctx)
    return err.tags and err.tags[1] == "a" or err.deep and err.deep.x == 1 or ctx.message.headers.tenant == "acme"
end):redeliver(3, "1m"):then_dead_letter("by-function")
bus:on("Other", function(err) return err.cause and err.cause:is("Stem") and err.message == "no" end):dead_letter()
bus:default():retry(2, "10ms"):then_redeliver { "1s" }
policy.consumer("Orders"):on("Leaf"):dead_letter("orders")
policy.transport("t"):default():discard()
]]

local TEXTS = {
    "", "x", "Orders", "t", "no", "a", "acme", "Leaf", "Root", "ü€\u{1F600}", 'say "a\\b"\n\t\b/', "\1\31", "\127",
}
local TYPES = { "Leaf", "Leaf", "Stem", "Root", "Other", "Unknown", "" }
local NAMES = { "status", "name", "flag", "tags", "deep", "tip", "x", "" }

-- maker makes random failures; one value in `odd` is of a kind that may not be there.
local function maker(random, odd)
    local make = {}

    local function one_of(list)
        return list[random(#list)]
    end

    function make.value(level)
        local kind = random(level < 3 and 9 or 6)
        if kind == 1 then
            return random(2) == 1
        elseif kind == 2 then
            return one_of { 0, 1, -1, 503, 200, math.maxinteger, math.mininteger, 123456789012345678 }
        elseif kind == 3 then
            return one_of { 1.5, 503.0, -0.25, 1e300 }
        elseif kind == 4 then
            return json.null
        elseif kind <= 6 then
            return one_of(TEXTS)
        end
        local made = {}
        for number = 1, random(4) - 1 do
            made[kind == 7 and number or one_of(NAMES)] = make.value(level + 1)
        end
        return kind == 7 and json.list(made) or made
    end

    local function or_odd(value)
        return random(odd) == 1 and make.value(1) or value
    end

    local function sometimes(value)
        return random(3) > 1 and or_odd(value) or nil
    end

    function make.error(level)
        local err = {
            type = or_odd(one_of(TYPES)),
            message = sometimes(one_of(TEXTS)),
            stack = sometimes(one_of(TEXTS)),
            lineage = sometimes(json.list { one_of(TYPES), one_of(TYPES) }),
            cause = level < 11 and random(2) == 1 and or_odd(make.error(level + 1)) or nil,
        }
        for _ = 1, random(4) - 1 do
            err[one_of(NAMES)] = make.value(1)
        end
        return err
    end

    function make.failure()
        local failure = {
            error = or_odd(make.error(0)),
            consumer = sometimes(one_of(TEXTS)),
            transport = sometimes(one_of(TEXTS)),
            attempt = sometimes(random(4)),
            redeliveries = sometimes(random(4) - 1),
            calls = sometimes(random(9)),
            deliveries = sometimes(random(3)),
            age_ms = sometimes(random(4000000)),
            message = sometimes {
                id = sometimes(one_of(TEXTS)),
                type = sometimes(one_of(TEXTS)),
                key = sometimes(one_of(TEXTS)),
                size = sometimes(random(1000)),
                headers = sometimes { tenant = sometimes "acme", [one_of(TEXTS)] = or_odd(one_of(TEXTS)) },
            },
            can = sometimes { retry = sometimes(random(2) == 1), delay = sometimes(random(2) == 1) },
        }
        if random(odd) == 1 then
            failure[one_of(NAMES)] = 1
        end
        return failure
    end

    return make
end

-- What came of it, as one text.
local function outcome(well, verdict, message)
    if not well then
        return "raised " .. tostring(type(verdict) == "table" and verdict.message or verdict)
    elseif not verdict then
        return "nil " .. tostring(message)
    end
    return type(verdict) == "string" and json.encode(json.decode(verdict)) or json.encode(verdict)
end

-- What a table says of itself and its place differs by the function that was called.
local function plain(words)
    return (words:gsub("decide_json", "decide"):gsub("^raised [^\n]-%.lua:%d+: ", "raised "))
end

describe("policy:decide_json", function()
    local policy

    setup(function()
        policy = assert(mulligan.load_text(POLICY))
    end)

    teardown(function()
        policy:close()
    end)

    local function compare(text)
        local well, failure = pcall(json.decode, text)
        if not well or type(failure) ~= "table" then
            return
        end
        local by_table = plain(outcome(pcall(policy.decide, policy, failure)))
        assert.equal(by_table, plain(outcome(pcall(policy.decide_json, policy, text))), text)
        return by_table
    end

    for what, odd in pairs { ["good failures"] = 1000000, ["failures with mistakes"] = 12 } do
        it(("decides as policy:decide on %s, MULL_SEED=%d"):format(what, SEED), function()
            local make, verdicts = maker(testing.random(SEED), odd), 0
            for _ = 1, FAILURES do
                local words = compare(json.encode(make.failure()))
                verdicts = verdicts + (words:find "^{" and 1 or 0)
            end
            assert.is_true(verdicts > FAILURES / 20, verdicts)
        end)
    end

    it("decides as policy:decide on texts that are spoiled at a byte", function()
        local random = testing.random(SEED)
        local make = maker(random, 1000000)
        for _ = 1, FAILURES do
            local text = json.encode(make.failure())
            local at = random(#text)
            local byte = random:pick { '"', "{", "}", "[", "]", ",", ":", "\\", "u", "0", "-", ".", "e" }
            compare(text:sub(1, at - 1) .. byte .. text:sub(at + random(2) - 1))
        end
    end)

    it("takes what no failure of a handler is", function()
        for _, error in ipairs {
            '{"type":"Leaf","status":503.0}', '{"type":"Leaf","status":5.03e2}', '{"type":"Leaf","x":1e-9}',
            '{"type":"Leaf","status":9223372036854775807}', '{"type":"Leaf","status":9223372036854775808}',
            '{"type":"Leaf","s":"' .. ("x"):rep(100000) .. '"}',
            '{"type":"Leaf","s":[' .. ("1,"):rep(3000) .. "1]}",
            '{"type":"Leaf","s":' .. ("["):rep(15) .. ("]"):rep(15) .. "}",
            '{"type":"Leaf","s":' .. ("["):rep(30) .. ("]"):rep(30) .. "}",
            '{"type":"Leaf","a\\u0062":1,"\\ud83d\\ude00":"\\u00e9"}',
            '{"type":"Leaf","s":"a\\u0000b"}',
        } do
            compare('{"error":' .. error .. "}")
        end
    end)
end)
