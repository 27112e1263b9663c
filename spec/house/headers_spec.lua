-- The public headers alone: as strict C11 and C17 and as C++17, with all warnings as errors. And
-- the library exports what they declare, and nothing else.
local function run(command)
    local pipe = assert(io.popen(command .. " 2>&1"))
    local output = pipe:read("a")
    return pipe:close() == true, output
end

local function slurp(path)
    local file = assert(io.open(path))
    local text = file:read("a")
    file:close()
    return text
end

local warnings = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -Iinclude"
local headers = { "mulligan.h", "mulligan/transport.h" }
local languages = {
    "cc -x c -std=c11 -Wstrict-prototypes",
    "cc -x c -std=c17 -Wstrict-prototypes",
    "c++ -x c++ -std=c++17",
}

describe("a public header", function()
    for _, header in ipairs(headers) do
        for _, language in ipairs(languages) do
            it(header .. " compiles alone by " .. language, function()
                local good, output =
                    run(("echo '#include <%s>' | %s %s -"):format(header, language, warnings))
                assert.is_true(good, output)
            end)
        end
    end
end)

-- declared gives the names of all functions that the headers declare.
local function declared()
    local names = {}
    for _, header in ipairs(headers) do
        for name in slurp("include/" .. header):gmatch("MULL_API[^()]-(mull_[%w_]+)%(") do
            names[name] = true
        end
    end
    return names
end

local function exported()
    local names = {}
    local good, output =
        run("nm -D --defined-only " .. (os.getenv("MULL_BUILD") or "build/dev") .. "/libmulligan.so")
    assert(good, output)
    for name in output:gmatch("%x+ [TDBRV] ([%w_]+)") do
        names[name] = true
    end
    return names
end

describe("the shared library", function()
    it("exports what the headers declare", function()
        local has = exported()
        for name in pairs(declared()) do
            assert.is_true(has[name], name .. " is declared, but not exported")
        end
    end)

    it("exports nothing else", function()
        local wanted = declared()
        assert.is_true(wanted.mull_decide)
        for name in pairs(exported()) do
            assert.is_true(wanted[name], name .. " is exported, but not declared")
        end
    end)
end)
