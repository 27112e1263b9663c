-- docs/workers.md's worker, and its test vectors, against the program.
local pages = require "support.pages"
local process = require "support.process"
local python = require "support.python"
local queues = require "support.queues"

local PAGE = "docs/workers.md"

describe(PAGE, function()
    local folder

    before_each(function()
        folder = process.folder { ["policy.lua"] = "" }
    end)

    after_each(function()
        folder:remove()
    end)

    it("has a worker in Python", function()
        local interpreter = python.with_msgpack()
        if not interpreter then
            pending(python.LACKS)
            return
        end
        local service = pages.blocks(PAGE, "lua")[1].text
        folder:write("service.lua", (service:gsub('"python3"', ("%q"):format(interpreter))))
        folder:write("worker.py", pages.blocks(PAGE, "python")[1].text)
        local sent = folder:mulligan({ "send", "orders", "--transport", "orders" },
            { stdin = '{"number":7,"address":"here"}\n{"number":8}\n' })
        assert.equal(0, sent.code, sent.err)
        local ran = folder:mulligan({ "run", "--until-empty" },
            { env = { PYTHONPATH = process.here .. "/clients/python" } })
        assert.same({ 0, "done 1, retried 0, redelivered 0, dead-lettered 1, discarded 0\n" }, { ran.code, ran.out },
            ran.err)
        assert.matches("worker process %d+: order 7 attempt 1\n", ran.err)
        local url = "sqlite:" .. folder:path("orders.db")
        assert.equal('{"order": 7}', queues.take(url, "shipments")[1].body)
        local dead = queues.take(url, "error")[1].headers
        assert.same({ "ValidationError", "no address" },
            { dead["mulligan-error-type"], dead["mulligan-error-message"] })
    end)

    -- digits gives those of a line, without spaces.
    local function digits(line)
        return (line:sub(2):gsub("%s", ""))
    end

    -- read_block gives the script of a block, and what it is to print.
    local function read_block(block)
        local script, wanted = {}, {}
        for line in block:gmatch "[^\n]+" do
            if line:find "^>" then
                script[#script + 1] = "> " .. digits(line)
            else
                script[#script + 1] = "<"
                wanted[#wanted + 1] = line == "closed" and line or digits(line)
            end
        end
        return table.concat(script, "\n") .. "\n", wanted
    end

    local vectors = process.read(PAGE):match "\n## Test vectors\n(.*)"

    for number, block in ipairs(pages.blocks(PAGE, "hex")) do
        it("shows bytes that come as they go: " .. number, function()
            local script, wanted = read_block(block.text)
            folder:write("service.lua", vectors:match "\n```lua\n(.-)```")
            folder:write("script", script)
            folder:write("vector", ("#!/bin/sh\n[ -e out ] && exec sleep 1000\n"
                .. "exec python3 %s/spec/support/exchange.py - script out\n"):format(process.here))
            assert(os.execute("chmod +x " .. folder:path("vector")))
            local sent = folder:mulligan({ "send", "work", "--transport", "t", "--id", "m-1" }, { stdin = "{}" })
            assert.equal(0, sent.code, sent.err)
            local job = folder:start_mulligan { "run" }
            process.await("all that it gets", function()
                local _, lines = (folder:read("out") or ""):gsub("\n", "")
                return lines >= #wanted, job.err()
            end)
            job.kill("TERM")
            assert.equal(0, job.wait(), job.err())
            assert.equal(table.concat(wanted, "\n") .. "\n", folder:read("out"))
        end)
    end

    it("has vectors", function()
        assert.is_true(#pages.blocks(PAGE, "hex") >= 5)
    end)
end)
