-- docs/running.md's files, run as they stand there: orders are worked off, and their dead letters
-- sent back.
local pages = require "support.pages"
local process = require "support.process"
local queues = require "support.queues"

-- The block of a page that has a text in it.
local function block_with(path, text)
    for _, block in ipairs(pages.blocks(path, "lua")) do
        if block.text:find(text, 1, true) then
            return block.text
        end
    end
    error(("%s has no block with %s"):format(path, text))
end

local function summary(done, retried, redelivered, dead_lettered, discarded)
    return ("done %d, retried %d, redelivered %d, dead-lettered %d, discarded %d\n"):format(done, retried, redelivered,
        dead_lettered, discarded)
end

describe("docs/running.md", function()
    local folder, url

    before_each(function()
        folder = process.folder {
            ["service.lua"] = block_with("docs/running.md", '"OrderHandler"'),
            ["policy.lua"] = pages.blocks("docs/policy.md", "lua")[1].text,
            ["return.lua"] = block_with("docs/running.md", '"Return"'),
            ["return-policy.lua"] = block_with("docs/running.md", '"not-returned"'),
        }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(queue, body, ...)
        local sent = folder:mulligan({ "send", queue, "--transport", "orders", ... }, { stdin = body .. "\n" })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function works(expected, ...)
        local run = folder:mulligan { "run", "--until-empty", ... }
        assert.same({ code = 0, out = expected, err = run.err }, run)
    end

    it("works orders off", function()
        send("orders", '{"number":1,"address":"here"}')
        send("orders", '{"number":2}')
        works(summary(1, 0, 0, 1, 0))
        local invoices = queues.take(url, "invoices")
        assert.same({ 1, "Invoice", '{"order":1}' }, { #invoices, invoices[1].type, invoices[1].body })
        local invalid = queues.take(url, "invalid-orders")
        assert.same({ 1, "no address" }, { #invalid, invalid[1].headers["mulligan-error-message"] })
    end)

    it("sends dead letters back, which start anew", function()
        send("orders", "not JSON", "--id", "o-1", "--key", "k", "--header", "tenant=acme")
        works(summary(0, 0, 0, 1, 0))
        send("error", "from elsewhere")
        works(summary(1, 0, 0, 1, 0), "return.lua")
        assert.equal("from elsewhere", queues.take(url, "not-returned")[1].body)

        works(summary(0, 0, 0, 1, 0))
        local dead = queues.take(url, "error")
        assert.equal(1, #dead)
        assert.same({ "o-1", "k", "not JSON", "acme", "1", "orders" }, {
            dead[1].id, dead[1].key, dead[1].body, dead[1].headers.tenant, dead[1].headers["mulligan-calls"],
            dead[1].headers["mulligan-queue"],
        })
    end)

    it("keeps a database where systemd says", function()
        folder:write("service.lua", block_with("docs/running.md", "STATE_DIRECTORY"))
        folder:write("state/here", "")
        url = "sqlite:" .. folder:path("state/orders.db")
        local env = { STATE_DIRECTORY = folder:path("state") }
        local sent = folder:mulligan({ "send", "orders", "--transport", url }, { stdin = "an order\n" })
        assert.same({ code = 0, out = "", err = "" }, sent)
        local run = folder:mulligan({ "run", "--until-empty" }, { env = env })
        assert.same({ code = 0, out = "an order\n" .. summary(1, 0, 0, 0, 0), err = run.err }, run)
    end)
end)
