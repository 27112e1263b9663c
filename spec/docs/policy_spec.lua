-- What docs/policy.md says is what the program does, as far as a page can be held to it: its
-- samples load, its worked examples come out, and what it calls missing is missing. The samples of
-- the other pages load as well, and links lead somewhere.
local mulligan = require "mulligan"
local duration = require "mulligan.policy.duration"
local loading = require "support.loading"
local pages = require "support.pages"

local PAGES = { "README.md", "docs/policy.md", "docs/running.md" }

describe("samples", function()
    for _, path in ipairs(PAGES) do
        local policies = 0
        for _, block in ipairs(pages.blocks(path, "lua")) do
            local is_policy = block.text:find('require "mulligan.policy"', 1, true)
            policies = policies + (is_policy and 1 or 0)
            it(("%s:%d %s"):format(path, block.line, is_policy and "loads" or "compiles"), function()
                if not is_policy then
                    return assert(load(block.text, "=" .. path, "t"))
                end
                local policy, message = mulligan.load_text(block.text)
                assert(policy, message)
                assert.is_true(policy:rules() > 0)
                policy:close()
            end)
        end
        it(path .. " has some", function()
            assert.is_true(policies > 0)
        end)
    end
end)

describe("links", function()
    for _, path in ipairs(PAGES) do
        it("of " .. path .. " lead somewhere", function()
            local folder, count = path:match("^(.*/)[^/]*$") or "", 0
            for link in pages.read(path):gmatch("%]%(([^)]*)%)") do
                local file, anchor = link:match("^([^#]*)#?(.*)$")
                local to = file == "" and path or folder .. file
                assert(io.open(to), link):close()
                assert(anchor == "" or pages.anchors(to)[anchor], link)
                count = count + 1
            end
            assert.is_true(count > 0)
        end)
    end
end)

-- "1m 30s" as { 60000, 30000 }; "–" as {}.
local function spans(cell)
    local list = {}
    for span in cell:gmatch("%w+") do
        list[#list + 1] = assert(duration.read(span))
    end
    return list
end

-- What a message gets that fails always: the first round of retries, the redeliveries, the end, and
-- how often it was called.
local function outcome(chain)
    local policy = loading.good(loading.statements('bus:on("TimeoutError")' .. chain))
    local retries, redeliveries, calls, last = {}, {}, 0, nil
    for _, step in ipairs(loading.timeline(policy)) do
        local action, rest = step:match("^(%S+) (.*)$")
        calls = calls + 1
        if action == "retry" and #redeliveries == 0 then
            retries[#retries + 1] = tonumber(rest)
        elseif action == "redeliver" then
            redeliveries[#redeliveries + 1] = tonumber(rest)
        end
        last = action == "dead_letter" and rest:match("^%S+") or action
    end
    policy:close()
    return { retries = retries, redeliveries = redeliveries, ["end"] = last, calls = calls }
end

describe("docs/policy.md", function()
    it("begins with a policy of ten lines", function()
        local first = pages.blocks("docs/policy.md", "lua")[1]
        assert.equal(10, #first)
        assert.is_true(first.line < 10)
    end)

    local rows = pages.rows("docs/policy.md", "Worked out")
    it("works some examples out", function()
        assert.is_true(#rows > 10)
    end)
    for _, row in ipairs(rows) do
        local chain = row[1]:match("^`(.*)`$")
        it("is right about " .. row[1], function()
            assert.same({
                retries = spans(row[2]),
                redeliveries = spans(row[3]),
                ["end"] = row[4]:match("^`(.*)`$") or row[4],
                calls = tonumber(row[5]),
            }, outcome(chain))
        end)
    end

    -- What each place looks like with a word in it.
    local places = {
        scopes = "local x = bus.%s",
    }
    it("lists what isn't there yet", function()
        local count = 0
        for _, row in ipairs(pages.rows("docs/policy.md", "Not in this version yet")) do
            for word in (places[row[1]] and row[2] or ""):gmatch("`(.-)`") do
                local text = loading.statements(places[row[1]]:format(word))
                local lines = loading.refused(text)
                assert.equal(1, #lines, text)
                assert.is_truthy(lines[1]:find("not in this version yet", 1, true), lines[1])
                count = count + 1
            end
        end
        assert.equal(2, count)
    end)
end)
