/* cores.c: does a second core decide as much again? Two threads with a decider each, by one policy,
 * beside one thread alone, in turn.
 *
 *   by the clock      what two cores give that have nothing else to do
 *   by CPU time       decisions per second that the threads ran: what another process takes isn't
 *                     counted, what the threads take from each other (a cache line that both
 *                     write) is
 *
 * bench/README.md has the command. */
#include "kit/measure.h"
#include "kit/ours.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 7, THREADS = 2 };

static const double aim = 1.8;

static void die(const char *what)
{
    fprintf(stderr, "bench/cores: %s\n", what);
    exit(2);
}

/* ---- What is decided ------------------------------------------------------------------------- */

static const char policy_text[] =
    "local bus = require('mulligan.policy').bus()\n"
    "bus:on('ConnectReset'):retry(3, '200ms'):then_redeliver()\n"
    "bus:on('HttpServerErr', { status = 503, transient = true }):retry():then_redeliver()\n"
    "bus:on('QuotaExceeds', function(err) return err.status == 429 end):redeliver()\n"
    "bus:default():retry():then_redeliver()\n";

static const mull_field fields[] = {
    {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
    {"transient", {.kind = MULL_BOOLEAN, .as.boolean = 1}},
};
static const mull_field other_fields[] = {
    {"status", {.kind = MULL_INTEGER, .as.integer = 429}},
};

/* The counts are for about a tenth of a second a thread. */
typedef struct cores_case {
    const char *name, *type;
    const mull_field *fields;
    size_t field_count;
    long count;
} cores_case;

static const cores_case cases[] = {
    {"a type", "ConnectReset", NULL, 0, 10000000},
    {"a table matcher", "HttpServerErr", fields, 2, 6000000},
    {"a function", "QuotaExceeds", other_fields, 1, 1000000},
};

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct worker {
    const cores_case *what;
    mull_decider *decider;
    pthread_barrier_t *begin;
    double from_ns, to_ns, cpu_ns;
} worker;

/* Each has its failure on its own stack, as each decider is its own. */
static void *work(void *data)
{
    worker *w = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = w->what->type;
    error.fields = w->what->fields;
    error.field_count = w->what->field_count;
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.attempt = failure.calls = failure.deliveries = 1;
    failure.chance = 0x9e3779b97f4a7c15u;
    failure.flags = MULL_HAS_CHANCE;
    pthread_barrier_wait(w->begin);
    w->from_ns = bench_clock_ns(CLOCK_MONOTONIC);
    double cpu = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (bench_decide_often(w->decider, &failure, w->what->count) < 0)
        die("a decision failed");
    w->cpu_ns = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
    w->to_ns = bench_clock_ns(CLOCK_MONOTONIC);
    return NULL;
}

/* rates are decisions a nanosecond. */
typedef struct rates {
    double clock, cpu;
} rates;

/* decide_on so many threads at once, from the first one's start to the last one's end. */
static rates decide_on(int threads, const cores_case *what, mull_decider **deciders)
{
    pthread_barrier_t begin;
    pthread_t ids[THREADS];
    worker workers[THREADS];
    if (pthread_barrier_init(&begin, NULL, (unsigned)threads) != 0)
        die("no barrier");
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){.what = what, .decider = deciders[i], .begin = &begin};
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            die("no thread");
    }
    double from = 0, to = 0, per_cpu = 0;
    for (int i = 0; i < threads; i++) {
        worker *w = &workers[i];
        pthread_join(ids[i], NULL);
        from = i == 0 || w->from_ns < from ? w->from_ns : from;
        to = w->to_ns > to ? w->to_ns : to;
        per_cpu += (double)what->count / w->cpu_ns;
    }
    pthread_barrier_destroy(&begin);
    return (rates){.clock = (double)(threads * what->count) / (to - from), .cpu = per_cpu};
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static void print_case(const cores_case *what, mull_decider **deciders)
{
    double one[ROUNDS], clock[ROUNDS], cpu[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        rates alone = decide_on(1, what, deciders), both = decide_on(THREADS, what, deciders);
        one[round] = alone.clock;
        clock[round] = both.clock / alone.clock;
        cpu[round] = both.cpu / alone.cpu;
    }
    printf("%-16s %16.1f %15.2f %15.2f\n", what->name, bench_median(one, ROUNDS) * 1e3,
           bench_median(clock, ROUNDS), bench_median(cpu, ROUNDS));
    fflush(stdout);
}

int main(void)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = policy_text;
    mull_policy *policy;
    mull_decider *deciders[THREADS];
    if (mull_policy_load(&policy, &options) != 0)
        die("no policy");
    for (int i = 0; i < THREADS; i++)
        if (mull_decider_new(&deciders[i], policy) != 0)
            die("no decider");
    printf("medians of %d rounds; wanted: %.1f times\n", ROUNDS, aim);
    printf("%-16s %16s %15s %15s\n", "", "one, millions/s", "two, by clock", "by CPU time");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        print_case(&cases[i], deciders);
    for (int i = 0; i < THREADS; i++)
        mull_decider_free(deciders[i]);
    mull_policy_free(policy);
    return 0;
}
