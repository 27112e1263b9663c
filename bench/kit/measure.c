#include "kit/measure.h"

#include <stdlib.h>

double bench_clock_ns(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_size);
}

double bench_median(double *values, size_t count)
{
    bench_sort(values, count);
    return values[count / 2];
}
