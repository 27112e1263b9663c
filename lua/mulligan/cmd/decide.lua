-- cmd/decide.lua: failures in, verdicts out, a JSON object a line.
--
-- A line is answered before the next one is waited for: what was decided is written once there is
-- much of it, and before each read that may wait.

local cli = require "mulligan.cli"
local core = require "mulligan.core"
local json = require("mulligan").json
local program = require "mulligan.program"
local stdin = require "mulligan.lines"
local text = require "mulligan.policy.text"

local LONGEST_LINE = 16 * 1024 * 1024
local BATCH = 64 * 1024
local LOOK_MS, LOOKS, LOOK_LINES, LOADS = 100, 10, 1000, 3

-- The options are the same for all lines, so nothing checks them for each.
local decide_json = core.policy_functions.decide_json

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
        local well, verdict, message = pcall(decide_json, policy, line, given)
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

-- ---- Reloading ---------------------------------------------------------------------------------

-- watcher gives a function that reloads the policy where its files look other than they did, or a SIGHUP came: once
-- they are at rest, or after a second. What is said before goes out first.
local function watcher(policy, path)
    local seen = program.look(policy)
    program.catch_up(policy)

    -- True: they are at rest.
    local function await_rest()
        for _ = 1, LOOKS do
            seen = program.look(policy)
            program.pause(LOOK_MS)
            if program.look(policy) == seen then
                return true
            end
        end
        return false
    end

    local function reload()
        local well, message, _, problems = policy:reload()
        if not well then
            problems = #problems > 0 and problems or { { text = message } }
            cli.complain_of(cli.seen_from_here(path, problems))
            cli.complain("decide: generation %s goes on", policy:generation())
        end
    end

    return function(flush)
        local is_asked = program.hung_up()
        if program.look(policy) == seen and not is_asked or not flush() then
            return
        end
        -- What changes during a load is seen after it, as is what the new policy requires.
        for _ = 1, LOADS do
            local at_rest = await_rest()
            reload()
            if not at_rest or program.look(policy) == seen then
                return
            end
        end
    end
end

-- ---- All of it ---------------------------------------------------------------------------------

-- answer_all gives the exit code. It calls `reload_if_changed` when it has waited for a line, and now and then where it
-- needn't wait.
local function answer_all(policy, given, place, reload_if_changed)
    local reader, out, code = stdin(LONGEST_LINE), writer(), 0
    while true do
        local line, word, why = reader.next(false)
        local waits = word == "later"
        if waits then
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
        if waits or place.line % LOOK_LINES == 0 then
            reload_if_changed(out.flush)
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
    local reload_if_changed = words.watch and watcher(policy, words[1]) or function() end
    local code = answer_all(policy, { seed = seed, no_jitter = words.no_jitter }, place, reload_if_changed)
    policy:close()
    return code
end

return decide
