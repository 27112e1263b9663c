/* keys.c: see keys.h. */
#include "keys.h"

#include <lauxlib.h>
#include <string.h>

/* push_list pushes and gives "a, b and c". */
static const char *push_list(lua_State *L, const char *const *names)
{
    luaL_Buffer out;
    luaL_buffinit(L, &out);
    for (const char *const *name = names; *name; name++) {
        if (name != names)
            luaL_addstring(&out, name[1] ? ", " : " and ");
        luaL_addstring(&out, *name);
    }
    luaL_pushresult(&out);
    return lua_tostring(L, -1);
}

/* push_nearest pushes and gives what lua/mulligan/policy/text.lua takes a key for; NULL: nothing is
 * near. */
static const char *push_nearest(lua_State *L, const char *key, const char *const *known)
{
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    if (lua_getfield(L, -1, "mulligan.policy.text") != LUA_TTABLE)
        return NULL;
    lua_getfield(L, -1, "nearest");
    lua_pushstring(L, key);
    lua_newtable(L);
    for (int i = 0; known[i]; i++) {
        lua_pushstring(L, known[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_call(L, 2, 1);
    return lua_tostring(L, -1);
}

static void refuse(lua_State *L, const char *key, const char *const *known, const char *where)
{
    const char *near = push_nearest(L, key, known);
    if (near)
        luaL_error(L, "unknown key \"%s\" in %s; did you mean \"%s\"?", key, where, near);
    luaL_error(L, "unknown key \"%s\" in %s; there are %s", key, where, push_list(L, known));
}

static int is_known(const char *const *known, const char *key)
{
    while (*known && strcmp(*known, key) != 0)
        known++;
    return *known != NULL;
}

void mull__check_keys(lua_State *L, int index, const char *const *known, const char *where)
{
    index = lua_absindex(L, index);
    for (lua_pushnil(L); lua_next(L, index); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING)
            luaL_error(L, "unknown key in %s: a %s", where, luaL_typename(L, -2));
        if (!is_known(known, lua_tostring(L, -2)))
            refuse(L, lua_tostring(L, -2), known, where);
    }
}
