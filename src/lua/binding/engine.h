/* engine.h: engines as Lua sees them.
 *
 *   userdata ── mull__lua_engine ── mull_engine
 *      └ anchors: log, event, policy, clock,
 *                 [consumer's address] = handler, [call's index] = job,
 *                 [request's address] = request
 */
#ifndef MULL__LUA_ENGINE_H
#define MULL__LUA_ENGINE_H

#include "callbacks.h"
#include "diagnostics.h"
#include "lua/values/scoped_memory.h"
#include "policy_module.h"
#include "runtime/stall_watchdog.h"

#include <pthread.h>
#include <stdatomic.h>

struct mull__lua_engine;

/* mull__request is a callback that is owed an answer. */
typedef struct mull__request mull__request;

/* mull__lua_consumer is what a handler is called with. */
typedef struct mull__lua_consumer {
    struct mull__lua_consumer *next;
    struct mull__lua_engine *engine;
    struct mull__worker_consumer *workers; /* who handles its messages; NULL: a function */
    mull__request *removal;                /* who hears when it is gone; NULL: nobody */
    int64_t timeout_ms;                    /* MULL_NEVER: none */
    char file[MULL__PLACE_SIZE];           /* where its handler begins, for the watchdog */
    int line;
    char name[];
} mull__lua_consumer;

/* mull__lua_engine lives until both the Lua value and the engine are gone. */
typedef struct mull__lua_engine {
    mull_engine *engine; /* NULL: closed */
    mull__callbacks *host;
    mull__lua_policy *policy;
    mull__diagnostics problems;
    mull__lua_consumer *consumers;
    pthread_mutex_t lines_lock;
    mull__diagnostics lines;   /* of log, under the lock; the number of each is its level */
    _Atomic(uintptr_t) thread; /* the one that uses it: see log.c */
    int lines_timer;           /* one is set to hand them out */
    int handing_out, looks;
    int real_clock;
    int is_main;   /* the program's own: the state is there for its handlers */
    int was_short; /* of memory, and one waits to be called again alone; not looked at since */
    int counts_patterns;                 /* in its handlers */
    uint32_t muted_kinds, muted_actions; /* a bit each: the event function isn't told of them */
    int stopped;
    int closing;
    int users; /* the Lua value, the engine */
    const struct mull__fetch_module *http;
    struct mull__fetcher *fetcher; /* NULL: no handler has made a request yet */
} mull__lua_engine;

/* mull__engine_at gives the open engine at `index`, or raises. */
mull__lua_engine *mull__engine_at(lua_State *L, int index);

/* mull__lua_engine_new is engine(options), its options checked by Lua: policy, grace_ms, log,
 * event, quiet_ms, stop_on_signals, reload_on_sighup, reload_on_change, count_patterns, seed,
 * clock. */
int mull__lua_engine_new(lua_State *L);

/* mull__engine_mute is mute(engine, names): its event function isn't told of events whose name, or
 * the action of whose verdict, is a key of `names`; they never get to Lua. */
int mull__engine_mute(lua_State *L);

/* mull__engine_make_main is main_engine(engine): its handlers have what memory is left now, and
 * where that is used up, it stops. It fails, with nil and why, where too little is left. */
int mull__engine_make_main(lua_State *L);

/* mull__open_engine makes the type, as mull__open_policy does. */
void mull__open_engine(lua_State *L);

/* mull__engine_answer gives what a method that can fail returns: true, or nil, why, a code and the
 * problems. */
int mull__engine_answer(lua_State *L, mull__lua_engine *engine, int status);

/* Fields of options that Lua has checked; 0 where there is none. One that is above `most` raises.
 */
int mull__flag_field(lua_State *L, int index, const char *field);
int64_t mull__integer_field(lua_State *L, int index, const char *field);
int64_t mull__bounded_field(lua_State *L, int index, const char *field, int64_t most);

/* ---- consumers.c ----------------------------------------------------------------------------- */

int mull__engine_consumer(lua_State *L);
int mull__engine_remove(lua_State *L);
int mull__engine_pause(lua_State *L);
int mull__engine_resume(lua_State *L);
int mull__engine_concurrency(lua_State *L);
int mull__engine_why_not(lua_State *L);

/* ---- snapshot.c ------------------------------------------------------------------------------ */

int mull__engine_snapshot_table(lua_State *L);

/* ---- messages.c: publish, depth, after ------------------------------------------------------- */

/* mull__request_push pushes a request, which keeps the function at `function` until it is answered
 * or forgotten. `what` begins the line of log, where that raises. */
mull__request *mull__request_push(lua_State *L, mull__lua_engine *engine, const char *what,
                                  int function);
void mull__request_forget(lua_State *L, const mull__request *asked);

/* mull__request_answer calls the function with true, or nil, why and a code; later where there is
 * no memory. */
void mull__request_answer(mull__request *asked, int status);

int mull__engine_publish(lua_State *L);
int mull__engine_depth(lua_State *L);
int mull__engine_later(lua_State *L);

/* ---- handler.c: Lua functions as handlers ---------------------------------------------------- */

/* mull__note_handler_position keeps where a consumer's handler, which is on top and is popped,
 * begins. */
void mull__note_handler_position(lua_State *L, mull__lua_consumer *consumer);

void mull__handle(mull_engine *engine, mull_call call, const mull_message *message, void *data);
void mull__cancel(mull_engine *engine, mull_call call, void *data);

/* mull__set_count_hook sets the hook that ends handlers on a coroutine, and on those that it will
 * make. Handlers' own have it; outside of a handler it does nothing. */
void mull__set_count_hook(lua_State *L);

/* mull__meter_patterns: from now on `string.find`, `match`, `gmatch` and `gsub` end at a handler's
 * timeout, in handlers of engines that count them. Elsewhere they are Lua's. May raise. */
void mull__meter_patterns(lua_State *L);

int mull__lua_sleep(lua_State *L);
int mull__lua_send(lua_State *L);

/* mull__lua_may_wait is may_wait(what): raises where a function of that name can't yield. */
int mull__lua_may_wait(lua_State *L);

/* mull__lua_log is log(text): a line of log about the message at work. */
int mull__lua_log(lua_State *L);

/* mull__job is a call of a Lua handler. mull__job_that_waits gives the one that runs, for a
 * function `what` that is about to yield; raises where it can't. */
typedef struct mull__job mull__job;
mull__job *mull__job_that_waits(lua_State *L, const char *what);
mull__lua_engine *mull__job_owner(const mull__job *job);

/* mull__job_time gives how long something may take that wants `wanted_ms` (MULL_NEVER: any time).
 * `is_rest`: that is all that the call has left. */
int64_t mull__job_time(const mull__job *job, int64_t wanted_ms, int *is_rest);

/* mull__job_wait yields, as the last thing that a C function does, until mull__job_go_on is called,
 * once, on a turn of the loop. Then go_on() is the rest of that function, whose context is
 * `outside`; it isn't called if the call was cancelled meanwhile, of which `interrupt` tells. */
int mull__job_wait(lua_State *L, mull__job *job, void (*interrupt)(void *outside), void *outside,
                   lua_KFunction go_on);
void mull__job_go_on(mull__job *job);

/* ---- process.c ------------------------------------------------------------------------------- */

/* mull__lua_process is process(words, input, timeout_ms, variables, file, whole): runs a program
 * while the handler waits, and gives its exit code, the signal that ended it or nil, its stdout and
 * its stderr. */
int mull__lua_process(lua_State *L);

/* mull__read_texts gives the list of texts at `index`, which its table keeps, with a NULL behind
 * them; nil has none. */
const char *const *mull__read_texts(lua_State *L, int index, mull__arena *arena);

/* ---- workers.c ------------------------------------------------------------------------------- */

/* mull__engine_workers is workers(engine, words, processes): a pool of worker processes, as light
 * userdata, which is there until the engine is closed. */
int mull__engine_workers(lua_State *L);

/* mull__engine_use_workers has a pool, which is at `index`, handle a consumer's messages.
 * MULL_ENOMEM.
 */
int mull__engine_use_workers(lua_State *L, int index, mull__lua_consumer *consumer,
                             mull_consumer_options *options);

/* mull__lua_find_program is find_program(name): true; or nil and why it can't be run. */
int mull__lua_find_program(lua_State *L);

/* ---- fetch.c --------------------------------------------------------------------------------- */

/* mull__lua_fetch is fetch(method, url, headers, body, timeout_ms, redirects): makes an HTTP
 * request while the handler waits, and gives the answer's status, the lines of its head, its body,
 * and Retry-After in seconds or nil; or nil, the type of the error, and its message. */
int mull__lua_fetch(lua_State *L);

/* mull__lua_has_http is has_http(): true; or nil and why there can't be requests. */
int mull__lua_has_http(lua_State *L);

/* mull__fetcher_drop closes the connections of an engine that is gone. */
void mull__fetcher_drop(mull__lua_engine *engine);

/* ---- log.c: lines of log, on their way into Lua ---------------------------------------------- */

/* mull__log_queue_line is a mull_log_fn whose data is a mull__lua_engine: it only keeps the line,
 * since it is called with the engine's lock held, and on any thread. */
void mull__log_queue_line(mull_level level, const char *text, void *data);

/* mull__log_deliver_lines gives what is kept to the log function. On the Lua state's thread. */
void mull__log_deliver_lines(mull__lua_engine *engine);

/* mull__log_poll_lines hands out lines of other threads every now and then, from now on. On the
 * real clock: a test's has turns, each of which hands out. */
void mull__log_poll_lines(mull__lua_engine *engine);

/* mull__log_set_thread notes that this thread is the Lua state's. */
void mull__log_set_thread(mull__lua_engine *engine);

/* ---- clock.c: a test's clock ----------------------------------------------------------------- */

/* mull__test_clock_use fills in the callbacks for the clock at `index`, or raises, and makes the
 * engine at `engine` one of those that the clock knows. */
void mull__test_clock_use(lua_State *L, int index, int engine, mull_clock *clock);

/* mull__test_clock_new is clock(wall_ms). */
int mull__test_clock_new(lua_State *L);
void mull__test_clock_open(lua_State *L);

#endif
