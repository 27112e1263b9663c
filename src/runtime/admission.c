/* admission.c: which message may be called now, a retry's next call too, and how many may be out.
 *
 * A poison candidate runs alone, so that the message that kills is found and its neighbours live. A
 * message's last owner died, or it found no memory beside others: both make it a candidate. While a
 * candidate waits for a slot that is free, nothing else starts. While its handler works, nothing
 * does. It waits for the calls of others to end, but not for ever: then it runs beside those that
 * are left, and the next candidate doesn't wait for them. */
#include "admission.h"

#include "timers.h"

enum { CANDIDATE_WAITS_MS = 5000 };

void mull__slot_free(mull__delivery *d)
{
    if (d->slot)
        d->consumer->slots--;
    d->slot = 0;
}

static mull__list *list_of(mull__delivery *d)
{
    mull__consumer *c = d->consumer;
    return d->slot ? &c->retries : d->alone ? &c->candidates : &c->waiting;
}

void mull__admission_put(mull__delivery *d, int first)
{
    if (first)
        mull__list_push_front(list_of(d), &d->link);
    else
        mull__list_push(list_of(d), &d->link);
    mull__engine_mark_posted(d->engine);
}

void mull__admission_remove(mull__delivery *d)
{
    mull__list_remove(list_of(d), &d->link);
    mull__engine_cancel(d->engine, &d->timer);
}

static mull__delivery *take_first(mull__list *list)
{
    return MULL__ENTRY(mull__list_pop(list), mull__delivery, link);
}

/* has_room: nothing new begins while the transport can't settle what has ended. */
static int has_room(const mull__consumer *c)
{
    return c->slots < c->options.concurrency && c->failing == 0;
}

/* on_waited: no candidate waits any longer for what is at work now. */
static void on_waited(void *data)
{
    mull_engine *engine = data;
    for (mull__delivery *d = NULL; (d = mull__next_delivery(engine, d));)
        d->overdue = d->state == MULL__WORKING;
    engine->overdue = engine->active_calls;
    mull__engine_mark_posted(engine);
}

/* next_candidate takes one once nobody else is at work, or only calls that are overdue. */
static mull__delivery *next_candidate(mull__consumer *c)
{
    mull_engine *engine = c->engine;
    if (engine->active_calls > engine->overdue) {
        if (!engine->poison_timer.set)
            mull__timer_set(engine, &engine->poison_timer, CANDIDATE_WAITS_MS, on_waited, engine);
        return NULL;
    }
    if (engine->active_calls > 0)
        mull__engine_log(engine, MULL_INFO,
                         "%s: a message that should run alone runs beside %u other call(s), which "
                         "have lasted for more than %d s",
                         c->name, engine->active_calls, CANDIDATE_WAITS_MS / 1000);
    mull__engine_cancel(engine, &engine->poison_timer);
    return take_first(&c->candidates);
}

/* Retries have their slots already. */
mull__delivery *mull__admission_next(mull_engine *engine)
{
    if (engine->state != MULL__RUNNING || engine->alone || mull__engine_stop_asked(engine))
        return NULL;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (c->candidates.count > 0 && has_room(c))
            return next_candidate(c);
    mull__engine_cancel(engine, &engine->poison_timer);
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->retries.count > 0)
            return take_first(&c->retries);
        if (c->waiting.count > 0 && has_room(c))
            return take_first(&c->waiting);
    }
    return NULL;
}

/* allowance: those at work, a reserve that is claimed but not started, and as many again while they
 * are being settled, so that the transport has something to hand out in the same round trip. */
static uint32_t allowance(const mull__consumer *c)
{
    if (c->engine->state != MULL__RUNNING || c->failing > 0 || c->source != MULL_SOURCE_READY)
        return 0;
    uint64_t prefetch = c->options.prefetch;
    uint64_t allowed = c->slots + prefetch + (c->settling < prefetch ? c->settling : prefetch);
    return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}

void mull__admission_credit(mull_engine *engine)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        uint32_t credit = allowance(c);
        if (credit == c->credit || c->port->state != MULL__PORT_OPEN)
            continue;
        c->credit = credit;
        c->port->ops->credit(c->port->self, c->subscription, credit);
        mull__port_asked(c->port);
    }
}
