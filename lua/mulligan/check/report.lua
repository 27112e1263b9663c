-- report.lua: what policy:check gives: findings with their words, in the order of the files; bounds;
-- and what `run` would refuse.

local core = require "mulligan.core"
local text = require "mulligan.policy.text"
local words = require "mulligan.check.words"

local report = {}

local check = core.policy_functions.check

local MOST_LOOKS = 20000 -- at names that may have been meant

local DEAD_LETTERS_READ, NOT_THERE = 15, 17

local function names_of(consumers)
    local names = {}
    for number, consumer in ipairs(consumers or {}) do
        names[number] = consumer.name
    end
    return names
end

local function transports_of(consumers)
    local names, seen = {}, {}
    for _, consumer in ipairs(consumers) do
        if not seen[consumer.transport] then
            seen[consumer.transport] = true
            names[#names + 1] = consumer.transport
        end
    end
    return names
end

-- A preset, or a list of types, may say the same thing more than once.
local function add(findings, seen, finding)
    local said = {
        code = words.code(finding),
        file = finding.file,
        line = finding.line,
        text = words.of(finding),
    }
    -- What is to be said of a consumer has its place in service.lua, which only the caller knows.
    said.consumer = finding.kind == DEAD_LETTERS_READ and finding.word or nil
    local key = table.concat({ said.code, said.file or "", said.line or "", said.text }, "\0")
    if not seen[key] then
        seen[key] = true
        said.order = #findings
        findings[#findings + 1] = said
    end
end

local function before(a, b)
    if (a.file or "") ~= (b.file or "") then
        return (a.file or "") < (b.file or "")
    elseif (a.line or 0) ~= (b.line or 0) then
        return (a.line or 0) < (b.line or 0)
    elseif a.code ~= b.code then -- what is refused has none
        return a.code < b.code
    end
    return a.order < b.order
end

-- in_order sorts findings, of which each has its `order` among its like, and gives them.
local function in_order(findings)
    table.sort(findings, before)
    for _, finding in ipairs(findings) do
        finding.order = nil
    end
    return findings
end

-- refused gives what `run` would refuse, each thing once, in the order of the files.
local function refused(raw)
    local list, seen = {}, {}
    for _, refusal in ipairs(raw) do
        local said = { file = refusal.file, line = refusal.line, text = refusal.text }
        local key = table.concat({ said.file or "", said.line or "", said.text }, "\0")
        if not seen[key] then
            seen[key] = true
            said.order = #list
            list[#list + 1] = said
        end
    end
    return in_order(list)
end

-- not_there gives the finding of each scope that is for none of these names, the first `most` with the name that
-- was probably meant, and how many there are.
function report.not_there(policy, consumers, transports, most)
    local findings, named = {}, {}
    for number, name in ipairs(consumers) do
        named[number] = { name = name }
    end
    local found = check(policy, named, transports, true).findings
    for number = 1, math.min(#found, most) do
        local finding = found[number]
        finding.near = text.nearest(finding.word, finding.scope:find "^transport:" and transports or consumers)
        add(findings, {}, finding)
    end
    return findings, #found
end

-- of gives { generation =, findings = { … }, bounds = { … }, refused = { … } }; `consumers`, each with name,
-- transport, url, queue and timeout_ms, and the names of all `transports` may be nil.
function report.of(policy, consumers, transports)
    transports = transports or consumers and transports_of(consumers)
    local well, raw = pcall(check, policy, consumers, transports)
    if not well then
        error(raw, 0) -- in C's own words, without a place in here
    end
    local findings, seen, looks, names = {}, {}, 0, names_of(consumers)
    for _, finding in ipairs(raw.findings) do
        if finding.kind == NOT_THERE then
            local near = finding.scope:find("^transport:") and transports or names
            looks = looks + #near
            finding.near = looks <= MOST_LOOKS and text.nearest(finding.word, near) or nil
        end
        add(findings, seen, finding)
    end
    return { generation = raw.generation, findings = in_order(findings), bounds = raw.bounds,
        refused = refused(raw.refused) }
end

return report
