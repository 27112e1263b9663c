-- `fault_headers = "nservicebus"`: what ServiceControl reads of a dead letter, and what it is told of one that it sent
-- back. docs/from-nservicebus.md, "ServicePulse".
local mulligan = require "mulligan"
local rigs = require "support.rigs"

describe("fault_headers", function()
    local rig

    local policy = [[
        local bus = require("mulligan.policy").bus()
        bus:default():dead_letter()
    ]]

    local function start(handler, words)
        rig = rigs.start(policy, handler, { collect = { "error", "acks" } }, { fault_headers = words or "nservicebus" })
    end

    -- letters gives the headers of the dead letters, in order.
    local function letters()
        rig:run_until_empty()
        local list = {}
        for number, msg in ipairs(rig:collected "error") do
            list[number] = msg.headers
        end
        return list
    end

    local function fails()
        mulligan.error { type = "HttpError", message = "503", stack = "at line 3\n", status = 503, retriable = true,
            url = "http://x/", source = "Shop.Orders", help_link = "http://help/", seen = { 1 }, rate = 0.5,
            cause = { type = "TimeoutError" } }
    end

    after_each(rigs.close)

    it("writes them beside our own", function()
        start(fails)
        assert(rig:publish("work", "x", { headers = { ["NServiceBus.MessageId"] = "m-1", trace = "t" } }))
        local headers = letters()[1]
        assert.equal("HttpError", headers["mulligan-error-type"])
        local ours, got = "NServiceBus.ExceptionInfo.", {}
        for name, value in pairs(headers) do
            if not name:find "^mulligan%-" then
                got[name] = value
            end
        end
        local moment = got["NServiceBus.TimeOfFailure"]
        assert.equal(headers["mulligan-last-failure"],
            (moment:gsub("^(%S+) (%d+:%d+:%d+):(%d%d%d)000 Z$", "%1T%2.%3Z")))
        assert.equal(28, #moment)
        local machine = got["NServiceBus.ProcessingMachine"]
        assert.is_truthy(#machine > 0 and got["$.diagnostics.hostid"]:find("^%x+$"))
        assert.equal(32, #got["$.diagnostics.hostid"])
        assert.same({
            trace = "t",
            ["NServiceBus.MessageId"] = "m-1",
            ["NServiceBus.FailedQ"] = "work",
            ["NServiceBus.TimeOfFailure"] = moment,
            [ours .. "ExceptionType"] = "HttpError",
            [ours .. "InnerExceptionType"] = "TimeoutError",
            [ours .. "Message"] = "503",
            [ours .. "StackTrace"] = "at line 3\n",
            [ours .. "Source"] = "Shop.Orders",
            [ours .. "HelpLink"] = "http://help/",
            [ours .. "Data.status"] = "503",
            [ours .. "Data.retriable"] = "true",
            [ours .. "Data.url"] = "http://x/",
            [ours .. "Data.rate"] = "0.5",
            ["NServiceBus.ProcessingEndpoint"] = "C",
            ["NServiceBus.ProcessingMachine"] = machine,
            ["$.diagnostics.hostid"] = got["$.diagnostics.hostid"],
            ["$.diagnostics.hostdisplayname"] = machine,
        }, got)
    end)

    it("replaces those that the message came with", function()
        start(fails)
        assert(rig:publish("work", "x", { headers = { ["NServiceBus.FailedQ"] = "elsewhere",
            ["$.diagnostics.hostid"] = "0" } }))
        local headers = letters()[1]
        assert.equal("work", headers["NServiceBus.FailedQ"])
        assert.not_equal("0", headers["$.diagnostics.hostid"])
    end)

    it("bounds what an error's fields take, and its texts", function()
        start(function()
            local error = { type = "E", message = ("é"):rep(20000), big = ("x"):rep(20000) }
            for number = 1, 200 do
                error["field" .. number] = number
            end
            mulligan.error(error)
        end)
        assert(rig:publish("work", "x"))
        local headers, size, fields = letters()[1], 0, 0
        for name, value in pairs(headers) do
            size = size + #name + #value
            fields = fields + (name:find "%.Data%." and 1 or 0)
        end
        assert.is_true(size < 104 * 1024, size)
        assert.is_true(fields >= 50 and fields <= 70, fields)
        assert.equal(16384, #headers["NServiceBus.ExceptionInfo.Message"])
    end)

    it("tells ServiceControl that what it sent back was handled, with what the handler sent", function()
        start(function()
            mulligan.send("acks", "own")
        end)
        assert(rig:publish("work", "x", { headers = { ["ServiceControl.Retry.UniqueMessageId"] = "u-1",
            ["ServiceControl.Retry.AcknowledgementQueue"] = "acks" } }))
        rig:run_until_empty()
        local got = rig:collected "acks"
        assert.same({ "own", "" }, { got[1].body, got[2].body })
        local at = got[2].headers["ServiceControl.Retry.Successful"]
        assert.is_truthy(at:find "^%d+%-%d%d%-%d%d %d%d:%d%d:%d%d:%d+ Z$")
        got[2].headers["ServiceControl.Retry.Successful"] = nil
        assert.same({ ["ServiceControl.Retry.UniqueMessageId"] = "u-1", ["NServiceBus.ControlMessage"] = "True" },
            got[2].headers)
    end)

    it("has handled a message, even if there is no room left to tell it", function()
        start(function()
            for _, size in ipairs { 1 << 23, 1 << 18, 1 << 12, 1 << 7 } do
                while pcall(mulligan.send, "out", ("x"):rep(size)) do end -- as much as a call may send
            end
        end)
        assert(rig:publish("work", "x", { headers = { ["ServiceControl.Retry.UniqueMessageId"] = "u-1",
            ["ServiceControl.Retry.AcknowledgementQueue"] = "acks" } }))
        rig:run_until_empty()
        assert.equal(1, rig:counts().done)
        assert.equal(0, #rig:collected "acks")
    end)

    it("tells nothing of what fails again, and keeps what ServiceControl knows it by", function()
        start(fails)
        assert(rig:publish("work", "x", { headers = { ["ServiceControl.Retry.UniqueMessageId"] = "u-1",
            ["ServiceControl.Retry.AcknowledgementQueue"] = "acks" } }))
        assert.equal("u-1", letters()[1]["ServiceControl.Retry.UniqueMessageId"])
        assert.equal(0, #rig:collected "acks")
    end)

    it("is for consumers that ask for it", function()
        start(function(msg)
            if msg.body == "fails" then
                fails()
            end
        end, "mulligan")
        local headers = { ["ServiceControl.Retry.UniqueMessageId"] = "u-1",
            ["ServiceControl.Retry.AcknowledgementQueue"] = "acks" }
        assert(rig:publish("work", "fails"))
        assert(rig:publish("work", "x", { headers = headers }))
        assert.is_nil(letters()[1]["NServiceBus.FailedQ"])
        assert.equal(0, #rig:collected "acks")
        assert.has_error(function()
            rigs.start(policy, fails, {}, { fault_headers = "masstransit" })
        end)
    end)
end)
