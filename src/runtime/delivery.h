/* delivery.h: one message on its way: it arrives, is called, fails, is decided on. */
#ifndef MULL__DELIVERY_H
#define MULL__DELIVERY_H

#include "engine_state.h"

/* mull__delivery_arrive takes in what a transport hands out. MULL_ENOMEM: it doesn't know of it. */
int mull__delivery_arrive(mull__consumer *consumer, mull_delivery *handed);
void mull__delivery_call(mull__delivery *d); /* its handler */

/* mull__delivery_age works out how old its failure is when it is judged, or ends. */
void mull__delivery_age(mull__delivery *d, int64_t now_ms);

/* mull__delivery_journal writes its calls so far down before it is called again, at `retry_ms`. */
void mull__delivery_journal(mull__delivery *d);
void mull__delivery_ended(mull__delivery *d); /* mull_done was called, and its call is gone */
void mull__delivery_lost(mull__delivery *d, const char *why); /* the broker took it back */
void mull__delivery_give_back(
    mull__delivery *d); /* its consumer takes none: unless its handler works */
/* mull__delivery_go_back puts it back into its queue until a moment of the monotonic clock. */
void mull__delivery_go_back(mull__delivery *d, int64_t until_ms);
void mull__delivery_detach(mull__delivery *d); /* ... and the grace of its handler is over */

#endif
