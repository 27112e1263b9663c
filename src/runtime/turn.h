/* turn.h: a message's turn has come. */
#ifndef MULL__TURN_H
#define MULL__TURN_H

#include "delivery.h"

/* mull__delivery_ask calls a message, where the policy in force doesn't refuse that. */
void mull__delivery_ask(mull__delivery *d);

/* mull__delivery_turn: it was admitted. */
static inline void mull__delivery_turn(mull__delivery *d)
{
    if (d->consumer->may_refuse)
        mull__delivery_ask(d);
    else
        mull__delivery_call(d);
}

#endif
