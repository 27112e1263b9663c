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

    -- with_servers runs a test that says what it lacks, on a machine of stand-ins: nothing is built, and of
    -- packages `dpkg` knows; installing fails. `npm` is what it does.
    local function with_servers(dpkg, npm)
        local programs = {
            cmake = "exit 0",
            ["dpkg-query"] = dpkg,
            sudo = "exit 1",
            id = "echo 1000",
            node = "exit 0",
            npm = npm or "exit 0",
            busted = [[printf "ok 1 - a\\nok 2 - # SKIP x: RabbitMQ isn't installed (package x)\\n1..2\\n"]],
        }
        for name, lines in pairs(programs) do
            folder:write("bin/" .. name, "#!/bin/sh\n" .. lines .. "\n")
        end
        folder:write("tree/clients/node/package.json", "{}")
        return folder:run { "sh", "-c", 'chmod +x bin/* tree/do; PATH="$PWD/bin:$PATH"; cd tree; ./do test x_spec.lua' }
    end

    it("says at the end what tests were skipped for, and how many", function()
        local ended = with_servers "echo installed"
        assert.same({ 0, "" }, { ended.code, ended.err })
        assert.equal("     1 passed  x_spec.lua (1 skipped)\n1 SKIPPED: RabbitMQ isn't installed (package x)\n"
            .. "1 passed, 0 failed\n", ended.out)
    end)

    it("asks npm for what clients/node needs, until it has it", function()
        local ended = with_servers("echo installed", "exit 1")
        assert.same({ 0, "do: without Node and its packages the tests of clients/node are skipped\n" },
            { ended.code, ended.err })
        ended = with_servers("echo installed", 'echo "$@"')
        assert.same({ 0, "" }, { ended.code, ended.err })
        assert.equal("install --no-audit --no-fund --no-package-lock --prefix build/node\n",
            folder:read "tree/build/node/log")
        ended = with_servers("echo installed", "exit 1")
        assert.same({ 0, "" }, { ended.code, ended.err })
    end)

    it("runs the other tests where no server can be installed", function()
        local ended = with_servers '[ "$4" = rabbitmq-server ] || echo installed'
        assert.equal(0, ended.code, ended.err)
        assert.equal("do: installing rabbitmq-server\ndo: can't install rabbitmq-server\n"
            .. "do: without RabbitMQ its tests are skipped\n", ended.err)
        assert.matches("\n1 passed, 0 failed\n$", ended.out)
    end)
end)
