-- handlers.lua: what handlers do outside of the process: m.run and m.fetch; and what makes handlers of
-- it: m.exec, a program; m.http, a server; m.worker, processes that handle one message after the other.

local core = require "mulligan.core"
local json = require "mulligan.json"
local options = require "mulligan.options"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"

local handlers = {
    folder = "", -- what a program's path is relative to: that of service.lua, with its slash
}

-- By handler, as long as that is there: its program; whether it makes a request.
local programs, requests = setmetatable({}, { __mode = "k" }), setmetatable({}, { __mode = "k" })

-- ---- Commands ----------------------------------------------------------------------------------

local SAMPLE = '{ "./invoice", "--one" }'

-- what_is_wrong judges the words of a command; nil: nothing.
local function what_is_wrong(words, count)
    if count == 0 or count ~= #words then
        return ("takes a program and its arguments, as in %s"):format(SAMPLE)
    end
    for number, word in ipairs(words) do
        if type(word) ~= "string" or word:find("\0", 1, true) or number == 1 and word == "" then
            return ("takes texts without a NUL, as in %s, not %s"):format(SAMPLE, text.show(word))
        end
    end
end

-- command_of gives the words of a command, and its options; nil and what is wrong.
local function command_of(given, allowed)
    if type(given) ~= "table" then
        return nil, ("takes a table, as in %s, not %s"):format(SAMPLE, text.show(given))
    end
    local words, count, named = {}, 0, {}
    for key, value in pairs(given) do
        if math.type(key) == "integer" then
            words[key], count = value, count + 1
        else
            named[key] = value
        end
    end
    local wrong = what_is_wrong(words, count)
    local read, problems = options.read(named, allowed)
    wrong = wrong or problems[1]
    if wrong then
        return nil, wrong
    end
    local program = words[1]
    if program:find("/", 1, true) and program:sub(1, 1) ~= "/" then
        words[1] = handlers.folder .. program
    end
    return words, read
end

-- check_waits blames the caller of our caller's caller, a function called `what`, where that can't wait.
local function check_waits(what)
    local well, why = pcall(core.may_wait, what)
    if not well then
        error(why, 4)
    end
end

-- process is core.process, which raises where the program can't be started; `what` is the function
-- that our caller is.
local function process(what, words, ...)
    check_waits(what)
    local status, signal, output, errors = core.process(words, ...)
    if not status then
        core.error {
            type = "StartError",
            message = ("%s can't be started: %s"):format(words[1], output),
            code = signal,
        }
    end
    return status, signal, output, errors
end

local run_options = { stdin = "text", timeout = "timeout" }

function handlers.run(given)
    local words, read = command_of(given, run_options)
    if not words then
        error("mulligan.run " .. read, 2)
    end
    local status, signal, output, errors = process("mulligan.run", words, read.stdin, read.timeout_ms, nil, nil, true)
    return { status = status, signal = signal, stdout = output, stderr = errors }
end

-- ---- A program as a handler --------------------------------------------------------------------

local HEADERS_MOST = 100 * 1024 -- bytes: the kernel takes 128 KiB a variable
local FILE = "/dev/fd/3" -- where core.process has its file

-- Another program may have put bytes into a message, and a program into its stderr, that are no text.
local function mended(value)
    return (text.mend(value):gsub("\0", " "))
end

-- What a handler outside is told of a message, beside its body.
local SAID = { "Id", "Type", "Key", "Queue", "Attempt", "Redeliveries", "Headers" }

-- said_of gives texts by these names; what the message hasn't is missing.
local function said_of(msg)
    local headers = {}
    for name, value in pairs(msg.headers) do
        headers[mended(name)] = mended(value)
    end
    return {
        Id = msg.id,
        Type = msg.type,
        Key = msg.key,
        Queue = msg.queue,
        Attempt = tostring(msg.attempt),
        Redeliveries = tostring(msg.redeliveries),
        Headers = json.encode(headers),
    }
end

-- variables_of gives a program's environment as core.process takes it, and the file that it reads its
-- headers from where they are too long for that; nil: they aren't. Variables that were inherited and
-- have no value here are taken out.
local function variables_of(msg)
    local said, variables, file = said_of(msg), {}, nil
    if #said.Headers > HEADERS_MOST then
        file, said.Headers = said.Headers, nil
    end
    for number, name in ipairs(SAID) do
        variables[number] = ("MULLIGAN_%s%s"):format(name:upper(), said[name] and "=" .. said[name] or "")
    end
    variables[#variables + 1] = "MULLIGAN_HEADERS_FILE" .. (file and "=" .. FILE or "")
    return variables, file
end

-- last_line gives the last line that isn't empty.
local function last_line(output)
    local backwards = output:reverse()
    local from = backwards:find("[^\r\n]")
    local to = from and backwards:find("\n", from, true) or #output + 1
    return from and backwards:sub(from, to - 1):reverse() or ""
end

local SAID_MOST = 64 * 1024 -- bytes

-- error_in gives the error that a line says in JSON, whose stack is the rest; nil: it says none.
local function error_in(line, errors)
    if #line > SAID_MOST or not line:find("^%s*{") then
        return nil
    end
    local well, read = pcall(json.decode, line)
    if not well or type(read) ~= "table" then
        return nil
    end
    read.stack = read.stack == nil and errors or read.stack
    local _, raised = pcall(core.error, read)
    return rawequal(raised, read) and read or nil
end

local function fail(program, status, signal, errors)
    local stack = mended(errors)
    local said = not signal and error_in(last_line(errors), stack)
    if said then
        error(said, 0)
    end
    local ended, line = signal and "signal " .. signal or "exit code " .. status, last_line(stack)
    core.error {
        type = signal and "HandlerCrashError" or "ExitError",
        message = ("%s ended with %s%s"):format(program, ended, line ~= "" and ": " .. line or ""),
        stack = stack,
        status = not signal and status or nil,
        signal = signal,
    }
end

local function log_lines(name, output)
    for line in mended(output):gmatch("[^\n]+") do
        core.log(("%s: %s"):format(name, line))
    end
end

-- exec gives a handler; nil and what is wrong.
function handlers.exec(given)
    local words, wrong = command_of(given, {})
    if not words then
        return nil, wrong
    end
    local function handler(msg)
        local variables, file = variables_of(msg)
        local status, signal, output, errors = process("mulligan.exec", words, msg.body, nil, variables, file, false)
        log_lines("stdout", output)
        log_lines("stderr", errors)
        if status ~= 0 then
            fail(words[1], status, signal, errors)
        end
    end
    programs[handler] = words[1]
    return handler
end

-- ---- Requests ----------------------------------------------------------------------------------

local fetch_options = {
    url = "text!", method = "text", headers = "table", body = "text", timeout = "timeout", redirects = "flag",
    raise = "flag",
}

local TOKEN = "^[%w!#$%%&'*+.^_`|~-]+$" -- RFC 9110, 5.6.2

-- wrong_url says what is wrong with a URL; nil: nothing.
local function wrong_url(given)
    if type(given) ~= "string" or not given:find("^[Hh][Tt][Tt][Pp][Ss]?://[^/?#]") then
        return 'must be one such as "http://127.0.0.1:8080/mail", not ' .. url.show(given)
    elseif given:find("[^!-~]") then
        return ("%s has a blank or a byte that is no ASCII; write it as %%XX"):format(url.show(given))
    end
end

-- lines_of gives headers as core.fetch takes them; nil and what is wrong.
local function lines_of(headers, has_body)
    local lines, has_type = {}, false
    for name, value in pairs(headers) do
        if type(name) ~= "string" or not name:find(TOKEN) then
            return nil, "headers has a name that can't be one: " .. text.show(name)
        elseif type(value) ~= "string" or value:find("[\0\r\n]") then
            return nil, ("header %s must be a text of one line, not %s"):format(text.show(name), text.show(value))
        end
        has_type = has_type or name:lower() == "content-type"
        lines[#lines + 1] = value:find("%S") and name .. ": " .. value or name .. ";"
    end
    if has_body and not has_type then
        lines[#lines + 1] = "Content-Type: application/octet-stream"
    end
    return lines
end

-- wrong_request says what is wrong with a request; nil: nothing. Its headers become lines.
local function wrong_request(read, problems)
    local wrong = #problems == 0 and wrong_url(read.url)
    if #problems > 0 then
        return table.concat(problems, "; ")
    elseif wrong then
        return "url " .. wrong
    elseif read.method and not read.method:find("^%u+$") then
        return 'method must be one such as "POST", in capitals, not ' .. text.show(read.method)
    end
    read.lines, wrong = lines_of(read.headers or {}, read.body ~= nil)
    return wrong
end

-- parsed gives the headers of an answer: by their names in small letters, values of one name joined.
local function parsed(head)
    local headers = {}
    for name, value in head:gmatch("([^:\r\n]+):[ \t]*([^\r\n]*)") do
        name, value = name:lower(), value:match("^(.-)[ \t]*$")
        headers[name] = headers[name] and headers[name] .. ", " .. value or value
    end
    return headers
end

-- request is core.fetch: the answer, and its Retry-After in seconds; it raises where there is none.
local function request(what, method, address, lines, body, ...)
    check_waits(what)
    local status, head, answer, retry_after = core.fetch(method, address, lines, body, ...)
    if not status then
        core.error { type = head, message = ("%s %s: %s"):format(method, url.mask(address), answer) }
    end
    return status, parsed(head), answer, retry_after
end

-- fail_http raises for an answer that is no success.
local function fail_http(method, address, status, retry_after)
    core.error {
        type = "HttpError",
        message = ("%s %s answered %d"):format(method, url.mask(address), status),
        status = status,
        retry_after = retry_after,
    }
end

function handlers.fetch(given)
    local read, problems = options.read(given, fetch_options)
    local wrong = wrong_request(read, problems)
    if wrong then
        error("mulligan.fetch: " .. wrong, 2)
    end
    local method = read.method or read.body and "POST" or "GET"
    local status, headers, body, retry_after = request("mulligan.fetch", method, read.url, read.lines, read.body,
        read.timeout_ms, read.redirects or false)
    if read.raise and status // 100 ~= 2 then
        fail_http(method, read.url, status, retry_after)
    end
    return { status = status, headers = headers, body = body }
end

-- ---- A server as a handler ---------------------------------------------------------------------

local HEADER_MOST = 7 * 1024 -- bytes: many servers take 8 KiB

-- encoded writes a header's value in ASCII, percent-encoded.
local function encoded(value)
    return (value:gsub("[^!-$&-~]", function(byte)
        return ("%%%02X"):format(byte:byte())
    end))
end

-- message_headers gives what a request says of a message.
local function message_headers(msg)
    local headers = { ["Content-Type"] = "application/octet-stream" }
    for name, value in pairs(said_of(msg)) do
        local words = encoded(value)
        if #words > HEADER_MOST then
            core.error {
                type = "Error",
                message = ("m.http: the header Mulligan-%s would have %d bytes; it may have %d"):format(name, #words,
                    HEADER_MOST),
            }
        end
        headers["Mulligan-" .. name] = words
    end
    return headers
end

-- http gives a handler; nil and what is wrong.
function handlers.http(address)
    local wrong = wrong_url(address)
    if wrong then
        return nil, wrong
    end
    local function handler(msg)
        local lines = lines_of(message_headers(msg), true)
        local status, _, body, retry_after = request("mulligan.http", "POST", address, lines, msg.body, nil, false)
        if status // 100 == 2 then
            return
        end
        local said = error_in(body, "")
        if said then
            error(said, 0)
        end
        fail_http("POST", address, status, retry_after)
    end
    requests[handler] = true
    return handler
end

-- ---- Workers -----------------------------------------------------------------------------------

local PROCESSES_MOST = 1024
local WORKER_DESCRIPTORS = 2 -- its connection, and what is read of its stdout and stderr

-- By handler, as long as that is there: its program, and how many processes of it.
local workers = setmetatable({}, { __mode = "k" })

-- worker gives a handler; nil and what is wrong.
function handlers.worker(given)
    local words, read = command_of(given, { processes = "count" })
    if not words then
        return nil, read
    elseif (read.processes or 1) > PROCESSES_MOST then
        return nil, ("processes must be a whole number from 1 to %d, not %d"):format(PROCESSES_MOST, read.processes)
    end
    local function handler()
        core.error { type = "Error", message = "m.worker can't be called; it is a consumer's handler" }
    end
    workers[handler] = { words = words, processes = read.processes or 1 }
    programs[handler] = words[1]
    return handler
end

-- By engine, by handler: its pool of processes. Consumers of an engine that have the same handler
-- share it.
local pools = setmetatable({}, { __mode = "k" })

-- pool_of gives the pool for a handler, made the first time; nil: it needs none.
function handlers.pool_of(engine, handler)
    local worker = workers[handler]
    if not worker then
        return nil
    end
    local made = pools[engine] or {}
    pools[engine] = made
    made[handler] = made[handler] or core.workers(engine, worker.words, worker.processes)
    return made[handler]
end

-- ---- Whether they can work ---------------------------------------------------------------------

-- why_not says why a handler can't work on this machine; nil: nothing is known against it.
function handlers.why_not(handler)
    local program = programs[handler]
    if requests[handler] then
        return select(2, core.has_http())
    elseif not program then
        return nil
    end
    local word = workers[handler] and "m.worker" or "m.exec"
    local found, code, why = core.find_program(program)
    if found then
        return nil
    elseif code == "EACCES" then
        return ("%s: %s can't be run; make it a file that is executable (chmod +x)"):format(word, text.show(program))
    elseif code == "ENOENT" and not program:find("/", 1, true) then
        return ("%s: there is no program %s in a folder of PATH"):format(word, text.show(program))
    end
    return ("%s: %s: %s"):format(word, text.show(program), why)
end

-- descriptors says how many file descriptors a handler takes at a concurrency: for what is read of a
-- program's stdout and stderr; for a connection.
function handlers.descriptors(handler, concurrency)
    local worker = workers[handler]
    if worker then
        return WORKER_DESCRIPTORS * worker.processes
    end
    return concurrency * (programs[handler] and 2 or requests[handler] and 1 or 0)
end

return handlers
