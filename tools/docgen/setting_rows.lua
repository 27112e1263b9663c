-- setting_rows.lua: the settings of scopes, as src/policy/settings.h has them.

local rows = {}
local file = assert(io.open("src/policy/settings.h"))
for field, kind in file:read("a"):gmatch("\n    X%([%u_]+, ([%l_]+), ([%l_]+),") do
    rows[#rows + 1] = { field = field, word = field:gsub("_ms$", ""), kind = kind }
end
file:close()
return rows
