/* bounds.h: how many calls of its handler a message can take at most, and how soon and how late it
 * can end. docs/bounds.md derives what is computed here. */
#ifndef MULL__BOUNDS_H
#define MULL__BOUNDS_H

#include <stddef.h>
#include <stdint.h>

#include "policy/delay.h"

/* ---- Times and spans of them ------------------------------------------------------------------
 */

/* MULL__FOREVER is an age that no sum exceeds: there is no bound. */
#define MULL__FOREVER INT64_MAX

static inline int64_t mull__smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t mull__greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* mull__later is a sum of times, each from 0. */
static inline int64_t mull__later(int64_t a, int64_t b)
{
    return a > MULL__FOREVER - b ? MULL__FOREVER : a + b;
}

/* mull__longer is a time, `count` times over. */
static inline int64_t mull__longer(int64_t ms, int64_t count)
{
    return ms && count > MULL__FOREVER / ms ? MULL__FOREVER : ms * count;
}

static inline mull__ms_range mull__span_sum(mull__ms_range a, mull__ms_range b)
{
    return (mull__ms_range){mull__later(a.low_ms, b.low_ms), mull__later(a.high_ms, b.high_ms)};
}

static inline int mull__span_same(mull__ms_range a, mull__ms_range b)
{
    return a.low_ms == b.low_ms && a.high_ms == b.high_ms;
}

/* mull__ms_range_include takes in another one, and what lies between them. */
static inline void mull__ms_range_include(mull__ms_range *span, mull__ms_range by)
{
    span->low_ms = mull__smaller(span->low_ms, by.low_ms);
    span->high_ms = mull__greater(span->high_ms, by.high_ms);
}

/* ---- Extents ----------------------------------------------------------------------------------
 */

/* mull__chain is what a rule's chain does before its end; a tier that is off has no attempts. */
typedef struct mull__chain {
    const mull__tier_config *retry, *redeliver;
} mull__chain;

/* mull__chain_set are the ways that a message can take: each of its failures is decided by one of
 * the chains, whichever. */
typedef struct mull__chain_set {
    const mull__chain *chains;
    size_t count;
    int may_end_at_once; /* a failure may also end it whatever the chains say */
    int64_t max_attempts, max_age_ms, deadline_ms; /* MULL__OFF: none */
    int64_t handler_ms; /* the longest that a call takes; MULL__FOREVER: no bound */
    /* How many nanoseconds, roughly, may still be spent on following walks, which takes its own.
     * Once there are none, ranges are rough. */
    int64_t *effort;
} mull__chain_set;

/* mull__range: MULL__FOREVER where there is no bound. Times are from the first failure to the
 * verdict that ends it; a `shortest_ms` of MULL__FOREVER: it never ends. */
typedef struct mull__range {
    int64_t calls;
    int64_t shortest_ms, longest_ms;
    int rough;            /* the bounds hold, but may not be the least ones */
    int64_t last_call_ms; /* no call begins later; filled in with the settings of a scope */
} mull__range;

/* mull__last_call_ms is the latest age at which a call can begin: a walk that ends last has a last
 * call that takes as long as it may. */
int64_t mull__last_call_ms(const mull__chain_set *chain_set, const mull__range *range);

/* mull__with_call is a wait, and the call after it. */
static inline mull__ms_range mull__with_call(const mull__chain_set *chain_set, mull__ms_range wait)
{
    return mull__span_sum(wait, (mull__ms_range){0, chain_set->handler_ms});
}

/* mull__same_chain: nothing that is computed here differs. */
int mull__same_chain(const mull__chain *a, const mull__chain *b);

/* mull__budget_take takes from an effort what something costs, and gives 0 where there is none
 * left.
 */
static inline int mull__budget_take(int64_t *effort, int64_t ns)
{
    if (*effort > 0)
        *effort -= ns;
    return *effort > 0;
}

/* mull__range_of_chain is of walks with a single chain, which decides every failure, where there is
 * no deadline. */
mull__range mull__range_of_chain(const mull__chain_set *chain_set);

/* mull__range_overridden is of walks of which an override may make anything: only max_attempts and
 * deadline bound them, since it may answer a retry at any age. Chains count where it answers
 * nothing. */
mull__range mull__range_overridden(const mull__chain_set *chain_set);

/* mull__range_of_paths is of all of them. MULL_ENOMEM. */
int mull__range_of_paths(mull__range *range, const mull__chain_set *chain_set,
                         const mull_allocator *allocator);

/* mull__earliest_times is the least age at which a message can have so many redeliveries, and how
 * long the retries before an attempt take at least. */
typedef struct mull__earliest_times {
    int64_t *round_ms;   /* [redeliveries]: at the first failure then; to one more than any tier's
                            that isn't unlimited; NULL: to find it would take too long; to be freed */
    int64_t *attempt_ms; /* [attempt], to the most of any chain; FOREVER from there on */
} mull__earliest_times;

/* mull__earliest_times_of: there is a chain at least. MULL_ENOMEM. */
int mull__earliest_times_of(mull__earliest_times *soonest, const mull__chain_set *chain_set,
                            const mull_allocator *allocator);

/* mull__delays_are_correlated: a chain's delays each depend on the one before, and max_age or
 * deadline on their sum; then not all of the delays in their spans can come together, and bounds
 * may be rough.
 */
int mull__delays_are_correlated(const mull__chain *chain, const mull__chain_set *chain_set);

/* mull__range_estimate is of all walks, found from the outermost numbers of the chains alone:
 * it is rough. */
mull__range mull__range_estimate(const mull__chain_set *chain_set);

/* mull__longest_step_ms is the longest that any one step of a tier may wait. */
int64_t mull__longest_step_ms(const mull__tier_config *tier);

#endif
