/* metatable.c: see metatable.h. */
#include "metatable.h"

int mull__metatable_get(lua_State *L, const char *name)
{
    if (luaL_getmetatable(L, name) == LUA_TTABLE)
        return 1;
    lua_pop(L, 1);
    lua_newtable(L);
    return 0;
}

void mull__metatable_register(lua_State *L, const char *name)
{
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_setfield(L, LUA_REGISTRYINDEX, name);
}

static void push_functions(lua_State *L, const luaL_Reg *functions)
{
    lua_newtable(L);
    luaL_setfuncs(L, functions, 0);
}

void mull__type_define(lua_State *L, const char *name, const luaL_Reg *meta,
                       const luaL_Reg *functions)
{
    push_functions(L, functions);
    if (!mull__metatable_get(L, name)) {
        luaL_setfuncs(L, meta, 0);
        push_functions(L, functions);
        lua_setfield(L, -2, "__index");
        mull__metatable_register(L, name);
    }
    lua_getfield(L, -1, "__index");
    lua_remove(L, -2);
}
