-- policy.lua: what happens to an order that fails. The delays are short, since this is an example
-- that ends: in production they would be seconds and minutes.
local policy = require "mulligan.policy"

policy.errors {
    DeadlockError = "DatabaseError",
}

local bus = policy.bus()

-- Wrong today, wrong tomorrow: a person has to look at it.
bus:on("ValidationError"):dead_letter("invalid-orders")

-- Taken before: nothing is lost by dropping it.
bus:on("DuplicateOrder"):discard("taken before")

-- A database picks itself up within moments, and else within a second.
bus:on("DatabaseError"):retry(3, "20ms", "exponential"):then_redeliver { "500ms" }

-- The warehouse may be down for longer: the order waits in its queue, not in the process.
bus:on("HttpError", { status = 503 }):redeliver { "200ms", "400ms", "800ms" }

bus:default():retry(2, "50ms"):then_dead_letter()

-- An invoice must not be sent late: one more try, and then a person sends it.
policy.consumer("InvoiceHandler"):default():retry(1, "50ms"):then_dead_letter("unsent-invoices")
