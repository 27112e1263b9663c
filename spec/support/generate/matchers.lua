-- matchers.lua: random matchers and values (spec/support/naive/matcher.lua says what they look like).

local functions = require "support.generate.functions"
local words = require "support.generate.words"
local BOMB = require "support.naive.matcher".BOMB

local matchers = {}

-- Values --------------------------------------------------------------------------------------------------------------

local function numbers_of(pool)
    local numbers = {}
    for _, value in ipairs(pool) do
        if type(value) == "number" then numbers[#numbers + 1] = value end
    end
    return #numbers > 0 and numbers or { 0, 1, 2.5 }
end

local makers = {}

function makers.literal(random, pool) return { is = "literal", value = random:pick(pool) } end

function makers.list(random, pool)
    local values = {}
    for i = 1, random(3) do values[i] = random:pick(pool) end
    return { is = "list", values = values }
end

function makers.between(random, pool)
    local low, high = random:pick(numbers_of(pool)), random:pick(numbers_of(pool))
    return { is = "between", low = math.min(low, high), high = math.max(low, high) }
end

function makers.at_least(random, pool) return { is = "at_least", low = random:pick(numbers_of(pool)) } end

function makers.at_most(random, pool) return { is = "at_most", high = random:pick(numbers_of(pool)) } end

function makers.contains(random) return { is = "contains", text = random:pick(words.PIECES) } end

function makers.matches(random)
    return { is = "matches", text = random:chance(0.15) and BOMB or random:pick(words.PATTERNS) }
end

function makers.present() return { is = "present" } end

function makers.absent() return { is = "absent" } end

function makers.is_not(random, pool, depth)
    return { is = "is_not", value = matchers.value(random, pool, (depth or 0) + 1) }
end

-- Values for numbers, for texts, and for both.
local FORMS = { "literal", "literal", "literal", "literal", "list", "present", "absent" }
local NUMBER_FORMS, TEXT_FORMS = { "between", "at_least", "at_most" }, { "contains", "matches", "matches", "matches" }

function matchers.value(random, pool, depth)
    depth = depth or 0
    if depth < 2 and random:chance(0.2) then return makers.is_not(random, pool, depth) end
    local form
    if random:chance(0.05) then
        form = random:pick(random:chance(0.5) and NUMBER_FORMS or TEXT_FORMS) -- on whatever is there
    elseif random:chance(0.5) then
        form = random:pick(FORMS)
    else
        form = random:pick(type(pool[1]) == "number" and NUMBER_FORMS or TEXT_FORMS)
    end
    return makers[form](random, pool)
end

-- Forms ---------------------------------------------------------------------------------------------------------------

-- One test or a few, each of another name.
local function tests_of(random, names, pools, chance)
    local tests, first = {}, random:pick(names)
    for _, name in ipairs(names) do
        if name == first or random:chance(chance) then
            tests[#tests + 1] = { name, matchers.value(random, pools[name]) }
        end
    end
    return tests
end

local FIELD_NAMES = table.move(words.FIELD_NAMES, 1, #words.FIELD_NAMES, 1, {})
FIELD_NAMES[#FIELD_NAMES + 1] = "type"

local function random_fields(random)
    local names = random:chance(0.4) and { "message" } or FIELD_NAMES -- the message more often, for the patterns
    return { form = "fields", tests = tests_of(random, names, words.FIELDS, 0.08) }
end

local function random_ctx(random)
    local m = { form = "ctx", tests = {} }
    if random:chance(0.6) then m.tests = tests_of(random, words.CTX_NAMES, words.CTX, 0.08) end
    if random:chance(0.4) then m.message = tests_of(random, words.MESSAGE_NAMES, words.MESSAGE, 0.08) end
    if random:chance(0.3) or (#m.tests == 0 and not m.message) then
        m.headers = tests_of(random, words.HEADER_NAMES, words.HEADERS, 0.08)
    end
    return m
end

local function random_composite(random, depth)
    local m = { form = random:pick { "all", "any", "none" }, parts = {} }
    for i = 1, random(m.form == "all" and 2 or 3) do m.parts[i] = matchers.random(random, depth + 1) end
    return m
end

function matchers.random(random, depth)
    depth = depth or 1
    local dice = random(100)
    if dice <= 28 and depth < 4 then return random_composite(random, depth) end
    if dice <= 45 then return random_ctx(random) end
    if dice <= 70 then return functions.random(random) end
    return random_fields(random)
end

return matchers
