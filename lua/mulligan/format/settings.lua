-- settings.lua: settings in force in rows, with the place where each was set.

local core = require "mulligan.core"
local ansi = require "mulligan.format.ansi"
local duration = require "mulligan.format.duration"
local limits = require "mulligan.format.limits"
local scopes = require "mulligan.format.scopes"
local text = require "mulligan.policy.text"

local settings = {}

local function value_of(kind, value)
    if value == false then
        return "none"
    elseif kind == "span" then
        return duration.exact(value)
    elseif value == true then
        return "a function"
    end
    return text.name(tostring(value))
end

local function place(seen, of)
    return of.file and scopes.place(seen, of) .. " " .. text.name(of.scope) or ansi.dim "default"
end

-- Settings that are lists of statements.
local statements = { rate_limits = limits.rate_limit, call_limits = limits.limit }

-- The longest line of a statement, so that the place beside it is seen.
local WIDTH = 60

-- wrapped gives the words of a statement in lines.
local function wrapped(words)
    local lines = { "" }
    for word in words:gmatch "%S+" do
        local line = lines[#lines]
        if line == "" then
            lines[#lines] = word
        elseif #line + #word < WIDTH then
            lines[#lines] = line .. " " .. word
        else
            lines[#lines + 1] = word
        end
    end
    return lines
end

-- add_statement adds the lines of a statement, with the place beside the first.
local function add_statement(rows, name, words, where)
    for number, line in ipairs(wrapped(words)) do
        rows[#rows + 1] = number == 1 and { name, line, where } or { "", line }
    end
end

-- add adds the rows of a setting: one, or those of each statement.
local function add(rows, seen, row, setting)
    local name = row.field:gsub("_ms$", "")
    if not statements[row.kind] or not setting.value then
        rows[#rows + 1] = { name, value_of(row.kind, setting.value), place(seen, setting) }
        return
    end
    for number, statement in ipairs(setting.value) do
        local where = { file = statement.file, line = statement.line, scope = setting.scope }
        add_statement(rows, number == 1 and name or "", statements[row.kind](statement), place(seen, where))
    end
end

-- rows gives those of all settings.
function settings.rows(seen, of)
    local rows = {}
    for _, row in ipairs(core.settings) do
        add(rows, seen, row, of[row.field])
    end
    return rows
end

local no_limits = { dead_letter_queue = true, override = true, notify = true }

-- limits gives those of the limits that are set, or have a default.
function settings.limits(seen, of)
    local rows = {}
    for _, row in ipairs(core.settings) do
        if not no_limits[row.field] and of[row.field].value then
            add(rows, seen, row, of[row.field])
        end
    end
    return rows
end

return settings
