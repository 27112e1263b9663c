-- Transports that are modules: mulligan loads them from a folder of its own, and says in one line why it doesn't. The
-- program is copied beside a folder `modules`, where a build has them, and that is filled with what is wrong.
local examples = require "support.examples"
local mulligan = require "mulligan"
local process = require "support.process"

local SERVICE = [[
local m = require "mulligan"
m.policy "policy.lua"
m.transport("shop", os.getenv "URL" or "board:one")
m.consumer("C", { transport = "shop", queue = "q", handler = function() end })
]]

local EMPTY = "done 0, retried 0, redelivered 0, dead-lettered 0, discarded 0\n"

-- A module of our making: what stands in it, by version.
local MADE = [[
#include <mulligan/module.h>
static const mull_transport_ops ops = {
    .size = sizeof(mull_transport_ops), .version = MULL_TRANSPORT_VERSION, .scheme = "made"};
const struct mull_module mull_module = {%s, "made", &ops};
]]

local OTHER = "belongs to user 12345; it must be root's, or user 0's, as mulligan is"

local as_root = os.execute("[ $(id -u) = 0 ]")

describe("a module", function()
    local folder

    before_each(function()
        folder = process.folder { ["service.lua"] = SERVICE, ["policy.lua"] = "" }
        assert(os.execute(("mkdir -m 755 '%s'"):format(folder:path "modules")))
        assert(os.execute(("cp '%s' '%s'"):format(process.mulligan, folder.root)))
    end)

    after_each(function()
        folder:remove()
    end)

    local function sh(line)
        local ended = folder:run { "sh", "-c", line }
        assert.equal(0, ended.code, ended.err)
    end

    local function install(name)
        sh(("cp '%s/modules/board.so' modules/%s"):format(process.build, name or "board.so"))
    end

    -- compile makes modules/made.so out of C.
    local function compile(text)
        folder:write("made.c", text)
        sh(("cc -shared -fPIC -w %s -I'%s/include' made.c -o modules/made.so"):format(
            examples.sanitizer and "-fsanitize=" .. examples.sanitizer or "", process.here))
    end

    -- run runs the copy of the program; `as` are words before it.
    local function run(url, as)
        local words = table.move(as or {}, 1, #(as or {}), 1, {})
        table.move({ "./mulligan", "run", "--until-empty" }, 1, 3, #words + 1, words)
        return folder:run(words, { env = { URL = url } })
    end

    -- The one line that `run` ends with; FOLDER is where the modules are.
    local UNKNOWN = "there is no 'board:'; known are memory:, sqlite:, amqp:, amqps:"

    local function refused(url, why, as)
        local ended = run(url, as)
        local line = ("mulligan: service.lua:3: transport 'shop': %s\n"):format(
            (why:gsub("FOLDER", (folder:path("modules"):gsub("%%", "%%%%")))))
        assert.same({ 2, "", line }, { ended.code, ended.out, ended.err })
    end

    it("is loaded when its scheme is used, and works", function()
        install()
        local ended = run "board:one"
        assert.same({ 0, EMPTY }, { ended.code, ended.out }, ended.err)
    end)

    it("of the build is found by the program that lies there", function()
        local ended = folder:mulligan { "run", "--until-empty" }
        assert.same({ 0, EMPTY }, { ended.code, ended.out }, ended.err)
    end)

    it("is asked by `check --for`, too", function()
        install()
        local ended = folder:run { "./mulligan", "check", "policy.lua", "--for", "service.lua" }
        assert.equal(0, ended.code, ended.err)
    end)

    it("that isn't there leaves its scheme unknown, or names its package", function()
        refused("board:one", UNKNOWN)
        refused("amqp:one", "'amqp:' needs the package mulligan-amqp")
        refused("amqps:one", "'amqps:' needs the package mulligan-amqp")
        sh "rmdir modules"
        refused("board:one", UNKNOWN)
    end)

    it("is found by a scheme alone, which is no path", function()
        local engine = mulligan.engine { policy = assert(mulligan.load_text "") }
        assert.is_truthy(engine:transport("one", "board:one"))
        for _, scheme in ipairs { "../modules/board", "./board", "BOARD", "board.so", "", "." } do
            local _, message = engine:transport("two", scheme .. ":")
            assert.equal("transport 'two': " .. UNKNOWN:gsub("board", scheme), message)
        end
        engine:close()
    end)

    it("is never taken from the working folder, by the environment, or by what the program is called", function()
        sh(("mkdir elsewhere elsewhere/modules && cp '%s/modules/board.so' . && cp board.so elsewhere/modules/ "
            .. "&& cp board.so elsewhere/"):format(process.build))
        local there = folder:path "elsewhere"
        refused("board:one", UNKNOWN, { "env", "LD_LIBRARY_PATH=" .. there
            .. ":.", "MULLIGAN_MODULES=" .. there .. "/modules" })
        refused("board:one", UNKNOWN,
            { "bash", "-c", ('exec -a "%s/mulligan" "$@"'):format(there), "bash" })
    end)

    it("that others may write to isn't loaded, nor one in such a folder", function()
        install()
        sh "chmod g+w modules/board.so"
        refused("board:one", "'board:' can't be loaded: FOLDER/board.so may be written to by others than its owner; "
            .. "chmod go-w it")
        sh "chmod g-w modules/board.so && chmod o+w modules"
        refused("board:one", "'board:' can't be loaded: FOLDER may be written to by others than its owner; "
            .. "chmod go-w it")
    end)

    it("is as safe as mulligan where a folder is open that both are in", function()
        install()
        sh "chmod 777 ."
        local ended = run "board:one"
        assert.same({ 0, EMPTY }, { ended.code, ended.out }, ended.err)
    end)

    it("isn't loaded where its folder's name is a link to one that others may exchange", function()
        install()
        sh "mkdir open && mv modules open && chmod o+w open && ln -s open/modules modules"
        refused("board:one", "'board:' can't be loaded: " .. folder:path "open"
            .. " may be written to by others than its owner; chmod go-w it")
        sh "chmod o-w open && chmod g+w open" -- mulligan's own file isn't in it
        refused("board:one", "'board:' can't be loaded: " .. folder:path "open"
            .. " may be written to by others than its owner; chmod go-w it")
    end)

    it("that is a link isn't loaded", function()
        sh(("ln -s '%s/modules/board.so' modules/board.so"):format(process.build))
        refused("board:one",
            "'board:' can't be loaded: FOLDER/board.so is no regular file; put the module itself there")
    end)

    it("that is no library isn't loaded", function()
        folder:write("modules/board.so", ("no library\n"):rep(100))
        sh "chmod 644 modules/board.so"
        refused("board:one", "'board:' can't be loaded: FOLDER/board.so: invalid ELF header")
    end)

    it("that is no module isn't taken", function()
        compile "int other; int other = 1;"
        refused("made:", "'made:' can't be loaded: FOLDER/made.so is no module of mulligan; it has no `mull_module`")
    end)

    it("of another version isn't taken", function()
        compile(MADE:format("sizeof(struct mull_module), MULL_TRANSPORT_VERSION + 1, sizeof(mull_port_calls)"))
        local version = tonumber(process.read("include/mulligan/transport.h"):match("MULL_TRANSPORT_VERSION = (%d+)"))
        refused("made:", ("'made:' can't be loaded: FOLDER/made.so is for transports of version %d, this mulligan "
            .. "for %d; install both of one release"):format(version + 1, version))
        for _, sizes in ipairs { "sizeof(struct mull_module) - 1, MULL_TRANSPORT_VERSION, sizeof(mull_port_calls)",
            "sizeof(struct mull_module), MULL_TRANSPORT_VERSION, sizeof(mull_port_calls) + 1" } do
            compile(MADE:format(sizes))
            refused("made:", "'made:' can't be loaded: FOLDER/made.so doesn't fit this mulligan; "
                .. "install both of one release")
        end
    end)

    it("that lacks a slot isn't taken", function()
        compile(MADE:format("sizeof(struct mull_module), MULL_TRANSPORT_VERSION, sizeof(mull_port_calls)"))
        refused("made:", "'made:' can't be loaded: FOLDER/made.so has no `look`; "
            .. "only `depth`, `hold` and `flush` may be missing")
    end)

    it("of another name isn't taken", function()
        install "shop.so"
        refused("shop:", "'shop:' can't be loaded: FOLDER/shop.so is the module 'board', with a transport for "
            .. "'board:'; both must be called as its file is")
    end)

    if as_root then
        it("of another user's isn't loaded, except of the program's owner", function()
            install()
            sh "chown 12345 modules/board.so"
            refused("board:one", "'board:' can't be loaded: FOLDER/board.so " .. OTHER)
            sh "chown 0 modules/board.so && chown 12345 modules"
            refused("board:one", "'board:' can't be loaded: FOLDER " .. OTHER)
            sh "chown 12345 mulligan modules modules/board.so"
            local ended = run "board:one"
            assert.same({ 0, EMPTY }, { ended.code, ended.out }, ended.err)
        end)

        it("is trusted to its caller, unless the program has more rights than that", function()
            install()
            sh "chmod 755 . && chown 12345 . modules modules/board.so"
            local function by_caller(...)
                return { "setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", ... }
            end
            local ended = run("board:one", by_caller())
            assert.same({ 0, EMPTY }, { ended.code, ended.out }, ended.err)
            sh 'cp "$(command -v id)" id && chgrp 54321 id mulligan && chmod g+s id mulligan'
            -- A sanitizer can't look for leaks in a process that nobody may trace.
            if examples.sanitizer or folder:run(by_caller("./id", "-g")).out ~= "54321\n" then
                pending "no program can be tested here that gains rights"
                return
            end
            refused("board:one", "'board:' can't be loaded: FOLDER " .. OTHER, by_caller())
        end)
    end

    it("that can't be read isn't loaded", function()
        install()
        sh "chmod 755 . && chmod 0 modules/board.so"
        refused("board:one", "'board:' can't be loaded: FOLDER/board.so: cannot open shared object file: "
            .. "Permission denied", as_root and { "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups" })
    end)

    it("isn't loaded by a program that was replaced while it runs", function()
        install()
        folder:write("service.lua", 'os.execute "cp mulligan new && mv new mulligan"\n' .. SERVICE)
        local ended = run "board:one"
        assert.same({ 2, "mulligan: service.lua:4: transport 'shop': 'board:' can't be loaded: mulligan's own file was "
            .. "replaced while it runs; start it anew\n" }, { ended.code, ended.err })
    end)
end)

describe("libmulligan.so", function()
    it("needs no library for what modules do", function()
        if examples.sanitizer then
            pending("sanitizers need more")
            return
        end
        local pipe = assert(io.popen(("readelf -d '%s/libmulligan.so'"):format(process.build)))
        local found = {}
        for name in pipe:read("a"):gmatch("%(NEEDED%)[^\n]*%[([%w_]+)") do
            found[#found + 1] = name
        end
        pipe:close()
        table.sort(found)
        assert.same({ "libc", "liblua5", "libsqlite3", "libuv" }, found)
    end)
end)
