-- serving.lua: `mulligan serve` in a folder of its own, and clients that speak by spec/support/exchange.py.
local msgpack = require "support.msgpack"
local process = require "support.process"

local serving = {}
serving.__index = serving

local function hex(bytes)
    return (bytes:gsub(".", function(byte)
        return ("%02x"):format(byte:byte())
    end))
end

local function bytes_of(text)
    return (text:gsub("%x%x", function(digits)
        return string.char(tonumber(digits, 16))
    end))
end

serving.hex, serving.bytes_of = hex, bytes_of

-- new gives a folder with a policy, where nothing runs yet.
function serving.new(policy, files)
    local self = setmetatable({ folder = process.folder(files) }, serving)
    self.folder:write("policy.lua", policy)
    self.socket = self.folder:path "run/socket"
    return self
end

-- start runs the program, and comes back once it listens. `words` are in place of its own.
function serving:start(words)
    self.job = self.folder:start_mulligan(words or { "serve", "policy.lua", "--listen", "unix:run/socket" })
    self:await_log "listening on unix:"
    return self
end

-- await_log waits until the log has a line with this text in it, for the n-th time.
function serving:await_log(text, times)
    process.await("the log says " .. text, function()
        local _, count = self.job.err():gsub(text:gsub("%p", "%%%0"), "")
        return count >= (times or 1), self.job.err()
    end)
end

-- speak gives what a client prints that goes by these lines, a list of lines.
function serving:speak(lines)
    local ran = self.folder:run({ "python3", process.here .. "/spec/support/exchange.py", self.socket },
        { stdin = table.concat(lines, "\n") .. "\n" })
    assert(ran.code == 0, ran.err)
    local printed = {}
    for line in ran.out:gmatch("([^\n]*)\n") do
        printed[#printed + 1] = line
    end
    return printed
end

serving.HELLO = msgpack.encode { 0, 0, "hello", { { version = 1, role = "decider" } } }

-- message gives a request's bytes.
function serving.message(id, method, params)
    return msgpack.encode { 0, id, method, { params } }
end

-- ask says hello, sends requests, { method, params } each, and gives what is answered, by id from 1 on.
function serving:ask(requests)
    local lines = { "> " .. hex(serving.HELLO), "<" }
    for id, request in ipairs(requests) do
        lines[#lines + 1] = "> " .. hex(serving.message(id, request[1], request[2]))
        lines[#lines + 1] = "<"
    end
    local printed, answers = self:speak(lines), {}
    for id = 1, #requests do
        local message = msgpack.decode(bytes_of(printed[id + 1]))
        assert(message[1] == 1 and message[2] == id, printed[id + 1])
        answers[id] = { error = message[3], result = message[4] }
    end
    return answers
end

-- stop ends the program as a person would, and gives its exit code.
function serving:stop(signal)
    self.job.kill(signal or "TERM")
    return self.job.wait()
end

function serving:remove()
    self.folder:remove()
end

return serving
