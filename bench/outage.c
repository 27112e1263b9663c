/* outage.c: a service fails completely for ten minutes, while 100,000 messages wait for it, and
 * then takes 100 calls a second: what limits make of that, by a test's clock.
 *
 *   outage [--svg DIR]    prints tables, and fails when a limit does less than it should; with
 * --svg it also draws calls and backlog over time
 *
 * bench/README.md says what must hold, docs/outages.md what came out. */
#include "kit/downstream.h"
#include "kit/plot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MESSAGES = 100000, CONCURRENCY = 16, TENANTS = 100 };
enum { DOWN_MS = 600000, REFUSES_MS = 1, TIMES_OUT_MS = 30000, WORKS_MS = 100 };
enum { INTERVAL_MS = 10, EARLY_MS = 100 }; /* 100 calls a second, 10 of them at once */

/* What must hold. */
enum { FIRST_CALLS = 26, MOST_CALLS_DOWN = 60, MOST_PEAK = 12 };
static const double most_times_least = 1.3;

#define UP_TO(max_wait)                                                                            \
    "after = 10, messages = 3, keep = true, wait = '1s', max_wait = '" max_wait "', ramp = '30s'"
#define FULL UP_TO("30s")
#define POLICY(limits)                                                                             \
    "local policy = require 'mulligan.policy'\n"                                                   \
    "local bus = policy.bus()\n"                                                                   \
    "bus:default():retry(3):then_redeliver(3, '10s')\n" limits

typedef struct bench_policy {
    const char *name, *text;
    int is_full, is_paced; /* what must hold of it */
} bench_policy;

static const bench_policy policies[] = {
    {"no limit", POLICY(""), 0, 0},
    {"after, wait", POLICY("bus:rate_limit { after = 10, wait = '1s' }\n"), 0, 0},
    {"the full set", POLICY("bus:rate_limit { " FULL " }\n"), 1, 0},
    {"the full set, limit 100/s",
     POLICY("bus:rate_limit { " FULL " }\nbus:limit { rate = '100/s' }\n"), 1, 1},
};
enum { POLICIES = sizeof policies / sizeof *policies };

typedef struct bench_way {
    const char *name;
    int64_t fails_ms;
} bench_way;

static const bench_way ways[] = {{"it refuses", REFUSES_MS}, {"it times out", TIMES_OUT_MS}};
enum { WAYS = sizeof ways / sizeof *ways };

/* bench_tenants is how one tenant of many fails, and how much slower the others may be for it. */
typedef struct bench_tenants {
    const char *name, *policy;
    int64_t fails_ms;
    double most_slower;
} bench_tenants;

#define BY_TENANT(max_wait)                                                                        \
    POLICY("bus:rate_limit { " UP_TO(max_wait) ", per = policy.header('tenant') }\n"               \
                                               "bus:limit { rate = '100/s' }\n")

static const bench_tenants tenants[] = {
    {"it refuses", BY_TENANT("30s"), REFUSES_MS, 0.02},
    {"it refuses, max_wait 5s", BY_TENANT("5s"), REFUSES_MS, 0.02},
    {"it refuses, max_wait 1s", BY_TENANT("1s"), REFUSES_MS, 0.02},
    {"it times out", BY_TENANT("30s"), TIMES_OUT_MS, 0.10},
};
enum { TENANT_WAYS = sizeof tenants / sizeof *tenants };

static void measure(bench_outage_run *run, const char *policy, const bench_outage *other)
{
    bench_outage outage = *other;
    outage.policy = policy;
    outage.messages = MESSAGES;
    outage.concurrency = CONCURRENCY;
    outage.down_ms = DOWN_MS;
    outage.refuses_ms = REFUSES_MS;
    outage.works_ms = WORKS_MS;
    outage.interval_ms = INTERVAL_MS;
    outage.early_ms = EARLY_MS;
    if (bench_outage_measure(run, &outage) == 0)
        return;
    fprintf(stderr, "bench/outage: the engine doesn't run\n");
    exit(2);
}

/* must says what doesn't hold, and answers whether it does. */
static int must(int holds, const char *what)
{
    if (!holds)
        printf("    missed: %s\n", what);
    return holds;
}

/* ---- One service for all --------------------------------------------------------------------- */

static double gone_s(const bench_outage_run *run)
{
    return (double)(run->gone_ms - DOWN_MS) / 1000;
}

/* times_least: no policy can be faster than the service takes what was left when it was back. */
static double times_least(const bench_outage_run *run)
{
    return gone_s(run) / ((double)run->backlog_at_back * INTERVAL_MS / 1000);
}

static int judge(const bench_policy *policy, const bench_outage_run *run)
{
    int good = 1;
    if (policy->is_full) {
        good &= must(run->dead_lettered == 0, "no message is dead-lettered");
        good &= must(run->calls_while_down <= FIRST_CALLS + MOST_CALLS_DOWN,
                     "60 calls at most while it is down, after the first 26");
    }
    if (policy->is_paced) {
        good &= must(run->peak <= MOST_PEAK, "12 calls at most in 100 ms once it is back");
        good &= must(times_least(run) <= most_times_least, "1.3 times the least time at most");
    }
    return good;
}

static int print_way(const bench_way *way, bench_outage_run runs[POLICIES])
{
    int good = 1;
    const bench_outage outage = {.fails_ms = way->fails_ms};
    printf("%-28s %12s %12s %12s %12s %10s\n", way->name, "calls while", "dead", "most calls",
           "backlog gone", "times the");
    printf("%-28s %12s %12s %12s %12s %10s\n", "", "it is down", "letters", "in 100 ms", "after, s",
           "least");
    for (int i = 0; i < POLICIES; i++) {
        measure(&runs[i], policies[i].text, &outage);
        printf("%-28s %12lld %12lld %12lld %12.0f %10.3f\n", policies[i].name,
               (long long)runs[i].calls_while_down, (long long)runs[i].dead_lettered,
               (long long)runs[i].peak, gone_s(&runs[i]), times_least(&runs[i]));
        fflush(stdout);
        good &= judge(&policies[i], &runs[i]);
    }
    printf("\n");
    return good;
}

/* ---- One tenant of many ---------------------------------------------------------------------- */

static int print_tenants(void)
{
    int good = 1;
    bench_outage_run run;
    bench_outage outage = {.tenants = TENANTS, .lacks_first = 1, .fails_ms = REFUSES_MS};
    printf("%-28s %12s %12s %12s\n", "one of 100 tenants is down", "the others'", "times as",
           "its own are");
    printf("%-28s %12s %12s %12s\n", "", "a second", "long", "gone after, s");
    measure(&run, tenants[0].policy, &outage);
    free(run.steps);
    double alone_ms = (double)run.others_gone_ms, others = run.messages;
    printf("%-28s %12.1f\n", "it has no messages", others / alone_ms * 1000);
    outage.lacks_first = 0;
    for (int i = 0; i < TENANT_WAYS; i++) {
        outage.fails_ms = tenants[i].fails_ms;
        measure(&run, tenants[i].policy, &outage);
        free(run.steps);
        double slower = 1 - alone_ms / (double)run.others_gone_ms;
        printf("%-28s %12.1f %12.3f %12.0f\n", tenants[i].name,
               others / (double)run.others_gone_ms * 1000, (double)run.others_gone_ms / alone_ms,
               gone_s(&run));
        good &= must(slower <= tenants[i].most_slower, "the others are as fast as without it");
    }
    return good;
}

/* ---- Plots ----------------------------------------------------------------------------------- */

enum { PLOT_S = 5, STEPS = PLOT_S * 1000 / BENCH_STEP_MS };

static double calls_of(const bench_step *steps)
{
    double sum = 0;
    for (int i = 0; i < STEPS; i++)
        sum += steps[i].calls;
    return sum / PLOT_S;
}

static double backlog_of(const bench_step *steps)
{
    return steps[STEPS - 1].backlog;
}

static void draw(const char *folder, const char *name, bench_plot *plot,
                 const bench_outage_run runs[POLICIES], double (*of)(const bench_step *steps))
{
    char path[4096];
    plot->step_s = PLOT_S;
    plot->shaded_s = DOWN_MS / 1000.0;
    plot->shaded = "the service is down";
    plot->series_count = POLICIES;
    for (int i = 0; i < POLICIES; i++) {
        size_t count = runs[i].step_count / STEPS;
        double *values = calloc(count + 1, sizeof *values);
        for (size_t at = 0; values && at < count; at++)
            values[at] = of(&runs[i].steps[at * STEPS]);
        plot->series[i] = (bench_series){policies[i].name, values, values ? count : 0};
    }
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int status = bench_plot_write(path, plot);
    for (int i = 0; i < POLICIES; i++)
        free(plot->series[i].values);
    if (status == 0)
        return;
    perror(path);
    exit(2);
}

static void draw_all(const char *folder, const bench_outage_run runs[POLICIES])
{
    bench_plot calls = {.title = "Calls a second", .most = 200, .apart = 1};
    bench_plot backlog = {.title = "Messages that are left", .most = MESSAGES};
    draw(folder, "outage-calls.svg", &calls, runs, calls_of);
    draw(folder, "outage-backlog.svg", &backlog, runs, backlog_of);
}

int main(int argc, char **argv)
{
    bench_outage_run runs[WAYS][POLICIES];
    int good = 1;
    if (argc != 1 && (argc != 3 || strcmp(argv[1], "--svg") != 0)) {
        fprintf(stderr, "usage: outage [--svg DIR]\n");
        return 2;
    }
    for (int i = 0; i < WAYS; i++)
        good &= print_way(&ways[i], runs[i]);
    good &= print_tenants();
    if (argc == 3)
        draw_all(argv[2], runs[0]);
    for (int i = 0; i < WAYS; i++)
        for (int j = 0; j < POLICIES; j++)
            free(runs[i][j].steps);
    return !good;
}
