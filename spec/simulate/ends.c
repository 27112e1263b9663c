/* ends.c: the model's half that looks at ends: of a process that stops since nothing is left, and
 * of a seed. */
#include "sim.h"

/* counts_exactly says whether an engine knows what is in the queues of a broker. */
static int counts_exactly(const connection *c)
{
    for (int i = 0; i < c->reader_count; i++)
        if (c->readers[i]->can.depth != MULL_DEPTH_EXACT)
            return 0;
    return 1;
}

/* check_quiet: where a queue can't be counted, nothing may have happened for a while. */
static void check_quiet(const process *p)
{
    const sim *s = p->sim;
    if (s->k.now_ms < p->busy_ms + QUIET_MS || wall_ms(s) < p->put_off_ms + QUIET_MS)
        violation(p->sim, "process %d stops since there is nothing left, but it isn't quiet",
                  p->index);
}

/* check_empty: it stopped because nothing was left. Whoever puts more there meanwhile is too late.
 */
void model_emptied(const process *p)
{
    sim *s = p->sim;
    for (int b = 0; b < s->broker_count; b++)
        if (!counts_exactly(p->connections[b]))
            check_quiet(p);
    if (s->k.now_ms < s->published_ms + 100)
        return;
    for (int b = 0; b < s->broker_count; b++) {
        mull__list *copies = &s->brokers[b].copies;
        int exactly = counts_exactly(p->connections[b]);
        for (mull__link *at = mull__list_first(copies); exactly && at;
             at = mull__list_after(copies, at))
            if (MULL__ENTRY(at, copy, link)->queue < QUEUES)
                violation(s, "process %d stops since there is nothing left, but message %d",
                          p->index, MULL__ENTRY(at, copy, link)->message->number);
    }
}

void model_end(sim *s)
{
    for (int i = 0; i < s->message_count; i++) {
        const message *m = s->messages[i];
        int places = m->copies + m->ends, expected = m->exists + m->extra;
        if (places != expected)
            violation(s, "message %d is in %d places, not %d", i, places, expected);
        if (m->published && !m->exists)
            violation(s, "message %d was published, and is nowhere", i);
    }
    if (s->counting_allocator.blocks > 0)
        violation(s, "%zu blocks of the engines' memory (%zu bytes) aren't back",
                  s->counting_allocator.blocks, s->counting_allocator.bytes);
}
