-- dsl_object.lua: the things that a policy holds (policy, a scope, a rule) as it sees them: read-only
-- tables whose fields are words.
--
--   looking a word up    notes its place; one that doesn't exist is a mistake
--   calling it           checks the receiver, then does the word's work
--

local words = {}

local dispatch = require "mulligan.policy.dispatch"
local error_value = require "mulligan.policy.error_value"
local text = require "mulligan.policy.text"
local vocabulary = require "mulligan.policy.vocabulary"

-- unknown gives what is to be said of a word that its owner doesn't have; `may` says which ones may
-- stand there, if not all of its own.
local function unknown(owner, word, may)
    local called = vocabulary.called[owner]
    if type(word) ~= "string" then
        return ("%s has words, no field %s"):format(called, text.show(word))
    end
    local elsewhere = vocabulary.elsewhere(owner, word)
    if elsewhere then
        return elsewhere
    end
    local near = text.nearest(word, vocabulary.words[owner])
    local advice = near and ("did you mean %s?"):format(near)
        or may or "there are " .. text.list(vocabulary.words[owner], "and")
    return ("%s is no word of %s; %s"):format(text.show(word), called, advice)
end

local has_point = { policy = true, preset = true } -- whose words take no receiver

-- What is wrong with the receiver of a word: policy's take none, those of scopes and rules what stands
-- before the colon.
local function receiver_mistake(owner, word)
    if has_point[owner] then
        return ("%s is called with a point: %s.%s(...)"):format(word, vocabulary.called[owner], word)
    end
    return ("%s is called with a colon, on what it was taken from: %s:%s(...)"):format(word,
        owner == "rule" and "on(...)" or "bus", word)
end

-- assignment gives the __newindex of what `owner` has.
local function assignment(context, owner)
    return function(_, key)
        if context.closed then
            error("a policy can't be changed once it is loaded", 2)
        end
        context:problem(dispatch.place(), ("%s can't be assigned to (%s); a local can keep a value"):format(
            vocabulary.called[owner], text.show(key)))
    end
end

-- kind gives what makes objects with the words in `acts`, by object(data):
--
--   act(data, here, n, ...)   is called with the object's data, the word's place, and its n arguments;
--                             where it gives nothing, the word gives its object
--   slip(data)                is called when a word doesn't exist or has the wrong receiver, and may
--                             give a text: what may stand there
--   fields                    are given as they are, at any time
--
-- An object is an empty table, so that a policy sees nothing of its data.
function words.kind(context, owner, acts, slip, fields)
    local data_of = setmetatable({}, { __mode = "k" }) -- object -> its data

    -- objection notes what is wrong where a word is said to the wrong receiver, or too late.
    local function objection(object, word, here)
        if context.closed then
            error(word .. " can't be said once the policy is loaded", 3) -- past the C that calls say
        end
        if slip then
            slip(data_of[object])
        end
        context:problem(here, receiver_mistake(owner, word))
        return error_value
    end

    local function say_colon(object, word, here, receiver, ...)
        if context.closed or receiver ~= object then
            return objection(object, word, here)
        end
        local result = acts[word](data_of[object], here, select("#", ...), ...)
        return result == nil and object or result
    end

    local function say_point(object, word, here, ...)
        if context.closed or ... == object then
            return objection(object, word, here)
        end
        local result = acts[word](data_of[object], here, select("#", ...), ...)
        return result == nil and object or result
    end

    local say = has_point[owner] and say_point or say_colon

    local function look_up(object, word)
        local field = fields and fields[word]
        if field ~= nil then
            return field
        elseif context.closed then
            error("a policy can't be changed once it is loaded", 2)
        end
        local data = data_of[object]
        if owner == "rule" then
            context.begun = data
        end
        if acts[word] then
            return dispatch.word(say, object, word)
        end
        context:problem(dispatch.place(), unknown(owner, word, slip and slip(data)))
        return error_value
    end

    local function no_length()
        error(vocabulary.called[owner] .. " has words, no length", 2)
    end

    local metatable = { __index = look_up, __newindex = assignment(context, owner), __len = no_length,
        __metatable = false }

    return {
        object = function(data)
            local object = setmetatable({}, metatable)
            data_of[object] = data
            return object
        end,
    }
end

-- object makes a thing of its own with the words in `acts`: word -> function(here, n, ...).
function words.object(context, owner, acts, slip, fields)
    local bound = {}
    for word, act in next, acts do
        bound[word] = function(_, ...)
            return act(...)
        end
    end
    return words.kind(context, owner, bound, slip, fields).object({})
end

-- ended gives the result of a word that ends its statement: what is said to it is a mistake.
function words.ended(context, owner, word)
    local function refuse(_, key)
        if context.closed then
            error("a policy can't be changed once it is loaded", 2)
        end
        local own = vocabulary.statement(owner, key)
        context:problem(dispatch.place(), ("%s ends its statement; %s"):format(word,
            own and ("%s is one of its own: %s"):format(key, own) or "nothing may follow it"))
        return error_value
    end
    return setmetatable({}, { __index = refuse, __newindex = refuse, __call = refuse, __metatable = false })
end

-- too_many notes an argument too many and is true then.
function words.too_many(context, here, word, n, most, takes)
    if n <= most then
        return false
    end
    context:problem(here, ("%s has %d argument%s; it takes %s"):format(word, n, n == 1 and "" or "s", takes))
    return true
end

-- name checks the name of a type, queue, consumer or transport; nil where it was wrong.
function words.name(context, here, what, value)
    local why
    if dispatch.is_name(value) then
        return value
    elseif value == error_value then
        return nil
    elseif type(value) ~= "string" then
        why = ("must be a string, not %s%s"):format(text.show(value),
            value == nil and "; a name needs its quotes" or "")
    elseif value == "" then
        why = "must not be empty"
    else
        why = ("must be valid UTF-8 without a zero byte, which %s isn't"):format(text.show(value))
    end
    context:problem(here, what .. " " .. why)
end

-- whole checks a whole number from `least` to `most` (nil: any); nil where it was wrong.
function words.whole(context, here, what, value, least, most)
    if value == error_value then
        return nil
    end
    local number = math.type(value) and math.tointeger(value)
    if number and number >= least and number <= (most or math.maxinteger) then
        return number
    end
    local range = most and ("from %d to %d"):format(least, most) or ("from %d"):format(least)
    context:problem(here, ("%s must be a whole number %s, not %s"):format(what, range, text.show(value)))
end

return words
