-- sandbox.lua: what a policy's text has around it. Nothing here lets it out, nothing differs from
-- run to run: no addresses, no order of a hash table, no clock, no chance.
--
-- The chunk gives a function that takes the module for policies, its other side (policy.lua) and
-- what C offers, and gives:
--
--   run()                      runs the policy's main file
--   failed(file, line, text)   notes the error that ended the run
--   freeze()                   makes its globals read-only, once the load is over
--
-- C offers `pcall` (which lets no spent budget be caught), `log(text)`, `read(file)` (its text, or
-- nil and why not), `compile(text, file, environment)` (a function, or nil and Lua's message),
-- `reveal(table)` (what a view of err or ctx shows; nil: it is none) and `main`, the main file.

local order = require "mulligan.policy.order"
local text = require "mulligan.policy.text"

-- Taken before the policy's own string table stands in for Lua's.
local format, gmatch, rep, move = string.format, string.gmatch, string.rep, table.move
local concat, pack, unpack = table.concat, table.pack, table.unpack
local lua_tostring, lua_next = tostring, next

local LONGEST_MOVE = 10000000

-- ---- Read-only tables ----------------------------------------------------------------------------

local shown = setmetatable({}, { __mode = "k" }) -- read-only table -> what it shows

local function read_only(data, what)
    local proxy = {}
    shown[proxy] = data
    return setmetatable(proxy, {
        __index = data,
        __newindex = function()
            error(what .. " is read-only", 2)
        end,
        __metatable = false,
    })
end

-- ---- Values as text ------------------------------------------------------------------------------

local function to_text(value)
    local kind = type(value)
    if kind == "table" or kind == "function" then
        return kind
    end
    -- The sign of a nan is the processor's.
    return value ~= value and "nan" or lua_tostring(value)
end

local function bad_argument(number, name, wanted, value)
    error(format("bad argument #%d to '%s' (%s expected, got %s)", number, name, wanted, type(value)), 3)
end

return function(policy, load, host)
    local pcall, reveal = host.pcall, host.reveal

    local function inside(data)
        return shown[data] or reveal(data) or data
    end

    -- guarded gives a function of C that names the policy's line when it raises.
    local function guarded(inner)
        return function(...)
            local result = pack(pcall(inner, ...))
            if not result[1] then
                error(result[2], type(result[2]) == "string" and 2 or 0)
            end
            return unpack(result, 2, result.n)
        end
    end

    -- ---- Basic functions -------------------------------------------------------------------------

    local basic = {
        assert = assert, error = error, ipairs = ipairs, pcall = pcall, select = select, tonumber = tonumber,
        type = type,
    }

    function basic.tostring(...)
        if select("#", ...) == 0 then
            error("bad argument #1 to 'tostring' (value expected)", 2)
        end
        return to_text((...))
    end

    function basic.print(...)
        local words = pack(...)
        for i = 1, words.n do
            words[i] = to_text(words[i])
        end
        host.log(text.clean(concat(words, "\t")))
    end

    local function keys_of(data, level)
        local keys, strange = order.keys(data)
        if not keys then
            error(format("a key that is a %s has no place in a fixed order", strange), level + 1)
        end
        return keys
    end

    function basic.pairs(data)
        if type(data) ~= "table" then
            bad_argument(1, "pairs", "table", data)
        end
        local real = inside(data)
        local keys, at = keys_of(real, 2), 0
        return function()
            repeat
                at = at + 1
            until keys[at] == nil or data[keys[at]] ~= nil
            return keys[at], data[keys[at]]
        end, data, nil
    end

    -- Where a walk by next is in each table, so that a step needn't look for its key.
    local walks = setmetatable({}, { __mode = "k" })

    local function walk_from(real, key)
        local walk = walks[real]
        if walk and key ~= nil and walk.keys[walk.at] == key then
            return walk
        end
        walk = { keys = keys_of(real, 3), at = 0 }
        while key ~= nil and walk.keys[walk.at] ~= key do
            walk.at = walk.at + 1
            if walk.at > #walk.keys then
                error("invalid key to 'next'", 3)
            end
        end
        walks[real] = walk
        return walk
    end

    function basic.next(data, key)
        if type(data) ~= "table" then
            bad_argument(1, "next", "table", data)
        end
        local real = inside(data)
        if lua_next(real) == nil then
            return nil
        end
        local walk = walk_from(real, key)
        repeat
            walk.at = walk.at + 1
        until walk.keys[walk.at] == nil or real[walk.keys[walk.at]] ~= nil
        local found = walk.keys[walk.at]
        if found == nil then
            walks[real] = nil
            return nil
        end
        return found, data[found]
    end

    -- ---- string ----------------------------------------------------------------------------------

    local strings = {}
    for _, name in ipairs({
        "byte", "char", "find", "gmatch", "gsub", "len", "lower", "match", "pack", "packsize", "reverse", "sub",
        "unpack", "upper",
    }) do
        strings[name] = string[name]
    end

    local checked_format = guarded(format)

    function strings.format(form, ...)
        if type(form) ~= "string" then
            return checked_format(form, ...)
        end
        local arguments, at = pack(...), 0
        for kind in gmatch(form, "%%[-+ #0-9.]*(.)") do
            at = kind == "%" and at or at + 1
            if kind == "p" then
                error("'%p' shows an address, which a policy has no use for", 2)
            elseif kind == "s" and at <= arguments.n then
                arguments[at] = to_text(arguments[at])
            end
        end
        local made = pack(pcall(format, form, unpack(arguments, 1, arguments.n)))
        if not made[1] then
            error(made[2], 2)
        end
        return made[2]
    end

    local checked_rep = guarded(rep)

    -- Nothing, very often, is a loop in C that no budget sees.
    function strings.rep(piece, n, separator)
        if piece == "" and (separator == nil or separator == "") then
            n = 0
        end
        return checked_rep(piece, n, separator)
    end

    -- ---- table -----------------------------------------------------------------------------------

    local tables = { concat = concat, insert = table.insert, pack = pack, remove = table.remove, unpack = unpack }

    local checked_move = guarded(move)

    -- As for rep: moving what isn't there is a loop in C.
    function tables.move(from, first, last, ...)
        if math.type(first) and math.type(last) and last - first >= LONGEST_MOVE then
            error("too many elements to move", 2)
        end
        return checked_move(from, first, last, ...)
    end

    -- merge puts the sorted halves from `low` to `middle` and from there to `high` in order.
    local function merge(list, spare, low, middle, high, before)
        move(list, low, middle, low, spare)
        local left, right = low, middle + 1
        for at = low, high do
            if left > middle then
                return
            elseif right <= high and before(list[right], spare[left]) then
                list[at], right = list[right], right + 1
            else
                list[at], left = spare[left], left + 1
            end
        end
    end

    -- Lua's own sort asks the clock where to begin, so equal elements end up anywhere. This one
    -- keeps their order.
    local function sort(list, n, before)
        local spare, width = {}, 1
        while width < n do
            for low = 1, n - width, 2 * width do
                merge(list, spare, low, low + width - 1, math.min(low + 2 * width - 1, n), before)
            end
            width = 2 * width
        end
    end

    local function less(a, b)
        return a < b
    end

    local function check_comparable(list)
        local kind = type(list[1])
        for i = 1, #list do
            local other = type(list[i])
            if other ~= kind or kind ~= "number" and kind ~= "string" then
                error(kind == other and format("attempt to compare two %s values", kind)
                    or format("attempt to compare %s with %s", kind, other), 3)
            end
        end
    end

    function tables.sort(data, before)
        if type(data) ~= "table" then
            bad_argument(1, "sort", "table", data)
        elseif before ~= nil and type(before) ~= "function" then
            bad_argument(2, "sort", "function", before)
        end
        local list = move(inside(data), 1, #data, 1, {})
        if not before and #list > 1 then
            check_comparable(list)
        end
        sort(list, #list, before or less)
        for i = 1, #list do
            data[i] = list[i]
        end
    end

    -- ---- math, utf8 ------------------------------------------------------------------------------

    local numbers, letters = {}, {}
    for name, value in lua_next, math do
        if name ~= "random" and name ~= "randomseed" then
            numbers[name] = value
        end
    end
    for name, value in lua_next, utf8 do
        letters[name] = value
    end

    -- Methods of strings are the policy's own string functions; no way leads to this table.
    local of_strings = getmetatable("")
    of_strings.__index = strings
    of_strings.__metatable = false

    -- ---- Files -----------------------------------------------------------------------------------

    local environment = {}

    -- Lua's message, "file:line: what", goes to the mistakes in its parts.
    local function note_syntax(file, message)
        local line, what = message:match(":(%d+): (.*)$")
        if message:find("binary chunk", 1, true) then
            line, what = 1, "this is bytecode; a policy is text"
        end
        load.problem(file, tonumber(line) or 0, what or message)
    end

    local running = {} -- marks a file whose end isn't reached
    local loaded = {}

    local function run_file(file, source, ...)
        local chunk, message = host.compile(source, file, environment)
        if not chunk then
            note_syntax(file, message)
            return load.lost
        end
        local result = chunk(...)
        return result == nil and true or result
    end

    -- The file that a module's name means, or nil: letters, digits, _ and - between single points,
    -- so no name leads out of the policy's folder.
    local function file_of(name)
        for part in gmatch(name .. ".", "([^.]*)%.") do
            if not part:find("^[%w_-]+$") then
                return nil
            end
        end
        return name:gsub("%.", "/") .. ".lua"
    end

    -- why_not says what is wrong with a name that leads to no file to be run; nil: nothing.
    local function why_not(name, file)
        if name:find("^mulligan%.preset") then
            return "presets are not in this version yet"
        elseif name == "mulligan" or name:find("^mulligan%.") then
            return 'a policy has "mulligan.policy" of these, and the files beside it'
        elseif not file then
            return '"a.b" means the file a/b.lua beside the policy, and no other way leads to a file'
        elseif file == host.main or loaded[file] == running then
            return "this file is being run already; files can't require each other in a circle"
        end
    end

    function basic.require(name)
        if type(name) ~= "string" then
            bad_argument(1, "require", "string", name)
        elseif name == "mulligan.policy" then
            return policy
        end
        local file = file_of(name)
        local why = why_not(name, file)
        if not why and loaded[file] ~= nil then
            return loaded[file]
        end
        local source
        if not why then
            source, why = host.read(file)
        end
        if not source then
            return load.wrong(format("require(%s): %s", text.show(name), why))
        end
        loaded[file] = running
        loaded[file] = run_file(file, source, name, file)
        return loaded[file]
    end

    -- ---- The whole -------------------------------------------------------------------------------

    for name, value in lua_next, basic do
        environment[name] = value
    end
    environment.string = read_only(strings, "string")
    environment.table = read_only(tables, "table")
    environment.math = read_only(numbers, "math")
    environment.utf8 = read_only(letters, "utf8")

    local function run()
        local source, why = host.read(host.main)
        if source then
            run_file(host.main, source)
        else
            load.problem(host.main, 0, why)
        end
    end

    -- What Lua has and a policy hasn't; a nil there deserves a word more than Lua's.
    local absent = {
        _G = true, collectgarbage = true, coroutine = true, debug = true, dofile = true, getmetatable = true,
        io = true, load = true, loadfile = true, os = true, package = true, rawequal = true, rawget = true,
        rawlen = true, rawset = true, setmetatable = true, warn = true, xpcall = true,
    }

    local function failed(file, line, message)
        local name = message:match("%(global '([%a_]+)'%)") or message:match("%(field '(dump)'%)")
            or message:match("%(field '(random%l*)'%)")
        if absent[name] or name and message:find("(field '", 1, true) then
            message = format("%s; a policy has no %s", message, name)
        end
        load.stopped(file, line, message)
    end

    local function freeze()
        local globals = {}
        for name, value in lua_next, environment do
            globals[name] = value
        end
        for name in lua_next, globals do
            environment[name] = nil
        end
        shown[environment] = globals
        setmetatable(environment, {
            __index = globals,
            __newindex = function(_, name)
                error(format("global %s can't be set once the policy is loaded", text.show(name)), 2)
            end,
            __metatable = false,
        })
    end

    return { run = run, failed = failed, freeze = freeze }
end
