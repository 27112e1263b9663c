/* ceiling.c: see ceiling.h. */
#include "ceiling.h"

#include "runtime/seams.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdlib.h>

/* What must be left where a limit is set: for a few handlers and the log. */
enum { ROOM = 2 * 1024 * 1024 };

/* Lua collects its garbage where an object finds no memory, and asks again, but it doesn't where a
 * buffer of its library finds none: that of string.rep, table.concat or file:read. So objects may
 * have three quarters, which keeps garbage there, and the last one is for buffers, which nothing
 * tells from the vectors of tables. */
static size_t most_of(const mull__ceiling *ceiling, int is_object)
{
    return is_object ? ceiling->most - ceiling->most / 4 : ceiling->most;
}

/* resize refuses what is above the ceiling, and Lua raises "not enough memory". */
static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__ceiling *ceiling = data;
    int is_object = !pointer && old != 0; /* Lua puts its kind there */
    old = pointer ? old : 0;
    if (wanted == 0) {
        free(pointer);
        ceiling->used -= old;
        return NULL;
    }
    size_t others = ceiling->used - old, most = most_of(ceiling, is_object);
    if (wanted > old && (wanted > most || others > most - wanted))
        return NULL;
    void *memory = realloc(pointer, wanted);
    if (!memory && wanted <= old)
        memory = pointer; /* shrinking can't fail: the old block will do */
    if (memory)
        ceiling->used = others + wanted;
    return memory;
}

void mull__ceiling_over(mull__ceiling *ceiling, lua_State *L)
{
    uint64_t most = mull__machine_memory() / 4 * 3;
    ceiling->most = most < SIZE_MAX ? (size_t)most : SIZE_MAX;
    ceiling->used = (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
    /* The state's blocks are realloc's so far, too. */
    lua_setallocf(L, resize, ceiling);
}

/* ---- What others have for the state ---------------------------------------------------------- */

static mull__ceiling *ceiling_of(lua_State *L)
{
    void *data;
    return lua_getallocf(L, &data) == resize ? data : NULL;
}

/* is_over: what is charged has the limit of objects, so that buffers have their quarter. */
static int is_over(const mull__ceiling *ceiling, size_t bytes)
{
    size_t most = most_of(ceiling, 1);
    return bytes > most || ceiling->used > most - bytes;
}

int mull__ceiling_charge(lua_State *L, size_t bytes)
{
    mull__ceiling *ceiling = ceiling_of(L);
    if (!ceiling)
        return 1;
    if (is_over(ceiling, bytes))
        lua_gc(L, LUA_GCCOLLECT);
    if (is_over(ceiling, bytes))
        return 0;
    ceiling->used += bytes;
    return 1;
}

void mull__ceiling_refund(lua_State *L, size_t bytes)
{
    mull__ceiling *ceiling = ceiling_of(L);
    if (ceiling)
        ceiling->used -= bytes;
}

/* ---- mulligan.program ------------------------------------------------------------------------ */

static int memory_limit(lua_State *L)
{
    void *data;
    lua_getallocf(L, &data);
    mull__ceiling *ceiling = data;
    lua_Integer bytes = luaL_checkinteger(L, 1);
    lua_gc(L, LUA_GCCOLLECT);
    size_t least = (ceiling->used + ROOM) / 3 * 4;
    if (bytes < 0 || (uint64_t)bytes < least) {
        luaL_pushfail(L);
        lua_pushfstring(L, "is too small: at least %dMiB is needed",
                        (int)((least + 1024 * 1024 - 1) / 1024 / 1024));
        return 2;
    }
    ceiling->most = (uint64_t)bytes < SIZE_MAX ? (size_t)bytes : SIZE_MAX;
    lua_pushboolean(L, 1);
    return 1;
}

void mull__ceiling_open(lua_State *L)
{
    lua_pushcfunction(L, memory_limit);
}
