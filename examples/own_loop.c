/* own_loop.c: an engine on a loop that is this program's. Beside it a timer of the program's own
 * publishes a payment at each tick; its handler leaves the work to libuv's threads, and these end
 * the call. After the last one the engine stops and is closed, and nothing is left on the loop.
 *
 *   cc -pthread own_loop.c $(pkg-config --cflags --libs mulligan libuv) -o own_loop && ./own_loop
 */
#include <mulligan.h>
#include <stdio.h>
#include <stdlib.h>
#include <uv.h>

enum { PAYMENTS = 20, TICK_MS = 5 };

static const char policy_text[] = "require('mulligan.policy').bus():default():retry(3, '5ms')";

/* program is what callbacks get; all of it belongs to the loop's thread. */
typedef struct program {
    uv_loop_t loop;
    uv_timer_t ticks;
    mull_engine *engine;
    int published, safe, closed;
} program;

static void complain(const char *file, int line, const char *text, void *data)
{
    (void)data;
    fprintf(stderr, "own_loop: %s:%d: %s\n", file ? file : "-", line, text);
}

/* ---- The work, on other threads -------------------------------------------------------------- */

/* job is one call of the handler. Its message may be read until mull_done ends the call. */
typedef struct job {
    uv_work_t work;
    mull_engine *engine;
    mull_call call;
    const mull_message *message;
} job;

/* charge runs on one of libuv's threads. Every second payment fails the first time. */
static void charge(uv_work_t *work)
{
    job *j = work->data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "TimeoutError";
    int number = ((const unsigned char *)j->message->body)[0];
    int fails = number % 2 == 0 && j->message->attempt == 1;
    /* The one reason to end a call again: there was no memory to take note of its end. */
    while (mull_done(j->engine, j->call, fails ? &error : NULL) == MULL_ENOMEM)
        ;
}

static void charged(uv_work_t *work, int status)
{
    (void)status;
    free(work->data);
}

/* fail ends a call that can't even begin. */
static void fail(mull_engine *engine, mull_call call, const char *why)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "Error";
    error.message = why;
    mull_done(engine, call, &error);
}

/* handle is the handler: it returns at once, and the loop goes on. */
static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    program *p = data;
    job *j = malloc(sizeof *j);
    if (!j) {
        fail(engine, call, "no memory for a job");
        return;
    }
    *j = (job){.engine = engine, .call = call, .message = message};
    j->work.data = j;
    if (uv_queue_work(&p->loop, &j->work, charge, charged) != 0) {
        free(j);
        fail(engine, call, "no thread for a job");
    }
}

/* ---- The program's own timer ----------------------------------------------------------------- */

/* published: the last payment is safe, so that an empty queue is the end. */
static void published(int status, void *data)
{
    program *p = data;
    if (status)
        fprintf(stderr, "own_loop: not published: %s\n", mull_strerror(status));
    if (++p->safe == PAYMENTS)
        mull_stop_when_empty(p->engine);
}

static void tick(uv_timer_t *timer)
{
    program *p = timer->data;
    if (!p->engine) {
        uv_close((uv_handle_t *)timer, NULL);
        return;
    }
    unsigned char body = (unsigned char)++p->published;
    mull_message message = MULL_INIT(mull_message);
    message.queue = "payments";
    message.body = &body; /* all that is passed is borrowed until the call returns */
    message.body_size = 1;
    int status = mull_publish(p->engine, "bank", &message, 0, published, p);
    if (status)
        published(status, p);
    if (p->published == PAYMENTS)
        uv_close((uv_handle_t *)timer, NULL);
}

/* ---- Its life -------------------------------------------------------------------------------- */

/* closed: the engine is gone. Where it stopped before the last tick, that is the end of them. */
static void closed(void *data)
{
    program *p = data;
    p->closed = 1;
    p->engine = NULL;
}

/* stopped: every message is settled. The engine may be closed right here; its handles leave the
 * loop on later turns, and then `closed` is called. */
static void stopped(void *data)
{
    program *p = data;
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(p->engine, &counts);
    printf("published %d\ndone %llu\nretried %llu\ndead-lettered %llu\n", p->published,
           (unsigned long long)counts.done, (unsigned long long)counts.retried,
           (unsigned long long)counts.dead_lettered);
    mull_engine_close(p->engine, closed, p);
}

/* set_up makes an engine on the loop and starts it; it works whenever the loop runs. */
static int set_up(program *p, mull_policy *policy)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = &p->loop;
    options.problem = complain;
    options.stopped = stopped;
    options.data = p;
    int status = mull_engine_new(&p->engine, &options);
    if (status)
        return status;
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = "PaymentHandler";
    consumer.transport = "bank";
    consumer.queue = "payments";
    consumer.handler = handle;
    consumer.data = p;
    consumer.concurrency = 4;
    status = mull_engine_transport(p->engine, "bank", "memory:");
    if (!status)
        status = mull_consumer_add(p->engine, &consumer);
    if (!status)
        status = mull_engine_start(p->engine);
    if (status)
        mull_engine_close(p->engine, closed, p);
    return status;
}

static int run(program *p, mull_policy *policy)
{
    int status = set_up(p, policy);
    if (!status) {
        uv_timer_init(&p->loop, &p->ticks);
        p->ticks.data = p;
        uv_timer_start(&p->ticks, tick, 0, TICK_MS);
    }
    uv_run(&p->loop, UV_RUN_DEFAULT); /* until nothing is left on it */
    return status;
}

int main(void)
{
    program p = {.closed = 0};
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = policy_text;
    options.problem = complain;
    int status = mull_policy_load(&policy, &options);
    if (!status && uv_loop_init(&p.loop) != 0)
        status = MULL_EIO;
    if (!status) {
        status = run(&p, policy);
        int left = uv_loop_close(&p.loop);
        printf("engine %s, loop %s\n", p.closed ? "closed" : "open", left ? "busy" : "empty");
    }
    if (status)
        fprintf(stderr, "own_loop: %s\n", mull_strerror(status));
    mull_policy_free(policy);
    return status ? 1 : 0;
}
