-- A transport that does its worst: nothing hangs and nothing is lost, the log says it in one line,
-- and a stop ends within its grace, and the time that transports then have to answer.
local mulligan = require "mulligan"
local rigs = require "support.rigs"

local GRACE_MS, DRAIN_MS = 10000, 5000

describe("a transport that", function()
    local rig, calls

    -- start gives the consumer C a handler that fails in its first call by the type that is the body.
    local function start(options, more, rules)
        calls = {}
        more = more or {}
        more.url, more.grace = "memory:?" .. options, more.grace or "10s"
        rig = rigs.start(rules or 'bus:on("Late"):redeliver(3, "1s") bus:on("Bad"):dead_letter()', function(msg)
            calls[#calls + 1] = msg.id
            if msg.body == "Sends" then
                mulligan.send("out", "sent")
            elseif msg.body ~= "" and #calls == 1 then
                mulligan.error { type = msg.body }
            end
        end, more)
    end

    after_each(rigs.close)

    -- publish gives its answers so far, and goes on whether there is one or not.
    local function publish(body, id)
        local answers = {}
        assert(rig.engine:publish("orders", "work", body or "", { id = id or "m" }, function(...)
            answers[#answers + 1] = table.pack(...)
        end))
        rig:advance "0ms"
        return answers
    end

    -- told gives the warnings and errors of the log, in order.
    local function told()
        local lines = {}
        for _, line in ipairs(rig:log()) do
            if not line:find "^info" and not line:find "^debug" then
                lines[#lines + 1] = line
            end
        end
        return lines
    end

    -- stops gives how long that takes in ms.
    local function stops()
        local began = rig.clock:now()
        rig:stop()
        return rig.clock:now() - began
    end

    -- stop_well: a stop that waits for nobody.
    local function stop_well()
        assert.equal(0, stops())
        assert.same({ ready = 0, delayed = 0, claimed = 0 }, (rig:depth "work"))
    end

    local UNASKED = "error: transport orders: it answered what it wasn't asked"
    local HALFWAY = "warning: C: message m isn't settled (settle=halfway: only its copy is there); trying again, "
        .. "taking nothing new"

    describe("never answers", function()
        local WAITED_FOR = "warning: C: transport orders has not said for 60 s whether message m is settled; it is "
            .. "waited for"
        local UNANSWERED = "error: C: transport orders did not say before the end whether message m is settled; if "
            .. "it isn't, it will be handed out again"
        local UNSAFE = "warning: transport orders has not said for 60 s whether a message that is published is safe"

        it("is waited for, in one line for each message, and not beyond a stop", function()
            start "answers=none"
            local answers = publish()
            rig:advance "59s"
            assert.same({ {}, {} }, { told(), answers })
            rig:advance "10h"
            assert.same({ UNSAFE, WAITED_FOR }, told())
            assert.same({ 1, "io" }, { #answers, answers[1][3] })
            assert.same({ "m" }, calls)
            assert.equal(GRACE_MS + DRAIN_MS, stops())
            assert.same({ UNSAFE, WAITED_FOR, UNANSWERED }, told())
            assert.equal(0, rig:counts().done)
        end)

        it("ends with a stop that comes at once, and every publish has its answer", function()
            start "answers=none"
            local answers = publish()
            assert.equal(GRACE_MS + DRAIN_MS, stops())
            assert.same({ UNANSWERED }, told())
            rig:close()
            assert.equal(1, #answers)
            assert.is_nil(answers[1][1])
        end)
    end)

    for name, options in pairs { ["answers twice"] = "answers=twice", ["answers late"] = "answers=late" } do
        describe(name, function()
            -- What is asked of it: a publish, and a settlement for each of its messages.
            for body, questions in pairs { [""] = 2, Sends = 3, Late = 3, Bad = 3 } do
                it(("is told so once for each answer, and heard once: '%s'"):format(body), function()
                    start(options)
                    local answers = publish(body)
                    rig:advance "1m"
                    local lines = {}
                    for number = 1, questions do
                        lines[number] = UNASKED
                    end
                    assert.same(lines, told())
                    assert.same({ { true, n = 1 } }, answers)
                    assert.equal(body == "Late" and 2 or 1, #calls)
                    assert.equal(body == "Sends" and 1 or 0, #rig:collected "out")
                    assert.equal(body == "Bad" and 1 or 0, #rig:collected "error")
                    assert.equal(0, stops())
                end)
            end
        end)
    end

    it("answers a settlement after its release, while the engine stops, changes nothing", function()
        start "answers=late"
        assert(rig.engine:publish("orders", "work", "Bad", { id = "m" }))
        rig.clock:turn()
        assert.equal(0, stops())
        assert.equal(1, rig:counts().dead_lettered)
        for _, line in ipairs(told()) do
            assert.equal(UNASKED, line)
        end
    end)

    describe("is down for an hour", function()
        local DOWN = "error: transport orders is down: it connects later, as connect= of its URL says"

        it("refuses what is published, and is taken up when it is there", function()
            start "connect=1h"
            rig:advance "3599999ms"
            assert.equal("down", select(3, rig:publish("work", "x")))
            assert.same({ DOWN }, told())
            rig:advance "1ms"
            assert.same({ { true, n = 1 } }, publish())
            rig:advance "1s"
            assert.same({ DOWN }, told())
            assert.same({ "m" }, calls)
            stop_well()
        end)

        it("keeps no stop waiting", function()
            start "connect=1h"
            rig:advance "30m"
            assert.equal(0, stops())
            assert.same({ DOWN }, told())
        end)
    end)

    it("refuses one queue of three stops its consumer, and no other", function()
        local function handler(msg)
            calls[#calls + 1] = msg.id
        end
        calls = {}
        rig = rigs.start("", handler, { url = "memory:?refuse=second", consumers = {
            A = { queue = "first", handler = handler },
            B = { queue = "second", handler = handler },
            C = { queue = "third", handler = handler },
        } })
        for _, queue in ipairs { "first", "second", "third" } do
            assert(rig:publish(queue, "x", { id = "of " .. queue }))
        end
        rig:advance "1h"
        assert.same({ "of first", "of third" }, calls)
        assert.same({ "error: consumer 'B' can't read the queue 'second': its URL says refuse= of this queue; leave "
            .. "that out" }, told())
        assert.equal("queue_refused", (rig.engine:why_not "B"))
        assert.equal(0, stops())
        assert.same({ ready = 1, delayed = 0, claimed = 0 }, (rig:depth "second"))
    end)

    describe("dies in the middle of a settlement", function()
        local FAILING = { times = 1000, code = "io" }
        local LOST = "warning: C: the claim on message m is gone: it was claimed for too long; it will be handed out "
            .. "again"
        local COULD_NOT = "error: C: message m could not be settled before the end; it will be handed out again"

        for body, ends in pairs { Late = { 2, 0, 0 }, Bad = { 1, 0, 1 }, Sends = { 1, 1, 0 } } do
            it("and comes back ends it with one copy: " .. body, function()
                start "settle=halfway"
                publish(body)
                rig:advance "1m"
                assert.same({ HALFWAY }, told())
                assert.same(ends, { #calls, #rig:collected "out", #rig:collected "error" })
                stop_well()
            end)
        end

        it("and comes back during a stop ends it with one copy", function()
            start "settle=halfway"
            publish "Bad"
            assert.equal(100, stops())
            assert.same({ HALFWAY }, told())
            assert.same({ ready = 0, delayed = 0, claimed = 0 }, (rig:depth "work"))
            assert.equal(1, rig:counts().dead_lettered)
        end)

        it("and never comes back leaves the message claimed, beside its copy, when a stop is over", function()
            start "settle=halfway"
            publish "Bad"
            rig:fault("settle", FAILING)
            rig:advance "10m"
            local took = stops()
            assert.is_true(took >= GRACE_MS and took <= GRACE_MS + DRAIN_MS, took)
            assert.same({ HALFWAY, COULD_NOT }, told())
            assert.equal(0, rig:counts().dead_lettered)
            assert.equal(1, (rig:depth "work").claimed)
            assert.equal(1, #rig:collected "error")
        end)

        it("and loses its claims makes one copy, and no more with each hand-out", function()
            calls = {}
            rig = rigs.start('bus:on("Bad"):dead_letter()', function(msg)
                calls[#calls + 1] = msg.id
                mulligan.error { type = "Bad" }
            end, { url = "memory:?settle=halfway&claim_timeout=50ms&hold=no" })
            publish()
            rig:advance "1m"
            assert.same({ HALFWAY, LOST }, told())
            assert.same({ 2, 2 }, { #calls, #rig:collected "error" })
            stop_well()
        end)

        -- Its copy is there, and so is the message: nothing is lost, one of them is handled besides.
        for body, called in pairs { Late = 3, Bad = 2 } do
            it("and loses its claims hands the message out again: " .. body, function()
                start "settle=halfway&claim_timeout=50ms&hold=no"
                publish(body)
                rig:advance "1m"
                assert.same({ HALFWAY, LOST }, told())
                assert.same({ called, body == "Bad" and 1 or 0 }, { #calls, #rig:collected "error" })
                assert.equal(2, rig:counts().done)
                stop_well()
            end)
        end
    end)
end)
