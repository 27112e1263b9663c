/* metatable.h: metatables by name, as luaL_newmetatable makes them, but whole or not at all: that
 * one registers a table before it has any field, so that where memory ends between, the next caller
 * finds one that lacks its __gc. */
#ifndef MULL__METATABLE_H
#define MULL__METATABLE_H

#include <lauxlib.h>

/* mull__metatable_get pushes the metatable of a name and gives 1; the first time it pushes an empty
 * table and gives 0, to be filled and then kept. */
int mull__metatable_get(lua_State *L, const char *name);

/* mull__metatable_register makes the table on top, which stays there, the metatable of a name. */
void mull__metatable_register(lua_State *L, const char *name);

/* mull__type_define makes a type with these metamethods and methods, unless the state has it. It
 * pushes a table of the functions in C, which is new each time, and that of the methods, which is
 * the state's: values of the type keep what Lua's files put there, however often they are loaded.
 */
void mull__type_define(lua_State *L, const char *name, const luaL_Reg *meta,
                       const luaL_Reg *functions);

#endif
