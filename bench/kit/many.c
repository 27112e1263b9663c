#include "kit/many.h"

#include "kit/count.h"
#include "kit/measure.h"
#include "mulligan.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 20000, ROUNDS = 101, LINE = 64 };

typedef struct many {
    int types;
    mull_policy *policy;
    mull_decider *decider;
    mull_type *ids;
    mull_failure failure;
    uint64_t random;
} many;

/* policy_of gives a text of so many rules, with fifty delays. */
static char *policy_of(int types)
{
    size_t size = (size_t)(types + 1) * LINE, length = 0;
    char *text = malloc(size);
    if (!text)
        return NULL;
    length = (size_t)snprintf(text, size, "local bus = require('mulligan.policy').bus()\n");
    for (int i = 0; i < types; i++)
        length +=
            (size_t)snprintf(text + length, size - length,
                             "bus:on('ConnectReset%05d'):retry(3, '%dms')\n", i, 100 + i % 50);
    return text;
}

static int intern(many *m)
{
    char name[LINE];
    m->ids = calloc((size_t)m->types, sizeof *m->ids);
    for (int i = 0; m->ids && i < m->types; i++) {
        snprintf(name, sizeof name, "ConnectReset%05d", i);
        if (mull_type_intern(&m->ids[i], m->policy, name) != 0)
            return -1;
    }
    return m->ids ? mull_site_intern(&m->failure.site, m->policy, "Payments", "orders") : -1;
}

static int open_many(many *m, int types)
{
    *m = (many){.types = types, .random = 1};
    m->failure = (mull_failure){.size = sizeof m->failure,
                                .attempt = 1,
                                .calls = 1,
                                .deliveries = 1,
                                .chance = 0x9e3779b97f4a7c15u,
                                .flags = MULL_HAS_CHANCE};
    char *text = policy_of(types);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    int status = text ? mull_policy_load(&m->policy, &options) : -1;
    free(text);
    if (status == 0)
        status = mull_decider_new(&m->decider, m->policy);
    return status ? status : intern(m);
}

static void close_many(many *m)
{
    mull_decider_free(m->decider);
    mull_policy_free(m->policy);
    free(m->ids);
}

static int decide_often(many *m, long count)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (long i = 0; i < count; i++) {
        m->random = m->random * 6364136223846793005u + 1442695040888963407u;
        m->failure.type = m->ids[(m->random >> 32) * (uint64_t)m->types >> 32];
        if (mull_decide(m->decider, &m->failure, &verdict) != 0 || verdict.action != MULL_RETRY)
            return -1;
    }
    return 0;
}

int bench_many_once(int types, long count)
{
    many m;
    int status = open_many(&m, types);
    if (status == 0)
        status = decide_often(&m, count);
    close_many(&m);
    return status;
}

/* count_events runs this program twice, so that what only the first decisions miss is left out. */
static int count_events(const char *program, int types, bench_events *events)
{
    enum { SHORT = 20000, LONG = 120000 };
    bench_events before;
    char number[16], few[16], more[16];
    snprintf(number, sizeof number, "%d", types);
    snprintf(few, sizeof few, "%d", SHORT);
    snprintf(more, sizeof more, "%d", LONG);
    const char *const first[] = {program, "many", number, few, NULL};
    const char *const second[] = {program, "many", number, more, NULL};
    if (bench_count_events(&before, "mull_decide", first) != 0 ||
        bench_count_events(events, "mull_decide", second) != 0)
        return -1;
    events->instructions = (events->instructions - before.instructions) / (LONG - SHORT);
    events->misses = (events->misses - before.misses) / (LONG - SHORT);
    return 0;
}

/* measure takes turns, so that the machine's other work doesn't fall on one of them alone. */
static int measure(many *all, size_t count, double took[][ROUNDS], double times[][ROUNDS])
{
    for (int round = 0; round < ROUNDS; round++)
        for (size_t i = 0; i < count; i++) {
            double from = bench_clock_ns(CLOCK_MONOTONIC);
            if (decide_often(&all[i], BATCH) != 0)
                return -1;
            took[i][round] = (bench_clock_ns(CLOCK_MONOTONIC) - from) / BATCH;
            times[i][round] = took[i][round] / took[0][round];
        }
    return 0;
}

int bench_many(const char *program)
{
    static const int types[] = {10, 100, 1000, 20000};
    enum { COUNT = sizeof types / sizeof *types };
    static double took[COUNT][ROUNDS], times[COUNT][ROUNDS];
    many all[COUNT] = {0};
    int status = 0;
    for (size_t i = 0; i < COUNT && status == 0; i++)
        status = open_many(&all[i], types[i]);
    if (status == 0)
        status = measure(all, COUNT, took, times);
    for (size_t i = 0; i < COUNT; i++)
        close_many(&all[i]);
    if (status)
        return -1;
    printf("%-10s %12s %12s %12s %12s\n", "types", "ns", "times", "instructions", "misses");
    for (size_t i = 0; i < COUNT; i++) {
        bench_events events;
        printf("%-10d %12.1f %12.2f", types[i], bench_median(took[i], ROUNDS),
               bench_median(times[i], ROUNDS));
        if (count_events(program, types[i], &events) == 0)
            printf(" %12.0f %12.2f", events.instructions, events.misses);
        printf("\n");
    }
    return 0;
}
