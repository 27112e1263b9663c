-- functions.lua: random function matchers, and their text; spec/support/naive/functions.lua says what they give.

local words = require "support.generate.words"

local functions = {}

local COUNTERS = { "attempt", "redeliveries", "calls", "deliveries", "age_ms" }

local function field(kind, names)
    return function(random)
        local name = random:pick(names)
        return { kind = kind, name = name, value = random:pick(words.FIELDS[name]) }
    end
end

local function value(kind, values)
    return function(random) return { kind = kind, value = random:pick(values) } end
end

local function type(kind)
    return function(random) return { kind = kind, type = words.any_type(random) } end
end

local makers = {
    equals = field("equals", words.FIELD_NAMES),
    at_least = function(random) return { kind = "at_least", name = random:pick { "status", "code" }, value = 500 } end,
    counter = function(random) return { kind = "counter", name = random:pick(COUNTERS), value = random(6) } end,
    is = type "is",
    type = type "type",
    cause_is = type "cause_is",
    cause_type = type "cause_type",
    causes = value("causes", { 1, 2, 3, 16, 17 }),
    tag = value("tag", { "a", "b" }),
    detail = value("detail", { 1, "1" }),
    find = value("find", words.PIECES),
    message_type = value("message_type", words.MESSAGE.type),
    message_size = value("message_size", words.MESSAGE.size),
    header = function(random)
        local name = random:pick(words.HEADER_NAMES)
        return { kind = "header", name = name, value = random:pick(words.HEADERS[name]) }
    end,
    consumer = value("consumer", words.CONSUMERS),
    transport = value("transport", words.TRANSPORTS),
}

-- %s: the name, if there is one, then the type or value.
local TEXT = {
    always = "return true",
    never = "local unused = err.type",
    no = "return false",
    zero = "return 0",
    empty = 'return ""',
    raises = "return err.nothing.more",
    writes = "err.status = 1 return true",
    writes_ctx = "ctx.attempt = 1 return true",
    endless = "while true do end",
    equals = "return err[%s] == %s",
    at_least = "return err[%s] >= %s",
    counter = "return ctx[%s] >= %s",
    is = "return err:is(%s)",
    type = "return err.type == %s",
    cause_is = "return err.cause and err.cause:is(%s)",
    cause_type = "return err.cause.type == %s",
    causes = "local n, c = 0, err.cause while c do n, c = n + 1, c.cause end return n >= %s",
    tag = 'return type(err.tags) == "table" and err.tags[1] == %s',
    detail = "return err.detail.k == %s",
    find = "return err.message:find(%s, 1, true)",
    message_type = "return ctx.message.type == %s",
    message_size = "return ctx.message.size >= %s",
    header = "return ctx.message.headers[%s] == %s",
    consumer = "return ctx.consumer == %s",
    transport = "return ctx.transport == %s",
}

local KINDS = {}
for kind in pairs(TEXT) do KINDS[#KINDS + 1] = kind end
table.sort(KINDS)
functions.KINDS = KINDS

function functions.random(random)
    local kind = random:pick(KINDS)
    local m = makers[kind] and makers[kind](random) or { kind = kind }
    m.form = "function"
    return m
end

-- `literal` writes a value.
function functions.text(m, literal)
    local parts = {}
    if m.name then parts[#parts + 1] = literal(m.name) end
    if m.type or m.value ~= nil then parts[#parts + 1] = literal(m.type or m.value) end
    return ("function(err, ctx) %s end"):format(TEXT[m.kind]:format(table.unpack(parts)))
end

return functions
