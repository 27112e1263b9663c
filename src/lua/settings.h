/* settings.h: which settings scopes have, for Lua. */
#ifndef MULL__LUA_SETTINGS_H
#define MULL__LUA_SETTINGS_H

#include <lua.h>

/* mull__push_settings pushes the rows of policy/settings.h: { { field =, kind =, example = }, ...
 * }.
 */
void mull__push_settings(lua_State *L);

#endif
