/* messages.c: engine:publish, engine:depth and engine:after, which call back later. See engine.h.
 */
#include "engine.h"

#include "base/redact.h"
#include "lua/values/values.h"
#include "runtime/engine_control.h"
#include "runtime/timers.h"

#include <lauxlib.h>
#include <stdio.h>

enum { AGAIN_MS = 100 }; /* where there was no memory to answer */

/* mull__request is a userdata, anchored by its address until it is answered; its first user value
 * is the function to call, or nil. */
struct mull__request {
    mull__lua_engine *engine;
    const char *what;
    int status;
    int has_depth;
    mull_depth depth;
};

mull__request *mull__request_push(lua_State *L, mull__lua_engine *engine, const char *what,
                                  int function)
{
    mull__request *made = lua_newuserdatauv(L, sizeof *made, 1);
    *made = (mull__request){.engine = engine, .what = what};
    lua_pushvalue(L, function);
    lua_setiuservalue(L, -2, 1);
    if (mull__push_references(L, engine)) {
        lua_pushvalue(L, -2);
        lua_rawsetp(L, -2, made);
        lua_pop(L, 1);
    }
    return made;
}

void mull__request_forget(lua_State *L, const mull__request *asked)
{
    if (!mull__push_references(L, asked->engine))
        return;
    lua_pushnil(L);
    lua_rawsetp(L, -2, asked);
    lua_pop(L, 1);
}

static void push_depth(lua_State *L, const mull_depth *depth)
{
    lua_createtable(L, 0, 4);
    mull__set_integer(L, "ready", (int64_t)depth->ready);
    mull__set_integer(L, "delayed", (int64_t)depth->delayed);
    mull__set_integer(L, "claimed", (int64_t)depth->claimed);
    if (depth->next_due_ms != INT64_MAX)
        mull__set_integer(L, "next_due_ms", depth->next_due_ms);
}

/* push_answer pushes what the function is called with. */
static int push_answer(lua_State *L, const mull__request *asked)
{
    if (asked->status != 0)
        return mull__fail(L, asked->status, NULL);
    if (asked->has_depth)
        push_depth(L, &asked->depth);
    else
        lua_pushboolean(L, 1);
    return 1;
}

enum { LARGEST_FRAME = 256 }; /* of any function */

struct reply {
    mull__request *asked;
    int given; /* whatever is raised from then on isn't for want of memory to answer */
};

static int call_back(lua_State *L)
{
    struct reply *reply = lua_touserdata(L, 1);
    mull__request *asked = reply->asked;
    if (!mull__push_references(L, asked->engine))
        return 0;
    lua_rawgetp(L, -1, asked);
    int is_function = lua_getiuservalue(L, -1, 1) == LUA_TFUNCTION;
    int results = is_function ? push_answer(L, asked) : 0;
    mull__reserve_call(L, LARGEST_FRAME);
    reply->given = 1;
    mull__request_forget(L, asked);
    if (is_function)
        lua_call(L, results, 0);
    else if (asked->status != 0)
        luaL_error(L, "%s", mull_strerror(asked->status));
    return 0;
}

/* give_answer calls the function; again later where there is no memory to call it. */
static void give_answer(void *data)
{
    struct reply reply = {.asked = data};
    mull__lua_engine *engine = reply.asked->engine;
    if (mull__call_protected(engine->host, engine, reply.asked->what, call_back, &reply) != 0 &&
        !reply.given)
        mull__engine_after(engine->engine, AGAIN_MS, give_answer, data);
}

void mull__request_answer(mull__request *asked, int status)
{
    asked->status = status;
    give_answer(asked);
}

/* fail_down fails with the reason that the transport gave. */
static int fail_down(lua_State *L, const mull__lua_engine *engine, const char *transport)
{
    const char *why = mull__transport_why(engine->engine, transport);
    lua_pushfstring(L, "transport '%s' is down%s%s", transport, *why ? ": " : "", why);
    return mull__fail(L, MULL_EDOWN, lua_tostring(L, -1));
}

/* The log's line that says why it failed comes first. */
static void on_published(int status, void *data)
{
    const mull__request *asked = data;
    mull__log_deliver_lines(asked->engine);
    mull__request_answer(data, status);
}

/* answer gives what a request returns, which can only be invalid for its transport. */
static int answer(lua_State *L, const mull__request *asked, int status, const char *transport)
{
    mull__log_deliver_lines(asked->engine);
    if (status == 0) {
        lua_pushboolean(L, 1);
        return 1;
    }
    const mull__lua_engine *engine = asked->engine;
    mull__request_forget(L, asked);
    if (status == MULL_EDOWN)
        return fail_down(L, engine, transport);
    if (status != MULL_EINVAL)
        return mull__fail(L, status, NULL);
    char shown[256]; /* somebody may have given the URL for its name */
    mull__redact(shown, sizeof shown, transport, transport);
    lua_pushfstring(L, "there is no transport \"%s\"", shown);
    return mull__fail(L, status, lua_tostring(L, -1));
}

int mull__engine_publish(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *transport = mull__read_name(L, 2, "transport");
    lua_settop(L, 6);
    if (!lua_isnil(L, 6))
        luaL_checktype(L, 6, LUA_TFUNCTION);
    mull__arena *arena = mull__arena_new(L);
    mull_message message;
    int64_t delay_ms;
    mull__read_outgoing(L, 3, arena, &message, &delay_ms);
    mull__request *asked = mull__request_push(L, engine, "publish", 6);
    int status = mull_publish(engine->engine, transport, &message, delay_ms, on_published, asked);
    mull__arena_free(arena);
    return answer(L, asked, status, transport);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    mull__request *asked = data;
    asked->status = status;
    asked->has_depth = 1;
    asked->depth = *depth;
    give_answer(asked);
}

int mull__engine_depth(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *transport = mull__read_name(L, 2, "transport");
    const char *queue = mull__read_name(L, 3, "queue");
    luaL_checktype(L, 4, LUA_TFUNCTION);
    mull__request *asked = mull__request_push(L, engine, "depth", 4);
    int status = mull_queue_depth(engine->engine, transport, queue, on_depth, asked);
    return answer(L, asked, status, transport);
}

int mull__engine_later(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    lua_Integer delay_ms = luaL_checkinteger(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    mull__request *asked = mull__request_push(L, engine, "after", 3);
    if (mull__engine_after(engine->engine, delay_ms, give_answer, asked))
        return 0;
    mull__request_forget(L, asked);
    return luaL_error(L, "not enough memory");
}
