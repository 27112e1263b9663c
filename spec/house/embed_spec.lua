-- cmake/embed.cmake turns lua/** into a C table: the names and every byte must arrive, and the bytecode beside them.
local build = os.getenv("MULL_BUILD") or "build/dev"

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

    local function text_of(bytes)
        return bytes:gsub("0x(%x%x),%s*", function(hex)
            return string.char(tonumber(hex, 16))
        end):match("^%s*(.*)$")
    end

    -- Runs embed.cmake, with a tool or without: whether it went well, and what it said.
    local function run(tool)
        local command = "cmake -DROOT='%s/lua' -DOUT='%s/out.c' -DBYTECODE='%s' -P cmake/embed.cmake 2>&1"
        local pipe = assert(io.popen(command:format(root, root, tool or "")))
        local output = pipe:read("a")
        return pipe:close(), output
    end

    -- Embeds what was written; gives the table that C sees, as { { name =, text =, size = }, … }, where there is
    -- bytecode with `code`; and who made that.
    local function embed(tool)
        local well, output = run(tool)
        assert.is_true(well, output)

        local file = assert(io.open(root .. "/out.c", "rb"))
        local source = file:read("a")
        file:close()
        local texts, rows = {}, {}
        for name, bytes in source:gmatch("char (%a+_%d+)%[%] = {(.-)}") do
            texts[name] = text_of(bytes)
        end
        local row = '{"([^"]+)", %(const char %*%)(text_%d+), (%d+), ([^\n]-), (%d+)},\n'
        for name, text, size, code, code_size in source:gmatch(row) do
            local bytecode = texts[code:match("code_%d+$")]
            assert.equal(bytecode and #bytecode or 0, tonumber(code_size))
            rows[#rows + 1] = { name = name, text = texts[text], size = tonumber(size), code = bytecode }
        end
        assert.equal(#rows, tonumber(source:match("mull__embedded_count = (%d+);")))
        return rows, text_of(source:match("mull__embedded_lua_ident%[%] = {(.-)}"))
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

    it("leaves out what is for editors", function()
        write("lua/mulligan/meta/policy.lua", "a")
        write("lua/mulligan/metal/policy.lua", "b")
        assert.same({ { name = "mulligan.metal.policy", text = "b\0", size = 1 } }, embed())
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

    it("has bytecode beside the texts where there is the tool, which names its Lua", function()
        write("lua/a.lua", "local text, line = ...\nerror(text .. line)")
        local rows, maker = embed(build .. "/tools/bytecode")
        assert.equal(1, #rows)
        assert.matches("^%$LuaVersion: Lua 5%.4%.%d.*\0$", maker)
        local _, message = pcall(assert(load(rows[1].code, "other", "b")), "at ", 2)
        assert.equal("a:2: at 2", message)
        rows, maker = embed()
        assert.is_nil(rows[1].code)
        assert.equal("\0", maker)
    end)

    it("says where a file is no Lua", function()
        write("lua/a.lua", "local = 1")
        local well, output = run(build .. "/tools/bytecode")
        assert.is_nil(well)
        assert.matches("a:1: <name> expected near '='", output, 1, true)
    end)
end)
