-- msgpack.lua: MessagePack for specs. A table is a map, unless it is a list that isn't empty or that msgpack.list made;
-- msgpack.null is nil, msgpack.bin(bytes) is bytes.
local msgpack = {}

msgpack.null = setmetatable({}, { __tostring = function() return "nil" end })

local list = {}

function msgpack.list(items)
    return setmetatable(items, list)
end

function msgpack.bin(bytes)
    return setmetatable({ bytes = bytes }, { __index = { is_bin = true } })
end

local function text(value)
    local size = #value
    if size < 32 then
        return string.char(0xa0 | size) .. value
    end
    return string.pack(size < 256 and ">BB" or size < 65536 and ">BI2" or ">BI4",
        size < 256 and 0xd9 or size < 65536 and 0xda or 0xdb, size) .. value
end

local function number(value)
    if math.type(value) == "float" then
        return string.pack(">Bd", 0xcb, value)
    elseif value >= 0 and value < 128 or value < 0 and value >= -32 then
        return string.pack("b", value)
    end
    return string.pack(">Bi8", 0xd3, value)
end

local function container(value)
    if getmetatable(value) == list or #value > 0 then
        local parts = { string.pack(">BI4", 0xdd, #value) }
        for _, item in ipairs(value) do
            parts[#parts + 1] = msgpack.encode(item)
        end
        return table.concat(parts)
    end
    local keys, parts = {}, {}
    for key in pairs(value) do
        keys[#keys + 1] = key
    end
    table.sort(keys)
    for _, key in ipairs(keys) do
        parts[#parts + 1] = msgpack.encode(key) .. msgpack.encode(value[key])
    end
    return string.pack(">BI4", 0xdf, #keys) .. table.concat(parts)
end

function msgpack.encode(value)
    local kind = type(value)
    if value == msgpack.null then
        return "\xc0"
    elseif kind == "boolean" then
        return value and "\xc3" or "\xc2"
    elseif kind == "number" then
        return number(value)
    elseif kind == "string" then
        return text(value)
    elseif value.is_bin then
        return "\xc6" .. string.pack(">s4", value.bytes)
    end
    return container(value)
end

-- ---- Decoding: nil is msgpack.null --------------------------------------------------------------

local decode

local function items(bytes, at, count)
    local value = msgpack.list {}
    for i = 1, count do
        value[i], at = decode(bytes, at)
    end
    return value, at
end

local function entries(bytes, at, count)
    local value = {}
    for _ = 1, count do
        local key, behind = decode(bytes, at)
        value[key], at = decode(bytes, behind)
    end
    return value, at
end

local formats = {
    [0xca] = ">f", [0xcb] = ">d", [0xcc] = ">I1", [0xcd] = ">I2", [0xce] = ">I4", [0xcf] = ">i8", [0xd0] = ">i1",
    [0xd1] = ">i2", [0xd2] = ">i4", [0xd3] = ">i8", [0xd9] = ">s1", [0xda] = ">s2", [0xdb] = ">s4",
}

function decode(bytes, at)
    local byte = bytes:byte(at)
    if byte < 0x80 or byte >= 0xe0 then
        return string.unpack("b", bytes, at)
    elseif byte < 0x90 then
        return entries(bytes, at + 1, byte & 15)
    elseif byte < 0xa0 then
        return items(bytes, at + 1, byte & 15)
    elseif byte < 0xc0 then
        return bytes:sub(at + 1, at + (byte & 31)), at + 1 + (byte & 31)
    elseif byte == 0xc0 then
        return msgpack.null, at + 1
    elseif byte == 0xc2 or byte == 0xc3 then
        return byte == 0xc3, at + 1
    elseif formats[byte] then
        return string.unpack(formats[byte], bytes, at + 1)
    end
    local count, behind = string.unpack(byte % 2 == 0 and ">I2" or ">I4", bytes, at + 1)
    return (byte <= 0xdd and items or entries)(bytes, behind, count)
end

-- decode gives the value that bytes begin with, and where the rest begins.
function msgpack.decode(bytes, at)
    return decode(bytes, at or 1)
end

return msgpack
