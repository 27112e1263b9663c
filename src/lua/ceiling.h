/* ceiling.h: how much memory the program's Lua state may have: a handler that takes more fails, and
 * the process goes on. */
#ifndef MULL__CEILING_H
#define MULL__CEILING_H

#include <lua.h>
#include <stddef.h>

/* mull__ceiling counts what Lua allocates, and what it is charged with. It outlives the state. */
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

/* mull__ceiling_charge takes so many bytes of malloc's for a while, as if Lua had them, where the
 * state is under a ceiling; 0: there aren't so many, even without the garbage. May raise.
 * mull__ceiling_refund gives them back. */
int mull__ceiling_charge(lua_State *L, size_t bytes);
void mull__ceiling_refund(lua_State *L, size_t bytes);

#endif
