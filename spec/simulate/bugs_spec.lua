-- Each bug of bugs/*.patch, planted into a copy of the tree, is found within 1,000 seeds: so the
-- simulator sees what it should see. Built with AddressSanitizer; in the run without sanitizers
-- only, since it brings its own.
local planted = require "support.planted"

local tree = planted.tree("bugs", "spec/simulate/bugs", "include src spec/simulate spec/unit/plain.h")

describe("the simulator, with a bug planted,", function()
    tree:finds_by_seed("simulate", 1000)
end)
