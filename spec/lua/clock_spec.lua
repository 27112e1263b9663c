-- The wall clock is set a day on or back, at every moment of a message's life at which that might
-- matter. The other clock, which never jumps, goes on.
local mulligan = require "mulligan"
local rigs = require "support.rigs"
local testing = require "mulligan.testing"

local DAY = 24 * 3600 * 1000

local function new_file()
    local path = os.tmpname()
    os.remove(path)
    return path
end

local function remove(path)
    for _, ending in ipairs { "", "-wal", "-shm", "-lock" } do
        os.remove(path .. ending)
    end
end

describe("a moment in a header", function()
    after_each(rigs.close)

    for _, ms in ipairs { 1, 951782399999, 951782400000, 1709164800007, 4102444799099, 253402300799999 } do
        it(("is written as RFC 3339 has it: %d ms"):format(ms), function()
            local rig = rigs.start("bus:default():dead_letter()", error, { clock = testing.clock(ms) })
            assert(rig:publish("work", "x"))
            assert.equal(os.date("!%Y-%m-%dT%H:%M:%S", ms // 1000) .. (".%03dZ"):format(ms % 1000),
                rig:collected("error")[1].headers["mulligan-last-failure"])
        end)
    end
end)

for _, kind in ipairs { "memory", "sqlite" } do
    describe("a wall clock that jumps, on " .. kind .. ":", function()
        local rig, clock, path, url

        before_each(function()
            path = new_file()
            clock = testing.clock()
            url = kind == "sqlite" and "sqlite:" .. path or "memory:"
        end)

        after_each(function()
            rigs.close()
            remove(path)
        end)

        -- start gives a rig whose handler's calls are noted: when they began, since the start.
        local function start(rules, handler, more, more_of_consumer)
            local began = {}
            more = more or {}
            more.clock, more.url = clock, url
            local from = clock:now()
            rig = rigs.start(rules, function(msg)
                began[#began + 1] = clock:now() - from
                if handler then
                    handler(msg)
                end
            end, more, more_of_consumer)
            return began
        end

        local function send(given)
            assert(rig:publish("work", "x", given))
        end

        local function fail()
            error("no")
        end

        local function ages()
            local list = {}
            for number, event in ipairs(rig:events("decided")) do
                list[number] = event.failure.age_ms
            end
            return list
        end

        for direction, backwards in pairs { ahead = false, back = true } do
            local function step()
                clock:step("24h", backwards)
            end

            it("a day " .. direction .. " moves no retry", function()
                local began = start('bus:default():retry { attempts = 4, delay = "10s", backoff = "constant" }', fail)
                send()
                for _ = 1, 4 do
                    rig:advance("5s")
                    step()
                    rig:advance("5s")
                end
                rig:advance("1h")
                assert.equal(5, #began)
                for number, at in ipairs(began) do
                    assert.is_true(at >= 7500 * (number - 1) and at <= 12500 * (number - 1), at)
                    assert.is_true(number == 1 or at - began[number - 1] >= 7500)
                end
                assert.equal(1, #rig:collected("error"))
            end)

            it("a day " .. direction .. " moves neither timeout nor sleep", function()
                local woke
                local began = start('bus:on("HandlerTimeoutError"):retry(1, 0)', function(msg)
                    if msg.attempt == 1 then
                        mulligan.sleep("1h")
                    end
                    mulligan.sleep("6s")
                    woke = clock:now()
                end, nil, { timeout = "10s" })
                send()
                rig:advance("5s")
                step()
                rig:advance("4999ms")
                assert.same({ 0 }, began)
                rig:advance("1ms")
                assert.same({ 0, 10000 }, began)
                step()
                rig:advance("6s")
                assert.equal(16000, woke)
                assert.equal(1, rig:counts().done)
            end)

            it("a day " .. direction .. " moves no grace time", function()
                local closed
                start("", function()
                    local _ <close> = setmetatable({}, {
                        __close = function()
                            closed = clock:now()
                        end,
                    })
                    mulligan.sleep("1h")
                end, { grace = "10s" }, { timeout = false })
                send()
                rig.engine:stop()
                rig:advance("5s")
                step()
                rig:advance("4999ms")
                assert.is_nil(closed)
                assert.is_false(rig.engine:stopped())
                rig:stop()
                assert.equal(10000, closed)
            end)

            it("a day " .. direction .. " between a failure and the next counts as it says", function()
                start([[
                    bus:max_age("2h")
                    bus:default():redeliver { attempts = 9, delay = "1h", backoff = "constant", jitter = 0 }]], fail)
                send()
                rig:advance("30m")
                step()
                rig:run_until_empty()
                for _, age in ipairs(ages()) do
                    assert.is_true(age >= 0, age)
                end
                local ignored = rig:events("header_ignored")
                assert.equal("max_age", rig:collected("error")[1].headers["mulligan-reason"])
                if backwards then
                    -- The first failure lies ahead: it is told, and the age begins anew.
                    assert.equal("mulligan-first-failure", ignored[1].text)
                    assert.same({ 0, 0, 3600000, 7200000 }, { table.unpack(ages(), 1, 4) })
                else
                    assert.same({}, ignored)
                    assert.equal(2, #ages())
                    assert.is_true(ages()[2] > DAY)
                end
            end)

            it("a day " .. direction .. " while the engine is busy loses and stalls nothing", function()
                local seed = os.time()
                local random = testing.random(seed)
                start([[
                    bus:on("Retried"):retry(2, "10s"):then_redeliver { "1m", "1h" }
                    bus:on("Redelivered"):redeliver { "1s", "1h", "30h" }
                    bus:default():dead_letter()]], function(msg)
                    mulligan.sleep(testing.random(#msg.id + msg.calls)(3) .. "s")
                    if msg.calls < tonumber(msg.headers.fails) then
                        mulligan.error { type = msg.headers.type }
                    end
                end, nil, { concurrency = 3 })
                local MESSAGES = 40
                for number = 1, MESSAGES do
                    send {
                        id = ("m%d"):format(number),
                        delay = random(2) == 1 and random(100) .. "m" or nil,
                        headers = {
                            type = random:pick { "Retried", "Redelivered", "Dead" },
                            fails = tostring(random(6) - 1),
                        },
                    }
                end
                for _ = 1, 20 do
                    rig:advance(random(1000) .. "s")
                    step()
                end
                rig:run_until_empty()
                local ends = rig:counts().done - #rig:collected("error") + rig:counts().dead_lettered
                assert.equal(MESSAGES, ends, "seed " .. seed)
                for _, age in ipairs(ages()) do
                    assert.is_true(age >= 0, "seed " .. seed)
                end
            end)
        end

        local REDELIVERED = 'bus:default():redeliver { attempts = 1, delay = "1h", jitter = 0 }'

        it("back: what waits for its time is due as if it hadn't been", function()
            local began = start(REDELIVERED, fail)
            send()
            send { delay = "2h" }
            rig:advance("30m")
            clock:step("24h", true)
            rig:advance("5h")
            -- Each of the two, and an hour later its redelivery.
            assert.same({ 0, 3600000, 7200000, 10800000 }, began)
        end)

        it("ahead: what waits for its time is due by the transport's own clock", function()
            local began = start(REDELIVERED, fail)
            send()
            send { delay = "2h" }
            rig:advance("30m")
            clock:step("24h")
            if kind == "sqlite" then
                -- It is found by looking, in real time. The limit is a watchdog.
                local watchdog = os.time() + 30
                while #began < 3 do
                    assert(os.time() < watchdog, "nothing happened for 30 s")
                    clock:turn()
                end
            end
            rig:advance("5h")
            if kind == "sqlite" then
                assert.same({ 0, 1800000, 1800000, 5400000 }, began)
            else
                assert.same({ 0, 3600000, 7200000, 10800000 }, began)
            end
        end)
    end)
end

describe("an engine that starts after the wall clock was set", function()
    local path

    before_each(function()
        path = new_file()
    end)

    after_each(function()
        rigs.close()
        remove(path)
    end)

    for direction, due in pairs { ahead = 0, back = 25 * 3600 * 1000 } do
        it(direction .. " goes by the new time for what was put off in its file", function()
            local clock, began = testing.clock(), nil
            local function start()
                return rigs.start("", function()
                    began = clock:now()
                end, { clock = clock, url = "sqlite:" .. path })
            end
            local rig = start()
            assert(rig:publish("work", "x", { delay = "1h" }))
            clock:step("24h", direction == "back")
            rig:close()
            rig = start()
            rig:run_until_empty()
            assert.equal(due, began)
        end)
    end
end)
