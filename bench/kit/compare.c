/* compare.c: rounds, in each of which mulligan and every other measure one after another, so that
 * they share what else the machine does; what is printed are medians of the rounds, and of their
 * ratios.
 *
 * A library of another language is a process that speaks first:
 *
 *   verdicts retry 200, retry 400, retry 800, stop; stop     without jitter: of four failures in a
 *                                                            row, and of a type without a rule
 *   spread 150 250                                           a first retry's delays, with jitter
 *   ready                                                    it is warm
 *
 * and then answers each line with what a failure costs it, in ns: in all, in a bare loop that calls
 * and catches, and, where that can be told apart, what says whether and when. */
#include "kit/compare.h"

#include "kit/child.h"
#include "kit/measure.h"
#include "kit/ours.h"
#include "kit/plain_lua.h"

#include <stdio.h>
#include <string.h>

enum { ROUNDS = 15, BATCHES = 201 };
enum { WHOLE, BARE, ALONE, COSTS };

typedef struct other other;
struct other {
    const char *name, *install;
    const char *argv[3]; /* of a process, else none */
    double (*plain_ns)(bench_plain_lua *plain, const mull_failure *failure);

    int is_there;
    bench_child child;
    char spread[64];
    int costs; /* how many of them it tells */
    double cost[COSTS][ROUNDS];
    double times[BENCH_MOST_WAYS][ROUNDS]; /* what a way takes */
};

#define NPM "npm install --no-package-lock --prefix bench/peers"

static other others[] = {
    {.name = "cockatiel", .install = NPM, .argv = {"node", BENCH_PEERS "/cockatiel.mjs"}},
    {.name = "p-retry", .install = NPM, .argv = {"node", BENCH_PEERS "/p-retry.mjs"}},
    {.name = "tenacity",
     .install = "apt-get install python3-tenacity",
     .argv = {"/usr/bin/python3", BENCH_PEERS "/peer_tenacity.py"}},
    {.name = "Lua function, from C", .plain_ns = bench_plain_lua_call_ns},
    {.name = "Lua function, in Lua", .plain_ns = bench_plain_lua_loop_ns},
};
enum { OTHERS = sizeof others / sizeof *others };

/* ---- The same verdicts ----------------------------------------------------------------------- */

typedef struct verdicts {
    char text[256];
    size_t length;
} verdicts;

/* add a verdict; where `only_retries` are known, any other is a stop. */
static void add(verdicts *v, const char *before, const char *action, int64_t delay_ms,
                int only_retries)
{
    char *at = v->text + v->length;
    size_t room = sizeof v->text - v->length;
    int count = only_retries && strcmp(action, "retry") != 0
                    ? snprintf(at, room, "%sstop", before)
                    : snprintf(at, room, "%s%s %lld", before, action, (long long)delay_ms);
    v->length += (size_t)count < room ? (size_t)count : room - 1;
}

static int decide(void *data, const mull_failure *failure, const char **action, int64_t *delay_ms)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int status = mull_decide(data, failure, &verdict);
    *action = mull_action_name(verdict.action);
    *delay_ms = verdict.delay_ms;
    return status;
}

static int decide_plain(void *data, const mull_failure *failure, const char **action,
                        int64_t *delay_ms)
{
    return bench_plain_lua_decide(data, failure, action, delay_ms);
}

/* say_verdicts: of four failures in a row, and of one that no rule knows. */
static int say_verdicts(verdicts *v,
                        int (*how)(void *data, const mull_failure *failure, const char **action,
                                   int64_t *delay_ms),
                        void *data, const mull_failure *failure, int only_retries)
{
    mull_failure f = *failure;
    mull_error unknown = *failure->error;
    unknown.type = "SomethingElse";
    f.flags |= MULL_NO_JITTER;
    *v = (verdicts){.length = 0};
    const char *action;
    int64_t delay_ms;
    for (f.attempt = 1; f.attempt <= 4; f.attempt++) {
        f.calls = f.attempt;
        if (how(data, &f, &action, &delay_ms) != 0)
            return -1;
        add(v, f.attempt > 1 ? ", " : "", action, delay_ms, only_retries);
    }
    f.attempt = f.calls = 1;
    f.error = &unknown;
    if (how(data, &f, &action, &delay_ms) != 0)
        return -1;
    add(v, "; ", action, delay_ms, only_retries);
    return 0;
}

/* same_verdicts: two ways to ask mulligan come to the same. */
static int same_verdicts(mull_decider *decider, const bench_way *a, const bench_way *b)
{
    mull_failure f = *a->failure, g = *b->failure;
    f.flags |= MULL_NO_JITTER;
    g.flags |= MULL_NO_JITTER;
    for (int attempt = 1; attempt <= 4; attempt++) {
        mull_verdict v = MULL_INIT(mull_verdict), w = MULL_INIT(mull_verdict);
        f.attempt = f.calls = g.attempt = g.calls = attempt;
        if (mull_decide(decider, &f, &v) != 0 || mull_decide(decider, &g, &w) != 0 ||
            v.action != w.action || v.delay_ms != w.delay_ms)
            return 0;
    }
    return 1;
}

static int agree(const char *name, const char *theirs, const char *ours)
{
    if (strcmp(theirs, ours) == 0)
        return 1;
    fprintf(stderr, "%s decides otherwise: %s\n  mulligan: %s\n", name, theirs, ours);
    return 0;
}

/* ---- Processes ------------------------------------------------------------------------------- */

/* hear takes a line that begins with a word, and gives what follows. */
static const char *hear(other *o, const char *word, char *line, size_t size)
{
    size_t length = strlen(word);
    if (bench_child_ask(&o->child, NULL, line, size) != 0 || strncmp(line, word, length) != 0)
        return NULL;
    return line[length] == ' ' ? line + length + 1 : line + length;
}

/* start a process, which is there if it gets as far as to be warm. -1: it decides otherwise. */
static int start(other *o, const char *ours)
{
    if (bench_child_start(&o->child, o->argv) != 0)
        return 0;
    char line[256];
    const char *said = hear(o, "verdicts", line, sizeof line);
    int status = said && !agree(o->name, said, ours) ? -1 : 0;
    if (said && status == 0 && (said = hear(o, "spread", line, sizeof line))) {
        snprintf(o->spread, sizeof o->spread, "%.60s", said);
        o->is_there = hear(o, "ready", line, sizeof line) != NULL;
    }
    if (!o->is_there)
        bench_child_end(&o->child);
    return status;
}

static int ask(other *o, int round)
{
    char answer[256];
    double cost[COSTS];
    if (bench_child_ask(&o->child, "again", answer, sizeof answer) != 0)
        return -1;
    o->costs = sscanf(answer, "%lf %lf %lf", &cost[WHOLE], &cost[BARE], &cost[ALONE]);
    for (int i = 0; i < o->costs; i++)
        o->cost[i][round] = cost[i];
    return o->costs > BARE ? 0 : -1;
}

/* ---- Rounds ---------------------------------------------------------------------------------- */

static int start_all(mull_decider *decider, const bench_way *ways, int count,
                     bench_plain_lua *plain)
{
    const mull_failure *by_names = ways[0].failure;
    verdicts ours, all, lua;
    for (int w = 1; w < count; w++)
        if (!same_verdicts(decider, &ways[0], &ways[w]))
            return -1;
    if (say_verdicts(&ours, decide, decider, by_names, 1) != 0 ||
        say_verdicts(&all, decide, decider, by_names, 0) != 0 ||
        say_verdicts(&lua, decide_plain, plain, by_names, 0) != 0 ||
        !agree("the Lua function", lua.text, all.text))
        return -1;
    for (int i = 0; i < OTHERS; i++) {
        others[i].is_there = others[i].plain_ns != NULL;
        if (!others[i].plain_ns && start(&others[i], ours.text) != 0)
            return -1;
    }
    return 0;
}

static int measure(other *o, bench_plain_lua *plain, const mull_failure *by_names, int round)
{
    if (!o->plain_ns)
        return ask(o, round);
    o->costs = 1;
    o->cost[WHOLE][round] = o->plain_ns(plain, by_names);
    return o->cost[WHOLE][round] > 0 ? 0 : -1;
}

/* run_round: what the call itself and its throw cost isn't counted as the other's. */
static int run_round(mull_decider *decider, const bench_way *ways, int count,
                     bench_plain_lua *plain, double (*ns)[ROUNDS], int round)
{
    for (int w = 0; w < count; w++)
        if ((ns[w][round] = bench_decide_ns(decider, ways[w].failure, BATCHES)) < 0)
            return -1;
    for (int i = 0; i < OTHERS; i++) {
        other *o = &others[i];
        if (!o->is_there)
            continue;
        if (measure(o, plain, ways[0].failure, round) != 0)
            return -1;
        double own = o->cost[WHOLE][round] - (o->costs > BARE ? o->cost[BARE][round] : 0);
        for (int w = 0; w < count; w++)
            o->times[w][round] = own / ns[w][round];
    }
    return 0;
}

/* ---- What is printed ------------------------------------------------------------------------- */

static void print_head(const bench_way *ways, int count)
{
    printf("%-22s %10s %10s %10s %12s", "", "a failure", "bare call", "alone", "draws, ms");
    for (int w = 0; w < count; w++)
        printf(" %9.9s x", ways[w].name);
    printf("\n");
}

static void print_other(other *o, int count)
{
    printf("%-22s", o->name);
    if (!o->is_there) {
        printf(" can't be run; %s\n", o->install);
        return;
    }
    for (int i = 0; i < COSTS; i++)
        if (i < o->costs)
            printf(" %10.1f", bench_median(o->cost[i], ROUNDS));
        else
            printf(" %10s", "-");
    printf(" %12s", o->spread[0] ? o->spread : "150 250");
    for (int w = 0; w < count; w++)
        printf(" %11.0f", bench_median(o->times[w], ROUNDS));
    printf("\n");
}

int bench_compare(mull_decider *decider, const bench_way *ways, int count)
{
    static double ns[BENCH_MOST_WAYS][ROUNDS];
    bench_plain_lua *plain = bench_plain_lua_open(BENCH_PEERS "/function.lua");
    int status = plain && count <= BENCH_MOST_WAYS ? start_all(decider, ways, count, plain) : -1;
    for (int round = 0; status == 0 && round < ROUNDS; round++)
        status = run_round(decider, ways, count, plain, ns, round);
    if (status == 0) {
        print_head(ways, count);
        for (int w = 0; w < count; w++)
            printf("mulligan, %-12s %10.1f\n", ways[w].name, bench_median(ns[w], ROUNDS));
        for (int i = 0; i < OTHERS; i++)
            print_other(&others[i], count);
    }
    for (int i = 0; i < OTHERS; i++)
        if (others[i].is_there && !others[i].plain_ns && bench_child_end(&others[i].child) != 0)
            status = -1;
    bench_plain_lua_close(plain);
    return status;
}
