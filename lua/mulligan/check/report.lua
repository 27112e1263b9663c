-- report.lua: what policy:check gives: findings with their words, in the order of the files, and
-- bounds.

local core = require "mulligan.core"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"
local words = require "mulligan.check.words"

local report = {}

local check = core.policy_methods.check

local REFUSED, DEAD_LETTERS_READ, NOT_THERE = 14, 15, 17

-- names_for gives the names that a scope of a label's kind could have.
local function names_for(label, consumers, transports)
    if label:find("^transport:") then
        return transports
    end
    local names = {}
    for number, consumer in ipairs(consumers) do
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
    -- What is to be said of a consumer has its place in mulligan.lua, which only the caller knows.
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
    elseif a.code ~= b.code then
        return a.code < b.code
    end
    return a.order < b.order
end

-- of gives { generation =, findings = { … }, bounds = { … } }; `consumers`, each with name, transport, url,
-- queue and timeout_ms, and the names of all `transports` may be nil.
function report.of(policy, consumers, transports)
    transports = transports or consumers and transports_of(consumers)
    local well, raw = pcall(check, policy, consumers, transports)
    if not well then
        error(raw, 0) -- in C's own words, without a place in here
    end
    local findings, seen = {}, {}
    for _, finding in ipairs(raw.findings) do
        if finding.kind == NOT_THERE then
            finding.near = text.nearest(finding.word, names_for(finding.scope, consumers, transports))
        end
        add(findings, seen, finding)
    end
    for _, refusal in ipairs(raw.refused) do
        add(findings, seen, { kind = REFUSED, file = refusal.file, line = refusal.line, word = url.mask(refusal.text) })
    end
    table.sort(findings, before)
    for _, finding in ipairs(findings) do
        finding.order = nil
    end
    return { generation = raw.generation, findings = findings, bounds = raw.bounds }
end

return report
