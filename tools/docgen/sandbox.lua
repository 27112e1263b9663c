-- What of Lua a policy has, and how much it may use.

return {
    {
        title = "The sandbox",
        text = "What of Lua 5.4 a policy has; everything else isn't there. Library tables are read-only from the \z
            start, globals after the load.",
        rows = { "name", "there" },
        words = {
            {
                list = "sandbox",
                heading = "Names",
                rows = {
                    { "basic", "assert error ipairs next pairs pcall select tonumber tostring type" },
                    { "string", "byte char find format gmatch gsub len lower match pack packsize rep reverse sub \z
                        unpack upper" },
                    { "table", "concat insert move pack remove sort unpack" },
                    { "math", "abs acos asin atan ceil cos deg exp floor fmod huge log max maxinteger min mininteger \z
                        modf pi rad sin sqrt tan tointeger type ult" },
                    { "utf8", "char charpattern codepoint codes len offset" },
                    { "print", "writes a line to the log" },
                    { "require", "`mulligan.policy`, and of `a.b` the file `a/b.lua` beside the policy" },
                },
                text = "`pairs` and `next` go in a fixed order: 1 … n, other numbers, strings by their bytes, false, \z
                    true. `tostring` of a table or function gives its kind only.",
                example = 'for i = 1, 3 do\n    bus:on("Busy" .. i):retry(i, math.floor(1.5) .. "s")\nend',
                tries = { { 'error = { type = "Busy2" }', "retry 1000" } },
            },
            {
                list = "budgets",
                heading = "Budgets",
                head = { "", "a load", "a call of a matcher, `override` or `notify`" },
                rows = {
                    { "instructions", "50000000", "100000" },
                    { "MiB at a time", "64", "1" },
                    { "MiB allocated in all", "1024", "16" },
                },
                text = "Instructions and bytes, never time, so that the same file loads everywhere or nowhere. \z
                    `pcall` can't catch the end of a budget. All matchers of one decision share ten calls' worth; \z
                    those beyond it don't match.",
            },
        },
    },
}
