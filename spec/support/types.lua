-- types.lua: reads definitions for lua-language-server (LuaCATS), as far as ours go, so that specs
-- can hold them against the product.
--
--   types.classes[name]   { exact =, parent =, fields = { name -> { type =, optional = } },
--                           functions = { name -> { params = { { name =, type =, optional = } },
--                           overloads = { type }, returns = { type }, method = } } }
--   types.aliases[name]   { type =, choices = { text } }
--   types.metas           the modules that the files are for: name -> path
--   types.used            every name of ours in a type -> where it is used

local process = require "support.process"

local types = {}

-- A type at the beginning of a text, and what stands behind it. Blanks are inside brackets and
-- behind a colon, a comma or a bar only.
local function split_type(text)
    local depth, at = 0, 1
    while at <= #text do
        local c = text:sub(at, at)
        if c:find("[%(<{]") then
            depth = depth + 1
        elseif c:find("[%)>}]") then
            depth = depth - 1
        elseif c == '"' then
            at = text:find('"', at + 1, true)
        elseif c == " " and depth == 0 and not text:sub(1, at - 1):find("[:,|]$") then
            break
        end
        at = at + 1
    end
    assert(depth == 0, text)
    return text:sub(1, at - 1), text:sub(at + 1)
end

local function use(read, type_name, where)
    for name in type_name:gmatch("mulligan%.?[%w_]*") do
        read.used[name] = where
    end
    return type_name
end

-- What each tag does to what is being read: `block` is what the comments so far say.
local tags = {}

function tags.class(read, block, text, where)
    local exact, name, parent = text:match("^(%(?e?x?a?c?t?%)? ?)([%w_.]+):? ?([%w_.]*)$")
    assert(name and (exact == "" or exact == "(exact) "), where)
    assert(not read.classes[name], where .. ": " .. name .. " is there already")
    block.class = { exact = exact ~= "", parent = parent ~= "" and use(read, parent, where) or nil, fields = {},
        functions = {}, overloads = {} }
    read.classes[name] = block.class
end

function tags.field(read, block, text, where)
    local name, rest = text:match("^(%[?[%w_]+%]?%??) (.+)$")
    assert(name and block.class, where)
    local plain = name:gsub("%?$", "")
    assert(not block.class.fields[plain], where .. ": " .. plain .. " is there already")
    block.class.fields[plain] = { type = use(read, (split_type(rest)), where), optional = name ~= plain }
end

function tags.alias(read, block, text, where)
    local name, rest = text:match("^([%w_.]+) ?(.*)$")
    assert(not read.aliases[name], where .. ": " .. name .. " is there already")
    block.alias = { type = use(read, rest, where), choices = {} }
    read.aliases[name] = block.alias
end

function tags.param(read, block, text, where)
    local name, rest = text:match("^([%w_.]+%??) (.+)$")
    assert(name, where)
    local plain = name:gsub("%?$", "")
    table.insert(block.params, { name = plain, type = use(read, (split_type(rest)), where), optional = name ~= plain })
end

tags["return"] = function(read, block, text, where)
    table.insert(block.returns, use(read, text, where))
end

function tags.overload(read, block, text, where)
    table.insert(block.class and block.class.overloads or block.overloads, use(read, text, where))
end

function tags.meta(read, _, text, where)
    assert(where:find(":1$"), where .. ": ---@meta is the first line")
    read.metas[text] = where:match("^(.*):1$")
end

local function new_block()
    return { params = {}, returns = {}, overloads = {} }
end

-- A line of Lua below its comments: a class's table, or a function.
local function read_code(locals, block, line, where)
    local name = line:match("^local ([%w_]+) = {}$")
    local class, mark, word, params = line:match("^function ([%w_]+)([.:])([%w_]+)%((.*)%) end$")
    if name then
        locals[name] = assert(block.class, where)
    elseif class then
        local names = {}
        for i, param in ipairs(block.params) do
            names[i] = param.name
        end
        assert(table.concat(names, ", ") == params, where .. ": other parameters than it tells of")
        local functions = assert(locals[class], where).functions
        assert(not functions[word], where .. ": twice")
        functions[word] = { params = block.params, returns = block.returns, overloads = block.overloads,
            method = mark == ":" }
    elseif line:find("^return ") then
        assert(locals[line:match("^return ([%w_]+)$")], where)
    else
        assert(line == "" or line:find("^%-%- "), where .. ": what is this? " .. line)
    end
end

local function read_line(read, locals, block, line, where)
    local tag, text = line:match("^%-%-%-@(%w+) ?(.*)$")
    local choice = line:match("^%-%-%-| (.*)$")
    if tag then
        assert(tags[tag], where .. ": unknown tag")(read, block, text, where)
    elseif choice then
        local literal = choice:match('^"([^"]*)"')
        table.insert(assert(block.alias, where).choices, literal)
        block.alias.type = literal and block.alias.type or block.alias.type .. choice
    elseif not line:find("^%-%-%-") then
        read_code(locals, block, line, where)
        return new_block()
    end
    return block
end

-- read reads files of types.
function types.read(paths)
    local read = { classes = {}, aliases = {}, metas = {}, used = {} }
    for _, path in ipairs(paths) do
        local locals, block, number = {}, new_block(), 0
        for line in assert(process.read(path), path):gmatch("(.-)\n") do
            number = number + 1
            block = read_line(read, locals, block, line, ("%s:%d"):format(path, number))
        end
    end
    return read
end

-- names gives the keys of a table in order.
function types.names(map)
    local names = {}
    for name in pairs(map) do
        names[#names + 1] = name
    end
    table.sort(names)
    return names
end

return types
