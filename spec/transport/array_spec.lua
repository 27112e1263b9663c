-- The transport of examples/array passes the conformance suite, and stays the smallest.
local process = require "support.process"

local LINES = 149

describe("examples/array/array.c", function()
    it("passes the conformance suite, by what it promises", function()
        local folder = process.folder()
        local program = process.build .. "/spec/transport/array_conforms"
        local ended = folder:run({ program, "--forgets", "--tail", "array:" })
        folder:remove()
        assert.same({ 0, "" }, { ended.code, ended.err }, ended.out)
        assert.not_matches("not ok", ended.out, 1, true)
        local _, passed = ended.out:gsub("\nok [^#\n]*%f[\n]", "")
        assert.is_true(passed >= 17, ended.out)
    end)

    it(("has at most %d lines"):format(LINES), function()
        local _, lines = process.read("examples/array/array.c"):gsub("\n", "")
        assert.is_true(lines <= LINES, lines .. " lines")
    end)
end)
