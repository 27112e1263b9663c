-- Runs examples/own-queue by its own command, with the program under test and the client of this tree.
local examples = require "support.examples"
local process = require "support.process"
local python = require "support.python"

describe("examples/own-queue", function()
    it("does with each mail what the policy says", function()
        local interpreter = python.with_msgpack()
        if not interpreter then
            pending(python.LACKS)
            return
        end
        local folder = process.folder()
        assert(os.execute(("cp -R examples/. '%s'"):format(folder.root)))
        folder:run { "sh", "-c", 'mkdir bin && ln -s "$1" bin/mulligan && ln -s "$(command -v "$2")" bin/python3', "sh",
            process.mulligan, interpreter }
        local ran = folder:run({ "sh", "-c", 'PATH="$PWD/bin:$PATH"\n'
            .. examples.command(folder:read "own-queue/own_queue.py") },
            { env = { CLIENTS = process.here .. "/clients" } })
        folder:remove()
        assert.equal(0, ran.code, ran.err)
        local lines = {}
        for line in ran.out:gmatch "[^\n]+" do
            lines[#lines + 1] = line:gsub(" in %d+ ms", "")
        end
        table.sort(lines)
        local function times(text)
            local count = 0
            for _, line in ipairs(lines) do
                count = count + (line:find(text, 1, true) and 1 or 0)
            end
            return count
        end
        assert.equal(1, times "mail 2, call 1: ValidationError: dead_letter")
        assert.equal(1, times "mail 3, call 1: Duplicate: discard")
        assert.equal(4, times "mail 4, call")
        assert.equal(9, times "mail 5, call")
        assert.equal(1, times "mail 5, call 3: ConnectionError: redeliver")
        assert.equal(1, times "mail 5, call 9: ConnectionError: dead_letter")
        assert.equal(1, times "done: 1 4")
        assert.equal(1, times "dead letters in error: 5")
        assert.equal(1, times "dead letters in unreadable: 2")
    end)
end)
