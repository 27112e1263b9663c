/* holder.h: a mull_policy from inside. */
#ifndef MULL__HOLDER_H
#define MULL__HOLDER_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "generation.h"
#include "ids.h"

/* mull_policy. Three locks and that of the ids, taken in this order:
 *
 *   building   by whoever runs the guest to build something, which may take long: a reload from its
 *              first line to its last, and a decider's first seat. So the generation in force
 *              doesn't change, and the list of deciders doesn't grow, under a reload.
 *   vetoing    while vetoes are asked and what they let pass is published, while engines are told
 *              what came of a reload, or a veto comes or goes
 *   ids        while a name is interned, or a generation comes or goes
 *   lock       for a few instructions; nothing foreign is called under it
 *
 * Deciding takes none of them. */
struct mull_policy {
    mull_allocator allocator;
    atomic_size_t keepers; /* of its memory: its users together, and each generation */
    atomic_size_t users;   /* of the generation in force: the embedder, and each decider */
    mull__guest guest;
    void *guest_data;
    char *path; /* what the embedder calls it */
    int has_files;
    mull_problem_fn problem;
    mull_event_fn event;
    void *data; /* for both */
    pthread_mutex_t building, vetoing, lock;
    mull__ids ids;     /* with a lock of their own */
    mull__list vetoes; /* under vetoing */

    /* under lock */
    mull__generation *current; /* written under all three */
    mull__list deciders;
    char *files;                                /* see mull__policy_files */
    char files_name[33];                        /* what the last good load of them gave */
    char why[sizeof((mull__standing *)0)->why]; /* "": the last load of them was good */
};

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
    mull__runner runner;   /* its state is the seat's */
    atomic_uintptr_t slot; /* a mull__seat, marked or not; 0 */
    mull_event_fn hear;    /* NULL: nobody but the policy's own event function */
    void *hear_data;
    uintptr_t deciding; /* 0 or 1: an event of it may not decide with it: the seat is in use */
#if defined(MULL__CHECKS)
    atomic_flag entered; /* a thread is in mull_decide with it */
#endif
    char apart[MULL__LINE];
};

/* mull__holder_join takes in a decider and gives it its first seat. Errors as mull__seat_new;
 * MULL_ESTATE: called out of a load of the same policy. */
int mull__holder_join(mull_policy *policy, mull_decider *decider);

/* mull__holder_leave: from its return no reload touches the decider again. The policy may be gone
 * then. */
void mull__holder_leave(mull_policy *policy, mull_decider *decider);

/* mull__holder_first loads a policy's first generation. */
int mull__holder_first(mull_policy *policy, const mull_policy_options *options);

/* mull__holder_tell hands an event of the policy to the embedder. */
void mull__holder_tell(const mull_policy *policy, const mull_event *event);

#endif
