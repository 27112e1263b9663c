/* admission.c: which message may be called now, a retry's next call too, and how many may be out.
 *
 * A poison candidate runs alone, so that the message that kills is found and its neighbours live. A
 * message's last owner died, or it found no memory beside others: both make it a candidate. While a
 * candidate waits for a slot that is free, nothing else starts. While its handler works, nothing
 * does. It waits for the calls of others to end, but not for ever: then it runs beside those that
 * are left, and the next candidate doesn't wait for them.
 *
 * Where a limit lets one call through at a time, that is for the oldest message, but not for the
 * one that was called last. */
#include "admission.h"

#include "base/compiler.h"
#include "counting.h"
#include "limiting.h"
#include "timers.h"
#include "transitions.h"

enum {
    CANDIDATE_WAITS_MS = 5000,
    MORE_MS = 100 /* a probe waits for another message that may be on its way */
};

static mull__list *list_of(mull__delivery *d)
{
    mull__consumer *c = d->consumer;
    return d->alone ? &c->candidates : d->slot || d->held ? &c->retries : &c->waiting;
}

void mull__admission_put(mull__delivery *d, int first)
{
    if (first)
        mull__list_push_front(list_of(d), &d->link);
    else
        mull__list_push(list_of(d), &d->link);
    mull__engine_mark_posted(d->engine);
}

void mull__admission_put_by_age(mull__delivery *d)
{
    mull__list *list = list_of(d);
    mull__link *before = list->head.next;
    while (before != &list->head &&
           MULL__ENTRY(before, mull__delivery, link)->ticket.number < d->ticket.number)
        before = before->next;
    mull__list_put(list, &d->link, before);
    mull__engine_mark_posted(d->engine);
}

void mull__admission_remove(mull__delivery *d)
{
    mull__list_remove(list_of(d), &d->link);
    mull__gate_set(d, 0);
    mull__engine_cancel(d->engine, &d->timer);
}

static mull__delivery *take_first(mull__list *list)
{
    return MULL__ENTRY(mull__list_pop(list), mull__delivery, link);
}

static mull__delivery *take(mull__delivery *d)
{
    mull__list_remove(list_of(d), &d->link);
    return d;
}

void mull__admission_made_room(mull__consumer *c)
{
    c->more_until = UINT64_MAX;
    c->more_until_ms = mull__later(mull__turn_ms(c->engine), MORE_MS);
}

static int more_may_come(const mull__consumer *c)
{
    return c->engine->waits < c->more_until && mull__turn_ms(c->engine) < c->more_until_ms;
}

static void on_no_more(void *data)
{
    mull__engine_mark_posted(data);
}

/* wait_for_more: until the transport was told of the room, and had its turn, or for MORE_MS; then
 * who waits for that is looked at again. */
static void wait_for_more(mull__consumer *c)
{
    mull_engine *engine = c->engine;
    if (c->more_until == UINT64_MAX && c->settling == 0)
        c->more_until = engine->waits + 1;
    if (!more_may_come(c))
        return;
    if (c->more_until != UINT64_MAX)
        mull__engine_mark_posted(engine);
    else if (!c->limits_timer.set || c->limits_timer.due_ms > c->more_until_ms)
        mull__timer_set(engine, &c->limits_timer, c->more_until_ms - mull__engine_now(engine),
                        on_no_more, engine);
}

int mull__consumer_accepts(const mull__consumer *c)
{
    return c->engine->state == MULL__RUNNING && c->state == MULL__CONSUMER_WORKS && !c->paused &&
           (!c->reader || c->reader->state == MULL__CONSUMER_WORKS);
}

static int renews(const mull__consumer *c)
{
    return c->state == MULL__CONSUMER_RENEWS ||
           (c->reader && c->reader->state == MULL__CONSUMER_RENEWS);
}

/* most_at_work: as many handlers of a consumer may be. */
static uint32_t most_at_work(const mull__consumer *c)
{
    return c->room < c->options.concurrency ? c->room : c->options.concurrency;
}

/* why_no_room: what keeps a consumer from being called, be there a message or not. */
static MULL__ALWAYS_INLINE mull_why_not why_no_room(const mull__consumer *c)
{
    if (c->engine->state != MULL__RUNNING || c->state == MULL__CONSUMER_LEAVES)
        return MULL_WHY_STOPPING;
    if (c->port->health != MULL_UP)
        return MULL_WHY_TRANSPORT_DOWN;
    if (c->source != MULL_SOURCE_READY || renews(c))
        return c->source == MULL_SOURCE_REFUSED ? MULL_WHY_QUEUE_REFUSED : MULL_WHY_QUEUE_WAITING;
    if (c->failing > 0)
        return MULL_WHY_SETTLING_FAILS;
    if (c->paused)
        return MULL_WHY_PAUSED;
    if (c->room == 0)
        return MULL_WHY_NO_WORKER;
    int64_t until_ms;
    mull_why_not limited = mull__limits_why_not(c, &until_ms);
    if (limited != MULL_WHY_CALLED)
        return limited;
    if (c->engine->alone || (c->engine->candidate_of && c->engine->candidate_of != c))
        return MULL_WHY_CANDIDATE_ALONE;
    return c->slots >= most_at_work(c) ? MULL_WHY_CONCURRENCY : MULL_WHY_CALLED;
}

mull_why_not mull__why_not(const mull__consumer *c)
{
    mull_why_not why = why_no_room(c);
    int there =
        c->waiting.count > 0 || c->candidates.count > 0 || (c->held > 0 && c->retries.count > 0);
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

/* older gives the one that came first, of two of which either may be NULL. */
static mull__delivery *older(mull__delivery *a, mull__delivery *b)
{
    return !a || (b && b->ticket.number < a->ticket.number) ? b : a;
}

static mull__delivery *oldest_but(mull__list *list, uint64_t message)
{
    mull__delivery *oldest = NULL;
    for (mull__link *link = mull__list_first(list); link; link = mull__list_after(list, link)) {
        mull__delivery *d = MULL__ENTRY(link, mull__delivery, link);
        if (d->chance != message)
            oldest = older(oldest, d);
    }
    return oldest;
}

/* first_candidate isn't the last probe's message, where there is another. */
static mull__delivery *first_candidate(mull__consumer *c)
{
    uint64_t last;
    mull__delivery *other = NULL;
    if (mull__limits_probes(c, &last))
        other = oldest_but(&c->candidates, last);
    return other ? other : MULL__ENTRY(mull__list_first(&c->candidates), mull__delivery, link);
}

/* next_candidate takes one once nobody else is at work, or only calls that are overdue. One that
 * goes back at its turn, or waits for its pace, needn't wait for that. */
static mull__delivery *next_candidate(mull__consumer *c)
{
    mull_engine *engine = c->engine;
    mull__delivery *first = first_candidate(c);
    if (mull__limits_go_back(first))
        return take(first);
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
    return take(first);
}

/* find_candidate: a consumer of the first one that may be called. Where calls are probes, only if
 * nothing else is there, nor on its way. */
static mull__consumer *find_candidate(mull_engine *engine)
{
    uint64_t last_probe;
    engine->candidate_of = NULL;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->candidates.count == 0 || why_no_room(c) != MULL_WHY_CALLED)
            continue;
        int others = c->waiting.count + c->retries.count > 0 || more_may_come(c);
        if (!others || !mull__limits_probes(c, &last_probe))
            return c;
    }
    return NULL;
}

/* next_probe: the one that was the last probe comes where there is no other, nor one on its way.
 */
static mull__delivery *next_probe(mull__consumer *c, uint64_t last)
{
    mull__delivery *d = older(oldest_but(&c->waiting, last), oldest_but(&c->retries, last));
    if (d)
        return take(d);
    if (more_may_come(c))
        return NULL;
    return c->retries.count > 0 ? take_first(&c->retries) : take_first(&c->waiting);
}

/* next_of: what waits for a retry has a slot, or had one before a limit took it: it comes first. */
static mull__delivery *next_of(mull__consumer *c)
{
    uint64_t last_probe;
    int64_t until_ms;
    if (c->retries.count + c->waiting.count == 0)
        return NULL;
    mull_why_not why = why_no_room(c);
    if (why == MULL_WHY_CALLED && mull__limits_probes(c, &last_probe))
        return next_probe(c, last_probe);
    if (c->retries.count > 0 && c->calls < most_at_work(c) &&
        mull__limits_why_not(c, &until_ms) == MULL_WHY_CALLED)
        return take_first(&c->retries);
    return c->waiting.count > 0 && why == MULL_WHY_CALLED ? take_first(&c->waiting) : NULL;
}

mull__delivery *mull__admission_next(mull_engine *engine)
{
    if (engine->state != MULL__RUNNING || engine->alone || mull__engine_stop_asked(engine))
        return NULL;
    mull__consumer *candidate_of = find_candidate(engine);
    engine->candidate_of = candidate_of;
    if (candidate_of)
        return next_candidate(candidate_of);
    mull__engine_cancel(engine, &engine->poison_timer);
    mull__delivery *d = NULL;
    for (mull__consumer *c = NULL; !d && (c = mull__next_consumer(engine, c));)
        d = next_of(c);
    return d;
}

/* allowance: those at work or held up, those at a gate, candidates too while only probes are
 * called, a reserve that is claimed but not started, of no more than can be called soon, and as
 * many as are being settled, so that the transport has something to hand out in the same round
 * trip; at most what it was subscribed for, beside those that are parked. */
static uint32_t allowance(const mull__consumer *c)
{
    if (!mull__consumer_accepts(c) || c->failing > 0 || c->source != MULL_SOURCE_READY)
        return 0;
    if (c->room == 0)
        return 0;
    uint64_t prefetch = c->options.prefetch, most = c->options.concurrency + 2 * prefetch;
    uint64_t last_probe, candidates = mull__limits_probes(c, &last_probe) ? c->candidates.count : 0;
    uint64_t allowed = (uint64_t)c->slots + c->held + c->gated + candidates + c->settling;
    allowed += mull__limits_soon(c, prefetch);
    allowed = c->parked + (allowed < most ? allowed : most);
    return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}

int mull__admission_has_room(const mull__consumer *c)
{
    uint64_t out = c->waiting.count + c->candidates.count;
    out += (uint64_t)c->slots + c->held + c->gated + c->settling + c->parked;
    return out < allowance(c);
}

/* reader_allowance: as many as its consumers have room for, and some of what none of them has. */
static uint32_t reader_allowance(const mull__consumer *reader)
{
    if (!mull__consumer_accepts(reader) || reader->failing > 0 ||
        reader->source != MULL_SOURCE_READY)
        return 0;
    uint64_t own = reader->deliveries, allowed = 0;
    for (mull__consumer *c = NULL; (c = mull__next_consumer(reader->engine, c));) {
        if (c->reader != reader)
            continue;
        own -= c->deliveries;
        allowed += allowance(c);
    }
    uint64_t most = reader->parked + (uint64_t)reader->options.concurrency;
    allowed += own < most ? own : most;
    return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}

void mull__admission_credit(mull_engine *engine)
{
    for (mull__consumer *c = NULL; (c = mull__next_consumer(engine, c));) {
        if (c->limits)
            mull__limits_wake(c);
        if (c->more_until > engine->waits)
            wait_for_more(c);
        mull__count_why(c, mull__why_not(c));
        uint32_t credit = c->is_reader ? reader_allowance(c) : allowance(c);
        if (credit == c->credit || !c->subscribed || c->port->state != MULL__PORT_OPEN)
            continue;
        c->credit = credit;
        c->port->ops->credit(c->port->self, c->subscription, credit);
        mull__port_asked(c->port);
    }
}
