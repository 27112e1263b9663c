/* snapshot.c: engine:snapshot() as a table. See engine.h. */
#include "engine.h"

#include "lua/values/values.h"

#include <lauxlib.h>

static void set_count(lua_State *L, const char *field, uint64_t count)
{
    mull__set_integer(L, field, (int64_t)count);
}

static void push_transport(lua_State *L, const mull_transport_snapshot *of)
{
    lua_createtable(L, 0, 7);
    mull__set_text(L, "name", of->name);
    mull__set_text(L, "health", mull_health_name(of->health));
    mull__set_text(L, "why", of->why);
    mull__set_integer(L, "since_ms", of->since_ms);
    set_count(L, "claimed", of->claimed);
    set_count(L, "parked", of->parked);
    set_count(L, "abandoned", of->abandoned);
}

/* set_reasons sets those that have been given. */
static void set_reasons(lua_State *L, const mull_consumer_snapshot *of)
{
    lua_newtable(L);
    for (size_t reason = 1; reason < of->reason_count; reason++)
        if (of->reasons[reason] > 0)
            set_count(L, mull_reason_name((mull_reason)reason), of->reasons[reason]);
    lua_setfield(L, -2, "reasons");
}

static void set_last_error(lua_State *L, const mull_consumer_snapshot *of)
{
    if (!of->error_type)
        return;
    lua_createtable(L, 0, 3);
    mull__set_text(L, "type", of->error_type);
    mull__set_text(L, "message", of->error_text ? of->error_text : "");
    mull__set_integer(L, "time_ms", of->error_ms);
    lua_setfield(L, -2, "last_error");
}

static void set_times(lua_State *L, const mull_consumer_snapshot *of)
{
    lua_createtable(L, MULL_TIME_BUCKETS, 0);
    for (int i = 0; i < MULL_TIME_BUCKETS; i++) {
        lua_pushinteger(L, (lua_Integer)of->times[i]);
        lua_rawseti(L, -2, i + 1);
    }
    lua_setfield(L, -2, "times");
}

/* SET_LIST sets a field to the list of all that a snapshot has of something. */
#define SET_LIST(L, of, some)                                                                      \
    do {                                                                                           \
        lua_newtable(L);                                                                           \
        for (size_t i = 0; i < (of)->some##_count; i++) {                                          \
            push_##some(L, (of)->some##s[i]);                                                      \
            lua_rawseti(L, -2, (lua_Integer)i + 1);                                                \
        }                                                                                          \
        lua_setfield(L, -2, #some "s");                                                            \
    } while (0)

static void push_limit(lua_State *L, const mull_limit_status *of)
{
    mull__push_limit(L, of);
}

static void push_consumer(lua_State *L, const mull_consumer_snapshot *of)
{
    lua_createtable(L, 0, 26);
    mull__set_text(L, "name", of->name);
    mull__set_text(L, "transport", of->transport);
    mull__set_text(L, "queue", of->queue);
    set_count(L, "concurrency", of->concurrency);
    lua_pushboolean(L, of->paused);
    lua_setfield(L, -2, "paused");
    set_count(L, "in_flight", of->in_flight);
    set_count(L, "waiting", of->waiting);
    set_count(L, "retrying", of->retrying);
    set_count(L, "settling", of->settling);
    set_count(L, "taken", of->taken);
    mull__set_text(L, "why_not", mull_why_not_name(of->why_not));
    mull__set_text(L, "why_not_text", of->why_not_text);
    mull__set_integer(L, "why_not_since_ms", of->why_not_since_ms);
    set_count(L, "done", of->done);
    set_count(L, "retried", of->retried);
    set_count(L, "redelivered", of->redelivered);
    set_count(L, "dead_lettered", of->dead_lettered);
    set_count(L, "discarded", of->discarded);
    set_reasons(L, of);
    set_last_error(L, of);
    set_times(L, of);
    SET_LIST(L, of, limit);
    set_count(L, "limited_values", of->limited_values);
}

static void push_rule(lua_State *L, const mull_rule_snapshot *of)
{
    lua_createtable(L, 0, 6);
    mull__set_text(L, "file", of->file);
    mull__set_integer(L, "line", of->line);
    set_count(L, "retried", of->retried);
    set_count(L, "redelivered", of->redelivered);
    set_count(L, "dead_lettered", of->dead_lettered);
    set_count(L, "discarded", of->discarded);
}

/* push_snapshot may raise, for want of memory. */
static int push_snapshot(lua_State *L)
{
    const mull_snapshot *of = lua_touserdata(L, 1);
    lua_createtable(L, 0, 5);
    mull__set_integer(L, "time_ms", of->time_ms);
    mull__set_text(L, "generation", of->generation);
    SET_LIST(L, of, transport);
    SET_LIST(L, of, consumer);
    SET_LIST(L, of, rule);
    return 1;
}

int mull__engine_snapshot_table(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    mull_snapshot *snapshot;
    lua_pushcfunction(L, push_snapshot);
    int status = mull_engine_snapshot(engine->engine, &snapshot);
    if (status != 0)
        return mull__fail(L, status, NULL);
    lua_pushlightuserdata(L, snapshot);
    int raised = lua_pcall(L, 1, 1, 0);
    mull_snapshot_free(snapshot);
    return raised ? lua_error(L) : 1;
}
