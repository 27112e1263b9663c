-- docs/handlers.md's programs and handlers, run as they stand there.
local pages = require "support.pages"
local process = require "support.process"
local queues = require "support.queues"

local PAGE = "docs/handlers.md"

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
        folder:write("service.lua", pages.blocks(PAGE, "lua")[1].text)
        executable("invoice", pages.blocks(PAGE, "python")[1].text)
        local log = works("invoices", '{"number":7,"address":"here"}\n{"number":8}\n',
            "done 1, retried 0, redelivered 0, dead-lettered 1, discarded 0\n")
        assert.matches("consumer InvoiceHandler: stdout: invoice for 7 attempt 1\n", log, 1, true)
        local dead = queues.take(url, "error")[1].headers
        assert.same({ "ValidationError", "no address" },
            { dead["mulligan-error-type"], dead["mulligan-error-message"] })
    end)

    it("has a handler that runs one", function()
        folder:write("service.lua", 'local m = require "mulligan"\nm.policy "policy.lua"\n'
            .. 'm.transport("orders", "sqlite:orders.db")\nm.consumer("C", { transport = "orders", queue = "pdfs",\n'
            .. pages.blocks(PAGE, "lua")[2].text .. "})\n")
        executable("bin/pdftotext", "#!/bin/sh\nread -r text\n[ \"$text\" = good ] || { echo bad >&2; exit 1; }\n"
            .. "echo \"$@ $text\"\n")
        works("pdfs", "good\nbad\n", "done 1, retried 0, redelivered 0, dead-lettered 1, discarded 0\n",
            { PATH = folder:path("bin") .. ":" .. os.getenv "PATH" })
        assert.equal("- - good\n", queues.take(url, "texts")[1].body)
        local dead = queues.take(url, "error")[1].headers
        assert.same({ "PdfError", "bad\n" }, { dead["mulligan-error-type"], dead["mulligan-error-message"] })
    end)
end)
