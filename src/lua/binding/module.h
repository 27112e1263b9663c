/* module.h: the entries of the Lua module, for lua5.4 and for the program. */
#ifndef MULL__MODULE_H
#define MULL__MODULE_H

#include <lua.h>

/* luaopen_mulligan is require "mulligan". It also makes every file of lua/ that is embedded known
 * to require. */
int luaopen_mulligan(lua_State *L);

/* luaopen_mulligan_testing is require "mulligan.testing" where that comes first. */
int luaopen_mulligan_testing(lua_State *L);

/* mull__push_function pushes a function of one of our modules. Lua's own are open. */
void mull__push_function(lua_State *L, const char *module, const char *function);

#endif
