-- api.lua: is all of the public headers described? Every function, type, field, value and macro of include/ has a
-- comment: its own, or that of the list that it stands in; a comment begins with the name of what it is for. Each
-- function is in docs/api.md too, and has a row in spec/embed/misuse_nulls.c, which names its pointers. module.h
-- is left out: it only lists what transport.h declares. So is conformance.h: it is no part of the library.
--
--   lua5.4 tools/api.lua [ROOT]

local headers = { "include/mulligan.h", "include/mulligan/transport.h" }
local index = "docs/api.md"
local nulls = "spec/embed/misuse_nulls.c"

local root = arg[1] or "."
local problems = 0

local function read(path)
    local file = assert(io.open(root .. "/" .. path))
    local text = file:read("a")
    file:close()
    return text
end

local function complain(path, line, ...)
    problems = problems + 1
    print(("%s:%d: %s"):format(path, line, string.format(...)))
end

-- ---- Reading ------------------------------------------------------------------------------------

local function has_body(statement)
    return statement:find("^template") or statement:find("^static inline")
end

-- A statement ends at a semicolon outside of all braces and parentheses, or with the body of a function.
local function statement_end(text, from)
    local depth, at = 0, from
    while true do
        at = assert(text:find("[;{}()/]", at), "a statement without end")
        local c = text:sub(at, at)
        if c == "/" and text:sub(at, at + 1) == "/*" then
            at = select(2, text:find("*/", at, true))
        elseif c == "{" or c == "(" then
            depth = depth + 1
        elseif c == "}" or c == ")" then
            depth = depth - 1
            if depth == 0 and c == "}" and has_body(text:sub(from, at)) then
                return at
            end
        elseif c == ";" and depth == 0 then
            return at
        end
        at = at + 1
    end
end

-- What may stand between statements: text that is matched, and what it is.
local between = {
    { "^[ \t]*\n[ \t]*\n", "gap" },
    { "^%s+", "space" },
    { "^/%*.-%*/", "comment" },
    { '^extern "C%+*" {', "space" },
    { "^}", "space" },
}

-- Whatever a preprocessor's line says, its continuations included.
local function directive_end(text, from)
    local at = from
    repeat
        at = (text:find("\n", at, true) or #text) + 1
    until text:sub(at - 2, at - 2) ~= "\\"
    return at - 2
end

local function next_piece(text, at)
    for _, kind in ipairs(between) do
        local _, last = text:find(kind[1], at)
        if last then
            return kind[2], last
        end
    end
    if text:sub(at, at) == "#" then
        return "directive", directive_end(text, at)
    end
    return "statement", statement_end(text, at)
end

-- pieces gives the directives and statements of a text, each with the comment above it in its block, and whether it
-- is the first below that one.
local function pieces(text)
    local list, at, line, comment, is_first = {}, 1, 1, nil, false
    while at <= #text do
        local kind, last = next_piece(text, at)
        local piece = text:sub(at, last)
        if kind == "gap" then
            comment = nil
            last = last - 1 -- two gaps may share a newline
            piece = text:sub(at, last)
        elseif kind == "comment" then
            comment, is_first = piece:match("^/%*%s*(.-)%s*%*/$"):gsub("\n%s*%*", " "), true
        elseif kind ~= "space" then
            list[#list + 1] = { kind = kind, text = piece, line = line, comment = comment, is_first = is_first }
            if kind == "statement" or piece:find("^#define MULL_%u") then
                is_first = false
            end
        end
        line = line + select(2, piece:gsub("\n", ""))
        at = last + 1
    end
    return list
end

local function without_comments(text)
    return (text:gsub("/%*.-%*/", ""))
end

local function names_word(text, word)
    return text and (" " .. text .. " "):find("[^%w_]" .. word .. "[^%w_]") ~= nil
end

-- ---- Members ------------------------------------------------------------------------------------

-- The names that a member's text declares.
local function declared_in(text)
    text = without_comments(text)
    local pointer = text:match("%(%*([%w_]+)%)")
    if pointer then
        return { pointer }
    end
    local names = {}
    for part in text:gsub("%b[]", ""):gmatch("[^,]+") do
        names[#names + 1] = part:match("([%w_]+)%s*$")
    end
    return names
end

-- members gives the fields of a struct's body, each with its comment; those of a union within stand beside them.
local function members(body, line, list)
    list = list or {}
    local above
    local at = 1
    while at <= #body do
        local kind, last = next_piece(body, at)
        local piece = body:sub(at, last)
        if kind == "comment" then
            above = piece
        elseif kind == "gap" then
            above = nil
        elseif kind == "statement" then
            local behind = body:match("^[ \t]*(/%*.-%*/)", last + 1)
            local inner = piece:match("^union%s*(%b{})")
            if inner then
                members(inner:sub(2, -2), line, list)
            else
                for _, name in ipairs(declared_in(piece:sub(1, -2))) do
                    list[#list + 1] = { name = name, line = line, comment = behind or above }
                end
            end
            if behind then
                local _, stop = body:find(behind, last + 1, true)
                piece = body:sub(at, stop)
                last = stop
            end
        end
        line = line + select(2, piece:gsub("\n", ""))
        at = last + 1
    end
    return list
end

-- ---- Declarations -------------------------------------------------------------------------------

-- What each form of a statement declares: its pattern, and what that is called.
local forms = {
    { "^MULL_API[^(]-([%w_]+)%s*%(", "function" },
    { "^static inline[^(]-(mull__[%w_]+)%s*%(", "part" }, -- of those below it
    { "^static inline[^(]-([%w_]+)%s*%(", "function" },
    { "^typedef%s+[^{]-%(%*([%w_]+)%)%s*%(", "function type" },
    { "^typedef%s+struct%s+[%w_]*%s*%b{}%s*([%w_]+);$", "struct" },
    { "^typedef%s+enum%s+[%w_]*%s*%b{}%s*([%w_]+);$", "enum" },
    { "^enum%s*{%s*([%w_]+).-};$", "values" },
    { "^typedef%s+[^{(]-([%w_]+);$", "type" },
    { "^template%s*<.->%s*inline%s+[%w_ ]-([%w_]+)%(", "template" },
    { "^#define%s+(MULL_%u[%w_]*)", "macro" },
}

-- declaration gives what a piece declares for the world; nil: nothing, as a forward `struct x;` or a guard.
local function declaration(piece)
    local text = without_comments(piece.text)
    if text:find("^#define%s+MULL%w*_H%s*$") or text:find("^struct%s+[%w_]+;$") then
        return nil
    end
    for _, form in ipairs(forms) do
        local name = text:match(form[1])
        if name then
            return { name = name, kind = form[2], line = piece.line, comment = piece.comment,
                is_first = piece.is_first, text = piece.text }
        end
    end
    return nil
end

-- MULL_API and the like have a definition for each compiler, and one comment.
local function declarations(path)
    local list, seen = {}, {}
    for _, piece in ipairs(pieces(read(path))) do
        local found = declaration(piece)
        if found and not seen[found.name] then
            seen[found.name] = true
            list[#list + 1] = found
        elseif piece.kind == "statement" and not found and not piece.text:find("^struct ") then
            complain(path, piece.line, "this is no declaration that tools/api.lua knows")
        end
    end
    return list
end

-- ---- Comments -----------------------------------------------------------------------------------

-- begins_well: a comment says first what it is about; values that have no type have no name to begin with.
local function begins_well(d)
    return not d.is_first or d.kind == "values" or d.comment:find("^" .. d.name .. "%f[^%w_]") ~= nil
end

local function check_members(path, d)
    local body = d.text:match("%b{}"):sub(2, -2)
    local before = d.text:sub(1, d.text:find("{", 1, true))
    local line = d.line + select(2, before:gsub("\n", ""))
    local said = d.comment or ""
    for comment in body:gmatch("/%*.-%*/") do
        said = said .. " " .. comment
    end
    for _, member in ipairs(members(body, line)) do
        if not member.comment and member.name ~= "size" and not names_word(said, member.name) then
            complain(path, member.line, "%s of %s isn't described", member.name, d.name)
        end
    end
end

-- Values may be described by the comment of them all, or each by its own.
local function check_values(path, d)
    if d.comment then
        return
    end
    for value in without_comments(d.text):match("%b{}"):gmatch("MULL_[%w_]+") do
        if not d.text:find(value .. "[^\n]*/%*") then
            complain(path, d.line, "%s isn't described", value)
        end
    end
end

local function check_comment(path, d)
    if d.kind == "values" then
        check_values(path, d)
    elseif not d.comment then
        complain(path, d.line, "%s has no comment", d.name)
    elseif not begins_well(d) then
        complain(path, d.line, "the comment of %s doesn't begin with its name", d.name)
    end
    if d.kind == "struct" then
        check_members(path, d)
    end
end

-- ---- Functions ----------------------------------------------------------------------------------

-- Types of parameters that are pointers without a star.
local function function_types(list)
    local types = {}
    for _, d in ipairs(list) do
        if d.kind == "function type" then
            types[d.name] = true
        end
    end
    return types
end

local function split(text)
    local parts, depth, from = {}, 0, 1
    for at = 1, #text do
        local c = text:sub(at, at)
        if c == "(" then
            depth = depth + 1
        elseif c == ")" then
            depth = depth - 1
        elseif c == "," and depth == 0 then
            parts[#parts + 1] = text:sub(from, at - 1)
            from = at + 1
        end
    end
    parts[#parts + 1] = text:sub(from)
    return parts
end

-- pointers gives the names of a function's parameters that may be NULL.
local function pointers(d, types)
    local names = {}
    local flat = without_comments(d.text):gsub("%s+", " ")
    local list = flat:match(d.name .. " ?(%b())"):sub(2, -2)
    for _, part in ipairs(split(list)) do
        local inner = part:match("%(%*([%w_]+)%)")
        if inner then
            names[#names + 1] = inner
        elseif part:find("[*%[]") or types[part:match("^%s*([%w_]+)")] then
            names[#names + 1] = part:gsub("%b[]", ""):match("([%w_]+)%s*$")
        end
    end
    return table.concat(names, " ")
end

-- rows gives what the table of NULLs has for each function: the names of its pointers.
local function rows()
    local found = {}
    for name, marked in read(nulls):gmatch('{"(mull_[%w_]+)",%s*"([^"]*)"') do
        found[name] = marked:gsub("[!?-]", "")
    end
    return found
end

local function check_functions(path, list, types, page, tested)
    for _, d in ipairs(list) do
        if d.kind == "function" then
            local wanted = pointers(d, types)
            if not names_word(page, d.name) then
                complain(path, d.line, "%s isn't in %s", d.name, index)
            end
            if tested[d.name] ~= wanted then
                complain(path, d.line, '%s needs a row in %s, with its pointers: "%s"', d.name, nulls, wanted)
            end
        end
    end
end

-- ---- All of it ----------------------------------------------------------------------------------

local all, counts = {}, {}
for _, path in ipairs(headers) do
    all[path] = declarations(path)
end
local types = {}
for _, list in pairs(all) do
    for name in pairs(function_types(list)) do
        types[name] = true
    end
end
local page, tested = read(index), rows()
for _, path in ipairs(headers) do
    for _, d in ipairs(all[path]) do
        check_comment(path, d)
        counts[d.kind] = (counts[d.kind] or 0) + 1
    end
    check_functions(path, all[path], types, page, tested)
end
print(("%d functions, %d structs, %d enums, %d problems"):format(counts["function"] or 0, counts.struct or 0,
    counts.enum or 0, problems))
os.exit(problems == 0)
