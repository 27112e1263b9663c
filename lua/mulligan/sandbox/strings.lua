-- strings.lua: `string` for policies, also behind the methods of strings.

local strings = require("mulligan.sandbox.library").string

-- Methods of strings are these functions. No word of a policy gives a metatable; this one is shut
-- all the same.
local metatable = getmetatable("")
metatable.__index = strings
metatable.__metatable = false

return strings
