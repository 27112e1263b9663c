/* serve.c: what `mulligan serve` has of C: a server (control/serve.h) on an engine's loop. What
 * only Lua knows the server asks lua/mulligan/cmd/serve.lua. */
#include "control/serve.h"
#include "lua/binding/engine.h"
#include "lua/values/metatable.h"
#include "program.h"
#include "runtime/engine_control.h"

#include "base/alloc.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

static const char type_name[] = "mulligan.server";

/* server is the userdata; its user value has what callbacks need, and its engine. */
typedef struct server {
    mull__server *server; /* NULL: closed */
    mull__callbacks *host;
} server;

/* ---- Callbacks of the server ----------------------------------------------------------------- */

static void on_log(mull_level level, const char *text, void *data)
{
    const server *s = data;
    mull__callback_log(s->host, s, level, text);
}

typedef struct question {
    const server *server;
    const char *what, *json;
    mull__json_text *answer;
    char *why;
    int status;
} question;

/* ask calls ask(what, json), which gives JSON; or nil and why. */
static int ask(lua_State *L)
{
    question *q = lua_touserdata(L, 1);
    if (!mull__push_references(L, q->server) || lua_getfield(L, -1, "ask") != LUA_TFUNCTION)
        return 0;
    lua_pushstring(L, q->what);
    lua_pushstring(L, q->json);
    lua_call(L, 2, 2);
    if (lua_type(L, -2) == LUA_TSTRING) {
        q->status = mull__json_add(q->answer, lua_tostring(L, -2));
        return 0;
    }
    const char *why = lua_tostring(L, -1);
    snprintf(q->why, MULL__SESSION_WHY, "%s", why ? why : "");
    q->status = MULL_EINVAL;
    return 0;
}

static int on_ask(void *data, const char *what, const char *json, mull__json_text *answer,
                  char *why)
{
    const server *s = data;
    question q = {s, what, json, answer, why, MULL_ENOMEM};
    mull__call_protected(s->host, s, what, ask, &q);
    return q.status;
}

/* ---- Methods --------------------------------------------------------------------------------- */

static int close_server(lua_State *L)
{
    server *s = luaL_checkudata(L, 1, type_name);
    mull__server *closing = s->server;
    s->server = NULL;
    if (closing) {
        mull__server_close(closing);
        mull__unregister_owner(L, s);
    }
    return 0;
}

static int changed(lua_State *L)
{
    const server *s = luaL_checkudata(L, 1, type_name);
    if (s->server)
        mull__server_changed(s->server);
    return 0;
}

static void push_references(lua_State *L)
{
    static const struct {
        const char *name;
        int index;
    } kept[] = {{"engine", 1}, {"ask", 3}, {"log", 4}};
    lua_createtable(L, 0, 3);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        lua_pushvalue(L, kept[i].index);
        lua_setfield(L, -2, kept[i].name);
    }
}

int mull__serve(lua_State *L)
{
    const mull__lua_engine *engine = mull__engine_at(L, 1);
    const char *path = luaL_checkstring(L, 2);
    luaL_checktype(L, 3, LUA_TFUNCTION);
    luaL_checktype(L, 4, LUA_TFUNCTION);
    lua_settop(L, 4);
    server *s = lua_newuserdatauv(L, sizeof *s, 1);
    *s = (server){.host = mull__callbacks_of(L)};
    luaL_setmetatable(L, type_name);
    push_references(L);
    lua_setiuservalue(L, -2, 1);
    mull__register_owner(L, -1, s);
    const mull__server_options options = {
        .loop = mull__engine_loop(engine->engine),
        .path = path,
        .policy = engine->policy->policy,
        .ask = on_ask,
        .log = on_log,
        .data = s,
        .allocator = mull__allocator_or_default((mull_allocator){.resize = NULL})};
    char why[MULL__SERVER_WHY];
    int status = mull__server_open(&s->server, &options, why);
    return status == 0 ? 1 : mull__fail(L, status, why);
}

int mull__serve_policy(lua_State *L)
{
    mull__engine_for_policy(mull__engine_at(L, 1)->engine);
    return 0;
}

void mull__open_serve(lua_State *L)
{
    static const luaL_Reg methods[] = {{"changed", changed}, {"close", close_server}, {NULL, NULL}};
    static const luaL_Reg meta[] = {
        {"__gc", close_server}, {"__close", close_server}, {NULL, NULL}};
    mull__type_define(L, type_name, meta, methods);
    lua_pop(L, 2);
}
