/* fields.h: sets fields of the table on top of the stack. May raise for want of memory. */
#ifndef MULL__FIELDS_H
#define MULL__FIELDS_H

#include <lua.h>
#include <stdint.h>

/* mull__set_text: a text that is NULL isn't set. */
static inline void mull__set_text(lua_State *L, const char *field, const char *text)
{
    if (!text)
        return;
    lua_pushstring(L, text);
    lua_setfield(L, -2, field);
}

static inline void mull__set_integer(lua_State *L, const char *field, int64_t number)
{
    lua_pushinteger(L, number);
    lua_setfield(L, -2, field);
}

static inline void mull__set_number(lua_State *L, const char *field, double number)
{
    lua_pushnumber(L, number);
    lua_setfield(L, -2, field);
}

static inline void mull__set_flag(lua_State *L, const char *field, int is)
{
    lua_pushboolean(L, is);
    lua_setfield(L, -2, field);
}

#endif
