-- delay.lua: durations, and the range that a computed delay lies in whatever the chance is.

local facts = require "support.naive.facts"
local saw = require "support.naive.counts".saw

local delay = {}

local UNITS = { ms = 1, s = 1000, m = 60 * 1000, h = 3600 * 1000, d = 24 * 3600 * 1000 }

-- The milliseconds of 0, "1m30s", { seconds = 1.5 }, { ms = 40 }, or of what only an override may say, { whole = 40 }.
function delay.milliseconds(text)
    if text == 0 then return 0 end
    if type(text) == "table" then return text.ms or text.whole or math.floor(text.seconds * 1000 + 0.5) end
    local sum = 0
    for number, unit in text:gmatch("([%d.]+)(%a+)") do
        sum = sum + tonumber(number) * UNITS[unit]
    end
    return math.floor(sum + 0.5)
end

-- A product of doubles may miss the whole number that it means by a hair.
local function hair(x) return math.min(x * 1e-9, 1e-3) end

local function rounded_up(x)
    local nearest = math.floor(x + 0.5)
    return math.abs(x - nearest) <= hair(x) and nearest or math.ceil(x)
end

local function capped(x, cap)
    if x > cap then return cap end
    return x < 2 ^ 53 and rounded_up(x) or x
end

local function unjittered(tier, step)
    if tier.delays then return delay.milliseconds(tier.delays[step]) end
    local base = delay.milliseconds(tier.delay)
    if base == 0 or tier.jitter == "decorrelated" or tier.backoff == "constant" then return base end
    if tier.backoff == "linear" then return base * 1.0 * step end
    return base * tier.factor ^ (step - 1)
end

local LONGEST_MS = 365 * UNITS.d -- of any delay that is said

-- The hint in milliseconds: a number, and not below 0; else nil, as if no hint were named.
local function hinted(tier, err)
    if not tier.hint then return nil end
    local value = facts.field(err, tier.hint)
    local usable = type(value) == "number" and value >= 0
    saw("hint", usable and "usable" or value == nil and "missing" or "no number from 0")
    return usable and math.min(value * 1000, LONGEST_MS) or nil
end

local function range(low, high) return { low - hair(low), high + hair(high) } end

-- Jitter only adds to what a hint says, and only the fraction does.
local function with_hint(tier, d, cap)
    local fraction = type(tier.jitter) == "number" and tier.jitter or 0
    return range(d, math.min(d * (1 + fraction), cap))
end

local function with_jitter(tier, step, d, cap)
    if tier.jitter == "full" then return range(0, d) end
    if tier.jitter == "decorrelated" then
        if d == 0 then return { 0, 0 } end
        return range(d, math.min(delay.milliseconds(tier.delay) * 3.0 ^ step, cap))
    end
    return range(d * (1 - tier.jitter), math.min(d * (1 + tier.jitter), cap))
end

-- The range of a tier's delay at a step: the cap comes before the jitter, and nothing exceeds it.
function delay.range(tier, step, err, no_jitter)
    local cap = tier.max_delay and delay.milliseconds(tier.max_delay) or math.huge
    local computed = unjittered(tier, step)
    local hint = hinted(tier, err)
    saw("delay", hint and hint > computed and "from the hint" or "computed")
    local d = capped(math.max(computed, hint or 0), cap)
    if d == cap then saw("delay", "capped") end
    saw("jitter", no_jitter and "none asked for" or type(tier.jitter) == "string" and tier.jitter or "fraction")
    if no_jitter then return range(d, d) end
    if hint then return with_hint(tier, d, cap) end
    return with_jitter(tier, step, d, cap)
end

return delay
