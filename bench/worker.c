/* worker.c: works off the queue "jobs" with a handler in C, until it is empty.
 *
 *   worker URL [CHAIN]    with a CHAIN, such as "retry(3, 0)", each call fails, and the policy is
 *                         default():CHAIN; else each succeeds
 *
 * It writes "start" at the first call, "last" at the one whose number PEERS_LAST is, and the counts
 * at the end. bench/peers/run measures it beside other queues. */
#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>

enum { CONCURRENCY = 64, QUIET_MS = 1000 };

typedef struct work {
    int fails;
    long calls, last;
} work;

static void die(const char *what)
{
    fprintf(stderr, "bench/worker: %s\n", what);
    exit(2);
}

static void say(const char *line)
{
    puts(line);
    fflush(stdout);
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    work *w = data;
    (void)message;
    if (++w->calls == 1)
        say("start");
    if (w->calls == w->last)
        say("last");
    mull_error error = MULL_INIT(mull_error);
    error.type = "DatabaseError";
    error.message = "deadlock detected";
    mull_done(engine, call, w->fails ? &error : NULL);
}

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "%s:%d: %s\n", file ? file : "", line, text);
}

static mull_policy *load(const char *chain)
{
    char text[256];
    mull_policy *policy;
    snprintf(text, sizeof text, "require('mulligan.policy').bus():default():%s", chain);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = on_problem;
    if (mull_policy_load(&policy, &options) != 0)
        die("the policy doesn't load");
    return policy;
}

static mull_engine *set_up(mull_policy *policy, const char *url, work *w)
{
    mull_engine *engine;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.problem = on_problem;
    options.quiet_ms = QUIET_MS;
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "Job";
    consumer.transport = "jobs";
    consumer.queue = "jobs";
    consumer.handler = handle;
    consumer.data = w;
    const char *concurrency = getenv("PEERS_CONCURRENCY");
    consumer.concurrency = concurrency ? (uint32_t)atoi(concurrency) : CONCURRENCY;
    if (mull_engine_new(&engine, &options) != 0 ||
        mull_engine_transport(engine, "jobs", url) != 0 ||
        mull_consumer_add(engine, &consumer) != 0)
        die("the engine can't be set up");
    return engine;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3)
        die("usage: worker URL [CHAIN]");
    const char *last = getenv("PEERS_LAST");
    work w = {.fails = argc == 3, .last = last ? atol(last) : 0};
    mull_policy *policy = load(w.fails ? argv[2] : "retry(3)");
    mull_engine *engine = set_up(policy, argv[1], &w);
    if (mull_engine_start(engine) != 0 || mull_stop_when_empty(engine) != 0 ||
        mull_engine_run(engine) != 0)
        die("the engine doesn't run");
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(engine, &counts);
    printf("done %llu, retried %llu, redelivered %llu, dead-lettered %llu\n",
           (unsigned long long)counts.done, (unsigned long long)counts.retried,
           (unsigned long long)counts.redelivered, (unsigned long long)counts.dead_lettered);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
    return 0;
}
