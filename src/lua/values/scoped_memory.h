/* scoped_memory.h: what a C function has of malloc, given back when it ends, by an error too. */
#ifndef MULL__SCOPED_MEMORY_H
#define MULL__SCOPED_MEMORY_H

#include "base/arena.h"

#include <lua.h>

/* mull__scoped_userdata pushes a zeroed userdata of `size` bytes, which has to stay where it is on
 * the stack: drop(userdata) is called when the C function that calls this ends, and by the
 * collector, and has to bear being called again. `type` is the name of its metatable. */
void *mull__scoped_userdata(lua_State *L, size_t size, const char *type, lua_CFunction drop);

/* mull__collected_userdata is the same, but left to the collector. */
void *mull__collected_userdata(lua_State *L, size_t size, const char *type, lua_CFunction drop);

/* mull__reserve_call asks now for all the memory that it takes to begin a call of a function whose
 * frame has so many slots. May raise. */
void mull__reserve_call(lua_State *L, int frame);

/* mull__arena_new pushes an arena (base/arena.h) of the C library's memory, scoped. */
mull__arena *mull__arena_new(lua_State *L);

/* mull__arena_take gives zeroed memory, mull__arena_copy a copy of the bytes with a NUL behind it;
 * both raise where there is none. */
void *mull__arena_take(lua_State *L, mull__arena *arena, size_t count, size_t bytes);
char *mull__arena_copy(lua_State *L, mull__arena *arena, const char *bytes, size_t size);

#endif
