/* engine_done.c: mull_done as no handler should call it: with what is no error, with numbers that
 * are no call's, and by eight threads at once for calls that are open, have ended, or ran over. */
#include "test_engine.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { CALLS = 64, THREADS = 8, TIMEOUT_MS = 1000 };

static const mull_error oops = {.size = sizeof oops, .type = "Oops", .message = "no"};

typedef struct stage {
    test_engine r;
    mull_call calls[2 * CALLS]; /* those of retries, too */
    int count, cancelled;
    atomic_int ended[2 * CALLS]; /* by how many threads */
    atomic_int wrong;            /* answers that there mustn't be */
    atomic_int ready;            /* threads that are at the start */
} stage;

static void keep(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    (void)message;
    stage *s = data;
    assert_true(s->count < 2 * CALLS);
    s->calls[s->count++] = call;
}

static void on_cancel(mull_engine *engine, mull_call call, void *data)
{
    (void)engine;
    (void)call;
    ((stage *)data)->cancelled++;
}

/* begin hands out so many messages, each of which is at its handler then. */
static void begin(stage *s, int messages)
{
    *s = (stage){.count = 0};
    mull_consumer_options consumer = test_engine_consumer(keep, s);
    consumer.concurrency = CALLS;
    consumer.cancel = on_cancel;
    consumer.timeout_ms = TIMEOUT_MS;
    test_engine_open(&s->r,
                     "policy = require 'mulligan.policy'\n"
                     "policy.bus():on('HandlerTimeoutError'):retry(1, 0)\n"
                     "policy.bus():on('Oops'):discard()\n",
                     "memory:", &consumer);
    for (int i = 0; i < messages; i++) {
        char id[16];
        snprintf(id, sizeof id, "m-%d", i);
        assert_int_equal(test_engine_publish(&s->r, "q", id), 0);
    }
    test_engine_advance(&s->r, 0);
    assert_int_equal(s->count, messages);
}

/* ---------------------------------------------------------------------------------------------- */

static void what_is_no_error_ends_nothing(void **state)
{
    (void)state;
    stage s;
    begin(&s, 1);
    mull_error bad[] = {oops, oops, oops, oops};
    bad[0].size = 0;
    bad[1].size = sizeof bad[1] - 1;
    bad[2].type = NULL;
    bad[3].type = "";
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(mull_done(s.r.engine, s.calls[0], &bad[i]), MULL_EINVAL);
    assert_int_equal(mull_done(NULL, s.calls[0], NULL), MULL_EINVAL);
    test_engine_advance(&s.r, 0);
    assert_int_equal(test_engine_counts(&s.r).done + test_engine_counts(&s.r).discarded, 0);
    assert_int_equal(mull_done(s.r.engine, s.calls[0], &oops), 0);
    test_engine_advance(&s.r, 0);
    assert_int_equal(test_engine_counts(&s.r).discarded, 1);
    test_engine_close(&s.r);
}

typedef struct actor {
    stage *stage;
    pthread_t thread;
    int number;
} actor;

/* answer notes what a call of mull_done answered for call number `i`. */
static void answer(stage *s, int i, int status)
{
    if (status == 0)
        s->ended[i]++;
    else if (status != MULL_EDONE)
        s->wrong++;
}

/* end_all ends every call twice, half of them with an error, and besides some that are none. */
static void *end_all(void *data)
{
    actor *me = data;
    stage *s = me->stage;
    for (s->ready++; s->ready < THREADS;)
        sched_yield();
    for (int n = 0; n < 2 * CALLS; n++) {
        int i = (n + me->number * 7) % CALLS;
        mull_call guessed = s->calls[i] + ((mull_call)(n + 1) << 40);
        answer(s, i, mull_done(s->r.engine, s->calls[i], i % 2 ? &oops : NULL));
        s->wrong += mull_done(s->r.engine, guessed, NULL) != MULL_EDONE;
        s->wrong += mull_done(s->r.engine, (mull_call)n << 40, &oops) != MULL_EDONE;
    }
    return NULL;
}

static void race(stage *s)
{
    actor actors[THREADS];
    for (int i = 0; i < THREADS; i++) {
        actors[i] = (actor){.stage = s, .number = i};
        assert_int_equal(pthread_create(&actors[i].thread, NULL, end_all, &actors[i]), 0);
    }
    /* Meanwhile the loop turns, and frees what has ended. */
    while (s->ready < THREADS)
        mull_engine_turn(s->r.engine);
    for (int i = 0; i < 100; i++)
        mull_engine_turn(s->r.engine);
    for (int i = 0; i < THREADS; i++)
        pthread_join(actors[i].thread, NULL);
    test_engine_advance(&s->r, 0);
    assert_int_equal(s->wrong, 0);
}

static void each_call_is_ended_by_one_of_eight_threads(void **state)
{
    (void)state;
    stage s;
    begin(&s, CALLS);
    race(&s);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(s.ended[i], 1);
    assert_int_equal(test_engine_counts(&s.r).done, CALLS / 2);
    assert_int_equal(test_engine_counts(&s.r).discarded, CALLS / 2);
    assert_int_equal(s.count, CALLS);
    test_engine_close(&s.r);
}

/* All of them ran over: their ends, late, free their places and settle nothing. */
static void none_of_eight_threads_ends_a_call_that_ran_over(void **state)
{
    (void)state;
    stage s;
    begin(&s, CALLS);
    test_engine_advance(&s.r, TIMEOUT_MS);
    assert_int_equal(s.cancelled, CALLS);
    assert_int_equal(s.count, CALLS);
    race(&s);
    for (int i = 0; i < CALLS; i++)
        assert_int_equal(s.ended[i], 0);
    assert_int_equal(test_engine_counts(&s.r).done + test_engine_counts(&s.r).discarded, 0);
    assert_int_equal(test_engine_counts(&s.r).retried, CALLS);
    assert_int_equal(s.count, 2 * CALLS); /* each has its retry, and that one end */
    for (int i = CALLS; i < 2 * CALLS; i++)
        assert_int_equal(mull_done(s.r.engine, s.calls[i], NULL), 0);
    test_engine_advance(&s.r, 0);
    assert_int_equal(test_engine_counts(&s.r).done, CALLS);
    test_engine_close(&s.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_no_error_ends_nothing),
        cmocka_unit_test(each_call_is_ended_by_one_of_eight_threads),
        cmocka_unit_test(none_of_eight_threads_ends_a_call_that_ran_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
