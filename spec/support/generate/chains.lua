-- chains.lua: random chains (spec/support/naive/chain.lua says what they look like).

local words = require "support.generate.words"

local chains = {}

local ATTEMPTS = { 0, 1, 2, 3, 4, 5, 1000 }
local BACKOFFS = { "constant", "linear", "exponential" }

local function random_jitter(random)
    if random:chance(0.4) then return "full" end
    return random:pick { 0, 0.1, 0.25, 0.29, 0.5, 1 }
end

local function random_hint(random)
    if random:chance(0.35) then return random:chance(0.9) and "retry_after" or "status" end
end

local function listed(random)
    local args = { delays = {} }
    for i = 1, random(4) do args.delays[i] = words.delay(random) end
    if random:chance(0.4) then args.jitter = random_jitter(random) end
    if random:chance(0.3) then args.max_delay = random:pick { "1s", "20m" } end
    args.hint = random_hint(random)
    return args
end

local function named(random, word)
    local args = {}
    local function maybe(key, chance, make)
        if random:chance(chance) then args[key] = make() end
    end
    maybe("attempts", 0.6, function()
        if word == "redeliver" and random:chance(0.3) then return "unlimited" end
        return random:pick(ATTEMPTS)
    end)
    maybe("delay", 0.5, function() return words.delay(random) end)
    maybe("max_delay", 0.3, function() return random:pick { 0, "100ms", "10s", "2h", "365d" } end)
    args.hint = random_hint(random)
    if random:chance(0.2) then
        args.jitter = "decorrelated"
        return args
    end
    maybe("backoff", 0.5, function() return random:pick(BACKOFFS) end)
    if args.backoff == "exponential" or (word == "retry" and not args.backoff) then
        maybe("factor", 0.8, function() return random:pick { 1, 1.1, 1.1, 1.37, 1.5, 2, 10, 1e300 } end)
    end
    maybe("jitter", 0.4, function() return random_jitter(random) end)
    return args
end

local FORMS = {
    ["()"] = function() return {} end,
    ["(n)"] = function(random) return { attempts = random:pick(ATTEMPTS) } end,
    ["(n, delay)"] = function(random) return { attempts = random:pick(ATTEMPTS), delay = words.delay(random) } end,
    ["(n, delay, backoff)"] = function(random)
        return { attempts = random:pick(ATTEMPTS), delay = words.delay(random), backoff = random:pick(BACKOFFS) }
    end,
    list = listed,
    named = named,
}
local FORM_NAMES = { "()", "(n)", "(n, delay)", "(n, delay, backoff)", "list", "named", "named", "named" }

local function random_step(random, word, tier)
    local form = random:pick(FORM_NAMES)
    return { word = word, form = form, args = FORMS[form](random, tier) }
end

local function random_end(random, prefix)
    if random:chance(0.5) then
        return { word = prefix .. "dead_letter", queue = random:chance(0.5) and random:pick(words.QUEUES) or nil }
    end
    return { word = prefix .. "discard", note = random:chance(0.5) and random:pick(words.NOTES) or nil }
end

function chains.random(random)
    if random:chance(0.2) then return { random_end(random, "") } end
    local chain = {}
    if random:chance(0.7) then chain[1] = random_step(random, "retry", "retry") end
    if #chain == 0 or random:chance(0.6) then
        chain[#chain + 1] = random_step(random, #chain == 0 and "redeliver" or "then_redeliver", "redeliver")
    end
    if random:chance(0.5) then chain[#chain + 1] = random_end(random, "then_") end
    return chain
end

return chains
