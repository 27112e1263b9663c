/* compare.h: the same decision, made by others. */
#ifndef BENCH_COMPARE_H
#define BENCH_COMPARE_H

#include "mulligan.h"

/* bench_way is how mulligan is asked for the decision. */
typedef struct bench_way {
    const char *name;
    const mull_failure *failure;
} bench_way;

enum { BENCH_MOST_WAYS = 4 };

/* bench_compare prints what the decision costs in each way, what it costs each of the others that
 * is installed, and how many times as much. The first way is by names; its error's rule says
 * retry(3, "200ms"):then_redeliver(). 0; -1: one of them decides otherwise, or fails. */
int bench_compare(mull_decider *decider, const bench_way *ways, int count);

#endif
