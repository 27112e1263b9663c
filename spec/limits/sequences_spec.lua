-- Sequences of failures and successes, in the order in which calls end: when a limit starts, and when it ends.
local stage = require "limits.stage"

if stage.waits "sequences_spec.lua" then
    return
end

local WAIT_MS = 100

local CASES = {
    { 5, "FFFFF", "started 5, ended 6" }, -- what comes behind a sequence succeeds
    { 5, "FFFF", "" },
    { 5, "FFFFSFFFF", "" },
    { 5, "FFFFFFFS", "started 5, ended 8" },
    { 1, "FFFS", "started 1, ended 4" },
    { 2, "FFSFFS", "started 2, ended 3, started 5, ended 6" },
    { 2, "FSFSF", "" },
    { 100, ("F"):rep(10), "" },
    { 100, ("F"):rep(99) .. "S", "" },
    { 100, ("F"):rep(100), "started 100, ended 101" },
}

-- numbered gives each event with the number of the end that it is told at.
local function numbered(self)
    local list = {}
    for number, entry in ipairs(self.limit_events) do
        local of = self.ends[entry.ends]
        assert.equal(of.ended, entry.at)
        list[number] = ("%s %d"):format(entry.name:match "[^_]+$", entry.ends)
    end
    return table.concat(list, ", ")
end

-- hold raises where a call began under a limit beside another one, or too early after a failure.
local function hold(self, after)
    local row, limited, at_work, last_failure, probes = 0, false, 0, 0, 0
    for _, entry in ipairs(self.order) do
        if entry.what == "begin" then
            if limited then
                assert.equal(0, at_work, "a call beside another one at " .. entry.at)
                assert.is_true(entry.at - last_failure >= WAIT_MS, "too early: " .. entry.at)
                probes = probes + 1
            end
            at_work = at_work + 1
        else
            at_work = at_work - 1
            row = entry.type and row + 1 or 0
            limited = row >= after or limited and row > 0
            last_failure = entry.type and entry.at or last_failure
        end
    end
    return probes
end

-- Each takes another time than those beside it.
local function durations(_, call)
    return 3 + call % 7 * 5 + call % 2
end

describe("a sequence", function()
    after_each(stage.close_all)

    for _, case in ipairs(CASES) do
        for _, concurrency in ipairs { 1, 3 } do
            for retries, chain in pairs { off = "dead_letter()", on = 'retry { "10ms", "20ms", "30ms" }' } do
                local after, letters, events = case[1], case[2], case[3]
                local shown = #letters > 12 and ("%s × %d"):format(letters:sub(1, 1), #letters) or letters
                it(("%s (N = %d, %d at once, retries %s): %s"):format(shown, after, concurrency, retries,
                    events == "" and "never" or events), function()
                    local self = stage.start {
                        policy = ('C:rate_limit { after = %d, wait = "%dms" }'):format(after, WAIT_MS), chain = chain,
                        outcome = letters, ms = durations, consumer = { concurrency = concurrency },
                    }
                    -- One after the other, so that not all that are there succeed at once.
                    for _ = 1, #letters + 5 do
                        self:publish(1)
                        self:advance "1ms"
                    end
                    self:advance "1m"
                    assert.equal(events, numbered(self))
                    local probes = hold(self, after) -- with handlers beside it, one of theirs may end it
                    assert.is_true(concurrency == 3 or (events ~= "") == (probes > 0))
                    assert.is_true(#self.ends >= #letters + 5)
                    assert.equal(0, self:depth().ready + self:depth().claimed + self:depth().delayed)
                end)
            end
        end
    end
end)
