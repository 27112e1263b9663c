-- make-orders.lua: writes 1,000 orders as JSON lines, the same ones each time.
--
--   lua5.4 make-orders.lua [COUNT]
--
-- Every fortieth is cut off in the middle, as by a producer that was killed while it wrote.

local count = tonumber(arg[1] or 1000)

local customers = { "Ada", "Björn", "Chloé", "Dmitri", "Efua" }
local goods = { "lamp", "chair", "table", "shelf" }

for number = 1, count do
    local line = ('{"id":"o-%d","customer":"%s","goods":"%s","pieces":%d,"cents":%d}'):format(
        number,
        customers[number % #customers + 1],
        goods[number % #goods + 1],
        number % 7 + 1,
        (number * 7919) % 50000 + 100
    )
    print(number % 40 == 0 and line:sub(1, #line // 2) or line)
end
