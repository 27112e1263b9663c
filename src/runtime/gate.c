/* gate.c: which messages may be called now, a retry's next call too; and how many may be out.
 *
 * A message whose last owner died runs alone, so that the one that kills is found and its
 * neighbours live: while such a suspect waits for a slot that is free, nothing else starts; while
 * its handler works, nothing does. It waits for the calls of others to end, but not for ever: then
 * it runs beside those that are left, and the next suspect waits for them no more. */
#include "engine.h"

enum { PATIENCE_MS = 5000 };

void mull__slot_free(mull__flow *flow)
{
    if (flow->slot)
        flow->consumer->slots--;
    flow->slot = 0;
}

static struct mull_subscription *with_suspect(mull_engine *engine)
{
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));)
        if (c->suspects.count > 0 && c->slots < c->options.concurrency && c->failing == 0)
            return c;
    return NULL;
}

static void call_first(mull__list *list)
{
    mull__flow_call(MULL__ENTRY(mull__list_pop(list), mull__flow, link));
}

/* on_patience_over: what is at work now has outlasted a suspect's patience. */
static void on_patience_over(void *data)
{
    mull_engine *engine = data;
    for (mull_port *port = NULL; (port = mull__next_port(engine, port));)
        for (mull__link *link = mull__list_first(&port->flows); link;
             link = mull__list_after(&port->flows, link)) {
            mull__flow *flow = MULL__ENTRY(link, mull__flow, port_link);
            flow->outlasts = flow->stage == MULL__WORKING;
        }
    engine->outlasting = engine->open_calls;
    mull__engine_touch(engine);
}

/* call_suspect calls a suspect once nobody else is at work, or only those that outlast it. */
static void call_suspect(mull_engine *engine, struct mull_subscription *consumer)
{
    if (engine->open_calls > engine->outlasting) {
        if (!engine->patience_timer.set)
            mull__timer_set(engine, &engine->patience_timer, PATIENCE_MS, on_patience_over, engine);
        return;
    }
    if (engine->open_calls > 0)
        mull__engine_log(engine, MULL_INFO,
                         "%s: a message whose last owner died runs beside %u other call(s), which "
                         "have lasted for more than %d s",
                         consumer->name, engine->open_calls, PATIENCE_MS / 1000);
    mull__timer_cancel(engine, &engine->patience_timer);
    call_first(&consumer->suspects);
}

/* call_all calls what a consumer's slots allow. Retries have theirs already. Nothing new begins
 * while the transport can't settle what has ended. */
static void call_all(struct mull_subscription *consumer)
{
    for (size_t due = consumer->retries.count; due > 0 && consumer->retries.count > 0; due--)
        call_first(&consumer->retries);
    while (consumer->waiting.count > 0 && consumer->slots < consumer->options.concurrency &&
           consumer->failing == 0)
        call_first(&consumer->waiting);
}

void mull__gate_open(mull_engine *engine)
{
    if (engine->state != MULL__RUNNING || engine->alone)
        return;
    struct mull_subscription *suspected = with_suspect(engine);
    if (suspected) {
        call_suspect(engine, suspected);
        return;
    }
    mull__timer_cancel(engine, &engine->patience_timer);
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));)
        call_all(c);
}

/* allowance: those at work, a reserve that is claimed but not started, and as many again while they
 * are being settled, so that the transport has something to hand out in the same round trip. */
static uint32_t allowance(const struct mull_subscription *c)
{
    if (c->engine->state != MULL__RUNNING || c->failing > 0)
        return 0;
    uint64_t prefetch = c->options.prefetch;
    uint64_t allowed = c->slots + prefetch + (c->settling < prefetch ? c->settling : prefetch);
    return allowed < UINT32_MAX ? (uint32_t)allowed : UINT32_MAX;
}

void mull__gate_credit(mull_engine *engine)
{
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));) {
        uint32_t credit = allowance(c);
        if (credit == c->credit || c->port->state != MULL__PORT_OPEN)
            continue;
        c->credit = credit;
        c->port->ops->credit(c->port->self, c, credit);
    }
}
