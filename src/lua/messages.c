/* messages.c: engine:publish, engine:depth and engine:after, which call back later. See engine.h.
 */
#include "engine.h"

#include "base/mask.h"
#include "convert.h"
#include "runtime/seams.h"

#include <lauxlib.h>
#include <stdio.h>

/* request is a userdata, anchored by its address until it is answered; its first user value is the
 * function to call, or nil. */
typedef struct request {
    mull__lua_engine *engine;
} request;

static request *push_request(lua_State *L, mull__lua_engine *engine, int function)
{
    request *made = lua_newuserdatauv(L, sizeof *made, 1);
    made->engine = engine;
    lua_pushvalue(L, function);
    lua_setiuservalue(L, -2, 1);
    if (mull__anchors(L, engine)) {
        lua_pushvalue(L, -2);
        lua_rawsetp(L, -2, made);
        lua_pop(L, 1);
    }
    return made;
}

static void forget(lua_State *L, const request *asked)
{
    if (!mull__anchors(L, asked->engine))
        return;
    lua_pushnil(L);
    lua_rawsetp(L, -2, asked);
    lua_pop(L, 1);
}

struct answer {
    request *asked;
    int status;
    const mull_depth *depth; /* NULL: of a publish */
};

static void push_depth(lua_State *L, const mull_depth *depth)
{
    lua_createtable(L, 0, 4);
    lua_pushinteger(L, (lua_Integer)depth->ready);
    lua_setfield(L, -2, "ready");
    lua_pushinteger(L, (lua_Integer)depth->delayed);
    lua_setfield(L, -2, "delayed");
    lua_pushinteger(L, (lua_Integer)depth->claimed);
    lua_setfield(L, -2, "claimed");
    if (depth->next_due_ms != INT64_MAX) {
        lua_pushinteger(L, depth->next_due_ms);
        lua_setfield(L, -2, "next_due_ms");
    }
}

static int call_back(lua_State *L)
{
    struct answer *answer = lua_touserdata(L, 1);
    if (!mull__anchors(L, answer->asked->engine))
        return 0;
    lua_rawgetp(L, -1, answer->asked);
    forget(L, answer->asked);
    if (lua_getiuservalue(L, -1, 1) != LUA_TFUNCTION) {
        if (answer->status != 0)
            luaL_error(L, "%s", mull_strerror(answer->status));
        return 0;
    }
    int results = 1;
    if (answer->status != 0)
        results = mull__fail(L, answer->status, NULL);
    else if (answer->depth)
        push_depth(L, answer->depth);
    else
        lua_pushboolean(L, 1);
    lua_call(L, results, 0);
    return 0;
}

static void on_published(int status, void *data)
{
    request *asked = data;
    mull__lua_engine *engine = asked->engine;
    struct answer answer = {.asked = asked, .status = status};
    mull__protect(engine->host, engine, "publish", call_back, &answer);
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
    request *asked = push_request(L, engine, 6);
    int status = mull_publish(engine->engine, transport, &message, delay_ms, on_published, asked);
    mull__arena_drop(arena);
    if (status != 0)
        forget(L, asked);
    mull__lines_hand_out(engine);
    if (status == MULL_EINVAL) {
        char shown[256]; /* somebody may have given the URL for its name */
        mull__mask(shown, sizeof shown, transport, transport);
        lua_pushfstring(L, "there is no transport \"%s\"", shown);
        return mull__fail(L, status, lua_tostring(L, -1));
    }
    if (status != 0)
        return mull__fail(L, status, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    request *asked = data;
    mull__lua_engine *engine = asked->engine;
    struct answer answer = {.asked = asked, .status = status, .depth = depth};
    mull__protect(engine->host, engine, "depth", call_back, &answer);
}

int mull__engine_depth(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *transport = mull__read_name(L, 2, "transport");
    const char *queue = mull__read_name(L, 3, "queue");
    luaL_checktype(L, 4, LUA_TFUNCTION);
    request *asked = push_request(L, engine, 4);
    int status = mull_queue_depth(engine->engine, transport, queue, on_depth, asked);
    if (status != 0)
        forget(L, asked);
    mull__lines_hand_out(engine);
    if (status != 0)
        return mull__fail(L, status, NULL);
    lua_pushboolean(L, 1);
    return 1;
}

static void on_after(void *data)
{
    request *asked = data;
    mull__lua_engine *engine = asked->engine;
    struct answer answer = {.asked = asked};
    mull__protect(engine->host, engine, "after", call_back, &answer);
}

int mull__engine_later(lua_State *L)
{
    mull__lua_engine *engine = mull__engine_at(L, 1);
    lua_Integer delay_ms = luaL_checkinteger(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    request *asked = push_request(L, engine, 3);
    if (mull__engine_after(engine->engine, delay_ms, on_after, asked))
        return 0;
    forget(L, asked);
    return luaL_error(L, "not enough memory");
}
