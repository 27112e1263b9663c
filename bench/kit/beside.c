#include "kit/beside.h"

#include "kit/child.h"
#include "kit/measure.h"

#include <stdio.h>
#include <sys/resource.h>

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

/* cpu_of_children counts those that have ended. */
static double cpu_of_children(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/* run gives the CPU time of one run, in seconds; below 0: it failed. */
static double run(const char *program, const char *name, long count)
{
    char number[24], sum[64];
    snprintf(number, sizeof number, "%ld", count);
    const char *const argv[] = {program, name, "chance", number, NULL};
    double before = cpu_of_children();
    bench_child child;
    if (bench_child_start(&child, argv) != 0)
        return -1;
    int status = bench_child_ask(&child, NULL, sum, sizeof sum);
    if (bench_child_end(&child) != 0 || status != 0)
        return -1;
    return cpu_of_children() - before;
}

/* run_start gives what a run takes that decides once. */
static double run_start(const char *program, const char *name)
{
    enum { RUNS = 7 };
    double took[RUNS];
    for (int i = 0; i < RUNS; i++)
        took[i] = run(program, name, 1);
    return bench_median(took, RUNS);
}

double bench_beside(const char *program, const char *other, const char *name, long count,
                    int rounds)
{
    double ratios[BENCH_MOST_ROUNDS];
    double start = run_start(program, name), other_start = run_start(other, name);
    for (int i = 0; i < rounds; i++) {
        double first = run(i % 2 ? program : other, name, count);
        double second = run(i % 2 ? other : program, name, count);
        double ours = i % 2 ? first : second, others = i % 2 ? second : first;
        if (ours <= start || others <= other_start)
            return -1;
        ratios[i] = (ours - start) / (others - other_start);
    }
    return bench_median(ratios, (size_t)rounds);
}
