-- words.lua: the names and values of random policies and failures, few enough for them to meet.

local matcher = require "support.naive.matcher"
local mulligan = require "mulligan"

local words = {}

words.TYPES = {
    "DatabaseError", "DeadlockError", "HandlerTimeoutError", "MessageDeserializationError", "NetworkError",
    "System.TimeoutException", "TlsError", "HandlerCrashError", "ÜberError",
}
words.STRANGERS = { "Unheard", "Of.Elsewhere" }
words.CONSUMERS, words.TRANSPORTS = { "PaymentHandler", "Mail" }, { "orders", "mail" }
words.QUEUES, words.NOTES = { "parked", "error", "Später" }, { "already processed", "" }
words.AGES = { "1m", "90s", "1h30m", 0, "1d" }
words.MOMENTS = { 0, 1, 59999, 60000, 60001, 90000, 90001, 5400001, math.maxinteger } -- around AGES
words.COUNTERS = { 1, 1, 1, 2, 2, 3, 4, 5, 6, 10, 20, 21, 1000, 1001, math.maxinteger }

words.DELIVERIES = { 1, 1, 2, 2, 3, 4, 20, 21, 21, 21 }

words.LONG = ("a"):rep(400)
local TEXTS = {
    "deadlock detected", "", "connection reset by peer", "timeout after 30s", "Zeit läuft ab (db1.internal)",
    "Lost db2.internal",
}

-- What fields hold, in errors and in the literals of policies.
words.FIELDS = {
    status = { 429, 503, 503.0, 503.5, "503", 499, 500, 599 },
    code = { "40P01", "", 1, true, "40001" },
    transient = { true, false, "true" },
    message = { TEXTS[1], TEXTS[2], TEXTS[3], TEXTS[4], TEXTS[5], TEXTS[6], words.LONG },
    stack = { "", "at line 3" },
    host = { "db1.internal", "db2.internal", 7 },
    retry_after = { 0, 1, 0.25, 1.5, 30, 7200, 1e300, -1, "30", true },
    sequence = {
        9007199254740993, 9007199254740992.0, 2.0 ^ 63, math.maxinteger, math.mininteger, 0, -0.0, -1.5,
    },
    ["x y"] = { "z", 1 },
    type = words.TYPES,
}
words.FIELD_NAMES = { "status", "code", "transient", "message", "stack", "host", "retry_after", "sequence", "x y" }
words.NUMBER_FIELDS, words.TEXT_FIELDS = { "status", "sequence", "retry_after" }, { "message", "code", "host", "type" }

-- The same for what ctx holds, its message, and the headers of that.
words.CTX = {
    attempt = { 1, 2, 3, 4, 6 }, redeliveries = { 0, 1, 2, 3, 5 }, deliveries = { 1, 2, 3, 20 },
    calls = { 1, 2, 3, 5, 10 }, age_ms = { 0, 1, 60000, 90001 }, consumer = words.CONSUMERS,
    transport = words.TRANSPORTS,
}
words.CTX_NAMES = { "attempt", "redeliveries", "deliveries", "calls", "age_ms", "consumer", "transport" }
words.MESSAGE = { id = { "m-1", "m-2" }, type = { "OrderPlaced", "OrderPaid" }, key = { "42", "" }, size = { 0, 300 } }
words.MESSAGE_NAMES = { "id", "type", "key", "size" }
words.HEADERS = { tenant = { "acme", "Größe" }, ["x-trace"] = { "0", "" } }
words.HEADER_NAMES = { "tenant", "x-trace" }

words.PIECES = { "dead", "after", "internal", "ä", "0" }
words.PATTERNS = {
    "^$", "dead", "^connection%s", "%d+s$", "(%a)%1", "%f[%a]after%f[%A]", "%b()", "[^%w%s]", "^.-%.internal$",
    "^%u%l+", "ä", "^(%w+)%s", matcher.BOMB,
}

-- What an error holds that is no field for table matchers.
words.TAGS, words.DETAILS = { { "a", "b" }, { "b" }, {} }, { { k = 1 }, { k = "1" }, {} }
words.NULL = mulligan.json.null

function words.any_type(random)
    if random:chance(0.1) then return random:pick(words.STRANGERS) end
    if random:chance(0.1) then return "Error" end
    return random:pick(words.TYPES)
end

function words.delay(random)
    return random:pick {
        0, "1ms", "7ms", "200ms", "1.5s", "30s", "5m", "1h30m", "2d", "365d", { seconds = 3 }, { seconds = 0.25 },
        { ms = 40 },
    }
end

return words
