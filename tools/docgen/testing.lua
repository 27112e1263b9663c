-- mulligan.testing.

local function word(of, name, params, text, returns)
    return { of = of, name = name, params = params, text = text, returns = returns }
end

local span = { "span", "mulligan.Duration", "" }
local queue = { "queue", "string", "" }

return {
    {
        title = "Testing",
        text = "`require \"mulligan.testing\"`: time, chance and faults that a test owns.",
        program = [[
local testing = require "mulligan.testing"

local rig = testing.rig {
    policy = 'require("mulligan.policy").bus():on("Busy"):redeliver(1, "1h")',
    consumers = { OrderHandler = { queue = "orders", handler = function(msg)
        if msg.redeliveries == 0 then
            require("mulligan").error { type = "Busy" }
        end
    end } },
}
assert(rig:publish("orders", "one"))
rig:run_until_empty() -- an hour, in no time
assert(rig:counts().redelivered == 1 and rig:counts().done == 1)
rig:close()]],
        words = {
            { class = "Testing", called = "mulligan.testing", before = "testing.", text = "What `require \z
                \"mulligan.testing\"` gives." },
            word("Testing", "clock", { { "wall_ms?", "integer", "since 1970; the beginning of 2026 if left out" } },
                "Makes a clock that stands still.", "mulligan.Clock"),
            word("Testing", "rig", { { "options", "mulligan.RigOptions", "" } },
                'Makes an engine on a test\'s clock, with one transport, "orders", and starts it.', "mulligan.Rig"),
            word("Testing", "random", { { "seed", "integer", "" } }, "Makes a generator that gives the same on every \z
                machine.", "mulligan.Random"),
            {
                class = "RigOptions",
                exact = true,
                heading = "Options of a rig",
                fields = {
                    { "policy?", "string|mulligan.Policy", "its text, or a loaded one", default = "an empty text" },
                    { "url?", "string", "of the transport", default = '`"memory:"`' },
                    { "clock?", "mulligan.Clock", "shared with other rigs", default = "its own" },
                    { "consumers?", "table<string, mulligan.RigConsumer>", "by name" },
                    { "collect?", "string[]", "queues whose messages are kept for the test" },
                    { "grace?", "mulligan.Duration", "as of an engine" },
                    { "seed?", "integer", "as of an engine", default = "1" },
                    { "reload_on_sighup?", "boolean", "as of an engine", default = "false" },
                    { "reload_on_change?", "boolean", "as of an engine", default = "false" },
                    { "patterns?", '"counted"|"lua"', "as of an engine", default = '`"lua"`' },
                    { "start?", "boolean", "`false` leaves starting to the test", default = "true" },
                },
            },
            {
                class = "RigConsumer",
                exact = true,
                heading = "A rig's consumer",
                text = "The options of a consumer; its transport is the rig's.",
                fields = {
                    { "queue", "string", "what it reads" },
                    { "handler", "mulligan.Handler", "what is called for each message" },
                    { "concurrency?", "integer", "handlers at work, at most" },
                    { "prefetch?", "integer", "claimed but not started, at most" },
                    { "timeout?", "mulligan.Duration|false", "how long a call may take" },
                    { "max_body?", "integer|string", "bytes, or a text such as `\"16MiB\"`" },
                    { "paused?", "boolean", "it begins paused" },
                    { "fault_headers?", '"mulligan"|"nservicebus"', "whose headers its dead letters have, besides" },
                    { "types?", "string[]", "the message types that are its own" },
                    { "transport?", "string", "another one that the test opened" },
                },
            },
            { class = "Rig", before = "rig:", heading = "A rig", fields = { { "engine", "mulligan.Engine",
                "its engine" }, { "clock", "mulligan.Clock", "its clock" } } },
            word("Rig", "publish", { queue, { "body", "string", "" }, { "options?", "mulligan.SendOptions", "" } },
                "Puts a message on a queue, and returns when it is safe.", { "true?", "string?", "string?" }),
            word("Rig", "advance", { span }, "Moves the clock, over every timer on the way."),
            word("Rig", "run_until_empty", nil, "Moves the clock from timer to timer until nothing is left in the \z
                queues that are read."),
            word("Rig", "collected", { queue }, "Gives the messages that arrived in a queue named in `collect`.",
                "mulligan.Message[]"),
            word("Rig", "depth", { queue }, "Says how many messages are in a queue.", { "mulligan.Depth?", "string?",
                "string?" }),
            word("Rig", "fault", { { "operation", "mulligan.Operation", "" }, { "options?", "mulligan.FaultOptions",
                "" } },
                "Lets the next operations fail."),
            word("Rig", "counts", nil, "Says what became of messages so far.", "mulligan.Counts"),
            word("Rig", "log", nil, 'Gives the lines so far, as "level: text".', "string[]"),
            word("Rig", "events", { { "name?", "mulligan.EventName", "all if left out" } }, "Gives the events so far.",
                "mulligan.ToldEvent[]"),
            word("Rig", "stop", nil, "Stops the engine, over its grace time."),
            word("Rig", "close", nil, "Lets go of it, and of a policy that was given as a text."),
            { class = "Clock", before = "clock:", heading = "A clock" },
            word("Clock", "now", nil, "Gives the milliseconds that only move on.", "integer"),
            word("Clock", "wall", nil, "Gives the milliseconds since 1970.", "integer"),
            word("Clock", "advance", { span }, "Moves both on, over every timer on the way, in order."),
            word("Clock", "step", { span, { "backwards?", "boolean", "" } }, "Moves the wall only."),
            word("Clock", "turn", nil, "Runs what is due: the moment of the next timer in ms, or nil.", "integer?"),
            { class = "Random", before = "random:", heading = "A generator", call = "fun(n: integer): integer",
                text = "`random(n)` gives a whole number from 1 to n." },
            word("Random", "pick", { { "list", "any[]", "not empty" } }, "Gives one of a list.", "any"),
            word("Random", "chance", { { "p", "number", "0 to 1" } }, "True with the probability p.", "boolean"),
        },
    },
}
