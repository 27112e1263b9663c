/* admission.h: which message may be called now, a retry's next call too; and how many may be out.
 *
 * A poison candidate runs alone, so that the message that kills is found and its neighbours live. A
 * message's last owner died, or it found no memory beside others: both make it a candidate. While a
 * candidate waits for a slot that is free, nothing else starts; while its handler works, nothing
 * does. It waits for the calls of others to end, but not for ever: then it runs beside those that
 * are left, and the next candidate doesn't wait for them. */
#ifndef MULL__ADMISSION_H
#define MULL__ADMISSION_H

#include "state.h"

/* mull__admission_next takes the next message that may be called out of its list. NULL: none. */
mull__delivery *mull__admission_next(mull_engine *engine);

/* mull__admission_put puts a message that may be called, in time, into its consumer's list: first
 * where it was taken out for nothing. */
void mull__admission_put(mull__delivery *d, int first);

/* mull__admission_withdraw takes a message that waits, in a list or for its timer, out of there. */
void mull__admission_withdraw(mull__delivery *d);

/* mull__admission_credit tells transports how many deliveries may be out. */
void mull__admission_credit(mull_engine *engine);

void mull__slot_free(mull__delivery *d); /* one that has none is left alone */

#endif
