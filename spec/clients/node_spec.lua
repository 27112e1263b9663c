-- The tests of clients/node, a file each, against the program; docs/serve.md shows how it is used. What they need of
-- npm is in build/node, where ./do puts it.
local process = require "support.process"

local LACKS = "@msgpack/msgpack isn't installed (packages nodejs, of 18, and npm, with which ./do test installs it)"

local modules = process.here .. "/build/node/node_modules"
local has_node = os.execute "node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null"
    and process.read(modules .. "/@msgpack/msgpack/package.json")
    and process.read(modules .. "/typescript/package.json")

describe("clients/node", function()
    -- run gives what a command prints in a copy of the library, with all that it needs.
    local function run(words)
        local folder = process.folder()
        assert(os.execute(("cp -R clients/node/. '%s' && ln -s '%s' '%s/node_modules'"):format(folder.root, modules,
            folder.root)))
        local ran = folder:run(words,
            { env = { MULLIGAN = process.mulligan, MULLIGAN_PAGE = process.here .. "/docs/serve.md" } })
        folder:remove()
        assert.equal(0, ran.code, ran.out .. ran.err)
        return ran.out
    end

    for _, name in ipairs { "failures", "frames", "program", "vectors", "wrong_servers" } do
        it("passes its tests: " .. name, function()
            if not has_node then
                pending(LACKS)
                return
            end
            local out = run { "node", "--test", "--test-reporter=tap", ("test/%s.test.js"):format(name) }
            assert.is_true(tonumber(out:match "\n# pass (%d+)") >= 6, out)
        end)
    end

    it("has types that allow what is right, and nothing else", function()
        if not has_node then
            pending(LACKS)
            return
        end
        assert.equal("", run { "node_modules/.bin/tsc", "-p", "." })
    end)
end)
