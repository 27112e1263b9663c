/* arena.h: an arena (base/arena.h) for what is read out of Lua. An error that jumps out in the
 * middle of a conversion leaks nothing. */
#ifndef MULL__ARENA_H
#define MULL__ARENA_H

#include "base/arena.h"

#include <lua.h>

/* mull__arena_new pushes an arena of the C library's memory, which is freed when the C function
 * that calls this ends, by an error too; it has to stay where it is on the stack. */
mull__arena *mull__arena_new(lua_State *L);

/* mull__arena_take gives zeroed memory, mull__arena_copy a copy of the bytes with a NUL behind it;
 * both raise where there is none. */
void *mull__arena_take(lua_State *L, mull__arena *arena, size_t count, size_t bytes);
char *mull__arena_copy(lua_State *L, mull__arena *arena, const char *bytes, size_t size);

#endif
