#include "kit/ours.h"

#include "kit/measure.h"

enum { BATCH = 500 };

int64_t bench_decide_often(mull_decider *decider, const mull_failure *failure, long count)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int64_t sum = 0;
    for (long i = 0; i < count; i++) {
        if (mull_decide(decider, failure, &verdict) != 0)
            return -1;
        sum += verdict.delay_ms;
    }
    return sum;
}

double bench_decide_ns(mull_decider *decider, const mull_failure *failure, int batches)
{
    double took[BENCH_MOST_BATCHES];
    for (int i = 0; i < batches; i++) {
        double from = bench_clock_ns(CLOCK_MONOTONIC);
        if (bench_decide_often(decider, failure, BATCH) < 0)
            return -1;
        took[i] = (bench_clock_ns(CLOCK_MONOTONIC) - from) / BATCH;
    }
    return bench_median(took, (size_t)batches);
}
