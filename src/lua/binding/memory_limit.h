/* memory_limit.h: how much memory the program's Lua state may have: a handler that takes more
 * fails, and the process goes on; where it isn't the handler that takes it, the process ends
 * itself. */
#ifndef MULL__MEMORY_LIMIT_H
#define MULL__MEMORY_LIMIT_H

#include <lua.h>
#include <stddef.h>

/* mull__memory_limit counts what Lua allocates. It outlives the state. */
typedef struct mull__memory_limit {
    size_t used, most; /* bytes */
    int is_apart;      /* what runs isn't a handler's: its objects may have what is for buffers */
    size_t at_start;   /* in use when the handlers began */
    size_t once;       /* the last request, if it was refused and may be made again; 0: it wasn't */
    int refused;       /* one was, for good */
} mull__memory_limit;

/* mull__memory_limit_install puts a state of luaL_newstate under a limit of three quarters of
 * what the machine, the cgroup and the process's own limits allow. The other quarter is for all
 * that isn't Lua's: claimed messages, the database's cache, what the allocator can't give back. */
void mull__memory_limit_install(mull__memory_limit *limit, lua_State *L);

/* mull__memory_limit_push pushes the function memory_limit(bytes), which moves the state's limit.
 * The function fails, with nil and why, where too little would be left to work with. */
void mull__memory_limit_push(lua_State *L);

/* mull__memory_limit_exempt says whether what runs from now on is apart from handlers, such as the
 * log, which has memory left where handlers have used up theirs. It answers what was said before.
 */
int mull__memory_limit_exempt(lua_State *L, int is_apart);

/* ---- Is memory used up? ---------------------------------------------------------------------- */

/* mull__memory_limit_start notes what is in use before handlers begin. It pushes what memory_limit
 * gives; the number of that. */
int mull__memory_limit_start(lua_State *L);

/* mull__memory_limit_watch begins to look for requests that are refused for good: where Lua
 * collects its garbage and asks again, the second time too. mull__memory_limit_refused says whether
 * one was. What is larger than all that handlers may have is none of them: it never fits, whoever
 * holds the rest. */
void mull__memory_limit_watch(lua_State *L);
int mull__memory_limit_refused(lua_State *L);

/* mull__memory_limit_is_short collects all garbage, which runs finalizers, and says whether what is
 * in use then, beyond what was at the start, is over an eighth of what there was for handlers.
 * Where the state is under no limit, it isn't. */
int mull__memory_limit_is_short(lua_State *L);

/* mull__memory_limit_is_free says, at once, whether at least half of that is free, even with all
 * the garbage that there is. */
int mull__memory_limit_is_free(lua_State *L);

/* mull__memory_limit_describe writes a line that says so, with what has grown and the limit, and
 * how many handlers are at work. */
void mull__memory_limit_describe(lua_State *L, unsigned at_work, char *line, size_t size);

/* mull__memory_limit_lift: the handlers have ended. There is no limit any more, so that it can be
 * told how it went. */
void mull__memory_limit_lift(lua_State *L);

#endif
