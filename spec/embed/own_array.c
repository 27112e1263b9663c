/* own_array.c: the transport of examples/array at its bounds, which the conformance suite doesn't
 * reach: a full array, and the name of a queue that is too long. */
#include "mulligan/transport.h"
#include "test_engine.h"

enum { HALF = 500, QUEUE_MAX = 255 };

extern const mull_transport_ops array_transport;

static void fail_call(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    mull_error error = MULL_INIT(mull_error);
    (void)message;
    (void)data;
    error.type = "Never";
    assert_int_equal(mull_done(engine, call, &error), 0);
}

static void open_array(test_engine *r)
{
    *r = (test_engine){.clock = {test_engine_now, test_engine_wall, r}};
    r->policy = test_engine_policy("require('mulligan.policy').bus():default():dead_letter()");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r->policy;
    options.clock = &r->clock;
    assert_int_equal(mull_engine_new(&r->engine, &options), 0);
    assert_int_equal(mull_engine_scheme(r->engine, &array_transport, NULL), 0);
    assert_int_equal(mull_engine_transport(r->engine, "t", "array:"), 0);
}

static void what_is_out_finds_a_place_in_a_full_array(void **state)
{
    (void)state;
    test_engine r;
    open_array(&r);
    mull_consumer_options consumer = test_engine_consumer(fail_call, NULL);
    assert_int_equal(mull_engine_start(r.engine), 0);
    for (int i = 0; i < HALF + 1; i++)
        assert_int_equal(test_engine_publish(&r, "q", NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(r.published, HALF);
    assert_int_equal(r.publish_failed, 1);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    test_engine_advance(&r, 0); /* no settlement was tried again */
    assert_int_equal(test_engine_counts(&r).dead_lettered, HALF);
    test_engine_close(&r);
}

/* reads says whether a queue with so long a name is read. */
static int reads(size_t length)
{
    char queue[QUEUE_MAX + 2] = "";
    memset(queue, 'q', length);
    test_engine r;
    open_array(&r);
    mull_consumer_options consumer = test_engine_consumer(fail_call, NULL);
    consumer.queue = queue;
    assert_int_equal(mull_engine_start(r.engine), 0);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(test_engine_publish(&r, queue, NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(r.published, 1);
    int came = test_engine_counts(&r).dead_lettered == 1;
    test_engine_close(&r);
    return came;
}

static void a_queue_with_too_long_a_name_is_refused(void **state)
{
    (void)state;
    assert_true(reads(QUEUE_MAX));
    assert_false(reads(QUEUE_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_out_finds_a_place_in_a_full_array),
        cmocka_unit_test(a_queue_with_too_long_a_name_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
