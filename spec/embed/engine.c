/* engine.c: the engine from C: calls ended twice, late, from other threads and by guessing; stops
 * and closes from everywhere; the embedder's own loop. What handlers do to messages is shown by
 * the specs in Lua. */
#include "test_engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

static const mull_error oops = {.size = sizeof oops, .type = "Oops", .message = "no"};

/* note is what a handler leaves for its test. */
typedef struct note {
    mull_call calls[64];
    int count;
    int cancelled;
    int64_t attempt;
    int statuses[2];
} note;

static void keep(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    note *n = data;
    n->calls[n->count++] = call;
    n->attempt = message->attempt;
}

static void on_cancel(mull_engine *engine, mull_call call, void *data)
{
    (void)engine;
    (void)call;
    ((note *)data)->cancelled++;
}

/* ---- Ending calls ---------------------------------------------------------------------------- */

static void end_twice(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    note *n = data;
    n->statuses[0] = mull_done(engine, call, NULL);
    n->statuses[1] = mull_done(engine, call, &oops);
}

static void a_call_ends_once(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, end_twice, &n);
    assert_int_equal(test_engine_publish(&r, "q", "a"), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(n.statuses[0], 0);
    assert_int_equal(n.statuses[1], MULL_EDONE);
    assert_int_equal(test_engine_counts(&r).done, 1);
    assert_int_equal(test_engine_counts(&r).dead_lettered, 0);
    test_engine_close(&r);
}

static void a_guessed_call_settles_nothing(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    test_engine_publish(&r, "q", "a");
    test_engine_advance(&r, 0);
    assert_int_equal(n.count, 1);
    static const mull_call deltas[] = {1, 64, 1u << 24, UINT64_C(1) << 60};
    for (size_t i = 0; i < sizeof deltas / sizeof *deltas; i++)
        assert_int_equal(mull_done(r.engine, n.calls[0] + deltas[i], NULL), MULL_EDONE);
    assert_int_equal(mull_done(r.engine, 0, NULL), MULL_EDONE);
    assert_int_equal(mull_done(r.engine, n.calls[0], NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).done, 1);
    test_engine_close(&r);
}

typedef struct racer {
    pthread_t thread;
    mull_engine *engine;
    mull_call call;
    int status;
} racer;

static void *race(void *data)
{
    racer *me = data;
    me->status = mull_done(me->engine, me->call, NULL);
    return NULL;
}

static void of_eight_threads_one_ends_the_call(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, keep, &n);
    test_engine_publish(&r, "q", "a");
    test_engine_advance(&r, 0);
    racer racers[8];
    for (int i = 0; i < 8; i++) {
        racers[i] = (racer){.engine = r.engine, .call = n.calls[0]};
        assert_int_equal(pthread_create(&racers[i].thread, NULL, race, &racers[i]), 0);
    }
    int won = 0;
    for (int i = 0; i < 8; i++) {
        pthread_join(racers[i].thread, NULL);
        won += racers[i].status == 0;
        assert_true(racers[i].status == 0 || racers[i].status == MULL_EDONE);
    }
    assert_int_equal(won, 1);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).done, 1);
    test_engine_close(&r);
}

static void a_call_that_timed_out_keeps_its_slot_until_its_handler_ends(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    mull_consumer_options consumer = test_engine_consumer(keep, &n);
    consumer.cancel = on_cancel;
    consumer.timeout_ms = 1000;
    test_engine_open(&r,
                     "policy = require 'mulligan.policy'\n"
                     "policy.bus():on('HandlerTimeoutError'):retry(1, 0)\n",
                     "memory:", &consumer);
    test_engine_publish(&r, "q", "a");
    test_engine_publish(&r, "q", "b");
    test_engine_advance(&r, 5000);
    assert_int_equal(n.cancelled, 1);
    assert_int_equal(n.count, 1); /* neither its retry nor the other message */
    assert_int_equal(mull_done(r.engine, n.calls[0], NULL), MULL_EDONE);
    assert_int_equal(mull_done(r.engine, n.calls[0], NULL), MULL_EDONE);
    test_engine_advance(&r, 0);
    assert_int_equal(n.count, 2);
    assert_int_equal(n.attempt, 2);
    assert_int_equal(mull_done(r.engine, n.calls[1], NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(n.count, 3);
    assert_int_equal(mull_done(r.engine, n.calls[2], NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).done, 2);
    test_engine_close(&r);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void send_then_end(mull_engine *engine, mull_call call, const mull_message *message,
                          void *data)
{
    note *n = data;
    mull_message out = MULL_INIT(mull_message);
    out.queue = "next";
    n->statuses[0] = mull_send(engine, call, &out, 0);
    mull_done(engine, call, strcmp(message->id, "bad") == 0 ? &oops : NULL);
    n->statuses[1] = mull_send(engine, call, &out, 0);
}

static void store_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    *(mull_depth *)data = *depth;
}

static void what_a_failed_call_sent_never_leaves(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, send_then_end, &n);
    test_engine_publish(&r, "q", "bad");
    test_engine_publish(&r, "q", "good");
    test_engine_advance(&r, 0);
    assert_int_equal(n.statuses[0], 0);
    assert_int_equal(n.statuses[1], MULL_EDONE);
    mull_depth depth = {0};
    assert_int_equal(mull_queue_depth(r.engine, "t", "next", store_depth, &depth), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(depth.ready, 1);
    assert_int_equal(test_engine_counts(&r).dead_lettered, 1);
    test_engine_close(&r);
}

static void what_cannot_be_a_message_is_refused(void **state)
{
    (void)state;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    mull_message message = MULL_INIT(mull_message);
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_EINVAL);
    message.queue = "q";
    assert_int_equal(mull_publish(r.engine, "u", &message, 0, NULL, NULL), MULL_EINVAL);
    assert_int_equal(mull_publish(r.engine, "t", &message, -1, NULL, NULL), MULL_EINVAL);
    message.id = "\xff";
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_EINVAL);
    message.id = NULL;
    message.body = "";
    message.body_size = 16 * 1024 * 1024 + 1;
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_ETOOBIG);
    test_engine_close(&r);
}

enum { MIB = 1024 * 1024, MOST_HEADERS = 1000 };

/* Each text counts with its NUL. */
static void a_message_has_a_thousand_headers_and_a_mebibyte_of_texts_at_most(void **state)
{
    (void)state;
    static char names[MOST_HEADERS + 1][12], text[MIB];
    mull_header headers[MOST_HEADERS + 1];
    for (int i = 0; i <= MOST_HEADERS; i++) {
        snprintf(names[i], sizeof names[i], "%d", i);
        headers[i] = (mull_header){.name = names[i], .value = ""};
    }
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.headers = headers;
    message.header_count = MOST_HEADERS + 1;
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_ETOOBIG);
    message.header_count = MOST_HEADERS;
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), 0);

    message.header_count = 1;
    headers[0].value = memset(text, 'x', MIB - 1);
    text[MIB - 2 - 2 - 1] = 0; /* beside "q" and "0" */
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), 0);
    message.key = "";
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_ETOOBIG);
    message.key = text;
    message.header_count = 2; /* the room is used up before they are reached */
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_ETOOBIG);
    test_engine_close(&r);
}

typedef struct sender {
    size_t body_size;
    uint64_t sent; /* by the last call, before it was too much */
} sender;

static void send_all_it_may(mull_engine *engine, mull_call call, const mull_message *message,
                            void *data)
{
    static const char body[MIB];
    mull_error again = MULL_INIT(mull_error);
    again.type = "Again";
    sender *s = data;
    mull_message sent = MULL_INIT(mull_message);
    sent.queue = "out";
    sent.body = body;
    sent.body_size = s->body_size;
    int status;
    for (s->sent = 0; (status = mull_send(engine, call, &sent, 0)) == 0;)
        s->sent++;
    assert_int_equal(status, MULL_ETOOBIG);
    mull_done(engine, call, message->attempt == 1 ? &again : NULL);
}

/* Each call has its own, a retry's too. It counts what keeping them takes: else small ones would be
 * without end. */
static void a_call_sends_64_mebibytes_at_most(void **state)
{
    (void)state;
    sender s = {.body_size = MIB};
    test_engine r;
    test_engine_open(&r, "require('mulligan.policy').bus():default():retry(1, 0)", "memory:", NULL);
    mull_consumer_options consumer = test_engine_consumer(send_all_it_may, &s);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r.engine), 0);
    for (uint64_t calls = 1; calls <= 2; calls++) {
        test_engine_publish(&r, "q", "1");
        test_engine_advance(&r, 0);
        assert_int_equal(s.sent, 63);
        mull_depth depth = {0};
        assert_int_equal(mull_queue_depth(r.engine, "t", "out", store_depth, &depth), 0);
        test_engine_advance(&r, 0);
        assert_int_equal(depth.ready, calls * 63); /* those before it leave */
    }
    s.body_size = 0;
    test_engine_publish(&r, "q", "1");
    test_engine_advance(&r, 0);
    assert_in_range(s.sent, 1000, 64 * MIB / sizeof(mull_message));
    assert_int_equal(test_engine_counts(&r).done, 3);
    test_engine_close(&r);
}

/* ---- Ending the engine ----------------------------------------------------------------------- */

static void end_well(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    (void)data;
    mull_done(engine, call, NULL);
}

static void stop_from_handler(mull_engine *engine, mull_call call, const mull_message *message,
                              void *data)
{
    end_well(engine, call, message, data);
    mull_stop(engine);
}

static void stop_and_count(mull_engine *engine, mull_call call, const mull_message *message,
                           void *data)
{
    ++*(int *)data;
    stop_from_handler(engine, call, message, NULL);
}

static void no_handler_begins_once_one_has_stopped_the_engine(void **state)
{
    (void)state;
    test_engine r;
    int calls = 0;
    mull_consumer_options consumer = test_engine_consumer(stop_and_count, &calls);
    consumer.concurrency = 4;
    test_engine_open(&r, "", "memory:", &consumer);
    for (int i = 0; i < 4; i++)
        test_engine_publish(&r, "q", NULL);
    test_engine_advance(&r, 0);
    assert_int_equal(calls, 1);
    assert_int_equal(test_engine_counts(&r).done, 1);
    test_engine_close(&r);
}

static void set_flag(void *data)
{
    *(int *)data = 1;
}

/* real_engine makes an engine on the real clock with one message for its handler. `loop`: NULL for
 * one of its own. */
static mull_engine *real_engine(mull_policy *policy, uv_loop_t *loop, mull_handler handler,
                                void *data, int *stopped)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    options.loop = loop;
    options.stopped = set_flag;
    options.data = stopped;
    mull_engine *engine = NULL;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(handler, data);
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    assert_int_equal(mull_publish(engine, "t", &message, 0, NULL, NULL), 0);
    return engine;
}

static void run_returns_when_the_engine_has_stopped(void **state)
{
    (void)state;
    mull_policy *policy = test_engine_policy("");
    int stopped = 0;
    mull_engine *engine = real_engine(policy, NULL, stop_from_handler, NULL, &stopped);
    assert_int_equal(mull_engine_run(engine), 0);
    assert_int_equal(stopped, 1);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(engine, &counts);
    assert_int_equal(counts.done, 1);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
}

static void close_from_handler(mull_engine *engine, mull_call call, const mull_message *message,
                               void *data)
{
    end_well(engine, call, message, data);
    mull_engine_close(engine, NULL, NULL);
}

static void an_engine_may_be_closed_by_its_handler(void **state)
{
    (void)state;
    mull_policy *policy = test_engine_policy("");
    int stopped = 0;
    mull_engine *engine = real_engine(policy, NULL, close_from_handler, NULL, &stopped);
    assert_int_equal(mull_engine_run(engine), 0);
    assert_int_equal(stopped, 1);
    mull_policy_free(policy);
}

static void it_runs_on_the_embedders_loop(void **state)
{
    (void)state;
    mull_policy *policy = test_engine_policy("");
    uv_loop_t loop;
    uv_loop_init(&loop);
    int stopped = 0, closed = 0;
    mull_engine *engine = real_engine(policy, &loop, stop_from_handler, NULL, &stopped);
    assert_int_equal(mull_engine_run(engine), MULL_ESTATE);
    assert_int_equal(mull_engine_start(engine), 0);
    while (!stopped)
        uv_run(&loop, UV_RUN_ONCE);
    mull_engine_close(engine, set_flag, &closed);
    assert_int_equal(closed, 0);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(policy);
}

static void an_engine_that_never_started_closes(void **state)
{
    (void)state;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    test_engine_close(&r);
}

static void close_waits_for_the_last_handler(void **state)
{
    (void)state;
    note n = {0};
    mull_policy *policy = test_engine_policy("");
    uv_loop_t loop;
    uv_loop_init(&loop);
    int stopped = 0, closed = 0;
    mull_engine *engine = real_engine(policy, &loop, keep, &n, &stopped);
    assert_int_equal(mull_engine_start(engine), 0);
    while (n.count == 0)
        uv_run(&loop, UV_RUN_ONCE);
    mull_engine_close(engine, set_flag, &closed);
    while (!stopped)
        uv_run(&loop, UV_RUN_ONCE);
    for (int i = 0; i < 10; i++)
        uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(closed, 0);
    assert_int_equal(mull_done(engine, n.calls[0], NULL), MULL_EDONE);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(closed, 1);
    assert_int_equal(uv_loop_close(&loop), 0);
    mull_policy_free(policy);
}

/* ---- Many threads ---------------------------------------------------------------------------- */

enum { MESSAGES = 2000, THREADS = 4 };

/* pool hands calls to threads, which end them, every third with an error the first time. */
typedef struct pool {
    pthread_t threads[THREADS];
    pthread_mutex_t mutex;
    pthread_cond_t more;
    struct {
        mull_call call;
        int fail;
    } ring[MESSAGES * 2];
    int head, tail, over;
    mull_engine *engine;
    _Atomic int ended;
} pool;

static void to_pool(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    pool *p = data;
    (void)engine;
    pthread_mutex_lock(&p->mutex);
    p->ring[p->tail].call = call;
    p->ring[p->tail++].fail = message->attempt == 1 && message->id[0] % 3 == 0;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->mutex);
}

static void *work(void *data)
{
    pool *p = data;
    for (;;) {
        pthread_mutex_lock(&p->mutex);
        while (p->head == p->tail && !p->over)
            pthread_cond_wait(&p->more, &p->mutex);
        if (p->head == p->tail) {
            pthread_mutex_unlock(&p->mutex);
            return NULL;
        }
        mull_call call = p->ring[p->head].call;
        int fail = p->ring[p->head++].fail;
        pthread_mutex_unlock(&p->mutex);
        mull_message out = MULL_INIT(mull_message);
        out.queue = "next";
        mull_send(p->engine, call, &out, 0);
        if (mull_done(p->engine, call, fail ? &oops : NULL) == 0)
            atomic_fetch_add(&p->ended, 1);
    }
}

static void handlers_may_work_on_other_threads(void **state)
{
    (void)state;
    static pool p;
    pthread_mutex_init(&p.mutex, NULL);
    pthread_cond_init(&p.more, NULL);
    mull_policy *policy = test_engine_policy("local policy = require 'mulligan.policy'\n"
                                             "policy.bus():default():retry(2, 0)\n");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = policy;
    mull_engine *engine = NULL;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    p.engine = engine;
    assert_int_equal(mull_engine_transport(engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(to_pool, &p);
    consumer.concurrency = 64;
    assert_int_equal(mull_consumer_add(engine, &consumer), 0);
    int retries = 0;
    for (int i = 0; i < MESSAGES; i++) {
        char id[] = {(char)('a' + i % 26), 0};
        retries += id[0] % 3 == 0;
        mull_message message = MULL_INIT(mull_message);
        message.queue = "q";
        message.id = id;
        assert_int_equal(mull_publish(engine, "t", &message, 0, NULL, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_create(&p.threads[i], NULL, work, &p);
    assert_int_equal(mull_stop_when_empty(engine), 0);
    assert_int_equal(mull_engine_run(engine), 0);
    pthread_mutex_lock(&p.mutex);
    p.over = 1;
    pthread_cond_broadcast(&p.more);
    pthread_mutex_unlock(&p.mutex);
    for (int i = 0; i < THREADS; i++)
        pthread_join(p.threads[i], NULL);
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(engine, &counts);
    assert_int_equal(counts.done, MESSAGES);
    assert_int_equal(counts.retried, retries);
    assert_int_equal(atomic_load(&p.ended), MESSAGES + retries);
    mull_engine_close(engine, NULL, NULL);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_ends_once),
        cmocka_unit_test(a_guessed_call_settles_nothing),
        cmocka_unit_test(of_eight_threads_one_ends_the_call),
        cmocka_unit_test(a_call_that_timed_out_keeps_its_slot_until_its_handler_ends),
        cmocka_unit_test(what_a_failed_call_sent_never_leaves),
        cmocka_unit_test(what_cannot_be_a_message_is_refused),
        cmocka_unit_test(a_message_has_a_thousand_headers_and_a_mebibyte_of_texts_at_most),
        cmocka_unit_test(a_call_sends_64_mebibytes_at_most),
        cmocka_unit_test(no_handler_begins_once_one_has_stopped_the_engine),
        cmocka_unit_test(run_returns_when_the_engine_has_stopped),
        cmocka_unit_test(an_engine_may_be_closed_by_its_handler),
        cmocka_unit_test(it_runs_on_the_embedders_loop),
        cmocka_unit_test(an_engine_that_never_started_closes),
        cmocka_unit_test(close_waits_for_the_last_handler),
        cmocka_unit_test(handlers_may_work_on_other_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
