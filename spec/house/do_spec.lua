-- ./do where it can't work.
local process = require "support.process"

describe("./do", function()
    local folder

    before_each(function()
        folder = process.folder { ["tree/do"] = process.read "do" }
    end)

    after_each(function()
        folder:run { "chmod", "-R", "u+w", "." }
        folder:remove()
    end)

    -- as_reader runs it as somebody who can't write to the tree; root can write to all.
    local function as_reader(command)
        local line = "chmod -R a+rX . && chmod -R a-w tree && cd tree && if [ $(id -u) = 0 ]; then as='setpriv "
            .. "--reuid=65534 --regid=65534 --clear-groups'; else as=; fi; exec $as sh ./do " .. command
        return folder:run { "sh", "-c", line }
    end

    for _, command in ipairs { "build", "build asan", "test", "test dev spec/cli/run_spec.lua", "test fuzz", "demo" } do
        it("says so in a tree that can't be written to: " .. command, function()
            local ended = as_reader(command)
            assert.same({ 2, "" }, { ended.code, ended.out }, ended.err)
            assert.is_truthy(ended.err:find("^do: can't write to /[^\n]*/tree, where builds go %([^\n]*%); "
                .. "copy the tree to a folder of yours\n$"), ended.err)
        end)
    end

    it("says so where somebody else built before", function()
        folder:run { "mkdir", "-p", "tree/build/dev/log" }
        local ended = as_reader "build"
        assert.equal(2, ended.code, ended.err)
        assert.matches("(build/dev is not writable)", ended.err, 1, true)
    end)
end)
