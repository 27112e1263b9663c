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

-- The rows of a section's first table: a list of lists of cells, without the head.
function pages.rows(path, heading)
    local section = assert(("\n" .. pages.read(path)):match("\n#+ " .. heading .. "\n(.*)$"), heading)
    local lines = assert(section:match("\n|[^\n]*\n|[ |-]*\n(|.-\n)\n"), "no table under " .. heading)
    local rows = {}
    for line in lines:gmatch("[^\n]+") do
        local row = {}
        for cell in line:sub(2):gmatch(" ?(.-) ?|") do
            row[#row + 1] = cell
        end
        rows[#rows + 1] = row
    end
    return rows
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
