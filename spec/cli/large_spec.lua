-- Policies that are large in every way that a load lets through: check, table, explain and decide come to an end with
-- them, in little memory, and say where they stopped looking.
local json = require("mulligan").json
local process = require "support.process"

local CPU_S = 30 -- a watchdog: each takes a second or two, and took minutes or for ever

-- A sanitizer sees in a tenth what it sees in all: only time and memory differ.
local MANY = process.build:find "san$" and 2000 or 20000

local HEAD = "local MANY = " .. MANY .. [[ local policy = require "mulligan.policy"
local bus = policy.bus()
bus:default():retry(2):then_redeliver()
]]

describe("a large policy", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function run_with(given, body, ...)
        folder:write("policy.lua", HEAD .. body)
        local command = ("ulimit -t %d; exec \"$@\""):format(CPU_S)
        local done = folder:run({ "sh", "-c", command, "sh", process.mulligan, ... }, given)
        assert.same({ 0, "" }, { done.code, done.err })
        return done.out
    end

    local function run(body, ...)
        return run_with(nil, body, ...)
    end

    -- What check finds: a list of "line code".
    local function found(body)
        local findings = {}
        for number, finding in ipairs(json.decode(run(body, "check", "policy.lua", "--format", "json")).findings) do
            findings[number] = finding.line .. " " .. finding.code
        end
        return findings
    end

    -- ---- Many rules --------------------------------------------------------------------------------

    -- 20,000 rules for one type, each with a matcher of its own, and the one that two more rules stand behind.
    for matcher, hidden in pairs {
        ["{ status = i }"] = "{ status = MANY - 1.0 }",
        ['{ status = i % 100, code = "c" .. i }'] = '{ status = 99, code = "c" .. MANY - 1, host = "a" }',
        ["{ status = { i, -i, i + 0.5 } }"] = "{ status = { MANY - 0.5, MANY - 1 } }",
        ['{ message = policy.contains("text " .. i) }'] = '{ message = "some text " .. MANY - 1 }',
        ['{ message = policy.matches("text%s+" .. i) }'] =
            '{ message = policy.matches("text%s+" .. MANY - 1), host = "a" }',
        ["{ status = policy.is_not(i) }"] = "{ status = policy.is_not(MANY - 1) }",
        ['{ ["field" .. i] = policy.present }'] = '{ ["field" .. MANY - 1] = 1 }',
    } do
        it("is checked for rules that can't come into play among those with " .. matcher, function()
            assert.same({ "5 MUL002", "6 MUL002" }, found(([[
                for i = 1, MANY do bus:on("A", %s):retry(2) end
                bus:on("A", %s):retry(1)
                bus:on("A", %s):retry(1)]]):format(matcher, hidden, hidden)))
        end)
    end

    it("is checked for those behind 10,000 nests and functions", function()
        assert.same({ "6 MUL002", "7 MUL002" }, found [[
            local f = {} for i = 1, MANY // 2 do f[i] = function() return i end bus:on("A", f[i]):retry(2) end
            for i = 1, MANY // 4 do bus:on("A", policy.any({ a = i }, policy.none({ b = i }))):retry(2) end
            bus:on("A", f[MANY // 2 - 1]):retry(1)
            bus:on("A", policy.any({ a = MANY // 4 - 1 }, policy.none({ b = MANY // 4 - 1 }))):retry(1)]])
    end)

    it("is checked for those that 10,000 declarations take", function()
        assert.same({ "6 MUL003" }, found [[
            for i = 1, MANY // 2 do bus:unrecoverable("A", { x = i }) end
            for i = 1, MANY // 2 do bus:on("A", { x = -i }):retry(2) end
            bus:on("A", { x = MANY // 2 - 1 }):retry(2)]])
    end)

    it("is checked for matchers that never pass, however deep they are nested", function()
        assert.same({ "6 MUL009" }, found [[
            local never = policy.ctx { attempt = 0 }
            for _ = 1, 96 do never = policy.none(never) end
            bus:on("A", never):retry(2)]])
    end)

    it("is checked as far as it goes, and it is said where that ends", function()
        local body = [[
            for i = 1, 20000 do
                bus:on("A", { status = policy.between(i, i + 20000) }):retry(2)
            end]]
        assert.same({ "5 MUL018" }, found(body))
        local out = run(body, "check", "policy.lua")
        assert.is_truthy(out:find("^policy.lua:5: MUL018 from here on check hasn't looked for rules that can't come "
            .. "into play: it would take too long\n"), out:sub(1, 300))
    end)

    for name, body in pairs {
        ["settings of 1,500 consumers on 1,500 transports"] = [[
            for i = 1, 1500 do
                policy.consumer("C" .. i):max_age(i .. "m")
                policy.transport("T" .. i):max_attempts(i)
            end]],
        ["20,000 chains, each of its own"] = [[
            bus:max_age("100d")
            for i = 1, MANY do
                bus:on("T" .. i):retry { attempts = i % 1000, delay = i .. "ms", jitter = "full" }
                    :then_redeliver { attempts = i // 20, delay = i .. "s", jitter = "full" }
            end]],
        ["20,000 redeliveries without a limit"] = [[
            bus:max_age("365d")
            local slow = { attempts = "unlimited", delay = "1ms", backoff = "linear", max_delay = "365d" }
            for i = 1, MANY do bus:on("T" .. i):redeliver(slow) end]],
        ["20,000 consumers"] = 'for i = 1, MANY do policy.consumer("C" .. i):on("A"):retry(2) end',
        ["lists of 20,000 values"] = [[
            local up, down = {}, {}
            for i = 1, MANY do up[i], down[i] = "v" .. i, "v" .. MANY + 1 - i end
            bus:on("A", { field = up }):retry(2)
            bus:on("A", { field = down }):retry(2)
            bus:on("B", policy.all({ field = up }, { field = policy.is_not(down) })):retry(2)]],
        ["a list of 360,000 values and a long text"] = [[
            local list = {}
            for i = 1, 360000 do list[i] = i end
            list[1] = "text"
            bus:on("T1", { field = list }):retry(2)
            bus:on("T1", { field = ("x"):rep((8 << 20) - 64) }):retry(2)]],
        ["30,000 unrecoverable types and an override"] = [[
            for i = 1, 30000 do bus:unrecoverable("U" .. i) end
            bus:on("T1"):retry(1000):then_redeliver(1000)
            bus:override(function() end)]],
        ["a lineage of 10,000 types with rules and declarations"] = [[
            for i = 1, MANY // 2 do
                policy.errors { ["T" .. i] = i < MANY // 2 and "T" .. i + 1 or "MessageDeserializationError" }
                bus:on("T" .. i):retry(2)
            end
            for i = 1, 2000 do bus:unrecoverable("T" .. i, { x = i }) end]],
        ["rules that 200 consumers include"] = [[
            for i = 1, 200 do policy.consumer("C" .. i):include(bus) end
            for i = 1, 200 do bus:on("T" .. i):redeliver(0) end]],
    } do
        it("is looked at, of " .. name, function()
            for _, words in ipairs { { "check" }, { "table" }, { "explain", "--error", "T1" } } do
                assert.is_true(#run(body, words[1], "policy.lua", table.unpack(words, 2)) > 100)
            end
        end)
    end

    it("has its bounds, which are rough where finding them would take too long", function()
        local report = json.decode(run([[
            bus:max_age("365d")
            for i = 1, 2000 do
                bus:on("T" .. i):redeliver { attempts = "unlimited", delay = "1ms", backoff = "linear",
                    jitter = i / 2000, max_delay = "365d" }
            end]], "check", "policy.lua", "--format", "json"))
        local rules = report.bounds[1].rules
        assert.is_false(rules[1].rough) -- default(), which ends
        assert.is_true(rules[#rules].rough)
        assert.is_true(rules[#rules].longest_ms > 365 * 86400000)
    end)

    -- Shows the table and sees that it takes less than 200 MB, of which a sanitizer makes several.
    local function show_in_little_memory(body, format)
        folder:write("policy.lua", HEAD .. body)
        local pipe_path = folder:path("pipe-" .. format)
        assert(os.execute("mkfifo " .. pipe_path))
        local job = folder:start({ "sh", "-c", 'exec "$1" table policy.lua --format "$2" >"$3"', "sh", process.mulligan,
            format, pipe_path }, { env = { ASAN_OPTIONS = "quarantine_size_mb=1" } })
        local pipe, peak_kb = assert(io.open(pipe_path)), 0
        for _ in pipe:lines(65536) do
            local status = process.read("/proc/" .. job.pid() .. "/status")
            peak_kb = tonumber(status and status:match("VmHWM:%s*(%d+)")) or peak_kb
        end
        pipe:close()
        assert.equal(0, job.wait(), job.err())
        local most_kb = (process.build:find "san" and 1000 or 200) * 1024
        assert.is_true(peak_kb > 1000 and peak_kb < most_kb, peak_kb)
    end

    for _, format in ipairs { "text", "json" } do
        it("is shown in little memory, as " .. format, function()
            show_in_little_memory([[
                for i = 1, 20000 do
                    bus:on("T" .. i):retry(1 + i % 100, i .. "ms"):then_redeliver(i % 50 + 1, i .. "s")
                end]], format)
        end)

        it("is shown in little memory, of rules that have 1,000 delays in common, as " .. format, function()
            show_in_little_memory([[
                local types, delays = {}, {}
                for i = 1, 20000 do types[i] = "T" .. i end
                for i = 1, 1000 do delays[i] = i .. "s" end
                bus:on(types):retry(delays):then_redeliver(delays)]], format)
        end)

        it("is shown in little memory, of rules that have long texts in common, as " .. format, function()
            show_in_little_memory([[
                local text = ("t"):rep(4000)
                local matcher = { [text] = text }
                for i = 1, 20000 do bus:on("T" .. i, matcher):dead_letter(text) end]], format)
        end)
    end

    it("of 20,000 rules is shown as JSON with six steps of each tier, and one of 20 with all that are shown", function()
        for count, steps in pairs { [20] = 32, [20000] = 6 } do
            local shown = json.decode(run(('for i = 1, %d do bus:on("T" .. i):retry(100) end'):format(count), "table",
                "policy.lua", "--format", "json"))
            assert.equal(count + 1, #shown.rules)
            assert.equal(steps, #shown.rules[2].retry.steps)
        end
    end)

    it("has a timeline that is cut where it would take too long to walk", function()
        local out = run([[
            for i = 1, 10000 do bus:on("A", { status = i }):retry(2) end
            bus:on("A"):retry(1000):then_redeliver(1000)]], "explain", "policy.lua", "--error", "A")
        assert.is_truthy(out:find("it goes on like this, perhaps for ever: here it is cut\n", 1, true))
    end)

    it("decides on a long text by a part that almost stands in it", function()
        local body = [[
            for i = 1, 10 do bus:on("A", { message = policy.contains(("ab"):rep(250000) .. i) }):discard() end]]
        local failure = json.encode { error = { type = "A", message = ("ab"):rep(500000) } }
        local out = run_with({ stdin = failure .. "\n" }, body, "decide", "policy.lua")
        assert.equal("retry", json.decode(out).action)
    end)

    -- ---- Long names --------------------------------------------------------------------------------

    -- A name of 300,000 bytes, spaces among them, in each place where one may stand.
    local LONG = [[
        local function long(word) return word .. (" "):rep(100000) .. ("\u{e9}"):rep(99990) .. word end
        local consumer, transport = policy.consumer(long "consumer"), policy.transport(long "transport")
        policy.errors { [long "type"] = long "parent" }
        bus:dead_letter_queue(long "error queue")
        bus:on(long "type", { [long "field"] = long "value" }):retry { attempts = 2, hint = long "hint" }
        bus:on(long "type", { x = policy.contains(long "part") }):dead_letter(long "queue")
        local headers = { [long "header"] = long "value" }
        bus:on(long "type", policy.ctx { message = { headers = headers } }):discard(long "note")
        bus:on(long "type"):discard(long "note")
        bus:on_cause(long "cause"):discard()
        bus:unrecoverable(long "unrecoverable", { [long "field"] = 1 })
        consumer:include(bus)
        transport:on(long "type"):discard()
        transport:include(consumer)]]

    it("has its long names cut where they are shown", function()
        local long = json.decode(run(LONG, "table", "policy.lua", "--format", "json")).others[2].scope:sub(11)
        assert.is_true(#long > 290000)
        for _, words in ipairs {
            { "check" }, { "table" }, { "table", "--transport", "t" }, { "explain", "--error", "T" },
        } do
            local out = run(LONG, words[1], "policy.lua", table.unpack(words, 2))
            assert.is_true(#out > 200 and #out < 20000, #out)
            assert.is_truthy(utf8.len(out))
        end
        local failure = json.encode { error = { type = (long:gsub("transport", "type")), lineage = { long } } }
        local out = run_with({ stdin = failure }, LONG, "explain", "policy.lua", "--failure", "-")
        assert.is_true(#out > 200 and #out < 20000, #out)
        assert.is_truthy(out:find("... in a consumer without a scope", 1, true), out)
    end)

    it("has its long names cut in what is wrong with it", function()
        folder:write("policy.lua", HEAD .. [[
            local function long(word) return word .. ("x"):rep(100000) end
            policy.consumer(long "a"):include(policy.consumer(long "b"))
            policy.consumer(long "b"):include(policy.consumer(long "a"))
            policy.errors { [long "A"] = long "B" }
            policy.errors { [long "B"] = long "A" }
            policy.consumer(long "c"):default():redeliver { attempts = "unlimited" }]])
        local checked = folder:mulligan { "check", "policy.lua" }
        assert.equal(2, checked.code)
        local _, lines = checked.err:gsub("\n", "")
        assert.equal(3, lines, checked.err:sub(1, 1000))
        assert.is_true(#checked.err < 5000, #checked.err)
    end)

    it("has its long names cut in what run would refuse, between two characters", function()
        folder:write("policy.lua", HEAD .. 'bus:dead_letter_queue(("\\u{e9}"):rep(2000))')
        folder:write("service.lua", [[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("orders", "memory:")
            m.consumer("C", { transport = "orders", queue = ("\u{e9}"):rep(2000), handler = print })]])
        local checked = folder:mulligan { "check", "policy.lua", "--for", "service.lua", "--format", "json" }
        assert.same({ 2, "" }, { checked.code, checked.err })
        assert.equal(1, #json.decode(checked.out).problems)
    end)

    it("is loaded, of 1,800 scopes whose long names begin alike, in their order", function()
        local others = json.decode(run([[
            local long = ("x"):rep(8000)
            for i = 1, 1800 do policy.consumer(long .. i):max_age("1d") end]], "table", "policy.lua", "--format",
            "json")).others
        assert.equal(1800, #others)
        for number = 2, #others do
            assert.is_true(others[number - 1].scope < others[number].scope)
        end
    end)
end)
