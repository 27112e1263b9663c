-- Runs examples/orders and compares its summary with what must come out, computed here from the
-- orders alone: what goes wrong with which, and what the policy says to that.
local process = require "support.process"
local rabbitmq = require "support.rabbitmq"

local program = os.getenv("MULLIGAN") or "build/dev/mulligan"

local function run(command)
    local pipe = assert(io.popen(command))
    local output = pipe:read("a")
    assert.is_true(pipe:close(), output)
    return output
end

-- What becomes of one order or invoice. `ends` is "done", "dead-lettered" or "discarded".
local function outcome(ends, retried, redelivered, queue)
    return { ends = ends, retried = retried or 0, redelivered = redelivered or 0, queue = queue }
end

local function of_order(number)
    if number % 40 == 0 then -- cut off: unreadable
        return outcome("dead-lettered", 0, 0, "error")
    elseif number % 20 == 7 then -- no such address
        return outcome("dead-lettered", 0, 0, "invalid-orders")
    elseif number % 25 == 11 then -- a duplicate
        return outcome("discarded")
    elseif number % 10 == 3 then -- a deadlock: three retries, then another delivery, which goes well
        local fails = 1 + number // 10 % 5
        return outcome("done", math.min(fails, 3), fails > 3 and 1 or 0)
    elseif number % 10 == 9 then -- the warehouse is down: three deliveries more
        local fails = 1 + number // 10 % 4
        if fails > 3 then
            return outcome("dead-lettered", 0, 3, "error")
        end
        return outcome("done", 0, fails)
    end
    return outcome("done")
end

local function of_invoice(number)
    if number % 25 == 2 then -- a full mailbox: one more try
        if number // 25 % 2 == 1 then
            return outcome("dead-lettered", 1, 0, "unsent-invoices")
        end
        return outcome("done", 1)
    end
    return outcome("done")
end

-- The summary, and the depth of each dead letter queue, from the lines that were sent.
local function expect(lines)
    local sum = { done = 0, retried = 0, redelivered = 0, ["dead-lettered"] = 0, discarded = 0 }
    local queues = { error = 0, ["invalid-orders"] = 0, ["unsent-invoices"] = 0 }
    local function add(result)
        sum[result.ends] = sum[result.ends] + 1
        sum.retried = sum.retried + result.retried
        sum.redelivered = sum.redelivered + result.redelivered
        if result.queue then
            queues[result.queue] = queues[result.queue] + 1
        end
    end
    local number = 0
    for _ in lines:gmatch("[^\n]+") do
        number = number + 1
        local order = of_order(number)
        add(order)
        if order.ends == "done" then
            add(of_invoice(number))
        end
    end
    return sum, queues
end

-- How many messages wait in each of the queues named.
local function depths(file, names)
    local mulligan = require "mulligan"
    local policy = assert(mulligan.load_text(""))
    local engine = assert(mulligan.engine { policy = policy })
    assert(engine:transport("orders", "sqlite:" .. file))
    local found, open = {}, 0
    for name in pairs(names) do
        open = open + 1
        assert(engine:depth("orders", name, function(depth)
            found[name] = depth.ready
            open = open - 1
            if open == 0 then
                engine:stop()
            end
        end))
    end
    assert(engine:run())
    engine:close()
    policy:close()
    return found
end

-- compete has two processes work until nothing is left, and adds their summaries up. Each has something to do.
local function compete(folder, environment)
    local jobs, sum = {}, {}
    for number = 1, 2 do
        jobs[number] = folder:start_mulligan({ "run", "--until-empty", "--quiet", "3s" }, { env = environment })
    end
    for _, job in ipairs(jobs) do
        assert.equal(0, job.wait(), job.err())
        assert.matches("^done [1-9]", job.out())
        for what, count in job.out():match("^[^;\n]*"):gmatch "([%a-]+) (%d+)" do
            sum[what] = (sum[what] or 0) + math.tointeger(count)
        end
    end
    return sum
end

describe("examples/orders", function()
    local folder

    before_each(function()
        folder = os.tmpname()
        os.remove(folder)
        run("cp -r examples/orders '" .. folder .. "' && rm -f '" .. folder .. "'/orders.db*")
    end)

    after_each(function()
        run("rm -rf '" .. folder .. "'")
    end)

    it("ends with the numbers that its orders and its policy give", function()
        local lines = run("lua5.4 '" .. folder .. "/make-orders.lua'")
        assert.equal(1000, select(2, lines:gsub("\n", "")))
        local sum, queues = expect(lines)

        local output = run(("timeout 120 '%s/run.sh' '%s' 2>'%s/log'"):format(folder, program, folder))
        local got = {}
        for what in pairs(sum) do
            got[what] = tonumber(output:match("%f[%a-]" .. what:gsub("%-", "%%-") .. " +(%d+)"))
        end
        assert.same(sum, got, output)
        assert.same(queues, depths(folder .. "/orders.db", queues))
    end)

    describe("on RabbitMQ, with nothing changed but its URL", function()
        local server, copy

        after_each(function()
            for _, open in pairs { server, copy } do
                open:remove()
            end
        end)

        it("ends with the same numbers, by two processes that compete", function()
            local why
            server, why = rabbitmq.start()
            if not server then
                return pending(why)
            end
            copy = process.folder()
            copy:run { "cp", "-r", folder .. "/.", "." }
            local environment = { ORDERS_URL = server.url }
            local lines = copy:run({ "lua5.4", "make-orders.lua" }).out
            -- The queues are there first: while a new one elects its leader, the server refuses messages that it may
            -- keep all the same, and they are sent again.
            assert.equal(0, copy:mulligan({ "run", "--until-empty", "--quiet", "1s" }, { env = environment }).code)
            local sent = copy:mulligan({ "send", "orders", "--transport", "orders" }, {
                stdin = lines, env = environment,
            })
            assert.same({ code = 0, out = "", err = "" }, sent)
            local sum, queues = expect(lines)
            assert.same(sum, compete(copy, environment))
            server:await_depths(queues)
        end)
    end)

    it("makes the same orders each time", function()
        local command = "lua5.4 '" .. folder .. "/make-orders.lua'"
        assert.equal(run(command), run(command))
    end)
end)
