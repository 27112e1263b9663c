/* latency.c: how soon a message starts that another process sends through the file, and what it
 * costs to wait for it.
 *
 *   parent   an engine that reads the queue; at first nothing comes, and its CPU time is taken
 *   child    then sends one message after another, each with an engine of its own, as a program
 *            that runs `mulligan send` does; the moment of the publish is in the body
 *
 * bench/README.md has the command.
 */
#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MESSAGES = 100, IDLE_SECONDS = 10 };

static const double limit_ms = 50, limit_idle = 0.01;

static char url[4096];

static void die(const char *what)
{
    fprintf(stderr, "bench/latency: %s\n", what);
    exit(2);
}

static double read_clock(clockid_t id)
{
    struct timespec time;
    clock_gettime(id, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)file, (void)line, (void)data;
    fprintf(stderr, "%s\n", text);
}

static mull_engine *new_engine(mull_policy *policy)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.problem = on_problem;
    mull_engine *engine;
    if (mull_engine_new(&engine, &options) != 0 || mull_engine_transport(engine, "t", url) != 0)
        die("no engine");
    return engine;
}

/* ---- The child ------------------------------------------------------------------------------- */

static void on_published(int status, void *data)
{
    (void)data;
    if (status != 0)
        die("a message could not be sent");
}

static void send_one(mull_policy *policy)
{
    mull_engine *engine = new_engine(policy);
    mull_message message = MULL_INIT(mull_message);
    double sent_at = read_clock(CLOCK_MONOTONIC);
    message.queue = "orders";
    message.body = &sent_at;
    message.body_size = sizeof sent_at;
    if (mull_publish(engine, "t", &message, 0, on_published, NULL) != 0)
        die("a message could not be sent");
    mull_engine_close(engine, NULL, NULL);
}

/* send_all leaves uneven pauses, so that no message meets the reader at the same point of its own
 * rhythm. */
static void send_all(mull_policy *policy)
{
    sleep(IDLE_SECONDS);
    for (int i = 0; i < MESSAGES; i++) {
        send_one(policy);
        struct timespec pause = {.tv_nsec = 40000000 + i * 7919 % 41 * 1000000L};
        nanosleep(&pause, NULL);
    }
}

/* ---- The parent ------------------------------------------------------------------------------ */

typedef struct reading {
    double latencies[MESSAGES];
    int count;
    double began_at, cpu_before, idle;
} reading;

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    reading *r = data;
    double now = read_clock(CLOCK_MONOTONIC), sent_at;
    memcpy(&sent_at, message->body, sizeof sent_at);
    if (r->count == 0)
        r->idle = (read_clock(CLOCK_PROCESS_CPUTIME_ID) - r->cpu_before) / (now - r->began_at);
    if (r->count < MESSAGES)
        r->latencies[r->count++] = now - sent_at;
    mull_done(engine, call, NULL);
    if (r->count == MESSAGES)
        mull_stop(engine);
}

static void read_all(reading *r, mull_policy *policy)
{
    mull_engine *engine = new_engine(policy);
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "Orders";
    consumer.transport = "t";
    consumer.queue = "orders";
    consumer.handler = handle;
    consumer.data = r;
    if (mull_consumer_add(engine, &consumer) != 0)
        die("no consumer");
    r->began_at = read_clock(CLOCK_MONOTONIC);
    r->cpu_before = read_clock(CLOCK_PROCESS_CPUTIME_ID);
    if (mull_engine_run(engine) != 0)
        die("the engine doesn't run");
    mull_engine_close(engine, NULL, NULL);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void remove_file(const char *path)
{
    static const char *const ends[] = {"", "-wal", "-shm", "-lock"};
    char name[4096];
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(name, sizeof name, "%s%s", path, ends[i]);
        unlink(name);
    }
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : "latency.db";
    snprintf(url, sizeof url, "sqlite:%s", path);
    remove_file(path);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = "";
    mull_policy *policy;
    if (mull_policy_load(&policy, &options) != 0)
        die("no policy");
    pid_t child = fork();
    if (child == 0) {
        send_all(policy);
        _exit(0);
    }
    reading r = {0};
    read_all(&r, policy);
    int status;
    waitpid(child, &status, 0);
    mull_policy_free(policy);
    remove_file(path);
    qsort(r.latencies, MESSAGES, sizeof r.latencies[0], by_size);
    double median = r.latencies[MESSAGES / 2];
    printf(
        "from the publish in another process to the handler: median %.1f ms, 95th of 100 %.1f ms, "
        "longest %.1f ms (limit for the median: %.0f ms)\n",
        median, r.latencies[94], r.latencies[MESSAGES - 1], limit_ms);
    printf("waiting for %d s: %.2f %% of a core (limit: %.0f %%)\n", IDLE_SECONDS, r.idle * 100,
           limit_idle * 100);
    return median > limit_ms || r.idle > limit_idle;
}
