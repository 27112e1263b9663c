/* misuse_transport.c: what a transport does that it may not: the log says so, and nothing else
 * comes of it: no message is lost by it, and none is settled twice. */
#include "scripted_transport.h"

/* assert_told, and forgets it. */
static void assert_told(stage *s, const char *what)
{
    char wanted[sizeof s->said];
    snprintf(wanted, sizeof wanted, "transport t: %s", what);
    assert_string_equal(s->said, wanted);
    s->said[0] = '\0';
}

static void settle_well(stage *s)
{
    scripted_begin_call(s);
    assert_int_equal(mull_done(s->engine, s->call, NULL), 0);
    mull_engine_turn(s->engine);
    assert_true(s->scripted_transport.settling);
    s->scripted_transport.settling = 0;
    mull_port_settled(s->scripted_transport.port, &s->scripted_transport.delivery, 0);
    mull_engine_turn(s->engine);
    assert_string_equal(s->said, "");
    assert_int_equal(s->scripted_transport.releases, 1);
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(s->engine, &counts), 0);
    assert_int_equal(counts.done, 1);
}

static void a_delivery_that_is_not_new_is_let_be(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    scripted_begin_call(&s);
    mull_call call = s.call;
    mull_port_delivered(s.scripted_transport.port, &s.scripted_transport.delivery);
    assert_told(&s, "it delivered a message that isn't new");
    mull_engine_turn(s.engine);
    assert_int_equal(s.call, call);
    settle_well(&s);
    scripted_stage_close(&s);
}

static void a_delivery_of_somebody_elses_is_let_be(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    assert_int_equal(mull_engine_transport(s.engine, "u", "memory:"), 0);
    mull_subscription *own = s.scripted_transport.delivery.subscription;
    s.scripted_transport.delivery.subscription = NULL;
    mull_port_delivered(s.scripted_transport.port, &s.scripted_transport.delivery);
    assert_told(&s, "it delivered a message that belongs to none of its subscriptions");
    stage t;
    scripted_stage_open(&t);
    s.scripted_transport.delivery.subscription = t.scripted_transport.subscription;
    mull_port_delivered(s.scripted_transport.port, &s.scripted_transport.delivery);
    assert_told(&s, "it delivered a message that belongs to none of its subscriptions");
    scripted_stage_close(&t);
    s.scripted_transport.delivery.subscription = own;
    settle_well(&s);
    scripted_stage_close(&s);
}

static void a_settlement_that_nobody_asked_for_is_let_be(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    mull_port_settled(s.scripted_transport.port, &s.scripted_transport.delivery, 0);
    assert_told(&s, "it settled a message that it wasn't asked to settle");
    scripted_begin_call(&s);
    mull_port_settled(s.scripted_transport.port, &s.scripted_transport.delivery, 0);
    assert_told(&s, "it settled a message that it wasn't asked to settle");
    mull_port_settled(s.scripted_transport.port, &s.scripted_transport.delivery, MULL_ELOST);
    assert_told(&s, "it settled a message that it wasn't asked to settle");
    assert_int_equal(s.scripted_transport.releases, 0);
    settle_well(&s);
    scripted_stage_close(&s);
}

static void only_what_was_delivered_can_be_lost(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    mull_port_lost(s.scripted_transport.port, &s.scripted_transport.delivery);
    assert_told(&s, "it lost a message that it never delivered");
    settle_well(&s);
    scripted_stage_close(&s);
}

static void what_was_released_is_over(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    settle_well(&s);
    s.call = 0;
    mull_port_settled(s.scripted_transport.port, &s.scripted_transport.delivery, 0);
    assert_told(&s, "it settled a message that it wasn't asked to settle");
    mull_port_lost(s.scripted_transport.port, &s.scripted_transport.delivery);
    assert_told(&s, "it lost a message that it never delivered");
    assert_int_equal(s.scripted_transport.releases, 1);
    scripted_stage_close(&s);
}

/* One for which there was no memory when it was delivered is the engine's all the same. */
static void nor_is_one_that_waits_for_memory_new(void **state)
{
    (void)state;
    static const mull_header headers[] = {{"a", "1"}, {"b", "2"}, {"c", "3"}};
    counting_allocator p = {0};
    stage s;
    scripted_stage_open_with(&s, counting_allocator_ops(&p));
    s.scripted_transport.delivery.message.headers =
        headers; /* three: taken for a flow, it would be settling */
    s.scripted_transport.delivery.message.header_count = 3;
    p.fail_at = p.asked + 1;
    mull_port_delivered(s.scripted_transport.port, &s.scripted_transport.delivery);
    mull_delivery second = s.scripted_transport.delivery;
    p.fail_at = p.asked + 1;
    mull_port_delivered(s.scripted_transport.port, &second);
    assert_string_equal(s.said, "");
    mull_delivery *both[] = {&s.scripted_transport.delivery, &second};
    for (size_t i = 0; i < 2; i++) {
        mull_port_delivered(s.scripted_transport.port, both[i]);
        assert_told(&s, "it delivered a message that isn't new");
        mull_port_settled(s.scripted_transport.port, both[i], 0);
        assert_told(&s, "it settled a message that it wasn't asked to settle");
    }
    mull_port_lost(s.scripted_transport.port, &second);
    assert_int_equal(s.scripted_transport.releases, 1);
    mull_port_lost(s.scripted_transport.port, &second);
    assert_told(&s, "it lost a message that it never delivered");
    s.scripted_transport.releases = 0;
    s.now_ms += 100;
    mull_engine_turn(s.engine);
    assert_true(s.call != 0);
    settle_well(&s);
    scripted_stage_close(&s);
    assert_int_equal(p.out, 0);
}

/* deliver_late delivers when its transport was told to close, and then closes it. */
static void deliver_late(void *data)
{
    stage *s = data;
    if (!s->scripted_transport.closes) {
        assert_non_null(mull_port_after(s->scripted_transport.port, 0, deliver_late, s));
        return;
    }
    mull_port_delivered(s->scripted_transport.port, &s->scripted_transport.delivery);
    assert_told(s, "it delivered a message after it was told to close");
    assert_int_equal(s->scripted_transport.settling, 0);
    mull_port_closed(s->scripted_transport.port);
}

static void nothing_is_taken_from_one_that_closes(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    assert_non_null(mull_port_after(s.scripted_transport.port, 0, deliver_late, &s));
    mull_engine_close(s.engine, NULL, NULL);
    assert_int_equal(s.scripted_transport.closes, 1);
    assert_int_equal(s.scripted_transport.releases, 0);
    decide_fixture_close(&s.decide_fixture);
}

static void healths_that_are_none_are_let_be(void **state)
{
    (void)state;
    static const mull_health none[] = {(mull_health)(MULL_BROKEN + 1), (mull_health)-1,
                                       (mull_health)1000};
    stage s;
    scripted_stage_open(&s);
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        mull_port_state(s.scripted_transport.port, none[i], "why");
        assert_told(&s, "its health is none that is known");
    }
    settle_well(&s);
    assert_int_equal(mull_engine_status(s.engine), 0);
    scripted_stage_close(&s);
}

static void a_depth_that_is_missing_is_an_error(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    mull_stop_when_empty(s.engine); /* asks for it by itself */
    mull_engine_turn(s.engine);
    assert_non_null(s.scripted_transport.asking);
    void *ticket = s.scripted_transport.asking;
    s.scripted_transport.asking = NULL;
    mull_port_depth(s.scripted_transport.port, ticket, 0, NULL);
    mull_engine_turn(s.engine);
    assert_string_equal(s.said, "transport t can't say how many messages are in the queue q: an "
                                "argument is missing or out of range; it is asked again");
    s.said[0] = '\0';
    settle_well(&s); /* it hasn't stopped */
    scripted_stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_delivery_that_is_not_new_is_let_be),
        cmocka_unit_test(a_delivery_of_somebody_elses_is_let_be),
        cmocka_unit_test(a_settlement_that_nobody_asked_for_is_let_be),
        cmocka_unit_test(only_what_was_delivered_can_be_lost),
        cmocka_unit_test(what_was_released_is_over),
        cmocka_unit_test(nor_is_one_that_waits_for_memory_new),
        cmocka_unit_test(nothing_is_taken_from_one_that_closes),
        cmocka_unit_test(healths_that_are_none_are_let_be),
        cmocka_unit_test(a_depth_that_is_missing_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
