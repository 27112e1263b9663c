-- function.lua: the policy of bench/decide, written by hand as one plain Lua function: no library,
-- no events, no explanation, and it trusts whatever it is handed.
--
-- Returns policy(jitter), which gives the function, and loop(decide, failure, count).
local min, random = math.min, math.random

local kinds = {
    "TimeoutError", "DeadlockDetected", "ConnectReset", "HttpServerErr", "ValidationError",
    "DuplicateMessage", "QuotaExceeds", "PaymentDeclined", "SchemaMismatch", "ConnectionTimedOut",
}

local matchers = {
    HttpServerErr = function(err) return err.status == 503 and err.transient == true end,
    QuotaExceeds = function(err) return err.status == 429 and err.region == "eu-west-1" end,
    PaymentDeclined = function(err) return err.status == 503 and err.region == "eu-west-1" end,
}

-- Ten rules of a scope: true, or what the error has to pass.
local function rules(number)
    local made = {}
    for _, kind in ipairs(kinds) do
        made[("%s%02d"):format(kind, number)] = matchers[kind] or true
    end
    return made
end

local host, bus = rules(0), rules(1)
local transports, consumers = {}, {}
for number = 2, 5 do
    transports[("warehouse-%02d"):format(number)] = rules(number)
    consumers[("PaymentHandler%02d"):format(number + 4)] = rules(number + 4)
end
local nowhere = ""

local function policy(jitter)
    local later = { 300000, 900000, 1800000 }

    local function spread(delay)
        return delay * (1 - jitter + 2 * jitter * random()) // 1
    end

    return function(failure)
        local err = failure.error
        local scope = consumers[failure.consumer or nowhere] or transports[failure.transport or nowhere] or bus or host
        local matcher = scope[err.type]
        if not matcher or matcher ~= true and not matcher(err) then
            return "dead_letter", 0
        end
        local attempt, redelivery = failure.attempt, failure.redeliveries + 1
        if attempt <= 3 then
            return "retry", spread(min(200 * 2 ^ (attempt - 1), 30000))
        elseif redelivery <= #later then
            return "redeliver", spread(later[redelivery])
        end
        return "dead_letter", 0
    end
end

local function loop(decide, failure, count)
    local sum = 0
    for _ = 1, count do
        local _, delay = decide(failure)
        sum = sum + delay
    end
    return sum
end

return { policy = policy, loop = loop }
