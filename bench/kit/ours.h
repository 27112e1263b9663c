/* ours.h: decisions of mulligan's, to be measured. */
#ifndef BENCH_OURS_H
#define BENCH_OURS_H

#include "mulligan.h"

/* bench_decide_often decides so often, and sums up the delays, which a compiler can't leave out.
 * -1: a decision failed. */
int64_t bench_decide_often(mull_decider *decider, const mull_failure *failure, long count);

enum { BENCH_MOST_BATCHES = 2001 };

/* bench_decide_ns is what one decision takes, the median of so many short batches; below 0: a
 * decision failed. */
double bench_decide_ns(mull_decider *decider, const mull_failure *failure, int batches);

#endif
