-- A finalizer runs wherever Lua makes something, in the midst of a policy's own calls too, and may close it there.
local mulligan = require "mulligan"

local WHILE = {
    decide = function(asked, failure)
        return asked:decide(failure)
    end,
    explain = function(asked, failure)
        return asked:explain(failure)
    end,
    table = function(asked)
        return asked:table()
    end,
    check = function(asked)
        return asked:check()
    end,
    reload = function(asked)
        return select(2, asked:reload "oops(")
    end,
    engine = function(asked)
        mulligan.engine({ policy = asked, patterns = "counted" }):close()
        return true
    end,
}

describe("a policy that a finalizer closes meanwhile", function()
    for name, ask in pairs(WHILE) do
        it("does not end the program: " .. name, function()
            for _ = 1, 50 do
                local asked = assert(mulligan.load_text "")
                local failure = { error = { type = "E", cause = { type = "F", field = { 1, 2 } } } }
                setmetatable({}, {
                    __gc = function()
                        pcall(asked.close, asked)
                    end,
                })
                repeat
                    local answered, answer = pcall(ask, asked, failure)
                    assert.is_truthy(answered and answer or tostring(answer):find("the policy is closed", 1, true),
                        answer)
                    collectgarbage("step", 10)
                until asked:closed() or collectgarbage("count") > 1e6
                asked:close()
            end
        end)
    end
end)
