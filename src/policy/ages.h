/* ages.h: sets of ages that a message can have, as spans of whole milliseconds. */
#ifndef MULL__AGES_H
#define MULL__AGES_H

#include <stddef.h>
#include <stdint.h>

#include "delay.h"

/* MULL__FOREVER is an age that no sum exceeds: there is no bound. */
#define MULL__FOREVER INT64_MAX

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

/* mull__ages: spans in order, with a gap between any two. `at` has room for `room` of them and is
 * the caller's. Where more would be needed, the two with the least gap between them become one, and
 * the set is `rough`: it then holds ages besides that none has. Room for one is the hull. */
typedef struct mull__ages {
    mull__span *at;
    size_t count, room;
    int rough;
} mull__ages;

/* mull__ages_add takes in a span. */
void mull__ages_add(mull__ages *ages, mull__span span);

/* mull__ages_hold says whether all ages of `inner` are in `outer`. */
int mull__ages_hold(const mull__ages *outer, const mull__ages *inner);

#endif
