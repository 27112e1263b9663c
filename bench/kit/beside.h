/* beside.h: this program beside the same one of another build. */
#ifndef BENCH_BESIDE_H
#define BENCH_BESIDE_H

enum { BENCH_MOST_ROUNDS = 1001 };

/* bench_beside runs `PROGRAM CASE chance COUNT` of both builds in turns, so often, and gives how
 * many times the other's CPU time this one takes: the median of the rounds' ratios, without what a
 * run takes that decides once. Below 0: one of them failed. */
double bench_beside(const char *program, const char *other, const char *name, long count,
                    int rounds);

#endif
