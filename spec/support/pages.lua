-- pages.lua: the pages for users, as the specs see them: their code, their tables, their links.
local process = require "support.process"

local pages = {}

function pages.read(path)
    return assert(process.read(path), path)
end

-- The blocks of code in one language: a list of { text =, line = }, the line that of the fence.
function pages.blocks(path, language)
    local blocks, block, number = {}, nil, 0
    for line in (pages.read(path) .. "\n"):gmatch("(.-)\n") do
        number = number + 1
        local fence = line:match("^```(.*)$")
        if fence and block then
            block.text = table.concat(block, "\n") .. "\n"
            blocks[#blocks + 1] = block.language == language and block or nil
            block = nil
        elseif fence then
            block = { language = fence, line = number }
        elseif block then
            block[#block + 1] = line
        end
    end
    assert(not block, path .. ": a block without an end")
    return blocks
end

local function cells(line)
    local row = {}
    for cell in line:sub(2):gmatch(" ?(.-) ?|") do
        row[#row + 1] = cell
    end
    return row
end

-- The tables: a list of { head =, rows =, line =, heading = }, rows as lists of cells; line is that of
-- the head, heading what it stands under.
function pages.tables(path)
    local tables, found, number, heading, in_block = {}, nil, 0, "", false
    for line in (pages.read(path) .. "\n"):gmatch("(.-)\n") do
        number = number + 1
        in_block = in_block ~= (line:sub(1, 3) == "```")
        heading = not in_block and line:match("^#+ (.*)$") or heading
        if in_block or line:sub(1, 1) ~= "|" then
            found = nil
        elseif not found then
            found = { head = cells(line), rows = {}, line = number, heading = heading }
            tables[#tables + 1] = found
        elseif not line:find("^[ |-]*$") then
            found.rows[#found.rows + 1] = cells(line)
        end
    end
    return tables
end

-- The rows of a section's first table.
function pages.rows(path, heading)
    for _, found in ipairs(pages.tables(path)) do
        if found.heading == heading then
            return found.rows
        end
    end
    error("no table under " .. heading)
end

-- What another page may put behind "#" to come to a heading of this one.
function pages.anchors(path)
    local anchors = {}
    for heading in ("\n" .. pages.read(path)):gmatch("\n#+ ([^\n]*)") do
        anchors[heading:lower():gsub("[^%w%s_-]", ""):gsub(" ", "-")] = true
    end
    return anchors
end

return pages
