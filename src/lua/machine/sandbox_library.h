/* sandbox_library.h: Lua's functions of strings, tables and UTF-8 for policies: what they do counts
 * as instructions of the call's budget. */
#ifndef MULL__SANDBOX_LIBRARY_H
#define MULL__SANDBOX_LIBRARY_H

#include <lua.h>

/* mull__sandbox_library_push pushes a table of tables: string, table, utf8 and _G, of functions.
 * Lua's own libraries must be open. */
void mull__sandbox_library_push(lua_State *L);

#endif
