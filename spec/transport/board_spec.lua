-- The transport of examples/board does what every transport does. Its module has it built in.
local build = os.getenv("MULL_BUILD") or "build/dev"
local cpath = package.cpath
package.cpath = build .. "/spec/board/?.so;" .. cpath
local conformance = require "transport.conformance"
package.cpath = cpath

local boards = 0

conformance("board", { durable = true }, function()
    boards = boards + 1
    return { url = "board:" .. boards }
end)
