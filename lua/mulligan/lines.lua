-- lines.lua: stdin line by line, with a bound on a line's size, and without waiting unless asked to.

local program = require "mulligan.program"

-- A reader of stdin. reader.next(may_wait, for_stdout) gives the next line without its newline; false
-- where it is longer than `limit` bytes, and skipped; nil and "end"; nil and what else
-- program.read_stdin says of why there is none.
return function(limit)
    local chunk, from = "", 1 -- what is read, and where it wasn't looked at yet
    local parts, size, at_end = {}, 0, false
    local reader = {}

    local function keep(piece)
        size = size + #piece
        if size > limit then
            parts = {}
        else
            parts[#parts + 1] = piece
        end
    end

    function reader.next(may_wait, for_stdout)
        while true do
            local stop = chunk:find("\n", from, true)
            if stop and size == 0 and stop - from <= limit then -- as most lines: in one piece
                local line = chunk:sub(from, stop - 1)
                from = stop + 1
                return line
            end
            keep(chunk:sub(from, (stop or 0) - 1))
            from = (stop or #chunk) + 1
            if stop or at_end and size > 0 then
                local line = size <= limit and table.concat(parts)
                parts, size = {}, 0
                return line
            elseif at_end then
                return nil, "end"
            end
            local read, word, why = program.read_stdin(may_wait, for_stdout)
            if not read then
                return nil, word, why
            end
            chunk, from, at_end = read, 1, read == ""
        end
    end

    return reader
end
