/* memory_limit.c: see memory_limit.h. */
#include "memory_limit.h"

#include "runtime/engine.h"

#include <lauxlib.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* What must be left where a limit is set: for a few handlers and the log. */
enum { ROOM = 2 * 1024 * 1024 };

/* Lua collects its garbage where an object finds no memory, and asks again, but it doesn't where a
 * buffer of its library finds none: that of string.rep, table.concat or file:read. So objects may
 * have three quarters, which keeps garbage there, and the last one is for buffers, which nothing
 * tells from the vectors of tables. */
static size_t most_of(const mull__memory_limit *ceiling, int is_object)
{
    return is_object && !ceiling->is_apart ? ceiling->most - ceiling->most / 4 : ceiling->most;
}

/* note keeps in mind what is refused: for good, where the same isn't asked for and granted next. */
static void note(mull__memory_limit *ceiling, size_t wanted, int granted)
{
    int again = ceiling->once == wanted;
    if (ceiling->once != 0 && !(again && granted))
        ceiling->refused = 1;
    ceiling->once = granted || again ? 0 : wanted;
}

/* fits_at_all says whether handlers would have room for it if they had nothing else. */
static int fits_at_all(const mull__memory_limit *ceiling, size_t wanted, size_t most)
{
    return wanted <= most && ceiling->at_start <= most - wanted;
}

/* resize refuses what is above the ceiling, and Lua raises "not enough memory". */
static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__memory_limit *ceiling = data;
    int is_object = !pointer && old != 0; /* Lua puts its kind there */
    old = pointer ? old : 0;
    if (wanted == 0) {
        free(pointer);
        ceiling->used -= old;
        return NULL;
    }
    size_t others = ceiling->used - old, most = most_of(ceiling, is_object);
    int is_over = wanted > old && (wanted > most || others > most - wanted);
    void *memory = is_over ? NULL : realloc(pointer, wanted);
    if (!memory && wanted <= old)
        memory = pointer; /* shrinking can't fail: the old block will do */
    if (memory)
        ceiling->used = others + wanted;
    if (wanted > old && (!memory || ceiling->once != 0) && fits_at_all(ceiling, wanted, most))
        note(ceiling, wanted, memory != NULL);
    return memory;
}

void mull__memory_limit_install(mull__memory_limit *ceiling, lua_State *L)
{
    uint64_t most = mull__machine_memory() / 4 * 3;
    *ceiling = (mull__memory_limit){.most = most < SIZE_MAX ? (size_t)most : SIZE_MAX};
    ceiling->used = (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
    /* The state's blocks are realloc's so far, too. */
    lua_setallocf(L, resize, ceiling);
}

/* ---- Apart from handlers --------------------------------------------------------------------- */

static mull__memory_limit *ceiling_of(lua_State *L)
{
    void *data;
    return lua_getallocf(L, &data) == resize ? data : NULL;
}

int mull__memory_limit_exempt(lua_State *L, int is_apart)
{
    mull__memory_limit *ceiling = ceiling_of(L);
    if (!ceiling)
        return 0;
    int before = ceiling->is_apart;
    ceiling->is_apart = is_apart;
    return before;
}

/* ---- Is memory used up? ---------------------------------------------------------------------- */

void mull__memory_limit_watch(lua_State *L)
{
    mull__memory_limit *ceiling = ceiling_of(L);
    if (ceiling) {
        ceiling->refused = 0;
        ceiling->once = 0;
    }
}

int mull__memory_limit_refused(lua_State *L)
{
    const mull__memory_limit *ceiling = ceiling_of(L);
    return ceiling && (ceiling->refused || ceiling->once != 0);
}

/* collect goes twice: what a finalizer held is gone the second time. */
static void collect(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);
}

/* has_grown_over says whether more than a share, one of so many, of what there was for handlers is
 * in use. */
static int has_grown_over(const mull__memory_limit *ceiling, size_t shares)
{
    return ceiling->used > ceiling->at_start &&
           ceiling->used - ceiling->at_start > (most_of(ceiling, 1) - ceiling->at_start) / shares;
}

int mull__memory_limit_is_short(lua_State *L)
{
    const mull__memory_limit *ceiling = ceiling_of(L);
    if (!ceiling)
        return 0;
    collect(L);
    return has_grown_over(ceiling, 8);
}

int mull__memory_limit_is_free(lua_State *L)
{
    const mull__memory_limit *ceiling = ceiling_of(L);
    return !ceiling || !has_grown_over(ceiling, 2);
}

static double mib(size_t bytes)
{
    return (double)bytes / (1024 * 1024);
}

void mull__memory_limit_describe(lua_State *L, unsigned at_work, char *line, size_t size)
{
    const mull__memory_limit *ceiling = ceiling_of(L);
    char handlers[32] = "no handler";
    if (at_work > 0)
        snprintf(handlers, sizeof handlers, "%u handler(s)", at_work);
    snprintf(
        line, size,
        "memory is used up: with %s at work, Lua holds %.1f MiB that aren't garbage, and held "
        "%.1f MiB at the start; the limit is %.1f MiB, of which values may have %.1f MiB; look "
        "for what handlers keep, such as a table that grows",
        handlers, mib(ceiling->used), mib(ceiling->at_start), mib(ceiling->most),
        mib(most_of(ceiling, 1)));
}

void mull__memory_limit_lift(lua_State *L)
{
    mull__memory_limit *ceiling = ceiling_of(L);
    if (ceiling)
        ceiling->most = SIZE_MAX;
}

/* ---- Its limit ------------------------------------------------------------------------------- */

/* fits pushes true, or nil and why a limit would leave too little to work with. */
static int fits(lua_State *L, const mull__memory_limit *ceiling, uint64_t limit)
{
    size_t least = (ceiling->used + ROOM) / 3 * 4;
    if (limit >= least) {
        lua_pushboolean(L, 1);
        return 1;
    }
    luaL_pushfail(L);
    lua_pushfstring(L, "is too small: at least %dMiB is needed",
                    (int)((least + 1024 * 1024 - 1) / 1024 / 1024));
    return 2;
}

static int memory_limit(lua_State *L)
{
    mull__memory_limit *ceiling = ceiling_of(L);
    lua_Integer bytes = luaL_checkinteger(L, 1);
    uint64_t limit = bytes < 0 ? 0 : (uint64_t)bytes;
    collect(L);
    int results = fits(L, ceiling, limit);
    if (results == 1)
        ceiling->most = limit < SIZE_MAX ? (size_t)limit : SIZE_MAX;
    return results;
}

void mull__memory_limit_push(lua_State *L)
{
    lua_pushcfunction(L, memory_limit);
}

int mull__memory_limit_start(lua_State *L)
{
    mull__memory_limit *ceiling = ceiling_of(L);
    collect(L);
    ceiling->at_start = ceiling->used;
    return fits(L, ceiling, ceiling->most);
}
