-- cmd/send.lua: puts messages on a queue: each file, or each line of stdin.
--
-- Only so many messages are out at a time without an answer, so input of any size needs little
-- memory. Once the loop runs, no read waits: a pipe that gives nothing must not hold the transport's
-- work. It is looked at again every now and then.

local arguments = require "mulligan.arguments"
local cli = require "mulligan.cli"
local config = require "mulligan.config"
local duration = require "mulligan.policy.duration"
local mulligan = require "mulligan"
local stdin = require "mulligan.lines"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"

local LARGEST = 16 * 1024 * 1024
local MOST_OPEN, MOST_OPEN_BYTES = 1024, LARGEST
local LOOK = "10ms" -- between two looks at a stdin that has nothing

local send = {}

-- ---- Where to ----------------------------------------------------------------------------------

-- url_of gives the URL that T stands for; else nil and a list of problems.
local function url_of(transport)
    local variable = transport:match("^env:(.*)$")
    if variable then
        local value = os.getenv(variable)
        if not value or not url.is_url(value) then
            return nil, { { text = ("send: the variable %s holds no URL"):format(url.mask(variable)) } }
        end
        return value
    elseif url.is_url(transport) then
        return transport
    end
    local read = config.load(nil, "run send in the folder of one, or give --transport a URL")
    if #read.problems > 0 then
        return nil, read.problems
    end
    local named = read.transport_named(transport)
    if not named then
        return nil, { { file = read.path, text = read.no_transport(transport) } }
    end
    return named.url
end

-- ---- What --------------------------------------------------------------------------------------

-- headers_of gives the headers by name; else nil and what is wrong.
local function headers_of(words)
    local headers = {}
    for _, header in ipairs(words.header or {}) do
        local name, value = header:match("^([^=]+)=(.*)$")
        if not name then
            return nil, "--header must be NAME=VALUE, not " .. text.show(header)
        elseif not text.valid(header) then
            return nil, ("--header must be UTF-8, which %s isn't"):format(text.show(header))
        elseif name:find("^mulligan%-") then
            return nil, ('--header %s: names that begin with "mulligan-" are the program\'s own'):format(name)
        elseif headers[name] then
            return nil, ("--header %s is given twice"):format(text.show(name))
        end
        headers[name] = value
    end
    return headers
end

-- options_of gives what engine:publish takes; else nil and what is wrong.
local function options_of(words)
    for _, name in ipairs { "QUEUE", "--id", "--type", "--key" } do
        local value = name == "QUEUE" and words[1] or words[name:sub(3)]
        if value and not text.valid(value) then
            return nil, ("%s must be UTF-8, which %s isn't"):format(name, text.show(value))
        end
    end
    local headers, wrong = headers_of(words)
    if not headers then
        return nil, wrong
    end
    local delay, why = arguments.span("--delay", words.delay or "0")
    if why then
        return nil, why
    end
    return { id = words.id, type = words.type, key = words.key, headers = headers, delay = delay }
end

-- A source is a function that gives the next body and where it is from; false and where, for one
-- that is too large; nil at the end; nil and "later" where there is none yet and it may not wait;
-- or nil, "error" and why.
local function lines_of_stdin()
    local lines, number = stdin(LARGEST), 0
    return function(may_wait)
        local line, word, why = lines.next(may_wait)
        if line == nil then
            return nil, word ~= "end" and word or nil, why and "stdin: " .. why
        end
        number = number + 1
        return line, "stdin:" .. number
    end
end

local function read_file(name)
    local file, why = io.open(name, "rb")
    if not file then
        return nil, "error", why
    end
    local body, problem = file:read(LARGEST + 1)
    file:close()
    if problem then
        return nil, "error", ("%s: %s"):format(name, problem)
    end
    body = body or "" -- of an empty file
    return #body <= LARGEST and body, name
end

local function files(names)
    local at = 0
    return function()
        at = at + 1
        if names[at] then
            return read_file(names[at])
        end
    end
end

-- one_of lets a source give a single message; two are a mistake that must come before any is sent.
local function one_of(source)
    local body, where, why = source(true)
    if body == nil then
        return nil, why or "there is no message to send"
    elseif source(true) ~= nil then
        return nil, "--id names one message, and there are more"
    end
    local given = false
    return function()
        if not given then
            given = true
            return body, where
        end
    end
end

local function check_files(names)
    for _, name in ipairs(names) do
        local file, why = io.open(name, "rb")
        if not file then
            return url.mask(name) .. why:sub(#name + 1) -- it may be a URL in the wrong place
        end
        file:close()
    end
end

-- ---- Sending -----------------------------------------------------------------------------------

-- guarded gives a callback that tells `raised` what it raises: the engine would only log that, and the
-- loop go on for ever.
local function guarded(callback, raised)
    return function(...)
        local well, why = pcall(callback, ...)
        if not well then
            raised(why)
        end
    end
end

-- pour publishes to a sink all that the source gives; how many are safe, and the exit code.
local function pour(sink, source)
    local safe, code = 0, 0
    local ended, gave_up, waits = false, false, false -- ended: nothing more is published
    local step, held -- held: what was read while the transport is down

    local function give_up(words, ...)
        code = 1
        cli.complain(words, ...)
        ended, gave_up = true, true
    end

    local function raised(why)
        give_up("send: %s", why)
        sink.engine:stop()
    end

    function sink.go_on()
        if waits then
            waits = false
            sink.engine:after(0, guarded(step, raised))
        end
    end

    local answered = guarded(function(well, why)
        if well then
            safe = safe + 1
        elseif not gave_up then
            give_up("send: %s", sink.why or why)
        end
        sink.go_on()
    end, raised)

    local function publish(body, where)
        local well, why, is_down = sink.publish(body, answered)
        held = well == false and { body, where } or nil
        waits = held ~= nil
        if well == nil then
            give_up("%s: %s", is_down and "send" or where, why)
        end
    end

    local function take(body, where, why)
        if body then
            publish(body, where)
        elseif body == false then
            code = 1
            cli.complain("%s: larger than 16 MiB, and not sent", where)
        elseif where == "error" then
            give_up("send: %s", why)
        elseif where == "later" then
            waits = true
            sink.look_later()
        else
            ended = true
        end
    end

    function step()
        while not ended and not waits do
            if sink.is_full() then
                waits = true
            elseif held then
                publish(held[1], held[2])
            else
                take(source())
            end
        end
        waits = true -- or it has ended, and waits for the rest of the answers
        if ended and sink.open == 0 then
            sink.engine:stop()
        end
    end

    sink.engine:after(0, guarded(step, raised))
    local well, message = sink.engine:run()
    if not well and not gave_up then
        give_up("send: %s", message)
    end
    return safe, code
end

-- open gives an engine with the one transport, named as its user did, for a sink: `up` is called when
-- that comes up. What the log says of a transport that is down is kept in `down`, for an end that
-- doesn't say so itself; in `why` what it says of a message that was refused.
local function open(sink, transport, full)
    local down = ("transport %s is down"):format(transport)
    local unpublished = ("transport %s: a message isn't published: "):format(transport)
    local engine, why = mulligan.engine {
        policy = assert(mulligan.load_text("")),
        log = function(level, words)
            if words:sub(1, #down) == down then
                sink.down = words
            elseif words:sub(1, #unpublished) == unpublished then
                sink.why = words:sub(#unpublished + 1)
            elseif level == "error" then
                cli.complain("%s", words)
            end
        end,
        event = function(event)
            if event.name == "transport_up" then
                sink.down = nil
                sink.go_on()
            end
        end,
    }
    if not engine then
        return nil, why
    end
    local well, message = engine:transport(transport, full)
    if not well then
        engine:close()
        return nil, message
    end
    return engine
end

-- sink_of gives what takes messages for a queue: `open` of them without an answer; go_on() is called
-- when it may take more. Nil and what is wrong, where it can't be opened.
local function sink_of(transport, full, queue, given, wait)
    local sink, bytes, outage, waited = { open = 0 }, 0, nil, duration.read(wait) == 0
    local engine, why = open(sink, transport, full)
    sink.engine = engine

    function sink.is_full()
        return sink.open >= MOST_OPEN or bytes >= MOST_OPEN_BYTES
    end

    -- is_down begins to wait, unless it does already since the last message was taken.
    local function is_down()
        if outage then
            return
        end
        local this = {}
        outage = this
        engine:after(wait, function()
            if outage == this then
                waited = true
                sink.go_on()
            end
        end)
    end

    local looks = false -- it is to look

    -- look_later has it go on after a while, however often it is called until then.
    function sink.look_later()
        if looks then
            return
        end
        looks = true
        engine:after(LOOK, function()
            looks = false
            sink.go_on()
        end)
    end

    -- publish gives true; false while the transport is down and waited for; else nil, why, and whether
    -- that is since it is down.
    function sink.publish(body, answered)
        local well, message, kind = engine:publish(transport, queue, body, given, function(...)
            sink.open, bytes = sink.open - 1, bytes - #body
            answered(...)
        end)
        if well then
            sink.open, bytes, outage = sink.open + 1, bytes + #body, nil
            return true
        elseif kind ~= "down" then
            return nil, sink.why or message
        elseif waited then
            sink.down = nil
            return nil, message, true
        end
        is_down()
        return false
    end

    return engine and sink, why
end

-- source_of gives where the messages come from; else nil and what is wrong.
local function source_of(words)
    local names = table.move(words, 2, #words, 1, {})
    local problem = check_files(names)
    if problem then
        return nil, problem
    end
    local source = #names > 0 and files(names) or lines_of_stdin()
    if not words.id then
        return source
    end
    return one_of(source)
end

function send.main(words)
    if not words.transport then
        return cli.complain("send: --transport is missing: a URL, a name in service.lua, or env:NAME")
    end
    local given, why = options_of(words)
    if not given then
        return cli.complain("send: %s", why)
    end
    local wait, wrong = arguments.span("--wait", words.wait or "10s")
    if not wait then
        return cli.complain("send: %s", wrong)
    end
    local full, problems = url_of(words.transport)
    if not full then
        return cli.complain_of(problems)
    elseif full:find("^memory:") then
        return cli.complain("send: a memory: transport lives in one process, and would be gone with this one")
    end
    local source, problem = source_of(words)
    if not source then
        return cli.complain("send: %s", problem)
    end
    local transport = text.clean(url.mask(words.transport))
    local sink, message = sink_of(transport, full, words[1], given, wait)
    if not sink then
        return cli.complain("send: %s", message)
    end
    local safe, code = pour(sink, source)
    sink.engine:close()
    local is_said = sink.down and sink.why and sink.down:find(sink.why, 1, true)
    if code ~= 0 and sink.down and not is_said then
        cli.complain("%s", sink.down)
    end
    if code ~= 0 then
        cli.complain("send: %d %s safe", safe, safe == 1 and "message is" or "messages are")
    end
    return code
end

return send
