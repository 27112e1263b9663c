-- conformance.lua: the conformance suite of transports, as a transport's spec calls it:
--
--   conformance.of(name, has, make)
--
-- What can be seen through an engine is in conformance/, through the public Lua module; what a
-- transport owes settlement by settlement is conformance.c, whose cases are run as a program.
--
-- `has` says which words of conformance/needs.lua hold, but for what `look` says of its `url`. And: `real_time`,
-- where what is waited for goes by the machine's clock; `program`, which gives the words that the C suite's
-- program is called with; `skip`, which calls the spec's `pending`: only a spec has that.
-- make() gives a place for one case: { url =, remove = function or nil }, with the hooks that `has` names:
--
--   claim_timeout     claim_timeout_url() gives one with a timeout of 30 s by a test's clock, 2 s in real time
--   cut               cut(), come_back(): no connection can be made in between
--   restart           restart(): the server is killed, and started again
--   delete_queue      delete_queue(name)
--   full              full(name), room(name): a queue that takes no message; that takes them again
--   foreign           foreign(name): a message with the body "from outside", as other programs write it
--   malformed         malformed(rig, name): one that no handler can be given, by means of a rig
--   undeclared        undeclared_url, by which no queue is made; "q" and "error" are there
local assert = require "luassert"
local busted = require "busted" -- has what a spec has as globals
local needs = require "transport.conformance.needs"
local page = require "transport.conformance.page"
local program = require "transport.conformance.program"
local stage = require "transport.conformance.stage"

for _, name in ipairs { "messages", "order", "credit", "settling", "core", "sends", "faults", "claims", "consumers",
    "types", "connection", "outside" } do
    require("transport.conformance." .. name)
end

-- What the cases of a transport are reported as, and one that is skipped.
local TITLE, SKIPPED = "conformance of %s:", "conformance of %s: %s; skipped: %s"

-- MULL_CASE has those cases alone whose names have that in them.
local chosen = os.getenv "MULL_CASE"

local function is_chosen(name)
    return not chosen or name:find(chosen, 1, true)
end

-- add_cases adds those in Lua, and notes how each came out.
local function add_cases(transport, has, make, results)
    for _, case in ipairs(stage.cases) do
        local add = is_chosen(case.name) and busted.it or function() end
        add(case.name, function()
            local why = needs.lacks(case, has)
            results[case.name] = why or false
            if why then
                has.skip(SKIPPED:format(transport, case.name, why))
            end
            stage.set(has, make())
            case.run()
            results[case.name] = true
        end)
    end
end

-- add_program adds those in C, of a program that is called with what `words` gives.
local function add_program(transport, path, words, skip, results)
    local ran
    for _, name in ipairs(program.names(path)) do
        local add = is_chosen("C: " .. name) and busted.it or function() end
        add("C: " .. name, function()
            ran = ran or program.run(path, words())
            local result = assert(ran[name], ran.err)
            results["C: " .. name] = result == true or result.skipped or false
            if result ~= true and result.skipped then
                skip(SKIPPED:format(transport, "C: " .. name, result.skipped))
            end
            assert.is_true(result, result ~= true and result.failed or nil)
        end)
    end
end

-- add_page adds that the page's column says how all came out.
local function add_page(transport, results)
    if chosen then
        return
    end
    busted.it(page.CASE, function()
        assert.same({}, page.differences(results, page.column(transport)))
    end)
end

local function add_abilities(transport, can)
    busted.it("what it can do is in " .. page.PATH, function()
        assert.same(page.abilities(can), page.can(transport))
    end)
end

local suite = {}

-- lua and C: a transport that is here by its URL.
function suite.of(transport, has, make)
    local results = {}
    busted.describe(TITLE:format(transport), function()
        local can = needs.abilities(has.url)
        needs.add_abilities(has, can)
        busted.after_each(stage.clear)
        add_cases(transport, has, make, results)
        add_program(transport, program.path "conforms", has.program, has.skip, results)
        add_page(transport, results)
        add_abilities(transport, can)
    end)
end

-- A program of the C suite alone.
function suite.of_program(transport, name, words, skip)
    local results = {}
    busted.describe(TITLE:format(transport), function()
        add_program(transport, program.path(name), function()
            return words
        end, skip, results)
        add_page(transport, results)
    end)
end

return suite
