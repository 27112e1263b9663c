/* json.h: mulligan.json, for handlers and commands.
 *
 *   decode(text)   a value; null is absent in an object, json.null in a list, nil alone. Raises a
 *                  MessageDeserializationError
 *   encode(value)  a text, keys by bytes; a table with the keys 1 ... n is a list, an empty one an
 *                  object unless json.list made it. Raises for what JSON has no word for
 *   list(table)    marks a table as a list, for when it is empty
 *   null           null
 */
#ifndef MULL__LUA_JSON_H
#define MULL__LUA_JSON_H

#include <lua.h>
#include <stddef.h>

/* mull__json_push pushes the value of a JSON text, as decode gives it; `flags` as of
 * mull__json_parse. Raises as decode does; what it takes meanwhile is given back when the C
 * function that calls this ends, so it is for one text in such a function. */
void mull__json_push(lua_State *L, const char *text, size_t size, int flags);

/* mull__open_json pushes the table of the above. */
int mull__open_json(lua_State *L);

#endif
