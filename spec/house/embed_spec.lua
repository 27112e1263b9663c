-- cmake/embed.cmake turns lua/** into a C table: the names and every byte must arrive.
describe("cmake/embed.cmake", function()
    local root

    before_each(function()
        root = os.tmpname()
        os.remove(root)
    end)

    after_each(function()
        assert(os.execute("rm -rf '" .. root .. "'"))
    end)

    local function write(path, text)
        assert(os.execute(("mkdir -p '%s/%s'"):format(root, path:match("^(.*)/"))))
        local file = assert(io.open(root .. "/" .. path, "wb"))
        file:write(text)
        file:close()
    end

    -- Embeds what was written; gives the table that C sees, as { { name =, text =, size = }, … }.
    local function embed()
        local command = "cmake -DROOT='%s/lua' -DOUT='%s/out.c' -P cmake/embed.cmake 2>&1"
        local pipe = assert(io.popen(command:format(root, root)))
        local output = pipe:read("a")
        assert.is_true(pipe:close(), output)

        local file = assert(io.open(root .. "/out.c", "rb"))
        local source = file:read("a")
        file:close()
        local texts, rows = {}, {}
        for name, bytes in source:gmatch("char (text_%d+)%[%] = {(.-)}") do
            texts[name] = bytes:gsub("0x(%x%x),%s*", function(hex)
                return string.char(tonumber(hex, 16))
            end):match("^%s*(.*)$")
        end
        for name, text, size in source:gmatch('{"([^"]+)", %(const char %*%)(text_%d+), (%d+)}') do
            rows[#rows + 1] = { name = name, text = texts[text], size = tonumber(size) }
        end
        assert.equal(#rows, tonumber(source:match("mull__embedded_count = (%d+);")))
        return rows
    end

    it("names files as Lua's modules, an init.lua as its folder", function()
        write("lua/mulligan/init.lua", "a")
        write("lua/mulligan/policy.lua", "b")
        write("lua/mulligan/cmd/run.lua", "c")
        write("lua/mulligan/notes.txt", "d")
        assert.same({
            { name = "mulligan.cmd.run", text = "c\0", size = 1 },
            { name = "mulligan", text = "a\0", size = 1 },
            { name = "mulligan.policy", text = "b\0", size = 1 },
        }, embed())
    end)

    it("keeps every byte, and ends each text in a NUL", function()
        local bytes = {}
        for byte = 33, 255 do
            bytes[#bytes + 1] = string.char(byte)
        end
        local text = table.concat(bytes) .. '\n"%s"\\n;${x} [[ ]] \t\r\n'
        write("lua/a.lua", text)
        write("lua/empty.lua", "")
        assert.same({
            { name = "a", text = text .. "\0", size = #text },
            { name = "empty", text = "\0", size = 0 },
        }, embed())
    end)
end)
