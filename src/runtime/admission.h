/* admission.h: which message is called next, and how many may be out. */
#ifndef MULL__ADMISSION_H
#define MULL__ADMISSION_H

#include "engine_state.h"

/* mull__why_not says why a consumer isn't called now. All that has to know asks here. */
mull_why_not mull__why_not(const mull__consumer *c);

/* mull__consumer_accepts says whether its messages may stay here. */
int mull__consumer_accepts(const mull__consumer *c);

mull__delivery *mull__admission_next(mull_engine *engine); /* may be called now, NULL: none */
void mull__admission_put(mull__delivery *d, int first);    /* `first`: it was taken for nothing */

/* mull__admission_put_by_age puts it before what came later, or that would always be called first.
 */
void mull__admission_put_by_age(mull__delivery *d);

/* mull__admission_made_room: a message left at its turn without a call, or waits alone. The one
 * that comes in its place may have to be called first. */
void mull__admission_made_room(mull__consumer *c);
void mull__admission_remove(mull__delivery *d);   /* takes out of its list, or its timer */
void mull__admission_credit(mull_engine *engine); /* tells how many deliveries may be out */

/* mull__admission_has_room: one more of its messages may be out. */
int mull__admission_has_room(const mull__consumer *c);

#endif
