/* test_clock.c: a test's clock, which stands still until it is told to move. Its methods beyond
 * these are in lua/mulligan/testing.lua. See engine.h. */
#include "engine.h"

#include "base/clock.h"
#include "lua/values/metatable.h"

#include <lauxlib.h>

static const char type_name[] = "mulligan.clock";

typedef struct test_clock {
    atomic_int_least64_t now_ms, wall_ms; /* read on any of an engine's threads */
} test_clock;

static int64_t read_now(void *data)
{
    return atomic_load(&((test_clock *)data)->now_ms);
}

static int64_t read_wall(void *data)
{
    return atomic_load(&((test_clock *)data)->wall_ms);
}

static test_clock *clock_at(lua_State *L, int index)
{
    return luaL_checkudata(L, index, type_name);
}

void mull__test_clock_use(lua_State *L, int index, int engine, mull_clock *clock)
{
    test_clock *given = clock_at(L, index);
    *clock = (mull_clock){.monotonic_ms = read_now, .wall_ms = read_wall, .data = given};
    engine = lua_absindex(L, engine);
    lua_getiuservalue(L, index, 1);
    lua_pushvalue(L, engine);
    lua_rawseti(L, -2, (lua_Integer)lua_rawlen(L, -2) + 1);
    lua_pop(L, 1);
}

int mull__test_clock_new(lua_State *L)
{
    lua_Integer wall_ms = luaL_checkinteger(L, 1);
    test_clock *made = lua_newuserdatauv(L, sizeof *made, 1);
    atomic_init(&made->now_ms, 0);
    atomic_init(&made->wall_ms, wall_ms);
    luaL_setmetatable(L, type_name);
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    return 1;
}

static int now(lua_State *L)
{
    lua_pushinteger(L, read_now(clock_at(L, 1)));
    return 1;
}

static int wall(lua_State *L)
{
    lua_pushinteger(L, read_wall(clock_at(L, 1)));
    return 1;
}

/* move(now_ms, wall_ms) moves both by what is given; the first never back. */
static int move(lua_State *L)
{
    test_clock *given = clock_at(L, 1);
    lua_Integer now_ms = luaL_checkinteger(L, 2), wall_ms = luaL_checkinteger(L, 3);
    luaL_argcheck(L, now_ms >= 0, 2, "this clock never goes back");
    atomic_fetch_add(&given->now_ms, now_ms);
    atomic_fetch_add(&given->wall_ms, wall_ms);
    return 0;
}

/* engines() is the list of engines on this clock, closed ones too. */
static int engines(lua_State *L)
{
    clock_at(L, 1);
    lua_getiuservalue(L, 1, 1);
    return 1;
}

static int show(lua_State *L)
{
    const test_clock *given = clock_at(L, 1);
    char moment[MULL__TIMESTAMP_SIZE];
    mull__timestamp_write(atomic_load(&given->wall_ms), moment);
    lua_pushfstring(L, "%s: %I ms, %s", type_name, (LUAI_UACINT)atomic_load(&given->now_ms),
                    moment);
    return 1;
}

void mull__test_clock_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"now", now}, {"wall", wall}, {"move", move}, {"engines", engines}, {NULL, NULL}};
    static const luaL_Reg meta[] = {{"__tostring", show}, {NULL, NULL}};
    mull__type_define(L, type_name, meta, methods);
}
