-- Debian's packages: cpack makes them of the build that is tested, dpkg installs them into a root of
-- their own, which has the dependencies of this machine; what they bring works from there; and dpkg
-- takes them away again.
local process = require "support.process"

if not os.execute("command -v dpkg-shlibdeps >/dev/null") then
    pending("Debian's packages aren't made, since this is no Debian")
    return
end

local PACKAGES = { "libmulligan-dev", "libmulligan0", "lua-mulligan", "mulligan", "mulligan-amqp", "mulligan-http" }

-- dpkg works on a root of its own. A maintainer's script runs without a chroot, which would be empty;
-- ldconfig would be this machine's, so another one says that it was called.
local DPKG = [[
as_root=; [ "$(id -u)" = 0 ] || as_root="unshare --map-root-user"
PATH=$PWD/tools:$PATH:/usr/sbin:/sbin $as_root dpkg --root="$PWD/root" --force-script-chrootless --no-triggers ]]

local LDCONFIG = [[
#!/bin/sh
echo "$DPKG_MAINTSCRIPT_PACKAGE $DPKG_MAINTSCRIPT_NAME" >>"${0%/tools/*}/ldconfig.log"
]]

local PROGRAM = [[
#include <mulligan.h>
#include <stdio.h>

int main(void)
{
    puts(mull_version());
}
]]

local WATCHDOG_S = 300 -- the packages are compressed

describe("the packages for Debian", function()
    local folder, arch, version

    -- sh runs a line of shell, which must end in 0, in the folder, and gives what it printed.
    local function sh(line, env)
        local job = folder:start({ "sh", "-c", line }, { env = env })
        local code = job.wait(WATCHDOG_S)
        if code ~= 0 then
            error(("%s\nended in %d:\n%s%s"):format(line, code, job.out(), job.err()), 2)
        end
        return (job.out():gsub("\n$", ""))
    end

    local function field(package, name)
        return sh(("dpkg-deb -f debs/%s_*.deb %s"):format(package, name))
    end

    -- All files below the root that dpkg doesn't need for itself.
    local function files()
        return sh("cd root && find . -path ./var/lib/dpkg -prune -o -path ./etc -prune -o ! -type d -print")
    end

    setup(function()
        folder = process.folder { ["tools/ldconfig"] = LDCONFIG, ["program.c"] = PROGRAM }
        sh(("cpack --config '%s/CPackConfig.cmake' -B debs"):format(process.build))
        sh("chmod +x tools/ldconfig && mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info root/etc "
            .. "&& cp /var/lib/dpkg/status root/var/lib/dpkg/")
        sh(DPKG .. "-i debs/*.deb")
        arch = sh("dpkg-architecture -q DEB_HOST_MULTIARCH")
        version = field("mulligan", "Version")
    end)

    teardown(function()
        folder:remove()
    end)

    it("are six, which depend on each other and on what they link", function()
        for _, name in ipairs(PACKAGES) do
            assert.equal(name, field(name, "Package"))
            assert.equal(version, field(name, "Version"))
            assert.matches("^the mulligan authors <", field(name, "Maintainer"))
            assert.matches("Copyright: 2026 the mulligan authors\nLicense: Expat\n Permission is hereby granted",
                folder:read(("root/usr/share/doc/%s/copyright"):format(name)), 1, true)
            local changes = "gzip -dc root/usr/share/doc/%s/changelog.Debian.gz | dpkg-parsechangelog -l- -S Version"
            assert.equal(version, sh(changes:format(name)))
        end
        assert.matches(("libmulligan0 (= %s), liblua5.4-dev"):format(version), field("libmulligan-dev", "Depends"), 1,
            true)
        for _, name in ipairs { "libmulligan0", "lua-mulligan", "mulligan" } do
            local depends = field(name, "Depends")
            for _, library in ipairs { "libuv1", "libsqlite3-0" } do
                assert.matches(library, depends, 1, true)
            end
            assert.equal(name ~= "lua-mulligan", depends:find("liblua5.4-0", 1, true) ~= nil)
        end
        -- A module depends on its client library, and on nothing of ours.
        assert.is_nil(field("mulligan-amqp", "Depends"):find("mulligan", 1, true))
        assert.matches("librabbitmq4", field("mulligan-amqp", "Depends"), 1, true)
        assert.equal("mulligan, libmulligan0, lua-mulligan", field("mulligan-amqp", "Enhances"))
        assert.is_nil(field("mulligan-http", "Depends"):find("mulligan", 1, true))
        assert.matches("libcurl4", field("mulligan-http", "Depends"), 1, true)
        assert.equal("mulligan, lua-mulligan", field("mulligan-http", "Enhances"))
    end)

    it("have a program that runs, and finds the types for editors", function()
        assert.equal("mulligan " .. version:match("^[%d.]+"), sh("root/usr/bin/mulligan --version"))
        sh("root/usr/bin/mulligan init new")
        sh "diff -r root/usr/share/lua/5.4/mulligan/meta new/.mulligan/types"
    end)

    it("have a Lua module where Debian's Lua looks", function()
        local path = ("usr/lib/%s/lua/5.4/?.so"):format(arch)
        assert.matches("/" .. path, sh("env -u LUA_CPATH lua5.4 -e 'print(package.cpath)'"), 1, true)
        assert.equal("true", sh("lua5.4 -e 'print(require(\"mulligan\").version ~= nil)'",
            { LUA_CPATH = folder:path("root/" .. path) }))
    end)

    it("have a library that a program is built with and runs with", function()
        local lib = folder:path("root/usr/lib/" .. arch)
        local env = { PKG_CONFIG_PATH = lib .. "/pkgconfig", LD_LIBRARY_PATH = lib }
        sh("cc program.c -o program $(pkg-config --cflags --libs mulligan)", env)
        assert.equal(version:match("^[%d.]+"), sh("./program", env))
        assert.matches(lib .. "/libmulligan.so.0", sh("ldd ./program", env), 1, true)
        assert.equal(("libmulligan 0 libmulligan0 (>= %s)"):format(version:match("^[%d.]+")),
            sh("dpkg-deb --ctrl-tarfile debs/libmulligan0_*.deb | tar xO ./shlibs"))
        assert.equal("libmulligan0 postinst", sh("cat ldconfig.log"))
    end)

    it("have a unit that names the program, man pages and completions", function()
        local names = "\n" .. files() .. "\n"
        for _, name in ipairs { "bin/mulligan", "lib/systemd/system/mulligan@.service", "lib/sysusers.d/mulligan.conf",
            "share/man/man1/mulligan-run.1.gz", "share/man/man3/libmulligan.3.gz",
            "share/bash-completion/completions/mulligan", "share/fish/vendor_completions.d/mulligan.fish",
            "share/zsh/vendor-completions/_mulligan" } do
            assert.matches(("\n./usr/%s\n"):format(name), names, 1, true)
        end
        local unit = folder:read("root/usr/lib/systemd/system/mulligan@.service")
        assert.matches("\nExecStart=/usr/bin/mulligan run\n", unit, 1, true)
    end)

    it("say where they are refused", function()
        local ended = folder:run({ "sh", "-c", ("sed 's,CPACK_MULL_PREFIX \"/usr\",CPACK_MULL_PREFIX \"/opt\",' "
            .. "'%s/CPackConfig.cmake' >opt.cmake && cpack --config opt.cmake -B opt"):format(process.build) })
        assert.equal(1, ended.code)
        assert.matches("need a build for /usr: cmake --preset deb", ended.err, 1, true)
    end)

    if os.execute("command -v systemd-sysusers >/dev/null") then
        it("make the unit's user", function()
            assert.matches("mulligan:[^\n]*:/var/lib/mulligan:", folder:read("root/etc/passwd") or "")
        end)
    end

    it("leave nothing behind", function()
        sh(DPKG .. "-r " .. table.concat(PACKAGES, " "))
        assert.equal("", files())
    end)
end)
