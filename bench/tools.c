/* tools.c: how long the program takes to answer what a person or an editor asks: check, table,
 * explain and decide of a policy of 100 rules, from its start to its end, beside a program that
 * does nothing and a Lua that does nothing. Each is run in turn with the others, so that they share
 * what else the machine does. Then, how many failures a second decide takes.
 *
 *   tools PROGRAM [RUNS]
 *
 * bench/README.md has the command. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { RULES = 100, RUNS = 20, MOST_RUNS = 1000, LINES = 100000 };

static void die(const char *what)
{
    perror(what);
    exit(2);
}

static double now_ms(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

/* ---- What is asked --------------------------------------------------------------------------- */

static char folder[] = "/tmp/mulligan-bench-XXXXXX";
static char policy[64], failures[64], lines[64];

static FILE *create(char *path, size_t size, const char *name)
{
    snprintf(path, size, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    if (!file)
        die(path);
    return file;
}

/* Some of the rules have a table matcher, some a function, as policies have. */
static void write_files(void)
{
    static const char *const matchers[] = {"", ", { status = 503 }",
                                           ", { code = \"40P01\", transient = true }",
                                           ", function(err) return err.status == 429 end"};
    if (!mkdtemp(folder))
        die(folder);
    FILE *file = create(policy, sizeof policy, "policy.lua");
    fprintf(file, "local bus = require('mulligan.policy').bus()\n");
    for (int i = 1; i < RULES; i++)
        fprintf(file, "bus:on('Type%d'%s):retry(3):then_redeliver()\n", i, matchers[i % 4]);
    fprintf(file, "bus:default():retry():then_redeliver():then_dead_letter()\n");
    fclose(file);
    file = create(failures, sizeof failures, "failures");
    fprintf(file, "{\"error\": {\"type\": \"Type99\", \"status\": 429}}\n");
    fclose(file);
    file = create(lines, sizeof lines, "lines");
    for (int i = 0; i < LINES; i++)
        fprintf(
            file,
            "{\"error\": {\"type\": \"PgError\", \"lineage\": [\"Type%d\"], \"message\": "
            "\"deadlock "
            "detected\", \"code\": \"40P01\", \"cause\": {\"type\": \"TimeoutError\"}}, "
            "\"consumer\": \"PaymentHandler\", \"transport\": \"orders\", \"attempt\": 1, "
            "\"redeliveries\": 0, \"calls\": 1, \"deliveries\": 1, \"age_ms\": 0, \"message\": "
            "{\"id\": \"m-%d\", \"type\": \"OrderPlaced\", \"key\": \"42\", \"size\": 300, "
            "\"headers\": {\"tenant\": \"acme\"}}, \"can\": {\"retry\": true, \"delay\": true}}\n",
            i % RULES, i);
    fclose(file);
}

static void remove_files(void)
{
    unlink(policy);
    unlink(failures);
    unlink(lines);
    rmdir(folder);
}

typedef struct command {
    const char *name;
    const char *words[8];
    int is_ours; /* its first word is the program */
    double ms[MOST_RUNS];
} command;

static command commands[] = {
    {.name = "true", .words = {"true"}},
    {.name = "lua5.4 -e ''", .words = {"lua5.4", "-e", ""}},
    {.name = "--version", .words = {NULL, "--version"}, .is_ours = 1},
    {.name = "check", .words = {NULL, "check", policy}, .is_ours = 1},
    {.name = "table", .words = {NULL, "table", policy}, .is_ours = 1},
    {.name = "explain",
     .words = {NULL, "explain", policy, "--error", "Type99", "--field", "status=429"},
     .is_ours = 1},
    {.name = "decide", .words = {NULL, "decide", policy}, .is_ours = 1},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* ---- Asking ---------------------------------------------------------------------------------- */

extern char **environ;

static double run(const command *c, const char *input)
{
    union {
        const char *const *words;
        char **argv;
    } given = {.words = c->words};
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, input, O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    double before = now_ms();
    pid_t pid;
    int status = 0;
    if (posix_spawnp(&pid, c->words[0], &files, NULL, given.argv, environ) != 0)
        die(c->words[0]);
    if (waitpid(pid, &status, 0) != pid)
        die("waitpid");
    double took = now_ms() - before;
    posix_spawn_file_actions_destroy(&files);
    if (status != 0) {
        fprintf(stderr, "bench/tools: %s failed\n", c->name);
        remove_files();
        exit(2);
    }
    return took;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    int runs = argc > 2 ? atoi(argv[2]) : RUNS;
    if (argc < 2 || runs < 1 || runs > MOST_RUNS) {
        fprintf(stderr, "usage: tools PROGRAM [RUNS]\n");
        return 2;
    }
    write_files();
    for (int i = 0; i < COMMANDS; i++)
        if (commands[i].is_ours)
            commands[i].words[0] = argv[1];
    for (int turn = 0; turn < runs; turn++)
        for (int i = 0; i < COMMANDS; i++)
            commands[i].ms[turn] = run(&commands[i], failures);
    printf("a policy of %d rules, %d runs each, ms\n%-14s %8s %8s %8s\n", RULES, runs, "", "median",
           "least", "most");
    for (int i = 0; i < COMMANDS; i++) {
        double *ms = commands[i].ms;
        qsort(ms, (size_t)runs, sizeof *ms, by_size);
        printf("%-14s %8.2f %8.2f %8.2f\n", commands[i].name, ms[runs / 2], ms[0], ms[runs - 1]);
    }
    double ms = run(&commands[COMMANDS - 1], lines);
    printf("decide: %d lines in %.0f ms, %.0f a second\n", LINES, ms, LINES / ms * 1e3);
    remove_files();
    return 0;
}
