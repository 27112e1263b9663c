-- page.lua: docs/reference.md.

local WIDTH = 120

local HEAD = [[
# Reference

Every word of a policy, and what programs see of policies; [policy.md](policy.md) is the guide. This page and the types
that editors know are made of the same texts (`tools/docgen`), so an editor shows what stands here.

Each example stands behind these two lines:

```lua
%s```

Comments behind an example say what the policy gives for a failure, jitter left out: `retry 200` is a retry after
200 ms, `dead_letter error exhausted` a dead letter to the queue `error` for that [reason](#reasons). A `?` behind a
name means that it may be left out.
]]

local function wrap(lines, words)
    local line = ""
    for word in (words or ""):gmatch("%S+") do
        if line ~= "" and #line + #word >= WIDTH then
            lines[#lines + 1] = line
            line = ""
        end
        line = line == "" and word or line .. " " .. word
    end
    lines[#lines + 1] = line ~= "" and line or nil
end

-- A type as people read it.
local function type_of(name)
    return (name:gsub("mulligan%.", ""):gsub("|", " or "))
end

local function cell(words)
    return (words:gsub("|", "\\|"))
end

local function add_table(lines, head, rows)
    lines[#lines + 1] = ""
    lines[#lines + 1] = "| " .. table.concat(head, " | ") .. " |"
    lines[#lines + 1] = "|" .. (" --- |"):rep(#head)
    for _, row in ipairs(rows) do
        for i, words in ipairs(row) do
            row[i] = cell(words)
        end
        lines[#lines + 1] = ("| " .. table.concat(row, " | ") .. " |"):gsub("  +|", " |")
    end
end

local function add_code(lines, text, tries)
    lines[#lines + 1] = ""
    lines[#lines + 1] = "```lua"
    lines[#lines + 1] = text
    for _, try in ipairs(tries or {}) do
        lines[#lines + 1] = ("-- { %s } > %s"):format(try[1], try[2])
    end
    lines[#lines + 1] = "```"
end

-- ---- Words -------------------------------------------------------------------------------------

local function call_of(book, word)
    local before = book.before(word)
    if word.constant then
        return ("`%s%s`"):format(before, word.name)
    end
    local names = {}
    for i, param in ipairs(word.params or {}) do
        names[i] = param[1]
    end
    local call = ("`%s%s(%s)`"):format(before, word.name, table.concat(names, ", "))
    return word.overload and ("%s, `%s%s(options)`"):format(call, before, word.name) or call
end

local function returns_of(word)
    local list = {}
    for i, name in ipairs(type(word.returns) == "table" and word.returns or { word.returns }) do
        list[i] = ("`%s`"):format(type_of(name))
    end
    return table.concat(list, ", ")
end

-- gives says what may stand behind a word of a chain, and what a word gives otherwise.
local function gives(book, word)
    if not word.returns then
        return ""
    elseif word.returns == "Ended" then
        return " Nothing may follow."
    elseif book.class(word.returns) and book.class(word.returns).before == ":" then
        return (" Here may follow `:%s`."):format(table.concat(book.words_of(word.returns), "`, `:"))
    end
    return (" Gives: %s."):format(returns_of(word))
end

local function add_params(lines, word)
    local rows = {}
    for i, param in ipairs(word.params or {}) do
        rows[i] = { ("`%s`"):format(param[1]), ("`%s`"):format(type_of(param[2])), param[3] }
    end
    if word.overload then
        rows[#rows + 1] = { "`options`", ("`%s`"):format(type_of(word.overload)), "a table, alone" }
    end
    if #rows > 0 then
        add_table(lines, { "takes", "type", "" }, rows)
    end
end

local function add_word(book, lines, word)
    lines[#lines + 1] = ""
    lines[#lines + 1] = "### " .. call_of(book, word)
    lines[#lines + 1] = ""
    wrap(lines, word.text .. (word.default and (" Default: %s."):format(word.default) or "")
        .. gives(book, word))
    add_params(lines, word)
end

-- ---- Tables and types --------------------------------------------------------------------------

local function fields_of(word)
    local rows, has_defaults = {}, false
    for _, field in ipairs(word.fields) do
        has_defaults = has_defaults or field.default ~= nil
    end
    for i, field in ipairs(word.fields) do
        rows[i] = { ("`%s`"):format(field[1]), ("`%s`"):format(type_of(field[2])), field[3] }
        if has_defaults then
            local required = not field[1]:find("[?%]]$")
            table.insert(rows[i], 3, field.default or required and "required" or "")
        end
    end
    return has_defaults and { "name", "type", "default", "" } or { "name", "type", "" }, rows
end

local function add_titled(lines, word)
    lines[#lines + 1] = ""
    lines[#lines + 1] = "### " .. word.heading
    if word.text then
        lines[#lines + 1] = ""
        wrap(lines, word.text)
    end
    if word.fields then
        add_table(lines, fields_of(word))
    elseif word.choices then
        local rows = {}
        for i, choice in ipairs(word.choices) do
            rows[i] = { ("`%s`"):format(word.open and choice[1] or '"' .. choice[1] .. '"'), choice[2] or "" }
        end
        add_table(lines, { word.type and type_of(word.type) .. ", or" or "one of", "" }, rows)
    elseif word.alias then
        lines[#lines + 1] = ""
        lines[#lines + 1] = ("`%s` is `%s`."):format(word.alias, type_of(word.type))
    elseif word.rows then
        add_table(lines, word.head or { "library", "names" }, word.rows)
    end
end

-- The sections with their words, each a link to its heading.
local function add_index(book, lines)
    local rows, taken = {}, {}
    local function link(heading)
        local anchor = heading:lower():gsub("[^%w%s_-]", ""):gsub(" ", "-")
        taken[anchor] = (taken[anchor] or -1) + 1
        return ("[%s](#%s%s)"):format(heading, anchor, taken[anchor] > 0 and "-" .. taken[anchor] or "")
    end
    for i, section in ipairs(book.sections) do
        local links = {}
        rows[i] = { link(section.title) }
        for _, word in ipairs(section.words) do
            local heading = word.name and call_of(book, word) or word.heading
            if heading then
                local linked = link(heading)
                links[#links + 1] = word.name and linked:gsub("^%[(.-)%b()`[^%]]*%]", "[%1`]") or linked
            end
        end
        rows[i][2] = table.concat(links, ", ")
    end
    add_table(lines, { "section", "" }, rows)
end

-- ---- The page ----------------------------------------------------------------------------------

return function(book)
    local lines = { (HEAD:format(book.PRELUDE):gsub("\n$", "")) }
    add_index(book, lines)
    for _, section in ipairs(book.sections) do
        lines[#lines + 1] = ""
        lines[#lines + 1] = "## " .. section.title
        if section.text then
            lines[#lines + 1] = ""
            wrap(lines, section.text)
        end
        if section.program then
            add_code(lines, section.program)
        end
        for _, word in ipairs(section.words) do
            if word.name then
                add_word(book, lines, word)
            elseif word.heading then
                add_titled(lines, word)
            end
            if word.example and (word.name or word.heading) then
                add_code(lines, word.example, word.tries)
            end
        end
    end
    return table.concat(lines, "\n") .. "\n"
end
