/* reload.c: how long a reload holds its thread, and what deciding costs while another thread
 * reloads all the time.
 *
 *   reloads    policies of 10, 100 and 1,000 rules, with 0, 1 and 4 deciders that need a Lua state
 *   decisions  one at a time, for about a tenth of a second: alone, and while another thread
 * publishes a generation each millisecond, in turn; side by side, where the slow ones lie
 *
 * bench/README.md has the command. */
#include "kit/measure.h"
#include "mulligan.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { RELOADS = 21, MOST_DECIDERS = 4, DECISIONS = 2000000, ROUNDS = 7 };

/* So few, none of which has a function, that a reload takes less than the millisecond it has. */
enum { DECIDED_RULES = 20 };

static void die(const char *what)
{
    fprintf(stderr, "bench/reload: %s\n", what);
    exit(2);
}

/* ---- Policies -------------------------------------------------------------------------------- */

/* rules_text gives a policy of so many rules, each tenth with a function if any has; `serial` makes
 * its bytes its own. The caller frees it. */
static char *rules_text(int rules, int functions, long serial)
{
    size_t room = 128 + (size_t)rules * 128, at = 0;
    char *text = malloc(room);
    if (!text)
        die("out of memory");
    at += (size_t)snprintf(text, room, "-- %ld\nlocal bus = require('mulligan.policy').bus()\n",
                           serial);
    for (int i = 0; i < rules; i++)
        at += (size_t)snprintf(
            text + at, room - at, "bus:on('Type%d'%s):retry(3):then_redeliver()\n", i,
            functions && i % 10 == 0 ? ", function(err) return err.status == 503 end" : "");
    return text;
}

static void reload(mull_policy *policy, int rules, int functions, long serial)
{
    char *text = rules_text(rules, functions, serial);
    if (mull_policy_reload(policy, text, 0) != 0)
        die("a reload failed");
    free(text);
}

static mull_policy *load(int rules, int functions)
{
    char *text = rules_text(rules, functions, 0);
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
    mull_policy *policy = load(rules, 1);
    mull_decider *made[MOST_DECIDERS];
    for (int i = 0; i < deciders; i++)
        made[i] = new_decider(policy);
    double took[RELOADS], cpu[RELOADS];
    for (int i = 0; i < RELOADS; i++) {
        double from = bench_clock_ns(CLOCK_MONOTONIC),
               cpu_from = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        reload(policy, rules, 1, i + 1);
        took[i] = (bench_clock_ns(CLOCK_MONOTONIC) - from) / 1e6;
        cpu[i] = (bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_from) / 1e6;
    }
    for (int i = 0; i < deciders; i++)
        mull_decider_free(made[i]);
    mull_policy_free(policy);
    printf("   %d: %6.2f (%6.2f)", deciders, bench_median(took, RELOADS),
           bench_median(cpu, RELOADS));
}

/* ---- Decisions ------------------------------------------------------------------------------- */

/* beside is what goes on meanwhile; of another policy's reloads a decider sees nothing but what any
 * busy neighbour does to it. */
typedef enum beside { NOTHING, ANOTHERS, ITS_OWN, BESIDES } beside;

static const char *const beside_names[BESIDES] = {"alone", "another's reloads", "its reloads"};

typedef struct reloader {
    mull_policy *policy;
    atomic_int stop;
    long reloads;
    double ns; /* from the first reload's start to the last one's end */
} reloader;

/* pause until the next millisecond of a row, leaving out those that are over. */
static void pause_until(struct timespec *next)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    do {
        next->tv_nsec += 1000000;
        if (next->tv_nsec >= 1000000000) {
            next->tv_nsec -= 1000000000;
            next->tv_sec++;
        }
    } while (next->tv_sec < now.tv_sec ||
             (next->tv_sec == now.tv_sec && next->tv_nsec < now.tv_nsec));
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, next, NULL);
}

static void *reload_each_ms(void *data)
{
    reloader *r = data;
    double from = bench_clock_ns(CLOCK_MONOTONIC);
    struct timespec next;
    clock_gettime(CLOCK_MONOTONIC, &next);
    while (!r->stop) {
        reload(r->policy, DECIDED_RULES, 0, ++r->reloads);
        pause_until(&next);
    }
    r->ns = bench_clock_ns(CLOCK_MONOTONIC) - from;
    return NULL;
}

/* decide each type in turn, so that a new generation is looked into all over. */
static void decide_by_time(double *took, mull_decider *decider)
{
    char types[DECIDED_RULES][16];
    for (int i = 0; i < DECIDED_RULES; i++)
        snprintf(types[i], sizeof types[i], "Type%d", i);
    mull_error error = MULL_INIT(mull_error);
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (int i = 0; i < DECISIONS; i++) {
        error.type = types[i % DECIDED_RULES];
        double from = bench_clock_ns(CLOCK_MONOTONIC);
        if (mull_decide(decider, &failure, &verdict) != 0)
            die("a decision failed");
        took[i] = bench_clock_ns(CLOCK_MONOTONIC) - from;
    }
    bench_sort(took, DECISIONS);
}

/* SHARES are of decisions, in ten-thousandths: at the most so slow. */
enum { MEDIAN, P99, P999, P9999, SHARES };
static const int shares[SHARES] = {5000, 9900, 9990, 9999};
static const char *const share_names[SHARES] = {"median", "99th percentile", "99.9th", "99.99th"};

typedef struct rounds {
    double ns[SHARES][ROUNDS];
    double each_ms[ROUNDS]; /* a reload */
} rounds;

/* measure a round. */
static void measure(double *took, beside what, rounds *all, int round)
{
    mull_policy *policy = load(DECIDED_RULES, 0), *other = load(DECIDED_RULES, 0);
    reloader r = {.policy = what == ITS_OWN ? policy : other};
    mull_decider *decider = new_decider(policy);
    pthread_t thread;
    if (what != NOTHING && pthread_create(&thread, NULL, reload_each_ms, &r) != 0)
        die("no thread");
    decide_by_time(took, decider);
    r.stop = 1;
    if (what != NOTHING) {
        pthread_join(thread, NULL);
        all->each_ms[round] = r.ns / 1e6 / (double)r.reloads;
    }
    mull_decider_free(decider);
    mull_policy_free(policy);
    mull_policy_free(other);
    for (int i = 0; i < SHARES; i++)
        all->ns[i][round] = took[(size_t)DECISIONS / 10000 * (size_t)shares[i]];
}

static void print_decisions(void)
{
    static rounds all[BESIDES];
    double *took = malloc(DECISIONS * sizeof *took);
    if (!took)
        die("out of memory");
    for (int round = 0; round < ROUNDS; round++)
        for (beside b = 0; b < BESIDES; b++)
            measure(took, b, &all[b], round);
    free(took);
    printf("%d decisions a round, ns, the clock's reading included; medians of %d rounds:\n",
           DECISIONS, ROUNDS);
    printf("%-18s", "");
    for (beside b = 0; b < BESIDES; b++)
        printf(" %18s", beside_names[b]);
    for (int i = 0; i < SHARES; i++) {
        printf("\n%-18s", share_names[i]);
        for (beside b = 0; b < BESIDES; b++)
            printf(" %18.0f", bench_median(all[b].ns[i], ROUNDS));
    }
    printf("\n%-18s %18s", "a reload each, ms", "-");
    for (beside b = ANOTHERS; b < BESIDES; b++)
        printf(" %18.2f", bench_median(all[b].each_ms, ROUNDS));
    printf("\n");
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
    fflush(stdout);
    print_decisions();
    return 0;
}
