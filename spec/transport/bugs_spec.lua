-- Each bug of bugs/*.patch, planted into a copy of the tree, is found by spec/unit/transport/sqlite_model.c
-- within 100 seeds: so the model and the invariants see what they should see.
local planted = require "support.planted"

local tree = planted.tree("store-bugs", "spec/transport/bugs",
    "include src spec/transport/bugs spec/unit/transport/sqlite_model.c spec/unit/plain.h spec/embed/*.h")

local function run()
    return planted.output_of(("MULL_SEEDS=100 timeout 300 %s/build/model"):format(tree.folder))
end

describe("the model of a sqlite: file", function()
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
        local output, good = run()
        assert.is_true(good, output)
    end)

    for _, patch in ipairs(tree:patches()) do
        it("finds that " .. patch.title, function()
            tree:plant(patch.name)
            tree:compile()
            local output, good = run()
            assert.is_false(good, "100 seeds, and nothing found")
            assert.is_truthy(output:find("[  FAILED  ] what_chance_says", 1, true), output)
        end)
    end
end)
