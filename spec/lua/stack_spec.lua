-- The stack of an error that a handler raises: what it shows, and that it is as cheap as it is deep.
local mulligan = require "mulligan"
local rigs = require "support.rigs"

describe("the stack of a handler's error", function()
    local rig

    local function start(handler)
        rig = rigs.start("bus:default():dead_letter()", handler)
    end

    after_each(rigs.close)

    local function failure()
        assert(rig:publish("work", "x"))
        local decided = rig:events "decided"
        return decided[#decided].failure.error
    end

    -- The lines of a stack, but for the first, which is a title.
    local function lines_of(stack)
        local title, rest = stack:match "^(.-)\n(.*)$"
        assert.equal("stack traceback:", title)
        local lines = {}
        for line in rest:gmatch "[^\n]+" do
            lines[#lines + 1] = line
        end
        return lines
    end

    it("has file and line of each function, and the name by which it was called", function()
        local chunk = assert(load([[
            local raise = ...
            local upvalue = function() raise() end
            local t = {}
            function t.field() upvalue() end
            function t:method() self.field() end
            function a_global() t:method() end
            local function a_local() a_global() return 1 end
            return function() local got = a_local() return got end
        ]], "@some/file.lua"))
        start(chunk(function()
            error "no"
        end))
        local lines = lines_of(failure().stack)
        rawset(_G, "a_global", nil)
        local wanted = {
            "%[C%]: in function 'error'",
            "stack_spec%.lua:%d+: in upvalue 'raise'",
            "some/file%.lua:2: in upvalue 'upvalue'",
            "some/file%.lua:4: in field 'field'",
            "some/file%.lua:5: in method 'method'",
            "some/file%.lua:6: in function 'a_global'",
            "some/file%.lua:7: in local 'a_local'",
            "some/file%.lua:8: in function <some/file%.lua:8>",
        }
        for number, pattern in ipairs(wanted) do
            -- Later releases say "method 'name'" of a field, and the like.
            local loose = pattern:gsub("in %l+ '", "in [%%l ]+ '")
            assert.matches("^\t.*" .. loose .. "$", lines[number])
        end
        assert.equal(#wanted, #lines)
    end)

    it("says where tail calls left something out", function()
        start(function()
            local function raise()
                mulligan.error { type = "E" }
            end
            return raise()
        end)
        local lines = lines_of(failure().stack)
        assert.matches("stack_spec%.lua:%d+: in function <.*stack_spec%.lua:%d+>$", lines[1])
        assert.equal("\t(...tail calls...)", lines[2])
    end)

    for depth, skipped in pairs { [20] = false, [21] = 2, [1000] = 981 } do
        it(("has the innermost ten and the outermost eleven of %d levels"):format(depth + 2), function()
            start(function()
                local function deep(n)
                    if n == 0 then
                        mulligan.error { type = "E" }
                    end
                    deep(n - 1)
                    return n
                end
                deep(depth)
            end)
            local lines = lines_of(failure().stack)
            assert.equal(skipped and 22 or depth + 2, #lines)
            local gap = skipped and ("\t...\t(skipping %d levels)"):format(skipped)
            assert.equal(gap or lines[11], lines[11])
            assert.is_nil(lines[#lines]:find("deep", 1, true))
        end)
    end

    -- Each function of a stack was looked for in all of package.loaded.
    it("costs the same however much is loaded", function()
        start(function()
            mulligan.error { type = "E" }
        end)
        local function cost()
            local began = os.clock()
            for _ = 1, 50 do
                assert.equal("E", failure().type)
            end
            return os.clock() - began
        end
        cost()
        collectgarbage "stop"
        local before = cost()
        for number = 1, 100000 do
            package.loaded["stack_spec." .. number] = number
        end
        local after = cost()
        for number = 1, 100000 do
            package.loaded["stack_spec." .. number] = nil
        end
        collectgarbage "restart"
        assert.is_true(after < 8 * before + 0.05, ("%.3f s, and %.3f s"):format(before, after))
    end)
end)
