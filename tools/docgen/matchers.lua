-- Matchers, the values in them, and what they look at.

local function example(matcher)
    return ('bus:on("HttpError", %s):retry(1, 0)'):format(matcher)
end

local function hit(fields)
    return { ('error = { type = "HttpError", %s }'):format(fields), "retry 0" }
end

local function miss(fields)
    return { ('error = { type = "HttpError", %s }'):format(fields), "dead_letter error no_rule" }
end

local counters = {
    { "attempt", "integer", "failed calls since the message was last handed out, this one included; from 1" },
    { "redeliveries", "integer", "redeliveries done so far" },
    { "deliveries", "integer", "how often the transport has handed this copy out; 1 where it doesn't count" },
    { "calls", "integer", "failed calls in all, over every delivery, this one included" },
    { "age_ms", "integer", "milliseconds since the first failure" },
    { "consumer", "string", "the name of the consumer" },
    { "transport", "string", "the name of the transport" },
}

local message = {
    { "id", "string", "the id of the message" },
    { "type", "string", "the type of the message" },
    { "key", "string", "the key of the message" },
    { "size", "integer", "the size of its body in bytes" },
}

-- The same names as options of policy.ctx, each of which may be asked for.
local function asked(fields, below)
    local list = {}
    for i, field in ipairs(fields) do
        list[i] = { field[1] .. "?", "mulligan.Value", field[3] }
    end
    list[#list + 1] = below
    return list
end

-- As a function sees them; what may be missing is nil.
local function seen(fields, always, below)
    local list = {}
    for i, field in ipairs(fields) do
        list[i] = { field[1] .. (always[field[1]] and "" or "?"), field[2], field[3] }
    end
    list[#list + 1] = below
    return list
end

local counted = { attempt = true, redeliveries = true, deliveries = true, calls = true, age_ms = true }

local function combined(name, passes, matcher, tries)
    return {
        of = "PolicyWords",
        name = name,
        params = { { "...", "mulligan.Matcher", "one at least; looked at in the order written, no further than \z
            needed" } },
        returns = "MadeMatcher",
        text = ("Makes a matcher that passes where %s of the given ones do."):format(passes),
        example = example(matcher),
        tries = tries,
    }
end

return {
    {
        title = "Matchers",
        text = "The second argument of `on`, `on_cause` and `unrecoverable`. Table matchers run in C; only functions \z
            run Lua. A matcher that raises, or runs over its budget, does not pass: the search goes on, and the \z
            event `matcher_failed` says why.",
        words = {
            { class = "MadeMatcher", text = "What `policy.ctx`, `all`, `any` and `none` give." },
            {
                alias = "Fields",
                type = "table<string, mulligan.Value>",
                heading = "A table of fields",
                text = "Passes where every field of the error that is named has the value. `type`, `message` and \z
                    `stack` may be named as well; the error's cause is never looked at.",
                example = example '{ status = { 502, 503 }, method = "GET" }',
                tries = { hit 'status = 503, method = "GET"', miss 'status = 503, method = "PUT"' },
            },
            {
                alias = "MatcherFunction",
                type = "fun(err: mulligan.Err, ctx: mulligan.Ctx): any",
                heading = "A function",
                text = "Passes where it returns anything but nil and false. It may not rely on a variable that it \z
                    changes: each thread has a copy of its own.",
                example = example "function(err, ctx) return err.host == ctx.message.headers.host end",
                tries = {
                    { 'error = { type = "HttpError", host = "a" }, message = { headers = { host = "a" } }', "retry 0" },
                    miss 'host = "a"',
                },
            },
            {
                alias = "Matcher",
                type = "mulligan.Fields|mulligan.MatcherFunction|mulligan.MadeMatcher",
                text = "Any of these.",
            },
            {
                of = "PolicyWords",
                name = "ctx",
                params = { { "tests", "mulligan.CtxTests", "each name with the value that is asked for" } },
                returns = "MadeMatcher",
                text = "Makes a matcher of what surrounds the failure, as a table of fields does of the error.",
                example = example 'policy.ctx { redeliveries = 0, message = { headers = { tenant = "acme" } } }',
                tries = {
                    { 'error = { type = "HttpError" }, message = { headers = { tenant = "acme" } }', "retry 0" },
                    { 'error = { type = "HttpError" }, message = { headers = { tenant = "other" } }', "dead_letter \z
                        error no_rule" },
                },
            },
            {
                class = "CtxTests",
                exact = true,
                heading = "What `policy.ctx` may ask for",
                fields = asked(counters, { "message?", "mulligan.MessageTests", "a table of what the message has" }),
            },
            {
                class = "MessageTests",
                exact = true,
                heading = "What its `message` may ask for",
                fields = asked(message, { "headers?", "mulligan.Fields", "a table of headers; names are exact, \z
                    values strings" }),
            },
            combined("all", "all", "policy.all({ status = 503 }, policy.ctx { redeliveries = 0 })", { hit "status = \z
                503" }),
            combined("any", "one", 'policy.any({ status = 503 }, { code = "EAGAIN" })', { hit 'code = "EAGAIN"',
                miss "status = 500" }),
            combined("none", "none", "policy.none({ status = 404 }, { status = 410 })", { hit "status = 500",
                miss "status = 410" }),
        },
    },
    {
        title = "Values",
        text = "What a field may be asked for. A field is a string, a number or a boolean; a list or a map counts as \z
            absent. Numbers equal numbers of the same value, `503` and `503.0`, and never a string.",
        words = {
            { class = "Test", text = "What the words below give." },
            { alias = "Literal", type = "string|number|boolean", heading = "A literal", text = "Matches what is \z
                equal, type included.",
                example = example "{ transient = true }", tries = { hit "transient = true", miss 'transient = \z
                    "true"' } },
            { alias = "Value", type = "mulligan.Literal|mulligan.Literal[]|mulligan.Test", heading = "A list",
                text = "A list of literals matches what is equal to one of them.",
                example = example "{ status = { 502, 503, 504 } }", tries = { hit "status = 504",
                    miss "status = 500" } },
            {
                of = "PolicyWords", name = "between", returns = "Test",
                params = { { "low", "number", "the least" }, { "high", "number", "the most; not below `low`" } },
                text = "Matches a number from one to the other, both included.",
                example = example "{ status = policy.between(500, 599) }",
                tries = { hit "status = 599", miss "status = 600" },
            },
            {
                of = "PolicyWords", name = "at_least", returns = "Test",
                params = { { "n", "number", "the least" } },
                text = "Matches a number that is as great, or greater.",
                example = example "{ status = policy.at_least(500) }",
                tries = { hit "status = 500", miss "status = 499" },
            },
            {
                of = "PolicyWords", name = "at_most", returns = "Test",
                params = { { "n", "number", "the most" } },
                text = "Matches a number that is as small, or smaller.",
                example = example "{ retries_left = policy.at_most(0) }",
                tries = { hit "retries_left = 0", miss "retries_left = 1" },
            },
            {
                of = "PolicyWords", name = "contains", returns = "Test",
                params = { { "text", "string", "taken as it is, no pattern" } },
                text = "Matches a string that has the text somewhere in it.",
                example = example '{ message = policy.contains("deadlock") }',
                tries = { hit 'message = "a deadlock was found"', miss 'message = "Deadlock"' },
            },
            {
                of = "PolicyWords", name = "matches", returns = "Test",
                params = { { "pattern", "string", "a Lua pattern; checked at load" } },
                text = "Matches a string in which the pattern finds something.",
                example = example '{ code = policy.matches("^40") }',
                tries = { hit 'code = "40P01"', miss 'code = "X40"' },
            },
            {
                of = "PolicyWords", name = "present", constant = "Test",
                text = "Matches a field that is there.",
                example = example "{ retry_after = policy.present }",
                tries = { hit "retry_after = 5", miss "status = 429" },
            },
            {
                of = "PolicyWords", name = "absent", constant = "Test",
                text = "Matches a field that is not there.",
                example = example "{ retry_after = policy.absent }",
                tries = { hit "status = 429", miss "retry_after = 5" },
            },
            {
                of = "PolicyWords", name = "is_not", returns = "Test",
                params = { { "value", "mulligan.Value", "any value of these" } },
                text = "Matches what the value doesn't, a missing field too.",
                example = example "{ status = policy.is_not { 404, 410 } }",
                tries = { hit "status = 500", hit "code = 1", miss "status = 410" },
            },
        },
    },
    {
        title = "What functions see",
        text = "`err` and `ctx` are read-only, and gone when the function returns.",
        words = {
            {
                class = "Err",
                before = "err:",
                heading = "`err`",
                fields = {
                    { "type", "string", "the error's type" },
                    { "message", "string", '`""` where it has none' },
                    { "stack", "string", '`""` where it has none' },
                    { "cause?", "mulligan.Err", "the error behind it, at most 16 deep" },
                    { "[string]", "any", "every other field that the failure carries; lists and maps are read-only \z
                        tables" },
                },
            },
            {
                of = "Err",
                name = "is",
                params = { { "type", "mulligan.ErrorType", "a type" } },
                returns = "boolean",
                text = "Says whether a type is in the error's effective lineage.",
                example = example 'function(err) return err.cause and err.cause:is("TimeoutError") end',
                tries = { hit 'cause = { type = "TimeoutError" }', miss 'cause = { type = "Other" }' },
            },
            {
                class = "Ctx",
                heading = "`ctx`",
                fields = seen(counters, counted, { "message", "mulligan.CtxMessage", "the message, without its body" }),
            },
            {
                class = "CtxMessage",
                heading = "`ctx.message`",
                fields = seen(message, {}, { "headers", "table<string, string>", "always a table; names are exact" }),
            },
        },
    },
}
