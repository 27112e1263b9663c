/* reload.c: how long a reload holds its thread, and what deciding costs while another thread
 * reloads all the time.
 *
 *   reloads    policies of 10, 100 and 1,000 rules, with 0, 1 and 4 deciders that need a Lua state
 *   decisions  one at a time, by 100 rules: alone, and while another thread reloads, 1 ms apart
 *
 * bench/README.md has the command. */
#include "mulligan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RELOADS = 21, MOST_DECIDERS = 4, DECISIONS = 2000000, BENCH_RULES = 100, ROUNDS = 3 };

static void die(const char *what)
{
    fprintf(stderr, "bench/reload: %s\n", what);
    exit(2);
}

static double read_clock(clockid_t id)
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

/* ---- Policies -------------------------------------------------------------------------------- */

/* rules_text gives a policy of so many rules, each tenth with a function; `serial` makes its bytes
 * its own. The caller frees it. */
static char *rules_text(int rules, long serial)
{
    size_t room = 128 + (size_t)rules * 128, at = 0;
    char *text = malloc(room);
    if (!text)
        die("out of memory");
    at += (size_t)snprintf(text, room, "-- %ld\nlocal bus = require('mulligan.policy').bus()\n",
                           serial);
    for (int i = 0; i < rules; i++)
        at +=
            (size_t)snprintf(text + at, room - at, "bus:on('Type%d'%s):retry(3):then_redeliver()\n",
                             i, i % 10 ? "" : ", function(err) return err.status == 503 end");
    return text;
}

static void reload(mull_policy *policy, int rules, long serial)
{
    char *text = rules_text(rules, serial);
    if (mull_policy_reload(policy, text, 0) != 0)
        die("a reload failed");
    free(text);
}

static mull_policy *load(int rules)
{
    char *text = rules_text(rules, 0);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    mull_policy *policy;
    if (mull_policy_load(&policy, &options) != 0)
        die("no policy");
    free(text);
    return policy;
}

static mull_decider *new_decider(mull_policy *policy)
{
    mull_decider *decider;
    if (mull_decider_new(&decider, policy) != 0)
        die("no decider");
    return decider;
}

/* ---- Reloads --------------------------------------------------------------------------------- */

/* print_median says what a reload takes with so many deciders: by the clock, which on a busy
 * machine counts the others too, and of its thread's CPU time. */
static void print_median(int rules, int deciders)
{
    mull_policy *policy = load(rules);
    mull_decider *made[MOST_DECIDERS];
    for (int i = 0; i < deciders; i++)
        made[i] = new_decider(policy);
    double took[RELOADS], cpu[RELOADS];
    for (int i = 0; i < RELOADS; i++) {
        double from = read_clock(CLOCK_MONOTONIC), cpu_from = read_clock(CLOCK_THREAD_CPUTIME_ID);
        reload(policy, rules, i + 1);
        took[i] = (read_clock(CLOCK_MONOTONIC) - from) / 1e6;
        cpu[i] = (read_clock(CLOCK_THREAD_CPUTIME_ID) - cpu_from) / 1e6;
    }
    for (int i = 0; i < deciders; i++)
        mull_decider_free(made[i]);
    mull_policy_free(policy);
    qsort(took, RELOADS, sizeof *took, by_size);
    qsort(cpu, RELOADS, sizeof *cpu, by_size);
    printf("   %d: %6.2f (%6.2f)", deciders, took[RELOADS / 2], cpu[RELOADS / 2]);
}

/* ---- Decisions ------------------------------------------------------------------------------- */

typedef struct reloader {
    mull_policy *policy;
    atomic_int stop;
    long reloads;
} reloader;

static void *reload_each_ms(void *data)
{
    reloader *r = data;
    const struct timespec pause = {.tv_nsec = 1000000};
    while (!r->stop) {
        reload(r->policy, BENCH_RULES, ++r->reloads);
        nanosleep(&pause, NULL);
    }
    return NULL;
}

static int by_time(double *took, mull_decider *decider)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "Type7";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (int i = 0; i < DECISIONS; i++) {
        double from = read_clock(CLOCK_MONOTONIC);
        if (mull_decide(decider, &failure, &verdict) != 0)
            return -1;
        took[i] = read_clock(CLOCK_MONOTONIC) - from;
    }
    qsort(took, DECISIONS, sizeof *took, by_size);
    return 0;
}

/* measure prints a round's line; `reloading` beside another thread. */
static void measure(double *took, int reloading)
{
    reloader r = {.policy = load(BENCH_RULES)};
    mull_decider *decider = new_decider(r.policy);
    pthread_t thread;
    if (reloading && pthread_create(&thread, NULL, reload_each_ms, &r) != 0)
        die("no thread");
    if (by_time(took, decider) != 0)
        die("a decision failed");
    r.stop = 1;
    if (reloading)
        pthread_join(thread, NULL);
    mull_decider_free(decider);
    mull_policy_free(r.policy);
    printf("  %-9s  median %4.0f ns   99.9th percentile %6.0f ns   reloads %ld\n",
           reloading ? "reloading" : "alone", took[DECISIONS / 2], took[DECISIONS / 1000 * 999],
           r.reloads);
}

int main(void)
{
    static const int sizes[] = {10, 100, 1000};
    static const int deciders[] = {0, 1, 4};
    printf("a reload, median of %d, by deciders: ms (ms of CPU time)\n", RELOADS);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        printf("  %5d rules", sizes[i]);
        for (size_t k = 0; k < sizeof deciders / sizeof *deciders; k++)
            print_median(sizes[i], deciders[k]);
        printf("\n");
    }
    printf("%d decisions, reading the clock included:\n", DECISIONS);
    double *took = malloc(DECISIONS * sizeof *took);
    if (!took)
        die("out of memory");
    for (int round = 0; round < ROUNDS; round++) {
        measure(took, 0);
        measure(took, 1);
    }
    free(took);
    return 0;
}
