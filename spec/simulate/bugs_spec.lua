-- Each bug of bugs/*.patch, planted into a copy of the tree, is found within 1,000 seeds: so the
-- simulator sees what it should see. Built with AddressSanitizer; in the run without sanitizers
-- only, since it brings its own.
local planted = require "support.planted"

local tree = planted.tree("bugs", "spec/simulate/bugs", "include src spec/simulate spec/unit/plain.h")

local function simulate(words)
    return planted.output_of(("timeout 300 %s/build/simulate %s"):format(tree.folder, words or ""))
end

describe("the simulator, as it was planted", function()
    if not planted.build:find("/dev$") then
        pending("is looked at in the run without sanitizers")
        return
    end

    setup(function()
        tree:configure()
    end)

    after_each(function()
        tree:sync()
    end)

    it("finds nothing where there is nothing", function()
        tree:compile()
        local output, good = simulate()
        assert.is_true(good, output)
    end)

    for _, patch in ipairs(tree:patches()) do
        it("finds that " .. patch.title, function()
            tree:plant(patch.name)
            tree:compile()
            local output, good = simulate()
            assert.is_false(good, "1,000 seeds, and nothing found")
            local seed = output:match("\nseed (%d+), step %d+, at %d+ ms: ")
            assert.is_truthy(seed, output)
            -- The same seed alone goes wrong in the same way.
            local again = simulate("--seed " .. seed)
            assert.equal(output:match("\nseed .*$"), again:match("\nseed .*$"))
        end)
    end
end)
