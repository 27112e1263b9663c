-- error_value.lua: the value of a word that is wrong. The mistake is noted; what the policy does with the
-- value after that raises nothing and is noted no more, so that the load reaches later mistakes.

local lost = setmetatable({}, {
    __index = function(self)
        return self
    end,
    __call = function(self)
        return self
    end,
    __newindex = function() end,
    __len = function()
        return 0
    end,
    __metatable = false,
})

return lost
