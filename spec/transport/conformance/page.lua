-- page.lua: the tables of docs/transports/README.md: what each transport can do, by its `look`, and the cases
-- of the conformance suite. `./do conformance` writes them (tools/conformance.lua), and the spec of each
-- transport holds its columns against what came out.
local pages = require "support.pages"

local page = {
    PATH = "docs/transports/README.md",
    CASE = "is in docs/transports/README.md as it came out; ./do conformance writes that",
    ABILITIES = "What each can do",
    CASES = "Conformance",
    PASSED = "✓",
    FAILED = "✗",
    NONE = "–", -- the case is no case of this transport's suite
}

-- ---- Abilities ---------------------------------------------------------------------------------

local function yes(value)
    return value == 1 and "yes" or "no"
end

local function ms(value, none)
    if value == 0 then
        return none
    elseif value % 86400000 == 0 then
        return value // 86400000 .. " d"
    end
    return value % 1000 == 0 and value // 1000 .. " s" or value .. " ms"
end

local COUNTS = { nothing = "nothing", handouts = "hand-outs", deaths = "deaths of its owners" }

-- abilities gives the rows of a transport, by their names, from what the program `abilities` says.
function page.abilities(can)
    return {
        ["holds a message for a retry"] = yes(can.can_retry),
        ["delays a message"] = yes(can.can_delay),
        ["longest delay in one step"] = can.can_delay == 1 and ms(can.longest_delay_ms, "any") or page.NONE,
        ["delays are rounded up to"] = can.can_delay == 1 and ms(math.max(can.delay_step_ms, 1), "") or page.NONE,
        ["keeps headers safe while a message is claimed"] = yes(can.can_note),
        ["copy, sends and end are one transaction"] = yes(can.settles_whole),
        ["`deliveries` counts"] = COUNTS[can.deliveries],
        ["depth"] = ({ none = "unknown", rough = "rough", exact = "exact" })[can.depth],
        ["claim timeout"] = ms(can.claim_timeout_ms, "none"),
        ["holds claims beyond it"] = yes(can.can_hold),
    }
end

page.ABILITY_ROWS = {
    "holds a message for a retry", "delays a message", "longest delay in one step", "delays are rounded up to",
    "keeps headers safe while a message is claimed", "copy, sends and end are one transaction",
    "`deliveries` counts", "depth", "claim timeout", "holds claims beyond it",
}

-- ---- Reading -----------------------------------------------------------------------------------

-- head is the head of a transport's column.
function page.head(transport)
    return ("`%s:`"):format(transport)
end

local function column_of(found, transport)
    for number, cell in ipairs(found.head) do
        if cell == page.head(transport) then
            return number
        end
    end
    return nil
end

-- cells gives a transport's cells in all tables below a heading, by the first cell of each row.
local function cells(heading, transport)
    local got = {}
    for _, found in ipairs(pages.tables(page.PATH)) do
        local number = found.heading:find(heading, 1, true) == 1 and column_of(found, transport)
        for _, row in ipairs(number and found.rows or {}) do
            got[row[1]] = row[number]
        end
    end
    return got
end

function page.can(transport)
    return cells(page.ABILITIES, transport)
end

-- reasons gives why a case is skipped, by its letters below the tables.
function page.reasons()
    local found = {}
    for letters, text in pages.read(page.PATH):gmatch("\n| (%l%l?) | ([^\n|]*) |") do
        found[letters] = text
    end
    return found
end

-- column gives what the page says of a transport: by each case's name true, false, or why it is skipped.
function page.column(transport)
    local why, column = page.reasons(), {}
    for case, cell in pairs(cells(page.CASES, transport)) do
        if cell == page.PASSED then
            column[case] = true
        elseif cell ~= page.NONE then
            column[case] = cell ~= page.FAILED and (why[cell] or cell)
        end
    end
    return column
end

-- differences lists the cases in which two columns differ.
function page.differences(here, there)
    local found = {}
    for _, column in ipairs { here, there } do
        for case in pairs(column) do
            if here[case] ~= there[case] then
                found[case] = ("here %s, on the page %s"):format(here[case], there[case])
            end
        end
    end
    return found
end

return page
