/* transitions.h: the two state machines of a delivery and of its call. */
#ifndef MULL__TRANSITIONS_H
#define MULL__TRANSITIONS_H

#include "engine_state.h"

void mull__message_becomes(mull__delivery *d, mull__message_state next);
void mull__call_becomes(mull__call_slot *slot, mull__call_state next);

/* A message has a slot of its consumer's while its handler works, and while it waits for a retry.
 */
void mull__slot_take_back(mull__delivery *d);
void mull__slot_yield(mull__delivery *d); /* its retry waits without one */

/* mull__slot_free: one that has none is left alone. */
static inline void mull__slot_free(mull__delivery *d)
{
    if (d->slot || d->held)
        mull__slot_take_back(d);
}

/* mull__gate_set says whether a message waits for the pace of its value. */
void mull__gate_set(mull__delivery *d, int waits);

#endif
