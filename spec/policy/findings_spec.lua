-- What `mulligan check` finds suspicious: each page of docs/findings shows it, and what is right instead; samples and
-- examples have nothing of the kind; and what is said never to come into play doesn't. MULL_SEED repeats a run.
local json = require("mulligan").json
local mulligan = require "mulligan"
local testing = require "mulligan.testing"
local generate = require "support.generate"
local loading = require "support.loading"
local pages = require "support.pages"
local process = require "support.process"

local SEED = math.tointeger(tonumber(os.getenv("MULL_SEED"))) or os.time()
local POLICIES = math.tointeger(tonumber(os.getenv("MULL_FINDINGS_POLICIES"))) or 400
local KINDS, FREE = 20, { [14] = true }

-- Pages ---------------------------------------------------------------------------------------------------------------

-- The cases of a page: a policy, with a service.lua where the next block is one. Of each, the lines marked "-- here".
local function cases_of(path)
    local cases = {}
    for _, block in ipairs(pages.blocks(path, "lua")) do
        local name = block.text:match("^%-%- (%l+%.lua)\n") or "policy.lua"
        if name == "policy.lua" then cases[#cases + 1] = { files = {}, marks = {} } end
        local case, number = cases[#cases], 0
        case.files[name] = block.text
        for line in block.text:gmatch("[^\n]*\n") do
            number = number + 1
            if line:find("-- here", 1, true) then case.marks[#case.marks + 1] = name .. ":" .. number end
        end
    end
    return cases
end

-- What check finds in a case: a list of "file:line code".
local function found_in(case)
    local folder = process.folder(case.files)
    local words = { "check", "policy.lua", "--format", "json" }
    if case.files["service.lua"] then table.move({ "--for", "service.lua" }, 1, 2, 5, words) end
    local checked = folder:mulligan(words)
    folder:remove()
    assert.same({ 0, "" }, { checked.code, checked.err })
    local found = {}
    for number, finding in ipairs(json.decode(checked.out).findings) do
        found[number] = ("%s%s %s"):format(finding.file, finding.line and ":" .. finding.line or "", finding.code)
    end
    return found
end

describe("the page of", function()
    for kind = 1, KINDS do
        if FREE[kind] then goto continue end
        local code = ("MUL%03d"):format(kind)
        local path = "docs/findings/" .. code .. ".md"

        it(code .. " shows it, and what is right instead", function()
            local cases = cases_of(path)
            assert.equal(2, #cases)
            local marks = cases[1].marks
            assert.same(marks, { (marks[1]) }) -- one, or none where it is about the file
            assert.same({ (marks[1] or "policy.lua") .. " " .. code }, found_in(cases[1]))
            assert.same({}, found_in(cases[2]))
        end)

        it(code .. " is in the index, by its title", function()
            local title = assert(pages.read(path):match("^# " .. code .. ": ([^\n]+)\n"))
            local row = ("\n| [%s](%s.md) | %s |\n"):format(code, code, title)
            assert.is_truthy(pages.read("docs/findings/README.md"):find(row, 1, true), row)
        end)
        ::continue::
    end

    it("no other kind is there", function()
        for kind = 1, KINDS + 1 do
            local page = process.read(("docs/findings/MUL%03d.md"):format(kind))
            assert.equal(kind <= KINDS and not FREE[kind], page ~= nil)
        end
    end)
end)

-- No false alarms -----------------------------------------------------------------------------------------------------

-- A sample that is to show one says so: it has the code in a comment.
local function meant_in(text)
    local codes = {}
    for code in text:gmatch("%-%-[^\n]*(MUL%d%d%d)") do codes[#codes + 1] = code end
    return codes
end

-- One without rules is the beginning of others on its page: that it is empty is no news. Nor is that a page about
-- overrides leaves limits out.
local function codes_in(policy)
    local codes = {}
    for _, finding in ipairs(policy:check().findings) do
        if finding.code ~= "MUL013" and finding.code ~= "MUL019" then codes[#codes + 1] = finding.code end
    end
    return codes
end

describe("no finding in", function()
    local listing = io.popen("ls README.md docs/*.md")
    for path in listing:lines() do
        for _, block in ipairs(pages.blocks(path, "lua")) do
            local policy = block.text:find('require "mulligan.policy"', 1, true) and mulligan.load_text(block.text)
            if policy then
                it(("%s:%d"):format(path, block.line), function()
                    assert.same(meant_in(block.text), codes_in(policy))
                    policy:close()
                end)
            end
        end
    end
    listing:close()

    it("examples/orders", function()
        local folder = process.folder {}
        local checked = folder:mulligan { "check", process.here .. "/examples/orders/policy.lua", "--for",
            process.here .. "/examples/orders/service.lua", "--strict" }
        folder:remove()
        assert.same({ 0, "" }, { checked.code, checked.err })
    end)

    for name, text in pairs {
        ["a rule that the including scope replaces"] = [[
            bus:on("A"):retry(); bus:default():redeliver()
            local mail = policy.consumer("Mail"); mail:on("A"):discard(); mail:include(bus)]],
        ["an included rule that the scope's own hides"] = [[
            bus:on("A", { x = 1 }):retry(); bus:default():redeliver()
            local mail = policy.consumer("Mail"); mail:on("A"):discard(); mail:include(bus)]],
        ["presets"] = [[policy.preset.nservicebus(bus)
            policy.preset.mocha(policy.consumer("Mail"))]],
        ["presets with one of each"] = [[policy.preset.nservicebus(bus, { immediate = 1, delayed = 1 })]],
        ["presets with nothing"] = [[policy.preset.nservicebus(bus, { immediate = 0, delayed = 0, max_age = false })]],
        ["types that differ in more than a slip"] = [[
            for _, name in ipairs { "HttpError", "HttpsError", "Error4xxSeen", "Error5xxSeen", "CaseA", "CaseB" } do
                bus:on(name):retry()
            end
            bus:on("HttpError", { x = 1 }):retry { attempts = 0 }
            bus:default():redeliver()]],
        ["a late redelivery that another rule makes early"] = [[
            bus:on("Fast"):redeliver(3, 0); bus:default():redeliver(3, "20m", "constant"); bus:max_age("30m")]],
        ["a cap that raises the usual one"] = [[bus:default():redeliver { delay = "2h", max_delay = "1d" }]],
        ["a max_age that a consumer without rules puts over rules that redeliver"] = [[
            bus:default():redeliver(); policy.consumer("Mail"):max_age("1h")]],
        ["a scope over rules of its own transport only"] = [[
            policy.transport("orders"):default():retry(); policy.consumer("Mail"):on("A"):retry()]],
        ["a rule for causes whose matcher asks for what is unrecoverable in an error itself"] = [[
            bus:unrecoverable("Error", { final = true })
            bus:on_cause("HttpError", { final = true }):redeliver(); bus:default():redeliver()]],
        ["ranges and literals that reach beyond those before them"] = [[
            bus:on("A", { status = policy.between(500, 599) }):retry(); bus:on("A", { status = { 503, 600 } }):discard()
            bus:on("A", { status = policy.at_least(500) }):retry(2)
            bus:on("A", { status = policy.at_most(599) }):retry(3); bus:on("A", { status = "503" }):retry(4)
            bus:on("A", { status = policy.is_not(503) }):retry(5)
            bus:default():redeliver()]],
        ["a rule that another scope includes and lets be, as it isn't unrecoverable there"] = [[
            local base = policy.consumer("Base"); base:unrecoverable("A"); base:on("A"):retry()
            base:default():redeliver(); policy.consumer("Mail"):include(base)]],
        ["a cap below the usual delays"] = [[
            bus:default():retry { max_delay = "100ms" }:then_redeliver { attempts = 5, max_delay = "1m" }]],
        ["a delay as long as its cap"] = [[bus:default():redeliver(3, "1h")]],
        ["delays of a list of which the cap cuts some"] = [[bus:default():redeliver { "1m", "2h", max_delay = "1h" }]],
        ["a bus without a default that includes the host"] = [[
            policy.host():default():retry():then_redeliver()
            bus:on("ValidationError"):dead_letter(); bus:include(policy.host())]],
        ["a host without a default under a bus with one"] = [[
            policy.host():on("A"):retry():then_redeliver(); bus:default():retry()]],
        ["names that are alike, both of them declared"] = [[
            policy.errors { PaymentError = "GatewayError", PaymentsError = "Error" }
            bus:on("PaymentError"):retry(); bus:on("PaymentsError"):retry(); bus:default():redeliver()]],
        ["functions that may be different"] = [[
            bus:on("A", function(err) return err.x end):retry(); bus:on("A", function(err) return err.y end):discard()
            bus:default():retry()]],
    } do
        it(name, function()
            local policy = loading.good('local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n' .. text)
            if name:find("^types") then
                -- The same rule with a matcher stands behind one without.
                assert.same({ "MUL001" }, codes_in(policy))
            else
                assert.same({}, codes_in(policy))
            end
            policy:close()
        end)
    end
end)

-- No missed ones ------------------------------------------------------------------------------------------------------

describe("there is a finding in", function()
    -- What is found, a list of "line code", in a policy whose own first line is 3.
    local function found(text)
        local policy = loading.good('local policy = require "mulligan.policy"\nlocal bus = policy.bus()\n' .. text)
        local list = {}
        for number, finding in ipairs(policy:check().findings) do
            list[number] = ("%d %s"):format(finding.line, finding.code)
        end
        policy:close()
        return list
    end

    for name, case in pairs {
        ["a name near to one that is declared as a child of Error"] = { "4 MUL006", [[
            policy.errors { PaymentError = "Error" }
            bus:on("PaymentEror"):retry(); bus:default():redeliver()]] },
        ["a rule whose matcher asks for what is unrecoverable"] = { "5 MUL003", [[
            bus:unrecoverable("HttpError", { status = 404 })
            bus:on("HttpError", { status = 503 }):retry()
            bus:on("HttpError", { status = 404, host = "a" }):redeliver(); bus:default():redeliver()]] },
        ["a rule whose matcher asks for what is unrecoverable in a parent"] = { "4 MUL003", [[
            policy.errors { HttpError = "IoError" }; policy.host():unrecoverable("IoError", { final = true })
            bus:on("HttpError", { final = true }):redeliver(); bus:default():redeliver()]] },
        ["a rule behind one with the same function"] = { "5 MUL002", [[
            local function passing(err) return err.passing end
            bus:on("A", passing):retry()
            bus:on("A", passing):discard(); bus:default():redeliver()]] },
        ["a rule whose literal is in the range of one before it"] = { "4 MUL002", [[
            bus:on("A", { status = policy.between(500, 599) }):retry()
            bus:on("A", { status = { 503, 504 } }):discard(); bus:default():redeliver()]] },
        ["a rule whose literal is in the list of one before it"] = { "4 MUL002", [[
            bus:on("A", { status = { 503, 504 } }):retry()
            bus:on("A", { status = 504.0, host = "a" }):discard(); bus:default():redeliver()]] },
        ["a rule whose range is in that of one before it"] = { "4 MUL002", [[
            bus:on("A", { status = policy.at_least(500) }):retry()
            bus:on("A", { status = policy.between(500, 599) }):discard(); bus:default():redeliver()]] },
        ["a rule for what is unrecoverable, in the bus that another scope includes"] = { "3 MUL003", [[
            bus:unrecoverable("A"); bus:on("A"):retry(); bus:default():redeliver(); policy.consumer("Mail"):include(bus)
            ]] },
        ["a redelivery after longer than the usual cap"] = { "3 MUL010", [[bus:default():redeliver(3, "2h")]] },
        ["a retry after longer than its own cap"] = { "3 MUL010", [[
            bus:default():retry { attempts = 3, delay = "10s", max_delay = "5s" }]] },
        ["a bus without a default over a host with rules"] = { "4 MUL005", [[
            policy.host():default():retry():then_redeliver()
            bus:on("ValidationError"):dead_letter()]] },
    } do
        it(name, function()
            assert.same({ case[1] }, found(case[2]))
        end)
    end
end)

-- Certainty -----------------------------------------------------------------------------------------------------------

local NEVER = { MUL001 = true, MUL002 = true, MUL003 = true, MUL009 = true }

-- The rules that check says never come into play, by line and type, with the code.
local function never_of(policy)
    local never, count = {}, 0
    for _, finding in ipairs(policy:check().findings) do
        local type = finding.text:match('for "([^"]+)"')
        if NEVER[finding.code] and type then
            never[finding.line .. " " .. type] = finding.code
            count = count + 1
        end
    end
    return never, count
end

-- An unrecoverable declaration is for those who are in its scope, and that of an ancestor for errors without a lineage
-- of their own.
local function is_certain(code, rule, failure)
    if code ~= "MUL003" then return true end
    local kind, name = rule.scope:match("^(%l+):?(.*)$")
    return not failure.error.lineage and (not failure[kind] or failure[kind] == name)
        and (kind == "bus" or kind == "host" or failure[kind] == name)
end

it("a rule that is said never to come into play doesn't", function()
    local random = testing.random(SEED)
    local said = 0
    for number = 1, POLICIES do
        local tree = generate.policy(random)
        local text = generate.text(tree)
        local policy = mulligan.load_text(text)
        local never, count = {}, 0
        if policy then never, count = never_of(policy) end
        said = said + count
        for _ = 1, count > 0 and 40 or 0 do
            local failure = generate.failure(random, number, tree)
            local verdict = assert(policy:decide(failure))
            local code = verdict.rule and never[verdict.rule.line .. " " .. verdict.rule.type]
            if code and is_certain(code, verdict.rule, failure) then
                error(("seed %d, policy %d: line %d decides, though it is %s:\n%s"):format(SEED, number,
                    verdict.rule.line, code, text))
            end
        end
        if policy then policy:close() end
    end
    io.stderr:write(("# findings: seed %d, %d rules said never to come into play\n"):format(SEED, said))
    assert.is_true(said > POLICIES // 20)
end)
