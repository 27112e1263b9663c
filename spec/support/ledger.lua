-- ledger.lua: what handlers of several processes write down, in the order in which it happened.

local process = require "support.process"

local ledger = {}

-- What a service.lua begins with. `note` writes a line at once, by one write to the end of the
-- file, which is atomic among processes; `ending` writes "end" when its variable is closed, however
-- the call ends, before anybody else can have the message.
ledger.WORDS = [[
local m = require "mulligan"
local pid = io.open("/proc/self/stat"):read("n")
local file = assert(io.open("ledger", "a"))
file:setvbuf("no")
local function note(word, msg)
    file:write(("%s %d %s %s %d\n"):format(word, pid, msg.body, msg.id, msg.deliveries))
end
local function ending(msg)
    return setmetatable({}, { __close = function() note("end", msg) end })
end
]]

-- Where a storm's message ends, by its number: a queue, or "discarded".
function ledger.end_of(number)
    return ({ [5] = "spent", [7] = "invalid", [9] = "discarded" })[number % 10] or "out"
end

-- in_order sorts what a storm brings, { lines =, number =, ... }: by how many lines the ledger has then.
function ledger.in_order(faults)
    table.sort(faults, function(a, b)
        return a.lines < b.lines or a.lines == b.lines and a.number < b.number
    end)
    return faults
end

-- read gives the entries of a folder's ledger: { word =, pid =, body =, id =, deliveries = }. A line
-- that a kill cut off would spoil the next one; a single write isn't cut.
function ledger.read(folder)
    local entries = {}
    for line in (folder:read("ledger") or ""):gmatch("([^\n]*)\n") do
        local word, pid, body, id, deliveries = line:match("^(%l+) (%d+) (%S+) (%S+) (%d+)$")
        assert(word, line)
        entries[#entries + 1] = {
            word = word,
            pid = tonumber(pid),
            body = body,
            id = id,
            deliveries = tonumber(deliveries),
        }
    end
    return entries
end

-- count gives how many entries are like `wanted`, in every field that this has.
function ledger.count(folder, wanted)
    local count = 0
    for _, entry in ipairs(ledger.read(folder)) do
        local alike = true
        for key, value in pairs(wanted) do
            alike = alike and entry[key] == value
        end
        count = count + (alike and 1 or 0)
    end
    return count
end

-- await waits until there are `times` such entries, 1 unless given.
function ledger.await(folder, wanted, times)
    process.await("the ledger", function()
        return ledger.count(folder, wanted) >= (times or 1)
    end)
end

-- counter gives a function that says how many lines there are by now; it reads only what is new.
function ledger.counter(folder)
    local place, lines = 0, 0
    return function()
        local file = io.open(folder:path("ledger"), "rb")
        if file then
            file:seek("set", place)
            local new = file:read("a")
            file:close()
            place = place + #new
            lines = lines + select(2, new:gsub("\n", ""))
        end
        return lines
    end
end

-- check_one_at_a_time raises where a message was begun while another call of it was at work.
-- `killed` has the process ids of those that were: their calls end with them, without a line.
function ledger.check_one_at_a_time(entries, killed)
    local holder, last = {}, {}
    for number, entry in ipairs(entries) do
        last[entry.pid] = number
    end
    for number, entry in ipairs(entries) do
        local before = holder[entry.body]
        if entry.word == "begin" then
            if before and not (killed[before] and last[before] < number) then
                error(("message %s: begun by %d while %d was at it"):format(entry.body, entry.pid, before), 2)
            end
            holder[entry.body] = entry.pid
        elseif entry.word == "end" then
            assert(before == entry.pid, entry.body)
            holder[entry.body] = nil
        end
    end
end

-- check_alone raises where a message that was handed out before was called while another was at work
-- in the same process, or another was called while it was. For handlers without retries.
function ledger.check_alone(entries)
    local open, alone = {}, {}
    for _, entry in ipairs(entries) do
        local pid, body = entry.pid, entry.body
        open[pid] = open[pid] or {}
        if entry.word == "begin" then
            local other = entry.deliveries > 1 and next(open[pid]) or alone[pid]
            if other then
                error(("message %s: begun in %d while %s was at work"):format(body, pid, other), 2)
            end
            open[pid][body] = true
            alone[pid] = entry.deliveries > 1 and body or nil
        elseif entry.word == "end" then
            open[pid][body] = nil
            alone[pid] = nil
        end
    end
end

-- check_twice raises where a message went well more than once, but for what `killed` allows: in a
-- process that was killed, among the last `in_the_air` that went well there. How many went well
-- again.
function ledger.check_twice(entries, killed, in_the_air)
    local seen, after, twice = {}, {}, 0
    for number = #entries, 1, -1 do
        local entry = entries[number]
        if entry.word == "well" then
            after[entry.pid] = (after[entry.pid] or 0) + 1
            if seen[entry.body] then
                twice = twice + 1
                if not killed[entry.pid] or after[entry.pid] > in_the_air then
                    error(("message %s: went well in %d, and again"):format(entry.body, entry.pid), 2)
                end
            end
            seen[entry.body] = true
        end
    end
    return twice
end

return ledger
