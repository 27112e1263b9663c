rockspec_format = "3.0"
package = "mulligan"
version = "scm-1"

-- `luarocks make` builds the tree that it is called in.
source = {
    url = "git+file://.",
}

description = {
    summary = "What becomes of messages that fail: a recoverability policy in Lua, and an engine for it",
    detailed = [[
A policy says for each error whether its message is tried again now, later, put aside for a person, or dropped.
This rock is the Lua module: load, decide, and run consumers on a durable queue.]],
    license = "MIT",
    labels = { "messaging", "queue", "retry", "policy" },
}

dependencies = {
    "lua >= 5.4, < 5.5",
}

-- On Debian: libuv1-dev, libsqlite3-dev, libxxhash-dev; and cmake, pkg-config, liblua5.4-dev.
external_dependencies = {
    LIBUV = { header = "uv.h", library = "uv" },
    SQLITE = { header = "sqlite3.h", library = "sqlite3" },
    XXHASH = { header = "xxhash.h" }, -- nothing of its library
}

build = {
    type = "cmake",
    variables = {
        CMAKE_BUILD_TYPE = "Release",
        CMAKE_INSTALL_PREFIX = "$(PREFIX)",
        -- Where CMake looks first, so that `luarocks make LIBUV_DIR=...` and the like are obeyed.
        CMAKE_PREFIX_PATH = "$(LIBUV_DIR);$(SQLITE_DIR);$(XXHASH_DIR);$(LUA_DIR)",
        MULL_LUA_ONLY = "ON",
        MULL_LUA_CDIR = "$(LIBDIR)",
        MULL_LUA_LDIR = "$(LUADIR)",
    },
}
