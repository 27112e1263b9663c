/* settings.c: see settings.h. */
#include "settings.h"

#include "policy/settings.h"

static void add_row(lua_State *L, const char *field, const char *kind, const char *example)
{
    lua_createtable(L, 0, 3);
    lua_pushstring(L, field);
    lua_setfield(L, -2, "field");
    lua_pushstring(L, kind);
    lua_setfield(L, -2, "kind");
    lua_pushstring(L, example);
    lua_setfield(L, -2, "example");
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
}

void mull__push_settings(lua_State *L)
{
    lua_newtable(L);
#define ADD(NUMBER, field, kind, otherwise, example) add_row(L, #field, #kind, example);
    MULL__EACH_SETTING(ADD)
#undef ADD
}
