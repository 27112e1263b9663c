-- book.lua: every word that users say or see, and what is said of it: the one source of
-- docs/reference.md, of the types for editors, and of the man pages of files. Each file beside this
-- one gives sections in the order of the reference:
--
--   { title =, text =, program =, words = { ... } }
--
-- `program` is a whole example that runs. A word is one of these; `text` says what it is for, and
-- with a `heading` or a `name` it is in the reference, else in the types alone:
--
--   { of = "Scope", name =, params =, overload =, returns =, default =, example =, tries = }
--       a function or, where `constant` names its type, a value; `of` is the class that has it, or a
--       list of them. A parameter is { name, type, text }; "?" behind the name: may be left out. What
--       it `returns` is one class of ours, a type, or a list of types
--   { class =, parent =, exact =, called =, call =, fields = }
--       a field is { name, type, text, default = }; "[string]" stands for any name. `exact`: a table
--       that users write, and that has no other keys. `called`: its name where it isn't ours.
--       `before` is how the reference begins its words: "scope:"
--   { alias =, type =, choices = }
--       a type; a choice is { text, meaning }. `open`: any other text as well
--   { list =, head =, rows = }
--       what isn't types: a table in the reference
--
-- An example stands behind the two lines of `book.PRELUDE`. `tries` are what it does: { failure,
-- verdict }, the failure as policy:decide takes it, the verdict as book.show gives it.

local book = {}

local FILES = { "types", "scopes", "matchers", "chains", "settings", "functions", "presets", "sandbox", "program",
    "module",
    "testing" }

book.PRELUDE = 'local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n'

-- Which file of types has what a file of words says.
local MODULE = { program = "mulligan", module = "mulligan", testing = "testing" }

book.sections = {}
for _, name in ipairs(FILES) do
    for _, section in ipairs(dofile("tools/docgen/" .. name .. ".lua")) do
        section.module = MODULE[name] or "policy"
        book.sections[#book.sections + 1] = section
    end
end

-- each runs a function for each word, with its section.
function book.each(visit)
    for _, section in ipairs(book.sections) do
        for _, word in ipairs(section.words) do
            visit(word, section)
        end
    end
end

-- classes_of gives the classes that have a word.
function book.classes_of(word)
    return type(word.of) == "table" and word.of or { word.of }
end

-- class gives what is said of a class; nil where it is none of ours.
function book.class(name)
    local found
    book.each(function(word)
        found = word.class == name and word or found
    end)
    return found
end

-- before gives what stands before a word where it is said: "scope:".
function book.before(word)
    return word.before or book.class(book.classes_of(word)[1]).before
end

-- words_of gives the names of what a class has, in their order.
function book.words_of(class)
    local names = {}
    book.each(function(word)
        for _, owner in ipairs(word.name and book.classes_of(word) or {}) do
            names[#names + 1] = owner == class and word.name or nil
        end
    end)
    return names
end

-- show gives a verdict as `tries` have it: "retry 200", "dead_letter error exhausted",
-- "discard rule (a note)".
function book.show(verdict)
    local words = { verdict.action }
    if verdict.action == "retry" or verdict.action == "redeliver" then
        words[2] = tostring(verdict.delay_ms)
    else
        words[#words + 1] = verdict.queue
        words[#words + 1] = verdict.reason
        words[#words + 1] = verdict.note and ("(%s)"):format(verdict.note)
    end
    return table.concat(words, " ")
end

-- files gives all that is made of the words, and of the commands: { path =, text = }.
function book.files()
    local page, types = dofile "tools/docgen/render/page.lua", dofile "tools/docgen/render/types.lua"
    local files = { { path = "docs/reference.md", text = page(book) } }
    for _, module in ipairs { "policy", "mulligan", "testing" } do
        files[#files + 1] = { path = ("lua/mulligan/meta/%s.lua"):format(module), text = types(book, module) }
    end
    for _, made in ipairs { dofile "tools/docgen/render/man.lua"(book), dofile "tools/docgen/commands.lua".files() } do
        table.move(made, 1, #made, #files + 1, files)
    end
    return files
end

return book
