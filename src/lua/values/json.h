/* json.h: reads JSON into Lua values; lua/mulligan/json.lua writes it.
 *
 *   decode(text)   a value; null is absent in an object, json.null in a list, nil alone. Raises a
 *                  MessageDeserializationError
 *   list(table)    marks a table as a list, for when it is empty
 *   null           null
 */
#ifndef MULL__LUA_JSON_H
#define MULL__LUA_JSON_H

#include <lua.h>
#include <stddef.h>

/* mull__json_push pushes the value of a JSON text, behind which a NUL stands, as decode gives it;
 * of at most so many values, those in it included. `unique`: an object with a name twice is
 * refused; else the last one counts. Raises as decode does. */
void mull__json_push(lua_State *L, const char *text, size_t size, size_t most, int unique);

/* mull__json_mark_list marks the table on top as a list. */
void mull__json_mark_list(lua_State *L);

/* mull__open_json pushes the table of the above. */
int mull__open_json(lua_State *L);

#endif
