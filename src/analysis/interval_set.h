/* interval_set.h: sets of ages that a message can have, as spans of whole milliseconds. */
#ifndef MULL__INTERVAL_SET_H
#define MULL__INTERVAL_SET_H

#include <stddef.h>
#include <stdint.h>

#include "policy/delay.h"

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

/* mull__ages: spans in order, with a gap between any two. `at` has room for `room` of them and is
 * the caller's. Where more would be needed, the two with the least gap between them become one, and
 * the set is `rough`: it then holds ages besides that none has. Room for one is for who asks for
 * the ends alone. */
typedef struct mull__ages {
    mull__span *at;
    size_t count, room;
    int rough;
} mull__ages;

/* mull__ages_hull is from the least to the greatest; nothing is in that of none. */
static inline mull__span mull__ages_hull(const mull__ages *ages)
{
    if (ages->count == 0)
        return (mull__span){MULL__FOREVER, 0};
    return (mull__span){ages->at[0].low_ms, ages->at[ages->count - 1].high_ms};
}

/* mull__ages_copy is for sets with the same room. */
void mull__ages_copy(mull__ages *to, const mull__ages *from);

/* mull__ages_add takes in a span. */
void mull__ages_add(mull__ages *ages, mull__span span);

/* mull__ages_hold says whether all ages of `inner` are in `outer`. */
int mull__ages_hold(const mull__ages *outer, const mull__ages *inner);

#endif
