/* measure.h: the clock, this process's memory, and what is typical of many values. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stddef.h>
#include <time.h>

double bench_clock_ns(clockid_t id);

/* What of this process is in memory, in MB: now, and at the most so far. Below 0: /proc/self/statm
 * can't be read. */
double bench_rss_mb(void);
double bench_most_rss_mb(void);

/* bench_count_before reads the whole number that stands before `words` in a text; 0: they aren't
 * there, and `count` is as it was. */
int bench_count_before(const char *text, const char *words, unsigned long long *count);

/* bench_sort puts values in order, the least first. */
void bench_sort(double *values, size_t count);

/* bench_median sorts them, too. */
double bench_median(double *values, size_t count);

#endif
