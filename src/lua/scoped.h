/* scoped.h: what a C function has of malloc, given back when it ends, by an error too. */
#ifndef MULL__SCOPED_H
#define MULL__SCOPED_H

#include <lua.h>
#include <stddef.h>

/* mull__scoped_new pushes a zeroed userdata of `size` bytes, which has to stay where it is on the
 * stack: drop(userdata) is called when the C function that calls this ends, and by the collector,
 * and has to bear being called again. `type` is the name of its metatable. */
void *mull__scoped_new(lua_State *L, size_t size, const char *type, lua_CFunction drop);

/* mull__kept_new is the same, but left to the collector. */
void *mull__kept_new(lua_State *L, size_t size, const char *type, lua_CFunction drop);

#endif
