/* engine.c: the methods of an engine; see docs/lua-module.md. */
#include "engine.h"

#include "lua/values/metatable.h"
#include "lua/values/values.h"
#include "memory_limit.h"
#include "runtime/engine_control.h"
#include "runtime/stall_watchdog.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

static const char type_name[] = "mulligan.engine";

/* ---- Callbacks of the library ---------------------------------------------------------------- */

static void on_problem(const char *file, int line, const char *text, void *data)
{
    mull__lua_engine *engine = data;
    mull__diagnostic_keep(file, line, text, &engine->problems);
}

static int is_muted(const mull__lua_engine *engine, const mull_event *event)
{
    return engine->muted_kinds >> event->kind & 1 ||
           (event->kind == MULL_EVENT_DECIDED &&
            engine->muted_actions >> event->verdict->action & 1);
}

static void on_event(const mull_event *event, void *data)
{
    mull__lua_engine *engine = data;
    if (!is_muted(engine, event))
        mull__callback_event(engine->host, engine, event);
}

static uint32_t bit_of(lua_State *L, const char *name, int bit)
{
    uint32_t is_key = lua_getfield(L, 2, name) != LUA_TNIL;
    lua_pop(L, 1);
    return is_key << bit;
}

int mull__engine_mute(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    luaL_checktype(L, 2, LUA_TTABLE);
    engine->muted_kinds = engine->muted_actions = 0;
    for (int kind = 0; kind < MULL_EVENT_LAST; kind++)
        engine->muted_kinds |= bit_of(L, mull_event_name((mull_event_kind)kind), kind);
    for (int action = MULL_RETRY; action <= MULL_DISCARD; action++)
        engine->muted_actions |= bit_of(L, mull_action_name((mull_action)action), action);
    return 0;
}

static void on_stopped(void *data)
{
    mull__lua_engine *engine = data;
    engine->stopped = 1;
}

/* ---- Life ------------------------------------------------------------------------------------ */

static void drop_policy(mull__lua_engine *engine)
{
    if (engine->policy)
        mull__policy_drop(engine->policy);
    engine->policy = NULL;
}

static void drop(mull__lua_engine *engine)
{
    if (--engine->users > 0)
        return;
    for (mull__lua_consumer *consumer = engine->consumers, *next; consumer; consumer = next) {
        next = consumer->next;
        free(consumer);
    }
    mull__diagnostics_drop(&engine->problems);
    mull__diagnostics_drop(&engine->lines);
    pthread_mutex_destroy(&engine->lines_lock);
    drop_policy(engine);
    free(engine);
}

static void on_closed(void *data)
{
    mull__lua_engine *engine = data;
    engine->engine = NULL;
    mull__fetcher_drop(engine);
    mull__log_deliver_lines(engine);
    drop_policy(engine); /* it may be closed now, even if this value is still around */
    drop(engine);
}

/* close_now asks the engine to close, once. Inside of one of its callbacks it closes later. */
static void close_now(mull__lua_engine *engine)
{
    if (engine->engine && !engine->closing) {
        engine->closing = 1;
        mull_engine_close(engine->engine, on_closed, engine);
    }
}

/* is_over: it is closed, or will be once its callbacks are through. */
static int is_over(const mull__lua_engine *engine)
{
    return !engine || !engine->engine || engine->closing;
}

mull__lua_engine *mull__engine_at(lua_State *L, int index)
{
    mull__lua_engine **slot = luaL_checkudata(L, index, type_name);
    if (is_over(*slot))
        luaL_error(L, "the engine is closed");
    mull__log_set_thread(*slot);
    return *slot;
}

static int close_engine(lua_State *L)
{
    mull__lua_engine **slot = luaL_checkudata(L, 1, type_name);
    if (*slot) {
        mull__log_set_thread(*slot);
        close_now(*slot);
    }
    return 0;
}

static int own_again(lua_State *L)
{
    mull__register_owner(L, 1, lua_touserdata(L, 2));
    return 0;
}

static int collect(lua_State *L)
{
    mull__lua_engine **slot = luaL_checkudata(L, 1, type_name);
    mull__lua_engine *engine = *slot;
    if (!engine)
        return 0;
    *slot = NULL;
    /* The collector took it out of the owners, where handlers that are cancelled look it up. They
     * end without it where there is no memory to put it back. */
    lua_pushcfunction(L, own_again);
    lua_pushvalue(L, 1);
    lua_pushlightuserdata(L, engine);
    if (lua_pcall(L, 2, 0, 0) != LUA_OK)
        lua_pop(L, 1);
    mull__log_set_thread(engine);
    close_now(engine);
    mull__unregister_owner(L, engine);
    drop(engine);
    return 0;
}

static void push_anchors(lua_State *L, int options)
{
    static const char *const kept[] = {"log", "event", "policy", "clock"};
    lua_newtable(L);
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        lua_getfield(L, options, kept[i]);
        lua_setfield(L, -2, kept[i]);
    }
}

/* push_engine pushes an engine that isn't made yet. It doesn't use its policy yet, which nobody
 * could close after an error. */
static mull__lua_engine *push_engine(lua_State *L, int options)
{
    mull__callbacks *host = mull__callbacks_of(L);
    mull__lua_engine **slot = lua_newuserdatauv(L, sizeof(mull__lua_engine *), 1);
    *slot = NULL;
    luaL_setmetatable(L, type_name);
    push_anchors(L, options);
    lua_setiuservalue(L, -2, 1);
    mull__lua_engine *engine = calloc(1, sizeof *engine);
    if (!engine) {
        luaL_error(L, "not enough memory");
        return NULL;
    }
    engine->host = host;
    engine->users = 1;
    pthread_mutex_init(&engine->lines_lock, NULL);
    *slot = engine;
    mull__register_owner(L, -1, engine);
    mull__log_set_thread(engine);
    return engine;
}

int mull__flag_field(lua_State *L, int index, const char *field)
{
    lua_getfield(L, index, field);
    int flag = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return flag;
}

int64_t mull__integer_field(lua_State *L, int index, const char *field)
{
    lua_getfield(L, index, field);
    int64_t number = luaL_optinteger(L, -1, 0);
    lua_pop(L, 1);
    return number;
}

int mull__lua_engine_new(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    mull__lua_engine *engine = push_engine(L, 1);
    int made = lua_gettop(L);
    lua_getfield(L, 1, "policy");
    int policy = lua_gettop(L);
    mull__policy_at(L, policy);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.grace_ms = mull__integer_field(L, 1, "grace_ms");
    options.quiet_ms = mull__integer_field(L, 1, "quiet_ms");
    options.seed = (uint64_t)mull__integer_field(L, 1, "seed");
    options.stop_on_signals = mull__flag_field(L, 1, "stop_on_signals");
    options.reload_on_sighup = mull__flag_field(L, 1, "reload_on_sighup");
    options.reload_on_change = mull__flag_field(L, 1, "reload_on_change");
    options.log = mull__log_queue_line;
    if (lua_getfield(L, 1, "event") == LUA_TFUNCTION)
        options.event = on_event;
    options.problem = on_problem;
    options.stopped = on_stopped;
    options.data = engine;
    mull_clock clock;
    if (lua_getfield(L, 1, "clock") != LUA_TNIL) {
        mull__test_clock_use(L, lua_gettop(L), made, &clock);
        options.clock = &clock;
    }
    engine->real_clock = !options.clock;
    engine->counts_patterns = mull__flag_field(L, 1, "count_patterns");
    if (engine->counts_patterns)
        mull__meter_patterns(L);
    engine->policy = mull__policy_at(L, policy); /* a finalizer may have closed it */
    engine->policy->users++;
    options.policy = engine->policy->policy;
    int status = mull_engine_new(&engine->engine, &options);
    if (status != 0) {
        int results = mull__diagnostics_fail(L, &engine->problems, status);
        drop_policy(engine);
        return results;
    }
    engine->users++;
    lua_settop(L, made);
    return 1;
}

/* ---- Transports and consumers ---------------------------------------------------------------- */

int mull__engine_answer(lua_State *L, mull__lua_engine *engine, int status)
{
    mull__log_deliver_lines(engine);
    if (status != 0)
        return mull__diagnostics_fail(L, &engine->problems, status);
    mull__diagnostics_drop(&engine->problems);
    lua_pushboolean(L, 1);
    return 1;
}

static int transport(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the transport's name");
    size_t size;
    const char *url = luaL_checklstring(L, 3, &size);
    luaL_argcheck(L, strlen(url) == size, 3, "a URL has no NUL");
    return mull__engine_answer(L, engine, mull_engine_transport(engine->engine, name, url));
}

int64_t mull__bounded_field(lua_State *L, int index, const char *field, int64_t most)
{
    int64_t number = mull__integer_field(L, index, field);
    if (number < 0 || number > most)
        luaL_error(L, "%s is out of range", field);
    return number;
}

/* ---- Running --------------------------------------------------------------------------------- */

static int start(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    return mull__engine_answer(L, engine, mull_engine_start(engine->engine));
}

static int run(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    if (engine->real_clock)
        mull__log_poll_lines(engine);
    mull__watchdog_heartbeat(engine->host->watchdog);
    int status = mull_engine_run(engine->engine);
    if (engine->is_main)
        mull__memory_limit_lift(L);
    return mull__engine_answer(L, engine, status);
}

int mull__engine_make_main(lua_State *L)
{
    mull__engine_at(L, 1)->is_main = 1;
    return mull__memory_limit_start(L);
}

/* status() is true, or nil and why the engine stops by itself. */
static int engine_status(lua_State *L)
{
    int status = mull_engine_status(mull__engine_at(L, 1)->engine);
    if (status != 0)
        return mull__fail(L, status, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

static int turn(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    if (engine->real_clock)
        return luaL_error(L, "turn needs a test's clock; run goes by the real ones");
    int64_t next = mull_engine_turn(engine->engine);
    mull__log_deliver_lines(engine);
    if (next == INT64_MAX)
        luaL_pushfail(L);
    else
        lua_pushinteger(L, next);
    return 1;
}

static int stop(lua_State *L)
{
    mull_stop(mull__engine_at(L, 1)->engine);
    return 0;
}

static int stop_when_empty(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    return mull__engine_answer(L, engine, mull_stop_when_empty(engine->engine));
}

/* stopped() says whether the engine has stopped; a closed one has. */
static int stopped(lua_State *L)
{
    mull__lua_engine **slot = luaL_checkudata(L, 1, type_name);
    lua_pushboolean(L, !*slot || !(*slot)->engine || (*slot)->stopped);
    return 1;
}

/* emptied() says whether it stopped since its queues were empty, as stop_when_empty asks: true;
 * "quiet" where that is known by a quiet time alone. */
static int emptied(lua_State *L)
{
    const mull_engine *engine = mull__engine_at(L, 1)->engine;
    if (mull__engine_quiet(engine))
        lua_pushliteral(L, "quiet");
    else
        lua_pushboolean(L, mull__engine_emptied(engine));
    return 1;
}

static int is_closed(lua_State *L)
{
    mull__lua_engine *const *slot = luaL_checkudata(L, 1, type_name);
    lua_pushboolean(L, is_over(*slot));
    return 1;
}

static int show(lua_State *L)
{
    mull__lua_engine *const *slot = luaL_checkudata(L, 1, type_name);
    const char *state = "running";
    if (is_over(*slot))
        state = "closed";
    else if ((*slot)->stopped)
        state = "stopped";
    else if (!mull__engine_started((*slot)->engine))
        state = "not started";
    lua_pushfstring(L, "%s: %s", type_name, state);
    return 1;
}

static int counts(lua_State *L)
{
    mull_counts now = MULL_INIT(mull_counts);
    mull_engine_counts(mull__engine_at(L, 1)->engine, &now);
    lua_createtable(L, 0, 6);
    mull__set_integer(L, "done", (int64_t)now.done);
    mull__set_integer(L, "retried", (int64_t)now.retried);
    mull__set_integer(L, "redelivered", (int64_t)now.redelivered);
    mull__set_integer(L, "dead_lettered", (int64_t)now.dead_lettered);
    mull__set_integer(L, "discarded", (int64_t)now.discarded);
    mull__set_integer(L, "notify_failed", (int64_t)now.notify_failed);
    return 1;
}

static int fault(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = luaL_checkstring(L, 2), *operation = luaL_checkstring(L, 3);
    luaL_checktype(L, 4, LUA_TTABLE);
    uint32_t skip = (uint32_t)mull__bounded_field(L, 4, "skip", UINT32_MAX);
    uint32_t times = (uint32_t)mull__bounded_field(L, 4, "times", UINT32_MAX);
    lua_getfield(L, 4, "code");
    const char *word = luaL_optstring(L, -1, "io");
    int code = mull__code_named(word);
    if (code == 0)
        return luaL_error(L, "code must be one of MULL_ERRORS, such as \"io\", not \"%s\"", word);
    if (mull__engine_fault(engine->engine, name, operation, skip, times, code) != 0)
        return luaL_error(L, "no transport \"%s\", or no operation \"%s\"", name, operation);
    return 0;
}

void mull__open_engine(lua_State *L)
{
    static const luaL_Reg methods[] = {{"transport", transport},
                                       {"consumer", mull__engine_consumer},
                                       {"remove_consumer", mull__engine_remove},
                                       {"pause", mull__engine_pause},
                                       {"resume", mull__engine_resume},
                                       {"concurrency", mull__engine_concurrency},
                                       {"why_not", mull__engine_why_not},
                                       {"start", start},
                                       {"run", run},
                                       {"status", engine_status},
                                       {"turn", turn},
                                       {"publish", mull__engine_publish},
                                       {"depth", mull__engine_depth},
                                       {"after", mull__engine_later},
                                       {"counts", counts},
                                       {"snapshot", mull__engine_snapshot_table},
                                       {"stop", stop},
                                       {"stop_when_empty", stop_when_empty},
                                       {"stopped", stopped},
                                       {"emptied", emptied},
                                       {"closed", is_closed},
                                       {"fault", fault},
                                       {"close", close_engine},
                                       {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", collect}, {"__close", close_engine}, {"__tostring", show}, {NULL, NULL}};
    mull__type_define(L, type_name, meta, methods);
}
