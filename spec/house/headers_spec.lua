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

local headers = { "mulligan.h", "mulligan/transport.h", "mulligan/module.h", "mulligan/conformance.h" }

-- All that a careful host may have switched on.
local warnings = "-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wcast-qual -Wundef "
    .. "-Wredundant-decls -Wmissing-declarations -Wmissing-field-initializers -Wdouble-promotion -Wformat=2 -Werror"
local of_c = warnings .. " -Wstrict-prototypes -Wmissing-prototypes -Wc++-compat"
local of_cpp = warnings .. " -Wold-style-cast -Wzero-as-null-pointer-constant -Woverloaded-virtual -Wextra-semi"
local gcc_only = " -Wuseless-cast -Wduplicated-cond -Wlogical-op"

local languages = {}
for _, family in ipairs { { "gcc", "g++", gcc_only }, { "clang", "clang++", "" } } do
    local c, cpp, more = table.unpack(family)
    for _, standard in ipairs { "c11", "c17" } do
        languages[#languages + 1] = { name = c .. " as " .. standard, tool = c,
            command = ("%s -x c -std=%s %s"):format(c, standard, of_c) }
    end
    languages[#languages + 1] = { name = cpp .. " as c++17", tool = cpp, is_cpp = true,
        command = ("%s -x c++ -std=c++17 %s"):format(cpp, of_cpp .. more) }
end

-- compiles says whether each of the installed compilers that `wanted` lets pass takes a text.
local function compiles(text, wanted)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write(text)
    file:close()
    local tried = 0
    for _, language in ipairs(languages) do
        if (not wanted or wanted(language)) and run("command -v " .. language.tool) then
            local good, output = run(("%s -fsyntax-only -Iinclude '%s'"):format(language.command, path))
            assert.is_true(good, language.name .. ":\n" .. output)
            tried = tried + 1
        end
    end
    os.remove(path)
    return tried
end

local sized = {
    ["mulligan.h"] = {
        "mull_message", "mull_error", "mull_failure", "mull_verdict", "mull_policy_options", "mull_engine_options",
        "mull_consumer_options", "mull_counts", "mull_transport_snapshot", "mull_consumer_snapshot",
        "mull_rule_snapshot", "mull_snapshot", "mull_limit_status",
    },
    ["mulligan/transport.h"] = {
        "mull_abilities", "mull_source", "mull_delivery", "mull_outgoing", "mull_settlement", "mull_transport_ops",
    },
    ["mulligan/module.h"] = { "struct mull_module" },
    ["mulligan/conformance.h"] = { "mull_conformance_options" },
}

local function made_structs(names)
    local lines = {}
    for i, name in ipairs(names) do
        lines[i] = ("    %s s%d = MULL_INIT(%s);\n    sum += s%d.size;\n"):format(name, i, name, i)
    end
    local body = "    size_t sum = 0;\n" .. table.concat(lines) .. "    return sum;\n"
    return "size_t use(void);\nsize_t use(void)\n{\n" .. body .. "}\n"
end

describe("a public header", function()
    for _, header in ipairs(headers) do
        it(header .. " compiles alone as C11, C17 and C++17", function()
            assert.is_true(compiles(("#include <%s>\n"):format(header)) >= 3)
        end)
    end

    for _, header in ipairs(headers) do
        it(header .. " has MULL_INIT for each struct with a size, in each language", function()
            local _, count = slurp("include/" .. header):gsub("\n    size_t size;", "")
            assert.equal(#sized[header], count)
            assert.is_true(compiles(("#include <%s>\n"):format(header) .. made_structs(sized[header])) >= 3)
        end)
    end

    it("has a beginning for a transport's table that strict C takes", function()
        local slots = {}
        for slot, parameters in slurp("include/mulligan/transport.h"):gmatch("\n    int %(%*(%l+)%)(%b());") do
            slots[#slots + 1] = ("int t_%s%s;\n"):format(slot, parameters)
        end
        for slot, parameters in slurp("include/mulligan/transport.h"):gmatch("\n    void %(%*(%l+)%)(%b());") do
            slots[#slots + 1] = ("void t_%s%s;\n"):format(slot, parameters)
        end
        local text = "#include <mulligan/transport.h>\n" .. table.concat(slots)
            .. "extern const mull_transport_ops plain, whole;\n"
            .. "const mull_transport_ops plain = {MULL_TRANSPORT_OPS(t)};\n"
            .. "const mull_transport_ops whole = {MULL_TRANSPORT_OPS(t), .depth = t_depth, .hold = t_hold,\n"
            .. "    .flush = t_flush};\n"
        assert.is_true(compiles(text, function(language) return not language.is_cpp end) >= 2)
    end)

    it("may be included within extern C, and twice", function()
        local text = 'extern "C" {\n#include <mulligan/transport.h>\n#include <mulligan.h>\n}\n'
            .. made_structs(sized["mulligan.h"])
        assert.is_true(compiles(text, function(language) return language.is_cpp end) >= 1)
    end)

    it("clears all of a struct in C++", function()
        if not run("command -v g++") then
            pending("no g++ here")
            return
        end
        local path = os.tmpname()
        local file = assert(io.open(path .. ".cpp", "w"))
        file:write([[
#include <mulligan.h>
#include <cstring>
#include <new>
int main()
{
    alignas(mull_failure) unsigned char room[sizeof(mull_failure)];
    std::memset(room, 0x5a, sizeof room);
    const mull_failure *made = new (room) mull_failure(MULL_INIT(mull_failure));
    mull_failure zero;
    std::memset(static_cast<void *>(&zero), 0, sizeof zero);
    zero.size = sizeof zero;
    return made->size == sizeof *made && made->error == nullptr && made->age_ms == 0 && made->flags == 0 &&
           made->chance == zero.chance ? 0 : 1;
}
]])
        file:close()
        local good, output = run(("g++ -std=c++17 -O2 -Iinclude -o '%s' '%s.cpp' && '%s'"):format(path, path, path))
        os.remove(path)
        os.remove(path .. ".cpp")
        assert.is_true(good, output)
    end)
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
    for name in output:gmatch("%x+ %a ([%w_]+)") do
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
