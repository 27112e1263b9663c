/* engine_posts.c: what is asked of an engine after its last look at what there is to do, right
 * before its loop waits, is carried out though nothing else comes. */
#include "test_engine.h"

#include <uv.h>

enum { LATE_MS = 30000 };

/* host is a loop on which nothing happens but what an engine asks for, and a watchdog. */
typedef struct host {
    uv_loop_t loop;
    uv_prepare_t before;
    uv_timer_t watchdog;
    mull_policy *policy;
    mull_engine *engine;
    int quiet, stopped, closed, late;
} host;

static void set_flag(void *data)
{
    *(int *)data = 1;
}

static void on_late(uv_timer_t *watchdog)
{
    ((host *)watchdog->data)->late = 1;
}

static void note_stop(void *data)
{
    ((host *)data)->stopped = 1;
}

static void end_well(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    (void)data;
    mull_done(engine, call, NULL);
}

/* open_engine starts `before` first: of all prepare handles, libuv calls the oldest last. */
static void open_engine(host *h, uv_prepare_cb before)
{
    *h = (host){.policy = test_engine_policy("")};
    uv_loop_init(&h->loop);
    uv_prepare_init(&h->loop, &h->before);
    uv_timer_init(&h->loop, &h->watchdog);
    h->before.data = h->watchdog.data = h;
    uv_prepare_start(&h->before, before);
    uv_timer_start(&h->watchdog, on_late, LATE_MS, 0);
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = h->policy;
    options.loop = &h->loop;
    options.stopped = note_stop;
    options.data = h;
    mull_consumer_options consumer = test_engine_consumer(end_well, h);
    assert_int_equal(mull_engine_new(&h->engine, &options), 0);
    assert_int_equal(mull_engine_transport(h->engine, "t", "memory:"), 0);
    assert_int_equal(mull_consumer_add(h->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(h->engine), 0);
}

/* run_until turns the loop until a flag is set. */
static void run_until(host *h, const int *flag)
{
    while (!*flag && !h->late)
        uv_run(&h->loop, UV_RUN_ONCE);
    assert_false(h->late);
}

static void close_loop(host *h)
{
    uv_close((uv_handle_t *)&h->before, NULL);
    uv_close((uv_handle_t *)&h->watchdog, NULL);
    uv_run(&h->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h->loop), 0);
    mull_policy_free(h->policy);
}

/* ---------------------------------------------------------------------------------------------- */

static void ask_once(uv_prepare_t *before)
{
    host *h = before->data;
    if (!h->quiet)
        return;
    mull_stop_when_empty(h->engine);
    uv_prepare_stop(before);
}

static void what_is_asked_right_before_the_loop_waits_is_done(void **state)
{
    (void)state;
    host h;
    open_engine(&h, ask_once);
    for (int i = 0; i < 100; i++)
        uv_run(&h.loop, UV_RUN_NOWAIT);
    h.quiet = 1;
    run_until(&h, &h.stopped);
    mull_engine_close(h.engine, set_flag, &h.closed);
    run_until(&h, &h.closed);
    close_loop(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_asked_right_before_the_loop_waits_is_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
