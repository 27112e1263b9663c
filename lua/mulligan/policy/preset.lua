-- preset.lua: policy.preset.NAME(scope, options). A preset is a file of its own in preset/, which
-- says what a policy could say as well; here its options are checked, and what it says gets the
-- place of its call.
--
-- Such a file gives { options =, apply = function(policy, scope, options) }. Each of its options has
-- a `kind`, which says what it takes, and a `default`.

local preset = {}

local duration = require "mulligan.policy.duration"
local error_value = require "mulligan.policy.error_value"
local opaque_value = require "mulligan.policy.opaque_value"
local options = require "mulligan.policy.options"
local scope = require "mulligan.policy.scope"
local types = require "mulligan.policy.types"
local vocabulary = require "mulligan.policy.vocabulary"
local dsl_object = require "mulligan.policy.dsl_object"

local MOST_ATTEMPTS = 1000

-- What an option may be: each checks a value and is true where it is good. `what` begins a mistake.
local kinds = {}

function kinds.attempts(context, here, what, given)
    return dsl_object.whole(context, here, what, given, 0, MOST_ATTEMPTS) ~= nil
end

function kinds.span(context, here, what, given)
    local ms, why = duration.read(given)
    if not ms and given ~= error_value then
        context:problem(here, what .. " " .. why)
    end
    return ms ~= nil
end

function kinds.span_or_false(context, here, what, given)
    return given == false or kinds.span(context, here, what, given)
end

-- A list of types, which may be empty.
function kinds.types(context, here, what, given)
    if options.is_table(given) then
        return next(given) == nil or types.read_list(context, here, what .. ": ", given) ~= nil
    elseif given ~= error_value then
        context:problem(here, ("%s must be a list of types, not %s"):format(what, opaque_value.show(given)))
    end
    return false
end

-- read gives all options of a preset, given or by default; nil where one was wrong.
local function read(context, here, name, known, given)
    if given == error_value then
        return nil
    end
    if not options.is_table(given) then
        return context:problem(here, ("%s: the options must be a table, not %s"):format(name, opaque_value.show(given)))
    end
    local names, result = {}, {}
    for i, option in ipairs(known) do
        names[i] = option.name
        result[option.name] = option.default
    end
    local good = options.check(context, here, name, given, names)
    for _, option in ipairs(known) do
        if given[option.name] ~= nil then
            result[option.name] = given[option.name]
            local what = ("%s: %s"):format(name, option.name)
            good = kinds[option.kind](context, here, what, given[option.name]) and good
        end
    end
    return good and result or nil
end

local function apply(context, here, name, n, target, given)
    local file = require("mulligan.preset." .. name)
    local takes_options = #file.options > 0
    if n == 0 then
        return context:problem(here, ("%s needs a scope: policy.preset.%s(policy.bus())"):format(name, name))
    elseif dsl_object.too_many(context, here, name, n, takes_options and 2 or 1,
        takes_options and "a scope and a table of options" or "one scope") then
        return
    elseif target ~= error_value and not scope.is(target) then
        context:problem(here,
            ("%s takes a scope first, such as policy.bus(), not %s"):format(name, opaque_value.show(target)))
    end
    local read_options = read(context, here, name, file.options, n < 2 and {} or given)
    if read_options and scope.is(target) then
        context.pinned = here
        file.apply(context.policy, target, read_options)
        context.pinned = nil
    end
end

-- object gives policy.preset.
function preset.object(context)
    local acts = {}
    for _, name in ipairs(vocabulary.words.preset) do
        acts[name] = function(here, n, ...)
            apply(context, here, name, n, ...)
            return dsl_object.ended(context, "preset", name)
        end
    end
    return dsl_object.object(context, "preset", acts)
end

return preset
