/* raise.c: see raise.h. */
#include "raise.h"

#include "base/utf8.h"
#include "metatable.h"
#include "traceback.h"

#include <lauxlib.h>
#include <stdarg.h>
#include <string.h>

static const char type_name[] = "mulligan.error";

static int raw_type(lua_State *L, const char *field)
{
    lua_pushstring(L, field);
    return lua_rawget(L, 1);
}

/* raw_text pushes a field of the table at 1, and gives its text if it is one. */
static const char *raw_text(lua_State *L, const char *field)
{
    return raw_type(L, field) == LUA_TSTRING ? lua_tostring(L, -1) : NULL;
}

/* show is what tostring gives: "PgError: deadlock detected". */
static int show(lua_State *L)
{
    lua_settop(L, 1);
    const char *type = raw_text(L, "type"), *message = raw_text(L, "message");
    if (message && *message)
        lua_pushfstring(L, "%s: %s", type ? type : "Error", message);
    else
        lua_pushstring(L, type ? type : "Error");
    return 1;
}

static void mark(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (!mull__metatable_get(L, type_name)) {
        lua_pushcfunction(L, show);
        lua_setfield(L, -2, "__tostring");
        mull__metatable_register(L, type_name);
    }
    lua_setmetatable(L, index);
}

int mull__is_error_value(lua_State *L, int index)
{
    if (lua_type(L, index) != LUA_TTABLE || !lua_getmetatable(L, index))
        return 0;
    luaL_getmetatable(L, type_name);
    int same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

/* say: a table, a function and the like say nothing of themselves but an address. */
static int say(lua_State *L)
{
    if (lua_isstring(L, 1) || lua_isnil(L, 1) || lua_isboolean(L, 1) ||
        luaL_getmetafield(L, 1, "__tostring") != LUA_TNIL) {
        luaL_tolstring(L, 1, NULL);
        return 1;
    }
    const char *type = NULL, *message = NULL;
    if (lua_istable(L, 1)) {
        type = raw_text(L, "type");
        message = raw_text(L, "message");
    }
    lua_pushfstring(L,
                    "a %s was raised; raise an error by mulligan.error { type = \"%s\", ... }%s%s",
                    luaL_typename(L, 1), type ? type : "X", message ? "; its message: " : "",
                    message ? message : "");
    return 1;
}

void mull__error_value_text(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    luaL_checkstack(L, 4, NULL);
    lua_pushcfunction(L, say);
    lua_pushvalue(L, index);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        lua_pop(L, 1);
        lua_pushfstring(L, "(a %s that can't be shown)", luaL_typename(L, index));
    }
}

int mull__raise(lua_State *L, const char *type, const char *format, ...)
{
    lua_createtable(L, 0, 3);
    lua_pushstring(L, type);
    lua_setfield(L, -2, "type");
    va_list arguments;
    va_start(arguments, format);
    lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    lua_setfield(L, -2, "message");
    mull__traceback(L, L, 0); /* 0, for a hook is no level of its own */
    lua_setfield(L, -2, "stack");
    mark(L, -1);
    return lua_error(L);
}

int mull__lua_error(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    if (raw_type(L, "type") != LUA_TSTRING)
        return luaL_error(L, "mulligan.error needs a type: mulligan.error { type = \"PgError\" }");
    size_t size;
    const char *type = lua_tolstring(L, -1, &size);
    if (size == 0 || strlen(type) != size || !mull__utf8_valid(type))
        return luaL_error(L, "mulligan.error: type must be a name in UTF-8");
    int message = raw_type(L, "message");
    if (message != LUA_TNIL && message != LUA_TSTRING)
        return luaL_error(L, "mulligan.error: message must be a string");
    if (raw_type(L, "stack") == LUA_TNIL) {
        mull__traceback(L, L, 1);
        lua_setfield(L, 1, "stack");
    }
    lua_settop(L, 1);
    mark(L, 1);
    return lua_error(L);
}
