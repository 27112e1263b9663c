/* runner.c: a Lua interpreter with the sanitizers of the build, since a sanitized module can't be
 * loaded into lua5.4, and a preloaded runtime crashes the children of a test.
 *
 *   runner SCRIPT [ARGUMENT ...]
 *
 * A script that leaves by os.exit closes its state, or LeakSanitizer would report Lua's heap. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <stdio.h>

static const char prepare[] = "local exit = os.exit\n"
                              "os.exit = function(code) return exit(code, true) end\n";

static void set_arguments(lua_State *L, int argc, char **argv)
{
    lua_newtable(L);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i - 1);
    }
    lua_setglobal(L, "arg");
}

int main(int argc, char **argv)
{
    lua_State *L = luaL_newstate();
    if (!L || argc < 2) {
        fprintf(stderr, "usage: runner SCRIPT [ARGUMENT ...]\n");
        return 2;
    }
    luaL_openlibs(L);
    set_arguments(L, argc, argv);
    int failed = luaL_dostring(L, prepare) || luaL_loadfile(L, argv[1]);
    for (int i = 2; i < argc && !failed; i++)
        lua_pushstring(L, argv[i]);
    if (failed || lua_pcall(L, argc - 2, 0, 0))
        fprintf(stderr, "runner: %s\n", lua_tostring(L, -1));
    else
        failed = -1;
    lua_close(L);
    return failed == -1 ? 0 : 1;
}
