/* load.c: what loading a policy costs, beside what Lua itself needs for the same bytes.
 *
 *   load    mull_policy_load of a file, and all that belongs to it: the holder made, a Lua state
 *           opened with the embedded files, the policy's file read and run once (it has no
 *           functions, so no decider needs a state of its own), its result compiled to a table
 *   plain   a lua_State with the standard libraries, which loads and runs the same bytes, where
 *           every word of policy, a scope or a rule is an empty function that returns self
 *
 * The first load of a process touches its memory for the first time; it is printed by itself.
 *
 * Both read the file anew each time. The two take turns. With `once` it does each a single time,
 * for callgrind, which counts between the entry and the end of a function:
 *
 *   valgrind --tool=callgrind --toggle-collect=load_again load once 1000
 *   valgrind --tool=callgrind --toggle-collect=run_plain load once 1000
 *
 * bench/README.md has the command. */
#include "kit/measure.h"
#include "mulligan.h"

#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROUNDS = 21, MOST_RATIO = 8 };

/* What is measured, and the most that it may take; 0: any time. */
typedef struct load_case {
    int rules;
    double most_ms;
} load_case;

static const load_case cases[] = {{0, 0}, {1000, 7.5}, {20000, 180}};

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/load: %s: %s\n", what, why);
    exit(2);
}

/* ---- The policy ------------------------------------------------------------------------------ */

/* Chains as policies have them: most rules are one of the first two. */
static void write_rule(FILE *file, int i)
{
    switch (i % 10) {
    case 3:
        fprintf(file, "bus:on(\"Type%d\", { status = %d, transient = true })\n", i, 400 + i % 200);
        fprintf(file, "   :retry(5, \"100ms\", \"exponential\")\n   :then_redeliver()\n");
        break;
    case 5:
        fprintf(file, "bus:on(\"Type%d\"):dead_letter(\"parked-%d\")\n", i, i % 7);
        break;
    case 7:
        fprintf(file, "bus:on(\"Type%d\")\n   :redeliver { attempts = %d, delay = \"2m\" }\n", i,
                3 + i % 5);
        fprintf(file, "   :then_dead_letter()\n");
        break;
    case 9:
        fprintf(file, "bus:on(\"Type%d\"):discard(\"known since %d\")\n", i, 2000 + i % 25);
        break;
    default:
        fprintf(file, "bus:on(\"Type%d\"):retry(3, \"200ms\")", i);
        fprintf(file, ":then_redeliver { \"30s\", \"5m\" }\n");
        break;
    }
}

static char path[] = "/tmp/mulligan-load-XXXXXX";

static void write_policy(int rules)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die(path, "can't be written");
    fprintf(file, "local policy = require \"mulligan.policy\"\nlocal bus = policy.bus()\n");
    for (int i = 0; i < rules; i++)
        write_rule(file, i);
    fprintf(file, "bus:default():retry():then_redeliver()\n");
    if (fclose(file) != 0)
        die(path, "can't be written");
}

/* ---- Both sides ------------------------------------------------------------------------------ */

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
}

static void load(int rules)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = path;
    options.problem = on_problem;
    mull_policy *policy;
    if (mull_policy_load(&policy, &options) != 0)
        die(path, "doesn't load");
    if (mull_policy_rules(policy) != (size_t)rules + 1)
        die(path, "lacks rules");
    mull_policy_free(policy);
}

/* load_again is not inlined, so that callgrind finds it. */
__attribute__((noinline)) static void load_again(int rules)
{
    load(rules);
}

/* The words of the language that the file says, all of them empty. */
static const char plain_words[] =
    "local object = {}\n"
    "local function word(self) return self end\n"
    "for name in ('on default retry redeliver then_redeliver dead_letter then_dead_letter "
    "discard'\n"
    "    ):gmatch('%S+') do object[name] = word end\n"
    "package.loaded['mulligan.policy'] = { bus = function() return object end }\n";

/* run_plain is not inlined either. */
__attribute__((noinline)) static void run_plain(void)
{
    lua_State *L = luaL_newstate();
    if (!L)
        die("plain", "out of memory");
    luaL_openlibs(L);
    if (luaL_dostring(L, plain_words) || luaL_dofile(L, path))
        die("plain", lua_tostring(L, -1));
    lua_close(L);
}

/* ---- Measuring ------------------------------------------------------------------------------- */

typedef struct took {
    double load_ms, plain_ms, ratio;
} took;

/* measure by the thread's own time: the machine may have more to do. */
static took measure(int rules)
{
    double loads[ROUNDS], plains[ROUNDS], ratios[ROUNDS];
    write_policy(rules);
    for (int i = 0; i < ROUNDS; i++) {
        double start = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        load(rules);
        double middle = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        run_plain();
        loads[i] = (middle - start) / 1e6;
        plains[i] = (bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - middle) / 1e6;
        ratios[i] = loads[i] / plains[i];
    }
    return (took){bench_median(loads, ROUNDS), bench_median(plains, ROUNDS),
                  bench_median(ratios, ROUNDS)};
}

static void print_case(const load_case *c, took t, took fixed)
{
    printf("%7d %10.2f", c->rules, t.load_ms);
    if (c->most_ms > 0)
        printf(" %8.0f", c->most_ms);
    else
        printf(" %8s", "-");
    printf(" %10.2f %7.2f", t.plain_ms, t.ratio);
    if (c->rules > 0)
        printf(" %16.2f %16.2f", (t.load_ms - fixed.load_ms) * 1e3 / c->rules,
               (t.plain_ms - fixed.plain_ms) * 1e3 / c->rules);
    printf("\n");
    fflush(stdout);
}

/* compare prints what each number of rules takes; what is fixed is what no rules take. 1: a load
 * takes too long, or, of 1,000 rules, too many times what Lua does. */
static int compare(void)
{
    write_policy(0);
    int slow = 0;
    took fixed = {0, 0, 0};
    double start = bench_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    load(0);
    printf("the first load of this process, of no rules: %.2f ms\n",
           (bench_clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / 1e6);
    printf("%7s %10s %8s %10s %7s %16s %16s\n", "rules", "load, ms", "at most", "plain, ms",
           "ratio", "load, us a rule", "plain, us a rule");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const load_case *c = &cases[i];
        took t = measure(c->rules);
        if (c->rules == 0)
            fixed = t;
        print_case(c, t, fixed);
        slow |= (c->most_ms > 0 && t.load_ms > c->most_ms) ||
                (c->rules == 1000 && t.ratio > MOST_RATIO);
    }
    return slow;
}

int main(int argc, char **argv)
{
    int file = mkstemp(path);
    if (file < 0)
        die(path, "can't be made");
    close(file);
    int status = 0;
    if (argc == 3 && strcmp(argv[1], "once") == 0) {
        int rules = atoi(argv[2]);
        write_policy(0);
        load(0);
        write_policy(rules);
        load_again(rules);
        run_plain();
    } else if (argc == 1) {
        status = compare();
    } else {
        fprintf(stderr, "usage: load [once RULES]\n");
        status = 2;
    }
    unlink(path);
    return status;
}
