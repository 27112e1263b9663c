-- A library in somebody's process keeps no state of its own there, ends nothing and prints nothing: of the shared
-- library's symbols none is a variable, and none that it needs could do that.
local build = os.getenv("MULL_BUILD") or "build/dev"
local library = build .. "/libmulligan.so"

local function run(command)
    local pipe = assert(io.popen(command))
    local output = pipe:read("a")
    assert.is_true(pipe:close(), command)
    return output
end

local function set(words)
    local members = {}
    for word in words:gmatch("%S+") do
        members[word] = true
    end
    return members
end

-- needed gives what the library takes from others, without the versions.
local function needed()
    local names = {}
    for name in run("nm -D --undefined-only " .. library):gmatch("%a ([%w_]+)") do
        names[name] = true
    end
    return names
end

-- Instrumented code has variables and ways to end of its own.
local function is_instrumented()
    for name in pairs(needed()) do
        if name:find("^__[at]san_") then
            return true
        end
    end
    return false
end

-- What has no place in a library, in lists by what it does.
local foreign = {
    ["ends the process"] = [[abort exit _exit _Exit quick_exit __assert_fail __assert_perror_fail err errx verr verrx
        error raise kill tgkill pthread_kill pthread_exit]],
    ["is called when it ends"] = "atexit at_quick_exit on_exit __cxa_atexit",
    ["prints"] = [[stdout stderr printf fprintf vprintf vfprintf dprintf vdprintf puts fputs putc fputc putchar fwrite
        perror psignal syslog write writev warn warnx vwarn vwarnx __printf_chk __fprintf_chk __vfprintf_chk]],
    ["handles signals"] = "signal sigaction sigset bsd_signal __sysv_signal",
    ["changes what the whole process has"] = [[setenv putenv unsetenv clearenv setlocale chdir fchdir umask setrlimit
        setuid setgid daemon fork vfork execve system popen]],
    ["keeps something between calls"] = [[strtok rand srand random srandom drand48 localtime gmtime ctime asctime
        getpwuid getpwnam gethostbyname tmpnam getopt getopt_long]],
}

-- Variables that are none of ours: what the C runtime puts in each library.
local runtime = {
    ["completed.0"] = "its destructors ran",
    __dso_handle = "the library's own address",
    __TMC_END__ = "the end of a table that is empty",
}

-- Sections that are written only while the library is loaded.
local fixed = set(".data.rel.ro .init_array .fini_array .dynamic .got .got.plt")

-- variables gives the names of all objects in sections that stay writable once the library is loaded.
local function variables()
    local writable = {}
    for number, name, flags in run("readelf -SW " .. library):gmatch(
        "%[%s*(%d+)%]%s+(%S+)%s+%S+%s+%x+%s+%x+%s+%x+%s+%x+%s+(%a+)") do
        if flags:find("W", 1, true) and not fixed[name] then
            writable[number] = name
        end
    end
    assert(next(writable), "no section is writable: readelf wasn't understood")
    local found, objects = {}, 0
    for kind, section, name in run("readelf -sW " .. library):gmatch(
        "%x+:?%s+%S+%s+(%u+)%s+%u+%s+%u+%s+(%d+)%s+([%w_.]+)") do
        if kind == "OBJECT" or kind == "TLS" then
            objects = objects + 1
            if writable[section] then
                found[#found + 1] = name
            end
        end
    end
    assert(objects > 20, "no objects: readelf wasn't understood, or the library is stripped")
    return found
end

describe("the shared library", function()
    it("has no variables", function()
        if is_instrumented() then
            pending("instrumented code has its own")
            return
        end
        local found = {}
        for _, name in ipairs(variables()) do
            if not runtime[name] then
                found[#found + 1] = name
            end
        end
        assert.same({}, found)
    end)

    for what, names in pairs(foreign) do
        it("needs nothing that " .. what, function()
            if is_instrumented() then
                pending("instrumented code needs more")
                return
            end
            local has, found = needed(), {}
            assert.is_true(has.memcpy or has.strlen, "nm wasn't understood")
            for name in pairs(set(names)) do
                if has[name] then
                    found[#found + 1] = name
                end
            end
            assert.same({}, found)
        end)
    end
end)
