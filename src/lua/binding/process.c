/* process.c: core.process: a program runs while the handler that asked for it waits. See engine.h.
 */
#include "engine.h"

#include "base/alloc.h"
#include "handler/process.h"
#include "handler/program.h"
#include "lua/values/raise.h"
#include "lua/values/scoped_memory.h"
#include "runtime/engine_control.h"

#include <lauxlib.h>

enum { OUTPUT_MOST = 16 * 1024 * 1024 };

/* run is a userdata of the handler's coroutine, which is closed only once the process has ended. */
typedef struct run {
    mull__job *job;
    mull__process *process; /* NULL: it wasn't started */
    int64_t timeout_ms;
    int is_rest; /* that is all that the call has left */
} run;

static int drop(lua_State *L)
{
    run *r = lua_touserdata(L, 1);
    mull__process_free(r->process);
    r->process = NULL;
    return 0;
}

static void on_ended(void *data)
{
    const run *r = data;
    mull__job_go_on(r->job);
}

static void interrupt(void *outside)
{
    const run *r = outside;
    mull__process_stop(r->process);
}

const char *const *mull__read_texts(lua_State *L, int index, mull__arena *arena)
{
    lua_Integer count = lua_istable(L, index) ? (lua_Integer)lua_rawlen(L, index) : 0;
    const char **texts = mull__arena_take(L, arena, (size_t)count + 1, sizeof *texts);
    for (lua_Integer i = 0; i < count; i++) {
        lua_rawgeti(L, index, i + 1);
        texts[i] = luaL_checkstring(L, -1);
        lua_pop(L, 1);
    }
    return texts;
}

static const char *text_at(lua_State *L, int index, size_t *size)
{
    *size = 0;
    return luaL_optlstring(L, index, NULL, size);
}

/* fail raises what is wrong with how a process ended, if anything is. */
static void fail(lua_State *L, const run *r, const mull__process_result *result)
{
    lua_rawgeti(L, 1, 1);
    const char *program = lua_tostring(L, -1);
    if (result->failed == MULL_ENOMEM)
        luaL_error(L, "not enough memory");
    if (result->failed == MULL_ETOOBIG)
        luaL_error(L, "%s was ended: it wrote more than %d MiB to its stdout", program,
                   OUTPUT_MOST / (1024 * 1024));
    if (result->timed_out)
        mull__raise(L, r->is_rest ? "HandlerTimeoutError" : "TimeoutError",
                    "%s was ended: it ran longer than %I ms", program, (LUAI_UACINT)r->timeout_ms);
}

static int go_on(lua_State *L, int status, lua_KContext context)
{
    (void)status;
    const run *r = (const run *)context; /* which mull__job_wait was given */
    mull__process_result result;
    mull__process_result_of(r->process, &result);
    fail(L, r, &result);
    lua_pushinteger(L, result.signal ? 128 + result.signal : result.status);
    if (result.signal)
        lua_pushinteger(L, result.signal);
    else
        lua_pushnil(L);
    lua_pushlstring(L, result.output, result.output_size);
    lua_pushlstring(L, result.errors, result.error_size);
    return 4;
}

/* refuse gives nil, the code's name, and what that means. */
static int refuse(lua_State *L, int code)
{
    luaL_pushfail(L);
    lua_pushstring(L, uv_err_name(code));
    lua_pushstring(L, uv_strerror(code));
    return 3;
}

static int start(lua_State *L, run *r, mull__arena *arena)
{
    int whole = lua_toboolean(L, 6);
    mull__process_options options = {.loop = mull__engine_loop(mull__job_owner(r->job)->engine),
                                     .words = mull__read_texts(L, 1, arena),
                                     .variables = mull__read_texts(L, 4, arena),
                                     .output_most = whole ? OUTPUT_MOST : MULL__STDERR_KEPT,
                                     .output_end = !whole,
                                     .timeout_ms = r->timeout_ms,
                                     .ended = on_ended,
                                     .data = r};
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){NULL, NULL});
    options.allocator = &allocator;
    options.input = text_at(L, 2, &options.input_size);
    options.file = text_at(L, 5, &options.file_size);
    luaL_checkstack(L, LUA_MINSTACK, NULL); /* from here on nothing may raise */
    return mull__process_start(&r->process, &options);
}

int mull__lua_process(lua_State *L)
{
    static const char type_name[] = "mulligan.process";
    lua_settop(L, 6);
    mull__job *job = mull__job_that_waits(L, "mulligan.run");
    int64_t wanted_ms = luaL_optinteger(L, 3, MULL_NEVER);
    mull__arena *arena = mull__arena_new(L);
    run *r = mull__scoped_userdata(L, sizeof *r, type_name, drop);
    r->job = job;
    r->timeout_ms = mull__job_time(job, wanted_ms, &r->is_rest);
    int code = start(L, r, arena);
    mull__arena_free(arena);
    return code == 0 ? mull__job_wait(L, job, interrupt, r, go_on) : refuse(L, code);
}

int mull__lua_find_program(lua_State *L)
{
    int code = mull__program_find(luaL_checkstring(L, 1));
    if (code != 0)
        return refuse(L, code);
    lua_pushboolean(L, 1);
    return 1;
}
