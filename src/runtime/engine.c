/* engine.c: the life of an engine, its loop, and what one turn of it does.
 *
 * Events come in from transports, timers and other threads, and only note what changed; the pump
 * runs once before and once after the loop waits, and does what follows from it:
 *
 *   pump:  read the inbox ── open the gate ── (again, while anything moved) ── credit ── ends
 */
#include "engine.h"

#include "base/clock.h"
#include "base/given.h"
#include "base/utf8.h"
#include "reload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GRACE_MS = 10000 };

/* ---- Small services -------------------------------------------------------------------------- */

static int64_t real_monotonic(void *data)
{
    (void)data;
    return mull__monotonic_ms();
}

static int64_t real_wall(void *data)
{
    (void)data;
    return mull__wall_ms();
}

int64_t mull__engine_now(const mull_engine *engine)
{
    return engine->clock.monotonic_ms(engine->clock.data);
}

int64_t mull__engine_wall(const mull_engine *engine)
{
    return engine->clock.wall_ms(engine->clock.data);
}

mull_timer *mull__engine_after(mull_engine *engine, int64_t delay_ms, void (*fire)(void *data),
                               void *data)
{
    return mull__timer_add(engine, delay_ms, fire, data);
}

void mull__engine_cancel(mull_engine *engine, mull_timer *timer)
{
    mull__timer_cancel(engine, timer);
}

int64_t mull__engine_due(const mull_engine *engine, int64_t delay_ms)
{
    int64_t now = mull__engine_wall(engine);
    if (delay_ms <= 0)
        return 0;
    return delay_ms > INT64_MAX - now ? INT64_MAX : now + delay_ms;
}

void mull__engine_id(mull_engine *engine, char id[33])
{
    uv_mutex_lock(&engine->mutex);
    mull__rand_id(&engine->rand, id);
    uv_mutex_unlock(&engine->mutex);
}

void mull__engine_log(mull_engine *engine, mull_level level, const char *format, ...)
{
    if (!engine->options.log)
        return;
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    mull__utf8_mend(line, strlen(line)); /* its end may be cut off */
    uv_mutex_lock(&engine->log_mutex);
    engine->options.log(level, line, engine->options.data);
    uv_mutex_unlock(&engine->log_mutex);
}

int mull__engine_problem(mull_engine *engine, int code, const char *file, int line,
                         const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (engine->options.problem)
        engine->options.problem(file, line, text, engine->options.data);
    return code;
}

uintptr_t mull__this_thread(void)
{
    return (uintptr_t)uv_thread_self();
}

void mull__engine_touch(mull_engine *engine)
{
    engine->dirty = 1;
}

/* mull__engine_wake: what the pump calls wakes nobody, since the pump looks again before it ends.
 */
void mull__engine_wake(mull_engine *engine)
{
    if (atomic_load_explicit(&engine->pumps, memory_order_relaxed) == mull__this_thread()) {
        mull__engine_touch(engine);
        return;
    }
    atomic_store(&engine->woken, 1);
    uv_async_send(&engine->wake);
}

struct mull_subscription *mull__next_consumer(mull_engine *engine, struct mull_subscription *after)
{
    mull__link *link = after ? mull__list_after(&engine->consumers, &after->link)
                             : mull__list_first(&engine->consumers);
    return link ? MULL__ENTRY(link, struct mull_subscription, link) : NULL;
}

mull_port *mull__next_port(mull_engine *engine, mull_port *after)
{
    mull__link *link =
        after ? mull__list_after(&engine->ports, &after->link) : mull__list_first(&engine->ports);
    return link ? MULL__ENTRY(link, mull_port, link) : NULL;
}

mull_port *mull__port_named(mull_engine *engine, const char *name)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (strcmp(port->name, name) == 0)
            return port;
    return NULL;
}

/* ---- The pump -------------------------------------------------------------------------------- */

int mull__engine_stop_asked(mull_engine *engine)
{
    uv_mutex_lock(&engine->mutex);
    int asked = engine->stop_asked;
    uv_mutex_unlock(&engine->mutex);
    return asked;
}

void mull__engine_pump(mull_engine *engine)
{
    if (engine->pumping || !engine->dirty)
        return;
    engine->pumping = 1;
    atomic_store_explicit(&engine->pumps, mull__this_thread(), memory_order_relaxed);
    while (engine->dirty) {
        engine->dirty = 0;
        mull__inbox_read(engine);
        mull__news_tell(engine);
        if (mull__engine_stop_asked(engine))
            mull__stop_begin(engine);
        mull__gate_open(engine);
    }
    mull__gate_credit(engine);
    mull__empty_look(engine);
    mull__stop_look(engine);
    atomic_store_explicit(&engine->pumps, 0, memory_order_relaxed);
    engine->pumping = 0;
    mull__close_look(engine);
}

static void before_waiting(uv_prepare_t *handle)
{
    mull__engine_pump(handle->data);
}

static void after_waiting(uv_check_t *handle)
{
    mull__engine_pump(handle->data);
}

static void on_wake(uv_async_t *handle)
{
    mull_engine *engine = handle->data;
    atomic_store(&engine->woken, 0);
    mull__engine_touch(engine);
}

static void on_signal(uv_signal_t *handle, int number)
{
    if (number == SIGHUP)
        mull__reload_ask(handle->data);
    else
        mull_stop(handle->data);
}

/* ---- Making one ------------------------------------------------------------------------------ */

static int take_options(mull_engine *engine, const mull_engine_options *options)
{
    engine->options = *options;
    if (engine->options.grace_ms == 0)
        engine->options.grace_ms = GRACE_MS;
    engine->manual = options->clock != NULL;
    engine->clock =
        options->clock ? *options->clock : (mull_clock){real_monotonic, real_wall, NULL};
    mull__rand_init(&engine->rand, options->seed);
    mull__list_init(&engine->schemes);
    mull__list_init(&engine->ports);
    mull__list_init(&engine->consumers);
    mull__list_init(&engine->inbox);
    mull__list_init(&engine->news);
    engine->counts.size = sizeof engine->counts;
    for (int timers = 0; timers < 3; timers++)
        if (mull__timer_reserve(engine) != 0)
            return MULL_ENOMEM;
    int status = mull__reload_new(engine);
    if (status != 0)
        return status;
    status = mull_decider_new(&engine->decider, options->policy);
    if (status == 0)
        mull__tell_open(engine);
    return status;
}

static void open_handles(mull_engine *engine)
{
    uv_loop_t *loop = engine->loop;
    uv_timer_init(loop, &engine->alarm);
    uv_prepare_init(loop, &engine->before);
    uv_check_init(loop, &engine->after);
    engine->alarm.data = engine->before.data = engine->after.data = engine;
    uv_prepare_start(&engine->before, before_waiting);
    uv_check_start(&engine->after, after_waiting);
    /* The wake handle alone keeps the loop alive. */
    uv_unref((uv_handle_t *)&engine->alarm);
    uv_unref((uv_handle_t *)&engine->before);
    uv_unref((uv_handle_t *)&engine->after);
    engine->handles = 4;
}

static int open_signal(mull_engine *engine, int number)
{
    uv_signal_t *handle = &engine->signals[engine->signal_count];
    if (uv_signal_init(engine->loop, handle) != 0)
        return MULL_EIO;
    engine->signal_count++;
    engine->handles++;
    handle->data = engine;
    uv_unref((uv_handle_t *)handle);
    return uv_signal_start(handle, on_signal, number) == 0 ? 0 : MULL_EIO;
}

static int open_signals(mull_engine *engine)
{
    int status = 0;
    if (engine->options.stop_on_signals)
        status = open_signal(engine, SIGTERM);
    if (engine->options.stop_on_signals && status == 0)
        status = open_signal(engine, SIGINT);
    if (engine->options.reload_on_sighup && status == 0)
        status = open_signal(engine, SIGHUP);
    return status;
}

static void free_memory(mull_engine *engine)
{
    mull_allocator allocator = engine->allocator;
    if (engine->decider)
        mull_decider_free(engine->decider);
    mull__reload_free(engine);
    mull__schemes_free(engine);
    mull__timers_free(engine);
    mull__calls_free(engine);
    mull__tell_close(engine);
    uv_mutex_destroy(&engine->mutex);
    uv_mutex_destroy(&engine->log_mutex);
    mull__free(&allocator, engine);
}

/* open_loop prepares the loop and the one handle that can fail. */
static int open_loop(mull_engine *engine)
{
    engine->loop = engine->options.loop;
    if (!engine->loop) {
        if (uv_loop_init(&engine->own_loop) != 0)
            return MULL_EIO;
        engine->loop = &engine->own_loop;
    }
    engine->wake.data = engine;
    if (uv_async_init(engine->loop, &engine->wake, on_wake) == 0)
        return 0;
    if (engine->loop == &engine->own_loop)
        uv_loop_close(&engine->own_loop);
    return MULL_EIO;
}

static int init_mutexes(mull_engine *engine)
{
    if (uv_mutex_init(&engine->mutex) != 0)
        return -1;
    if (uv_mutex_init(&engine->log_mutex) == 0)
        return 0;
    uv_mutex_destroy(&engine->mutex);
    return -1;
}

/* refuse_options says what is wrong with an engine's options, if anything. */
static int refuse_options(const mull_engine_options *options)
{
    const mull_clock *clock = options->clock;
    const char *why = !options->policy        ? "an engine's `policy` is required"
                      : options->grace_ms < 0 ? "an engine's `grace_ms` is below 0"
                      : clock && (!clock->monotonic_ms || !clock->wall_ms)
                          ? "a clock's `monotonic_ms` and `wall_ms` are both required"
                          : NULL;
    if (why && options->problem)
        options->problem(NULL, 0, why, options->data);
    return why ? MULL_EINVAL : 0;
}

int mull_engine_new(mull_engine **out, const mull_engine_options *given)
{
    if (!out)
        return MULL_EINVAL;
    *out = NULL;
    mull_engine_options options;
    if (!mull__struct_take(&options, sizeof options, MULL__ENGINE_OPTIONS_LEAST, given) ||
        refuse_options(&options) != 0)
        return MULL_EINVAL;
    mull_allocator allocator = mull__allocator_or_default(options.allocator);
    mull_engine *engine = mull__zalloc(&allocator, 1, sizeof *engine);
    if (!engine)
        return MULL_ENOMEM;
    engine->allocator = allocator;
    if (init_mutexes(engine) != 0) {
        mull__free(&allocator, engine);
        return MULL_EIO;
    }
    int status = take_options(engine, &options);
    if (status == 0)
        status = open_loop(engine);
    if (status != 0) {
        free_memory(engine);
        return status;
    }
    open_handles(engine);
    status = open_signals(engine);
    if (status != 0) {
        mull_engine_close(engine, NULL, NULL);
        return status;
    }
    *out = engine;
    return 0;
}

/* ---- Starting and running -------------------------------------------------------------------- */

static int subscribe_all(mull_engine *engine)
{
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->subscribed)
            continue;
        int status = mull__refusal(c->port->ops->subscribe(c->port->self, c, c->queue));
        if (status != 0)
            return mull__engine_problem(engine, status, NULL, 0,
                                        "consumer '%s' can't read the queue '%s': %s", c->name,
                                        c->queue, mull_strerror(status));
        c->subscribed = 1;
    }
    return 0;
}

int mull_engine_start(mull_engine *engine)
{
    if (!engine)
        return MULL_EINVAL;
    if (engine->state != MULL__NEW || engine->closing)
        return MULL_ESTATE;
    int status = mull__check_begin(engine);
    if (status != 0)
        return status;
    status = subscribe_all(engine);
    if (status != 0) {
        mull__check_end(engine);
        return status;
    }
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        mull__port_begin_holding(port);
    engine->state = MULL__RUNNING;
    mull__reload_start(engine);
    mull__engine_touch(engine);
    return 0;
}

/* leave_loop frees an engine that was closed inside of a uv_run of ours. 1: it is gone. */
static int leave_loop(mull_engine *engine)
{
    engine->in_loop--;
    if (engine->closing != MULL__CLOSE_DONE || engine->in_loop > 0)
        return 0;
    void (*closed)(void *data) = engine->closed;
    void *data = engine->closed_data;
    if (engine->loop == &engine->own_loop)
        uv_loop_close(&engine->own_loop);
    free_memory(engine);
    if (closed)
        closed(data);
    return 1;
}

int mull__engine_started(const mull_engine *engine)
{
    return engine->state != MULL__NEW;
}

int mull_engine_run(mull_engine *engine)
{
    if (!engine)
        return MULL_EINVAL;
    if (engine->loop != &engine->own_loop || engine->in_loop || engine->manual ||
        engine->told_stopped)
        return MULL_ESTATE;
    int status = engine->state == MULL__NEW ? mull_engine_start(engine) : 0;
    if (status != 0)
        return status;
    engine->in_loop++;
    while (engine->closing ? engine->closing != MULL__CLOSE_DONE : !engine->told_stopped)
        uv_run(engine->loop, UV_RUN_DEFAULT);
    status = engine->status;
    leave_loop(engine);
    return status;
}

int mull_engine_status(const mull_engine *engine)
{
    return engine ? engine->status : MULL_EINVAL;
}

/* quiet says whether nothing is open but what only time brings. */
static int quiet(mull_engine *engine)
{
    return !engine->dirty && !atomic_load(&engine->woken) && engine->working == 0 &&
           mull__timers_next(engine) > mull__engine_now(engine);
}

int64_t mull_engine_turn(mull_engine *engine)
{
    if (!engine || !engine->manual || engine->in_loop)
        return INT64_MAX;
    engine->in_loop++;
    do {
        mull__timers_fire(engine);
        mull__engine_pump(engine);
        int waits = engine->working > 0 && !engine->dirty;
        if (engine->closing != MULL__CLOSE_DONE)
            uv_run(engine->loop, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
    } while (engine->closing != MULL__CLOSE_DONE && !quiet(engine));
    int64_t next = engine->closing == MULL__CLOSE_DONE ? INT64_MAX : mull__timers_next(engine);
    return leave_loop(engine) ? INT64_MAX : next;
}

int mull_engine_counts(const mull_engine *engine, mull_counts *counts)
{
    if (!engine ||
        !mull__struct_give(counts, MULL__COUNTS_LEAST, &engine->counts, sizeof engine->counts))
        return MULL_EINVAL;
    return 0;
}

/* ---- Closing --------------------------------------------------------------------------------- */

void mull__engine_handle_closed(mull_engine *engine)
{
    if (--engine->handles > 0)
        return;
    engine->closing = MULL__CLOSE_DONE;
    if (engine->loop == &engine->own_loop)
        uv_stop(engine->loop);
    if (engine->in_loop == 0) {
        engine->in_loop = 1; /* on the embedder's loop: nothing of ours is on the stack */
        leave_loop(engine);
    }
}

static void on_handle_closed(uv_handle_t *handle)
{
    mull__engine_handle_closed(handle->data);
}

void mull__engine_close_handles(mull_engine *engine)
{
    engine->closing = MULL__CLOSE_HANDLES;
    uv_close((uv_handle_t *)&engine->wake, on_handle_closed);
    uv_close((uv_handle_t *)&engine->alarm, on_handle_closed);
    uv_close((uv_handle_t *)&engine->before, on_handle_closed);
    uv_close((uv_handle_t *)&engine->after, on_handle_closed);
    for (int i = 0; i < engine->signal_count; i++)
        uv_close((uv_handle_t *)&engine->signals[i], on_handle_closed);
}

void mull_engine_close(mull_engine *engine, void (*closed)(void *data), void *data)
{
    if (!engine || engine->closing)
        return;
    engine->closing = MULL__CLOSE_ASKED;
    engine->closed = closed;
    engine->closed_data = data;
    engine->options.grace_ms = 0;
    mull_stop(engine);
    mull__stop_now(engine);
    mull__engine_touch(engine);
    if (engine->loop != &engine->own_loop || engine->in_loop || engine->pumping)
        return;
    engine->in_loop++;
    while (engine->closing != MULL__CLOSE_DONE) {
        if (engine->manual)
            mull__timers_fire(engine);
        mull__engine_pump(engine);
        int waits = !engine->dirty && (!engine->manual || engine->working > 0);
        uv_run(engine->loop, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
        /* A test's clock stands still: all that can come is the end of a call on another thread. */
        if (engine->manual && quiet(engine))
            uv_sleep(1);
    }
    leave_loop(engine);
}
