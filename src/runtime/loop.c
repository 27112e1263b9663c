/* loop.c: the life of an engine, its loop, and what one turn of it does.
 *
 * Transports, timers and other threads only post what happened to the engine's state. Each turn of
 * the loop drains that after it has waited, which it doesn't while something is posted:
 *
 *   answers that slots gave ── ended calls ── events ── stop? ── calls that are admitted (from the
 *   ended calls on again, while anything was posted) ── credit ── are the queues empty? ── has it
 *   stopped? ── may it close?
 */
#include "admission.h"
#include "base/struct_compat.h"
#include "base/system_limits.h"
#include "calls.h"
#include "check.h"
#include "companions.h"
#include "consumers.h"
#include "counting.h"
#include "delivery.h"
#include "engine_control.h"
#include "engine_state.h"
#include "events.h"
#include "limit_events.h"
#include "limiting.h"
#include "port.h"
#include "questions.h"
#include "reload.h"
#include "setup.h"
#include "stop.h"
#include "stop_when_empty.h"
#include "timers.h"
#include "turn.h"

enum { QUIET_MS = 10000 };

/* ---- Draining -------------------------------------------------------------------------------- */

static void close_handles(mull_engine *engine);

static void drain_once(mull_engine *engine)
{
    engine->dirty = 0;
    mull__limits_refresh(engine);
    for (mull__delivery *d; (d = mull__calls_take_ended(engine));)
        mull__delivery_ended(d);
    mull__policy_events_deliver(engine);
    mull__event_transports_up(engine);
    mull__consumer_events_deliver(engine);
    if (mull__engine_stop_asked(engine))
        mull__stop_begin(engine);
    for (mull__delivery *d; (d = mull__admission_next(engine));)
        mull__delivery_turn(d);
}

static void flush(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->asked && port->state == MULL__PORT_OPEN) {
            port->asked = 0;
            port->ops->flush(port->self);
        }
}

static void drain(mull_engine *engine)
{
    if (engine->drains || !engine->dirty)
        return;
    atomic_store_explicit(&engine->drains, mull__this_thread(), memory_order_relaxed);
    mull__answers_take(engine); /* what is answered from within a slot meanwhile, next turn */
    while (engine->dirty)
        drain_once(engine);
    mull__consumers_end(engine);
    mull__admission_credit(engine);
    mull__until_empty_check(engine);
    mull__stop_check(engine);
    flush(engine); /* who was told of the stop may have published */
    engine->dirty |= engine->answers.count > 0;
    if (!engine->dirty) /* who was told of the stop may have posted more, for the next turn */
        uv_idle_stop(&engine->posted);
    atomic_store_explicit(&engine->drains, 0, memory_order_relaxed);
    if (mull__setup_teardown(engine))
        close_handles(engine);
}

static void after_waiting(uv_check_t *handle)
{
    mull_engine *engine = handle->data;
    engine->waits++;
    drain(engine);
}

static void on_wake(uv_async_t *handle)
{
    mull_engine *engine = handle->data;
    atomic_store(&engine->woken, 0);
    mull__engine_mark_posted(engine);
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
        engine->options.grace_ms = MULL__GRACE_MS;
    if (engine->options.quiet_ms == 0)
        engine->options.quiet_ms = QUIET_MS;
    engine->manual = options->clock != NULL;
    if (options->clock)
        engine->clock = *options->clock;
    mull__rand_init(&engine->rand, options->seed);
    mull__list_init(&engine->schemes);
    mull__list_init(&engine->ports);
    mull__list_init(&engine->consumers);
    mull__list_init(&engine->companions);
    mull__list_init(&engine->gone);
    mull__list_init(&engine->deliveries);
    mull__list_init(&engine->questions);
    mull__list_init(&engine->answers);
    mull__list_init(&engine->inbox);
    mull__list_init(&engine->policy_events);
    mull__list_init(&engine->consumer_events);
    engine->counts.size = sizeof engine->counts;
    int status = mull__reload_new(engine);
    if (status == 0)
        status = mull_decider_new(&engine->decider, options->policy);
    if (status == 0)
        mull__decider_on_event(engine->decider, mull__event_from_decision, engine);
    return status;
}

/* adopt takes in an open handle. The wake handle alone keeps the loop alive. */
static void adopt(mull_engine *engine, void *opened)
{
    uv_handle_t *handle = opened;
    handle->data = engine;
    if (opened != &engine->wake)
        uv_unref(handle);
    engine->handles[engine->handle_count++] = handle;
}

static int open_signal(mull_engine *engine, uv_signal_t *handle, int number)
{
    if (uv_signal_init(engine->loop, handle) != 0)
        return MULL_EIO;
    adopt(engine, handle);
    return uv_signal_start(handle, on_signal, number) == 0 ? 0 : MULL_EIO;
}

/* open_handles opens those that can fail last. */
static int open_handles(mull_engine *engine)
{
    const mull_engine_options *options = &engine->options;
    uv_timer_init(engine->loop, &engine->alarm);
    uv_check_init(engine->loop, &engine->after);
    uv_check_start(&engine->after, after_waiting);
    uv_idle_init(engine->loop, &engine->posted);
    adopt(engine, &engine->wake);
    adopt(engine, &engine->alarm);
    adopt(engine, &engine->after);
    adopt(engine, &engine->posted);
    int status = 0;
    if (options->stop_on_signals)
        status = open_signal(engine, &engine->signals[0], SIGTERM);
    if (options->stop_on_signals && status == 0)
        status = open_signal(engine, &engine->signals[1], SIGINT);
    if (options->reload_on_sighup && status == 0)
        status = open_signal(engine, &engine->signals[2], SIGHUP);
    return status;
}

static void free_memory(mull_engine *engine)
{
    mull_allocator allocator = engine->allocator;
    mull__policy_events_deliver(engine); /* nobody, by now */
    mull__consumer_events_deliver(engine);
    if (engine->decider)
        mull_decider_free(engine->decider);
    mull__reload_free(engine);
    while (engine->timers)
        mull__engine_cancel(engine, engine->timers);
    mull__free(&allocator, engine->calls);
    mull__tickets_free(engine);
    mull__rule_tallies_free(engine);
    uv_mutex_destroy(&engine->mutex);
    uv_mutex_destroy(&engine->log_mutex);
    mull__free(&allocator, engine);
}

/* open_loop prepares the loop and the one handle without which none can be closed. */
static int open_loop(mull_engine *engine)
{
    enum { OF_FIRST_LOOP = 6 }; /* descriptors: where it has less, libuv aborts */
    char why[256];
    engine->loop = engine->options.loop ? engine->options.loop : &engine->own_loop;
    int own = engine->loop == &engine->own_loop;
    if (own && mull__descriptors_missing(OF_FIRST_LOOP, why, sizeof why))
        return mull__engine_problem(engine, MULL_EIO, "there is no loop for the engine: %s", why);
    if (own && uv_loop_init(engine->loop) != 0)
        return MULL_EIO;
    if (uv_async_init(engine->loop, &engine->wake, on_wake) == 0)
        return 0;
    if (own)
        uv_loop_close(engine->loop);
    return MULL_EIO;
}

/* refuse_options says what is wrong with an engine's options, if anything. */
static int refuse_options(const mull_engine_options *options)
{
    const mull_clock *clock = options->clock;
    const char *why = !options->policy        ? "an engine's `policy` is required"
                      : options->grace_ms < 0 ? "an engine's `grace_ms` is below 0"
                      : options->quiet_ms < 0 ? "an engine's `quiet_ms` is below 0"
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
    if (!mull__struct_copy_in(&options, sizeof options, MULL__ENGINE_OPTIONS_LEAST, given) ||
        refuse_options(&options) != 0)
        return MULL_EINVAL;
    mull_allocator allocator = mull__allocator_or_default(options.allocator);
    mull_engine *engine = mull__zalloc(&allocator, 1, sizeof *engine);
    if (!engine)
        return MULL_ENOMEM;
    engine->allocator = allocator;
    if (uv_mutex_init(&engine->mutex) != 0 || uv_mutex_init(&engine->log_mutex) != 0) {
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
    status = open_handles(engine);
    if (status != 0)
        mull_engine_close(engine, NULL, NULL);
    else
        *out = engine;
    return status;
}

/* ---- Starting and running -------------------------------------------------------------------- */

static int subscribe_all(mull_engine *engine)
{
    int status = 0;
    for (mull__consumer *c = NULL; status == 0 && (c = mull__next_consumer(engine, c));)
        if (!c->subscribed && !c->reader && c->state == MULL__CONSUMER_WORKS)
            status = mull__consumer_subscribe(c);
    return status;
}

int mull_engine_start(mull_engine *engine)
{
    if (!engine)
        return MULL_EINVAL;
    if (engine->state != MULL__NEW || engine->closing)
        return MULL_ESTATE;
    if (!mull__next_port(engine, NULL) && !engine->for_policy)
        return mull__engine_problem(
            engine, MULL_EINVAL,
            "the engine has no transport, so it can neither take nor send messages; add one before "
            "the start, and a consumer for each queue that it is to read");
    int status = mull__check_begin(engine);
    if (status == 0)
        status = subscribe_all(engine);
    if (status != 0) {
        mull__check_end(engine);
        return status;
    }
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->health == MULL_DOWN && !port->told) {
            mull__engine_log(engine, MULL_INFO, "transport %s isn't up yet; it is waited for",
                             port->name);
            port->told = 1; /* and so is the end of the wait */
        }
    if (!mull__next_consumer(engine, NULL) && !engine->for_policy)
        mull__engine_log(engine, MULL_INFO, "there is no consumer, so no messages are taken");
    engine->state = MULL__RUNNING;
    engine->active_ms =
        mull__engine_now(engine); /* before that it wasn't quiet, but nobody looked */
    mull__policy_event_at_start(engine);
    mull__companions_start(engine);
    mull__reload_start(engine);
    mull__engine_mark_posted(engine);
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

struct uv_loop_s *mull__engine_loop(mull_engine *engine)
{
    return engine->loop;
}

void mull__engine_for_policy(mull_engine *engine)
{
    engine->for_policy = 1;
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
        engine->stop_reported)
        return MULL_ESTATE;
    int status = engine->state == MULL__NEW ? mull_engine_start(engine) : 0;
    if (status != 0)
        return status;
    engine->in_loop++;
    while (engine->closing ? engine->closing != MULL__CLOSE_DONE : !engine->stop_reported)
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

/* turn is one turn of our own loop: by a test's clock it waits for transports at work alone. */
static void turn(mull_engine *engine)
{
    if (engine->manual)
        mull__timers_fire(engine);
    drain(engine);
    int waits = !engine->dirty && (!engine->manual || engine->working > 0);
    uv_run(engine->loop, waits ? UV_RUN_ONCE : UV_RUN_NOWAIT);
}

int64_t mull_engine_turn(mull_engine *engine)
{
    if (!engine || !engine->manual || engine->in_loop)
        return INT64_MAX;
    engine->in_loop++;
    do {
        turn(engine);
    } while (engine->closing != MULL__CLOSE_DONE && !quiet(engine));
    int64_t next = mull__timers_next(engine);
    return leave_loop(engine) ? INT64_MAX : next;
}

int mull_engine_counts(const mull_engine *engine, mull_counts *counts)
{
    int given = engine && mull__struct_copy_out(counts, MULL__COUNTS_LEAST, &engine->counts,
                                                sizeof engine->counts);
    return given ? 0 : MULL_EINVAL;
}

/* ---- Closing --------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    mull_engine *engine = handle->data;
    if (--engine->handle_count > 0)
        return;
    engine->closing = MULL__CLOSE_DONE;
    if (engine->loop == &engine->own_loop)
        uv_stop(engine->loop);
    if (engine->in_loop == 0) {
        engine->in_loop = 1; /* on the embedder's loop: nothing of ours is on the stack */
        leave_loop(engine);
    }
}

static void close_handles(mull_engine *engine)
{
    engine->closing = MULL__CLOSE_HANDLES;
    for (int i = 0; i < engine->handle_count; i++)
        uv_close(engine->handles[i], on_handle_closed);
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
    mull__stop_end_grace(engine);
    mull__engine_mark_posted(engine);
    if (engine->loop != &engine->own_loop || engine->in_loop || engine->drains)
        return;
    engine->in_loop++;
    while (engine->closing != MULL__CLOSE_DONE) {
        turn(engine);
        /* A test's clock stands still: all that can come is the end of a call on another thread. */
        if (engine->manual && quiet(engine)) {
            mull__stop_end_drain(engine);
            uv_sleep(1);
        }
    }
    leave_loop(engine);
}
