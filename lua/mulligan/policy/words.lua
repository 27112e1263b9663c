-- words.lua: the things that a policy holds (policy, a scope, a rule) as it sees them: read-only
-- tables whose fields are words.
--
--   looking a word up    notes its place; one that doesn't exist is a mistake
--   calling it           checks the receiver, then does the word's work

local words = {}

local lost = require "mulligan.policy.lost"
local place = require "mulligan.policy.place"
local text = require "mulligan.policy.text"
local vocabulary = require "mulligan.policy.vocabulary"

-- unknown gives what is to be said of a word that its owner doesn't have.
local function unknown(owner, word)
    local called = vocabulary.called[owner]
    if type(word) ~= "string" then
        return ("%s has words, no field %s"):format(called, text.show(word))
    end
    local elsewhere = not vocabulary.is_later(owner, word) and vocabulary.elsewhere(owner, word)
    if elsewhere then
        return elsewhere
    elseif vocabulary.is_later(nil, word) then
        return word .. " is not in this version yet"
    end
    local near = text.nearest(word, vocabulary.all(owner))
    local advice = "there are " .. text.list(vocabulary.words[owner], "and")
    if near and vocabulary.is_later(owner, near) then
        advice = near .. " is not in this version yet"
    elseif near then
        advice = ("did you mean %s?"):format(near)
    end
    return ("%s is no word of %s; %s"):format(text.show(word), called, advice)
end

local has_point = { policy = true, preset = true } -- whose words take no receiver

-- The receiver of a word: policy's take none, those of scopes and rules what stands before the
-- colon. Gives what is wrong, or nil.
local function receiver_mistake(owner, word, object, first)
    if has_point[owner] and first == object then
        return ("%s is called with a point: %s.%s(...)"):format(word, vocabulary.called[owner], word)
    elseif not has_point[owner] and first ~= object then
        return ("%s is called with a colon, on what it was taken from: %s:%s(...)"):format(word,
            owner == "rule" and "on(...)" or "bus", word)
    end
end

-- The function that a policy gets when it looks a word up.
local function bind(book, owner, object, word, seen, act, slip)
    return function(...)
        local here = place.of_call(seen)
        if book.closed then
            error(word .. " can't be said once the policy is loaded", 2)
        end
        local mistake = receiver_mistake(owner, word, object, (...))
        if mistake then
            slip()
            book:problem(here, mistake)
            return lost
        end
        if has_point[owner] then
            return act(here, select("#", ...), ...)
        end
        return act(here, select("#", ...) - 1, select(2, ...))
    end
end

-- object makes a thing with the words in `acts`: word -> function(here, n, ...), called with the
-- place and its n arguments. `slip` is called when a word doesn't exist or has the wrong receiver.
-- `fields` are given as they are, at any time.
function words.object(book, owner, acts, slip, fields)
    local object = {}
    slip = slip or function() end
    local function look(_, word)
        if fields and fields[word] ~= nil then
            return fields[word]
        end
        local seen = place.find()
        if book.closed then
            error("a policy can't be changed once it is loaded", 2)
        end
        local act = acts[word]
        if act then
            return bind(book, owner, object, word, seen, act, slip)
        end
        slip()
        book:problem(seen, unknown(owner, word))
        return lost
    end
    return setmetatable(object, {
        __index = look,
        __newindex = function(_, key)
            if book.closed then
                error("a policy can't be changed once it is loaded", 2)
            end
            book:problem(place.find(), ("%s can't be assigned to (%s); a local can keep a value"):format(
                vocabulary.called[owner], text.show(key)))
        end,
        __metatable = false,
    })
end

-- ended gives the result of a word that ends its statement: what is said to it is a mistake.
function words.ended(book, owner, word)
    local function refuse(_, key)
        if book.closed then
            error("a policy can't be changed once it is loaded", 2)
        end
        local own = vocabulary.statement(owner, key)
        book:problem(place.find(), ("%s ends its statement; %s"):format(word,
            own and ("%s is one of its own: %s"):format(key, own) or "nothing may follow it"))
        return lost
    end
    return setmetatable({}, { __index = refuse, __newindex = refuse, __call = refuse, __metatable = false })
end

-- too_many notes an argument too many and is true then.
function words.too_many(book, here, word, n, most, takes)
    if n <= most then
        return false
    end
    book:problem(here, ("%s has %d argument%s; it takes %s"):format(word, n, n == 1 and "" or "s", takes))
    return true
end

-- name checks the name of a type, queue, consumer or transport; nil where it was wrong.
function words.name(book, here, what, value)
    local why
    if value == lost then
        return nil
    elseif type(value) ~= "string" then
        why = ("must be a string, not %s%s"):format(text.show(value),
            value == nil and "; a name needs its quotes" or "")
    elseif value == "" then
        why = "must not be empty"
    elseif not text.valid(value) then
        why = ("must be valid UTF-8 without a zero byte, which %s isn't"):format(text.show(value))
    else
        return value
    end
    book:problem(here, what .. " " .. why)
end

-- whole checks a whole number from `least` to `most` (nil: any); nil where it was wrong.
function words.whole(book, here, what, value, least, most)
    if value == lost then
        return nil
    end
    local number = math.type(value) and math.tointeger(value)
    if number and number >= least and number <= (most or math.maxinteger) then
        return number
    end
    local range = most and ("from %d to %d"):format(least, most) or ("from %d"):format(least)
    book:problem(here, ("%s must be a whole number %s, not %s"):format(what, range, text.show(value)))
end

return words
