/* ceiling.h: how much memory the program's Lua state may have: a handler that takes more fails, and
 * the process goes on. */
#ifndef MULL__CEILING_H
#define MULL__CEILING_H

#include <lua.h>
#include <stddef.h>

/* mull__ceiling counts what Lua allocates, and nothing else. It outlives the state. */
typedef struct mull__ceiling {
    size_t used, most; /* bytes */
} mull__ceiling;

/* mull__ceiling_over puts a state of luaL_newstate under a ceiling of three quarters of what the
 * machine, the cgroup and the process's own limits allow. The other quarter is for all that isn't
 * Lua's: claimed messages, the database's cache, what the allocator can't give back. */
void mull__ceiling_over(mull__ceiling *ceiling, lua_State *L);

/* mull__ceiling_open pushes the function memory_limit(bytes), which moves the state's ceiling. The
 * function fails, with nil and why, where too little would be left to work with. */
void mull__ceiling_open(lua_State *L);

#endif
