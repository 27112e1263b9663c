/* module.h: the entries of the Lua module, for lua5.4 and for the program. */
#ifndef MULL__MODULE_H
#define MULL__MODULE_H

#include <lua.h>

/* luaopen_mulligan is require "mulligan". It also makes every file of lua/ that is embedded known
 * to require. */
int luaopen_mulligan(lua_State *L);

/* luaopen_mulligan_testing is require "mulligan.testing" where that comes first. */
int luaopen_mulligan_testing(lua_State *L);

#endif
