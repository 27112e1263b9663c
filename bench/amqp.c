/* amqp.c: an engine on RabbitMQ, with a handler in C, beside a plain loop with rabbitmq-c that has
 * as many messages out, acknowledges as many at once, and publishes as safely:
 *
 *   amqp URL [MESSAGES [DELAYED [SECONDS]]]
 *
 *   succeed   each message is acknowledged
 *   fail      each fails once, comes back after the least delay, and is acknowledged then; a fifth
 *             as many messages
 *   delayed   how much memory an engine takes that puts off DELAYED messages
 *   idle      what an engine costs that waits SECONDS for messages of ten queues
 *
 * The virtual host must be nobody else's. bench/README.md has the command, which starts a server.
 */
#include "amqp/plain.h"
#include "kit/measure.h"
#include "mulligan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

enum { ROUNDS = 5, CONCURRENCY = 64, PREFETCH = 2 * CONCURRENCY, QUEUES = 10, LOOK_MS = 100 };
enum { FAIL_PART = 5 };                         /* of the messages */
enum { MOST_OUT = CONCURRENCY + 2 * PREFETCH }; /* what the engine asks the broker for */

#define QUEUE "mulligan-bench"
#define HOUR  "mulligan.delay.quorum.16" /* where a delay of 1 h begins */

static const char *url;
static int missed;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "bench/amqp: %s: %s\n", what, why);
    exit(2);
}

/* tell prints a figure and its limit. */
static void tell(const char *what, double value, const char *unit, double limit)
{
    int good = value < limit;
    printf("%-40s %9.2f %s (under %g)%s\n", what, value, unit, limit, good ? "" : "  MISSED");
    fflush(stdout);
    missed |= !good;
}

/* ---- An engine ------------------------------------------------------------------------------- */

typedef struct run {
    const char *chain; /* of its policy */
    int wanted;        /* messages */
    int fails;         /* each does so once */
    int puts_off;      /* it ends once they are all put off */

    mull_engine *engine;
    int calls, done, put_off;
    bench_span span; /* of its calls */
    double rss_mb;   /* at the first of them */
    unsigned long long acknowledgements;
} run;

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    run *r = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "PgError";
    error.message = "deadlock detected";
    int fails = r->fails && message->redeliveries == 0;
    bench_span_note(&r->span);
    if (r->calls++ == 0)
        r->rss_mb = bench_rss_mb();
    mull_done(engine, call, fails ? &error : NULL);
    if (!fails && ++r->done == r->wanted)
        mull_stop(engine);
}

static void on_log(mull_level level, const char *text, void *data)
{
    run *r = data;
    if (level >= MULL_WARNING)
        fprintf(stderr, "%s\n", text);
    bench_count_before(text, " acknowledgements", &r->acknowledgements);
}

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)file, (void)line, (void)data;
    fprintf(stderr, "%s\n", text);
}

static mull_policy *load(const char *chain)
{
    char text[128];
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    snprintf(text, sizeof text, "require('mulligan.policy').bus():default():%s", chain);
    options.text = text;
    if (mull_policy_load(&policy, &options) != 0)
        die("the policy", "doesn't load");
    return policy;
}

static void add_consumer(mull_engine *engine, const char *queue, void *data)
{
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = queue;
    consumer.transport = "rabbit";
    consumer.queue = queue;
    consumer.handler = handle;
    consumer.data = data;
    consumer.concurrency = CONCURRENCY;
    consumer.prefetch = PREFETCH;
    if (mull_consumer_add(engine, &consumer) != 0)
        die("a consumer", "isn't taken");
}

static void on_event(const mull_event *event, void *data)
{
    run *r = data;
    if (event->kind == MULL_EVENT_DECIDED && ++r->put_off == r->wanted)
        mull_stop(r->engine);
}

static mull_engine *new_engine(const mull_engine_options *options)
{
    mull_engine *engine;
    if (mull_engine_new(&engine, options) != 0 || mull_engine_transport(engine, "rabbit", url) != 0)
        die("the engine", "can't be set up");
    return engine;
}

/* run_engine works a queue off, of which nothing may be left. */
static void run_engine(run *r)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = load(r->chain);
    options.log = on_log;
    options.problem = on_problem;
    options.event = r->puts_off ? on_event : NULL;
    options.data = r;
    r->engine = new_engine(&options);
    add_consumer(r->engine, QUEUE, r);
    if (mull_engine_run(r->engine) != 0)
        die("the engine", "doesn't run");
    mull_engine_close(r->engine, NULL, NULL);
    mull_policy_free(options.policy);
    if (bench_plain_remove(url, QUEUE) != 0)
        die("the engine", "has left messages in the queue");
}

/* ---- Beside the plain loop ------------------------------------------------------------------- */

enum { RATE, CPU_US, FIGURES };

static void note(double figures[FIGURES][ROUNDS], int round, const bench_span *span, int messages)
{
    figures[RATE][round] = messages / (span->last - span->first) * 1e9;
    figures[CPU_US][round] = (span->last_cpu - span->first_cpu) / 1e3 / messages;
}

static void print_row(const char *what, int messages, double *group, double engine[FIGURES][ROUNDS],
                      double plain[FIGURES][ROUNDS])
{
    printf("%-8s %9d %8.1f %9.0f %9.0f %9.1f %9.1f", what, messages, bench_median(group, ROUNDS),
           bench_median(engine[RATE], ROUNDS), bench_median(plain[RATE], ROUNDS),
           bench_median(engine[CPU_US], ROUNDS), bench_median(plain[CPU_US], ROUNDS));
}

/* compare prints a row: medians of rounds in which both take turns. */
static void compare(const char *what, const char *chain, int fails, int messages, double least)
{
    double engine[FIGURES][ROUNDS], plain[FIGURES][ROUNDS], ratio[ROUNDS], group[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        run r = {.chain = chain, .wanted = messages, .fails = fails};
        bench_plain_fill(url, QUEUE, messages);
        run_engine(&r);
        note(engine, i, &r.span, messages);
        group[i] = (double)r.calls / (double)r.acknowledgements;
        const bench_plain_work work = {.queue = QUEUE,
                                       .messages = messages,
                                       .prefetch = MOST_OUT,
                                       .group = (int)(group[i] + 0.5),
                                       .fails = fails};
        bench_plain_fill(url, QUEUE, messages);
        bench_span span = bench_plain_run(url, &work);
        bench_plain_remove(url, QUEUE);
        note(plain, i, &span, messages);
        ratio[i] = engine[RATE][i] / plain[RATE][i];
    }
    double middle = bench_median(ratio, ROUNDS);
    print_row(what, messages, group, engine, plain);
    printf(" %6.2f (at least %g)%s\n", middle, least, middle < least ? "  MISSED" : "");
    fflush(stdout);
    missed |= middle < least;
}

/* ---- What is measured in a process of its own ------------------------------------------------ */

static double in_child(double (*measure)(int argument), int argument)
{
    int result[2], status;
    double value;
    if (pipe(result) != 0)
        die("a process", "has no pipe");
    pid_t child = fork();
    if (child == 0) {
        value = measure(argument);
        _exit(write(result[1], &value, sizeof value) != sizeof value);
    }
    close(result[1]);
    if (read(result[0], &value, sizeof value) != sizeof value ||
        waitpid(child, &status, 0) != child || status != 0)
        die("a process", "failed");
    close(result[0]);
    return value;
}

/* delayed_mb is how much memory it takes to put off so many messages. */
static double delayed_mb(int messages)
{
    run r = {.chain = "redeliver { '1h' }", .wanted = messages, .fails = 1, .puts_off = 1};
    run_engine(&r);
    return bench_most_rss_mb() - r.rss_mb;
}

typedef struct idle {
    mull_engine *engine;
    uv_timer_t timer;
    char queues[QUEUES][32];
    int seconds, is_waiting;
    double from_ns, cpu_ns, share;
} idle;

static void on_stopped(void *data)
{
    idle *i = data;
    uv_close((uv_handle_t *)&i->timer, NULL);
    mull_engine_close(i->engine, NULL, NULL);
}

static int all_wait(const idle *i)
{
    mull_why_not why;
    for (int q = 0; q < QUEUES; q++)
        if (mull_consumer_why_not(i->engine, i->queues[q], &why) != 0 ||
            why != MULL_WHY_NOTHING_THERE)
            return 0;
    return 1;
}

/* on_timer: once all wait, the time counts. */
static void on_timer(uv_timer_t *timer)
{
    idle *i = timer->data;
    double now = bench_clock_ns(CLOCK_MONOTONIC), cpu = bench_clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (i->is_waiting) {
        i->share = (cpu - i->cpu_ns) / (now - i->from_ns);
        mull_stop(i->engine);
    } else if (all_wait(i)) {
        i->is_waiting = 1;
        i->from_ns = now;
        i->cpu_ns = cpu;
        uv_timer_start(timer, on_timer, (uint64_t)i->seconds * 1000, 0);
    } else {
        uv_timer_start(timer, on_timer, LOOK_MS, 0);
    }
}

/* idle_share is which part of a core it takes to wait. */
static double idle_share(int seconds)
{
    idle i = {.seconds = seconds};
    uv_loop_t loop;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = load("retry(3)");
    options.loop = &loop;
    options.problem = on_problem;
    options.stopped = on_stopped;
    options.data = &i;
    if (uv_loop_init(&loop) != 0 || uv_timer_init(&loop, &i.timer) != 0)
        die("the loop", "can't be made");
    i.engine = new_engine(&options);
    for (int q = 0; q < QUEUES; q++) {
        snprintf(i.queues[q], sizeof i.queues[q], QUEUE "-%d", q);
        add_consumer(i.engine, i.queues[q], NULL);
    }
    i.timer.data = &i;
    uv_timer_start(&i.timer, on_timer, LOOK_MS, 0);
    if (mull_engine_start(i.engine) != 0)
        die("the engine", "doesn't start");
    uv_run(&loop, UV_RUN_DEFAULT);
    mull_policy_free(options.policy);
    for (int q = 0; q < QUEUES; q++)
        bench_plain_remove(url, i.queues[q]);
    return i.share;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void measure_delayed(int messages)
{
    char what[64];
    bench_plain_fill(url, QUEUE, messages);
    double mb = in_child(delayed_mb, messages);
    if (bench_plain_purge(url, HOUR) != (uint32_t)messages)
        die("delayed", "messages are missing");
    snprintf(what, sizeof what, "RSS at most, %d delayed", messages);
    tell(what, mb, "MB", 20);
}

static void measure_idle(int seconds)
{
    char what[64];
    snprintf(what, sizeof what, "%d consumers wait for %d s", QUEUES, seconds);
    tell(what, in_child(idle_share, seconds) * 100, "% of a core", 1);
}

int main(int argc, char **argv)
{
    int messages = argc > 2 ? atoi(argv[2]) : 100000, delayed = argc > 3 ? atoi(argv[3]) : 100000;
    int seconds = argc > 4 ? atoi(argv[4]) : 30;
    if (argc < 2 || argc > 5 || messages < FAIL_PART || delayed < 1 || seconds < 1)
        die("usage", "amqp URL [MESSAGES [DELAYED [SECONDS]]]");
    url = argv[1];
    measure_delayed(delayed); /* declares the delays, too */
    measure_idle(seconds);
    printf("%-8s %9s %8s %19s %19s\n", "", "", "", "messages a second", "CPU a message, us");
    printf("%-8s %9s %8s %9s %9s %9s %9s %6s\n", "", "messages", "per ack", "engine", "plain",
           "engine", "plain", "ratio");
    compare("succeed", "retry(3)", 0, messages, 0.7);
    compare("fail", "redeliver { '50ms' }", 1, messages / FAIL_PART, 0.6);
    return missed;
}
