-- mulligan init: what it writes works, and what is there stays.
local mulligan = require "mulligan"
local process = require "support.process"

local build = process.mulligan:match("^(.*)/[^/]*$")

local FILES = { "policy.lua", "spec/policy_spec.lua", ".luarc.json", ".luacheckrc", ".mulligan/types/mulligan.lua",
    ".mulligan/types/policy.lua", ".mulligan/types/testing.lua" }

describe("mulligan init", function()
    local folder

    before_each(function()
        folder = process.folder()
    end)

    after_each(function()
        folder:remove()
    end)

    local function sh(command)
        return folder:run { "sh", "-c", command }
    end

    -- What is in the folder, but for the files of the jobs that ran here.
    local function listed()
        return sh("find . -type f -o -type l | grep -v /job | LC_ALL=C sort").out
    end

    local ALL = "./.luacheckrc\n./.luarc.json\n./.mulligan/types/mulligan.lua\n./.mulligan/types/policy.lua\n"
        .. "./.mulligan/types/testing.lua\n./policy.lua\n./spec/policy_spec.lua\n"

    it("writes its files, and says so and what to do next", function()
        local done = folder:mulligan { "init" }
        assert.same({ 0, "" }, { done.code, done.err })
        for _, name in ipairs(FILES) do
            assert.matches("wrote " .. name .. "\n", done.out, 1, true)
        end
        assert.matches("mulligan check policy.lua\n", done.out, 1, true)
        assert.matches("  busted --lua=lua5.4 spec\n", done.out, 1, true)
        assert.equal(ALL, listed())
    end)

    it("makes folders, and writes there", function()
        local done = folder:mulligan { "init", "a/b/" }
        assert.same({ 0, "" }, { done.code, done.err })
        assert.matches("wrote a/b/spec/policy_spec.lua\n", done.out, 1, true)
        assert.matches("cd a/b && busted", done.out, 1, true)
        assert.equal((ALL:gsub("%./", "./a/b/")), listed())
    end)

    it("gives a policy without a finding", function()
        folder:mulligan { "init" }
        local checked = folder:mulligan { "check", "--strict", "policy.lua" }
        assert.same({ 0, "" }, { checked.code, checked.err })
        assert.matches("6 rules in 1 scope", checked.out, 1, true)
    end)

    -- busted runs in the interpreter of the build, which fits a module with sanitizers.
    local function busted()
        local cpath = ("--cpath='%s/lua/?.so'"):format(build)
        return sh(("'%s/spec/runner' \"$(command -v busted)\" --ignore-lua %s -o TAP spec"):format(build, cpath))
    end

    it("gives a spec that passes, beside a service.lua too", function()
        folder:mulligan { "init" }
        folder:write("service.lua", 'require "mulligan"\n')
        local ran = busted()
        assert.equal(0, ran.code, ran.out .. ran.err)
        assert.matches("1..5\n", ran.out, 1, true)
        assert.is_nil(ran.out:find("not ok", 1, true))
    end)

    for _, change in ipairs {
        { '"invalid"', '"void"' }, { "retry(5, ", "retry(4, " }, { '"1m", ', "" }, { "retry_after\"", 'retry_later"' },
        { "retry():then_redeliver()", "retry()" }, { 'DeadlockError = "DatabaseError",', "" },
    } do
        it(("gives a spec that fails where the policy has %q for %s"):format(change[2], change[1]), function()
            folder:mulligan { "init" }
            local before, after = folder:read("policy.lua"):match("^(.-)" .. change[1]:gsub("%p", "%%%0") .. "(.*)$")
            folder:write("policy.lua", before .. change[2] .. after)
            local ran = busted()
            assert.equal(1, ran.code, ran.out .. ran.err)
        end)
    end

    it("gives a .luacheckrc that all of it passes, and that knows what a policy hasn't", function()
        folder:mulligan { "init" }
        local clean = sh "luacheck -q --no-color ."
        assert.same({ 0, "" }, { clean.code, clean.err }, clean.out)
        assert.matches("0 warnings / 0 errors in 2 files", clean.out, 1, true)
        folder:write("policy.lua", folder:read("policy.lua") .. "\nprint(os.time())\n")
        local found = sh "luacheck --no-color ."
        assert.equal(1, found.code)
        assert.matches("accessing undefined variable 'os'", found.out, 1, true)
    end)

    it("gives no file that names a path of the machine", function()
        folder:mulligan { "init", "new" }
        for path in sh("find new -type f").out:gmatch "[^\n]+" do
            for _, strange in ipairs { folder.root, build, process.here, '"/' } do
                assert.is_nil(folder:read(path):find(strange, 1, true), path .. " has " .. strange)
            end
        end
    end)

    it("gives a .luarc.json that points to the types", function()
        folder:mulligan { "init" }
        local settings = mulligan.json.decode(folder:read(".luarc.json"))
        assert.equal("Lua 5.4", settings["runtime.version"])
        local library = settings["workspace.library"]
        assert.same({ "${3rd}/busted/library", "${3rd}/luassert/library" }, { library[2], library[3] })
        for _, name in ipairs { "policy", "mulligan", "testing" } do
            local path = ("/%s.lua"):format(name)
            assert.equal(process.read("lua/mulligan/meta" .. path), folder:read(library[1] .. path))
        end
    end)

    for _, name in ipairs(FILES) do
        it("writes nothing where there is a " .. name, function()
            folder:write(name, "mine")
            local refused = folder:mulligan { "init" }
            assert.same({ code = 1, out = "",
                err = ("mulligan: init: %s is there already; --force replaces it\n"):format(name) }, refused)
            assert.equal("./" .. name .. "\n", listed())
            assert.equal("mine", folder:read(name))
        end)
    end

    it("names all that is there in one line", function()
        folder:mulligan { "init" }
        local refused = folder:mulligan { "init" }
        assert.same({ code = 1, out = "", err = "mulligan: init: policy.lua, spec/policy_spec.lua, .luarc.json, "
            .. ".luacheckrc, .mulligan/types/mulligan.lua, .mulligan/types/policy.lua and "
            .. ".mulligan/types/testing.lua are there already; --force replaces them\n" }, refused)
    end)

    it("takes a link to nothing for a file", function()
        sh "ln -s nowhere policy.lua"
        local refused = folder:mulligan { "init" }
        assert.same({ 1, "mulligan: init: policy.lua is there already; --force replaces it\n" },
            { refused.code, refused.err })
        assert.equal("./policy.lua\n", listed())
    end)

    it("replaces with --force", function()
        folder:write("policy.lua", "mine")
        folder:write("spec/policy_spec.lua", "mine")
        assert.equal(0, folder:mulligan({ "init", "--force" }).code)
        assert.equal(ALL, listed())
        assert.equal(0, folder:mulligan({ "check", "--strict", "policy.lua" }).code)
    end)

    it("writes all or nothing: where one can't be put in its place, the others are as they were", function()
        folder:write("policy.lua", "mine")
        folder:write(".luarc.json/inside", "mine too")
        local failed = folder:mulligan { "init", "--force" }
        assert.same({ code = 1, out = "", err = "mulligan: init: .luarc.json: this is a folder\n" }, failed)
        assert.equal("./.luarc.json/inside\n./policy.lua\n", listed())
        assert.equal("mine", folder:read("policy.lua"))
    end)

    it("says why it can't write", function()
        folder:write("taken", "")
        local failed = folder:mulligan { "init", "taken" }
        assert.same({ 1, "" }, { failed.code, failed.out })
        assert.matches("^mulligan: init: taken/%.mulligan%-init: Not a directory\n$", failed.err)
        assert.equal("./taken\n", listed())
    end)

    it("takes one folder", function()
        assert.equal(2, folder:mulligan({ "init", "a", "b" }).code)
        assert.equal(2, folder:mulligan({ "init", "--forse" }).code)
        assert.equal("", listed())
    end)
end)
