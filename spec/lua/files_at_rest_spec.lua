-- A policy's files change while they are loaded: what is loaded is what they were at one moment, never
-- one file of before beside one of after. The policy prints between two of them, and its log function
-- is what changes them.
local mulligan = require "mulligan"
local process = require "support.process"

local MAIN = 'require "now.a" print "between" require "now.b"'

-- Files a and b of a version; each makes a rule.
local function version(number)
    local a = ('require("mulligan.policy").bus():on("A"):discard("a%d")'):format(number)
    local b = ('require("mulligan.policy").bus():on("B"):discard("b%d")'):format(number)
    return a, b
end

describe("files that change while they are loaded", function()
    local folder, policy, printed, between

    local function run(command)
        assert(os.execute(("cd '%s' && %s"):format(folder.root, command)))
    end

    -- link makes it this version that `now` leads to, in one step.
    local function link(number)
        run(("ln -s v%d new && mv -T new now"):format(number))
    end

    local function load()
        policy = mulligan.load(folder:path "policy.lua", {
            log = function()
                printed = printed + 1
                between(printed)
            end,
        })
        return policy
    end

    before_each(function()
        folder = process.folder { ["policy.lua"] = MAIN }
        for number = 1, 5 do
            local a, b = version(number)
            folder:write(("v%d/a.lua"):format(number), a)
            folder:write(("v%d/b.lua"):format(number), b)
        end
        link(1)
        printed = 0
        between = function() end
    end)

    after_each(function()
        if policy then
            policy:close()
        end
        policy = nil
        folder:remove()
    end)

    local function notes()
        return policy:decide({ error = { type = "A" } }).note, policy:decide({ error = { type = "B" } }).note
    end

    it("are loaded once where they don't", function()
        assert(load())
        assert.same({ "a1", "b1" }, { notes() })
        assert.equal(1, printed)
    end)

    it("are all of the same version, at the first load and at a reload", function()
        between = function(number)
            if number == 1 then
                link(2)
            end
        end
        assert(load())
        assert.same({ "a2", "b2" }, { notes() })
        assert.equal(2, printed)
        between = function(number)
            if number == 4 then
                link(4)
            end
        end
        link(3)
        assert.is_true(policy:reload())
        assert.equal(3, printed)
        assert.same({ "a3", "b3" }, { notes() })
        link(5)
        assert.is_true(policy:reload())
        assert.same({ "a4", "b4" }, { notes() })
        assert.equal("unchanged", policy:reload())
    end)

    it("lead to no mistakes that are in no version", function()
        folder:write("v2/a.lua", "x = 'set in a'")
        folder:write("v2/b.lua", "assert(x)" .. select(2, version(2)))
        between = function(number)
            if number == 1 then
                link(2)
            end
        end
        assert(load())
        assert.equal("b2", select(2, notes()))
    end)

    it("count as changed where one that was missing is there", function()
        folder:write("policy.lua", 'local found = pcall(require, "more") print "between"'
            .. 'require("mulligan.policy").bus():default():discard(tostring(found))')
        between = function(number)
            if number == 1 then
                folder:write("more.lua", "")
            end
        end
        assert(load())
        assert.equal("true", (notes()))
    end)

    it("are refused where they never come to rest, and what runs goes on", function()
        assert(load())
        between = function(number)
            link(2 + number % 2)
        end
        local reloaded, message, code = policy:reload()
        assert.same({ "policy.lua: the policy's files change while they are loaded", "policy" }, { message, code })
        assert.is_nil(reloaded)
        assert.same({ "a1", "b1" }, { notes() })
        between = function() end
        assert.is_true(policy:reload())
    end)

    it("have no say in a text that a call brings", function()
        assert(load())
        assert.is_true(policy:reload(select(2, version(3))))
        assert.equal("b3", select(2, notes()))
    end)
end)
