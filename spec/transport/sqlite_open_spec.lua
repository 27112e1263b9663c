-- Many processes that open one new sqlite: file at the same time: one fills it, and all go on.
local process = require "support.process"
local queues = require "support.queues"

describe("a new sqlite: file", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function send_from_ten(name)
        local one = ("echo $n | '%s' send q --transport 'sqlite:%s' 2>>'%s'"):format(
            process.mulligan,
            folder:path(name),
            folder:path("errors")
        )
        local command = "for n in 1 2 3 4 5 6 7 8 9 10; do " .. one .. " & done; wait"
        assert(os.execute(command))
    end

    it("may be opened by many processes at once", function()
        for round = 1, 5 do
            local name = round .. ".db"
            send_from_ten(name)
            assert.equal("", folder:read("errors"))
            assert.equal(10, queues.depth("sqlite:" .. folder:path(name), "q").ready)
        end
    end)
end)
