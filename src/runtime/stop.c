/* stop.c: how an engine stops.
 *
 *   mull_stop ── takes nothing new, gives back what waits, lets handlers work for the grace time
 *             ── then cuts them off and gives their messages back, uncounted
 *             ── then no longer waits for transports that don't answer
 *   a transport is broken for good ── the same, but what it handed out is abandoned at once
 *   handlers have no memory left   ── the same as mull_stop, with a status
 *   stopped   ── every message is settled, detached calls may still be at work
 *   close     ── waits for those, closes the transports, then its handles, then it is gone */
#include "stop.h"

#include "admission.h"
#include "check.h"
#include "companions.h"
#include "delivery.h"
#include "engine_control.h"
#include "port.h"
#include "reload.h"
#include "settlement.h"
#include "timers.h"

/* for_each calls `visit` with each delivery, which may take itself out of the list. */
static void for_each(mull_engine *engine, void (*visit)(mull__delivery *d))
{
    mull__delivery *d = mull__next_delivery(engine, NULL);
    while (d) {
        mull__delivery *next = mull__next_delivery(engine, d);
        visit(d);
        d = next;
    }
}

void mull__stop_end_drain(mull_engine *engine)
{
    engine->drain_over = 1;
    for_each(engine, mull__settlement_give_up);
    mull__engine_mark_posted(engine);
}

static void on_drain_over(void *data)
{
    mull__stop_end_drain(data);
}

static void on_grace_over(void *data)
{
    mull_engine *engine = data;
    engine->grace_over = 1;
    if (engine->active_calls > 0)
        mull__engine_log(engine, MULL_WARNING,
                         "the time to stop is over: %u call(s) cut off, their messages are given "
                         "back, uncounted",
                         engine->active_calls);
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        mull__deferred_try(port);
    for_each(engine, mull__delivery_detach);
    for_each(engine, mull__settlement_retry_now);
    mull__timer_set(engine, &engine->grace_timer, MULL__DRAIN_MS, on_drain_over, engine);
    mull__engine_mark_posted(engine);
}

void mull__stop_begin(mull_engine *engine)
{
    if (engine->state == MULL__NEW)
        engine->state = MULL__STOPPED;
    if (engine->state != MULL__RUNNING)
        return;
    engine->state = MULL__STOPPING;
    mull__reload_stop(engine);
    mull__engine_cancel(engine, &engine->depths.timer);
    mull__admission_credit(engine);
    mull__companions_stop(engine);
    for_each(engine, mull__delivery_give_back);
    if (engine->active_calls > 0)
        mull__engine_log(
            engine, MULL_INFO,
            "stopping: waiting up to %lld ms for %u call(s) to end; what waited is given "
            "back, uncounted",
            (long long)engine->options.grace_ms, engine->active_calls);
    else
        mull__engine_log(engine, MULL_INFO, "stopping");
    mull__timer_set(engine, &engine->grace_timer, engine->options.grace_ms, on_grace_over, engine);
}

/* Once the grace is over, transports have their time to answer, which a close doesn't begin anew.
 */
void mull__stop_end_grace(mull_engine *engine)
{
    if (engine->grace_over && engine->grace_timer.set)
        for_each(engine, mull__settlement_retry_now);
    else if (engine->state == MULL__STOPPING || engine->state == MULL__STOPPED)
        mull__timer_set(engine, &engine->grace_timer, 0, on_grace_over, engine);
}

void mull__stop_out_of_memory(mull_engine *engine, const char *why)
{
    if (engine->state != MULL__RUNNING || mull__engine_stop_asked(engine))
        return;
    mull__engine_log(engine, MULL_ERROR_LEVEL, "%s", why);
    engine->status = mull__engine_problem(engine, MULL_ENOMEM, "%s", why);
    mull_stop(engine);
}

void mull__stop_check(mull_engine *engine)
{
    /* While a transport is at work there may be more on its way here. */
    if (engine->state == MULL__STOPPING && mull__all_settled(engine) &&
        (engine->working == 0 || engine->grace_over)) {
        engine->state = MULL__STOPPED;
        engine->grace_over = 1;
        if (!engine->closing) /* what a cut-off handler still holds up ends with the drain */
            mull__engine_cancel(engine, &engine->grace_timer);
        for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
            if (port->abandoned > 0)
                mull__engine_log(engine, MULL_WARNING,
                                 "transport %s: %u message(s) that it handed out could not be "
                                 "settled; they will be handed out again",
                                 port->name, port->abandoned);
        mull__engine_log(engine, MULL_INFO, "stopped");
    }
    if (engine->state != MULL__STOPPED || engine->stop_reported)
        return;
    engine->stop_reported = 1;
    mull__check_end(engine);
    if (engine->loop == &engine->own_loop)
        uv_stop(engine->loop);
    if (engine->options.stopped)
        engine->options.stopped(engine->options.data);
}
