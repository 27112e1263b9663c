-- Handlers of `mulligan run` that are servers, or make requests: real time, what cuts them off, the module.
require "mulligan"
local has_module = require("mulligan.core").has_http()
local process = require "support.process"
local queues = require "support.queues"
local server = require "support.server"

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
]]

describe("mulligan run, with HTTP,", function()
    if not has_module then
        pending "libcurl isn't installed (package libcurl4-openssl-dev), so there is no module http"
        return
    end

    local folder, url

    before_each(function()
        folder = process.folder { ["policy.lua"] = "" }
        url = server.start(folder)
    end)

    after_each(function()
        folder:remove()
    end)

    local function serve(consumer, count)
        folder:write("service.lua", SERVICE .. ('m.consumer("C", { transport = "orders", queue = "work", %s })\n')
            :format(consumer))
        local lines = {}
        for number = 1, count or 1 do
            lines[number] = number .. "\n"
        end
        local sent = folder:mulligan({ "send", "work", "--transport", "orders" }, { stdin = table.concat(lines) })
        assert.same({ code = 0, out = "", err = "" }, sent)
    end

    local function summary(done, redelivered, dead_lettered, discarded)
        return ("done %d, retried 0, redelivered %d, dead-lettered %d, discarded %d\n"):format(done, redelivered,
            dead_lettered, discarded)
    end

    it("waits as long as a server asks, and goes on", function()
        folder:write("policy.lua", [[require("mulligan.policy").bus():on("HttpError", { status = 429 })
            :redeliver { attempts = 3, delay = "1ms", hint = "retry_after" }]])
        serve(('handler = m.http "%s/status/429?times=1&retry=1"'):format(url))
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, summary(1, 1, 0, 0) }, { ran.code, ran.out }, ran.err)
        assert.matches("redelivery 1 of 3 in 1s", ran.err)
    end)

    it("cuts a request off at the timeout of its call", function()
        serve(('timeout = "200ms", handler = m.http "%s/never"'):format(url))
        local ran = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, summary(0, 0, 1, 0) }, { ran.code, ran.out }, ran.err)
        assert.equal("HandlerTimeoutError",
            queues.take("sqlite:" .. folder:path("orders.db"), "error")[1].headers["mulligan-error-type"])
    end)

    it("gives back what a stop cuts off", function()
        serve(('handler = m.http "%s/never"'):format(url))
        local job = folder:start_mulligan { "run" }
        process.await("the request", function()
            return job.err():find("policy_loaded", 1, true)
        end)
        job.kill("TERM")
        assert.equal(0, job.wait(), job.err())
        assert.same({ ready = 1, delayed = 0, claimed = 0 },
            queues.depth("sqlite:" .. folder:path("orders.db"), "work"))
    end)

    it("leaves nothing behind of 1,000 that are cut off anywhere", function()
        folder:write("policy.lua", 'require("mulligan.policy").bus():default():discard("cut off")')
        serve(([[concurrency = 32, timeout = "20ms", handler = function(msg)
            local ways = { "echo", "never", "drip", "reset", "status/500", "redirect/echo" }
            m.sleep(msg.body %% 15 .. "ms")
            m.fetch { url = "%s/" .. ways[msg.body %% #ways + 1], timeout = msg.body %% 7 + 1 .. "ms", raise = true }
        end]]):format(url), 1000)
        local ran = folder:mulligan { "run", "--until-empty", "--log-level", "error" }
        assert.equal(0, ran.code, ran.err)
        local done, discarded = ran.out:match("^done (%d+), .* discarded (%d+)\n$")
        assert.equal(1000, done + discarded)
        assert.is_true(discarded + 0 >= 333)
        assert.equal("", ran.err)
    end)

    it("needs its module, and says so in the handler's line", function()
        assert(os.execute(("cp '%s' '%s'"):format(process.mulligan, folder.root)))
        serve(('handler = m.http "%s/echo"'):format(url))
        local ran = folder:run { "./mulligan", "run", "--until-empty" }
        assert.same({ 2, "", "mulligan: service.lua:4: HTTP needs the package mulligan-http\n" },
            { ran.code, ran.out, ran.err })
        serve(('handler = function() m.fetch { url = "%s/echo" } end'):format(url))
        ran = folder:run { "./mulligan", "run", "--until-empty" }
        assert.same({ 0, summary(0, 0, 2, 0) }, { ran.code, ran.out }, ran.err)
        assert.matches(("Error: GET %s/echo: HTTP needs the package mulligan-http"):format(url), ran.err, 1, true)
    end)
end)
