-- Runs examples/decide.cpp and examples/decide.py; decide.c is run by spec/house/readme_spec.lua.
local examples = require "support.examples"
local process = require "support.process"

describe("examples/decide.cpp", function()
    it("retries by a base class of what was thrown", function()
        local ran = examples.run "decide.cpp"
        assert.equal(0, ran.code, ran.err)
        assert.equal("", ran.err)
        assert.equal(table.concat({
            "message 1, attempt 1: retry in 10 ms",
            "message 1, attempt 2: retry in 20 ms",
            "message 1, attempt 3: dead_letter (error)",
            "message 2, attempt 1: dead_letter (unknown)",
            "",
        }, "\n"), ran.out)
    end)
end)

-- What Python believes of the structs, a line each: `NAME size N`, `NAME.FIELD at N, of N`.
local LAYOUT = [[
import ctypes, decide
for name, kind in sorted(vars(decide).items()):
    if name.startswith("mull_") and isinstance(kind, type) and issubclass(kind, ctypes.Structure):
        print(f"{name} size {ctypes.sizeof(kind)}")
        for field, *_ in kind._fields_:
            here = getattr(kind, field)
            print(f"{name}.{field} at {here.offset}, of {here.size}")
]]

-- c_of writes a C program that prints the same lines.
local function c_of(layout)
    local lines = { "#include <mulligan.h>", "#include <stdio.h>", "int main(void) {" }
    for line in layout:gmatch("[^\n]+") do
        local name, field = line:match("^([%w_]+)%.([%w_]+) ")
        if name then
            lines[#lines + 1] = ('printf("%s.%s at %%zu, of %%zu\\n", offsetof(%s, %s), sizeof ((%s *)0)->%s);')
                :format(name, field, name, field, name, field)
        else
            name = line:match("^[%w_]+")
            lines[#lines + 1] = ('printf("%s size %%zu\\n", sizeof(%s));'):format(name, name)
        end
    end
    lines[#lines + 1] = "}"
    return table.concat(lines, "\n") .. "\n"
end

describe("examples/decide.py", function()
    it("has the structs as C has them", function()
        local folder = process.folder { ["layout.py"] = LAYOUT }
        local python = folder:run({ "python3", "layout.py" }, { env = { PYTHONPATH = process.here .. "/examples",
            PYTHONDONTWRITEBYTECODE = "1" } })
        assert.equal(0, python.code, python.err)
        assert.is_truthy(python.out:find("mull_verdict.generation at ", 1, true), python.out)
        folder:write("layout.c", c_of(python.out))
        local c = folder:run { "sh", "-c", ("cc -I'%s/include' layout.c -o layout && ./layout"):format(process.here) }
        folder:remove()
        assert.equal(0, c.code, c.err)
        assert.equal(c.out, python.out)
    end)

    it("decides by an exception's classes and fields", function()
        if examples.sanitizer then
            pending("an interpreter without the sanitizer can't load this library")
            return
        end
        local ran = examples.run "decide.py"
        assert.equal(0, ran.code, ran.err)
        assert.equal("", ran.err)
        local reset = "ConnectionResetError {'host': 'db'}: "
            .. "{'action': 'retry', 'delay_ms': 10, 'queue': None, 'line': 2}\n"
        assert.equal(reset, ran.out:sub(1, #reset))
        local delay, rest = ran.out:sub(#reset + 1):match("^ConnectionResetError {'host': 'mail', 'port': 25}: "
            .. "{'action': 'redeliver', 'delay_ms': (%d+), 'queue': None, 'line': 3}\n(.*)$")
        assert.is_truthy(delay, ran.out)
        assert.is_true(tonumber(delay) >= 45000 and tonumber(delay) <= 75000, delay)
        assert.equal("KeyError {}: {'action': 'dead_letter', 'delay_ms': 0, 'queue': 'unknown', 'line': 4}\n"
            .. "refused: the policy cannot be loaded\n"
            .. "policy.lua:1: attempt to perform arithmetic on a nil value\n", rest)
    end)
end)
