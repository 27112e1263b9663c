-- docs/from-nservicebus.md: each sample is loaded as it stands there, and what is worked out beside it comes out; its
-- totals of attempts; its log, of a message that really is handled.
local loading = require "support.loading"
local core = require "mulligan.core"
local log = require "mulligan.log"
local pages = require "support.pages"
local testing = require "mulligan.testing"
local worked = require "support.worked"

local PAGE = "docs/from-nservicebus.md"

worked.describe(PAGE, 40)

-- The one sample of the page that has a text in it.
local function sample_with(text)
    local found
    for _, sample in ipairs(worked.samples(PAGE)) do
        if sample.text:find(text, 1, true) then
            assert(not found, text .. " is in two samples")
            found = sample.text
        end
    end
    return (assert(found, text))
end

-- The rows of the page's tables with this head.
local function rows(...)
    for _, found in ipairs(pages.tables(PAGE)) do
        if table.concat(found.head, "|") == table.concat({ ... }, "|") then
            return found.rows
        end
    end
    error("no such table: " .. table.concat({ ... }, "|"))
end

describe("the totals of " .. PAGE, function()
    local function attempts(immediate, delayed)
        return worked.outcome(("policy.preset.nservicebus(bus, { immediate = %d, delayed = %d })"):format(immediate,
            delayed), { error = { type = "X" } }).calls
    end

    local now = rows("immediate", "delayed", "attempts")
    for _, row in ipairs(now) do
        it(("are right about %s and %s"):format(row[1], row[2]), function()
            assert.equal(tonumber(row[3]), attempts(row[1], row[2]))
        end)
    end

    local before = rows("MaxRetries", "delayed", "attempts")
    for _, row in ipairs(before) do
        it(("are right about %s and %s of the older page"):format(row[1], row[2]), function()
            assert.equal(tonumber(row[3]), row[1] * (row[2] + 1))
            assert.equal(tonumber(row[3]), attempts(row[1] - 1, row[2]))
        end)
    end

    it("are there", function()
        assert.equal(10, #now)
        assert.equal(6, #before)
    end)
end)

describe("the log of " .. PAGE, function()
    local rig

    after_each(function() rig:close() end)

    it("is what a message that fails twelve times leaves", function()
        local attempts, lines = 0, {}
        local shown = log.new("text", "debug", function(line)
            local level, deed, rest = line:match("^%S+ (%l+) +(%l[%l ]*): message m, consumer C: AnyException; (.*); ")
            lines[#lines + 1] = { tostring(#lines + 1), level, deed and deed .. ": " .. rest or line }
        end)
        rig = testing.rig {
            policy = sample_with("immediate = 3, delayed = 2 }"),
            consumers = {
                C = {
                    queue = "work",
                    handler = function()
                        attempts = attempts + 1
                        require("mulligan").error { type = "AnyException" }
                    end,
                },
            },
        }
        core.in_words(rig.engine, shown.decided)
        assert(rig:publish("work", "x", { id = "m" }))
        rig:run_until_empty()
        assert.equal(12, attempts)
        assert.same(rows("attempt", "level", "what follows"), lines)
    end)
end)

describe("what " .. PAGE .. " says of", function()
    it("rate limits is what the table has", function()
        local policy = loading.good(sample_with("bus:rate_limit"))
        local settings = policy:table().settings
        local limit = settings.rate_limit.value[1]
        assert.same({ 10, 5000, 5000 }, { limit.after, limit.wait_ms, limit.max_wait_ms })
        assert.is_true(settings.notify.value)
        policy:close()
    end)

    it("the day: a redelivery at 24 hours sharp is made", function()
        local policy = loading.good(worked.whole("policy.preset.nservicebus(bus)"))
        local function at(age_ms)
            return policy:decide { error = { type = "X" }, attempt = 6, age_ms = age_ms }.action
        end
        assert.equal("redeliver", at(86400000))
        assert.equal("dead_letter", at(86400001))
        policy:close()
    end)

    it("an override that raises: the verdict of the rules stands", function()
        local failed
        local policy = loading.good(worked.whole [[
policy.preset.nservicebus(bus)
bus:override(function() error "oh" end)]], { event = function(event) failed = event end })
        local verdict = policy:decide { error = { type = "X" } }
        assert.same({ "retry", 5 }, { verdict.action, verdict.of })
        assert.equal("override_failed", failed.name)
        policy:close()
    end)
end)
