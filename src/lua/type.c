/* type.c: see type.h. */
#include "type.h"

#include <lauxlib.h>

int mull__type_get(lua_State *L, const char *name)
{
    if (luaL_getmetatable(L, name) == LUA_TTABLE)
        return 1;
    lua_pop(L, 1);
    lua_newtable(L);
    return 0;
}

void mull__type_keep(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, name);
}
