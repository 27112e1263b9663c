-- service.lua: what runs where. OrderHandler takes orders and sends an invoice for each that went
-- well; InvoiceHandler sends it to the customer.
--
-- The world around them, the database and the warehouse, fails in ways that depend on nothing but
-- the order's id and on how often it was tried, so that a test can tell what must come out.
local m = require "mulligan"

m.policy "policy.lua"
m.transport("orders", os.getenv("ORDERS_URL") or "sqlite:orders.db")

local function number_of(order)
    return tonumber(order.id:match("^o%-(%d+)$"))
end

-- The database: one order in ten meets a deadlock, which lasts for one to five attempts and is gone
-- when the order comes again.
local function store(number, msg)
    if number % 10 == 3 and msg.redeliveries == 0 and msg.attempt <= 1 + number // 10 % 5 then
        m.error { type = "DeadlockError", message = "deadlock detected", code = "40P01" }
    end
end

-- The warehouse: for one order in ten it is down, for one to four deliveries.
local function reserve(number, msg)
    if number % 10 == 9 and msg.redeliveries <= number // 10 % 4 then
        m.error { type = "HttpError", message = "the warehouse is down", status = 503 }
    end
end

local function validate(number)
    if number % 20 == 7 then
        m.error { type = "ValidationError", message = "no such address" }
    elseif number % 25 == 11 then
        m.error { type = "DuplicateOrder", message = "order " .. number .. " is here already" }
    end
end

m.consumer("OrderHandler", {
    transport = "orders",
    queue = "orders",
    concurrency = 16,
    handler = function(msg)
        local order = m.json.decode(msg.body)
        local number = number_of(order)
        validate(number)
        store(number, msg)
        reserve(number, msg)
        m.send("invoices", m.json.encode { order = order.id, cents = order.cents }, { type = "Invoice" })
    end,
})

-- Mail: one invoice in 25 finds a full mailbox, and one in 50 finds it full twice.
m.consumer("InvoiceHandler", {
    transport = "orders",
    queue = "invoices",
    concurrency = 4,
    handler = function(msg)
        local number = number_of { id = m.json.decode(msg.body).order }
        m.sleep("5ms")
        if number % 25 == 2 and msg.attempt <= 1 + number // 25 % 2 then
            error("mailbox full")
        end
    end,
})
