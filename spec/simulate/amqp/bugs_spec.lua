-- Each bug of bugs/*.patch, planted into a copy of the tree, is found within 3,000 seeds: so the
-- simulator of the RabbitMQ module sees what it should see. Built with AddressSanitizer; in the run
-- without sanitizers only, since it brings its own.
local planted = require "support.planted"
local process = require "support.process"

local tree = planted.tree("amqp-bugs", "spec/simulate/amqp/bugs",
    "include src spec/simulate/amqp spec/simulate/kernel.c spec/simulate/kernel.h "
    .. "spec/simulate/seeds.c spec/simulate/seeds.h")

describe("the simulator of the RabbitMQ module, with a bug planted,", function()
    if not process.read(process.build .. "/modules/amqp.so") then
        it("finds bugs", function()
            pending "there is no librabbitmq"
        end)
        return
    end
    tree:finds_by_seed("simulate_amqp", 3000)
end)
