-- mulligan run and send where a transport isn't up yet, a queue is refused, or nobody can count one.
-- Transports of memory: misbehave by their URLs; a program can't send to them, so service.lua does.
local process = require "support.process"

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("odd", os.getenv "ODD")
m.transport("well", "sqlite:well.db")

local methods = require("mulligan.core").engine_methods
local start = methods.start
function methods:start()
    if os.getenv "PUBLISH" then
        assert(self:publish("odd", "work", "one"))
    end
    if os.getenv "REFUSES" then
        self:fault("odd", "settle", { times = 1000, code = "refused" })
    end
    return start(self)
end

local function handled(msg)
    print("handled " .. msg.body)
end
m.consumer("Odd", { transport = "odd", queue = "work", handler = handled })
m.consumer("Well", { transport = "well", queue = "work", handler = handled })
]]

local RULES = 'require("mulligan.policy").bus():default():retry(1, "1ms")'
local NOTHING = "done 0, retried 0, redelivered 0, dead-lettered 0, discarded 0"

describe("a transport that misbehaves", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = SERVICE, ["policy.lua"] = RULES }
    end)

    after_each(function()
        folder:remove()
    end)

    local function send_well(lines)
        local sent = folder:mulligan({ "send", "work", "--transport", "sqlite:well.db" }, { stdin = lines })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function run(words, odd, env)
        env = env or {}
        env.ODD = odd
        return folder:mulligan({ "run", table.unpack(words) }, { env = env })
    end

    -- What the log says of the transport and its consumer, without the times.
    local function told(err)
        local lines = {}
        for level, words in err:gmatch "%S+Z (%l+) +([^\n]+)" do
            if words:find("^transport odd is") or words:find "^consumer 'Odd'" then
                lines[#lines + 1] = level .. ": " .. words
            end
        end
        return lines
    end

    local DOWN = "error: transport odd is down: it connects later, as connect= of its URL says"
    local REFUSED = "consumer 'Odd' can't read the queue 'work': its URL says refuse= of this queue; leave that out"

    describe("under run", function()
        it("is waited for while the others work, as long as it takes", function()
            send_well "one\n"
            local job = folder:start_mulligan({ "run" }, { env = { ODD = "memory:?connect=1h" } })
            process.await("the other transport's message", function()
                return job.out() == "handled one\n"
            end)
            job.kill("TERM")
            assert.equal(0, job.wait(), job.err())
            assert.same({ DOWN }, told(job.err()))
        end)

        it("is taken up when it comes up, in one line", function()
            local ended = run({ "--until-empty" }, "memory:?connect=50ms")
            assert.equal(0, ended.code, ended.err)
            assert.same({ DOWN, "info: transport odd is up" }, told(ended.err))
            assert.is_nil(ended.err:find("transport_up", 1, true), ended.err)
        end)

        it("stops the consumer of a queue that it refuses, and no other", function()
            send_well "one\n"
            local job = folder:start_mulligan({ "run" }, { env = { ODD = "memory:?refuse=work" } })
            process.await("the other consumer's message", function()
                return job.out() == "handled one\n"
            end)
            job.kill("TERM")
            assert.equal(0, job.wait(), job.err())
            assert.same({ "error: " .. REFUSED }, told(job.err()))
        end)

        for name, env in pairs { ["is empty"] = {}, ["has a message"] = { PUBLISH = "1" } } do
            it(("ends a run until empty in 1 where a refused queue %s, once the others are empty"):format(name),
                function()
                    send_well "one\n"
                    local ended = run({ "--until-empty" }, "memory:?refuse=work", env)
                    assert.equal(1, ended.code)
                    assert.equal("handled one\n" .. NOTHING:gsub("done 0", "done 1") .. "\n", ended.out)
                    assert.is_truthy(ended.err:find("\nmulligan: consumer 'Odd' can't read the queue 'work', so nobody "
                        .. "knows whether it is empty: its URL says refuse= of this queue; leave that out\n$"),
                        ended.err)
                end)
        end

        for _, depth in ipairs { "exact", "none" } do
            it("ends a run until empty in 1 where messages are parked, depth=" .. depth, function()
                local ended = run({ "--until-empty", "--quiet", "10ms" }, "memory:?depth=" .. depth,
                    { PUBLISH = "1", REFUSES = "1" })
                assert.same({ 1, "handled one\n" .. NOTHING .. "\n" }, { ended.code, ended.out })
                assert.is_truthy(ended.err:find("\nmulligan: 1 message%(s%) are parked, [^\n]+\n$"), ended.err)
            end)
        end
    end)

    describe("under run --quiet", function()
        for _, depth in ipairs { "rough", "none" } do
            it("is empty when it was quiet for so long, which the summary says: depth=" .. depth, function()
                local ended = run({ "--until-empty", "--quiet", "50ms" }, "memory:?depth=" .. depth, { PUBLISH = "1" })
                assert.same({
                    0,
                    "handled one\n" .. NOTHING:gsub("done 0", "done 1")
                        .. "; quiet for 50ms: not every queue can be counted\n",
                }, { ended.code, ended.out }, ended.err)
            end)
        end

        it("takes 0, and says nothing where all queues are counted", function()
            local ended = run({ "--until-empty", "--quiet=0" }, "memory:")
            assert.same({ 0, NOTHING .. "\n" }, { ended.code, ended.out }, ended.err)
        end)

        for words, wrong in pairs {
            ["--quiet 5s"] = "run: --quiet goes with --until-empty",
            ["--until-empty --quiet 5"] = 'run: --quiet "5" is no span of time',
            ["--until-empty --quiet"] = "run: --quiet needs a value",
        } do
            it("refuses " .. words, function()
                local list = {}
                for word in words:gmatch "%S+" do
                    list[#list + 1] = word
                end
                local ended = run(list, "memory:")
                assert.same({ 2, "" }, { ended.code, ended.out })
                assert.is_truthy(ended.err:find("^mulligan: [^\n]*\n$"), ended.err)
                assert.is_truthy(ended.err:find(wrong, 1, true), ended.err)
            end)
        end
    end)

    describe("under send", function()
        -- It is called sqlite: until it is opened, since nobody may send to memory:. Its file "took"
        -- has what was taken.
        local STAND_IN = [[
            require("mulligan").transport("odd", "sqlite:odd.db")
            local methods = require("mulligan.core").engine_methods
            local transport, publish = methods.transport, methods.publish
            local took, calls = assert(io.open("took", "w")), 0
            function methods:transport(name)
                return transport(self, name, os.getenv "ODD")
            end
            function methods:publish(name, queue, body, ...)
                calls = calls + 1
                if calls > tonumber(os.getenv "CALLS" or "1000") then
                    return nil, "transport 'odd' is down: cut off", "down"
                end
                local well, why, kind = publish(self, name, queue, body, ...)
                if well then
                    took:write(body, "\n")
                end
                return well, why, kind
            end]]

        local function send(words, env, lines)
            folder:write("service.lua", STAND_IN)
            return folder:mulligan({ "send", "work", "--transport", "odd", table.unpack(words) }, {
                stdin = lines or "one\ntwo\nthree\n",
                env = env,
            })
        end

        local WHY = "mulligan: send: transport 'odd' is down: it connects later, as connect= of its URL says\n"

        it("is waited for, and gets each message once", function()
            for _, words in ipairs { {}, { "--wait", "1h" }, { "--id", "a" } } do
                local one = words[1] == "--id"
                local sent = send(words, { ODD = "memory:?connect=50ms" }, one and "one\n" or nil)
                assert.same({ code = 0, out = "", err = "" }, sent)
                assert.equal(one and "one\n" or "one\ntwo\nthree\n", folder:read "took")
            end
        end)

        for _, wait in ipairs { "0", "0s", "50ms" } do
            it("is named with its reason, once --wait is over: " .. wait, function()
                local sent = send({ "--wait", wait }, { ODD = "memory:?connect=1h" })
                assert.same({ code = 1, out = "", err = WHY .. "mulligan: send: 0 messages are safe\n" }, sent)
                assert.equal("", folder:read "took")
            end)
        end

        it("costs nothing that was safe before", function()
            local sent = send({ "--wait", "10ms" }, { ODD = "memory:", CALLS = "2" })
            assert.same({
                code = 1,
                out = "",
                err = "mulligan: send: transport 'odd' is down: cut off\nmulligan: send: 2 messages are safe\n",
            }, sent)
            assert.equal("one\ntwo\n", folder:read "took")
        end)

        it("comes up while a pipe gives nothing yet, and gets the line that comes late", function()
            folder:write("service.lua", STAND_IN .. [[

            local run = methods.run
            function methods:run()
                local function look()
                    if self:snapshot().transports[1].health == "up" then
                        assert(io.open("is_up", "w")):close()
                    else
                        self:after("1ms", look)
                    end
                end
                self:after(0, look)
                return run(self)
            end]])
            assert(os.execute("mkfifo " .. folder:path "pipe"))
            local job = folder:start({
                "sh", "-c", 'exec "$1" send work --transport odd --wait 1h <pipe', "sh", process.mulligan,
            }, { env = { ODD = "memory:?connect=50ms" } })
            local pipe = assert(io.open(folder:path "pipe", "w"))
            process.await("the transport", function()
                return folder:read "is_up"
            end)
            pipe:write "late\n"
            pipe:close()
            assert.equal(0, job.wait(), job.err())
            assert.equal("late\n", folder:read "took")
        end)

        it("isn't waited for where there is nothing to send", function()
            assert.same({ code = 0, out = "", err = "" }, send({}, { ODD = "memory:?connect=1h" }, ""))
        end)

        it("refuses a --wait that is no span of time", function()
            local sent = send({ "--wait", "5" }, { ODD = "memory:" })
            assert.equal(2, sent.code)
            assert.is_truthy(sent.err:find('^mulligan: send: %-%-wait "5" is no span of time: [^\n]+\n$'), sent.err)
            assert.is_nil(folder:read "odd.db")
        end)
    end)
end)
