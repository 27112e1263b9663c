/* sqlite_loop.h: engines on sqlite:FILE, any number of them, on one loop of the test's. A test
 * turns it until what it waits for has happened. Each engine has its own thread at the database. */
#ifndef SQLITE_LOOP_H
#define SQLITE_LOOP_H

#include "sqlite_engine.h"

#include <uv.h>

static uv_loop_t loop;
static uv_timer_t tick; /* turns the loop, so that what is awaited is looked at */

static inline void on_tick(uv_timer_t *timer)
{
    (void)timer;
}

static inline int set_up_loop(void **state)
{
    uv_loop_init(&loop);
    uv_timer_init(&loop, &tick);
    uv_timer_start(&tick, on_tick, 1, 1);
    return set_up(state);
}

static inline int tear_down_loop(void **state)
{
    uv_close((uv_handle_t *)&tick, NULL);
    uv_run(&loop, UV_RUN_NOWAIT); /* engines of a test that failed are still there */
    return uv_loop_close(&loop) != 0 || tear_down(state) != 0;
}

#define LOOP_TEST(name) cmocka_unit_test_setup_teardown(name, set_up_loop, tear_down_loop)

/* await turns the loop until it is true; the watchdog ends a wait in vain. */
#define await(condition)                                                                           \
    while (!(condition))                                                                           \
    uv_run(&loop, UV_RUN_ONCE)

static inline void on_stopped(void *data)
{
    ((live *)data)->stopped++;
}

/* make_on_loop makes an engine on the file, which isn't started. `l` may begin a larger struct,
 * which its handlers get. */
static inline void make_on_loop(live *l, int64_t grace_ms)
{
    l->policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.loop = &loop;
    options.log = on_log;
    options.problem = on_problem;
    options.stopped = on_stopped;
    options.grace_ms = grace_ms;
    options.data = l;
    assert_int_equal(mull_engine_new(&l->engine, &options), 0);
    assert_int_equal(mull_engine_transport(l->engine, "t", url), 0);
}

/* start_on_loop starts one that has the consumer "C" of the queue "q". */
static inline void start_on_loop(live *l, mull_handler handler, uint32_t concurrency)
{
    make_on_loop(l, 1);
    mull_consumer_options consumer = test_engine_consumer(handler, l);
    consumer.concurrency = concurrency;
    assert_int_equal(mull_consumer_add(l->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(l->engine), 0);
}

static inline void on_loop_closed(void *data)
{
    *(int *)data = 1;
}

static inline void close_on_loop(live *l)
{
    int closed = 0;
    mull_engine_close(l->engine, on_loop_closed, &closed);
    await(closed);
    mull_policy_free(l->policy);
}

/* make_file makes an empty database, and gives a connection to it. */
static inline sqlite3 *make_file(void)
{
    live l;
    open_live(&l, NULL, 0);
    close_live(&l);
    return look_in();
}

/* insert puts messages into the queue "q" whose ids are the numbers from `from` to `to`, without.
 */
static inline void insert(sqlite3 *db, int from, int to)
{
    char text[16];
    sql(db, "BEGIN IMMEDIATE");
    for (int id = from; id < to; id++) {
        snprintf(text, sizeof text, "%d", id);
        put_row(db, text);
    }
    sql(db, "COMMIT");
}

#endif
