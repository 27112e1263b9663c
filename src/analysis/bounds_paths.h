/* bounds_paths.h: what several chains allow together, attempt by attempt and round by round: what
 * bounds_intervals.c and bounds_calls.c follow walks over. Rounds count from 0, by redeliveries
 * done. */
#ifndef MULL__BOUNDS_PATHS_H
#define MULL__BOUNDS_PATHS_H

#include "bounds.h"

/* ---- Sets of ages -----------------------------------------------------------------------------
 */

/* mull__interval_set: spans in order, with a gap between any two. `at` has room for `room` of them
 * and is the caller's. Where more would be needed, the two with the least gap between them become
 * one, and the set is `rough`: it then holds ages besides that none has. Room for one is for who
 * asks for the ends alone. */
typedef struct mull__interval_set {
    mull__ms_range *at;
    size_t count, room;
    int rough;
} mull__interval_set;

/* mull__interval_set_hull is from the least to the greatest; nothing is in that of none. */
static inline mull__ms_range mull__interval_set_hull(const mull__interval_set *ages)
{
    if (ages->count == 0)
        return (mull__ms_range){MULL__FOREVER, 0};
    return (mull__ms_range){ages->at[0].low_ms, ages->at[ages->count - 1].high_ms};
}

/* mull__interval_set_copy is for sets with the same room. */
void mull__interval_set_copy(mull__interval_set *to, const mull__interval_set *from);

/* mull__interval_set_add takes in a span. */
void mull__interval_set_add(mull__interval_set *ages, mull__ms_range span);

/* mull__interval_set_contains says whether all ages of `inner` are in `outer`. */
int mull__interval_set_contains(const mull__interval_set *outer, const mull__interval_set *inner);

/* ---- Paths ------------------------------------------------------------------------------------
 */

/* mull__attempt is a failure at an attempt, in any round. */
typedef struct mull__attempt {
    mull__interval_set retry; /* the waits for the next attempt */
    int64_t since_ms;         /* the least from the first failure of the round on */
    int64_t end_round;        /* from which round on it may end the message by the end of its chain;
                                 MULL__FOREVER: never */
    size_t level;             /* how many chains have no retry left */
} mull__attempt;

/* Waits include the call behind them where there is no deadline, which only begins of calls are
 * held against. */
typedef struct mull__paths {
    const mull__chain_set *chain_set;
    const mull_allocator *allocator;
    int64_t max_age_ms, deadline_ms; /* MULL__FOREVER: none */
    int64_t horizon_ms;  /* beyond this age the age makes no difference any more: it's the deadline,
                            else max_age */
    mull__chain *chains; /* each once, by the number of their retries */
    size_t count;
    int64_t calls;           /* the most in one round: its attempts are 1 ... calls */
    int64_t exit;            /* the first of them at which some chain has no retry left */
    int64_t rounds;          /* redeliveries that the chains allow, unlimited ones left out */
    int unlimited;           /* and those that aren't left out: some chain has no end of them */
    int capped;              /* max_attempts may cut a walk short */
    mull__attempt *attempts; /* [attempt]; NULL: the effort doesn't reach for any of it */
    mull__interval_set *redeliver; /* [level]: the waits before the next round */
    mull__ms_range *spans;         /* of all waits */
    int64_t round;                 /* that they are filled in for; -1: none */
    int settled;                   /* and for all rounds from it on */
    int64_t work;                  /* done so far, in nanoseconds, roughly */
    int64_t most_work;             /* who comes to it gives up, and says what holds in any case */
} mull__paths;

/* mull__paths_init: MULL_ENOMEM. */
int mull__paths_init(mull__paths *paths, const mull__chain_set *chain_set,
                     const mull_allocator *allocator);
void mull__paths_free(mull__paths *paths);

/* mull__paths_round fills in `redeliver` for the end of a round. */
void mull__paths_round(mull__paths *paths, int64_t round);

/* mull__redelivery is the waits for a redelivery after an attempt; NULL: there is none. */
static inline const mull__interval_set *mull__redelivery(const mull__paths *paths, int64_t attempt)
{
    const mull__interval_set *waits = &paths->redeliver[paths->attempts[attempt].level];
    return waits->count ? waits : NULL;
}

/* mull__round_ms is the least from the first failure of a round to that of the next, by way of a
 * redelivery after an attempt; MULL__FOREVER: there is none. */
static inline int64_t mull__round_ms(const mull__paths *paths, int64_t attempt)
{
    const mull__interval_set *waits = mull__redelivery(paths, attempt);
    return waits ? mull__later(paths->attempts[attempt].since_ms, waits->at[0].low_ms)
                 : MULL__FOREVER;
}

/* mull__times_of_paths gives the shortest and longest time, mull__calls_of_paths the most calls
 * where there is max_age or deadline.
 * MULL_ENOMEM. */
int mull__times_of_paths(mull__range *range, mull__paths *paths);
int mull__calls_of_paths(mull__range *range, mull__paths *paths);

#endif
