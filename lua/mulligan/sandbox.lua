-- sandbox.lua: what a policy's text has around it. Nothing here lets it out, nothing differs from
-- run to run: no addresses, no order of a hash table, no clock, no chance.
--
-- The chunk gives a function that takes what policy.lua gave, the module for policies and its other
-- side, and gives a table of functions for C:
--
--   run()                      runs the policy's files
--   failed(file, line, text)   notes the error that ended the run
--   freeze()                   makes the policy's globals read-only, once the load is over
--
-- What C offers in turn is the module "mulligan.sandbox.offers":
--
--   pcall(...)                        lets no spent budget be caught
--   log(text)                         where a policy prints to
--   read(file)                        true once it is read, or false and why not
--   compile(file, environment)        what was read as a function; or nil and Lua's message
--   reveal(table)                     what a view of err or ctx shows; nil: it is none
--   pattern_mistake(pattern)          what is wrong with a pattern; nil: nothing
--   main                              the name of the first file
--   is_host                           true: it is the host policy, which is that one file
--   host                              what the host policy told, where it has one: told() of policy.lua
--
-- and "mulligan.sandbox.library": Lua's functions of strings, tables and UTF-8 by library, whose work
-- counts as instructions.

local basic = require "mulligan.sandbox.basic"
local files = require "mulligan.sandbox.files"
local library = require "mulligan.sandbox.library"
local offers = require "mulligan.sandbox.offers"
local strings = require "mulligan.sandbox.strings"
local tables = require "mulligan.sandbox.tables"
local text = require "mulligan.policy.text"
local values = require "mulligan.sandbox.values"

-- By name, not all there is: a Lua built with older names beside these must not let a policy use
-- them.
local of_math = {
    "abs", "acos", "asin", "atan", "ceil", "cos", "deg", "exp", "floor", "fmod", "huge", "log", "max", "maxinteger",
    "min", "mininteger", "modf", "pi", "rad", "sin", "sqrt", "tan", "tointeger", "type", "ult",
}

local function pick(all, names)
    local picked = {}
    for _, name in ipairs(names) do
        picked[name] = all[name]
    end
    return picked
end

-- What Lua has and a policy hasn't: where one of these is nil, that deserves a word more than Lua's.
local absent = {}
for _, name in ipairs({
    "_G", "collectgarbage", "coroutine", "debug", "dofile", "getmetatable", "io", "load", "loadfile", "os", "package",
    "rawequal", "rawget", "rawlen", "rawset", "setmetatable", "warn", "xpcall", "dump", "random", "randomseed",
}) do
    absent[name] = true
end

-- The lines that make what most policies begin with.
local makes = {
    policy = 'local policy = require "mulligan.policy"',
    bus = 'local bus = require("mulligan.policy").bus()',
    host = 'local host = require("mulligan.policy").host()',
}
if offers.is_host then
    makes.bus = nil
elseif offers.host then
    makes.host = nil
end

-- What Lua says of { status > 500 }, as there is no global of that name.
local comparisons = {
    ["attempt to compare number with nil"] = true,
    ["attempt to compare nil with number"] = true,
}

local function explain(message)
    local name = message:match("%(%l+ '([%a_]+)'%)$")
    local line = makes[text.nil_global(message)]
    if line then
        return ("%s; add the line: %s"):format(message, line)
    elseif name and absent[name] then
        return ("%s; a policy has no %s"):format(message, name)
    elseif comparisons[message] then
        return message .. "; a matcher compares a field so: { status = policy.at_least(500) }"
    end
    return message
end

return function(policy, load)
    local environment = {}
    for name, value in next, basic do
        environment[name] = value
    end
    environment.string = values.read_only(strings, "string")
    environment.table = values.read_only(tables, "table")
    environment.math = values.read_only(pick(math, of_math), "math")
    library.utf8.charpattern = utf8.charpattern
    environment.utf8 = values.read_only(library.utf8, "utf8")

    local all = files.new(policy, load, environment)
    environment.require = all:word()

    return {
        run = function()
            all:run_main()
        end,
        failed = function(file, line, message)
            load.stopped(file, line, explain(message))
        end,
        freeze = function()
            all:close()
            values.freeze(environment, "the global %s can't be set once the policy is loaded")
        end,
    }
end
