/* processes.c: messages per second of several processes that work off one queue of one file, beside
 * one that does it alone, and how even their shares are:
 *
 *   processes [FILE] [MESSAGES] [PROCESSES]
 *
 * Handlers are in C and succeed at once, so that there is nothing but the file to be shared. The
 * time is that from the first call in any process to the last one. bench/README.md has the command.
 */
#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 5, MOST = 64, BODY_SIZE = 256, CONCURRENCY = 64 };

static const char *path;
static int messages;

/* share is what one process did. */
typedef struct share {
    double first, last; /* call */
    int done;
} share;

static void die(const char *what)
{
    fprintf(stderr, "bench/processes: %s\n", what);
    exit(2);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void remove_file(void)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[4096];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

/* ---- One process ----------------------------------------------------------------------------- */

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    share *s = data;
    (void)message;
    s->last = now();
    if (s->done++ == 0)
        s->first = s->last;
    mull_done(engine, call, NULL);
}

static mull_engine *set_up(void)
{
    char url[4096];
    mull_policy *policy;
    mull_engine *engine;
    mull_policy_options policy_options = MULL_INIT(mull_policy_options);
    policy_options.text = "";
    mull_engine_options options = MULL_INIT(mull_engine_options);
    snprintf(url, sizeof url, "sqlite:%s", path);
    if (mull_policy_load(&policy, &policy_options) != 0)
        die("the policy doesn't load");
    options.policy = policy;
    if (mull_engine_new(&engine, &options) != 0 || mull_engine_transport(engine, "t", url) != 0)
        die("the engine can't be set up");
    return engine;
}

static void run(mull_engine *engine)
{
    if (mull_engine_run(engine) != 0)
        die("the engine doesn't run");
    mull_engine_close(engine, NULL, NULL);
}

static void fill(void)
{
    char body[BODY_SIZE];
    mull_engine *engine = set_up();
    mull_message message = MULL_INIT(mull_message);
    memset(body, 'x', sizeof body);
    message.queue = "jobs";
    message.body = body;
    message.body_size = sizeof body;
    for (int i = 0; i < messages; i++)
        if (mull_publish(engine, "t", &message, 0, NULL, NULL) != 0)
            die("can't publish");
    mull_stop(engine); /* once all is published */
    run(engine);
}

/* work says that it is there, and begins once the others are. */
static void work(int there, int go, int result)
{
    char byte = 0;
    share s = {0};
    mull_engine *engine = set_up();
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "Job";
    consumer.transport = "t";
    consumer.queue = "jobs";
    consumer.handler = handle;
    consumer.data = &s;
    consumer.concurrency = CONCURRENCY;
    if (mull_consumer_add(engine, &consumer) != 0 || write(there, &byte, 1) != 1 ||
        read(go, &byte, 1) != 0)
        die("a process can't begin");
    mull_stop_when_empty(engine);
    run(engine);
    if (write(result, &s, sizeof s) != sizeof s)
        die("a process can't say what it did");
}

/* ---- All of them ----------------------------------------------------------------------------- */

static void await_children(int count)
{
    int status, bad = 0;
    for (int i = 0; i < count; i++)
        bad |= wait(&status) < 0 || status != 0;
    if (bad)
        die("a process failed");
}

/* fill_file: in a process of its own, since one that forks must have no engine. */
static void fill_file(void)
{
    remove_file();
    if (fork() == 0) {
        fill();
        _exit(0);
    }
    await_children(1);
}

static void start_all(int processes, int there[2], int result[2])
{
    int go[2];
    char byte;
    if (pipe(there) != 0 || pipe(go) != 0 || pipe(result) != 0)
        die("no pipes");
    for (int i = 0; i < processes; i++)
        if (fork() == 0) {
            close(go[1]);
            work(there[1], go[0], result[1]);
            _exit(0);
        }
    close(go[0]);
    for (int i = 0; i < processes; i++)
        if (read(there[0], &byte, 1) != 1)
            die("a process isn't there");
    close(go[1]);
}

/* measure gives messages per second, and the smallest and the largest share, where an even one
 * is 1. */
static double measure(int processes, double *least, double *most)
{
    int there[2], result[2], sum = 0;
    double first = 1e300, last = 0;
    fill_file();
    start_all(processes, there, result);
    *least = 1e300;
    *most = 0;
    for (int i = 0; i < processes; i++) {
        share s;
        if (read(result[0], &s, sizeof s) != sizeof s)
            die("a process says nothing");
        double even = (double)s.done * processes / messages;
        sum += s.done;
        first = s.done && s.first < first ? s.first : first;
        last = s.last > last ? s.last : last;
        *least = even < *least ? even : *least;
        *most = even > *most ? even : *most;
    }
    await_children(processes);
    for (int i = 0; i < 2; i++) {
        close(there[i]);
        close(result[i]);
    }
    if (sum != messages)
        die("messages are missing, or came twice");
    return messages / (last - first);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values)
{
    qsort(values, ROUNDS, sizeof *values, by_size);
    return values[ROUNDS / 2];
}

int main(int argc, char **argv)
{
    path = argc > 1 ? argv[1] : "bench.db";
    messages = argc > 2 ? atoi(argv[2]) : 400000;
    int processes = argc > 3 ? atoi(argv[3]) : 4;
    if (messages < 1 || processes < 1 || processes > MOST)
        die("usage: processes [FILE] [MESSAGES] [PROCESSES]");
    double ratio[ROUNDS], least[ROUNDS], most[ROUNDS], one_least, one_most;
    printf("%12s %12s %6s %14s\n", "one, msg/s", "all, msg/s", "ratio", "shares");
    for (int i = 0; i < ROUNDS; i++) {
        double one = measure(1, &one_least, &one_most);
        double all = measure(processes, &least[i], &most[i]);
        ratio[i] = all / one;
        printf("%12.0f %12.0f %6.2f %6.2f to %.2f\n", one, all, ratio[i], least[i], most[i]);
        fflush(stdout);
    }
    remove_file();
    double faster = median(ratio), low = median(least), high = median(most);
    printf("median ratio %.2f, shares %.2f to %.2f\n", faster, low, high);
    return faster < 1 || low < 0.8 || high > 1.2;
}
