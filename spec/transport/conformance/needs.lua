-- needs.lua: what a case may need of a transport, and why it is skipped where the transport lacks that.
local process = require "support.process"

local needs = {}

-- What the transport's spec says in `has`, or hooks of its place.
needs.words = {
    clock = "what it waits for goes by the machine's clock, not by a test's",
    durable = "what is left when it closes is gone",
    processes = "no other process can have its messages",
    old_place = "what is given back goes to the end of its queue",
    claim_timeout = "its claims have no timeout that is short enough for a test",
    cut = "it has no connection",
    restart = "it has no server",
    delete_queue = "no queue of it can be deleted",
    full = "no queue of it is ever full",
    foreign = "nobody else puts messages into it",
    malformed = "what can't be understood can't be put into it",
    undeclared = "it makes every queue that it needs",
    -- By what its `look` promises.
    delay = "it can't delay",
    hold = "its claims can't be held",
    exact = "its depths aren't exact",
    deaths = "its count of deliveries isn't one of deaths",
    counts = "it doesn't count deliveries",
}

-- abilities gives what `look` promises of a URL, by the names that transport.h has.
function needs.abilities(url)
    local pipe = assert(io.popen(("'%s/spec/transport/abilities' '%s' 2>&1"):format(process.build, url)))
    local found = {}
    for line in pipe:lines() do
        local name, value = line:match("^(%S+) (%S+)$")
        found[name] = tonumber(value) or value
    end
    assert(pipe:close(), url)
    return found
end

-- add_abilities adds to `has` what `look` promises.
function needs.add_abilities(has, can)
    has.delay = can.can_delay == 1
    has.hold = can.can_hold == 1
    has.exact = can.depth == "exact"
    has.deaths = can.deliveries == "deaths"
    has.counts = can.deliveries ~= "nothing"
end

-- lacks gives why a transport that has these can't do a case; nil: it can.
function needs.lacks(case, has)
    for _, need in ipairs(case.needs) do
        if not has[need] then
            return assert(needs.words[need], need)
        end
    end
    return nil
end

return needs
