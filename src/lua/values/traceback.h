/* traceback.h: where on its stack a Lua state is, as a text for people. */
#ifndef MULL__TRACEBACK_H
#define MULL__TRACEBACK_H

#include <lua.h>

/* mull__traceback pushes onto L the stack of `of`, from `level` on, in the form of luaL_traceback.
 * A function has the name by which it was called: its caller's local, upvalue, global, field or
 * method. luaL_traceback looks each function up in all that package.loaded has, to show "function
 * 'string.rep'" for "method 'rep'", and that search is most of what a failure costs. May raise. */
void mull__traceback(lua_State *L, lua_State *of, int level);

#endif
