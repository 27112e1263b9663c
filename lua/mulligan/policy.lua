-- policy.lua: the words of a policy. Running a policy's text says them; each is checked as it is
-- said, what is wrong is noted with its file and line, and what is right becomes plain data, which C
-- compiles to a table. docs/plain-rules.md is the contract between the two.
--
-- The chunk gives two values, anew each time it runs: the module for policies, and `load`, the side
-- of it that C holds:
--
--   load.problem(file, line, what)   notes a mistake that was found elsewhere
--   load.stopped(file, line, what)   notes the error that ended the policy before its end
--   load.wrong(what)                 notes one where the policy is now, and gives `load.lost`
--   load.lost                        a value that nothing can go wrong with
--   load.collect()                   ends the load and gives its result

local answer = require "mulligan.policy.answer"
local book_of = require "mulligan.policy.book"
local hearing = require "mulligan.policy.hearing"
local lost = require "mulligan.policy.lost"
local matcher = require "mulligan.policy.matcher"
local preset = require "mulligan.policy.preset"
local scope = require "mulligan.policy.scope"
local text = require "mulligan.policy.text"
local types = require "mulligan.policy.types"
local values = require "mulligan.policy.value"
local words = require "mulligan.policy.words"

local book = book_of.new()

local function errors(here, n, ...)
    types.errors(book, here, n, ...)
    return words.ended(book, "policy", "errors")
end

-- host and bus: there is one of each.
local function only(kind)
    return function(here, n)
        words.too_many(book, here, kind, n, 0, "none")
        return scope.get(book, kind)
    end
end

-- transport and consumer: one for each name.
local function named(kind)
    return function(here, n, value)
        words.too_many(book, here, kind, n, 1, "one name")
        local name = words.name(book, here, ("the name of a %s"):format(kind), value)
        return name and scope.get(book, kind, name) or scope.stray(book, kind)
    end
end

local function add(all, more)
    for word, act in next, more do
        all[word] = act
    end
    return all
end

local acts = {
    errors = errors,
    host = only("host"),
    bus = only("bus"),
    transport = named("transport"),
    consumer = named("consumer"),
}
add(add(acts, values.words(book)), matcher.words(book))

local fields = add(add({}, values.constants(book)), answer.words(book))
fields.preset = preset.object(book)

local module = words.object(book, "policy", acts, nil, fields)
book.policy = module

local load = { lost = lost }

function load.problem(file, line, what)
    book:problem({ file = file, line = line }, text.clean(what))
end

local stopped = false

function load.stopped(file, line, what)
    stopped = true
    load.problem(file, line, what)
end

function load.wrong(what)
    book:problem(hearing.place(), text.clean(what))
    return lost
end

function load.collect()
    scope.check(book, stopped)
    book.closed = true
    local problems = book:sorted()
    if #problems > 0 then
        return { problems = problems }
    end
    return {
        problems = problems,
        parents = types.list(book),
        parent_of = types.parent_of(book),
        scopes = scope.list(book),
        functions = book.functions,
        answer = answer.plain,
    }
end

return module, load
