-- The tests of clients/python, a file each, against the program; docs/serve.md shows how it is used.
local process = require "support.process"
local python = require "support.python"

describe("clients/python", function()
    for _, name in ipairs { "failures", "program", "wrong_servers" } do
        it("passes its tests: " .. name, function()
            local interpreter = python.with_msgpack()
            if not interpreter then
                pending(python.LACKS)
                return
            end
            local folder = process.folder()
            assert(os.execute(("cp -R clients/python/. '%s'"):format(folder.root)))
            local ran = folder:run({ interpreter, "-W", "error", "-m", "unittest", "tests.test_" .. name },
                { env = { MULLIGAN = process.mulligan } })
            folder:remove()
            assert.equal(0, ran.code, ran.err)
            assert.is_true(tonumber(ran.err:match "Ran (%d+) tests") >= 8, ran.err)
        end)
    end
end)
