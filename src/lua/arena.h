/* arena.h: memory for what is read out of Lua. An error that jumps out in the middle of a
 * conversion leaks nothing. */
#ifndef MULL__ARENA_H
#define MULL__ARENA_H

#include <lua.h>
#include <stddef.h>

typedef struct mull__arena mull__arena;

/* mull__arena_new pushes an arena, which is dropped when the C function that calls this ends, by an
 * error too; it has to stay where it is on the stack. */
mull__arena *mull__arena_new(lua_State *L);

/* mull__arena_take gives zeroed memory; raises where there is none. */
void *mull__arena_take(lua_State *L, mull__arena *arena, size_t count, size_t bytes);

/* mull__arena_copy gives a copy of the bytes with a NUL behind it. */
char *mull__arena_copy(lua_State *L, mull__arena *arena, const char *bytes, size_t size);

/* mull__arena_drop frees all of it at once, before the function ends. */
void mull__arena_drop(mull__arena *arena);

#endif
