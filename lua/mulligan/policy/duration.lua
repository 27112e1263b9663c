-- duration.lua: a span of time as a policy writes it, in whole milliseconds.

local duration = {}

local text = require "mulligan.policy.text"

local LONGEST_MS = 365 * 86400000

local units = { d = 86400000, h = 3600000, m = 60000, s = 1000, ms = 1 }

local TOO_LONG = "is longer than 365 days"
local FORM = 'a number with a unit is right, such as "200ms", "1.5s" or "1h30m"'

-- Whole numbers throughout, so that "0.1s" is exactly 100. Of a day in whole milliseconds at most
-- ten digits are left behind the point, and those times a day stay below 2^63.
local function part(whole, fraction, unit)
    fraction = fraction:gsub("0+$", "")
    if #fraction > 10 then
        return nil, "is no whole number of milliseconds"
    end
    whole = whole:gsub("^0+", "")
    if #whole > 11 then
        return nil, TOO_LONG
    end
    local scale = math.tointeger(10 ^ #fraction)
    local rest = (tonumber(fraction) or 0) * units[unit]
    if rest % scale ~= 0 then
        return nil, "is no whole number of milliseconds"
    end
    return (tonumber(whole) or 0) * units[unit] + rest // scale
end

-- parse gives the milliseconds of a string; else nil and what is wrong with it.
local function parse(value)
    local sum, at, largest = 0, 1, math.huge
    repeat
        local whole, point, fraction, unit, stop = value:match("^(%d+)(%.?)(%d*)(%l+)()", at)
        if not whole or not units[unit] then
            return nil, "is no span of time: " .. FORM
        elseif #point ~= math.min(#fraction, 1) then
            return nil, "needs a digit on both sides of the point"
        elseif units[unit] >= largest then
            return nil, "must have its units from the largest to the smallest, each at most once"
        end
        local ms, why = part(whole, fraction, unit)
        if not ms then
            return nil, why
        end
        sum, at, largest = sum + ms, stop, units[unit]
    until at > #value
    if sum > LONGEST_MS then
        return nil, TOO_LONG
    end
    return sum
end

-- Units as people write them, without an "s" at the end.
local spelt = {
    day = "d", hour = "h", hr = "h", minute = "m", min = "m", second = "s", sec = "s", millisecond = "ms", msec = "ms",
}

local function short_unit(word)
    return spelt[word] or spelt[word:gsub("s$", "")]
end

-- What digits without a unit may have been meant to be.
local function with_units(digits)
    return parse(digits .. "s") and ('"%sms" or "%ss"?'):format(digits, digits) or ('"%sms"?'):format(digits)
end

-- What a string that doesn't parse was probably meant to be; "" where that isn't clear.
local function guess(value)
    local likely = value:lower():gsub("%s", ""):gsub("%l+", short_unit)
    likely = likely:gsub("^%.", "0."):gsub("%.(%l)", "%1")
    if #likely < 40 and likely ~= value and parse(likely) then
        return "; " .. text.show(likely) .. "?"
    elseif value:find("^%d+$") and #value < 10 then
        return "; " .. with_units(value)
    end
    return ""
end

-- What is wrong with a bare number other than 0, and how it might be meant.
local function number_mistake(value)
    if value ~= value or value == math.huge then
        return "is no span of time: " .. FORM
    elseif value < 0 then
        return "is less than 0: " .. FORM
    elseif math.tointeger(value) then
        return "has no unit; " .. with_units(("%d"):format(value))
    end
    return ('has no unit; "%ss"?'):format(value)
end

-- read gives the milliseconds of 0 or a string; else nil and what is wrong and what would be right, to
-- be said behind the name of what has the value: `delay` .. " " .. `5 has no unit; "5ms" or "5s"?`.
function duration.read(value)
    if type(value) == "number" then
        if value == 0 then
            return 0
        end
        return nil, text.show(value) .. " " .. number_mistake(value)
    elseif type(value) ~= "string" then
        return nil, text.show(value) .. " is no span of time: " .. FORM
    end
    local ms, why = parse(value)
    if not ms then
        return nil, text.show(value) .. " " .. why .. guess(value)
    end
    return ms
end

-- whole gives a number of milliseconds as one; else nil and what is wrong, to be said as of read.
function duration.whole(n)
    local ms = math.tointeger(n)
    if n < 0 then
        return nil, text.show(n) .. " is less than 0: " .. FORM
    elseif n > LONGEST_MS then
        return nil, text.show(n) .. " " .. TOO_LONG
    elseif not ms then
        return nil, text.show(n) .. " is no whole number of milliseconds"
    end
    return ms
end

-- span gives n units of so many milliseconds as a string; else nil and what is wrong. Decimal
-- fractions aren't exact in binary, hence the tolerance.
local function span(n, unit_ms)
    if type(n) ~= "number" then
        return nil, "takes a number, not " .. text.show(n)
    elseif n ~= n or n < 0 then
        return nil, "takes 0 or more, not " .. text.show(n)
    elseif n * unit_ms > LONGEST_MS then
        return nil, text.show(n) .. " " .. TOO_LONG
    end
    local ms = math.floor(n * unit_ms + 0.5)
    if math.abs(n * unit_ms - ms) > 1e-6 then
        return nil, text.show(n) .. " is no whole number of milliseconds"
    end
    return ("%dms"):format(ms)
end

function duration.seconds(n)
    return span(n, 1000)
end

function duration.ms(n)
    return span(n, 1)
end

return duration
