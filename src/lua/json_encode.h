/* json_encode.h: Lua values as JSON text; the other half of json.h. */
#ifndef MULL__JSON_ENCODE_H
#define MULL__JSON_ENCODE_H

#include <lua.h>
#include <stddef.h>

/* Deeper values are refused in both directions: in one a table within itself, in the other what
 * would overrun the C stack. */
enum { MULL__JSON_LEVELS = 128 };

/* mull__json_text is a JSON text that grows. mull__json_text_new pushes one, whose memory the
 * collector knows; `add` adds bytes as they are, `add_value` the Lua value at an absolute index;
 * mull__json_text_push pushes all of it as a string, and lets go of the memory. All raise. */
typedef struct mull__json_text {
    char *bytes;
    size_t size, room;
} mull__json_text;

mull__json_text *mull__json_text_new(lua_State *L);
void mull__json_add(lua_State *L, mull__json_text *out, const char *bytes, size_t size);
void mull__json_add_value(lua_State *L, mull__json_text *out, int index);
void mull__json_text_push(lua_State *L, mull__json_text *out);

/* mull__json_encode is json.encode. */
int mull__json_encode(lua_State *L);

/* mull__json_mark_list marks the table on top as a list. */
void mull__json_mark_list(lua_State *L);

#endif
