/* sim.c: one seed, from its first step to its last.
 *
 *   chaos ── until it calms down: the module is asked for all it can, and everything may fail
 *   calm  ── nothing fails any more: every message must come to its end, in bounded time
 *   end   ── the transport closes: all of its memory must be back, and no message be gone
 */
#include "sim.h"

#include <string.h>

amqp_bytes_t keep_bytes(sim *s, amqp_bytes_t bytes)
{
    char *made = keep(s, bytes.len + 1);
    if (bytes.len > 0)
        memcpy(made, bytes.bytes, bytes.len);
    return (amqp_bytes_t){bytes.len, made};
}

/* ---- Steps ----------------------------------------------------------------------------------- */

enum { STEPS_MAX = 1000000, CALM_MAX_MS = 3600 * 1000 };

static void step(sim *s, const char *what, int64_t until_ms)
{
    int64_t due_ms = next_due_ms(s);
    if (due_ms == INT64_MAX)
        violation(s, "nothing will ever happen any more, and %s", what);
    if (due_ms > until_ms)
        violation(s, "the time is over, and %s", what);
    if (++s->k.steps > STEPS_MAX)
        violation(s, "after %d steps %s", STEPS_MAX, what);
    fire_next(s);
}

/* ---- A seed ---------------------------------------------------------------------------------- */

/* left is a queue that is read, or one of delays, with something in it; NULL: there is none. */
static const queue *left(sim *s)
{
    mull__list *queues = &s->broker.queues;
    for (mull__link *link = mull__list_first(queues); link; link = mull__list_after(queues, link)) {
        const queue *q = MULL__ENTRY(link, queue, link);
        if ((q->name[0] == 'q' || q->is_delay) && (q->ready.count > 0 || q->unacked > q->parked))
            return q;
    }
    return NULL;
}

static void drain(sim *s)
{
    const queue *q;
    int64_t until_ms = s->k.now_ms + CALM_MAX_MS;
    while ((q = left(s)) || !engine_is_done(s)) {
        if (s->k.now_ms > until_ms && q)
            violation(s, "'%s' has %zu messages that are ready, and %zu that are out", q->name,
                      q->ready.count, q->unacked);
        step(s, "there are messages that came to no end", until_ms + CALM_MAX_MS);
    }
}

static void run(sim *s)
{
    int64_t chaos_ms = s->k.now_ms + between(s, 1000, 60000);
    while (s->k.now_ms < chaos_ms)
        step(s, "there is no end to it", INT64_MAX);
    s->k.calm = 1;
    note(s, "calm", 0, 0, 0, 0);
    trouble_calm(s);
    engine_calm(s);
    drain(s);
    s->over = 1;
    engine_close(s, 5000);
    int64_t until_ms = s->k.now_ms + 60000;
    while (s->port.transport || s->link)
        step(s, "the transport doesn't close", until_ms);
    while (s->broker.conns.count > 0) /* of a mute one it hears after two heartbeats */
        step(s, "the broker has connections", until_ms + 120000);
}

void simulate(sim *s, uint64_t seed, totals *sums, int tell)
{
    kernel_begin(&s->k, "simulate_amqp", seed, tell);
    *s = (sim){.k = s->k,
               .messages = s->messages,
               .message_room = s->message_room,
               .handouts = s->handouts,
               .handout_room = s->handout_room,
               .totals = sums};
    mull__list_init(&s->wires);
    broker_begin(&s->broker, s);
    port_begin(&s->port, s);
    trouble_begin(s);
    engine_begin(s);
    run(s);
    ledger_end(s);
    sums->no_memory += s->port.memory.failures;
    wires_free(s);
    broker_end(&s->broker);
}
