/* stall_watchdog.c: see stall_watchdog.h. Its thread runs a loop of its own, with a timer, and
 * takes signals as the engine's loop does: libuv tells each of them. */
#include "stall_watchdog.h"

#include "base/utf8.h"
#include "mulligan.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* What an engine takes. SIGHUP is taken so that it doesn't mean death once the engine is closed. */
static const int taken[] = {SIGTERM, SIGINT, SIGHUP};
enum { TAKEN = sizeof taken / sizeof taken[0] };

struct mull__watchdog {
    mull__watchdog_options options;
    /* Under the lock: */
    uv_mutex_t lock;
    mull__work *work; /* NULL: none that is known */
    int went_on;      /* the loop's thread did, since the last look */
    int resting;      /* until the first turn */
    int leaving;
    /* The thread's alone, once it runs: */
    uv_loop_t loop;
    uv_timer_t timer;
    uv_async_t quit;
    uv_signal_t signals[TAKEN];
    int stopping;      /* looks since it was asked to stop, or to leave, 0: it wasn't */
    int still;         /* looks since the loop's thread went on */
    mull__stall stall; /* what was told */
    int told, told_end;
    /* Never changed: */
    uv_thread_t thread;
};

/* ---- Looking, on its thread ------------------------------------------------------------------ */

static void copy(char to[MULL__PLACE_SIZE], const char *text)
{
    snprintf(to, MULL__PLACE_SIZE, "%s", text ? text : "");
    mull__utf8_repair(to, strlen(to)); /* its end may be cut off */
}

/* describe notes what holds the loop, under the lock. */
static void describe(mull__watchdog *w)
{
    static const mull__work unknown;
    const mull__work *work = w->work ? w->work : &unknown;
    int seen = work->file[0] != 0;
    w->stall.line = seen ? work->line : work->begins_at;
    copy(w->stall.consumer, work->consumer);
    copy(w->stall.message, work->message);
    copy(w->stall.file, seen ? work->file : work->begins_in);
}

static void tell(mull__watchdog *w, mull__stall_state state)
{
    w->stall.state = state;
    w->options.tell(&w->stall, w->options.data);
}

/* notice gives whether the loop's thread goes on, and describes what holds it where it doesn't. */
static int notice(mull__watchdog *w)
{
    uv_mutex_lock(&w->lock);
    int goes_on = w->resting || w->went_on;
    w->went_on = 0;
    if (w->leaving && !w->stopping)
        w->stopping = 1;
    if (!goes_on)
        describe(w);
    uv_mutex_unlock(&w->lock);
    return goes_on;
}

static void look(uv_timer_t *timer)
{
    mull__watchdog *w = timer->data;
    const mull__watchdog_options *o = &w->options;
    w->stopping += w->stopping > 0;
    if (notice(w)) {
        w->still = 0;
        if (w->told)
            tell(w, MULL__STALL_OVER);
        w->told = 0;
        return;
    }
    w->stall.ms = ++w->still * o->look_ms;
    if (w->stall.ms < o->held_ms)
        return;
    if (!w->told)
        tell(w, MULL__STALLED);
    w->told = 1;
    if (!w->told_end && (w->stopping - 1) * o->look_ms >= o->grace_ms) {
        w->told_end = 1;
        tell(w, MULL__STALL_PAST_GRACE);
    }
}

/* ---- Its loop -------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    mull__watchdog *w = handle->data;
    if (number != SIGHUP && !w->stopping)
        w->stopping = 1;
}

static void close_handle(uv_handle_t *handle, void *data)
{
    (void)data;
    uv_close(handle, NULL);
}

/* on_quit looks once more, so that what was told of is told to its end. From here on this thread
 * may not be the one that a signal without a handler kills. */
static void on_quit(uv_async_t *handle)
{
    mull__watchdog *w = handle->data;
    mull__watchdog_heartbeat(w);
    look(&w->timer);
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    uv_walk(handle->loop, close_handle, NULL);
}

static void run(void *data)
{
    mull__watchdog *w = data;
    uv_run(&w->loop, UV_RUN_DEFAULT);
}

static int open_handles(mull__watchdog *w)
{
    uv_timer_init(&w->loop, &w->timer);
    w->timer.data = w;
    w->quit.data = w;
    uint64_t look_ms = (uint64_t)w->options.look_ms;
    uv_timer_start(&w->timer, look, look_ms, look_ms);
    int problem = uv_async_init(&w->loop, &w->quit, on_quit);
    for (int i = 0; i < TAKEN && problem == 0; i++) {
        w->signals[i].data = w;
        problem = uv_signal_init(&w->loop, &w->signals[i]);
        if (problem == 0)
            problem = uv_signal_start(&w->signals[i], on_signal, taken[i]);
    }
    return problem;
}

/* start_thread starts it with all signals but its own blocked: they are the other threads'. */
static int start_thread(mull__watchdog *w)
{
    sigset_t others, before;
    sigfillset(&others);
    for (int i = 0; i < TAKEN; i++)
        sigdelset(&others, taken[i]);
    pthread_sigmask(SIG_SETMASK, &others, &before);
    int problem = uv_thread_create(&w->thread, run, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return problem;
}

static void free_memory(mull__watchdog *w)
{
    uv_loop_close(&w->loop);
    uv_mutex_destroy(&w->lock);
    free(w);
}

int mull__watchdog_new(mull__watchdog **out, const mull__watchdog_options *options)
{
    *out = NULL;
    mull__watchdog *w = calloc(1, sizeof *w);
    if (!w)
        return MULL_ENOMEM;
    w->options = *options;
    w->resting = 1;
    if (uv_mutex_init(&w->lock) != 0 || uv_loop_init(&w->loop) != 0) {
        free(w);
        return MULL_EIO;
    }
    if (open_handles(w) == 0 && start_thread(w) == 0) {
        *out = w;
        return MULL_OK;
    }
    uv_walk(&w->loop, close_handle, NULL);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    free_memory(w);
    return MULL_EIO;
}

void mull__watchdog_free(mull__watchdog *w)
{
    if (!w)
        return;
    uv_async_send(&w->quit);
    uv_thread_join(&w->thread);
    free_memory(w);
}

/* ---- From the loop's thread ------------------------------------------------------------------ */

void mull__watchdog_set_work(mull__watchdog *w, mull__work *work)
{
    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    w->work = work;
    w->went_on = 1;
    uv_mutex_unlock(&w->lock);
}

void mull__watchdog_set_line(mull__watchdog *w, const char *file, int line)
{
    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    if (w->work) {
        snprintf(w->work->file, sizeof w->work->file, "%s", file);
        w->work->line = line;
    }
    uv_mutex_unlock(&w->lock);
}

static void turned(mull__watchdog *w, int leaving)
{
    if (!w)
        return;
    uv_mutex_lock(&w->lock);
    w->resting = 0;
    w->leaving |= leaving;
    w->went_on = 1;
    uv_mutex_unlock(&w->lock);
}

void mull__watchdog_heartbeat(mull__watchdog *w)
{
    turned(w, 0);
}

void mull__watchdog_exiting(mull__watchdog *w)
{
    turned(w, 1);
}
