-- The simulators: 1,000 seeds of each in every run. MULL_SEEDS=FIRST-LAST runs others.
local process = require "support.process"

-- A program, where its page and its bugs are, and a step that each seed has.
local simulators = {
    { name = "simulate", folder = "spec/simulate", step = "process 0 starts" },
    { name = "simulate_amqp", folder = "spec/simulate/amqp", step = "the transport is opened", of_amqp = true },
}

local function test(one)
    -- What it prints, and whether it ended well.
    local function run(words)
        local pipe = assert(io.popen(("timeout 500 %s/spec/%s %s 2>&1"):format(process.build, one.name, words)))
        local output = pipe:read("a")
        return output, pipe:close() == true
    end

    it("finds nothing wrong", function()
        local seeds = os.getenv("MULL_SEEDS") or "1-1000"
        local output, good = run("--seeds " .. seeds)
        assert.is_true(good, output)
        local first, last = seeds:match("^(%d+)%-(%d+)$")
        local count = output:match("\n(%d+) seeds, %d+ steps, 0 violations\n$")
        assert.equal(last - first + 1, tonumber(count), output)
        -- All that can happen did happen, so that all was looked at.
        for name, times in output:gmatch("([%l_]+) (%d+)\n") do
            assert.is_true(tonumber(times) > 0, name .. " never happened")
        end
    end)

    -- Each showed a fault of the engine that a few in a hundred thousand show.
    it("finds nothing where it once did", function()
        for _, seed in ipairs { 17001 } do
            local output, good = run("--seed " .. seed)
            assert.is_true(good, output)
        end
    end)

    it("does the same again by the same seed", function()
        local output, good = run("--twice 1-50")
        assert.is_true(good, output)
    end)

    it("tells every step, which changes nothing", function()
        local short, good = run("--seed 7")
        assert.is_true(good, short)
        local hash = short:match("^seed 7: hash (%x+)\n")
        local long = run("--seed 7 --trace")
        assert.equal(hash, long:match("\nseed 7: hash (%x+)\n"))
        assert.is_truthy(long:find(one.step, 1, true))
        assert.are_not.equal(hash, run("--seed 8"):match("^seed 8: hash (%x+)\n"))
    end)

    it("refuses what it doesn't know", function()
        for _, words in ipairs { "--seeds 9-1", "--seeds x", "--seed", "--more", "--seed -1" } do
            local output, good = run(words)
            assert.is_false(good)
            assert.is_truthy(output:find("usage: " .. one.name .. " ", 1, true), words)
        end
    end)

    it("has a page that lists its bugs", function()
        local page = process.read(one.folder .. "/README.md")
        local listed, there = {}, {}
        for name in page:gmatch("\n| `([%w-]+)` |") do
            listed[#listed + 1] = name
        end
        for path in io.popen(("ls %s/bugs/*.patch"):format(one.folder)):lines() do
            there[#there + 1] = path:match("([%w-]+)%.patch$")
        end
        table.sort(listed)
        table.sort(there)
        assert.same(there, listed)
    end)
end

for _, one in ipairs(simulators) do
    describe("the simulator " .. one.name, function()
        if one.of_amqp and not process.read(process.build .. "/modules/amqp.so") then
            it("runs", function()
                pending "there is no librabbitmq"
            end)
        else
            test(one)
        end
    end)
end
