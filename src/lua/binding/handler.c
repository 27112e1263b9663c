/* handler.c: a Lua function as a handler: each call is a coroutine.
 *
 *   mull__handle ── make ── resume ──┬── sleeps: a timer ── resume ── ...
 *                                    ├── waits for what is outside ── resume ── ...
 *                                    ├── returns: mull_done(NULL)
 *                                    └── raises: mull_done(error)
 *   mull__cancel ── closes the coroutine, and ends the call: at once, or when what it waits for
 *                   outside, which is told, has ended
 *
 * A job can't be ended twice: it is forgotten when mull_done took its end. */
#include "engine.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "lua/machine/patterns.h"
#include "lua/values/raise.h"
#include "lua/values/traceback.h"
#include "lua/values/values.h"
#include "memory_limit.h"
#include "runtime/calls.h"
#include "runtime/engine_control.h"
#include "runtime/stall_watchdog.h"
#include "runtime/timers.h"

#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

/* A count hook looks at the clock this often, in instructions: some 0.1 ms. */
enum { LOOK_EVERY = 10000 };

/* mull__job is a call at work: a userdata, anchored by its call, whose first user value is the
 * coroutine. */
struct mull__job {
    mull__work work; /* for the watchdog */
    mull__lua_consumer *consumer;
    mull_engine *engine;
    mull_call call;
    lua_State *co;
    mull_timer *timer; /* while it sleeps */
    int64_t sleep_ms;
    int64_t began_ms;   /* on the engine's clock */
    int64_t resumed_ms; /* on the machine's own clock: a test's stands still meanwhile */
    int asleep;         /* it yielded by mulligan.sleep */
    void (*interrupt)(void *outside); /* it yielded by mull__job_wait; else NULL */
    void *outside;
    int running;
    int over;       /* it ran past its timeout without yielding */
    int refused;    /* there was no memory for something that it asked for */
    int is_first;   /* it began with nothing else at work, and half the memory free */
    int cancelled;  /* its end no longer matters */
    uint64_t begun; /* the how-manyth of its host's it is */
};

static const mull_error unexpected_yield = {
    .size = sizeof unexpected_yield,
    .type = "Error",
    .message = "the handler yielded; only mulligan's own functions may, and coroutines of its own"};
static const mull_error timed_out_error = {.size = sizeof timed_out_error,
                                           .type = "HandlerTimeoutError",
                                           .message = "the handler ran past its timeout"};

/* ---- For the watchdog ------------------------------------------------------------------------ */

mull__job *mull__switch_job(mull__callbacks *host, mull__job *job)
{
    mull__job *outer = host->job;
    host->job = job;
    if (outer != job)
        mull__watchdog_set_work(host->watchdog, job ? &job->work : NULL);
    return outer;
}

static const char *file_of(const lua_Debug *function)
{
    return *function->source == '@' ? function->source + 1 : function->short_src;
}

void mull__note_position(lua_State *L)
{
    const mull__callbacks *host = mull__callbacks_of(L);
    lua_Debug function = {.currentline = -1};
    if (!host->watchdog || !host->job)
        return;
    for (int level = 0; function.currentline < 0 && lua_getstack(L, level, &function); level++) {
        lua_getinfo(L, "Sl", &function);
        if (strncmp(function.source, "=mulligan", 9) == 0)
            function.currentline = -1; /* lua/ has nothing to do with what the handler does */
    }
    if (function.currentline >= 0)
        mull__watchdog_set_line(host->watchdog, file_of(&function), function.currentline);
}

void mull__note_handler_position(lua_State *L, mull__lua_consumer *consumer)
{
    lua_Debug handler;
    lua_getinfo(L, ">S", &handler);
    snprintf(consumer->file, sizeof consumer->file, "%s", file_of(&handler));
    consumer->line = handler.linedefined;
}

/* ---- Its end --------------------------------------------------------------------------------- */

static void on_count(lua_State *L, lua_Debug *where);

void mull__set_count_hook(lua_State *L)
{
    lua_sethook(L, on_count, LUA_MASKCOUNT, LOOK_EVERY);
}

/* timeout_scope: an error's __tostring and a coroutine's __close run with the timeout begun anew.
 */
typedef struct timeout_scope {
    mull__job *outer;
    int over;
    lua_Hook hook;
    int mask, count;
} timeout_scope;

static timeout_scope begin_timeout_scope(mull__job *job, lua_State *L)
{
    mull__callbacks *host = job->consumer->engine->host;
    timeout_scope before = {mull__switch_job(host, job), job->over, lua_gethook(L),
                            lua_gethookmask(L), lua_gethookcount(L)};
    job->over = 0;
    job->resumed_ms = mull__monotonic_ms();
    mull__set_count_hook(L);
    return before;
}

static void end_timeout_scope(mull__job *job, lua_State *L, timeout_scope before)
{
    lua_sethook(L, before.hook, before.mask, before.count);
    job->over = before.over;
    mull__switch_job(job->consumer->engine->host, before.outer);
}

static void close_coroutine(mull__job *job)
{
    timeout_scope before = begin_timeout_scope(job, job->co);
#if LUA_VERSION_RELEASE_NUM >= 50406
    lua_closethread(job->co, NULL);
#else
    lua_resetthread(job->co);
#endif
    end_timeout_scope(job, job->co, before);
}

static void forget(mull__job *job)
{
    lua_State *L = job->consumer->engine->host->L;
    job->consumer->engine->host->jobs--;
    if (!lua_checkstack(L, 4) || !mull__push_references(L, job->consumer->engine))
        return;
    lua_pushnil(L); /* the key is there: this allocates nothing */
    lua_rawseti(L, -2, mull__call_index(job->call));
    lua_pop(L, 1);
}

/* finish ends the call. An error for which there is no memory fails it all the same. */
static void finish(mull__job *job, const mull_error *error)
{
    if (mull_done(job->engine, job->call, error) == MULL_ENOMEM)
        mull__done_out_of_memory(job->engine, job->call);
    forget(job);
}

static void finish_short(mull__job *job)
{
    mull__done_out_of_memory(job->engine, job->call);
    forget(job);
}

static int trace(lua_State *L)
{
    mull__traceback(L, lua_touserdata(L, 1), 0);
    return 1;
}

/* push_trace pushes where a coroutine raised; nil where what it holds leaves no memory for that. */
static void push_trace(lua_State *L, lua_State *co)
{
    lua_pushcfunction(L, trace);
    lua_pushlightuserdata(L, co);
    if (lua_pcall(L, 1, 1, 0) != LUA_OK) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
}

typedef struct raised {
    mull__job *job;
    mull__arena arena; /* for its error */
} raised;

/* report ends a call with what its coroutine raised, which is on top of its stack. */
static int report(lua_State *L)
{
    raised *of = lua_touserdata(L, 1);
    mull__job *job = of->job;
    lua_xmove(job->co, L, 1);
    if (mull__is_error_value(L, 2))
        lua_pushnil(L); /* it has a stack of its own */
    else
        push_trace(L, job->co);
    close_coroutine(job);
    /* A __tostring runs here, which is the handler's. */
    timeout_scope before = begin_timeout_scope(job, L);
    const mull_error *error = mull__read_error_value(L, 2, &of->arena, lua_tostring(L, 3));
    end_timeout_scope(job, L, before);
    finish(job, job->over && !mull__is_error_value(L, 2) ? &timed_out_error : error);
    return 0;
}

static void end_badly(mull__job *job)
{
    mull__lua_engine *engine = job->consumer->engine;
    raised of = {job, {.allocator = mull__allocator_or_default((mull_allocator){NULL, NULL})}};
    if (mull__call_protected(engine->host, engine, "a handler's error", report, &of) != 0) {
        close_coroutine(job);
        finish_short(job);
    }
    mull__arena_free(&of.arena);
}

static void end_call(mull__job *job, int status)
{
    if (job->cancelled) {
        close_coroutine(job);
        finish(job, NULL);
    } else if (status == LUA_OK) {
        finish(job, job->over ? &timed_out_error : NULL);
    } else if (status == LUA_YIELD) {
        close_coroutine(job);
        if (job->asleep)
            finish_short(job); /* there was no memory for its timer */
        else
            finish(job, &unexpected_yield);
    } else {
        end_badly(job);
    }
}

/* was_alone says whether a job, and no other, can have used the memory up. */
static int was_alone(const mull__job *job)
{
    return job->is_first && job->begun == job->consumer->engine->host->begun;
}

/* waits_for_memory says whether the message is called again alone: it isn't known to have taken the
 * memory, and what others at work hold, or held, is free by then. */
static int waits_for_memory(mull__lua_engine *of, mull_engine *engine, mull_call call)
{
    int was_again = mull__call_uncount(engine, call);
    return of->host->jobs > 0 ? !was_again : mull__memory_limit_is_free(of->host->L);
}

/* check_memory_after_failure comes after a call that failed and was refused memory; what it held is
 * free by now. If that was most of what there is, or it `is_own`, the failure counts. Otherwise
 * others at work may hold the rest, and the message is called again alone. Where none does, the
 * engine stops.
 */
static void check_memory_after_failure(mull__lua_engine *of, mull_engine *engine, mull_call call,
                                       int is_own)
{
    lua_State *L = of->host->L;
    if (!of->is_main || !mull__memory_limit_is_short(L))
        return;
    of->was_short = !is_own && waits_for_memory(of, engine, call);
    if (of->was_short || (is_own && mull__memory_limit_is_free(L)))
        return;
    char why[512];
    mull__memory_limit_describe(L, of->host->jobs, why, sizeof why);
    mull__stop_out_of_memory(engine, why);
}

/* memory_is_still_short: all others have ended, and there is no memory yet. For a call that is made
 * alone garbage is collected in any case, to know how much was free when it began. */
static int memory_is_still_short(mull__lua_engine *of, mull_engine *engine, mull_call call)
{
    lua_State *L = of->host->L;
    if (!of->is_main || of->host->jobs > 0 ||
        !(of->was_short || mull__call_is_isolated(engine, call)))
        return 0;
    int was_short = of->was_short;
    of->was_short = 0;
    return mull__memory_limit_is_short(L) && was_short && !mull__memory_limit_is_free(L);
}

static void end(mull__job *job, int status)
{
    mull__lua_engine *of = job->consumer->engine;
    mull_engine *engine = job->engine;
    mull_call call = job->call;
    int failed = !job->cancelled && (status != LUA_OK || job->over), refused = job->refused;
    int is_own = was_alone(job), over = job->over; /* which has nothing to do with memory */
    end_call(job, status);                         /* the job may be gone */
    if (failed && !over && (refused || mull__memory_limit_refused(of->host->L)))
        check_memory_after_failure(of, engine, call, is_own);
}

/* ---- It runs --------------------------------------------------------------------------------- */

static int has_run_over(const mull__job *job)
{
    int64_t timeout_ms = job->consumer->timeout_ms;
    return timeout_ms != MULL_NEVER &&
           (job->over || mull__monotonic_ms() - job->resumed_ms >= timeout_ms);
}

/* may_continue says whether what runs is within the time of the handler that it is part of. */
static int may_continue(lua_State *L)
{
    const mull__callbacks *host = mull__callbacks_of(L);
    mull__note_position(L);
    return !host->job || !has_run_over(host->job);
}

static int give_up(lua_State *L)
{
    /* From now on at every instruction, so that no pcall in a loop gets away with it. */
    mull__callbacks_of(L)->job->over = 1;
    lua_sethook(L, on_count, LUA_MASKCOUNT, 1);
    return mull__raise(L, "HandlerTimeoutError", "the handler ran past its timeout");
}

static void on_count(lua_State *L, lua_Debug *where)
{
    (void)where;
    if (!may_continue(L))
        give_up(L);
}

static int counts_patterns(lua_State *L)
{
    const mull__callbacks *host = mull__callbacks_of(L);
    return host->job && host->job->consumer->engine->counts_patterns;
}

void mull__meter_patterns(lua_State *L)
{
    static mull__pattern_limiter meter = {counts_patterns, may_continue, give_up};
    mull__patterns_limit(L, &meter);
}

static void on_wake(void *data);

static int fall_asleep(mull__job *job)
{
    job->timer = mull__engine_after(job->engine, job->sleep_ms, on_wake, job);
    return job->timer != NULL;
}

static void resume(mull__job *job, int arguments)
{
    mull__callbacks *host = job->consumer->engine->host;
    mull__job *outer = mull__switch_job(host, job);
    job->running = 1;
    job->asleep = 0;
    job->resumed_ms = mull__monotonic_ms();
    mull__set_count_hook(job->co);
    mull__memory_limit_watch(host->L);
    int results = 0;
    int status = lua_resume(job->co, host->L, arguments, &results);
    job->refused |= mull__memory_limit_refused(host->L);
    job->running = 0;
    mull__switch_job(host, outer);
    if (status == LUA_YIELD) {
        lua_pop(job->co, results);
        if (job->asleep && !job->cancelled && fall_asleep(job))
            return;
    }
    if (!job->interrupt)
        end(job, status);
    else if (job->cancelled)
        job->interrupt(job->outside);
}

static void on_wake(void *data)
{
    mull__job *job = data;
    job->timer = NULL;
    resume(job, 0);
}

struct start {
    mull__lua_consumer *consumer;
    mull_engine *engine;
    mull_call call;
    const mull_message *message;
    mull__job *job;
};

/* make pushes nothing that stays: the job is anchored, its coroutine ready to be resumed. */
static int make(lua_State *L)
{
    struct start *start = lua_touserdata(L, 1);
    if (!mull__push_references(L, start->consumer->engine))
        return luaL_error(L, "the engine is gone");
    mull__job *job = lua_newuserdatauv(L, sizeof *job, 1);
    *job = (mull__job){.consumer = start->consumer, .engine = start->engine, .call = start->call};
    job->work.consumer = start->consumer->name;
    job->work.message = start->message->id;
    job->work.begins_in = start->consumer->file;
    job->work.begins_at = start->consumer->line;
    job->co = lua_newthread(L);
    lua_setiuservalue(L, -2, 1);
    /* Made on L and moved: an error may not be raised on a coroutine that doesn't run. */
    lua_rawgetp(L, 2, start->consumer);
    mull__push_message(L, start->message);
    lua_xmove(L, job->co, 2);
    lua_rawseti(L, 2, mull__call_index(start->call));
    mull__callbacks *host = start->consumer->engine->host;
    job->is_first = host->jobs == 0 && mull__memory_limit_is_free(L);
    job->begun = ++host->begun;
    job->began_ms = mull__engine_now(job->engine);
    host->jobs++;
    start->job = job;
    return 0;
}

void mull__handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    mull__lua_consumer *consumer = data;
    mull__lua_engine *of = consumer->engine;
    struct start start = {.consumer = consumer, .engine = engine, .call = call, .message = message};
    if (!memory_is_still_short(of, engine, call) &&
        mull__call_protected(of->host, of, "a handler can't start", make, &start) == 0) {
        resume(start.job, 1);
    } else {
        mull__done_out_of_memory(engine, call);
        check_memory_after_failure(of, engine, call, 0);
    }
}

/* job_of finds a call's job; NULL: there is none. */
static mull__job *job_of(mull__lua_engine *engine, mull_call call)
{
    lua_State *L = engine->host->L;
    if (!lua_checkstack(L, 4) || !mull__push_references(L, engine))
        return NULL;
    lua_rawgeti(L, -1, mull__call_index(call));
    mull__job *job = lua_touserdata(L, -1);
    lua_pop(L, 2);
    return job && job->call == call ? job : NULL;
}

void mull__cancel(mull_engine *engine, mull_call call, void *data)
{
    mull__lua_consumer *consumer = data;
    mull__job *job = job_of(consumer->engine, call);
    if (!job) {
        mull_done(engine, call, NULL);
        return;
    }
    job->cancelled = 1;
    if (job->running)
        return; /* it ends when it comes back */
    if (job->interrupt) {
        job->interrupt(job->outside); /* when that has ended, so does the call */
        return;
    }
    mull__engine_cancel(engine, job->timer);
    job->timer = NULL;
    end(job, LUA_OK);
}

/* ---- What waits for something outside ------------------------------------------------------- */

static mull__job *job_at_work(lua_State *L, const char *what)
{
    mull__job *job = mull__callbacks_of(L)->job;
    if (!job)
        luaL_error(L, "%s works in a handler only", what);
    if (job->cancelled)
        luaL_error(L, "%s: the call was ended: it timed out, or the engine stops", what);
    return job;
}

mull__job *mull__job_that_waits(lua_State *L, const char *what)
{
    mull__job *job = job_at_work(L, what);
    if (job->co != L)
        luaL_error(L, "%s works in the handler's own coroutine only", what);
    if (!lua_isyieldable(L))
        luaL_error(L, "%s can't work inside of a function that C called", what);
    mull__note_position(L);
    return job;
}

int mull__lua_may_wait(lua_State *L)
{
    mull__job_that_waits(L, luaL_checkstring(L, 1));
    return 0;
}

mull__lua_engine *mull__job_owner(const mull__job *job)
{
    return job->consumer->engine;
}

int64_t mull__job_time(const mull__job *job, int64_t wanted_ms, int *is_rest)
{
    int64_t timeout_ms = job->consumer->timeout_ms;
    int64_t left_ms = job->began_ms + timeout_ms - mull__engine_now(job->engine);
    *is_rest = timeout_ms != MULL_NEVER && (wanted_ms == MULL_NEVER || left_ms <= wanted_ms);
    if (!*is_rest)
        return wanted_ms;
    return left_ms > 0 ? left_ms : 1;
}

int mull__job_wait(lua_State *L, mull__job *job, void (*interrupt)(void *outside), void *outside,
                   lua_KFunction go_on)
{
    job->interrupt = interrupt;
    job->outside = outside;
    mull__engine_working(job->engine, 1);
    return lua_yieldk(L, 0, (lua_KContext)outside, go_on);
}

void mull__job_go_on(mull__job *job)
{
    job->interrupt = NULL;
    mull__engine_working(job->engine, -1);
    if (job->cancelled)
        end(job, LUA_OK);
    else
        resume(job, 0);
}

/* ---- mulligan.sleep, mulligan.send, a line of log -------------------------------------------- */

int mull__lua_sleep(lua_State *L)
{
    mull__job *job = mull__job_that_waits(L, "mulligan.sleep");
    int64_t sleep_ms = mull__read_duration(L, 1, "the time to sleep");
    job->sleep_ms = sleep_ms;
    job->asleep = 1;
    return lua_yield(L, 0);
}

int mull__lua_send(lua_State *L)
{
    mull__job *job = job_at_work(L, "mulligan.send");
    lua_settop(L, 3);
    mull__arena *arena = mull__arena_new(L);
    mull_message message;
    int64_t delay_ms;
    mull__read_outgoing(L, 1, arena, &message, &delay_ms);
    int status = mull_send(job->engine, job->call, &message, delay_ms);
    mull__arena_free(arena);
    if (status == MULL_ETOOBIG)
        return luaL_error(L, "mulligan.send: the message is larger than allowed, or all that the "
                             "call sends is, together");
    if (status != 0)
        return luaL_error(L, "mulligan.send: %s", mull_strerror(status));
    return 0;
}

int mull__lua_log(lua_State *L)
{
    mull__job *job = job_at_work(L, "the log");
    lua_pushfstring(L, "message %s, consumer %s: %s", job->work.message, job->work.consumer,
                    luaL_checkstring(L, 1));
    mull__callback_log(job->consumer->engine->host, job->consumer->engine, MULL_INFO,
                       lua_tostring(L, -1));
    return 0;
}
