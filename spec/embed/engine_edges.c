/* engine_edges.c: the engine at the edges of its numbers, on other people's loops, and where calls
 * and loops end at awkward moments. */
#include "test_engine.h"

#include <uv.h>

static const mull_error oops = {.size = sizeof oops, .type = "Oops", .message = "no"};

typedef struct note {
    mull_call call;
    int count, status;
} note;

static void keep(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    (void)message;
    note *n = data;
    n->call = call;
    n->count++;
}

static void end_well(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    ((note *)data)->count++;
    mull_done(engine, call, NULL);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

static void a_delay_without_end_never_comes(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    mull_consumer_options consumer = test_engine_consumer(end_well, &n);
    consumer.timeout_ms = INT64_MAX;
    test_engine_open(&r, "", "memory:", &consumer);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    assert_int_equal(mull_publish(r.engine, "t", &message, INT64_MAX, test_engine_published, &r),
                     0);
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, test_engine_published, &r), 0);
    test_engine_advance(&r, 1000000000);
    assert_int_equal(r.published, 2);
    assert_int_equal(n.count, 1);
    test_engine_close(&r);
}

static void put_off(test_engine *r, int64_t delay_ms)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    assert_int_equal(mull_publish(r->engine, "t", &message, delay_ms, test_engine_published, r), 0);
}

static void what_no_policy_puts_off_so_long_is_not_waited_for(void **state)
{
    (void)state;
    const int64_t hour_ms = 3600 * 1000, longest_ms = 366 * 24 * hour_ms;
    test_engine r;
    note n = {0};
    test_engine_open_plain(&r, end_well, &n);
    put_off(&r, hour_ms);
    put_off(&r, longest_ms + hour_ms);
    mull_stop_when_empty(r.engine);
    test_engine_advance(&r, hour_ms - 1);
    assert_int_equal(n.count, 0);
    assert_int_equal(mull_engine_status(r.engine), 0);
    test_engine_advance(&r, 1000);
    assert_int_equal(n.count, 1);
    assert_int_equal(mull_engine_status(r.engine), 0); /* a second less than too long */
    test_engine_close(&r);
    test_engine_open_plain(&r, end_well, &n);
    put_off(&r, INT64_MAX);
    put_off(&r, longest_ms + 1);
    mull_stop_when_empty(r.engine);
    test_engine_advance(&r, 0);
    assert_int_equal(mull_engine_status(r.engine), MULL_EREFUSED);
    assert_int_equal(n.count, 1);
    test_engine_close(&r);
}

static void as_many_handlers_as_there_are_numbers(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    mull_consumer_options consumer = test_engine_consumer(end_well, &n);
    consumer.concurrency = UINT32_MAX;
    consumer.prefetch = UINT32_MAX;
    test_engine_open(&r, "", "memory:", &consumer);
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_engine_publish(&r, "q", NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(n.count, 3);
    test_engine_close(&r);
}

static void a_header_has_one_value(void **state)
{
    (void)state;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    const mull_header headers[] = {{"a", "1"}, {"b", "1"}, {"a", "2"}};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.headers = headers;
    message.header_count = 3;
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), MULL_EINVAL);
    message.header_count = 2;
    assert_int_equal(mull_publish(r.engine, "t", &message, 0, NULL, NULL), 0);
    test_engine_close(&r);
}

/* ---- What lists share ------------------------------------------------------------------------ */

enum { SHARERS = 10, SHARED_LEVELS = 6 };

static void fail_with_shared(mull_engine *engine, mull_call call, const mull_message *message,
                             void *data)
{
    (void)message;
    (void)data;
    mull_value lists[SHARED_LEVELS][SHARERS];
    for (int level = 0; level < SHARED_LEVELS; level++)
        for (int i = 0; i < SHARERS; i++)
            lists[level][i] = level ? (mull_value){.kind = MULL_LIST,
                                                   .as.items = lists[level - 1],
                                                   .count = SHARERS}
                                    : (mull_value){.kind = MULL_STRING, .as.string = "leaf"};
    static char
        text[1024]; /* 100 times in each list of the second one: 10 such lists fit in 1 MiB */
    memset(text, 'x', sizeof text - 1);
    mull_value texts[100], lists_of_texts[20];
    for (int i = 0; i < 100; i++)
        texts[i] = (mull_value){.kind = MULL_STRING, .as.string = text};
    for (int i = 0; i < 20; i++)
        lists_of_texts[i] = (mull_value){.kind = MULL_LIST, .as.items = texts, .count = 100};
    const mull_field fields[] = {
        {"texts", {.kind = MULL_LIST, .as.items = lists_of_texts, .count = 20}},
        {"shared", {.kind = MULL_LIST, .as.items = lists[SHARED_LEVELS - 1], .count = SHARERS}},
        {"code", {.kind = MULL_INTEGER, .as.integer = 7}}};
    mull_error error = oops;
    error.fields = fields;
    error.field_count = 3;
    mull_done(engine, call, &error);
}

static int count_values(const mull_value *value)
{
    int count = 1;
    for (size_t i = 0; value->kind == MULL_LIST && i < value->count; i++)
        count += count_values(&value->as.items[i]);
    return count;
}

static void count_shared(const mull_event *event, void *data)
{
    if (event->kind != MULL_EVENT_DECIDED)
        return;
    const mull_error *error = event->failure->error;
    assert_int_equal(error->field_count, 3);
    assert_int_equal(error->fields[2].value.as.integer, 7);
    assert_int_equal(count_values(&error->fields[0].value), 1 + 20 + 10 * 100);
    *(int *)data = count_values(&error->fields[1].value);
}

static void what_lists_share_is_copied_within_bounds(void **state)
{
    (void)state;
    test_engine r = {.clock = {test_engine_now, test_engine_wall, &r},
                     .policy = test_engine_policy("")};
    int values = 0;
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r.policy;
    options.clock = &r.clock;
    options.event = count_shared;
    options.data = &values;
    assert_int_equal(mull_engine_new(&r.engine, &options), 0);
    assert_int_equal(mull_engine_transport(r.engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(fail_with_shared, NULL);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r.engine), 0);
    test_engine_publish(&r, "q", "a");
    test_engine_advance(&r, 0);
    assert_in_range(values, 5000, 10001);
    test_engine_close(&r);
}

/* ---- Sending --------------------------------------------------------------------------------- */

static void send_later(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    note *n = data;
    mull_message out = MULL_INIT(mull_message);
    out.queue = "next";
    n->status = mull_send(engine, call, &out, 1000);
    end_well(engine, call, message, data);
}

static void what_cannot_be_put_off_is_refused_when_it_is_sent(void **state)
{
    (void)state;
    static const char *const urls[] = {"memory:?delay=no", "memory:?longest_delay=999ms"};
    for (int i = 0; i < 2; i++) {
        test_engine r;
        note n = {0};
        mull_consumer_options consumer = test_engine_consumer(send_later, &n);
        test_engine_open(&r, "", urls[i], &consumer);
        test_engine_publish(&r, "q", "a");
        test_engine_advance(&r, 0);
        assert_int_equal(n.status, MULL_EREFUSED);
        assert_int_equal(test_engine_counts(&r).done, 1);
        test_engine_close(&r);
    }
}

/* ---- Loops ----------------------------------------------------------------------------------- */

typedef struct loop_rig {
    uv_loop_t loop;
    uv_prepare_t prepare;
    uv_check_t check;
    uv_timer_t watchdog;
    mull_policy *policy;
    mull_engine *engine;
    note note;
    int chained, turns, stopped, closed, late;
} loop_rig;

static void set_flag(void *data)
{
    *(int *)data = 1;
}

static void loop_open(loop_rig *l, mull_handler handler)
{
    *l = (loop_rig){0};
    uv_loop_init(&l->loop);
    l->policy = test_engine_policy("");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->policy;
    options.loop = &l->loop;
    options.stopped = set_flag;
    options.data = &l->stopped;
    assert_int_equal(mull_engine_new(&l->engine, &options), 0);
    assert_int_equal(mull_engine_transport(l->engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(handler, &l->note);
    assert_int_equal(mull_consumer_add(l->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(l->engine), 0);
}

static void loop_close(loop_rig *l)
{
    mull_engine_close(l->engine, set_flag, &l->closed);
    uv_run(&l->loop, UV_RUN_DEFAULT);
    assert_int_equal(l->closed, 1);
    assert_int_equal(uv_loop_close(&l->loop), 0);
    mull_policy_free(l->policy);
}

static void publish_to(loop_rig *l, mull_published_fn published)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = "elsewhere";
    assert_int_equal(mull_publish(l->engine, "t", &message, 0, published, l), 0);
}

static void chain(int status, void *data)
{
    loop_rig *l = data;
    assert_int_equal(status, 0);
    if (++l->chained < 50)
        publish_to(l, chain);
}

static void count_turn(uv_check_t *check)
{
    ((loop_rig *)check->data)->turns++;
}

static void an_answer_comes_on_a_later_turn(void **state)
{
    (void)state;
    loop_rig l;
    loop_open(&l, keep);
    uv_check_init(&l.loop, &l.check);
    l.check.data = &l;
    uv_check_start(&l.check, count_turn);
    publish_to(&l, chain);
    assert_int_equal(l.chained, 0);
    while (l.chained < 50)
        uv_run(&l.loop, UV_RUN_NOWAIT);
    assert_true(l.turns >= 49);
    uv_close((uv_handle_t *)&l.check, NULL);
    loop_close(&l);
}

static void end_now(uv_prepare_t *prepare)
{
    loop_rig *l = prepare->data;
    if (l->note.call)
        mull_done(l->engine, l->note.call, NULL);
    l->note.call = 0;
}

static void too_late(uv_timer_t *timer)
{
    ((loop_rig *)timer->data)->late = 1;
}

static void an_end_right_before_the_loop_waits_is_seen(void **state)
{
    (void)state;
    loop_rig l;
    loop_open(&l, keep);
    uv_prepare_init(&l.loop, &l.prepare);
    l.prepare.data = &l;
    uv_timer_init(&l.loop, &l.watchdog);
    l.watchdog.data = &l;
    uv_timer_start(&l.watchdog, too_late, 30000, 0);
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    assert_int_equal(mull_publish(l.engine, "t", &message, 0, NULL, NULL), 0);
    while (l.note.count == 0)
        uv_run(&l.loop, UV_RUN_ONCE);
    /* Started after the engine's, it runs before or behind it; either way nothing else comes. */
    uv_prepare_start(&l.prepare, end_now);
    mull_counts counts = MULL_INIT(mull_counts);
    while (counts.done == 0 && !l.late) {
        uv_run(&l.loop, UV_RUN_ONCE);
        mull_engine_counts(l.engine, &counts);
    }
    assert_int_equal(l.late, 0);
    uv_close((uv_handle_t *)&l.prepare, NULL);
    uv_close((uv_handle_t *)&l.watchdog, NULL);
    loop_close(&l);
}

static void a_tests_clock_is_turned_not_run(void **state)
{
    (void)state;
    test_engine r;
    test_engine_open(&r, "", "memory:", NULL);
    assert_int_equal(mull_engine_run(r.engine), MULL_ESTATE);
    test_engine_close(&r);
}

/* ---- Until empty ----------------------------------------------------------------------------- */

static void a_handler_that_was_cut_off_keeps_nobody_waiting(void **state)
{
    (void)state;
    test_engine r;
    note n = {0};
    int stopped = 0;
    r = (test_engine){.clock = {test_engine_now, test_engine_wall, &r}};
    r.policy = test_engine_policy("require('mulligan.policy').bus():default():discard()\n");
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = r.policy;
    options.clock = &r.clock;
    options.stopped = set_flag;
    options.data = &stopped;
    assert_int_equal(mull_engine_new(&r.engine, &options), 0);
    assert_int_equal(mull_engine_transport(r.engine, "t", "memory:"), 0);
    mull_consumer_options consumer = test_engine_consumer(keep, &n);
    consumer.timeout_ms = 1000;
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r.engine), 0);
    test_engine_publish(&r, "q", "a");
    test_engine_advance(&r, 0);
    mull_stop_when_empty(r.engine);
    test_engine_advance(&r, 10000);
    assert_int_equal(test_engine_counts(&r).discarded, 1);
    assert_int_equal(stopped, 1);
    assert_int_equal(mull_done(r.engine, n.call, &oops), MULL_EDONE);
    test_engine_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delay_without_end_never_comes),
        cmocka_unit_test(what_no_policy_puts_off_so_long_is_not_waited_for),
        cmocka_unit_test(as_many_handlers_as_there_are_numbers),
        cmocka_unit_test(a_header_has_one_value),
        cmocka_unit_test(what_lists_share_is_copied_within_bounds),
        cmocka_unit_test(what_cannot_be_put_off_is_refused_when_it_is_sent),
        cmocka_unit_test(an_answer_comes_on_a_later_turn),
        cmocka_unit_test(an_end_right_before_the_loop_waits_is_seen),
        cmocka_unit_test(a_tests_clock_is_turned_not_run),
        cmocka_unit_test(a_handler_that_was_cut_off_keeps_nobody_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
