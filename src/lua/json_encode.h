/* json_encode.h: Lua values as JSON text; the other half of json.h. */
#ifndef MULL__JSON_ENCODE_H
#define MULL__JSON_ENCODE_H

#include <lua.h>

/* Deeper values are refused in both directions: in one a table within itself, in the other what
 * would overrun the C stack. */
enum { MULL__JSON_LEVELS = 128 };

/* mull__json_encode is json.encode. */
int mull__json_encode(lua_State *L);

/* mull__json_mark_list marks the table on top as a list. */
void mull__json_mark_list(lua_State *L);

#endif
