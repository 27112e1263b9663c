-- Each bug of bugs/*.patch, planted into a copy of the tree, is found by spec/unit/transport/sqlite_model.c
-- within 100 seeds: so the model and the invariants see what they should see.
local planted = require "support.planted"

local tree = planted.tree("store-bugs", "spec/transport/bugs",
    "include src spec/unit/transport/sqlite_model.c spec/unit/plain.h spec/embed/*.h")

local function run()
    return planted.output_of(("MULL_SEEDS=100 timeout 300 %s/build/model"):format(tree.folder))
end

describe("the model of a sqlite: file", function()
    for _, patch in ipairs(tree:prepare(run)) do
        it("finds that " .. patch.title, function()
            local output = tree:output_with(patch, run)
            assert.is_truthy(output:find("[  FAILED  ] what_chance_says", 1, true), output)
        end)
    end
end)
