-- circles.lua: which file uses which, by the symbols of their object files. Fails on a circle of
-- files inside src/runtime or across rooms, and where a file of src/runtime uses a later one.
--
--   lua5.4 tools/circles.lua [ROOT [BUILD]]

-- A file may use those of its own step and of the steps before it.
local order = {
    runtime = {
        "engine_state stall_watchdog",
        "transitions timers companions tickets copy counting rate_limit call_limit",
        "calls questions limit_values",
        "events",
        "limit_events",
        "limiting",
        "limiting_refresh admission",
        "readers",
        "settlement",
        "delivery",
        "turn",
        "port check",
        "consumers",
        "setup reload stop",
        "stop_when_empty snapshot",
        "loop",
    },
}

local root = arg[1] or "."
local build = arg[2] or root .. "/build/dev"
local problems = 0

local function complain(...)
    problems = problems + 1
    print(string.format(...))
end

local function lines_of(command)
    local pipe = assert(io.popen(command))
    local output = pipe:read("a")
    assert(pipe:close(), command)
    return output:gmatch("[^\n]+")
end

local function room_of(file)
    return file:match("^src/(lua/[^/]+)/") or file:match("^src/([^/]+)/")
end

-- The files, by name, with what each needs; and which file has a symbol.
local needs, owner = {}, {}

local function read(file, object)
    needs[file] = {}
    for line in lines_of(("nm '%s'"):format(object)) do
        local kind, name = line:match("(%a) ([%w_]+)$")
        if kind == "U" then
            table.insert(needs[file], name)
        elseif kind and kind:find("[A-TV-Z]") then
            owner[name] = file
        end
    end
end

-- Objects of sources that are gone may still be there.
local objects = ("find '%s' -path '*mulligan_objects.dir/src/*.c.o' | LC_ALL=C sort"):format(build)
for object in lines_of(objects) do
    local file = object:match("mulligan_objects%.dir/(src/.*)%.o$")
    local source = io.open(root .. "/" .. file)
    if source then
        source:close()
        read(file, object)
    end
end

local files, uses = {}, {}
for file, names in pairs(needs) do
    files[#files + 1] = file
    uses[file] = {}
    for _, name in ipairs(names) do
        local used = owner[name]
        if used and used ~= file then
            uses[file][used] = uses[file][used] or name
        end
    end
end
table.sort(files)

-- ---- The order in a room ---------------------------------------------------------------------

local step_of = {}
for room, steps in pairs(order) do
    for number, names in ipairs(steps) do
        for name in names:gmatch("%S+") do
            step_of[("src/%s/%s.c"):format(room, name)] = number
        end
    end
end

for _, file in ipairs(files) do
    if order[room_of(file)] and not step_of[file] then
        complain("%s: tools/circles.lua doesn't say where it stands", file)
    end
    for used, name in pairs(uses[file]) do
        if room_of(used) == room_of(file) and (step_of[used] or 0) > (step_of[file] or 0) then
            complain("%s: it uses %s of %s, which comes later", file, name, used)
        end
    end
end

-- ---- Circles ---------------------------------------------------------------------------------

-- The way from `from` to `to` over what each uses; nil: there is none.
local function way(from, to, seen)
    if from == to then
        return from
    end
    seen[from] = true
    for used in pairs(uses[from]) do
        local rest = not seen[used] and way(used, to, seen)
        if rest then
            return from .. " -> " .. rest
        end
    end
end

local told = {}
for _, file in ipairs(files) do
    for used in pairs(uses[file]) do
        local matters = order[room_of(file)] or room_of(used) ~= room_of(file)
        local back = matters and not told[used .. file] and way(used, file, {})
        if back then
            told[file .. used] = true
            complain("a circle: %s -> %s", file, back)
        end
    end
end

print(("%d files, %d problems"):format(#files, problems))
os.exit(problems == 0 and #files > 0)
