-- layers.lua: who may include whom. Reads the #include lines of src/ and include/, and fails with
-- file, line and header for each that docs/design.md doesn't allow. The order of the files in a room
-- is tools/circles.lua's.
--
--   lua5.4 tools/layers.lua [ROOT]

-- What a header in angle brackets belongs to; one that is in no list is refused.
local outside = {
    -- Values and strings only; stdio.h is for snprintf.
    c = "assert errno float inttypes limits math stdalign stdarg stdatomic stdbool stddef stdint stdio stdlib string",
    -- The machine: files, processes, clocks.
    system = "fcntl locale poll setjmp signal strings sys/file sys/mman sys/random sys/resource sys/stat sys/statvfs "
        .. "sys/time sys/types sys/wait time unistd",
    threads = "pthread threads",
    uv = "uv",
    lua = "lua lauxlib lualib luaconf",
    xxhash = "xxhash",
    jansson = "jansson",
    sqlite3 = "sqlite3",
    loader = "dlfcn sys/auxv",
    rabbitmq = "amqp amqp_framing",
    curl = "curl/curl",
    sockets = "arpa/inet netdb netinet/in netinet/tcp sys/socket sys/un",
    openssl = "openssl/bio openssl/err openssl/ssl openssl/x509v3",
}

-- What each room may include: groups of the above, headers, and rooms ("base/"). A "-" before a
-- header takes it out again. Each room may include itself.
local rooms = {
    ["include"] = "c mulligan.h",
    ["base"] = "c system xxhash mulligan.h",
    ["policy"] = "c base/ -base/clock.h mulligan.h",
    ["analysis"] = "c policy/ base/ -base/clock.h mulligan.h",
    ["decide"] = "c policy/ base/ mulligan.h threads",
    ["wire"] = "c base/ mulligan.h",
    ["net"] = "c system threads base/ mulligan.h uv sockets openssl",
    ["transport"] = "c system mulligan.h mulligan/transport.h mulligan/module.h base/ net/ wire/ uv",
    ["handler"] = "c system sockets mulligan.h base/ wire/ net/ control/session.h uv",
    ["runtime"] = "c system base/ policy/ decide/ wire/ mulligan.h mulligan/transport.h mulligan/module.h "
        .. "transport/transports.h uv",
    ["control"] = "c mulligan.h base/ wire/ net/ uv",
    ["lua/values"] = "c system mulligan.h base/ wire/ runtime/calls.h lua",
    ["lua/machine"] = "c system mulligan.h base/ lua",
    ["lua/language"] = "c system mulligan.h decide/ policy/ base/ lua/machine/ lua/values/ lua threads",
    ["lua/binding"] = "c system mulligan.h runtime/ decide/ analysis/ policy/ wire/ handler/ base/ lua/language/ "
        .. "lua/machine/ lua/values/ lua threads",
    ["lua/program"] = "c system mulligan.h runtime/ control/ wire/ base/ lua/binding/ lua/values/ lua threads",
    ["cli"] = "c system mulligan.h lua/program/",
}

-- A transport is one file or folder. It sees transports.h and message.h of its room and what begins
-- with its own name; the registry sees all.
local registry = "transports"
local shared = "message"

-- Files and folders of a room that have what nothing else has: a client library, the dynamic linker.
local alone = {
    ["base/module_file"] = "loader",
    ["handler/curl"] = "curl",
    ["transport/amqp"] = "rabbitmq",
    ["transport/sqlite"] = "sqlite3",
}

local group_of = {}
for group, names in pairs(outside) do
    for name in names:gmatch("%S+") do
        group_of[name .. ".h"] = group
    end
end

local allowed = {}
for room, words in pairs(rooms) do
    allowed[room] = {}
    for word in words:gmatch("%S+") do
        allowed[room][word] = true
    end
end

local root = arg[1] or "."

local function exists(path)
    local file = io.open(root .. "/" .. path)
    if file then
        file:close()
    end
    return file ~= nil
end

-- The transport that a path below src/transport/ belongs to: its first word.
local function transport_of(path)
    return path:match("^src/transport/([%w]+)")
end

-- What is wrong with `header` in angle brackets in a file at `path`; nil: nothing.
local function judge_outside(path, room, header)
    local group = group_of[header]
    if not group then
        return "a header that tools/layers.lua doesn't know"
    end
    local own = alone[path:match("^src/(%l+/[%l_]+)")] == group
    if not own and not allowed[room][group] then
        return room .. " may not include it"
    end
end

-- Where a header in quotes is, from the root: beside the file, in src/ or in include/.
local function find(path, header)
    local beside = path:match("^(.*/)") .. header
    for _, candidate in ipairs({ beside, "src/" .. header, "include/" .. header }) do
        if exists(candidate) then
            return candidate
        end
    end
end

-- The room of a file: its folder below src/, or in src/lua/ the one below that; none: include/.
local function room_of(path)
    return path:match("^src/(lua/[^/]+)/") or path:match("^src/([^/]+)/") or "include"
end

local function judge_inside(path, room, header)
    local found = find(path, header)
    if not found then
        return "there is no such header"
    end
    local name = found:match("^src/(.*)") or found:match("^include/(.*)")
    local target = room_of(found)
    if target == "transport" and room == "transport" then
        local mine, its = transport_of(path), transport_of(found)
        if its ~= mine and its ~= registry and its ~= shared and mine ~= registry then
            return "a transport may not include another"
        end
    elseif target ~= room and not allowed[room][name] and not allowed[room][target .. "/"] then
        return room .. " may not include it"
    elseif allowed[room]["-" .. name] then
        return room .. " may include its room, but not this header"
    end
end

local function judge(path, room, open, header)
    if not allowed[room] then
        return "tools/layers.lua doesn't know the room " .. room
    elseif open == "<" then
        return judge_outside(path, room, header)
    end
    return judge_inside(path, room, header)
end

local problems = 0

local function read(path)
    local room = room_of(path)
    local number = 0
    for line in io.lines(root .. "/" .. path) do
        number = number + 1
        local open, header = line:match('^%s*#%s*include%s*([<"])([^>"]+)[>"]')
        local problem = header and judge(path, room, open, header)
        if problem then
            problems = problems + 1
            print(("%s:%d: %s: %s"):format(path, number, header, problem))
        end
    end
end

local files = 0
local list = assert(io.popen("cd '" .. root .. "' && find src include -name '*.[ch]' | LC_ALL=C sort"))
for path in list:lines() do
    files = files + 1
    read(path)
end
assert(list:close())
print(("%d files, %d includes that break the layers"):format(files, problems))
os.exit(problems == 0 and files > 0)
