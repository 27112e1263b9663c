/* delivery.h: one message on its way: it arrives, is called, fails, is decided on. */
#ifndef MULL__DELIVERY_H
#define MULL__DELIVERY_H

#include "engine_state.h"

/* mull__delivery_arrive takes in what a transport hands out. MULL_ENOMEM: it doesn't know of it. */
int mull__delivery_arrive(mull__consumer *consumer, mull_delivery *handed);
void mull__delivery_call(mull__delivery *d);  /* it was admitted */
void mull__delivery_ended(mull__delivery *d); /* mull_done was called, and its call is gone */
void mull__delivery_lost(mull__delivery *d, const char *why); /* the broker took it back */
void mull__delivery_give_back(
    mull__delivery *d); /* its consumer takes none: unless its handler works */
void mull__delivery_detach(mull__delivery *d); /* ... and the grace of its handler is over */

#endif
