-- limits.lua: the options of random `rate_limit` and `limit` statements, as they are written.

local words = require "support.generate.words"

local limits = {}

local SPANS = { "1ms", "1.5s", { seconds = 3 }, "2m", { ms = 40 } }

local function random_per(random)
    return random:pick { "key", "type", { header = "tenant" }, { header = "x-trace" } }
end

local function random_types(random)
    if random:chance(0.5) then return random:pick(words.TYPES) end
    return { words.TYPES[random(4)], words.TYPES[4 + random(4)] }
end

function limits.rate_limit(random)
    local options = {}
    local function maybe(name, chance, value)
        if random:chance(chance) then options[name] = value end
    end
    if random:chance(0.7) then
        options.after = random(10)
        maybe("within", 0.3, random:pick(SPANS))
    else
        options.ratio = random:pick { 0.01, 0.5, 1 }
        maybe("window", 0.5, random:pick(SPANS))
        maybe("least", 0.5, 3 + random(20))
    end
    maybe("messages", 0.3, options.after and random(options.after) or random(3))
    maybe(random:pick { "only", "except" }, 0.3, random_types(random))
    maybe("wait", 0.6, random:pick { "1ms", "200ms", { ms = 40 } })
    maybe("max_wait", 0.3, random:pick { "1s", "1h" })
    maybe("hint", 0.2, "retry_after")
    maybe("successes", 0.3, random(3))
    maybe("keep", 0.3, random:chance(0.5))
    maybe("ramp", 0.3, random:pick(SPANS))
    maybe("per", 0.4, random_per(random))
    return options
end

function limits.limit(random)
    return {
        rate = random:pick { "1/s", "100/m", "5000/h" },
        burst = random:chance(0.4) and random(20) or nil,
        per = random:chance(0.5) and random_per(random) or nil,
    }
end

return limits
