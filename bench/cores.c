/* cores.c: does a second core decide as much again? Two threads with a decider each, by one policy,
 * beside one thread alone, in turn.
 *
 * Other work on the machine takes its cores away, which isn't what is asked. So the decisions are
 * made in slices of about a millisecond, each thread on a core of its own and begun by all at once,
 * and a round's rate is that of its best slice: one in which nothing else ran.
 *
 * bench/README.md has the command. */
#include "kit/measure.h"
#include "kit/ours.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 7, THREADS = 2, SLICES = 100 };

static const double aim = 1.8;

static void die(const char *what)
{
    fprintf(stderr, "bench/cores: %s\n", what);
    exit(2);
}

/* ---- What is decided ------------------------------------------------------------------------- */

/* Without functions, and with one: where deciders have Lua states, these lie between what else they
 * have. */
#define RULES                                                                                      \
    "local bus = require('mulligan.policy').bus()\n"                                               \
    "bus:on('ConnectReset'):retry(3, '200ms'):then_redeliver()\n"                                  \
    "bus:on('HttpServerErr', { status = 503, transient = true }):retry():then_redeliver()\n"       \
    "bus:default():retry():then_redeliver()\n"

static const char plain_rules[] = RULES;
static const char function_rules[] =
    RULES "bus:on('QuotaExceeds', function(err) return err.status == 429 end):redeliver()\n";

static const mull_field fields[] = {
    {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
    {"transient", {.kind = MULL_BOOLEAN, .as.boolean = 1}},
};
static const mull_field other_fields[] = {
    {"status", {.kind = MULL_INTEGER, .as.integer = 429}},
};

static const char *const lineage[] = {"PoolError", "ConnectReset"};

/* The counts are a slice's. */
typedef struct cores_case {
    const char *name, *rules, *type;
    const char *const *lineage;
    const mull_field *fields;
    size_t field_count;
    long count;
} cores_case;

static const cores_case cases[] = {
    {"a type", plain_rules, "ConnectReset", NULL, NULL, 0, 100000},
    {"a table matcher", plain_rules, "HttpServerErr", NULL, fields, 2, 60000},
    {"a lineage", plain_rules, "PoolReset", lineage, NULL, 0, 30000},
    {"a function", function_rules, "QuotaExceeds", NULL, other_fields, 1, 10000},
};

/* ---- Threads --------------------------------------------------------------------------------- */

typedef struct worker {
    const cores_case *what;
    mull_decider *decider;
    int core, threads;
    atomic_int *ready;
    double from_ns[SLICES], to_ns[SLICES];
} worker;

/* stay on the so-manyth of the cores that this process may use. */
static void stay_on(int core)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        die("no cores");
    for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &all) && core-- == 0)
            CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0)
        die("this takes two cores");
}

/* meet spins, so that all are at work when they part. */
static void meet(worker *w, int slice)
{
    atomic_fetch_add(w->ready, 1);
    while (atomic_load(w->ready) < w->threads * (slice + 1)) {
    }
}

/* Each has its failure on its own stack, as each decider is its own. */
static void *work(void *data)
{
    worker *w = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = w->what->type;
    error.lineage = w->what->lineage;
    error.lineage_count = w->what->lineage ? 2 : 0;
    error.fields = w->what->fields;
    error.field_count = w->what->field_count;
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.attempt = failure.calls = failure.deliveries = 1;
    failure.chance = 0x9e3779b97f4a7c15u;
    failure.flags = MULL_HAS_CHANCE;
    stay_on(w->core);
    for (int i = 0; i < SLICES; i++) {
        meet(w, i);
        w->from_ns[i] = bench_clock_ns(CLOCK_MONOTONIC);
        if (bench_decide_often(w->decider, &failure, w->what->count) < 0)
            die("a decision failed");
        w->to_ns[i] = bench_clock_ns(CLOCK_MONOTONIC);
    }
    return NULL;
}

/* slice_ns is from the first one's start to the last one's end. */
static double slice_ns(const worker *workers, int threads, int slice)
{
    double from = workers[0].from_ns[slice], to = workers[0].to_ns[slice];
    for (int i = 1; i < threads; i++) {
        from = workers[i].from_ns[slice] < from ? workers[i].from_ns[slice] : from;
        to = workers[i].to_ns[slice] > to ? workers[i].to_ns[slice] : to;
    }
    return to - from;
}

/* best_rate is in decisions a nanosecond, of so many threads at once. */
static double best_rate(int threads, const cores_case *what, mull_decider **deciders)
{
    static worker workers[THREADS];
    atomic_int ready = 0;
    pthread_t ids[THREADS];
    for (int i = 0; i < threads; i++) {
        workers[i] = (worker){
            .what = what, .decider = deciders[i], .core = i, .threads = threads, .ready = &ready};
        if (pthread_create(&ids[i], NULL, work, &workers[i]) != 0)
            die("no thread");
    }
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    double best = 0;
    for (int i = 0; i < SLICES; i++) {
        double rate = (double)(threads * what->count) / slice_ns(workers, threads, i);
        best = rate > best ? rate : best;
    }
    return best;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

/* load a policy for the deciders, and let them take a second generation of it, whose seats a reload
 * makes one after another. */
static mull_policy *load(const char *rules, mull_decider **deciders)
{
    char again[1024];
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = rules;
    mull_policy *policy;
    if (mull_policy_load(&policy, &options) != 0)
        die("no policy");
    for (int i = 0; i < THREADS; i++)
        if (mull_decider_new(&deciders[i], policy) != 0)
            die("no decider");
    snprintf(again, sizeof again, "%s-- again\n", rules);
    if (mull_policy_reload(policy, again, 0) != 0)
        die("no reload");
    return policy;
}

static void print_case(const cores_case *what)
{
    mull_decider *deciders[THREADS];
    mull_policy *policy = load(what->rules, deciders);
    double one[ROUNDS], two[ROUNDS], times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        one[round] = best_rate(1, what, deciders);
        two[round] = best_rate(THREADS, what, deciders);
        times[round] = two[round] / one[round];
    }
    for (int i = 0; i < THREADS; i++)
        mull_decider_free(deciders[i]);
    mull_policy_free(policy);
    printf("%-16s %16.1f %16.1f %8.2f\n", what->name, bench_median(one, ROUNDS) * 1e3,
           bench_median(two, ROUNDS) * 1e3, bench_median(times, ROUNDS));
    fflush(stdout);
}

int main(void)
{
    printf("millions of decisions a second, medians of %d rounds; wanted: %.1f times\n", ROUNDS,
           aim);
    printf("%-16s %16s %16s %8s\n", "", "one core", "two cores", "times");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        print_case(&cases[i]);
    return 0;
}
