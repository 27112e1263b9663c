-- cmd/decide.lua: failures in, verdicts out, a JSON object a line.
--
-- A line is answered before the next one is waited for: what was decided is written once there is
-- much of it, and before each read that may wait.

local cli = require "mulligan.cli"
local json = require("mulligan").json
local stdin = require "mulligan.lines"
local text = require "mulligan.policy.text"

local LONGEST_LINE = 16 * 1024 * 1024
local BATCH = 64 * 1024

local decide = {}

-- whole gives the 64 bits of a number that is written in digits, signed or not; nil: it is none.
local function whole(written)
    local sign, digits = written:match("^(%-?)0*(%d+)$")
    local most = sign == "-" and "9223372036854775808" or "18446744073709551615"
    if not digits or #digits > #most or #digits == #most and digits > most then
        return nil
    end
    local number = 0
    for digit in digits:gmatch("%d") do
        number = number * 10 + math.tointeger(digit)
    end
    return sign == "-" and -number or number
end

-- ---- Lines -------------------------------------------------------------------------------------

-- why_not is what is wrong with a line, as its answer says it.
local function why_not(number, raised)
    local why = type(raised) == "table" and raised.message or tostring(raised)
    why = why:gsub("^not JSON: line 1, ", "not JSON: ", 1)
    return ("line %d: %s"):format(number, why)
end

-- answer gives the answer to a line, and whether it is a verdict.
local function answer(policy, given, number, line)
    local why
    if line == false then
        why = "longer than 16 MiB"
    elseif not line:find("%S") then
        why = "empty"
    else
        local well, verdict, message = pcall(policy.decide_json, policy, line, given)
        if well and verdict then
            return verdict, true
        end
        why = well and message or verdict
    end
    return ('{"error": %s}'):format(json.encode(text.mend(why_not(number, why)))), false
end

-- writer collects lines; :write says whether they can still be written.
local function writer()
    local batch, size = {}, 0
    local out = {}

    function out.flush()
        local words = table.concat(batch)
        batch, size = {}, 0
        return words == "" or cli.say(words)
    end

    function out.add(line)
        batch[#batch + 1] = line
        batch[#batch + 1] = "\n"
        size = size + #line
        return size < BATCH or out.flush()
    end

    return out
end

-- ---- All of it ---------------------------------------------------------------------------------

-- answer_all gives the exit code.
local function answer_all(policy, given, place)
    local reader, out, code = stdin(LONGEST_LINE), writer(), 0
    while true do
        local line, word, why = reader.next(false)
        if word == "later" then
            if not out.flush() then
                return 1
            end
            line, word, why = reader.next(true, true)
        end
        if word == "unread" then
            cli.complain "stdout: nobody reads the verdicts any more"
            return 1
        elseif word == "error" then
            cli.complain("decide: stdin: %s", why)
            code = 1
        end
        if word then
            return out.flush() and code or 1
        end
        place.line = place.line + 1
        local words, is_verdict = answer(policy, given, place.line, line)
        code = is_verdict and code or 1
        if not out.add(words) then
            return 1
        end
    end
end

function decide.main(words)
    local seed = whole(words.seed or "0")
    if not seed then
        return cli.complain("decide: --seed must be a 64-bit whole number, not %s", text.show(words.seed))
    end
    local place = { line = 0 }
    local policy, problems = cli.load_policy(words[1], {
        log = cli.print,
        event = cli.events(words[1], function()
            return ("line %d: "):format(place.line)
        end),
    })
    if not policy then
        return cli.complain_of(problems)
    end
    local code = answer_all(policy, { seed = seed, no_jitter = words.no_jitter }, place)
    policy:close()
    return code
end

return decide
