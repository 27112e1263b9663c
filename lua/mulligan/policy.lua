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
local book_of = require "mulligan.policy.compile_context"
local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local limits = require "mulligan.policy.limits"
local matcher = require "mulligan.policy.matcher"
local offers = require "mulligan.sandbox.offers"
local preset = require "mulligan.policy.preset"
local scope = require "mulligan.policy.scope"
local text = require "mulligan.policy.text"
local types = require "mulligan.policy.types"
local values = require "mulligan.policy.value"
local dsl_object = require "mulligan.policy.dsl_object"

local context = book_of.new()

local function errors(here, n, ...)
    types.errors(context, here, n, ...)
    return dsl_object.ended(context, "policy", "errors")
end

-- misplaced notes a scope that belongs to the other policy, and is true then: where there is a host policy,
-- the host's scope is said there, and no other one is.
local function misplaced(kind, here)
    if context.is_host and kind ~= "host" then
        context:problem(here, ("policy.%s can't stand in a host policy, which has policy.host() and policy.errors "
            .. "alone; say this in the policy itself"):format(kind == "bus" and "bus()" or kind .. "(...)"))
    elseif context.host and kind == "host" then
        context:problem(here, ("policy.host() can't stand here, since there is a host policy; say this there, in %s, "
            .. "or say policy.bus()"):format(text.name(context.host.file)))
    else
        return false
    end
    return true
end

-- host and bus: there is one of each.
local function only(kind)
    return function(here, n)
        dsl_object.too_many(context, here, kind, n, 0, "none")
        return misplaced(kind, here) and scope.stray(context, kind) or scope.get(context, kind)
    end
end

-- transport and consumer: one for each name.
local function named(kind)
    return function(here, n, value)
        dsl_object.too_many(context, here, kind, n, 1, "one name")
        local name = dsl_object.name(context, here, ("the name of a %s"):format(kind), value)
        name = not misplaced(kind, here) and name
        return name and scope.get(context, kind, name) or scope.stray(context, kind)
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
add(add(add(acts, values.words(context)), matcher.words(context)), limits.words(context))

local fields = add(add({}, values.constants(context)), answer.words(context))
fields.preset = preset.object(context)

local module = dsl_object.object(context, "policy", acts, nil, fields)
context.policy = module

local load = { lost = error_value }

function load.problem(file, line, what)
    context:problem({ file = file, line = line }, text.clean(what))
end

local stopped = false

-- told gives what the policy before a host policy has to know of it, plain data: its name, whether an
-- error ended it, the parents of types with their places, and scope.told of the host's scope.
local function told()
    return { file = offers.main, stopped = stopped, parents = context.parents, scope = scope.told(context, "host") }
end

function load.stopped(file, line, what)
    stopped = true
    load.problem(file, line, what)
end

function load.wrong(what)
    context:problem(dispatch.place(), text.clean(what))
    return error_value
end

function load.collect()
    scope.check(context, stopped)
    context.closed = true
    local problems = context:sorted()
    local parent_of = types.parent_of(context)
    local shared = context.is_host and told() or parent_of
    if #problems > 0 then
        return { problems = problems, shared = shared }
    end
    return {
        problems = problems,
        shared = shared,
        parents = types.list(context),
        parent_of = parent_of,
        scopes = scope.list(context),
        functions = context.functions,
        answer = answer.plain,
    }
end

return module, load
