-- lengths.lua: no file over 800 lines, no function over 80, in C and Lua. A function counts from
-- the line of its name to its closing brace or `end`. What a spec passes to describe() is a list
-- of tests and no function in this sense. What tools/docgen.lua writes for editors may be longer.
--
--   lua5.4 tools/lengths.lua [ROOT]

local FILE_MAX, FUNCTION_MAX = 800, 80

local root = arg[1] or "."
local problems, files = 0, 0

local function complain(path, line, text)
    problems = problems + 1
    print(("%s:%d: %s"):format(path, line, text))
end

local function check(path, name, first, last)
    local lines = last - first + 1
    if lines > FUNCTION_MAX then
        complain(path, first, ("%s has %d lines, %d are allowed"):format(name, lines, FUNCTION_MAX))
    end
end

-- In the layout of clang-format only the body of a function has its braces alone in the first
-- column; its head is what stands before it, from the last line that ends a thing of its own.
local function check_c(path, lines)
    local head, first
    for number, line in ipairs(lines) do
        if line == "{" then
            first = head
        elseif line:find("^}") and first then
            check(path, lines[first]:match("([%w_]+)%s*%(") or "a function", first, number)
            first = nil
        end
        if line:find("^[%a_]") and not line:find(";%s*$") then
            head = head or number
        elseif line == "" or line:find("^[#}/ ]") and not line:find("^ .*[,)]$") then
            head = nil
        end
    end
end

-- Takes comments and strings out of Lua text, keeping its lines.
local function strip(text)
    local function newlines(piece)
        return (piece:gsub("[^\n]+", ""))
    end
    local out, at = {}, 1
    while at <= #text do
        local start = text:find("[\"'%-%[]", at)
        if not start then
            break
        end
        out[#out + 1] = text:sub(at, start - 1)
        local comment = text:sub(start, start + 1) == "--"
        local opening = comment and start + 2 or start
        local level = text:match("^%[(=*)%[", opening)
        local quote = text:match("^[\"']", start)
        local stop = start
        if level then
            stop = select(2, text:find("]" .. level .. "]", opening, true)) or #text
        elseif comment then
            stop = (text:find("\n", start, true) or #text + 1) - 1
        elseif quote then
            stop = start + 1
            while stop < #text and text:sub(stop, stop) ~= quote do
                stop = stop + (text:sub(stop, stop) == "\\" and 2 or 1)
            end
        else
            out[#out + 1] = text:sub(start, start)
        end
        out[#out + 1] = stop > start and newlines(text:sub(start, stop)) or ""
        at = stop + 1
    end
    out[#out + 1] = text:sub(at)
    return table.concat(out)
end

local is_list = { describe = true, context = true, insulate = true, expose = true }

local function check_lua(path, lines)
    local open, number = {}, 0
    for line in (strip(table.concat(lines, "\n")) .. "\n"):gmatch("(.-)\n") do
        number = number + 1
        for word in line:gmatch("[%a_][%w_]*") do
            if word == "function" then
                local name = line:match("function%s+([%w_.:]+)") or line:match("([%w_.]+)%s*=%s*function")
                local list = is_list[line:match("^%s*([%w_]+)%(")]
                open[#open + 1] = { name = name or "a function", line = number, list = list }
            elseif word == "do" or word == "if" or word == "repeat" then
                open[#open + 1] = {}
            elseif word == "end" or word == "until" then
                local block = table.remove(open)
                if block and block.name and not block.list then
                    check(path, block.name, block.line, number)
                end
            end
        end
    end
end

local function check_file(path)
    local lines = {}
    for line in io.lines(root .. "/" .. path) do
        lines[#lines + 1] = line
    end
    if #lines > FILE_MAX and not path:find("^lua/mulligan/meta/") then
        complain(path, #lines, ("%d lines, %d are allowed"):format(#lines, FILE_MAX))
    end
    if path:find("%.lua$") then
        check_lua(path, lines)
    else
        check_c(path, lines)
    end
end

local list = assert(io.popen("cd '" .. root .. "' && find . -path ./build -prune -o "
    .. "\\( -name '*.[ch]' -o -name '*.lua' \\) -type f -print | LC_ALL=C sort"))
for path in list:lines() do
    files = files + 1
    check_file((path:gsub("^%./", "")))
end
assert(list:close())
print(("%d files, %d too long or with functions too long"):format(files, problems))
os.exit(problems == 0 and files > 0)
