/* memory_limit.c: see memory_limit.h. */
#include "memory_limit.h"

#include "runtime/engine_control.h"

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
static size_t most_of(const mull__memory_limit *limit, int is_object)
{
    return is_object && !limit->is_apart ? limit->most - limit->most / 4 : limit->most;
}

/* note keeps in mind what is refused: for good, where the same isn't asked for and granted next. */
static void note(mull__memory_limit *limit, size_t wanted, int granted)
{
    int again = limit->once == wanted;
    if (limit->once != 0 && !(again && granted))
        limit->refused = 1;
    limit->once = granted || again ? 0 : wanted;
}

/* fits_at_all says whether handlers would have room for it if they had nothing else. */
static int fits_at_all(const mull__memory_limit *limit, size_t wanted, size_t most)
{
    return wanted <= most && limit->at_start <= most - wanted;
}

/* resize refuses what is above the limit, and Lua raises "not enough memory". */
static void *resize(void *data, void *pointer, size_t old, size_t wanted)
{
    mull__memory_limit *limit = data;
    int is_object = !pointer && old != 0; /* Lua puts its kind there */
    old = pointer ? old : 0;
    if (wanted == 0) {
        free(pointer);
        limit->used -= old;
        return NULL;
    }
    size_t others = limit->used - old, most = most_of(limit, is_object);
    int is_over = wanted > old && (wanted > most || others > most - wanted);
    void *memory = is_over ? NULL : realloc(pointer, wanted);
    if (!memory && wanted <= old)
        memory = pointer; /* shrinking can't fail: the old block will do */
    if (memory)
        limit->used = others + wanted;
    if (wanted > old && (!memory || limit->once != 0) && fits_at_all(limit, wanted, most))
        note(limit, wanted, memory != NULL);
    return memory;
}

void mull__memory_limit_install(mull__memory_limit *limit, lua_State *L)
{
    uint64_t most = mull__machine_memory() / 4 * 3;
    *limit = (mull__memory_limit){.most = most < SIZE_MAX ? (size_t)most : SIZE_MAX};
    limit->used = (size_t)lua_gc(L, LUA_GCCOUNT) * 1024 + (size_t)lua_gc(L, LUA_GCCOUNTB);
    /* The state's blocks are realloc's so far, too. */
    lua_setallocf(L, resize, limit);
}

/* ---- Apart from handlers --------------------------------------------------------------------- */

static mull__memory_limit *limit_of(lua_State *L)
{
    void *data;
    return lua_getallocf(L, &data) == resize ? data : NULL;
}

int mull__memory_limit_exempt(lua_State *L, int is_apart)
{
    mull__memory_limit *limit = limit_of(L);
    if (!limit)
        return 0;
    int before = limit->is_apart;
    limit->is_apart = is_apart;
    return before;
}

/* ---- Is memory used up? ---------------------------------------------------------------------- */

void mull__memory_limit_watch(lua_State *L)
{
    mull__memory_limit *limit = limit_of(L);
    if (limit) {
        limit->refused = 0;
        limit->once = 0;
    }
}

int mull__memory_limit_refused(lua_State *L)
{
    const mull__memory_limit *limit = limit_of(L);
    return limit && (limit->refused || limit->once != 0);
}

/* collect goes twice: what a finalizer held is gone the second time. */
static void collect(lua_State *L)
{
    lua_gc(L, LUA_GCCOLLECT);
    lua_gc(L, LUA_GCCOLLECT);
}

/* has_grown_over says whether more than a share, one of so many, of what there was for handlers is
 * in use. */
static int has_grown_over(const mull__memory_limit *limit, size_t shares)
{
    return limit->used > limit->at_start &&
           limit->used - limit->at_start > (most_of(limit, 1) - limit->at_start) / shares;
}

int mull__memory_limit_is_short(lua_State *L)
{
    const mull__memory_limit *limit = limit_of(L);
    if (!limit)
        return 0;
    collect(L);
    return has_grown_over(limit, 8);
}

int mull__memory_limit_is_free(lua_State *L)
{
    const mull__memory_limit *limit = limit_of(L);
    return !limit || !has_grown_over(limit, 2);
}

static double mib(size_t bytes)
{
    return (double)bytes / (1024 * 1024);
}

void mull__memory_limit_describe(lua_State *L, unsigned at_work, char *line, size_t size)
{
    const mull__memory_limit *limit = limit_of(L);
    char handlers[32] = "no handler";
    if (at_work > 0)
        snprintf(handlers, sizeof handlers, "%u handler(s)", at_work);
    snprintf(
        line, size,
        "memory is used up: with %s at work, Lua holds %.1f MiB that aren't garbage, and held "
        "%.1f MiB at the start; the limit is %.1f MiB, of which values may have %.1f MiB; look "
        "for what handlers keep, such as a table that grows",
        handlers, mib(limit->used), mib(limit->at_start), mib(limit->most), mib(most_of(limit, 1)));
}

void mull__memory_limit_lift(lua_State *L)
{
    mull__memory_limit *limit = limit_of(L);
    if (limit)
        limit->most = SIZE_MAX;
}

/* ---- Its limit ------------------------------------------------------------------------------- */

/* fits pushes true, or nil and why a limit would leave too little to work with. */
static int fits(lua_State *L, const mull__memory_limit *limit, uint64_t wanted)
{
    size_t least = (limit->used + ROOM) / 3 * 4;
    if (wanted >= least) {
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
    mull__memory_limit *limit = limit_of(L);
    lua_Integer bytes = luaL_checkinteger(L, 1);
    uint64_t wanted = bytes < 0 ? 0 : (uint64_t)bytes;
    collect(L);
    int results = fits(L, limit, wanted);
    if (results == 1)
        limit->most = wanted < SIZE_MAX ? (size_t)wanted : SIZE_MAX;
    return results;
}

void mull__memory_limit_push(lua_State *L)
{
    lua_pushcfunction(L, memory_limit);
}

int mull__memory_limit_start(lua_State *L)
{
    mull__memory_limit *limit = limit_of(L);
    collect(L);
    limit->at_start = limit->used;
    return fits(L, limit, limit->most);
}
