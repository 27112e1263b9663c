-- The transport of examples/array passes the conformance suite, and stays the smallest.
local conformance = require "transport.conformance"
local process = require "support.process"

local LINES = 149

conformance.of_program("array", "array_conforms", { "--forgets", "--tail", "array:" }, function(why)
    pending(why)
end)

describe("examples/array/array.c", function()
    it(("has at most %d lines"):format(LINES), function()
        local _, lines = process.read("examples/array/array.c"):gsub("\n", "")
        assert.is_true(lines <= LINES, lines .. " lines")
    end)
end)
