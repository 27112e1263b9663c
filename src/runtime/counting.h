/* counting.h: what an engine counts of its messages, for snapshots. */
#ifndef MULL__COUNTING_H
#define MULL__COUNTING_H

#include "engine_state.h"

void mull__count_call(mull__delivery *d);          /* its handler has ended: how long it took */
void mull__count_failure(const mull__delivery *d); /* its error is the consumer's last one */
void mull__count_verdict(mull__delivery *d);       /* its verdict is carried out */
void mull__rule_tallies_free(mull_engine *engine);

/* mull__copy_cut copies a text as UTF-8 into `room` bytes, cut at a character. */
void mull__copy_cut(char *to, size_t room, const char *text);

/* mull__count_why keeps since when a consumer isn't called for this reason. */
static inline void mull__count_why(mull__consumer *c, mull_why_not why)
{
    if (c->tally.why == why)
        return;
    c->tally.why = why;
    c->tally.why_since_ms = mull__turn_ms(c->engine);
}

#endif
