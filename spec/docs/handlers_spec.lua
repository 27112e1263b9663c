-- docs/handlers.md's programs and handlers, run as they stand there.
local pages = require "support.pages"
local process = require "support.process"
local queues = require "support.queues"

local server = require "support.server"

local PAGE = "docs/handlers.md"
local HEAD = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("orders", "sqlite:orders.db")
]]

-- The block of the page that has a text in it.
local function block_with(text)
    for _, block in ipairs(pages.blocks(PAGE, "lua")) do
        if block.text:find(text, 1, true) then
            return block.text
        end
    end
    error("no block has " .. text)
end

describe(PAGE, function()
    local folder, url

    before_each(function()
        folder = process.folder { ["policy.lua"] = "" }
        url = "sqlite:" .. folder:path("orders.db")
    end)

    after_each(function()
        folder:remove()
    end)

    local function executable(name, text)
        folder:write(name, text)
        assert(os.execute("chmod +x " .. folder:path(name)))
    end

    local function works(queue, lines, summary, env)
        local sent = folder:mulligan({ "send", queue, "--transport", "orders" }, { stdin = lines })
        assert.same({ code = 0, out = "", err = "" }, sent)
        local run = folder:mulligan({ "run", "--until-empty" }, { env = env })
        assert.same({ 0, summary }, { run.code, run.out }, run.err)
        return run.err
    end

    it("has a program that handles messages", function()
        folder:write("service.lua", block_with "InvoiceHandler")
        executable("invoice", pages.blocks(PAGE, "python")[1].text)
        local log = works("invoices", '{"number":7,"address":"here"}\n{"number":8}\n',
            "done 1, retried 0, redelivered 0, dead-lettered 1, discarded 0\n")
        assert.matches("consumer InvoiceHandler: stdout: invoice for 7 attempt 1\n", log, 1, true)
        local dead = queues.take(url, "error")[1].headers
        assert.same({ "ValidationError", "no address" },
            { dead["mulligan-error-type"], dead["mulligan-error-message"] })
    end)

    it("has a handler that runs one", function()
        folder:write("service.lua", HEAD .. 'm.consumer("C", { transport = "orders", queue = "pdfs",\n'
            .. block_with "pdftotext" .. "})\n")
        executable("bin/pdftotext", "#!/bin/sh\nread -r text\n[ \"$text\" = good ] || { echo bad >&2; exit 1; }\n"
            .. "echo \"$@ $text\"\n")
        works("pdfs", "good\nbad\n", "done 1, retried 0, redelivered 0, dead-lettered 1, discarded 0\n",
            { PATH = folder:path("bin") .. ":" .. os.getenv "PATH" })
        assert.equal("- - good\n", queues.take(url, "texts")[1].body)
        local dead = queues.take(url, "error")[1].headers
        assert.same({ "PdfError", "bad\n" }, { dead["mulligan-error-type"], dead["mulligan-error-message"] })
    end)

    it("has a server that handles messages, and a handler that asks one", function()
        if not require("mulligan.core").has_http() then
            pending "libcurl isn't installed (package libcurl4-openssl-dev), so there is no module http"
            return
        end
        local here = server.start(folder) .. "/"
        local blocks = block_with "m.http" .. 'm.consumer("D", { transport = "orders", queue = "asked",\n'
            .. block_with "m.fetch" .. "})\n"
        folder:write("service.lua", HEAD .. blocks:gsub("http://127.0.0.1:8080/%l+", {
            ["http://127.0.0.1:8080/mail"] = here .. "keep", ["http://127.0.0.1:8080/orders"] = here .. "echo",
        }))
        works("mail", "hello\n", "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n")
        assert.matches('"body": "hello"', folder:read "kept", 1, true)
        works("asked", "5\n", "done 1, retried 0, redelivered 0, dead-lettered 0, discarded 0\n")
        local answer = queues.take(url, "answers")[1].body
        assert.matches('"method": "POST"', answer, 1, true)
        assert.matches('"content-type": "application/json"', answer, 1, true)
    end)
end)
