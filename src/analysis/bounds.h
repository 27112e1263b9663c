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

static inline mull__span mull__span_sum(mull__span a, mull__span b)
{
    return (mull__span){mull__later(a.low_ms, b.low_ms), mull__later(a.high_ms, b.high_ms)};
}

static inline int mull__span_same(mull__span a, mull__span b)
{
    return a.low_ms == b.low_ms && a.high_ms == b.high_ms;
}

/* mull__span_widen takes in another one, and what lies between them. */
static inline void mull__span_widen(mull__span *span, mull__span by)
{
    span->low_ms = mull__smaller(span->low_ms, by.low_ms);
    span->high_ms = mull__greater(span->high_ms, by.high_ms);
}

/* ---- Extents ----------------------------------------------------------------------------------
 */

/* mull__course is what a rule's chain does before its end; a tier that is off has no attempts. */
typedef struct mull__course {
    const mull__plain_tier *retry, *redeliver;
} mull__course;

/* mull__walks are the ways that a message can take: each of its failures is decided by one of the
 * courses, whichever. */
typedef struct mull__walks {
    const mull__course *courses;
    size_t count;
    int may_end_at_once;              /* a failure may also end it whatever the courses say */
    int64_t max_attempts, max_age_ms; /* MULL__OFF: none */
    int64_t handler_ms;               /* the longest that a call takes; MULL__FOREVER: no bound */
    /* How many nanoseconds, roughly, may still be spent on following walks, which takes its own.
     * Once there are none, extents are rough. */
    int64_t *effort;
} mull__walks;

/* mull__extent: MULL__FOREVER where there is no bound. Times are from the first failure to the
 * verdict that ends it; a `shortest_ms` of MULL__FOREVER: it never ends. */
typedef struct mull__extent {
    int64_t calls;
    int64_t shortest_ms, longest_ms;
    int rough; /* the bounds hold, but may not be the least ones */
} mull__extent;

/* mull__with_call is a wait, and the call after it. */
static inline mull__span mull__with_call(const mull__walks *walks, mull__span wait)
{
    return mull__span_sum(wait, (mull__span){0, walks->handler_ms});
}

/* mull__same_course: nothing that is computed here differs. */
int mull__same_course(const mull__course *a, const mull__course *b);

/* mull__may_spend takes from an effort what something costs, and gives 0 where there is none left.
 */
static inline int mull__may_spend(int64_t *effort, int64_t ns)
{
    if (*effort > 0)
        *effort -= ns;
    return *effort > 0;
}

/* mull__extent_of_course is of walks with a single course, which decides every failure. */
mull__extent mull__extent_of_course(const mull__walks *walks);

/* mull__extent_overridden is of walks of which an override may make anything: only max_attempts
 * bounds them, since it may answer a retry at any age. Courses count where it answers nothing. */
mull__extent mull__extent_overridden(const mull__walks *walks);

/* mull__extent_of_walks is of all of them. MULL_ENOMEM. */
int mull__extent_of_walks(mull__extent *extent, const mull__walks *walks,
                          const mull_allocator *allocator);

/* mull__soonest is the least age at which a message can have so many redeliveries, and how long the
 * retries before an attempt take at least. */
typedef struct mull__soonest {
    int64_t *round_ms;   /* [redeliveries]: at the first failure then; to one more than any tier's
                            that isn't unlimited; NULL: to find it would take too long; to be freed */
    int64_t *attempt_ms; /* [attempt], to the most of any course; FOREVER from there on */
} mull__soonest;

/* mull__soonest_of: there is a course at least. MULL_ENOMEM. */
int mull__soonest_of(mull__soonest *soonest, const mull__walks *walks,
                     const mull_allocator *allocator);

/* mull__drifts: a course's delays each depend on the one before, and max_age on their sum; then not
 * all of the delays in their spans can come together, and bounds may be rough. */
int mull__drifts(const mull__course *course, const mull__walks *walks);

/* mull__extent_at_a_glance is of all walks, found from the outermost numbers of the courses alone:
 * it is rough. */
mull__extent mull__extent_at_a_glance(const mull__walks *walks);

/* mull__longest_step_ms is the longest that any one step of a tier may wait. */
int64_t mull__longest_step_ms(const mull__plain_tier *tier);

#endif
