-- What a service.lua says, and what handlers get.

local function word(name, params, text, more)
    local it = { of = "Module", name = name, params = params, text = text }
    for key, value in pairs(more or {}) do
        it[key] = value
    end
    return it
end

return {
    {
        title = "service.lua",
        text = "What `mulligan run` runs. It has all of Lua; `require \"mulligan\"` gives these words, and those of \z
            the [Lua module](#the-lua-module). [running.md](running.md) tells the rest.",
        program = [[
local m = require "mulligan"

m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")

m.consumer("OrderHandler", {
    transport = "orders", queue = "orders", concurrency = 16, timeout = "30s",
    handler = function(msg)
        local order = m.json.decode(msg.body)
        if not order.address then
            m.error { type = "ValidationError", message = "no address", order = order.number }
        end
        m.send("invoices", msg.body, { type = "Invoice", delay = "1m" })
    end,
})]],
        words = {
            { class = "Module", called = "mulligan", before = "m.", heading = "The module", text = "What `require \z
                \"mulligan\"` gives.",
                fields = { { "version", "string", "of mulligan" }, { "json", "mulligan.Json", "JSON" } } },
            word("policy", { { "path", "string", "relative to service.lua" } }, "Says which policy; once, required."),
            word("transport", {
                { "name", "string", "for consumers, policies and logs" },
                { "url", "string", "`memory:`, `sqlite:FILE`, relative to service.lua, or `amqp://HOST/VHOST`" },
            }, "Says where queues are."),
            word("consumer", {
                { "name", "string", "unique" },
                { "options", "mulligan.ConsumerOptions", "what it reads, and how" },
            }, "Says which handler takes which queue; at least one."),
            {
                class = "ConsumerOptions",
                exact = true,
                heading = "Options of a consumer",
                fields = {
                    { "transport", "string", "a name given to `m.transport`" },
                    { "queue", "string", "what it reads" },
                    { "handler", "mulligan.Handler", "what is called for each message; it runs in a coroutine" },
                    { "concurrency?", "integer", "never more handlers at work than this", default = "1" },
                    { "prefetch?", "integer", "claimed but not started, at most", default = "2 × `concurrency`" },
                    { "timeout?", "mulligan.Duration|false", "how long a call may take; `false`: any time",
                        default = "`30s`" },
                    { "max_body?", "integer|string", "bytes, or a text in `B`, `KiB`, `MiB`, `GiB`; what is larger \z
                        is dead-lettered unread",
                        default = "`16MiB`" },
                    { "paused?", "boolean", "it begins paused, until `engine:resume`", default = "false" },
                    { "fault_headers?", '"mulligan"|"nservicebus"', "`\"nservicebus\"`: its dead letters have the \z
                        headers that ServiceControl reads, too", default = '`"mulligan"`' },
                    { "types?", "string[]", "the message types that are its own, where consumers share a queue",
                        default = "all, or the rest" },
                },
            },
            word("exec", { { "command", "string[]", "a program and its arguments" } }, "Makes a handler of a program, \z
                which gets the message on stdin and in its environment. [handlers.md](handlers.md) tells the rest.",
                { returns = "mulligan.Handler" }),
            word("http", { { "url", "string", "of a server" } }, "Makes a handler of a server, which gets the message \z
                by POST. [handlers.md](handlers.md) tells the rest.", { returns = "mulligan.Handler" }),
            word("worker", { { "command", "mulligan.Worker", "a program, its arguments, and how many of it" } },
                "Makes a handler of processes that handle one message after the other, by a protocol on their stdin. \z
                [workers.md](workers.md) tells the rest.", { returns = "mulligan.Handler" }),
            {
                class = "Worker",
                heading = "What `m.worker` takes",
                fields = {
                    { "processes?", "integer", "how many are started, 1,024 at most", default = "1" },
                    { "[integer]", "string", "the program, and its arguments" },
                },
            },
            word("patterns", { { "whose", '"counted"|"lua"', "" } }, "Says whose `string.find`, `match`, `gmatch` and \z
                `gsub` handlers have: those that end at the handler's timeout, which is the default, or Lua's own."),
            { alias = "Handler", type = "fun(msg: mulligan.Message)", text = "Succeeds if it returns, fails if it \z
                raises." },
            {
                class = "Message",
                heading = "`msg`",
                fields = {
                    { "id", "string", "the key to drop duplicates by" },
                    { "type?", "string", "as sent" },
                    { "key?", "string", "as sent" },
                    { "queue", "string", "that it was taken from" },
                    { "body", "string", "byte for byte as sent" },
                    { "headers", "table<string, string>", "`mulligan-` ones too" },
                    { "attempt", "integer", "1 in the first call since it was handed out" },
                    { "redeliveries", "integer", "done so far" },
                    { "calls", "integer", "failed calls before this one, over every delivery" },
                    { "deliveries", "integer", "how often this copy was handed out, where the transport counts" },
                },
            },
            word("error", { { "raised", "mulligan.Raised", "what failed" } }, "Raises an error with a type, in a \z
                handler. It doesn't return."),
            {
                class = "Raised",
                heading = "What `m.error` takes",
                fields = {
                    { "type", "string", "the type that the policy decides by" },
                    { "message?", "string", "what happened" },
                    { "stack?", "string", "the traceback if left out" },
                    { "lineage?", "string[]", "types, nearest ancestor first" },
                    { "cause?", "mulligan.Raised|string", "the error behind it" },
                    { "[string]", "any", "every other key is a field for matchers" },
                },
            },
            word("send", {
                { "queue", "string", "of the consumer's transport" },
                { "body", "string", "at most 16 MiB" },
                { "options?", "mulligan.SendOptions", "" },
            }, "Puts a message on a queue if the handler succeeds, with its acknowledgement. A call that fails sends \z
                nothing."),
            {
                class = "SendOptions",
                exact = true,
                heading = "Options of `m.send`",
                fields = {
                    { "id?", "string", "a random one if left out" },
                    { "type?", "string", "of the message" },
                    { "key?", "string", "of the message" },
                    { "headers?", "table<string, string>", "at most 1,000" },
                    { "delay?", "mulligan.Duration", "from now", default = "0" },
                },
            },
            word("sleep", { { "span", "mulligan.Duration", "" } }, "Lets other handlers work, and comes back later; \z
                in the handler's own coroutine."),
            word("run", { { "command", "mulligan.Command", "" } }, "Runs a program and lets other handlers work \z
                meanwhile; in the handler's own coroutine.", { returns = "mulligan.Ran" }),
            {
                class = "Command",
                heading = "What `m.run` takes",
                fields = {
                    { "[integer]", "string", "the program, then its arguments" },
                    { "stdin?", "string", "what it reads", default = '`""`' },
                    { "timeout?", "mulligan.Duration|false", "how long it may run, at most what the call has left",
                        default = "that" },
                },
            },
            {
                class = "Ran",
                heading = "What `m.run` gives",
                fields = {
                    { "status", "integer", "its exit code; 128 and the signal where one ended it" },
                    { "signal?", "integer", "that ended it" },
                    { "stdout", "string", "at most 16 MiB" },
                    { "stderr", "string", "the last 64 KiB" },
                },
            },
            word("fetch", { { "request", "mulligan.Request", "" } }, "Makes an HTTP request and lets other handlers \z
                work meanwhile; in the handler's own coroutine.", { returns = "mulligan.Fetched" }),
            {
                class = "Request",
                exact = true,
                heading = "What `m.fetch` takes",
                fields = {
                    { "url", "string", "`http:` or `https:`" },
                    { "method?", "string", "in capitals", default = '`"GET"`, with a body `"POST"`' },
                    { "headers?", "table<string, string>", "by name" },
                    { "body?", "string", "bytes" },
                    { "timeout?", "mulligan.Duration|false", "how long it may take, at most what the call has left",
                        default = "that" },
                    { "redirects?", "boolean", "follows up to 10", default = "false" },
                    { "raise?", "boolean", "an answer other than 2xx raises `HttpError`", default = "false" },
                },
            },
            {
                class = "Fetched",
                heading = "What `m.fetch` gives",
                fields = {
                    { "status", "integer", "such as 200" },
                    { "headers", "table<string, string>", "by name in small letters" },
                    { "body", "string", "at most 16 MiB" },
                },
            },
            { class = "Json", before = "m.json.", heading = "`m.json`", fields = { { "null", "userdata", "stands for \z
                null in lists" } } },
            { of = "Json", name = "decode", params = { { "text", "string", "JSON" } }, returns = "any",
                text = "Reads JSON; raises `MessageDeserializationError` where it is none. null is left out of \z
                    objects." },
            { of = "Json", name = "encode", params = { { "value", "any", "" } }, returns = "string",
                text = "Writes JSON. A table with the keys 1 … n is a list, an empty one an object." },
            { of = "Json", name = "list", params = { { "t", "table", "" } }, returns = "table", text = "Marks a \z
                table as a list, be it empty." },
        },
    },
}
