/* measure.h: reading the clock, and what is typical of many values. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <time.h>

double bench_clock_ns(clockid_t id);

/* bench_sort puts values in order, the least first. */
void bench_sort(double *values, size_t count);

/* bench_median sorts them, too. */
double bench_median(double *values, size_t count);

#endif
