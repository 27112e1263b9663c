-- mulligan check, and the program's own words.
local json = require("mulligan").json
local mulligan = require "mulligan"
local pages = require "support.pages"
local process = require "support.process"

describe("mulligan", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function run(...)
        return folder:mulligan { ... }
    end

    describe("check", function()
        it("says how much there is", function()
            folder:write("policy.lua", [[
                local policy = require "mulligan.policy"
                policy.bus():on("A"):retry()
                policy.bus():default():discard()
                policy.consumer("C"):default():redeliver()
            ]])
            local checked = run("check", "policy.lua")
            assert.same({ 0, "" }, { checked.code, checked.err })
            assert.is_truthy(checked.out:find("policy.lua: 3 rules in 2 scopes\n", 1, true), checked.out)
            assert.equal(0, run("check", "policy.lua", "--strict").code)
            local found = json.decode(run("check", "--format", "json", "policy.lua").out)
            local policy = assert(mulligan.load(folder:path("policy.lua")))
            assert.equal(2, #found.bounds)
            found.bounds = nil
            assert.same({ ok = true, rules = 3, scopes = 2, generation = policy:generation(), problems = {},
                findings = {} }, found)
            policy:close()
        end)

        it("says how many calls, how soon and how late", function()
            folder:write("policy.lua", [[
                local bus = require("mulligan.policy").bus()
                bus:default():retry { "1s", "2s" }:then_redeliver { "1m" }
            ]])
            local out = run("check", "policy.lua").out
            assert.is_truthy(out:find("\nbus, by any of its rules +6 +0ms +3m36s +3m6s\n"), out)
            assert.is_truthy(out:find("\n  policy.lua:2 Error +6 +1m6s +3m36s +3m6s\n"), out)
            assert.is_truthy(out:find("each call may take 30s", 1, true), out)
            local bounds = json.decode(run("check", "policy.lua", "--format", "json").out).bounds
            assert.same({ {
                scope = "bus", calls = 6, shortest_ms = 0, longest_ms = 216000, last_call_ms = 186000, rough = false,
                overridden = false, default = true,
                rules = { {
                    file = "policy.lua", line = 2, scope = "bus", type = "Error", cause = false, matcher = false,
                    calls = 6, shortest_ms = 66000, longest_ms = 216000, last_call_ms = 186000, rough = false,
                } },
            } }, bounds)
        end)

        it("says what its page shows", function()
            folder:write("policy.lua", pages.blocks("docs/check.md", "lua")[1].text)
            local shown = pages.read("docs/check.md"):match("Of this policy it says:\n\n(.-)\n\n|"):gsub("\n    ", "\n")
            assert.equal(shown:gsub("^    ", "") .. "\n", run("check", "policy.lua").out)
        end)

        it("finds a policy without rules suspicious", function()
            folder:write("policy.lua", "")
            local checked = run("check", "policy.lua")
            assert.equal(0, checked.code)
            assert.is_truthy(checked.out:find("policy.lua: MUL013 the policy has no rules", 1, true))
            assert.equal(1, run("check", "policy.lua", "--strict").code)
            assert.equal(1, #json.decode(run("check", "policy.lua", "--format", "json").out).findings)
        end)

        it("lists every mistake, with its place as seen from here", function()
            folder:write("deep/policy.lua", 'local bus = require("mulligan.policy").bus()\nbus:on("A")\nbus:buss()\n')
            local checked = run("check", "deep/policy.lua")
            assert.same({ 2, "" }, { checked.code, checked.out })
            local first, second, rest = checked.err:match("^(mulligan: [^\n]+)\n(mulligan: [^\n]+)\n(.*)$")
            assert.is_truthy(first:find("mulligan: deep/policy.lua:2: ", 1, true), checked.err)
            assert.is_truthy(second:find("mulligan: deep/policy.lua:3: ", 1, true), checked.err)
            assert.equal("", rest)
            checked = run("check", "deep/policy.lua", "--format=json")
            assert.equal(2, checked.code)
            local found = json.decode(checked.out)
            assert.is_false(found.ok)
            assert.same({ 2, 3 }, { found.problems[1].line, found.problems[2].line })
            assert.equal("deep/policy.lua", found.problems[1].file)
        end)

        it("says when there is no such file", function()
            local checked = run("check", "nope.lua")
            assert.equal(2, checked.code)
            assert.is_truthy(checked.err:find("^mulligan: nope.lua: [^\n]+\n$"), checked.err)
        end)

        it("knows a service.lua when it sees one", function()
            folder:write("service.lua", [[
                local m = require "mulligan"
                m.policy "policy.lua"
                m.transport("t", "memory:")
                m.consumer("C", { transport = "t", queue = "q", handler = function() m.sleep "1s" end })]])
            assert.same({
                code = 2,
                out = "",
                err = 'mulligan: service.lua:1: require("mulligan"): a policy has "mulligan.policy"; '
                    .. "this looks like a service.lua, whose policy is what m.policy names\n",
            }, run("check", "service.lua"))
        end)

        it("wants a file, not a URL, and shows no password of one", function()
            local function refuses(words, given, shown)
                table.insert(words, 2, given)
                assert.same({ code = 2, out = "",
                    err = "mulligan: " .. shown .. ": this is a URL; a policy is a file\n" }, folder:mulligan(words))
            end
            for _, words in ipairs { { "check" }, { "table" }, { "decide" }, { "explain", "--error", "E" } } do
                refuses(words, "amqp://guest:hunter2@localhost", "amqp://***@localhost")
            end
            refuses({ "check" }, "amqp://guest:hunter2@localhost/", "amqp://***@localhost/")
            refuses({ "check" }, "amqp:/guest:hunter2@localhost", "amqp:/***@localhost")
            refuses({ "check" }, "amqp:guest:hunter2@localhost", "amqp:***@localhost")
            refuses({ "check" }, "redis://localhost", "redis://localhost")
        end)

        it("wants a file, not a folder or nothing", function()
            folder:write("dir/policy.lua", "")
            folder:write("policy.lua", "")
            assert.same({ code = 2, out = "", err = "mulligan: dir/: this is a folder; a policy is a file\n" },
                run("check", "dir/"))
            local checked = run("check", "dir")
            assert.same({ 2, "" }, { checked.code, checked.out })
            assert.is_truthy(checked.err:find("^mulligan: dir: [^\n]*Is a directory\n$"), checked.err)
            for _, words in ipairs { { "check", "" }, { "run", "" }, { "check", "--format", "json", "--", "" } } do
                checked = folder:mulligan(words)
                assert.same({ 2, "" }, { checked.code, checked.out })
                assert.is_truthy(checked.err:find("^mulligan: %l+: a word is empty; usage: [^\n]*\n$"), checked.err)
            end
        end)

        it("shows what a policy prints, on stderr", function()
            folder:write("policy.lua", 'print("one", 2)\nprint("a\\nb")\nrequire("mulligan.policy").bus():buss()')
            local checked = run("check", "policy.lua", "--format", "json")
            assert.same({ 2, "one 2\na b\n" }, { checked.code, checked.err })
            assert.equal(1, #json.decode(checked.out).problems)
            folder:write("policy.lua", 'print("once")')
            checked = run("check", "policy.lua")
            assert.same({ 0, "once\n" }, { checked.code, checked.err })
        end)

        describe("--for", function()
            local function write(policy, consumers, url)
                folder:write("policy.lua", policy)
                folder:write("service.lua", ([[
                    local m = require "mulligan"
                    m.policy "policy.lua"
                    m.transport("orders", %q)
                    %s]]):format(url or "memory:", consumers))
            end

            local function consumer(name, queue, more)
                return ('m.consumer(%q, { transport = "orders", queue = %q, handler = print%s })\n'):format(name, queue,
                    more or "")
            end

            local function codes()
                local checked = run("check", "policy.lua", "--for", "service.lua", "--format", "json")
                assert.same({ 0, "" }, { checked.code, checked.err })
                local found = {}
                for number, finding in ipairs(json.decode(checked.out).findings) do
                    found[number] = ("%s:%s %s"):format(finding.file, finding.line, finding.code)
                end
                return found, json.decode(checked.out)
            end

            local plain = 'require("mulligan.policy").bus():default():retry { "1s" }\n'

            it("finds nothing where all is well, and knows the timeouts", function()
                write(plain, consumer("A", "a", ', timeout = "5s"') .. consumer("B", "b", ', timeout = "2s"'))
                local found, all = codes()
                assert.same({}, found)
                assert.same({ 6000, 6000 }, { all.bounds[1].longest_ms, all.bounds[1].rules[1].longest_ms })
                write(plain, consumer("A", "a", ", timeout = false"))
                found, all = codes()
                assert.same({}, found)
                assert.is_nil(all.bounds[1].longest_ms)
                local text = run("check", "policy.lua", "--for", "service.lua").out
                assert.is_truthy(text:find("bus, by any of its rules +2 +0ms +none +none\n"), text)
                assert.is_nil(text:find("each call may take", 1, true))
            end)

            it("finds dead letters that a consumer reads", function()
                write(plain, consumer("A", "a") .. consumer("Monitor", "error"))
                folder:write("policy.lua", plain
                    .. 'require("mulligan.policy").consumer("Monitor"):dead_letter_queue("x")')
                assert.same({ "service.lua:5 MUL015" }, (codes()))
            end)

            -- What is refused, a list of "file:line", and all that was said.
            local function refused()
                local checked = run("check", "policy.lua", "--for", "service.lua", "--format", "json")
                assert.same({ 2, "" }, { checked.code, checked.err })
                local all, places = json.decode(checked.out), {}
                assert.is_false(all.ok)
                for number, problem in ipairs(all.problems) do
                    places[number] = ("%s:%s"):format(problem.file, problem.line)
                end
                return places, all
            end

            it("refuses what run would refuse, as run says it", function()
                write(plain, consumer("A", "error"))
                assert.same({ "service.lua:nil" }, (refused()))
                assert.equal(run("run").err, run("check", "policy.lua", "--for", "service.lua").err)
                write(plain, consumer("A", "a"), "memory:?claim_timeout=2s&hold=no")
                local places, all = refused()
                assert.same({ "policy.lua:1" }, places)
                assert.same({ 1, {}, 1 }, { all.rules, all.findings, #all.bounds })
                local checked = run("check", "policy.lua", "--for", "service.lua", "--strict")
                assert.equal(2, checked.code)
                assert.equal(run("run").err, checked.err)
                assert.matches("^policy.lua: 1 rule in 1 scope\n\n", checked.out)
                write(plain, consumer("A", "a"), "memory:?claim_timeout=2s")
                assert.same({}, (codes()))
                write(plain, consumer("A", "a"), "memory:?frob=yes")
                assert.same({ "service.lua:3" }, (refused()))
                assert.equal(run("run").err, run("check", "policy.lua", "--for", "service.lua").err)
                write(plain, consumer("A", "a"), "nats://me:secret@host")
                places, all = refused()
                assert.same({ "service.lua:3" }, places)
                assert.is_nil(all.problems[1].text:find("secret", 1, true))
            end)

            it("refuses limits that put messages back where the transport can't delay", function()
                for limit, word in pairs {
                    ["rate_limit { after = 3, per = \"key\" }"] = "rate_limit with `per`",
                    ["rate_limit { after = 3, keep = true }"] = "rate_limit with `keep`",
                    ["limit { rate = \"9/s\", per = \"type\" }"] = "limit with `per`",
                } do
                    local policy = plain .. 'require("mulligan.policy").bus():' .. limit
                    write(policy, consumer("A", "a"), "memory:?delay=no")
                    local places, all = refused()
                    assert.same({ "policy.lua:2" }, places)
                    assert.equal(1, all.problems[1].text:find(word, 1, true))
                    local checked = run("check", "policy.lua", "--for", "service.lua")
                    assert.equal(run("run").err, checked.err)
                    write(policy, consumer("A", "a"))
                    assert.same({}, (codes()))
                end
                write(plain .. 'local bus = require("mulligan.policy").bus()\n'
                    .. 'bus:rate_limit { after = 3 }; bus:limit { rate = "9/s" }', consumer("A", "a"),
                    "memory:?delay=no")
                assert.same({}, (codes()))
            end)

            it("finds delays beyond the transport's longest", function()
                write('require("mulligan.policy").bus():default():redeliver { "2h" }\n', consumer("A", "a"),
                    "memory:?longest_delay=1h")
                assert.same({ "policy.lua:1 MUL016" }, (codes()))
            end)

            it("finds scopes of consumers and transports that aren't there", function()
                write(plain .. [[
                    local policy = require "mulligan.policy"
                    policy.consumer("Paymnt"):max_attempts(9)
                    policy.consumer("Payment"):max_attempts(9)
                    policy.transport("order"):max_attempts(9)
                    policy.transport("orders"):max_attempts(9)
                ]], consumer("Payment", "a"))
                local found, all = codes()
                assert.same({ "policy.lua:3 MUL017", "policy.lua:5 MUL017" }, found)
                assert.equal('there is no consumer "Paymnt"; did you mean "Payment"?', all.findings[1].text)
                assert.equal('there is no transport "order"; did you mean "orders"?', all.findings[2].text)
            end)

            it("opens, makes and runs nothing", function()
                write(plain, consumer("A", "a"), "sqlite:never.db")
                assert.same({}, (codes()))
                assert.is_nil(folder:read("never.db"))
            end)

            it("knows a policy when it sees one, as run does", function()
                write(plain, consumer("A", "a"))
                for _, words in ipairs { { "check", "policy.lua", "--for", "policy.lua" }, { "run", "policy.lua" } } do
                    assert.same({
                        code = 2,
                        out = "",
                        err = 'mulligan: policy.lua:1: require("mulligan.policy"): a service.lua has "mulligan"; '
                            .. "this looks like a policy, which m.policy names\n",
                    }, run(table.unpack(words)))
                end
            end)

            it("lists what is wrong with the service.lua", function()
                write(plain, 'm.consumer("A", { transport = "order", queue = "q", handler = print })')
                local checked = run("check", "policy.lua", "--for", "service.lua")
                assert.same({ 2, "" }, { checked.code, checked.out })
                assert.is_truthy(checked.err:find("mulligan: service.lua:4: consumer \"A\": there is no transport", 1,
                    true), checked.err)
                assert.equal(2, run("check", "policy.lua", "--for", "nope.lua").code)
                write(plain, "")
                assert.is_truthy(run("check", "policy.lua", "--for", "service.lua").err:find("no m.consumer", 1, true))
            end)
        end)
    end)

    -- Runs the program by a shell, with its output as `redirected`.
    local function run_redirected(redirected, ...)
        return folder:run { "sh", "-c", 'exec "$0" "$@" ' .. redirected, process.mulligan, ... }
    end

    it("says when it can't write", function()
        folder:write("policy.lua", "")
        folder:write("service.lua", [[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("t", "memory:")
            m.consumer("C", { transport = "t", queue = "q", handler = print })]])
        for _, words in ipairs { { "check", "policy.lua" }, { "check", "policy.lua", "--format", "json" }, { "--help" },
            { "check", "--help" }, { "--version" }, { "run", "--until-empty", "--log-level", "error" } } do
            local ended = run_redirected(">/dev/full", table.unpack(words))
            assert.same({ code = 1, out = "", err = "mulligan: stdout: No space left on device\n" }, ended)
        end
        folder:write("policy.lua", "x =")
        assert.equal(2, run_redirected(">/dev/full", "check", "policy.lua", "--format", "json").code)
    end)

    it("works with stdin, stdout and stderr closed", function()
        folder:write("policy.lua", "")
        folder:write("service.lua", [[
            local m = require "mulligan"
            m.policy "policy.lua"
            m.transport("t", "sqlite:q.db")
            m.consumer("C", { transport = "t", queue = "q", handler = function(msg)
                print(msg.body)
                assert(io.open("ledger", "a")):write(msg.body, "\n"):close()
            end })]])
        folder:write("body", "x")
        for _, closed in ipairs { "<&-", ">&-", "2>&-", "<&- >&- 2>&-" } do
            assert.equal(0, run_redirected(closed, "check", "policy.lua").code, closed)
            assert.equal(0, run_redirected(closed, "send", "q", "--transport", "t").code, closed)
            assert.equal(0, run_redirected(closed, "send", "q", "--transport", "t", "body").code, closed)
            assert.equal(0, run_redirected(closed, "run", "--until-empty").code, closed)
        end
        assert.equal("x\nx\nx\nx\n", folder:read("ledger"))
    end)

    it("tells its version", function()
        assert.same({ code = 0, out = "mulligan " .. mulligan.version .. "\n", err = "" }, run "--version")
    end)

    it("helps, with the commands that are there", function()
        local help = run "--help"
        assert.same({ 0, "" }, { help.code, help.err })
        for _, name in ipairs { "run", "send", "check", "table", "explain", "decide" } do
            assert.is_truthy(help.out:find("\n  " .. name .. " ", 1, true), help.out)
            local more = run(name, "--help")
            assert.same({ 0, "" }, { more.code, more.err })
            assert.is_truthy(more.out:find("^usage: mulligan " .. name), more.out)
        end
        for _, name in ipairs { "reload", "dead" } do
            assert.is_nil(help.out:find("\n  " .. name .. " ", 1, true))
        end
    end)

    it("helps who gives no command, on stderr", function()
        local none = run()
        assert.same({ 2, "" }, { none.code, none.out })
        assert.is_truthy(none.err:find("^usage: "))
    end)

    for words, err in pairs {
        ["rnu"] = "unknown command rnu; did you mean run?",
        ["frobnicate"] = "unknown command frobnicate; `mulligan --help` lists them",
        ["--versoin"] = "unknown option --versoin; did you mean --version?",
        ["reload"] = "reload is not in this version yet",
        ["status"] = "status is not in this version yet",
        ["stop"] = "stop is not in this version yet",
        ["dead list"] = "dead is not in this version yet",
        ["run --until-emty"] = "run: unknown option --until-emty; did you mean --until-empty?",
        ["run --until-empty=yes"] = "run: --until-empty takes no value",
        ["run --log-format xml"] = 'run: --log-format must be text or json, not "xml"',
        ["run --log-level loud"] = 'run: --log-level must be debug or info or warning or error, not "loud"',
        ["run --log-format="] = "run: --log-format must not be empty",
        ["run a b"] = 'run: "b" is a word too many; usage: mulligan run [service.lua] [OPTION]...',
        ["check a b c"] = 'check: "b" is a word too many; usage: mulligan check POLICY [OPTION]...',
        ["check a nats://u:secret@h"] = 'check: "nats://***@h" is a word too many; '
            .. "usage: mulligan check POLICY [OPTION]...",
        ["amqp:u:secret@h"] = "unknown command amqp:***@h; `mulligan --help` lists them",
        ["run amqp://u:secret@h"] = "amqp://***@h: can't be read: No such file or directory",
        ["check"] = "check: usage: mulligan check POLICY [OPTION]...",
    } do
        it("refuses: " .. words, function()
            local list = {}
            for word in words:gmatch("%S+") do
                list[#list + 1] = word
            end
            assert.same({ code = 2, out = "", err = "mulligan: " .. err .. "\n" }, folder:mulligan(list))
        end)
    end
end)
