#include "kit/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

double bench_clock_ns(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

double bench_rss_mb(void)
{
    long pages = 0, resident = 0;
    FILE *in = fopen("/proc/self/statm", "r");
    int count = in ? fscanf(in, "%ld %ld", &pages, &resident) : 0;
    if (in)
        fclose(in);
    return count == 2 ? (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6 : -1;
}

double bench_most_rss_mb(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)used.ru_maxrss * 1024 / 1e6;
}

int bench_count_before(const char *text, const char *words, unsigned long long *count)
{
    const char *at = strstr(text, words);
    if (!at)
        return 0;
    while (at > text && at[-1] >= '0' && at[-1] <= '9')
        at--;
    *count = strtoull(at, NULL, 10);
    return 1;
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
