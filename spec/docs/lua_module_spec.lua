-- docs/lua-module.md has every function, method, option, key and code of the Lua module, and no other; with
-- the parameters and defaults of the types. Its programs run, and do what it says.
local mulligan = require "mulligan"
local core = require "mulligan.core"
local testing = require "mulligan.testing"
local pages = require "support.pages"
local process = require "support.process"
local types = require "support.types"

local PAGE = "docs/lua-module.md"

local book = dofile "tools/docgen/book.lua"
local tables = pages.tables(PAGE)

-- ---- Calls -------------------------------------------------------------------------------------

local class_of = {
    ["mulligan."] = "Module", ["policy:"] = "Policy", ["engine:"] = "Engine", ["json."] = "Json",
    ["testing."] = "Testing", ["rig:"] = "Rig", ["clock:"] = "Clock", ["random:"] = "Random",
}

-- What the page has: class -> name -> parameters.
local function calls_of_page()
    local calls = {}
    for _, class in pairs(class_of) do
        calls[class] = {}
    end
    for _, found in ipairs(tables) do
        for _, row in ipairs(found.rows) do
            for before, name, params in row[1]:gmatch("`(%l+[.:])([%l_]+)%((.-)%)`") do
                local class = assert(class_of[before], row[1])
                assert((calls[class][name] or params) == params, before .. name .. " is called in two ways")
                calls[class][name] = params
            end
        end
    end
    return calls
end

-- What the types have.
local function params_of(class, name)
    local given = {}
    book.each(function(word)
        for _, owner in ipairs(word.name == name and book.classes_of(word) or {}) do
            for i, param in ipairs(owner == class and word.params or {}) do
                given[i] = param[1]
            end
        end
    end)
    return table.concat(given, ", ")
end

local LATER = { on = true } -- said not to be in this version

local function functions_in(given, except)
    local names = {}
    for name, value in pairs(given) do
        names[name] = type(value) == "function" and name:sub(1, 2) ~= "__" and not (except or {})[name] or nil
    end
    return types.names(names)
end

describe("the page of the Lua module", function()
    local calls = calls_of_page()
    local rig = testing.rig {}
    local product = {
        Module = functions_in(mulligan, LATER), Json = functions_in(mulligan.json), Testing = functions_in(testing),
        Policy = functions_in(core.policy_methods), Engine = functions_in(core.engine_methods),
        Clock = functions_in(core.clock_methods), Rig = functions_in(getmetatable(rig)),
        Random = functions_in(getmetatable(testing.random(1))),
    }
    rig:close()

    for before, class in pairs(class_of) do
        it("has every call of " .. before .. " and no other, as it is called", function()
            assert.is_true(#product[class] > 1)
            assert.same(product[class], types.names(calls[class]))
            for name, params in pairs(calls[class]) do
                assert.equal(params_of(class, name), params, before .. name)
            end
        end)
    end

    it("has what else the module and a rig have", function()
        local text = pages.read(PAGE)
        for name, value in pairs(mulligan) do
            assert(type(value) == "function" or text:find(("`mulligan.%s`"):format(name), 1, true), name)
        end
        for _, name in ipairs { "rig.engine", "rig.clock", "json.null", "random(n)" } do
            assert(text:find(("`%s`"):format(name), 1, true), name)
        end
    end)
end)

-- ---- Options and keys --------------------------------------------------------------------------

-- What a table is about, by its head.
local described = {
    ["option of `mulligan.load`"] = "LoadOptions",
    ["option of `mulligan.load_text`"] = "LoadTextOptions",
    ["option of `policy:decide`"] = "DecideOptions",
    ["option of `policy:table`"] = "TableOptions",
    ["option of `policy:check`"] = "CheckOptions",
    ["key of a consumer for `policy:check`"] = "CheckedConsumer",
    ["key of a failure"] = "GivenFailure",
    ["key of its message"] = "GivenMessage",
    ["key of `can`"] = "Can",
    ["key of a verdict"] = "Verdict",
    ["option of `mulligan.engine`"] = "EngineOptions",
    ["option of `engine:consumer`"] = "ConsumerOptions",
    ["option of `engine:publish`"] = "SendOptions",
    ["option of `mulligan.fetch`"] = "Request",
    ["option of `engine:fault`"] = "FaultOptions",
    ["key of a depth"] = "Depth",
    ["key of `engine:counts`"] = "Counts",
    ["key of an event"] = "ToldEvent",
    ["key of `msg`"] = "Message",
    ["option of `testing.rig`"] = "RigOptions",
}

local function plain(cell)
    return (cell:gsub("`", ""))
end

-- What the types say of a class: field -> its default, "required", or "".
local function fields_of(class)
    local fields = {}
    for _, field in ipairs(assert(book.class(class), class).fields) do
        local required = not field[1]:find("?", 1, true) and book.class(class).exact
        fields[field[1]:gsub("%?$", "")] = field.default and plain(field.default) or required and "required" or ""
    end
    return fields
end

describe("options and keys of the Lua module", function()
    local heads = {}
    for _, found in ipairs(tables) do
        if found.head[1]:find("^option of") or found.head[1]:find("^key of") then
            heads[found.head[1]] = found
        end
    end

    it("have a table each", function()
        assert.same(types.names(described), types.names(heads))
        local classes = {}
        for _, class in pairs(described) do
            classes[class] = true
        end
        book.each(function(word, section)
            if word.exact and section.module ~= "policy" then
                assert(classes[word.class] or word.class == "RigConsumer", word.class)
            end
        end)
    end)

    for head, class in pairs(described) do
        it(("are those of the types, with their defaults: %s"):format(head), function()
            local found, given = heads[head], {}
            for _, row in ipairs(found.rows) do
                for name in row[1]:gmatch("`([%l_]+)`") do
                    assert(not given[name], name)
                    given[name] = found.head[2] == "default" and plain(row[2]) or ""
                end
            end
            local fields = fields_of(class)
            if found.head[2] ~= "default" then
                for name in pairs(fields) do
                    fields[name] = ""
                end
            end
            assert.same(fields, given)
        end)
    end

    it("are the same for a consumer and for a rig's", function()
        local function names(class)
            return types.names(fields_of(class))
        end
        assert.same(names "ConsumerOptions", names "RigConsumer")
    end)

    it("have the codes, in their order", function()
        local codes = {}
        for i, row in ipairs(pages.rows(PAGE, "Codes")) do
            codes[i] = row[1]:match("^`([%l_]+)`$")
        end
        local choices = {}
        book.each(function(word)
            for i, choice in ipairs(word.alias == "Code" and word.choices or {}) do
                choices[i] = choice[1]
            end
        end)
        assert.same(choices, codes)
    end)
end)

-- ---- Programs ----------------------------------------------------------------------------------

describe("programs of the page of the Lua module", function()
    local build = (os.getenv("MULL_BUILD") or "build/dev"):gsub("^[^/]", process.here .. "/%0")
    local blocks = pages.blocks(PAGE, "lua")
    local folder

    local function block_with(words)
        local found
        for _, block in ipairs(blocks) do
            if block.text:find(words, 1, true) then
                assert(not found, words)
                found = block.text
            end
        end
        return assert(found, words)
    end

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    -- The interpreter of the build runs a script of the folder, beside these files.
    local function run(script)
        folder:write("script", script)
        return folder:run({ build .. "/spec/runner", "script" }, { env = { LUA_CPATH = build .. "/lua/?.so" } })
    end

    it("decide", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():on("TimeoutError"):retry(3, "1s", "constant")')
        local ran = run(block_with "print(verdict.action")
        assert.equal("", ran.err)
        local delay_ms = tonumber(ran.out:match("^retry\t(%d+)\n$"))
        assert.is_true(delay_ms >= 750 and delay_ms <= 1250, ran.out)
    end)

    it("run", function()
        folder:write("policy.lua", "")
        local text, count = block_with("stop_on_signals"):gsub("\nassert%(engine:run", [[

            assert(engine:publish("orders", "orders", "a body", { id = "o-1" }))
            assert(engine:stop_when_empty())%0]])
        assert.equal(1, count)
        local ran = run('local mulligan = require "mulligan"\n' .. text)
        assert.same({ "o-1\ta body\n", "" }, { ran.out, ran.err })
    end)

    it("find the module beside a service.lua", function()
        folder:write("service.lua", 'require "mulligan"')
        local ran = run 'print(require("mulligan").version)'
        assert.same({ mulligan.version .. "\n", "" }, { ran.out, ran.err })
    end)

    it("show the middle of examples/decide.lua", function()
        assert.is_truthy(process.read("examples/decide.lua"):find(block_with "local function judge", 1, true))
    end)

    local function busted(policy)
        folder:write("policy.lua", policy)
        folder:write("spec/policy_spec.lua", block_with "-- spec/policy_spec.lua")
        return folder:run { "sh", "-c", ('exec "%s/spec/runner" "$(command -v busted)" --ignore-lua '
            .. "--cpath='%s/lua/?.so' -o TAP spec"):format(build, build) }
    end

    it("try a policy over a day", function()
        local ran = busted(block_with "-- policy.lua")
        assert.equal(0, ran.code, ran.out .. ran.err)
        assert.matches("1..3\n", ran.out, 1, true)
        assert.is_nil(ran.out:find("not ok", 1, true))
    end)

    for _, change in ipairs { { '"12h"', '"16h"' }, { "retry%(2", "retry(3" }, { '"declined"', '"refused"' } } do
        it(("see that the policy was changed: %s"):format(change[2]), function()
            local policy, count = block_with("-- policy.lua"):gsub(change[1], change[2])
            assert.equal(1, count)
            assert.equal(1, busted(policy).code)
        end)
    end
end)
