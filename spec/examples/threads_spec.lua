-- Runs examples/threads.c: eight threads decide while one reloads, by two policies that never mix.
local examples = require "support.examples"

describe("examples/threads.c", function()
    it("has both policies decide on every thread, and each verdict of one of them", function()
        local ran = examples.run "threads.c"
        assert.equal(0, ran.code, ran.err)
        assert.equal("", ran.err)
        local retried, one, dead, other, reloads =
            ran.out:match("^retry (%d+) times, by (%x+)\ndead_letter (%d+) times, by (%x+)\n"
                .. "8 threads, (%d+) reloads meanwhile, 0 wrong\n$")
        assert.is_truthy(retried, ran.out)
        assert.is_true(tonumber(retried) >= 8 * 20000 and tonumber(dead) >= 8 * 20000, ran.out)
        assert.are_not.equal(one, other)
        assert.equal(32, #one)
        assert.is_true(tonumber(reloads) >= 1, ran.out)
    end)
end)
