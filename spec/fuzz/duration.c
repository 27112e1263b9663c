/* duration.c: a span of time reads the same in C (base/duration.c) and in Lua
 * (policy/duration.lua): so many milliseconds, or a mistake for both. */
#include "base/duration.h"
#include "fuzz.h"

static lua_State *L;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!L) {
        L = open_lua();
        expect(luaL_dostring(L, "return require('mulligan.policy.duration').read") == LUA_OK,
               "no duration.lua");
    }
    int64_t ms = -1;
    char why[256];
    const char *text = (const char *)data;
    int refused = mull__duration_read(&ms, text, size, why, sizeof why);
    lua_pushvalue(L, 1);
    lua_pushlstring(L, text, size);
    expect(lua_pcall(L, 1, 2, 0) == LUA_OK, "Lua raised");
    if (refused) {
        expect(lua_isnil(L, 2) && lua_isstring(L, 3), "only C refuses it");
        expect(why[0] != 0, "C gives no reason");
    } else {
        expect(lua_isinteger(L, 2) && lua_tointeger(L, 2) == ms, "C and Lua differ");
        expect(ms >= 0 && ms <= INT64_C(365) * 86400000, "it is too long");
    }
    lua_settop(L, 1);
    return 0;
}
