-- Loading policies for specs: from a text or from files, and what always failing messages get by them.
local mulligan = require "mulligan"

local loading = {}

-- A policy that must be good.
function loading.good(text, options)
    local policy, message = mulligan.load_text(text, options)
    if not policy then error("refused:\n" .. message, 2) end
    return policy
end

-- The mistakes of a policy that must be refused: its lines "file:line: text", and the list.
function loading.refused(text)
    local policy, message, code, problems = mulligan.load_text(text)
    if policy then
        policy:close()
        error("loaded, though it is wrong:\n" .. text, 2)
    end
    assert(code == "policy", code)
    local lines = {}
    for line in message:gmatch("[^\n]+") do lines[#lines + 1] = line end
    assert(#lines == #problems)
    return lines, problems
end

-- The statements of a policy after the words that they all need.
function loading.statements(text)
    return 'local policy = require "mulligan.policy"; local bus = policy.bus(); ' .. text
end

-- The verdicts on a message that fails always, until its end, with its counters and its age of each time; handlers take
-- no time.
function loading.walk(policy, failure, options)
    local at = { attempt = 1, redeliveries = 0, calls = 1, age_ms = 0 }
    local verdicts = {}
    repeat
        local asked = {}
        for key, value in pairs(failure) do asked[key] = value end
        for key, counter in pairs(at) do asked[key] = counter end
        local verdict = assert(policy:decide(asked, options or { no_jitter = true }))
        at.calls, at.age_ms = at.calls + 1, at.age_ms + verdict.delay_ms
        if verdict.tier == "retry" then
            assert(verdict.action == "retry" and verdict.step == at.attempt)
            at.attempt = at.attempt + 1
        elseif verdict.tier == "redeliver" then
            assert(verdict.action == "redeliver" and verdict.step == at.redeliveries + 1)
            at.attempt, at.redeliveries = 1, at.redeliveries + 1
        end
        verdicts[#verdicts + 1] = verdict
        assert(#verdicts < 5000, "no end")
    until not verdict.tier
    return verdicts
end

-- The same in words: a list such as { "retry 200", "redeliver 300000", "dead_letter error exhausted" }.
function loading.timeline(policy, failure, options)
    local asked = { error = { type = "TimeoutError" }, message = { id = "m-1" } }
    for key, value in pairs(failure or {}) do asked[key] = value end
    local steps = {}
    for number, verdict in ipairs(loading.walk(policy, asked, options)) do
        local words = { verdict.action }
        if verdict.tier then
            words[2] = tostring(verdict.delay_ms)
        else
            words[#words + 1] = verdict.queue
            words[#words + 1] = verdict.reason
            words[#words + 1] = verdict.note and ("(%s)"):format(verdict.note)
        end
        steps[number] = table.concat(words, " ")
    end
    return steps
end

-- The timeline of one chain on a bus, with the delays of a tier in a row: "retry 200 400 800, dead_letter error
-- exhausted".
function loading.chain(chain, failure, options)
    local policy = loading.good(loading.statements('bus:on("TimeoutError")' .. chain))
    local groups, last = {}, nil
    for _, step in ipairs(loading.timeline(policy, failure, options)) do
        local action, rest = step:match("^(%S+) (.*)$")
        if action == last and action ~= "dead_letter" and action ~= "discard" then
            groups[#groups] = groups[#groups] .. " " .. rest
        else
            groups[#groups + 1] = step
        end
        last = action
    end
    policy:close()
    return table.concat(groups, ", ")
end

-- A folder of its own with the files of `texts` (name -> text); gone by `remove`.
function loading.folder(texts)
    local folder = os.tmpname()
    os.remove(folder)
    assert(os.execute(("mkdir -p '%s'"):format(folder)))
    for name, text in pairs(texts) do
        local path = folder .. "/" .. name
        assert(os.execute(("mkdir -p \"$(dirname '%s')\""):format(path)))
        local file = assert(io.open(path, "wb"))
        file:write(text)
        file:close()
    end
    local function remove() os.execute(("rm -rf '%s'"):format(folder)) end
    return folder, remove
end

return loading
