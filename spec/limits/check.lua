-- check.lua: holds a record of what an engine did against the model. A record is a list of
-- { at = ms, what = "publish" | "begin" | "end" | "event" | "pause" | "resume" | "reload" |
-- "restart" | "stop" | "lose", … } in the order
-- in which things happened.

local limiter = require "limits.limiter"
local model = require "limits.model"

local check = {}

local SLACK_MS = 1 -- a moment is whole milliseconds, rounded up

local apply = {}

function apply.publish(self, entry)
    self:publish(entry.at, entry.message)
end

function apply.begin(self, entry)
    return self:begin(entry.at, entry.call, entry.id, entry.seen)
end

apply["end"] = function(self, entry)
    return self:finish(entry.at, entry.call, entry.outcome)
end

function apply.lose(self, entry)
    return self:lose(entry.at, entry.id)
end

function apply.pause(self, entry)
    return self:pause(entry.at)
end

function apply.resume(self, entry)
    return self:resume(entry.at)
end

function apply.reload(self, entry)
    return self:reload(entry.at, entry.policy)
end

function apply.restart(self, entry)
    return self:restart(entry.at)
end

function apply.stop(self, entry)
    return self:stop(entry.at)
end

-- shows_loss says whether an entry shows that a message's claim was lost: its handler is cut off, or it comes again.
local function shows_loss(entry)
    return entry.what == "end" and entry.outcome.cut
        or entry.what == "begin" and entry.seen.attempt == 1 and (entry.seen.deliveries or 1) > 1
end

-- place gives where an entry belongs within its millisecond: its number, but for two kinds. A timeout's end comes
-- first, since an engine may judge the failure, and tell of it, before the handler's own `<close>` variables run. Lost
-- claims come before what shows that one is, since their log lines may be late: those taken together end together. One
-- that is lost as its call ends comes right behind that.
local function place(record, number)
    local entry = record[number]
    if entry.what == "end" and entry.outcome.type == "HandlerTimeoutError" then
        return 0
    end
    local first = number
    for before = number - 1, entry.what == "lose" and 1 or number, -1 do
        if record[before].at ~= entry.at then
            break
        elseif shows_loss(record[before]) then
            first = before - 0.5
        elseif record[before].what == "end" and record[before].id == entry.id then
            first = before + 0.5
        end
    end
    return first
end

local function in_order(record)
    local list = {}
    for number, entry in ipairs(record) do
        list[number] = { entry = entry, place = place(record, number), number = number }
    end
    table.sort(list, function(a, b)
        if a.entry.at ~= b.entry.at then
            return a.entry.at < b.entry.at
        elseif a.place ~= b.place then
            return a.place < b.place
        end
        return a.number < b.number
    end)
    return list
end

-- events_at matches the events told in one millisecond with those that must be.
local function events_at(self, told, at)
    for _, name in ipairs(told) do
        if self:event(at, name) then
            return ("%s is told, and nothing happened that it tells of"):format(name)
        end
    end
    local missing = self.expected[1]
    if missing and not self.stopped then -- nobody need hear of it any more
        return ("%s of %d ms isn't told"):format(missing.name, missing.at)
    end
end

-- quiet says what should have begun before the next entry.
local function quiet(self, now, until_ms)
    local moment = until_ms - 1 - SLACK_MS
    local late = moment >= now and self:must(moment)
    return late and ("a call of %s should have begun by %d ms"):format(late, moment) or nil
end

local function run(plan, record, readings)
    local self = model.new(plan.concurrency, plan.policy, readings)
    local now, told = 0, {}
    for _, item in ipairs(in_order(record)) do
        local entry = item.entry
        if entry.at > now then
            local problem = events_at(self, told, now) or quiet(self, now, entry.at)
            if problem then
                return problem, item.number, self
            end
            now, told = entry.at, {}
        end
        local problem
        if entry.what == "event" then
            table.insert(told, entry.name)
        else
            problem = apply[entry.what](self, entry)
        end
        if self.undecided then
            return nil, nil, self
        elseif problem then
            return ("%s of %s at %d ms: %s"):format(entry.what, entry.id or "?", entry.at, problem), item.number, self
        end
    end
    return events_at(self, told, now), #record, self
end

-- fates compares the ends of messages at the end of a record: `ended` gives "done", "dead", "discarded" or "left".
local function compare_fates(self, ended, now)
    for id, fate in pairs(self:fates(now)) do
        if ended[id] ~= fate and not (self.messages[id].uncertain and ended[id] == "dead") then
            return ("%s is %s at the end, not %s"):format(id, tostring(ended[id]), fate)
        elseif fate == "left" and not self.stopped and not self.paused then
            return ("%s is left at the end"):format(id)
        end
    end
end

local function problem_with(plan, record, ended, readings)
    local problem, number, self = run(plan, record, readings)
    local last = record[#record]
    if not problem and ended and last and not self.undecided then
        problem = quiet(self, last.at, plan.horizon) or compare_fates(self, ended, plan.horizon)
        number = #record
    end
    return problem, number, self
end

-- problem gives what is wrong with a record: a text, and the number of the entry; nil: nothing.
function check.problem(plan, record, ended, readings)
    local problem, number, self = problem_with(plan, record, ended, readings)
    return problem, number, self.undecided
end

-- other_reading names the reading of the contract under which the record is right, if there is one.
function check.other_reading(plan, record, ended)
    for name, value in pairs(limiter.readings) do
        local readings = {}
        for other, chosen in pairs(limiter.readings) do
            readings[other] = chosen
        end
        readings[name] = not value
        if not problem_with(plan, record, ended, readings) then
            return ("%s = %s"):format(name, tostring(not value))
        end
    end
end

local function shown(value)
    if type(value) ~= "table" then
        return tostring(value)
    end
    local parts = {}
    for key, inner in pairs(value) do
        parts[#parts + 1] = ("%s=%s"):format(tostring(key), shown(inner))
    end
    table.sort(parts)
    return "{" .. table.concat(parts, " ") .. "}"
end

-- trace shows a record up to the entry that is wrong, as text.
function check.trace(plan, record, upto)
    local lines = { "concurrency " .. plan.concurrency .. ", policy " .. shown(plan.policy) }
    for number, entry in ipairs(record) do
        local rest = {}
        for key, value in pairs(entry) do
            if key ~= "at" and key ~= "what" then
                rest[#rest + 1] = ("%s=%s"):format(key, shown(value))
            end
        end
        table.sort(rest)
        lines[#lines + 1] = ("%s%7d %-8s %s"):format(number == upto and ">" or " ", entry.at, entry.what,
            table.concat(rest, " "))
        if upto and number > upto + 3 then
            break
        end
    end
    return table.concat(lines, "\n")
end

return check
