-- mulligan run: consumers that share a queue by the types of messages, on a file.
local process = require "support.process"
local queues = require "support.queues"

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
m.consumer("OrderHandler", { transport = "orders", queue = "work", types = { "Placed", "Cancelled" },
    handler = function(msg) print("an order: " .. msg.body) end })
m.consumer("MailHandler", { transport = "orders", queue = "work", types = { "Mail" }, timeout = "1m",
    handler = function(msg) print("a mail: " .. msg.body) end })
]]

local POLICY = [[
local policy = require "mulligan.policy"
policy.bus():on("NoConsumerError"):redeliver { "5ms", "10ms" }
policy.consumer("MailHandler"):default():discard("its rules are its own")
]]

describe("mulligan run, with consumers that share a queue by type,", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = SERVICE, ["policy.lua"] = POLICY }
    end)

    after_each(function()
        folder:remove()
    end)

    local function send(type, body)
        local words = { "send", "work", "--transport", "orders" }
        if type then
            words[5], words[6] = "--type", type
        end
        assert.equal(0, folder:mulligan(words, { stdin = body .. "\n" }).code)
    end

    it("hands each message to its own, and says of the others that nobody takes them", function()
        send("Placed", "one")
        send("Mail", "two")
        send("Odd", "three")
        send("Cancelled", "four")
        send(nil, "five")
        local run = folder:mulligan { "run", "--until-empty" }
        assert.equal(0, run.code, run.err)
        for _, line in ipairs { "an order: one", "a mail: two", "an order: four" } do
            assert.is_truthy((run.out .. run.err):find(line, 1, true), run.out .. run.err)
        end
        assert.equal("done 3, retried 0, redelivered 4, dead-lettered 2, discarded 0\n", run.out:match "[^\n]*\n$")
        assert.is_truthy(run.err:find("dead letter: message %x+: NoConsumerError: no consumer of this queue takes "
            .. "messages of this type; attempt 1 of 1, to error after 3 calls and 2 redeliveries"), run.err)
        assert.equal(2, queues.depth("sqlite:" .. folder:path("orders.db"), "error").ready)
    end)

    it("has them wait for the next deployment", function()
        folder:write("policy.lua", (POLICY:gsub('{ "5ms", "10ms" }', '(6, "1s", "constant")')))
        send("Odd", "one")
        local first = folder:start_mulligan { "run" }
        process.await("the redelivery", function()
            return first.err():find("redelivery: message", 1, true), first.err()
        end)
        first.kill "TERM"
        assert.equal(0, first.wait())
        folder:write("service.lua", SERVICE .. [[
m.consumer("RestHandler", { transport = "orders", queue = "work", handler = function() end })
]])
        local run = folder:mulligan { "run", "--until-empty" }
        assert.is_truthy(run.out:find("done 1, ", 1, true), run.out .. run.err)
    end)

    it("is checked for them as for all others", function()
        local check = folder:mulligan { "check", "policy.lua", "--for", "service.lua" }
        assert.equal(0, check.code, check.out .. check.err)
        folder:write("service.lua", SERVICE .. [[
m.consumer("Other", { transport = "orders", queue = "work", types = { "Mail" }, handler = print })
]])
        check = folder:mulligan { "check", "policy.lua", "--for", "service.lua" }
        assert.equal(2, check.code)
        assert.is_truthy(check.err:find('service.lua:8: consumer "Other": messages of type "Mail" on the queue "work" '
            .. 'are taken by consumer "MailHandler" already', 1, true), check.err)
    end)
end)
