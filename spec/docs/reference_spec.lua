-- docs/reference.md and the types for editors are made of tools/docgen: they are what it gives; it
-- has every word that the product has and no other; and what its examples say is so.
local mulligan = require "mulligan"
local config = require "mulligan.config"
local loading = require "support.loading"
local pages = require "support.pages"
local process = require "support.process"
local types = require "support.types"
local vocabulary = require "mulligan.policy.vocabulary"

local book = dofile "tools/docgen/book.lua"
local page = pages.read "docs/reference.md"

-- In a policy settings.lua does this.
for _, row in ipairs(dofile "tools/docgen/setting_rows.lua") do
    table.insert(vocabulary.words.scope, row.word)
end

local function sorted(list)
    local copy = table.move(list, 1, #list, 1, {})
    table.sort(copy)
    return copy
end

describe("what is made of tools/docgen", function()
    for _, made in ipairs(book.files()) do
        it(made.path .. " is as lua5.4 tools/docgen.lua writes it", function()
            assert.is_true(made.text == process.read(made.path), "run lua5.4 tools/docgen.lua")
        end)
    end
end)

describe("the words of the book", function()
    local owners = { policy = { "PolicyWords" }, scope = { "Scope" }, preset = { "Presets" },
        rule = { "Rule", "Retried", "Redelivered" } }
    for owner, classes in pairs(owners) do
        it("are those of " .. vocabulary.called[owner], function()
            local names = {}
            for _, class in ipairs(classes) do
                for _, name in ipairs(book.words_of(class)) do
                    names[name] = true
                end
            end
            assert.same(sorted(vocabulary.words[owner]), types.names(names))
        end)
    end

    it("are in the reference, each under a heading of its own, once", function()
        local count = 0
        book.each(function(word)
            if word.name then
                local heading = ("\n### `%s%s"):format(book.before(word), word.name)
                local first = page:find(heading .. "[(`]")
                assert(first, heading)
                assert.is_nil(page:find(heading .. "[(`]", first + 1), heading)
                count = count + 1
            end
        end)
        assert.is_true(count > 80)
    end)

    it("are in the index, whose links lead to headings", function()
        local count = 0
        local anchors = pages.anchors "docs/reference.md"
        for anchor in page:match("\n| section.-\n\n"):gmatch("%]%(#(.-)%)") do
            assert(anchors[anchor] or anchors[anchor:gsub("%-1$", "")], anchor)
            count = count + 1
        end
        assert.is_true(count > 120)
    end)

    it("have a text each, and those of policies an example that is tried", function()
        book.each(function(word, section)
            if word.name and section.module == "policy" then
                assert(#word.text > 10 and word.example and #word.tries > 0, word.name)
            elseif word.name then
                assert(#word.text > 10, word.name)
            end
        end)
    end)
end)

describe("examples", function()
    local count = 0
    book.each(function(word)
        if not word.example then
            return
        end
        count = count + 1
        it(("of %s do what they say (%d)"):format(word.name or word.class or word.alias or word.list, count), function()
            local policy = loading.good(book.PRELUDE .. word.example)
            for _, try in ipairs(word.tries) do
                local failure = assert(load("return { " .. try[1] .. " }", try[1], "t"))()
                assert.equal(try[2], book.show(policy:decide(failure, { no_jitter = true })), try[1])
            end
            policy:close()
        end)
    end)

    it("are many", function()
        assert.is_true(count > 50)
    end)

    it("have a service.lua that loads", function()
        local programs = {}
        for _, section in ipairs(book.sections) do
            programs[section.title] = section.program
        end
        local folder = process.folder { ["service.lua"] = programs["service.lua"] }
        local read = config.load(folder:path("service.lua"))
        folder:remove()
        assert.same({}, read.problems)
        assert.same({ 1, 1 }, { #read.transports, #read.consumers })
    end)

    for _, title in ipairs { "The Lua module", "Testing" } do
        it("have a program that runs: " .. title, function()
            for _, section in ipairs(book.sections) do
                if section.title == title then
                    assert(load(section.program, title, "t"))()
                end
            end
        end)
    end
end)

describe("the sandbox of the book", function()
    local lists = {}
    book.each(function(word)
        if word.list then
            lists[word.list] = word.rows
        end
    end)

    it("has the names that a policy has", function()
        local printed = {}
        loading.good([[
local libraries = { string = string, table = table, math = math, utf8 = utf8 }
for name, library in pairs(libraries) do
    for key in pairs(library) do print(name, key) end
end]], { log = function(_, text) printed[#printed + 1] = text end }):close()
        local expected, basic = {}, {}
        for _, row in ipairs(lists.sandbox) do
            for name in row[2]:gmatch("%S+") do
                if row[1] == "basic" then
                    basic[name] = true
                elseif row[1] ~= "print" and row[1] ~= "require" then
                    expected[#expected + 1] = row[1] .. " " .. name
                end
            end
        end
        assert.same(sorted(expected), sorted(printed))
        local offers = { "string", "table", "math", "utf8", "print", "require" }
        for name in pairs(_G) do
            local policy = mulligan.load_text(("assert(%s ~= nil)"):format(name))
            local there = basic[name] or table.concat(offers, " "):find("%f[%w]" .. name .. "%f[%W]") ~= nil
            assert.equal(there, policy ~= nil, name)
            if policy then
                policy:close()
            end
        end
    end)

    it("has the budgets that C has", function()
        local code = process.read "src/lua/language/sandbox.h" .. process.read "src/lua/language/sandbox.c"
            .. process.read "src/lua/machine/budgets.c"
        local rows = lists.budgets
        local call = code:match("mull__function_budget = (%b{})")
        local whole = code:match("load_budget =%s*(%b{})")
        assert.equal(rows[1][2], code:match("MULL__LOAD_INSTRUCTIONS = (%d+)"))
        assert.equal(rows[1][3], code:match("MULL__CALL_INSTRUCTIONS = (%d+)"))
        assert.equal(rows[2][2], code:match("MULL__LOAD_MIB = (%d+)"))
        assert.equal(rows[2][3], call:match("at_once = MIB%((%d+)%)"))
        assert.equal(rows[3][2], whole:match("in_all = MIB%((%d+)%)"))
        assert.equal(rows[3][3], call:match("in_all = MIB%((%d+)%)"))
    end)
end)
