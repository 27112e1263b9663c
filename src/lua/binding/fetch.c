/* fetch.c: core.fetch: an HTTP request, while the handler that asked for it waits. See engine.h. */
#include "engine.h"

#include "base/alloc.h"
#include "base/module_file.h"
#include "handler/fetch.h"
#include "lua/values/raise.h"
#include "lua/values/scoped_memory.h"
#include "runtime/engine_control.h"

#include <lauxlib.h>
#include <stdio.h>

enum { BODY_MOST = 16 * 1024 * 1024, REDIRECTS = 10 };

/* ---- The module ------------------------------------------------------------------------------ */

/* module_of looks for the module anew each time, as for those of transports. NULL: `why` says what
 * is wrong. */
static const mull__fetch_module *module_of(char *why, size_t size)
{
    mull__module_search search = {
        .name = "http", .title = "mulligan-http", .why = why, .size = size};
    const mull__fetch_module *module = mull__module_symbol(&search, "mull__http");
    if (module && module->version == MULL__FETCH_VERSION)
        return module;
    if (module)
        mull__module_refuse(&search, "%s is of another release; install both of one", search.file);
    else if (!why[0])
        snprintf(why, size, "HTTP needs the package mulligan-http");
    return NULL;
}

int mull__lua_has_http(lua_State *L)
{
    char why[512];
    if (module_of(why, sizeof why)) {
        lua_pushboolean(L, 1);
        return 1;
    }
    luaL_pushfail(L);
    lua_pushstring(L, why);
    return 2;
}

/* ---- A request ------------------------------------------------------------------------------- */

/* request is a userdata of the handler's coroutine. */
typedef struct request {
    mull__job *job;
    const mull__fetch_module *module;
    mull__fetch *fetch; /* NULL: it wasn't started */
    int64_t timeout_ms;
    int is_rest; /* that is all that the call has left */
} request;

static int drop(lua_State *L)
{
    request *r = lua_touserdata(L, 1);
    if (r->fetch)
        r->module->free(r->fetch);
    r->fetch = NULL;
    return 0;
}

static void on_ended(void *data)
{
    const request *r = data;
    mull__job_go_on(r->job);
}

static void interrupt(void *outside)
{
    const request *r = outside;
    r->module->stop(r->fetch);
    mull__job_go_on(r->job);
}

/* open_fetcher gives the engine's connections, made when they are first used. NULL: `why` says what
 * is wrong. */
static mull__fetcher *open_fetcher(mull__lua_engine *engine, char *why, size_t size)
{
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    if (engine->fetcher)
        return engine->fetcher;
    engine->http = module_of(why, size);
    if (engine->http &&
        engine->http->open(&engine->fetcher, mull__engine_loop(engine->engine), &allocator) != 0)
        snprintf(why, size, "not enough memory");
    return engine->fetcher;
}

void mull__fetcher_drop(mull__lua_engine *engine)
{
    if (engine->fetcher)
        engine->http->close(engine->fetcher);
    engine->fetcher = NULL;
}

/* refuse gives nil, the type of the error, and what it says. */
static int refuse(lua_State *L, const char *type, const char *why)
{
    luaL_pushfail(L);
    lua_pushstring(L, type);
    lua_pushstring(L, why);
    return 3;
}

static int fail(lua_State *L, const request *r, const mull__fetch_result *result)
{
    switch (result->failed) {
    case MULL__FETCH_TIMEOUT:
        lua_pushfstring(L, "no whole answer within %I ms", (LUAI_UACINT)r->timeout_ms);
        return refuse(L, r->is_rest ? "HandlerTimeoutError" : "TimeoutError", lua_tostring(L, -1));
    case MULL__FETCH_TOO_BIG:
        lua_pushfstring(L, "the answer has more than %d MiB", BODY_MOST / (1024 * 1024));
        return refuse(L, "Error", lua_tostring(L, -1));
    case MULL__FETCH_MEMORY:
        return refuse(L, "Error", "not enough memory");
    default:
        return refuse(L, "ConnectionError", result->why);
    }
}

static int go_on(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const request *r = (const request *)context;
    mull__fetch_result result;
    r->module->result(r->fetch, &result);
    if (result.failed != MULL__FETCH_WELL)
        return fail(L, r, &result);
    lua_pushinteger(L, result.status);
    lua_pushlstring(L, result.headers, result.headers_size);
    lua_pushlstring(L, result.body, result.body_size);
    if (result.retry_after_s > 0)
        lua_pushinteger(L, result.retry_after_s);
    else
        lua_pushnil(L);
    return 4;
}

static int start(lua_State *L, request *r, mull__fetcher *fetcher, mull__arena *arena)
{
    mull__fetch_options options = {.method = luaL_checkstring(L, 1),
                                   .url = luaL_checkstring(L, 2),
                                   .headers = mull__read_texts(L, 3, arena),
                                   .most = BODY_MOST,
                                   .timeout_ms = r->timeout_ms,
                                   .redirects = lua_toboolean(L, 6) ? REDIRECTS : 0,
                                   .ended = on_ended,
                                   .data = r};
    options.body = luaL_optlstring(L, 4, NULL, &options.body_size);
    luaL_checkstack(L, LUA_MINSTACK, NULL); /* from here on nothing may raise */
    return r->module->start(&r->fetch, fetcher, &options);
}

int mull__lua_fetch(lua_State *L)
{
    static const char type_name[] = "mulligan.fetch";
    lua_settop(L, 6);
    mull__job *job = mull__job_that_waits(L, "mulligan.fetch");
    mull__lua_engine *engine = mull__job_owner(job);
    char why[512];
    mull__fetcher *fetcher = open_fetcher(engine, why, sizeof why);
    if (!fetcher)
        return refuse(L, "Error", why);
    int64_t wanted_ms = luaL_optinteger(L, 5, MULL_NEVER);
    mull__arena *arena = mull__arena_new(L);
    request *r = mull__scoped_userdata(L, sizeof *r, type_name, drop);
    r->job = job;
    r->module = engine->http;
    r->timeout_ms = mull__job_time(job, wanted_ms, &r->is_rest);
    int code = start(L, r, fetcher, arena);
    mull__arena_free(arena);
    return code == 0 ? mull__job_wait(L, job, interrupt, r, go_on)
                     : refuse(L, "Error", "not enough memory");
}
