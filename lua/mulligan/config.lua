-- config.lua: reads a service.lua: what runs where. Its words only collect; `run` builds an engine
-- from what they collected. Mistakes are collected as well, so that they are listed together.

local handlers = require "mulligan.handlers"
local mulligan = require "mulligan"
local options = require "mulligan.options"
local text = require "mulligan.policy.text"
local url = require "mulligan.url"

local config = {}

-- ---- Places ------------------------------------------------------------------------------------

local function folder_of(path)
    return path:match("^(.*/)[^/]*$") or ""
end

-- A path in service.lua is relative to its folder.
local function resolve(folder, path)
    return path:sub(1, 1) == "/" and path or folder .. path
end

local files_of_tls = { ca = true, cert = true, key = true }

-- The same for a URL that names files.
local function resolve_url(folder, given)
    local file = given:match("^sqlite:(.+)$")
    if file then
        return "sqlite:" .. resolve(folder, file)
    end
    local server, rest = given:match("^(amqps:[^?]*%?)(.*)$")
    if not server then
        return given
    end
    local written = folder:gsub("[^%w/._~-]", function(byte)
        return ("%%%02X"):format(byte:byte())
    end)
    return server .. rest:gsub("([^&=]+)=([^&]+)", function(name, path)
        local is_relative = files_of_tls[name] and not path:find("^%%2[Ff]")
        return is_relative and name .. "=" .. resolve(written, path) or nil
    end)
end

-- The line of the file itself that a word was called from, also where one of its functions did.
local function line_of(path)
    local level = 3
    while true do
        local info = debug.getinfo(level, "Sl")
        if not info then
            return nil
        elseif info.source == "@" .. path then
            return info.currentline
        end
        level = level + 1
    end
end

-- ---- What is collected -------------------------------------------------------------------------

local function collector(path)
    local read = { path = path, folder = folder_of(path), transports = {}, consumers = {}, problems = {} }

    function read.problem(line, words, ...)
        table.insert(read.problems, { file = path, line = line, text = words:format(...) })
    end

    function read.transport_named(name)
        for _, transport in ipairs(read.transports) do
            if transport.name == name then
                return transport
            end
        end
    end

    -- no_transport says that there is none of this name, and which one is near.
    function read.no_transport(name)
        local names = {}
        for number, transport in ipairs(read.transports) do
            names[number] = transport.name
        end
        local near = text.nearest(name, names)
        return ("there is no transport %s%s"):format(url.show(name), near and ("; did you mean %q?"):format(near) or "")
    end

    return read
end

local words = {}

function words.policy(read, path)
    local line = line_of(read.path)
    if type(path) ~= "string" or path == "" then
        read.problem(line, 'm.policy takes the policy\'s file, as in m.policy "policy.lua"')
    elseif read.policy then
        read.problem(line, "there is a policy already, in line %d; a service.lua has one", read.policy.line)
    else
        read.policy = { path = resolve(read.folder, path), line = line }
    end
end

function words.transport(read, name, given)
    local line = line_of(read.path)
    if type(name) ~= "string" or name == "" or not text.valid(name) then
        read.problem(line, 'm.transport takes a name and a URL, as in m.transport("orders", "sqlite:orders.db")')
        return
    elseif read.transport_named(name) then
        read.problem(line, "there is a transport %s already; give this one another name", url.show(name))
        return
    elseif type(given) ~= "string" or not url.is_url(given) then
        read.problem(line, 'the URL of transport %s must be a text such as "sqlite:orders.db", not %s', url.show(name),
            url.show(given))
        given = nil
    end
    table.insert(read.transports, { name = name, url = given and resolve_url(read.folder, given), line = line })
end

function words.consumer(read, name, given)
    local line = line_of(read.path)
    if type(name) ~= "string" or name == "" or not text.valid(name) then
        read.problem(line, 'm.consumer takes a name and options, as in m.consumer("OrderHandler", { ... })')
        return
    end
    for _, consumer in ipairs(read.consumers) do
        if consumer.name == name then
            read.problem(line, "there is a consumer %s already; give this one another name", text.show(name))
        end
    end
    -- The options as they are: engine:consumer reads them again.
    local checked, problems = options.read(given, options.consumer)
    for _, problem in ipairs(problems) do
        read.problem(line, "consumer %s: %s", text.show(name), problem)
    end
    table.insert(read.consumers, { name = name, options = given, transport = checked.transport, queue = checked.queue,
        types = checked.types, line = line })
end

function words.patterns(read, whose)
    local line = line_of(read.path)
    local known, why = options.patterns(whose)
    if not known then
        read.problem(line, "m.patterns %s", why)
    end
    read.patterns = known
end

-- A handler that does nothing, in the place of one that is wrong.
local function nothing() end

-- What is said of a handler that is wrong, by its word.
local wrong_handlers = { exec = "m.exec %s", http = "m.http: the URL %s", worker = "m.worker %s" }

for word, said in pairs(wrong_handlers) do
    words[word] = function(read, given)
        local handler, wrong = handlers[word](given)
        if not handler then
            read.problem(line_of(read.path), said, wrong)
        end
        return handler or nothing
    end
end

local of_file = {
    "policy", "transport", "consumer", "patterns", "exec", "http", "run", "fetch", "worker", "error", "json", "send",
    "sleep",
}
local later = { "on" }

-- What is to be said of a word that m doesn't have.
local function no_word(word)
    local near, late = text.nearest(word, of_file), text.nearest(word, later)
    if late == word then
        return ("m.%s is not in this version yet"):format(word)
    end
    local advice = "there are " .. text.list(of_file, "and")
    if near then
        advice = ("did you mean m.%s?"):format(near)
    elseif late then
        advice = ("m.%s is not in this version yet"):format(late)
    end
    return ("%s is no word of a service.lua; %s"):format(text.show(word), advice)
end

-- strange is the __index of m while the file is read. What it gives may stand for a handler, or make
-- one, so that only the word itself is at fault.
local function strange(read)
    return function(_, word)
        read.problem(line_of(read.path), "%s", no_word(word))
        return function()
            return nothing
        end
    end
end

-- ---- os.exit -----------------------------------------------------------------------------------

local exit = os.exit
local is_worker -- says whether this process is the one at work; nil while none is

-- refuse_exit: from now on os.exit raises in the process that is at work, wherever it is called.
function config.refuse_exit(says_whether_worker)
    is_worker = says_whether_worker
end

-- leave is os.exit while service.lua is read, and after. The file may give up while it is read, but
-- not as if all were done. A process that a handler forked ends, and closes nothing: all that is
-- open in its Lua state is that of the process at work.
local function leave(code, close)
    local number = math.tointeger(tonumber(code))
    if is_worker and not is_worker() then
        return exit(code)
    elseif is_worker then
        error("os.exit would end the process with all that is at work; a handler fails by error or m.error", 2)
    elseif code == nil or code == true or number and number % 256 == 0 then
        error("os.exit with 0 would say that all is done; say error, or name another code", 2)
    end
    return exit(code, close)
end

-- ---- Reading -----------------------------------------------------------------------------------

-- What is to be said beside Lua's own words of a global that is nil.
local function advice_for(message)
    local name = text.nil_global(message)
    local near = text.nearest(name, of_file)
    if name == "m" or name == "mulligan" then
        return ('; add the line: local %s = require "mulligan"'):format(name)
    end
    return near and ("; did you mean m.%s?"):format(near) or ""
end

-- What was raised, as a problem: the first line of it, with its place apart.
local function problem_of(path, raised)
    local meta = getmetatable(raised)
    local well, message = false, nil
    if type(raised) == "string" or type(meta) == "table" and meta.__tostring then
        well, message = pcall(tostring, raised)
    end
    if not well then
        message = ("error was called with a %s, where a text says more"):format(type(raised))
    end
    local first = text.clean((message:match("^[^\n]*")))
    local line, rest = first:match("^" .. path:gsub("%p", "%%%0") .. ":(%d+): (.*)$")
    first = rest or first
    return { file = path, line = tonumber(line), text = first .. advice_for(first) }
end

local DEFAULT = "service.lua"

-- The name that it had at first. Such a file hid the module of that name from `require`.
local OLD_DEFAULT = "mulligan.lua"

-- What would be right where the file can't be read.
local function advice_without(read)
    local old = read.otherwise and io.open(OLD_DEFAULT, "rb")
    if old then
        old:close()
        return ("; rename %s to %s, as the file is called now"):format(OLD_DEFAULT, DEFAULT)
    end
    return read.otherwise and "; " .. read.otherwise or ""
end

local function run_file(read)
    local file, why = io.open(read.path, "rb")
    if not file then
        return {
            file = url.mask(read.path), -- it may be a URL in the wrong place
            text = "can't be read: " .. why:gsub("^.*: ", "") .. advice_without(read),
        }
    end
    local source = file:read("a")
    file:close()
    if not source then
        return { file = read.path, text = "can't be read: it is no file" }
    end
    source = source:gsub("^\xEF\xBB\xBF", ""):gsub("^#[^\n]*", "")
    local chunk, mistake = load(source, "@" .. read.path, "t")
    if not chunk then
        return problem_of(read.path, mistake)
    end
    local well, raised = pcall(chunk)
    return not well and problem_of(read.path, raised) or nil
end

-- A policy's words are said in a state of its own; here they can only be meant by who took the one file
-- for the other.
package.preload["mulligan.policy"] = function()
    error('require("mulligan.policy"): a service.lua has "mulligan"; '
        .. "this looks like a policy, which m.policy names", 3)
end

-- Files beside a service.lua can be required by it.
local function see_folder(folder)
    local before = package.path
    package.path = ("%s?.lua;%s?/init.lua;%s"):format(folder, folder, before)
end

-- check_types finds, where consumers of a queue name types, who takes what another takes already.
local function check_types(read)
    local takers, typed = {}, {}
    for _, consumer in ipairs(read.consumers) do
        if consumer.transport and consumer.queue then
            consumer.place = consumer.transport .. "\0" .. consumer.queue
            takers[consumer.place] = takers[consumer.place] or {}
            typed[consumer.place] = typed[consumer.place] or consumer.types
        end
    end
    for _, consumer in ipairs(read.consumers) do
        local taken = typed[consumer.place] and takers[consumer.place]
        for _, name in ipairs(taken and (consumer.types or { false }) or {}) do
            local other = taken[name]
            taken[name] = other or consumer.name
            if other and name then
                read.problem(consumer.line, "consumer %s: messages of type %s on the queue %s are taken by consumer "
                    .. "%s already; name each type once", text.show(consumer.name), text.show(name),
                    text.show(consumer.queue), text.show(other))
            elseif other then
                read.problem(consumer.line, "consumer %s: where consumers of the queue %s name `types`, only one may "
                    .. "take the rest, and %s does; give one of them types", text.show(consumer.name),
                    text.show(consumer.queue), text.show(other))
            end
        end
    end
end

local function check_whole(read)
    for _, consumer in ipairs(read.consumers) do
        if consumer.transport and not read.transport_named(consumer.transport) then
            read.problem(consumer.line, "consumer %s: %s", text.show(consumer.name),
                read.no_transport(consumer.transport))
        end
    end
    check_types(read)
end

local function by_line(a, b)
    if (a.line or 0) ~= (b.line or 0) then
        return (a.line or 0) < (b.line or 0)
    end
    return a.order < b.order
end

local function in_order(problems)
    for number, problem in ipairs(problems) do
        problem.order = number
    end
    table.sort(problems, by_line)
end

-- with_words runs a function while m has the words of a service.lua, and notes all others.
local function with_words(read, run)
    local kept = {}
    for _, word in ipairs(later) do
        kept[word], mulligan[word] = mulligan[word], nil
    end
    for word, collect in pairs(words) do
        kept[word] = mulligan[word]
        mulligan[word] = function(...)
            return collect(read, ...)
        end
    end
    setmetatable(mulligan, { __index = strange(read) })
    local problem = run(read)
    setmetatable(mulligan, nil)
    for word, was in pairs(kept) do
        mulligan[word] = was
    end
    return problem
end

-- load gives { path, folder, policy = { path, line }, transports = { { name, url, line } … },
-- consumers = { { name, options, line } … }, patterns, problems }: `problems` is what is wrong, by line.
-- Without a path it loads ./service.lua; where there is none, `otherwise` says what would be right.
function config.load(path, otherwise)
    local read = collector(path or DEFAULT)
    read.otherwise = not path and otherwise
    handlers.folder = read.folder
    see_folder(read.folder)
    os.exit = leave -- luacheck: globals os.exit
    local problem = with_words(read, run_file)
    if problem then
        table.insert(read.problems, problem)
    else
        check_whole(read)
    end
    in_order(read.problems)
    return read
end

return config
