/* stop.c: how an engine ends.
 *
 *   mull_stop ── takes nothing new, gives back what waits, lets handlers work for the grace time
 *             ── then cuts them off and gives their messages back, uncounted
 *   a transport is broken for good ── the same; but what it handed out is abandoned at once
 *   stopped   ── every message is settled; handlers that were cut off may still be at work
 *   close     ── waits for those, closes the transports, then its handles, then it is gone
 */
#include "engine.h"

#include "reload.h"

enum { EMPTY_LOOK_MS = 50, EMPTY_LOOK_MAX_MS = 60000 };

/* all_settled: nothing that was delivered is left to do at a broker. */
static int all_settled(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));) {
        if (port->strays && !engine->grace_over)
            return 0;
        for (mull__link *link = mull__list_first(&port->flows); link;
             link = mull__list_after(&port->flows, link))
            if (MULL__ENTRY(link, mull__flow, port_link)->stage != MULL__SETTLED)
                return 0;
    }
    return 1;
}

/* ---- Stopping -------------------------------------------------------------------------------- */

/* for_each_flow calls `visit` with each flow, which may take itself out of the list. */
static void for_each_flow(mull_engine *engine, void (*visit)(mull__flow *flow))
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));) {
        mull__link *link = mull__list_first(&port->flows);
        while (link) {
            mull__link *next = mull__list_after(&port->flows, link);
            visit(MULL__ENTRY(link, mull__flow, port_link));
            link = next;
        }
    }
}

static void on_grace_over(void *data)
{
    mull_engine *engine = data;
    engine->grace_over = 1;
    if (engine->open_calls > 0)
        mull__engine_log(engine, MULL_WARNING,
                         "the time to stop is over: %u call(s) cut off, their messages are given "
                         "back, uncounted",
                         engine->open_calls);
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        mull__strays_try(port);
    for_each_flow(engine, mull__flow_cut);
    for_each_flow(engine, mull__settle_hurry);
    mull__engine_touch(engine);
}

void mull__stop_begin(mull_engine *engine)
{
    if (engine->state == MULL__NEW)
        engine->state = MULL__STOPPED;
    if (engine->state != MULL__RUNNING)
        return;
    engine->state = MULL__STOPPING;
    mull__reload_stop(engine);
    mull__timer_cancel(engine, &engine->empty_timer);
    mull__gate_credit(engine);
    for_each_flow(engine, mull__flow_give_back);
    if (engine->open_calls > 0)
        mull__engine_log(
            engine, MULL_INFO,
            "stopping: waiting up to %lld ms for %u call(s) to end; what waited is given "
            "back, uncounted",
            (long long)engine->options.grace_ms, engine->open_calls);
    else
        mull__engine_log(engine, MULL_INFO, "stopping");
    mull__timer_set(engine, &engine->grace_timer, engine->options.grace_ms, on_grace_over, engine);
}

/* mull__stop_now ends the grace of an engine that stops; where it is over, what waits for its next
 * try to be settled waits no longer: what came too late too, when the engine had stopped. */
void mull__stop_now(mull_engine *engine)
{
    if (engine->state == MULL__STOPPING || engine->state == MULL__STOPPED)
        mull__timer_set(engine, &engine->grace_timer, 0, on_grace_over, engine);
}

/* mull__stop_broken stops the engine, since one of its transports won't work again. What that one
 * handed out can't be settled: tries that wait for their time are over. */
void mull__stop_broken(mull_port *port, const char *why)
{
    mull_engine *engine = port->engine;
    if (engine->state != MULL__STOPPED)
        engine->status = mull__engine_problem(engine, MULL_EIO, NULL, 0, "transport '%s': %s",
                                              port->name, why && *why ? why : "it is broken");
    for (mull__link *link = mull__list_first(&port->flows); link;
         link = mull__list_after(&port->flows, link))
        mull__settle_hurry(MULL__ENTRY(link, mull__flow, port_link));
    mull_stop(engine);
}

static void log_abandoned(mull_engine *engine)
{
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        if (port->abandoned > 0)
            mull__engine_log(engine, MULL_WARNING,
                             "transport %s: %u message(s) that it handed out could not be settled; "
                             "they will be handed out again",
                             port->name, port->abandoned);
}

/* mull__stop_look sees whether a stopping engine has stopped, and tells so once. */
void mull__stop_look(mull_engine *engine)
{
    /* While a transport is at work there may be more on its way here. */
    if (engine->state == MULL__STOPPING && all_settled(engine) &&
        (engine->working == 0 || engine->grace_over)) {
        engine->state = MULL__STOPPED;
        engine->grace_over = 1;
        mull__timer_cancel(engine, &engine->grace_timer);
        log_abandoned(engine);
        mull__engine_log(engine, MULL_INFO, "stopped");
    }
    if (engine->state != MULL__STOPPED || engine->told_stopped)
        return;
    engine->told_stopped = 1;
    mull__check_end(engine);
    if (engine->loop == &engine->own_loop)
        uv_stop(engine->loop);
    if (engine->options.stopped)
        engine->options.stopped(engine->options.data);
}

void mull_stop(mull_engine *engine)
{
    if (!engine)
        return;
    uv_mutex_lock(&engine->mutex);
    engine->stop_asked = 1;
    mull__engine_wake(engine);
    uv_mutex_unlock(&engine->mutex);
}

/* ---- Until empty ----------------------------------------------------------------------------- */

static void on_look(void *data)
{
    mull_engine *engine = data;
    mull__engine_touch(engine);
}

/* again_later: what is claimed by others, or could not be counted, is looked at soon; else nothing
 * happens before the next delayed message is due, and its delivery will be seen. */
static void again_later(mull_engine *engine)
{
    int64_t wait_ms = EMPTY_LOOK_MS;
    if (!engine->depths_claimed && !engine->depths_failed && engine->depths_next_due != INT64_MAX)
        wait_ms = engine->depths_next_due - mull__engine_wall(engine);
    if (wait_ms < 1)
        wait_ms = EMPTY_LOOK_MS;
    if (wait_ms > EMPTY_LOOK_MAX_MS)
        wait_ms = EMPTY_LOOK_MAX_MS;
    mull__timer_set(engine, &engine->empty_timer, wait_ms, on_look, engine);
}

static void stop_empty(mull_engine *engine)
{
    engine->emptied = 1;
    mull__stop_begin(engine);
}

int mull__engine_emptied(const mull_engine *engine)
{
    return engine->emptied;
}

static void ask_depths(mull_engine *engine);

/* found_empty: queues are counted one after the other, so that a message which another engine moves
 * on meanwhile may be in none of the answers. It can't do that in more rounds than there are queues
 * for it to go to. */
static void found_empty(mull_engine *engine)
{
    if (++engine->depths_rounds < engine->consumers.count)
        ask_depths(engine);
    else
        stop_empty(engine);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    mull_engine *engine = data;
    engine->depths_asked--;
    engine->depths_failed |= status != 0;
    engine->depths_left += depth->ready + depth->delayed + depth->claimed;
    engine->depths_claimed |= depth->claimed > 0 || depth->ready > 0;
    if (depth->next_due_ms < engine->depths_next_due)
        engine->depths_next_due = depth->next_due_ms;
    if (engine->depths_asked > 0 || engine->state != MULL__RUNNING)
        return;
    /* What arrived since may have sent more to a queue that was counted before. */
    int moved = engine->arrivals != engine->depths_arrivals || !all_settled(engine);
    if (engine->depths_left == 0 && !engine->depths_failed && !moved) {
        found_empty(engine);
    } else {
        engine->depths_rounds = 0;
        again_later(engine);
    }
}

static void ask_depths(mull_engine *engine)
{
    engine->depths_left = 0;
    engine->depths_arrivals = engine->arrivals;
    engine->depths_claimed = engine->depths_failed = 0;
    engine->depths_next_due = INT64_MAX;
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (mull_queue_depth(engine, c->port->name, c->queue, on_depth, engine) == 0)
            engine->depths_asked++;
        else
            engine->depths_failed = 1;
    }
    if (engine->depths_asked > 0)
        return;
    if (engine->depths_failed)
        again_later(engine);
    else
        stop_empty(engine); /* no consumer: nothing to wait for */
}

/* mull__empty_look asks how much there is once nothing of it is here. */
void mull__empty_look(mull_engine *engine)
{
    if (!engine->until_empty || engine->state != MULL__RUNNING || engine->depths_asked > 0 ||
        engine->empty_timer.set || !all_settled(engine))
        return;
    ask_depths(engine);
}

int mull_stop_when_empty(mull_engine *engine)
{
    if (!engine)
        return MULL_EINVAL;
    engine->until_empty = 1;
    mull__engine_touch(engine);
    return 0;
}
