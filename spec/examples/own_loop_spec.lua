-- Runs examples/own_loop.c: an engine beside a timer of the program's, on the program's loop.
local examples = require "support.examples"

describe("examples/own_loop.c", function()
    it("pays all, retries every second one, and leaves its loop empty", function()
        local counts, out = examples.counts "own_loop.c"
        assert.same({ published = 20, done = 20, retried = 10, ["dead-lettered"] = 0 }, counts)
        assert.is_truthy(out:find("\nengine closed, loop empty\n$"), out)
    end)
end)
