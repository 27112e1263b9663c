-- database.lua: looks into the file of a sqlite: transport with the program sqlite3, as
-- docs/transports/sqlite.md tells people to.

local database = {}

local function quote(word)
    return "'" .. word:gsub("'", "'\\''") .. "'"
end

local function open(path, timeout_ms, statement)
    return assert(io.popen(("sqlite3 -batch -bail -noheader -separator '\t' -cmd '.timeout %d' %s %s 2>&1"):format(
        timeout_ms, quote(path), quote(statement))))
end

-- rows gives a statement's rows: lists of texts, "" for null.
function database.rows(path, statement)
    local pipe = open(path, 30000, statement)
    local rows = {}
    for line in pipe:lines() do
        local row = {}
        for column in (line .. "\t"):gmatch("([^\t]*)\t") do
            row[#row + 1] = column
        end
        rows[#rows + 1] = row
    end
    assert(pipe:close(), rows[1] and rows[1][1] or statement)
    return rows
end

-- number gives the number in the first column of the first row.
function database.number(path, statement)
    return tonumber(database.rows(path, statement)[1][1])
end

-- locked says whether somebody is writing at this moment.
function database.locked(path)
    return not open(path, 0, "BEGIN IMMEDIATE; ROLLBACK"):close()
end

return database
