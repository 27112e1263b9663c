-- process.lua: runs the program under test, and others, from specs: in a folder of its own, with
-- what it wrote and its exit code; or in the background, with its process id.

local process = {}

local WATCHDOG_S = 120

local function quote(word)
    return "'" .. tostring(word):gsub("'", "'\\''") .. "'"
end

local function quote_all(words)
    local quoted = {}
    for number, word in ipairs(words) do
        quoted[number] = quote(word)
    end
    return table.concat(quoted, " ")
end

local function output_of(command)
    local pipe = assert(io.popen(command))
    local output = pipe:read("a")
    pipe:close()
    return (output:gsub("\n$", ""))
end

local here = output_of("pwd")

local function absolute(path)
    return path:sub(1, 1) == "/" and path or here .. "/" .. path
end

process.here = here

-- The build that is tested, and its program mulligan.
process.build = absolute(os.getenv("MULL_BUILD") or "build/dev")
process.mulligan = absolute(os.getenv("MULLIGAN") or process.build .. "/mulligan")

function process.read(path)
    local file = io.open(path, "rb")
    local bytes = file and file:read("a")
    if file then
        file:close()
    end
    return bytes
end

function process.write(path, bytes)
    local file = assert(io.open(path, "wb"))
    assert(file:write(bytes))
    file:close()
end

-- ---- Folders -----------------------------------------------------------------------------------

local folder = {}
folder.__index = folder

-- folder gives a new folder, with files by name in it: folder:path(name), :read(name), :remove().
function process.folder(files)
    local self = setmetatable({ root = output_of('cd "$(mktemp -d)" && pwd -P'), jobs = {} }, folder)
    assert(self.root ~= "")
    for name, bytes in pairs(files or {}) do
        self:write(name, bytes)
    end
    return self
end

function folder:path(name)
    return self.root .. "/" .. name
end

function folder:write(name, bytes)
    local inner = name:match("^(.*)/")
    if inner then
        os.execute("mkdir -p " .. quote(self:path(inner)))
    end
    process.write(self:path(name), bytes)
end

function folder:read(name)
    return process.read(self:path(name))
end

-- remove ends what still runs here as well: a test that fails leaves nothing behind.
function folder:remove()
    for _, job in ipairs(self.jobs) do
        job.finish()
    end
    os.execute("rm -rf " .. quote(self.root))
end

-- ---- Programs ----------------------------------------------------------------------------------

local function environment(variables)
    local words = {}
    for name, value in pairs(variables or {}) do
        words[#words + 1] = quote(name .. "=" .. value)
    end
    return #words > 0 and "env " .. table.concat(words, " ") .. " " or ""
end

-- start runs a program in this folder in the background: given.stdin is its input, given.env more
-- variables. The job's pid is the program's own.
function folder:start(words, given)
    given = given or {}
    local base = self:path("job" .. #self.jobs + 1)
    process.write(base .. ".in", given.stdin or "")
    assert(os.execute("mkfifo " .. quote(base .. ".end")))
    -- The shell that becomes the program tells its number; who waits reads the exit code.
    local program = ('echo $$ >%s.pid; exec "$@"'):format(quote(base))
    local command = ("cd %s && %ssh -c %s sh %s <%s.in >%s.out 2>%s.err; echo $? >%s.end"):format(quote(self.root),
        environment(given.env), quote(program), quote_all(words), quote(base), quote(base), quote(base), quote(base))
    assert(os.execute(("(%s) >/dev/null 2>&1 &"):format(command)))
    local job = { base = base }
    self.jobs[#self.jobs + 1] = job

    function job.out()
        return process.read(base .. ".out") or ""
    end

    function job.err()
        return process.read(base .. ".err") or ""
    end

    function job.pid()
        local pid
        process.await("its process id", function()
            pid = tonumber(process.read(base .. ".pid"))
            return pid
        end)
        return pid
    end

    -- kill sends a signal, unless the job has ended: its number may be another's by then.
    function job.kill(signal)
        local pid = job.pid()
        os.execute(('[ "$(readlink /proc/%d/cwd)" != %s ] || kill -s %s %d 2>/dev/null'):format(pid, quote(self.root),
            signal, pid))
    end

    -- state is how the kernel calls it: "R", "S", "T" for one that was stopped; nil: it has ended.
    function job.state()
        local stat = process.read(("/proc/%d/stat"):format(job.pid()))
        return stat and stat:match("^%d+ %(.*%) (%a)")
    end

    -- wait gives the exit code, 128 and the signal's number for one that a signal ended.
    function job.wait(watchdog_s)
        watchdog_s = watchdog_s or WATCHDOG_S
        job.code = job.code or tonumber(output_of(("timeout %d cat %s.end"):format(watchdog_s, quote(base))))
        if not job.code then
            job.kill("KILL")
            error(("still at work after %d s: %s\n%s"):format(watchdog_s, table.concat(words, " "), job.err()), 2)
        end
        return job.code
    end

    -- finish ends a job that nobody has waited for.
    function job.finish()
        if not job.code then
            job.kill("KILL")
            job.wait()
        end
    end

    return job
end

-- run runs a program to its end: { code =, out =, err = }.
function folder:run(words, given)
    local job = self:start(words, given)
    return { code = job.wait(), out = job.out(), err = job.err() }
end

-- mulligan runs the program under test.
function folder:mulligan(words, given)
    return self:run({ process.mulligan, table.unpack(words) }, given)
end

function folder:start_mulligan(words, given)
    return self:start({ process.mulligan, table.unpack(words) }, given)
end

-- await looks until `condition` holds; its second value may say why it doesn't. What it looks at is an event elsewhere
-- that nobody tells us of; the pause between two looks only saves the processor.
function process.await(what, condition)
    local deadline = os.time() + WATCHDOG_S
    while true do
        local holds, why = condition()
        if holds then
            return
        elseif os.time() > deadline then
            error(("waited %d s for %s%s"):format(WATCHDOG_S, what, why and ": " .. why or ""), 2)
        end
        os.execute("sleep 0.01")
    end
end

return process
