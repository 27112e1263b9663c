/* holder.h: a mull_policy from inside: what deciders need of it. */
#ifndef MULL__HOLDER_H
#define MULL__HOLDER_H

#include <stdatomic.h>

#include "base/list.h"
#include "generation.h"

/* FRESH is the mark on a seat in a decider's slot that the decider hasn't taken yet. */
#define MULL__FRESH ((uintptr_t)1)

/* mull_decider: the seat is the deciding thread's; the slot is where a reload leaves a fresh seat,
 * and where the decider leaves its old one in exchange, for the next reload to free:
 *
 *   slot:  0 ──reload──> fresh* ──decide──> old ──reload──> fresh* ──reload──> fresh* ...
 *                                            └ freed            └ freed, never used
 */
struct mull_decider {
    mull__link link; /* in the holder's list */
    mull_policy *policy;
    mull__seat *seat;
    atomic_uintptr_t slot; /* a mull__seat, marked or not; 0 */
    int deciding;          /* an event of it may not decide with it: the seat is in use */
};

/* mull__holder_join takes in a decider and gives it its first seat. Errors as mull__seat_new;
 * MULL_ESTATE: called out of a load of the same policy. */
int mull__holder_join(mull_policy *policy, mull_decider *decider);

/* mull__holder_leave: from its return no reload touches the decider again. */
void mull__holder_leave(mull_policy *policy, mull_decider *decider);

/* mull__holder_tell hands an event of the policy to the embedder. */
void mull__holder_tell(const mull_policy *policy, const mull_event *event);

#endif
