/* failure.c: what a message costs whose handler fails four times, through `mulligan run` on an
 * SQLite file, beside one whose handler succeeds.
 *
 *   failure PROGRAM [OTHER [ROUNDS]]    instructions and CPU time a message; of OTHER as well, such
 *                                       as the program of an earlier commit, in turn with PROGRAM
 *
 * Each is the difference of two runs, of FEW and of MANY messages, so that what a start costs
 * doesn't count. bench/README.md has the command, and what came out. */
#include "kit/child.h"
#include "kit/count.h"
#include "kit/measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { FEW = 100, MANY = 600, TIMED_FEW = 500, TIMED_MANY = 5500 };
enum { ROUNDS = 3, MOST_ROUNDS = 21, MOST_PROGRAMS = 2 };

static char folder[] = "/tmp/mulligan-bench-XXXXXX";
static char config[64], policy[64], database[64], url[80];

static void remove_database(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[sizeof database + 8];
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(name, sizeof name, "%s%s", database, ends[i]);
        unlink(name);
    }
}

static void remove_files(void)
{
    remove_database();
    unlink(config);
    unlink(policy);
    rmdir(folder);
}

static void die(const char *what)
{
    fprintf(stderr, "bench/failure: %s\n", what);
    remove_files();
    exit(2);
}

/* ---- The cases ------------------------------------------------------------------------------- */

#define RETRY     "retry(3, 0)"
#define REDELIVER "redeliver { '1ms', '1ms', '1ms' }"
#define RAISE     "m.error { type = 'PgError', message = 'deadlock detected', code = '40P01' }"
#define TEXT      "error 'deadlock detected'"

/* At the log level "error" only the dead letter's line is written; at "info" that of each failure
 * is. */
typedef struct bench_case {
    const char *name, *handler, *rule, *level;
    int most; /* instructions; 0: any number */
} bench_case;

static const bench_case cases[] = {
    {"success", "return msg.body", RETRY, "info", 0},
    {"retried", RAISE, RETRY, "error", 430000},
    {"retried, a text", TEXT, RETRY, "error", 430000},
    {"retried, with lines", RAISE, RETRY, "info", 0},
    {"redelivered", RAISE, REDELIVER, "error", 800000},
    {"redelivered, a text", TEXT, REDELIVER, "error", 800000},
    {"redelivered, with lines", RAISE, REDELIVER, "info", 0},
};
enum { CASES = sizeof cases / sizeof *cases };

static void write_file(const char *path, const char *format, ...)
{
    FILE *file = fopen(path, "w");
    if (!file)
        die(path);
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fclose(file);
}

static void write_case(const bench_case *c)
{
    write_file(policy, "require('mulligan.policy').bus():default():%s\n", c->rule);
    write_file(config,
               "local m = require 'mulligan'\n"
               "m.policy 'policy.lua'\n"
               "m.transport('orders', '%s')\n"
               "m.consumer('OrderHandler', { transport = 'orders', queue = 'orders',\n"
               "    concurrency = 16, handler = function(msg) %s end })\n",
               url, c->handler);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* send_all puts so many messages into a new file. */
static void send_all(const char *program, int count)
{
    const char *const argv[] = {program, "send", "orders", "--transport", url, NULL};
    bench_child child;
    remove_database();
    if (bench_child_start(&child, argv) != 0)
        die(program);
    for (int i = 0; i < count; i++)
        fprintf(child.to, "{\"number\": %d}\n", i);
    if (bench_child_end(&child) != 0)
        die("the messages can't be sent");
}

/* instructions_of gives how many instructions a run of so many messages takes, its start
 * included; below 0: there is no valgrind. */
static double instructions_of(const char *program, const bench_case *c, int count)
{
    const char *const argv[] = {program,       "run",    config, "--until-empty",
                                "--log-level", c->level, NULL};
    send_all(program, count);
    return bench_count(NULL, argv);
}

static double ended_children_us(void)
{
    struct rusage used;
    getrusage(RUSAGE_CHILDREN, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e6 +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static double us_of(const char *program, const bench_case *c, int count)
{
    const char *const argv[] = {program,       "run",    config, "--until-empty",
                                "--log-level", c->level, NULL};
    send_all(program, count);
    double before = ended_children_us();
    bench_child child;
    char line[256];
    if (bench_child_start(&child, argv) != 0)
        die(program);
    while (bench_child_ask(&child, NULL, line, sizeof line) == 0)
        continue;
    if (bench_child_end(&child) != 0)
        die("a run failed");
    return ended_children_us() - before;
}

/* ---- What is printed ------------------------------------------------------------------------- */

typedef struct costs {
    double instructions[MOST_ROUNDS], us[MOST_ROUNDS];
} costs;

static void measure(costs *of, int round, const char *program, const bench_case *c)
{
    double few = instructions_of(program, c, FEW), many = instructions_of(program, c, MANY);
    of->instructions[round] = few < 0 || many < 0 ? -1 : (many - few) / (MANY - FEW);
    double few_us = us_of(program, c, TIMED_FEW);
    of->us[round] = (us_of(program, c, TIMED_MANY) - few_us) / (TIMED_MANY - TIMED_FEW);
}

/* print_case says whether the first program keeps to what is wanted. */
static int print_case(const bench_case *c, char *const *programs, int count, int rounds)
{
    static costs of[MOST_PROGRAMS];
    write_case(c);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++)
            measure(&of[i], round, programs[i], c);
    printf("%-24s", c->name);
    for (int i = 0; i < count; i++)
        printf(" %13.0f %8.1f", bench_median(of[i].instructions, (size_t)rounds),
               bench_median(of[i].us, (size_t)rounds));
    if (c->most)
        printf(" %13d", c->most);
    printf("\n");
    fflush(stdout);
    return c->most == 0 || bench_median(of[0].instructions, (size_t)rounds) <= c->most;
}

int main(int argc, char **argv)
{
    int count = argc > 2 ? 2 : 1, rounds = argc > 3 ? atoi(argv[3]) : ROUNDS, good = 1;
    if (argc < 2 || argc > 4 || rounds < 1 || rounds > MOST_ROUNDS) {
        fprintf(stderr, "usage: failure PROGRAM [OTHER [ROUNDS]]\n");
        return 2;
    }
    if (!mkdtemp(folder))
        die(folder);
    snprintf(config, sizeof config, "%s/failing.lua", folder);
    snprintf(policy, sizeof policy, "%s/policy.lua", folder);
    snprintf(database, sizeof database, "%s/orders.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", database);
    printf("%-24s", "a message");
    for (int i = 0; i < count; i++)
        printf(" %13s %8s", "instructions", "CPU, us");
    printf(" %13s\n", "at most");
    for (int i = 0; i < CASES; i++)
        good &= print_case(&cases[i], argv + 1, count, rounds);
    remove_files();
    return !good;
}
