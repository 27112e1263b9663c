-- ansi.lua: columns, and colour where a person looks at a terminal and hasn't said NO_COLOR.

local program = require "mulligan.program"

local paint = {}

local codes = { bold = 1, dim = 2, red = 31, green = 32, yellow = 33, cyan = 36 }

local function wanted()
    return program.writes_to_terminal() and (os.getenv "NO_COLOR" or "") == "" and os.getenv "TERM" ~= "dumb"
end

local is_wanted

-- plain: from now on there is no colour, since what is made isn't for this terminal.
function paint.plain()
    is_wanted = false
end

-- paint.bold(words), paint.red(words), …
for name, code in pairs(codes) do
    paint[name] = function(words)
        if is_wanted == nil then
            is_wanted = wanted()
        end
        return is_wanted and ("\27[%dm%s\27[0m"):format(code, words) or words
    end
end

local function width(words)
    if words:find("^[ -~]*$") then
        return #words
    end
    return utf8.len((words:gsub("\27%[%d+m", ""))) or #words
end

-- pad fills words with spaces up to a width.
function paint.pad(words, to)
    return words .. (" "):rep(to - width(words))
end

-- columns gives rows of words, which it pads, as lines, aligned; the last cell of a row is as long as it likes.
function paint.columns(rows, indent)
    local widths, lines = {}, {}
    for _, row in ipairs(rows) do
        for number = 1, #row - 1 do
            widths[number] = math.max(widths[number] or 0, width(row[number]))
        end
    end
    for at, row in ipairs(rows) do
        for number = 1, #row - 1 do
            row[number] = paint.pad(row[number], widths[number])
        end
        lines[at] = (" "):rep(indent) .. table.concat(row, "  ")
        if lines[at]:find("%s", -1) then
            lines[at] = lines[at]:match("^.*%S") or ""
        end
    end
    return lines
end

return paint
