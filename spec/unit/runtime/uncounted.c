/* uncounted.c: calls whose failure counts for nothing, as those that found no memory while
 * others held it: they are made again alone, or their messages go back. */
#include "runtime/calls.h"
#include "runtime/engine_control.h"
#include "test_engine.h"

enum { HELD = 8, PATIENCE_MS = 5000 };

/* held is what a handler was called with and hasn't ended. */
typedef struct held {
    test_engine r;
    mull_call calls[HELD];
    char ids[HELD][8];
    int64_t attempts[HELD], failed[HELD];
    int count;
} held;

static void hold(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    held *h = data;
    assert_true(h->count < HELD);
    h->calls[h->count] = call;
    h->attempts[h->count] = message->attempt;
    h->failed[h->count] = message->calls;
    snprintf(h->ids[h->count++], sizeof *h->ids, "%s", message->id);
}

static void open_with(held *h, const char *policy, int64_t timeout_ms)
{
    *h = (held){0};
    mull_consumer_options consumer = test_engine_consumer(hold, h);
    consumer.concurrency = 2;
    consumer.timeout_ms = timeout_ms;
    test_engine_open(&h->r, policy, "memory:", &consumer);
}

static void turn(held *h)
{
    test_engine_advance(&h->r, 0);
}

static const mull_error failure = {.size = sizeof failure, .type = "Error"};

/* uncounted ends the call at `index` as one whose failure doesn't count; whether it was alone. */
static int uncounted(held *h, int index)
{
    assert_int_equal(mull_done(h->r.engine, h->calls[index], &failure), 0);
    int was_alone = mull__call_uncount(h->r.engine, h->calls[index]);
    turn(h);
    return was_alone;
}

static void succeed(held *h, int index)
{
    assert_int_equal(mull_done(h->r.engine, h->calls[index], NULL), 0);
    turn(h);
}

static void called(const held *h, int index, const char *id, int64_t attempt, int64_t failed)
{
    assert_int_equal(h->count, index + 1);
    assert_string_equal(h->ids[index], id);
    assert_int_equal(h->attempts[index], attempt);
    assert_int_equal(h->failed[index], failed);
}

static void publish(held *h, const char *const *ids)
{
    for (; *ids; ids++)
        assert_int_equal(test_engine_publish(&h->r, "q", *ids), 0);
    turn(h);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    *(uint64_t *)data = depth->ready;
}

static uint64_t ready(held *h, const char *queue)
{
    uint64_t count = UINT64_MAX;
    assert_int_equal(mull_queue_depth(h->r.engine, "t", queue, on_depth, &count), 0);
    turn(h);
    return count;
}

/* ---- What becomes of it ---------------------------------------------------------------------- */

static void it_is_called_again_once_nothing_else_is_at_work(void **state)
{
    (void)state;
    held h;
    open_with(&h, "", 0);
    publish(&h, (const char *[]){"a", "b", "c", NULL});
    assert_int_equal(h.count, 2);
    assert_false(uncounted(&h, 0));
    assert_int_equal(h.count, 2); /* c waits as well */
    succeed(&h, 1);
    called(&h, 2, "a", 1, 0);
    assert_true(uncounted(&h, 2));
    called(&h, 3, "a", 1, 0);
    succeed(&h, 3);
    called(&h, 4, "c", 1, 0);
    succeed(&h, 4);
    mull_counts counts = test_engine_counts(&h.r);
    assert_int_equal(counts.done, 3);
    assert_int_equal(counts.retried + counts.dead_lettered, 0);
    test_engine_close(&h.r);
}

static void it_waits_no_longer_than_its_patience(void **state)
{
    (void)state;
    held h;
    open_with(&h, "", MULL_NEVER);
    publish(&h, (const char *[]){"a", "b", NULL});
    assert_false(uncounted(&h, 1));
    test_engine_advance(&h.r, PATIENCE_MS - 1);
    assert_int_equal(h.count, 2);
    test_engine_advance(&h.r, 1);
    called(&h, 2, "b", 1, 0);
    assert_true(uncounted(&h, 2));
    succeed(&h, 0);
    succeed(&h, 3);
    assert_int_equal(test_engine_counts(&h.r).done, 2);
    test_engine_close(&h.r);
}

static void failures_before_stay_counted(void **state)
{
    (void)state;
    held h;
    open_with(&h, "require('mulligan.policy').bus():default():retry(1)", MULL_NEVER);
    publish(&h, (const char *[]){"a", NULL});
    assert_int_equal(mull_done(h.r.engine, h.calls[0], &failure), 0);
    test_engine_advance(&h.r, 60000);
    called(&h, 1, "a", 2, 1);
    assert_false(uncounted(&h, 1));
    called(&h, 2, "a", 2, 1);
    assert_int_equal(mull_done(h.r.engine, h.calls[2], &failure), 0);
    turn(&h);
    mull_counts counts = test_engine_counts(&h.r);
    assert_int_equal(counts.retried, 1);
    assert_int_equal(counts.dead_lettered, 1);
    test_engine_close(&h.r);
}

static void what_has_ended_well_or_was_cut_off_is_left_alone(void **state)
{
    (void)state;
    held h;
    open_with(&h, "", 1000);
    publish(&h, (const char *[]){"a", "b", NULL});
    assert_int_equal(mull_done(h.r.engine, h.calls[0], NULL), 0);
    mull__call_uncount(h.r.engine, h.calls[0]);
    test_engine_advance(&h.r, 1000);
    assert_int_equal(mull_done(h.r.engine, h.calls[1], &failure), MULL_EDONE);
    mull__call_uncount(h.r.engine, h.calls[1]);
    turn(&h);
    mull__call_uncount(h.r.engine, h.calls[0]); /* nobody's any more */
    turn(&h);
    assert_int_equal(h.count, 2);
    assert_int_equal(test_engine_counts(&h.r).done, 1);
    assert_int_equal(test_engine_counts(&h.r).dead_lettered, 1);
    test_engine_close(&h.r);
}

static void where_the_engine_stops_for_want_of_memory_all_goes_back(void **state)
{
    (void)state;
    held h;
    open_with(&h, "", 0);
    publish(&h, (const char *[]){"a", "b", "c", "d", NULL});
    assert_false(uncounted(&h, 0)); /* it waits for b's end */
    assert_int_equal(mull_engine_status(h.r.engine), 0);
    mull__stop_out_of_memory(h.r.engine, "there is none");
    mull__stop_out_of_memory(h.r.engine, "nor now");
    turn(&h);
    assert_int_equal(mull_engine_status(h.r.engine), MULL_ENOMEM);
    assert_int_equal(h.count, 2);
    assert_int_equal(ready(&h, "q"), 3);
    assert_false(uncounted(&h, 1));
    assert_int_equal(ready(&h, "q"), 4);
    assert_int_equal(ready(&h, "error"), 0);
    test_engine_close(&h.r);
}

static void a_stop_that_was_asked_for_goes_on_without_a_status(void **state)
{
    (void)state;
    held h;
    open_with(&h, "", 0);
    publish(&h, (const char *[]){"a", "b", NULL});
    mull_stop(h.r.engine);
    mull__stop_out_of_memory(h.r.engine, "there is none");
    turn(&h);
    mull__stop_out_of_memory(h.r.engine, "there is none");
    assert_false(uncounted(&h, 0));
    succeed(&h, 1);
    assert_int_equal(mull_engine_status(h.r.engine), 0);
    assert_int_equal(ready(&h, "q"), 1);
    test_engine_close(&h.r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_called_again_once_nothing_else_is_at_work),
        cmocka_unit_test(it_waits_no_longer_than_its_patience),
        cmocka_unit_test(failures_before_stay_counted),
        cmocka_unit_test(what_has_ended_well_or_was_cut_off_is_left_alone),
        cmocka_unit_test(where_the_engine_stops_for_want_of_memory_all_goes_back),
        cmocka_unit_test(a_stop_that_was_asked_for_goes_on_without_a_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
