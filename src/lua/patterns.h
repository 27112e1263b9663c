/* patterns.h: string.find, match, gmatch and gsub for policies: Lua's, but what they look at counts
 * as instructions of the call's budget. */
#ifndef MULL__PATTERNS_H
#define MULL__PATTERNS_H

#include <lua.h>

int mull__string_find(lua_State *L);
int mull__string_match(lua_State *L);
int mull__string_gmatch(lua_State *L);
int mull__string_gsub(lua_State *L);

#endif
