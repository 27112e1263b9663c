-- man.lua: the man pages of section 5: every word, with the first sentence of what is said of it.

local WIDTH = 80

local PAGES = {
    {
        path = "docs/man/mulligan-policy.5.scd",
        name = "mulligan-policy",
        summary = "the language of policies",
        holds = function(section)
            return section.module == "policy"
        end,
        text = [[
A policy says what becomes of a message whose handling failed: a _retry_ in the
same process, a _redelivery_ later, a _dead letter_ for a person to look at, or a
_discard_. It is a text in Lua without input, output, clock or chance, which makes
a finite table of rules and settings.

These are its words, a line each. A ? behind a name means that it may be left out.
_reference.md_ among the pages of the documentation says all of each, with an
example of what it does.
]],
        example = [[
local policy = require "mulligan.policy"
policy.errors { DeadlockError = "DatabaseError" }

local bus = policy.bus()
bus:on("ValidationError"):dead_letter()
bus:on("DatabaseError", { transient = true }):retry(5, "200ms"):then_redeliver()
bus:default():retry():then_redeliver():then_dead_letter()
]],
        see = "*mulligan*(1), *mulligan-check*(1), *mulligan-explain*(1), *mulligan-service*(5)",
    },
    {
        path = "docs/man/mulligan-service.5.scd",
        name = "mulligan-service",
        summary = "what mulligan run runs",
        holds = function(section)
            return section.title == "service.lua"
        end,
        text = [[
A file _service.lua_ says which policy, which transports and which consumers
*mulligan-run*(1) has. It is a program in Lua, run once at the start, with all of
Lua around it. Paths in it are relative to its folder.

These are its words, a line each; _m_ is what *require "mulligan"* gives. A ?
behind a name means that it may be left out. _running.md_ among the pages of the
documentation says the rest.
]],
        see = "*mulligan*(1), *mulligan-run*(1), *mulligan-policy*(5)",
    },
}

-- What means something to scdoc.
local function plain(words)
    return (words:gsub("[\\*_#]", "\\%0"))
end

-- A text of the book's: what is code is underlined, and of a link the words stay.
local function prose(text)
    text = text:gsub("%[([^%]]*)%]%([^)]*%)", "%1")
    return (plain(text):gsub("`([^`]*)`", "_%1_"))
end

local function wrap(lines, text, indent)
    local line = ""
    for word in text:gmatch("%S+") do
        if line ~= "" and #line + #word >= WIDTH then
            lines[#lines + 1] = indent .. line
            line = ""
        end
        line = line == "" and word or line .. " " .. word
    end
    lines[#lines + 1] = line ~= "" and indent .. line or nil
end

-- The first sentence; one of several that are separated by a point in the middle has a space there.
local function first_of(text)
    return text:match("^.-[^%d.]%.%f[%s\0]") or text
end

local function params_of(word)
    local names = {}
    for number, param in ipairs(word.params or {}) do
        names[number] = ("_%s_"):format(plain(param[1]))
    end
    return word.constant and "" or ("(%s)"):format(table.concat(names, ", "))
end

local function add_item(lines, head, text)
    lines[#lines + 1] = ""
    lines[#lines + 1] = head
    wrap(lines, prose(first_of(text)), "\t")
end

local function add_fields(lines, word)
    for _, field in ipairs(word.fields) do
        local default = field.default and (", default %s"):format(field.default) or ""
        add_item(lines, ("*%s*"):format(plain(field[1])), field[3] .. default)
    end
end

local function add_choices(lines, word)
    for _, choice in ipairs(word.choices) do
        add_item(lines, ("*%s*"):format(plain(choice[1])), choice[2] or "")
    end
end

local function add_word(book, lines, word)
    if word.name then
        add_item(lines, ("*%s%s*%s"):format(plain(book.before(word)), plain(word.name), params_of(word)), word.text)
    elseif word.heading and (word.fields or word.choices) then
        lines[#lines + 1] = ""
        wrap(lines, prose(word.heading) .. ":", "")
        if word.fields then
            add_fields(lines, word)
        else
            add_choices(lines, word)
        end
    elseif word.heading and word.text then
        add_item(lines, prose(word.heading), word.text)
    end
end

local function add_section(book, lines, section)
    table.move({ "", "## " .. section.title:upper(), "" }, 1, 3, #lines + 1, lines)
    wrap(lines, prose(section.text or ""), "")
    for _, word in ipairs(section.words) do
        add_word(book, lines, word)
    end
end

local function page_of(book, page)
    local lines = {
        ("%s(5) \"mulligan\""):format(page.name), "", "# NAME", "",
        ("%s - %s"):format(page.name, page.summary), "", "# DESCRIPTION", "",
        (page.text:gsub("\n$", "")), "", "# WORDS",
    }
    local example = page.example
    for _, section in ipairs(book.sections) do
        if page.holds(section) then
            add_section(book, lines, section)
            example = example or section.program
        end
    end
    table.move({ "", "# EXAMPLE", "", "```", (example:gsub("\n$", "")), "```", "", "# SEE ALSO", "", page.see },
        1, 10, #lines + 1, lines)
    return table.concat(lines, "\n") .. "\n"
end

return function(book)
    local files = {}
    for number, page in ipairs(PAGES) do
        files[number] = { path = page.path, text = page_of(book, page) }
    end
    return files
end
