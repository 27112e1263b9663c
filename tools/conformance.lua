-- conformance.lua: the table of the conformance suite's cases by transport, from what the transports'
-- specs said (TAP), and that of what each transport can do.
--
--   LUA_PATH="spec/?.lua;;" lua5.4 tools/conformance.lua [--write] LOG...
--
-- It prints both, or writes them into docs/transports/README.md. A transport without a LOG keeps its
-- columns there: what it needs isn't on this machine. It ends in 1 where a case failed.
local needs = require "transport.conformance.needs"
local page = require "transport.conformance.page"
local pages = require "support.pages"
local process = require "support.process"

-- The columns, with a URL for what each can do; array: is a program's own.
local TRANSPORTS = {
    { "memory", "memory:" }, { "sqlite", "sqlite:any.db" }, { "amqp", "amqp://localhost" }, { "board", "board:" },
    { "array" },
}

local BEGIN, END = "<!-- ./do conformance writes what follows -->\n", "<!-- as far as here -->\n"

-- ---- What came out -----------------------------------------------------------------------------

-- read_log adds to `columns` what a log says: by transport and case a cell, or { why }.
local function read_log(path, columns, order)
    local function add(transport, case, cell)
        columns[transport] = columns[transport] or {}
        columns[transport][case] = cell
        if not order[case] then
            order[case], order[#order + 1] = true, case
        end
    end
    for line in assert(process.read(path), path):gmatch("[^\n]+") do
        local transport, case, why = line:match("^ok %d+ %- # SKIP .-conformance of (%S+): (.*); skipped: (.*)$")
        if transport then
            add(transport, case, { why })
        else
            local verdict
            verdict, transport, case = line:match("^(%l[%l ]*) %d+ %- conformance of (%S+): (.*)$")
            if transport and case ~= page.CASE and not case:find(page.PATH, 1, true) then
                add(transport, case, verdict == "ok" and page.PASSED or page.FAILED)
            end
        end
    end
end

-- keep_column takes a transport's column from the page as it is.
local function keep_column(transport)
    local column = {}
    for case, cell in pairs(page.column(transport)) do
        column[case] = cell == true and page.PASSED or cell == false and page.FAILED or { cell }
    end
    return column
end

-- ---- What is written ---------------------------------------------------------------------------

local function row(cells)
    return "| " .. table.concat(cells, " | ") .. " |\n"
end

local function head(first, transports)
    local names, lines = { first }, { "---" }
    for _, transport in ipairs(transports) do
        names[#names + 1], lines[#lines + 1] = page.head(transport), "---"
    end
    return row(names) .. row(lines)
end

local function abilities_table()
    local transports, columns = {}, {}
    for _, transport in ipairs(TRANSPORTS) do
        local name, url = transport[1], transport[2]
        local here, can = pcall(needs.abilities, url)
        columns[name] = url and (here and page.abilities(can) or page.can(name))
        if columns[name] and next(columns[name]) then
            transports[#transports + 1] = name
        end
    end
    local text = { head("", transports) }
    for _, ability in ipairs(page.ABILITY_ROWS) do
        local cells = { ability }
        for _, name in ipairs(transports) do
            cells[#cells + 1] = columns[name][ability]
        end
        text[#text + 1] = row(cells)
    end
    return table.concat(text)
end

-- letters gives a reason's letters, the next ones for a new one.
local function letters(reasons, why)
    if not reasons[why] then
        local number = #reasons
        local name = string.char(97 + number % 26)
        reasons[why] = number < 26 and name or string.char(96 + number // 26) .. name
        reasons[#reasons + 1] = why
    end
    return reasons[why]
end

local function cases_table(order, columns, transports, reasons, wanted)
    local text = { head("case", transports) }
    for _, case in ipairs(order) do
        if (case:find("^C: ") ~= nil) == wanted then
            local cells = { case }
            for _, name in ipairs(transports) do
                local cell = columns[name][case] or page.NONE
                cells[#cells + 1] = type(cell) == "table" and letters(reasons, cell[1]) or cell
            end
            text[#text + 1] = row(cells)
        end
    end
    return table.concat(text)
end

local function generate(logs)
    local columns, order, transports, reasons = {}, {}, {}, {}
    for _, path in ipairs(logs) do
        read_log(path, columns, order)
    end
    for _, transport in ipairs(TRANSPORTS) do
        local name = transport[1]
        columns[name] = columns[name] or keep_column(name)
        if next(columns[name]) then
            transports[#transports + 1] = name
        end
    end
    local text = {
        ("\n## %s\n\n"):format(page.ABILITIES), abilities_table(),
        ("\n## %s: through an engine\n\n"):format(page.CASES), cases_table(order, columns, transports, reasons, false),
        ("\n## %s: settlement by settlement\n\n"):format(page.CASES),
        cases_table(order, columns, transports, reasons, true),
        "\n## Why a case is skipped\n\n| | |\n| --- | --- |\n",
    }
    for _, why in ipairs(reasons) do
        text[#text + 1] = row { reasons[why], why }
    end
    return table.concat(text) .. "\n"
end

local write = arg[1] == "--write"
local generated = generate { table.unpack(arg, write and 2 or 1) }
if write then
    local before = pages.read(page.PATH)
    local first, last = select(2, before:find(BEGIN, 1, true)), before:find(END, 1, true)
    process.write(page.PATH, before:sub(1, first) .. generated .. before:sub(last))
else
    io.write(generated)
end
os.exit(not generated:find(page.FAILED, 1, true))
