/* admission.c: which message may be called now, a retry's next call too, and how many may be out.
 *
 * A poison candidate runs alone, so that the message that kills is found and its neighbours live. A
 * message's last owner died, or it found no memory beside others: both make it a candidate. While a
 * candidate waits for a slot that is free, nothing else starts. While its handler works, nothing
 * does. It waits for the calls of others to end, but not for ever: then it runs beside those that
 * are left, and the next candidate doesn't wait for them. */
#include "admission.h"

#include "counting.h"
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

int mull__consumer_accepts(const mull__consumer *c)
{
    return c->engine->state == MULL__RUNNING && c->state == MULL__CONSUMER_WORKS && !c->paused;
}

/* why_no_room: what keeps a consumer from being called, be there a message or not. */
static mull_why_not why_no_room(const mull__consumer *c)
{
    if (c->engine->state != MULL__RUNNING || c->state == MULL__CONSUMER_LEAVES)
        return MULL_WHY_STOPPING;
    if (c->port->health != MULL_UP)
        return MULL_WHY_TRANSPORT_DOWN;
    if (c->source != MULL_SOURCE_READY || c->state == MULL__CONSUMER_RENEWS)
        return c->source == MULL_SOURCE_REFUSED ? MULL_WHY_QUEUE_REFUSED : MULL_WHY_QUEUE_WAITING;
    if (c->failing > 0)
        return MULL_WHY_SETTLING_FAILS;
    if (c->paused)
        return MULL_WHY_PAUSED;
    if (c->engine->alone || (c->engine->candidate_of && c->engine->candidate_of != c))
        return MULL_WHY_CANDIDATE_ALONE;
    return c->slots >= c->options.concurrency ? MULL_WHY_CONCURRENCY : MULL_WHY_CALLED;
}

mull_why_not mull__why_not(const mull__consumer *c)
{
    mull_why_not why = why_no_room(c);
    int there = c->waiting.count > 0 || c->candidates.count > 0;
    return why == MULL_WHY_CALLED && !there ? MULL_WHY_NOTHING_THERE : why;
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

/* find_candidate: a consumer of the first one that may be called. */
static mull__consumer *find_candidate(mull_engine *engine)
{
    engine->candidate_of = NULL;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));)
        if (c->candidates.count > 0 && why_no_room(c) == MULL_WHY_CALLED)
            return c;
    return NULL;
}

/* Retries have their slots already, of which there may be fewer by now. */
mull__delivery *mull__admission_next(mull_engine *engine)
{
    if (engine->state != MULL__RUNNING || engine->alone || mull__engine_stop_asked(engine))
        return NULL;
    mull__consumer *candidate_of = find_candidate(engine);
    engine->candidate_of = candidate_of;
    if (candidate_of)
        return next_candidate(candidate_of);
    mull__engine_cancel(engine, &engine->poison_timer);
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->retries.count > 0 && c->calls < c->options.concurrency)
            return take_first(&c->retries);
        if (c->waiting.count > 0 && why_no_room(c) == MULL_WHY_CALLED)
            return take_first(&c->waiting);
    }
    return NULL;
}

/* allowance: those at work, a reserve that is claimed but not started, and as many again while they
 * are being settled, so that the transport has something to hand out in the same round trip. */
static uint32_t allowance(const mull__consumer *c)
{
    if (!mull__consumer_accepts(c) || c->failing > 0 || c->source != MULL_SOURCE_READY)
        return 0;
    uint64_t prefetch = c->options.prefetch;
    uint64_t allowed =
        c->parked + c->slots + prefetch + (c->settling < prefetch ? c->settling : prefetch);
    return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}

void mull__admission_credit(mull_engine *engine)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        mull__count_why(c, mull__why_not(c));
        uint32_t credit = allowance(c);
        if (credit == c->credit || !c->subscribed || c->port->state != MULL__PORT_OPEN)
            continue;
        c->credit = credit;
        c->port->ops->credit(c->port->self, c->subscription, credit);
        mull__port_asked(c->port);
    }
}
