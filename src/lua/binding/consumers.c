/* consumers.c: engine:consumer, and what is done to consumers while an engine runs. See engine.h.
 */
#include "engine.h"

#include "handler/workers.h"
#include "lua/values/values.h"
#include "runtime/engine_control.h"

#include <lauxlib.h>
#include <stdlib.h>
#include <string.h>

/* ---- Adding ---------------------------------------------------------------------------------- */

static const char *name_field(lua_State *L, int index, const char *field)
{
    lua_getfield(L, index, field); /* stays on the stack, which keeps it alive */
    return mull__read_name(L, -1, field);
}

/* forget drops a consumer that its engine doesn't know, with its handler. Raises nothing. */
static void forget(lua_State *L, mull__lua_consumer *consumer)
{
    mull__lua_consumer **at = &consumer->engine->consumers;
    while (*at != consumer)
        at = &(*at)->next;
    *at = consumer->next;
    if (consumer->workers)
        mull__workers_remove(consumer->workers);
    if (lua_checkstack(L, 4) && mull__push_references(L, consumer->engine)) {
        lua_pushnil(L); /* the key is there, so this allocates nothing */
        lua_rawsetp(L, -2, consumer);
        lua_pop(L, 1);
    }
    free(consumer);
}

static mull__lua_consumer *remember(lua_State *L, mull__lua_engine *engine, const char *name,
                                    int handler)
{
    mull__lua_consumer *consumer = calloc(1, sizeof *consumer + strlen(name) + 1);
    if (!consumer) {
        luaL_error(L, "not enough memory");
        return NULL;
    }
    strcpy(consumer->name, name);
    consumer->next = engine->consumers;
    consumer->engine = engine;
    lua_pushvalue(L, handler);
    mull__note_handler_position(L, consumer);
    engine->consumers = consumer;
    mull__push_references(L, engine);
    lua_pushvalue(L, handler);
    lua_rawsetp(L, -2, consumer);
    lua_pop(L, 1);
    return consumer;
}

/* writes_nservicebus: options.lua has seen to it that the word is one of them. */
static int writes_nservicebus(lua_State *L, int table)
{
    lua_getfield(L, table, "fault_headers");
    const char *word = lua_tostring(L, -1);
    lua_pop(L, 1);
    return word && strcmp(word, "nservicebus") == 0;
}

/* types_field reads the list in `types`; options.lua has seen to it that it is one. What it gives
 * stays on the stack. */
static const char *const *types_field(lua_State *L, int table, size_t *count)
{
    lua_getfield(L, table, "types");
    *count = lua_istable(L, -1) ? (size_t)lua_rawlen(L, -1) : 0;
    if (!lua_istable(L, -1))
        return NULL;
    const char **types = lua_newuserdatauv(L, (*count + 1) * sizeof *types, 0);
    for (size_t i = 0; i < *count; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        types[i] = lua_tostring(L, -1); /* the list keeps it alive */
        lua_pop(L, 1);
    }
    return types;
}

int mull__engine_consumer(lua_State *L)
{
    enum { DEFAULT_TIMEOUT_MS = 30000 };
    mull__lua_engine *engine = mull__engine_at(L, 1);
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = mull__read_name(L, 2, "the consumer's name");
    options.transport = name_field(L, 3, "transport");
    options.queue = name_field(L, 3, "queue");
    options.concurrency = (uint32_t)mull__bounded_field(L, 3, "concurrency", UINT32_MAX);
    options.prefetch = (uint32_t)mull__bounded_field(L, 3, "prefetch", UINT32_MAX);
    options.max_body = (size_t)mull__bounded_field(L, 3, "max_body", INT64_MAX);
    options.timeout_ms = mull__integer_field(L, 3, "timeout_ms");
    options.paused = mull__flag_field(L, 3, "paused");
    options.nservicebus = writes_nservicebus(L, 3);
    options.types = types_field(L, 3, &options.type_count);
    lua_getfield(L, 3, "handler");
    luaL_checktype(L, -1, LUA_TFUNCTION);
    mull__lua_consumer *added = remember(L, engine, options.name, lua_gettop(L));
    added->timeout_ms = options.timeout_ms ? options.timeout_ms : DEFAULT_TIMEOUT_MS;
    options.handler = mull__handle;
    options.cancel = mull__cancel;
    options.data = added;
    int status = 0;
    if (lua_getfield(L, 3, "workers") == LUA_TLIGHTUSERDATA)
        status = mull__engine_use_workers(L, -1, added, &options);
    if (status == 0)
        status = mull_consumer_add(engine->engine, &options);
    if (status != 0)
        forget(L, added);
    else if (added->workers)
        mull__consumer_room(engine->engine, options.name, 0);
    return mull__engine_answer(L, engine, status);
}

/* ---- While it runs --------------------------------------------------------------------------- */

int mull__engine_pause(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the consumer's name");
    return mull__engine_answer(L, engine, mull_consumer_pause(engine->engine, name));
}

int mull__engine_resume(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the consumer's name");
    return mull__engine_answer(L, engine, mull_consumer_resume(engine->engine, name));
}

int mull__engine_concurrency(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the consumer's name");
    lua_Integer concurrency = luaL_checkinteger(L, 3);
    luaL_argcheck(L, concurrency >= 0 && concurrency <= UINT32_MAX, 3, "out of range");
    return mull__engine_answer(
        L, engine, mull_consumer_concurrency(engine->engine, name, (uint32_t)concurrency));
}

/* why_not(name) is the word, or false where the consumer is called. */
int mull__engine_why_not(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the consumer's name");
    mull_why_not why = MULL_WHY_CALLED;
    int status = mull_consumer_why_not(engine->engine, name, &why);
    if (status != 0)
        return mull__engine_answer(L, engine, status);
    if (why == MULL_WHY_CALLED)
        lua_pushboolean(L, 0);
    else
        lua_pushstring(L, mull_why_not_name(why));
    return 1;
}

/* ---- Removing -------------------------------------------------------------------------------- */

static void on_removed(int status, void *data)
{
    mull__lua_consumer *consumer = data;
    mull__request *asked = consumer->removal;
    forget(consumer->engine->host->L, consumer);
    if (asked)
        mull__request_answer(asked, status);
}

/* named finds a consumer; NULL: there is none. */
static mull__lua_consumer *named(const mull__lua_engine *engine, const char *name)
{
    mull__lua_consumer *consumer = engine->consumers;
    while (consumer && strcmp(consumer->name, name) != 0)
        consumer = consumer->next;
    return consumer;
}

int mull__engine_remove(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *name = mull__read_name(L, 2, "the consumer's name");
    lua_settop(L, 3);
    if (!lua_isnil(L, 3))
        luaL_checktype(L, 3, LUA_TFUNCTION);
    mull__lua_consumer *consumer = named(engine, name);
    mull__request *asked =
        lua_isnil(L, 3) ? NULL : mull__request_push(L, engine, "remove_consumer", 3);
    int status = mull_consumer_remove(engine->engine, name, on_removed, consumer);
    if (status == 0)
        consumer->removal = asked;
    else if (asked)
        mull__request_forget(L, asked);
    return mull__engine_answer(L, engine, status);
}
