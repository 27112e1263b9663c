-- fits.lua: whether a value is what a type for editors says, down to its last key.
--
--   local fits = require("support.fits").new(types.read(paths))
--   fits:check("mulligan.InForce", value)     raises where it isn't, and says where
--   fits.seen["mulligan.InForce"].rules       a key that some value had

local fits = {}
fits.__index = fits

local plain = {
    any = function()
        return true
    end,
    integer = function(value)
        return math.type(value) == "integer"
    end,
}

for _, name in ipairs { "string", "number", "boolean", "table" } do
    plain[name] = function(value)
        return type(value) == name
    end
end

function fits.new(read)
    return setmetatable({ read = read, seen = {} }, fits)
end

-- The types of a union: what stands between the bars that no bracket or quote encloses.
local function union(text)
    local parts, depth, first, quoted = {}, 0, 1, false
    for at = 1, #text + 1 do
        local c = text:sub(at, at)
        quoted = quoted ~= (c == '"')
        depth = depth + (c:find("[%(<{]") and 1 or 0) - (c:find("[%)>}]") and 1 or 0)
        if at > #text or c == "|" and depth == 0 and not quoted then
            parts[#parts + 1] = text:sub(first, at - 1)
            first = at + 1
        end
    end
    return parts
end

-- The fields of a class, its parents' too.
function fits:fields(name)
    local fields = {}
    while name do
        local class = assert(self.read.classes[name], name)
        for field, of in pairs(class.fields) do
            fields[field] = of
        end
        name = class.parent
    end
    return fields
end

function fits:class(name, value, where)
    assert(type(value) == "table", where .. " is no table")
    local fields = self:fields(name)
    self.seen[name] = self.seen[name] or {}
    for key in pairs(value) do
        assert(fields[key], ("%s has a key %s that %s hasn't"):format(where, key, name))
        self.seen[name][key] = true
    end
    for field, of in pairs(fields) do
        if value[field] ~= nil then
            self:check(of.type, value[field], where .. "." .. field)
        else
            assert(of.optional or field:find("^%["), ("%s.%s is missing"):format(where, field))
        end
    end
end

local function each(of, list, where)
    assert(type(list) == "table", where .. " is no list")
    local count = 0
    for _ in pairs(list) do
        count = count + 1
    end
    assert(count == #list, where .. " is no list")
    for number, item in ipairs(list) do
        of(item, ("%s[%d]"):format(where, number))
    end
end

local function is_one_of(choices, value)
    for _, choice in ipairs(choices) do
        if choice == value then
            return true
        end
    end
    return false
end

-- one checks a type that is no union.
function fits:one(text, value, where)
    local item = text:match("^(.+)%[%]$")
    local key, of = text:match("^table<(%w+), (.+)>$")
    local alias = self.read.aliases[text]
    if item then
        each(function(...)
            self:check(item, ...)
        end, value, where)
    elseif key then
        assert(type(value) == "table", where .. " is no table")
        for name, one in pairs(value) do
            self:check(key, name, where .. "'s key")
            self:check(of, one, ("%s[%s]"):format(where, name))
        end
    elseif alias and #alias.choices > 0 and alias.type == "" then
        assert(is_one_of(alias.choices, value), ("%s is %s, which isn't in %s"):format(where, value, text))
    elseif alias then
        self:check(alias.type, value, where)
    elseif plain[text] then
        assert(plain[text](value), ("%s is %s, and not of type %s"):format(where, value, text))
    elseif text:find('^"') then
        assert(value == text:sub(2, -2), ("%s is %s, not %s"):format(where, value, text))
    else
        self:class(text, value, where)
    end
end

-- check raises where a value is not of a type.
function fits:check(text, value, where)
    where = where or text
    local parts, why = union(text), nil
    for _, part in ipairs(parts) do
        local well, raised = pcall(self.one, self, part, value, where)
        if well then
            return
        end
        why = #parts == 1 and raised or ("%s is %s, and not of type %s"):format(where, value, text)
    end
    error(why, 0)
end

return fits
