-- worked.lua: the samples of pages and what is worked out beside them: what becomes of a message that fails always, in
-- a table behind a policy,
--
--   | fails with | each round of retries | redeliveries | end | calls |
--
-- or in one that has a chain in the place of "fails with". A failure is `Type`, `Type { field = 1 }` or anything
-- else, and after it, in any selection: in `consumer`, on `transport`, without retry, without delay, with `key = value`
-- of the failure.
local assert = require "luassert"
local busted = require "busted"
local loading = require "support.loading" -- which loads what the next one is in
local duration = require "mulligan.policy.duration"
local pages = require "support.pages"

local describe, it = busted.describe, busted.it

local worked = {}

local LINES = 'local policy = require "mulligan.policy"; local bus = policy.bus(); '

-- whole gives a sample as it can be loaded: one that begins with a rule goes on after the usual two lines.
function worked.whole(text)
    return text:find('require "mulligan', 1, true) and text or LINES .. text
end

local function value(text)
    return assert(load("return " .. text, "=" .. text, "t", {}))()
end

-- failure reads a cell such as "`HttpError { status = 503 }` in `PaymentHandler`".
function worked.failure(cell)
    local error_text, rest = (cell == "anything else" and "`AnythingElse`" or cell):match("^`(.-)`(.*)$")
    assert(error_text, cell)
    local type, fields = error_text:match("^([%w_.]+) ?(.*)$")
    local failure = value("{" .. (rest:match("with `(.-)`") or "") .. "}")
    failure.error = value(fields == "" and "{}" or fields)
    failure.error.type = type
    failure.consumer = rest:match("in `(.-)`")
    failure.transport = rest:match("on `(.-)`")
    failure.can = { retry = not rest:find("without retry", 1, true), delay = not rest:find("without delay", 1, true) }
    failure.message = failure.message or { id = "m-1" }
    return failure
end

-- outcome is what a row says: the first round of retries, the redeliveries, the end and its reason, the calls.
function worked.outcome(text, failure, options)
    local policy = loading.good(worked.whole(text))
    local verdicts = loading.walk(policy, failure, options)
    policy:close()
    local retries, redeliveries = {}, {}
    for _, verdict in ipairs(verdicts) do
        if verdict.tier == "retry" and #redeliveries == 0 then
            retries[#retries + 1] = verdict.delay_ms
        elseif verdict.tier == "redeliver" then
            redeliveries[#redeliveries + 1] = verdict.delay_ms
        end
    end
    local last = verdicts[#verdicts]
    return {
        retries = retries,
        redeliveries = redeliveries,
        ends = last.queue or last.action,
        reason = last.reason,
        calls = #verdicts,
    }
end

-- "1m 30s" as { 60000, 30000 }; "–" as {}.
local function spans(cell)
    local list = {}
    for span in cell:gmatch("[%w.]+") do
        list[#list + 1] = assert(duration.read(span == "0" and 0 or span))
    end
    return list
end

-- expected reads the cells behind the first: what outcome should give. A row may leave out the reason.
local function expected(row)
    local ends, reason = row[4]:gsub("`", ""):match("^([^,]+),? ?(.*)$")
    return {
        retries = spans(row[2]),
        redeliveries = spans(row[3]),
        ends = ends,
        reason = reason ~= "" and reason or nil,
        calls = tonumber(row[5]),
    }
end

-- Whether it is as a row says, for assert.same.
function worked.compare(row, given)
    local wanted = expected(row)
    given.reason = wanted.reason and given.reason
    return wanted, given
end

local function is_policy(text)
    return (text:find('require "mulligan.policy"', 1, true) or text:find("^bus:") or text:find("^policy%.")) ~= nil
end

-- samples gives a page's samples in Lua, policies each with the rows that are worked out for them:
-- { text =, line =, policy = boolean, rows = { cells, ... } }; and, second, the rows of its tables of chains.
function worked.samples(path)
    local samples, chains = {}, {}
    for _, block in ipairs(pages.blocks(path, "lua")) do
        samples[#samples + 1] = { text = block.text, line = block.line, policy = is_policy(block.text), rows = {} }
    end
    for _, found in ipairs(pages.tables(path)) do
        local rows = found.head[1] == "chain" and found.head[5] == "calls" and chains or nil
        for _, sample in ipairs(found.head[1] == "fails with" and samples or {}) do
            rows = sample.policy and sample.line < found.line and sample.rows or rows
        end
        for _, row in ipairs(rows and found.rows or {}) do rows[#rows + 1] = row end
    end
    return samples, chains
end

-- The findings of check that a sample is to show, by comments, and those that it has; one without rules is the
-- beginning of others on its page.
local function findings(text)
    local meant, found = {}, {}
    for code in text:gmatch("%-%-[^\n]*(MUL%d%d%d)") do meant[#meant + 1] = code end
    local policy = loading.good(worked.whole(text))
    for _, finding in ipairs(policy:check().findings) do
        found[#found + 1] = finding.code ~= "MUL013" and finding.code or nil
    end
    policy:close()
    return meant, found
end

local function sample_tests(path, sample)
    it(("%s:%d %s"):format(path, sample.line, sample.policy and "is as it seems" or "compiles"), function()
        if sample.policy then
            assert.same(findings(sample.text))
        else
            assert(load(sample.text, "=" .. path, "t"))
        end
    end)
    for _, row in ipairs(sample.rows) do
        it(("%s:%d is right about %s"):format(path, sample.line, row[1]), function()
            assert.same(worked.compare(row, worked.outcome(sample.text, worked.failure(row[1]))))
        end)
    end
end

-- describe tests all samples of a page and all that is worked out on it, `least` rows or more.
function worked.describe(path, least)
    local samples, chains = worked.samples(path)
    describe("samples of", function()
        local policies, rows = 0, #chains
        for _, sample in ipairs(samples) do
            sample_tests(path, sample)
            policies = policies + (sample.policy and 1 or 0)
            rows = rows + #sample.rows
        end
        for _, row in ipairs(chains) do
            it(("%s is right about %s"):format(path, row[1]), function()
                local text = 'bus:on("TimeoutError")' .. row[1]:match("^`(.*)`$")
                assert.same(worked.compare(row, worked.outcome(text, worked.failure("`TimeoutError`"))))
            end)
        end
        it(path .. " are there, and worked out", function()
            assert.is_true(policies > 0)
            assert.is_true(rows >= least, ("%d rows"):format(rows))
        end)
    end)
end

return worked
