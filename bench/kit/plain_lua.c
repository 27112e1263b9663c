#include "kit/plain_lua.h"

#include "kit/measure.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdlib.h>

enum { BATCHES = 201, BATCH = 100 };

/* Where the state's stack has what the file gives; the functions are called from the top. */
enum { STEADY = 1, JITTERED, LOOP };

struct bench_plain_lua {
    lua_State *L;
};

/* run leaves the two policies and the loop on the stack. */
static int run(lua_State *L, const char *path)
{
    if (luaL_dofile(L, path))
        return -1;
    for (int quarters = 0; quarters < 2; quarters++) {
        lua_getfield(L, 1, "policy");
        lua_pushnumber(L, quarters * 0.25);
        if (lua_pcall(L, 1, 1, 0))
            return -1;
    }
    lua_getfield(L, 1, "loop");
    lua_remove(L, 1);
    return 0;
}

bench_plain_lua *bench_plain_lua_open(const char *path)
{
    bench_plain_lua *plain = malloc(sizeof *plain);
    lua_State *L = plain ? luaL_newstate() : NULL;
    if (!L) {
        free(plain);
        return NULL;
    }
    plain->L = L;
    luaL_openlibs(L);
    if (run(L, path) == 0)
        return plain;
    bench_plain_lua_close(plain);
    return NULL;
}

void bench_plain_lua_close(bench_plain_lua *plain)
{
    if (plain)
        lua_close(plain->L);
    free(plain);
}

static void set_string(lua_State *L, const char *name, const char *value)
{
    lua_pushstring(L, value);
    lua_setfield(L, -2, name);
}

static void set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

/* push_failure makes the tables that the function looks into, with no more in them than it needs.
 */
static void push_failure(lua_State *L, const mull_failure *f)
{
    lua_createtable(L, 0, 5);
    lua_createtable(L, 0, 2);
    set_string(L, "type", f->error->type);
    set_string(L, "message", f->error->message);
    lua_setfield(L, -2, "error");
    if (f->consumer)
        set_string(L, "consumer", f->consumer);
    if (f->transport)
        set_string(L, "transport", f->transport);
    set_integer(L, "attempt", f->attempt);
    set_integer(L, "redeliveries", f->redeliveries);
}

/* ask leaves an action and a delay on the stack. */
static int ask(lua_State *L, int function, const mull_failure *failure)
{
    lua_pushvalue(L, function);
    push_failure(L, failure);
    return lua_pcall(L, 1, 2, 0);
}

int bench_plain_lua_decide(bench_plain_lua *plain, const mull_failure *failure, const char **action,
                           int64_t *delay_ms)
{
    lua_State *L = plain->L;
    lua_settop(L, LOOP);
    if (ask(L, STEADY, failure))
        return -1;
    *action = lua_tostring(L, -2);
    *delay_ms = (int64_t)lua_tonumber(L, -1);
    return *action ? 0 : -1;
}

/* ask_often is as embedders do it: one failure at a time. */
static int ask_often(lua_State *L, const mull_failure *failure)
{
    double sum = 0;
    for (int i = 0; i < BATCH; i++) {
        if (ask(L, JITTERED, failure))
            return -1;
        sum += lua_tonumber(L, -1);
        lua_settop(L, LOOP);
    }
    return sum > 0 ? 0 : -1;
}

static int loop_in_lua(lua_State *L, const mull_failure *failure)
{
    lua_pushvalue(L, LOOP);
    lua_pushvalue(L, JITTERED);
    push_failure(L, failure);
    lua_pushinteger(L, BATCH);
    int status = lua_pcall(L, 3, 1, 0);
    lua_settop(L, LOOP);
    return status;
}

static double median_ns(lua_State *L, int (*work)(lua_State *L, const mull_failure *failure),
                        const mull_failure *failure)
{
    double took[BATCHES];
    lua_settop(L, LOOP);
    for (int i = 0; i < BATCHES; i++) {
        double from = bench_clock_ns(CLOCK_MONOTONIC);
        if (work(L, failure) != 0)
            return -1;
        took[i] = (bench_clock_ns(CLOCK_MONOTONIC) - from) / BATCH;
    }
    return bench_median(took, BATCHES);
}

double bench_plain_lua_call_ns(bench_plain_lua *plain, const mull_failure *failure)
{
    return median_ns(plain->L, ask_often, failure);
}

double bench_plain_lua_loop_ns(bench_plain_lua *plain, const mull_failure *failure)
{
    return median_ns(plain->L, loop_in_lua, failure);
}
