/* workers.c: worker processes (handler/workers.h) as handlers of an engine's consumers. See
 * engine.h.
 */
#include "engine.h"

#include "base/alloc.h"
#include "handler/workers.h"
#include "runtime/calls.h"
#include "runtime/engine_control.h"

#include <lauxlib.h>

/* pool is there until the engine has let go of it. */
typedef struct pool {
    mull__companion companion;
    mull__lua_engine *owner;
    mull_engine *engine;
    mull__workers *workers;
} pool;

static mull_allocator usual_allocator(void)
{
    return mull__allocator_or_default((mull_allocator){NULL, NULL});
}

/* ---- What the workers tell ------------------------------------------------------------------- */

static void on_room(void *data, const char *consumer, uint32_t room)
{
    const pool *p = data;
    mull__consumer_room(p->engine, consumer, room);
}

static void on_crashed(void *data, mull_call call, const mull_error *error)
{
    const pool *p = data;
    mull__done_crashed(p->engine, call, error);
}

static void on_no_memory(void *data, mull_call call)
{
    const pool *p = data;
    mull__done_out_of_memory(p->engine, call);
}

static void on_working(void *data, int change)
{
    const pool *p = data;
    mull__engine_working(p->engine, change);
}

static void on_log(void *data, mull_level level, const char *text)
{
    const pool *p = data;
    mull__log_queue_line(level, text, p->owner);
}

static void on_generation(void *data, char out[33])
{
    const pool *p = data;
    mull_policy_generation(p->owner->policy->policy, out);
}

static void on_closed(void *data)
{
    pool *p = data;
    const mull_allocator allocator = usual_allocator();
    mull__companion_gone(p->engine, &p->companion);
    mull__free(&allocator, p);
}

static const mull__workers_calls calls = {on_room, on_crashed,    on_no_memory, on_working,
                                          on_log,  on_generation, on_closed};

/* ---- Methods --------------------------------------------------------------------------------- */

static void start(void *data)
{
    const pool *p = data;
    mull__workers_start(p->workers);
}

static void stop(void *data, int64_t grace_ms)
{
    const pool *p = data;
    mull__workers_stop(p->workers, grace_ms);
}

static void close_pool(void *data)
{
    const pool *p = data;
    mull__workers_close(p->workers);
}

static int open_pool(lua_State *L, pool *p)
{
    mull__arena *arena = mull__arena_new(L);
    const mull__workers_options options = {.loop = mull__engine_loop(p->engine),
                                           .allocator = usual_allocator(),
                                           .engine = p->engine,
                                           .words = mull__read_texts(L, 2, arena),
                                           .processes = (uint32_t)lua_tointeger(L, 3),
                                           .calls = &calls,
                                           .data = p};
    int status = mull__workers_open(&p->workers, &options);
    mull__arena_free(arena);
    return status;
}

int mull__engine_workers(lua_State *L)
{
    mull__lua_engine *owner = mull__engine_at(L, 1);
    const mull_allocator allocator = usual_allocator();
    lua_settop(L, 3);
    for (lua_Integer i = luaL_len(L, 2); i > 0; i--) {
        lua_rawgeti(L, 2, i);
        luaL_checkstring(L, -1); /* from here on nothing raises but for want of memory */
        lua_pop(L, 1);
    }
    luaL_checkinteger(L, 3);
    pool *p = mull__zalloc(&allocator, 1, sizeof *p);
    if (!p)
        return luaL_error(L, "not enough memory");
    *p = (pool){.owner = owner, .engine = owner->engine};
    p->companion = (mull__companion){.start = start, .stop = stop, .close = close_pool, .data = p};
    if (open_pool(L, p) != 0) {
        mull__free(&allocator, p);
        return luaL_error(L, "not enough memory");
    }
    mull__companion_add(p->engine, &p->companion);
    lua_pushlightuserdata(L, p);
    return 1;
}

/* ---- A consumer of theirs -------------------------------------------------------------------- */

static void on_cancel(mull_engine *engine, mull_call call, void *data)
{
    mull__workers_cancel(data, call, mull__call_why_cancelled(engine, call));
}

int mull__engine_use_workers(lua_State *L, int index, mull__lua_consumer *consumer,
                             mull_consumer_options *options)
{
    enum { USUAL_BODY = MULL__BODY_MAX };
    const pool *p = lua_touserdata(L, index);
    size_t body = options->max_body ? options->max_body : USUAL_BODY;
    consumer->workers =
        mull__workers_consumer(p->workers, consumer->name, consumer->timeout_ms, body);
    if (!consumer->workers)
        return MULL_ENOMEM;
    options->handler = mull__workers_handle;
    options->cancel = on_cancel;
    options->data = consumer->workers;
    return 0;
}
