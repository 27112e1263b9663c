/* policy.h: a mull_policy from inside, its generations, and the decider states that decide by them.
 *
 *   policy (counted) <── generation (counted): table, kept text, name
 *                              ^
 *                              └── decider state: the language's for functions, scratch
 */
#ifndef MULL__POLICY_H
#define MULL__POLICY_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/list.h"
#include "decide.h"
#include "ids.h"

/* mull_policy. Three locks and that of the ids, taken in this order:
 *
 *   building     by whoever runs the language to build something, which may take long: a reload
 *                from its first line to its last, and a decider's first state. So the generation in
 *                force doesn't change, and the list of deciders doesn't grow, under a reload.
 *   validating   while validators are asked and what they let pass is published, while engines are
 *                told what came of a reload, or a validator comes or goes
 *   ids          while a name is interned, or a generation comes or goes
 *   lock         for a few instructions; nothing foreign is called under it
 *
 * Deciding takes none of them. */
struct mull_policy {
    mull_allocator allocator;
    atomic_size_t refs;  /* of its memory: its users together, and each generation */
    atomic_size_t users; /* of the generation in force: the embedder, and each decider */
    mull__language_ops language;
    void *language_data;
    char *path;      /* what the embedder calls it */
    char *host_path; /* and its host policy; NULL: there is none */
    int has_files;
    mull_problem_fn problem;
    mull_event_fn event;
    void *data; /* for both */
    pthread_mutex_t building, validating, lock;
    mull__ids ids;         /* with a lock of their own */
    mull__list validators; /* under validating */

    /* under lock */
    mull__generation *current; /* written under all three */
    mull__list deciders;
    char *files;                                    /* see mull__policy_files */
    char files_name[33];                            /* what the last good load of them gave */
    char why[sizeof((mull__files_status *)0)->why]; /* "": the last load of them was good */
};

/* mull__generation_new makes of a load a generation that the caller keeps once; `load->files` is
 * the caller's. Errors as mull__language_ops.compile. */
int mull__generation_new(mull__generation **out, mull_policy *policy, mull__load *load);

/* MULL__CACHE_LINE is how far what one thread writes stays from what others have: the bytes of a
 * cache line, which moves from core to core as a whole. Two decider states or deciders may lie side
 * by side.
 */
enum { MULL__CACHE_LINE = 64 };

/* mull__decider_state is what one decider needs to decide by one generation, which it keeps. It is
 * counted: whoever has still to call its `notify` keeps it, too. */
struct mull__decider_state {
    atomic_size_t refs;
    mull__generation *generation;
    const mull__table *table; /* the generation's, as these are */
    const mull__resolved_ids *resolved;
    const char *name;
    void *state; /* the language's; NULL where the table has no functions */
    char apart[MULL__CACHE_LINE];
    uint64_t
        seen[]; /* mull__table_scratch_words words, and MULL__CACHE_LINE bytes that nobody uses */
};

/* mull__decider_state_new makes one that the caller keeps once: errors as
 * mull__language_ops.state_new. */
int mull__decider_state_new(mull__decider_state **out, mull_policy *policy,
                            mull__generation *generation, mull__report *report);

/* FRESH is the mark on a decider state in a decider's slot that the decider hasn't taken yet. */
#define MULL__NEW_STATE_MARK ((uintptr_t)1)

/* mull_decider: the decider state is the deciding thread's; the slot is where a reload leaves a
 * fresh decider state, and where the decider leaves its old one in exchange, for the next reload to
 * free:
 *
 *   slot:  0 ──reload──> fresh* ──decide──> old ──reload──> fresh* ──reload──> fresh* ...
 *                                            └ freed            └ freed, never used
 */
struct mull_decider {
    mull__link link; /* in the policy's list */
    mull_policy *policy;
    mull__decider_state *decider_state;
    mull__runner runner;   /* its state is the decider state's */
    atomic_uintptr_t slot; /* a mull__decider_state, marked or not; 0 */
    mull_event_fn hear;    /* NULL: nobody but the policy's own event function */
    void *hear_data;
    uintptr_t
        deciding; /* 0 or 1: an event of it may not decide with it: the decider state is in use */
#if defined(MULL__CHECKS)
    atomic_flag entered; /* a thread is in mull_decide with it */
#endif
    char apart[MULL__CACHE_LINE];
};

/* mull__policy_unref lets go of the policy's language and memory, which its users, until the last
 * of them has left, and each generation keep. */
void mull__policy_unref(mull_policy *policy);

/* mull__policy_load_first loads a policy's first generation. */
int mull__policy_load_first(mull_policy *policy, const mull_policy_options *options);

/* mull__policy_emit hands an event of the policy to the embedder. */
void mull__policy_emit(const mull_policy *policy, const mull_event *event);

#endif
