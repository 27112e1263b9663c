/* gate.c: which messages may be called now, a retry's next call too; and how many may be out.
 *
 * A message whose last owner died runs alone, so that the one that kills is found and its
 * neighbours live: while such a suspect waits for a slot that is free, nothing else starts; while
 * its handler works, nothing does. */
#include "engine.h"

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
        if (engine->open_calls == 0)
            call_first(&suspected->suspects);
        return;
    }
    for (struct mull_subscription *c = NULL; (c = mull__next_consumer(engine, c));)
        call_all(c);
}

/* allowance: those at work, a reserve that is claimed but not started, and as many again while they
 * are being settled, so that the transport has something to hand out in the same round trip. */
static uint32_t allowance(const struct mull_subscription *c)
{
    if (c->engine->state != MULL__RUNNING || c->failing > 0)
        return 0;
    uint32_t prefetch = c->options.prefetch;
    return c->slots + prefetch + (c->settling < prefetch ? c->settling : prefetch);
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
