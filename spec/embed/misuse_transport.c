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
    scripted_settled(&s->scripted_transport, 0, NULL);
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
    mull_port_delivered(s.scripted_transport.port, s.scripted_transport.consumer,
                        &s.scripted_transport.delivery);
    assert_told(&s, "it delivered a message that isn't new");
    mull_engine_turn(s.engine);
    assert_int_equal(s.call, call);
    settle_well(&s);
    scripted_stage_close(&s);
}

/* deliver_as hands a message out for a consumer that isn't this transport's. */
static void deliver_as(stage *s, scripted_transport *q, mull_ticket consumer)
{
    q->delivery = (mull_delivery){.size = sizeof q->delivery, .message = &q->message};
    mull_port_delivered(q->port, consumer, &q->delivery);
    assert_non_null(strstr(s->said, "it delivered a message that belongs to none of its "));
    assert_null(q->delivery.runtime);
    s->said[0] = '\0';
}

static void a_delivery_of_somebody_elses_is_let_be(void **state)
{
    (void)state;
    scripted_transport other = {0};
    mull_transport_ops ops = scripted_ops;
    ops.scheme = "other";
    stage s;
    scripted_stage_open(&s);
    assert_int_equal(mull_engine_scheme(s.engine, &ops, &other), 0);
    assert_int_equal(mull_engine_transport(s.engine, "u", "other:"), 0);
    scripted_make_message(&other);
    deliver_as(&s, &s.scripted_transport, 0);
    deliver_as(&s, &s.scripted_transport, s.scripted_transport.consumer + 1000);
    deliver_as(&s, &other, s.scripted_transport.consumer);
    settle_well(&s);
    scripted_later(&other, scripted_answer, &other);
    scripted_stage_close(&s);
}

static void a_delivery_without_its_size_is_let_be(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    scripted_transport *q = &s.scripted_transport;
    for (int i = 0; i < 3; i++) {
        q->delivery = (mull_delivery){.size = sizeof q->delivery, .message = &q->message};
        if (i < 2)
            q->delivery.size = i == 0 ? offsetof(mull_delivery, unreadable) - 1 : 0;
        q->message.size = i == 2 ? 0 : sizeof q->message;
        mull_port_delivered(q->port, q->consumer, &q->delivery);
        assert_told(&s, "it delivered a message whose `size`, or that of its delivery, isn't set");
    }
    q->message.size = sizeof q->message;
    settle_well(&s);
    scripted_stage_close(&s);
}

/* Each lies at the end of a block of its own, as in misuse_sizes.c. */
static void what_was_found_is_read_by_its_size(void **state)
{
    (void)state;
    enum { MORE = 64 };
    const size_t size = sizeof(mull_abilities), sizes[] = {0, size - 1, size, size + MORE};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        stage s;
        scripted_stage_open(&s);
        scripted_transport *q = &s.scripted_transport;
        mull_abilities promised = MULL_INIT(mull_abilities);
        assert_int_equal(scripted_look("scripted:", "q", &promised, NULL, 0), 0);
        promised.size = sizes[i];
        size_t bytes = sizes[i] > sizeof promised.size ? sizes[i] : sizeof promised.size;
        mull_abilities *found = malloc(bytes);
        assert_non_null(found);
        memset(found, 0x5a, bytes);
        memcpy(found, &promised, bytes < size ? bytes : size);
        mull_port_source(q->port, q->consumer, MULL_SOURCE_READY, found, NULL);
        if (sizes[i] < size)
            assert_told(&s, "it says what holds for a queue without its `size`");
        free(found);
        settle_well(&s);
        scripted_stage_close(&s);
    }
}

static void an_answer_that_nobody_asked_for_is_let_be(void **state)
{
    (void)state;
    static const mull_depth none = {.next_due_ms = INT64_MAX};
    stage s;
    scripted_stage_open(&s);
    scripted_transport *q = &s.scripted_transport;
    scripted_begin_call(&s);
    const mull_ticket wrong[] = {0, q->consumer, q->delivery.ticket, q->delivery.ticket + 1000,
                                 UINT64_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mull_port_answer(q->port, wrong[i], 0, NULL);
        assert_told(&s, "it answered what it wasn't asked");
        mull_port_answer(q->port, wrong[i], MULL_ELOST, "gone");
        assert_told(&s, "it answered what it wasn't asked");
        mull_port_depth(q->port, wrong[i], 0, &none, NULL);
        assert_told(&s, "it answered what it wasn't asked");
    }
    assert_int_equal(q->releases, 0);
    settle_well(&s);
    scripted_stage_close(&s);
}

static void only_what_was_delivered_can_be_lost(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    const mull_ticket wrong[] = {0, s.scripted_transport.consumer, 1000};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mull_port_lost(s.scripted_transport.port, wrong[i], NULL);
        assert_told(&s, "it lost a message that it never delivered");
    }
    settle_well(&s);
    scripted_stage_close(&s);
}

static void what_was_released_is_over(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    scripted_transport *q = &s.scripted_transport;
    settle_well(&s);
    s.call = 0;
    mull_port_lost(q->port, q->delivery.ticket, NULL);
    assert_told(&s, "it lost a message that it never delivered");
    assert_int_equal(q->releases, 1);
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
    scripted_transport *q = &s.scripted_transport;
    q->message.headers = headers; /* three: taken for a flow, it would be settling */
    q->message.header_count = 3;
    p.fail_at = p.asked + 1;
    scripted_deliver(q);
    mull_delivery second = {.size = sizeof second, .message = &q->message};
    mull_port_delivered(q->port, q->consumer, &second); /* behind the first */
    assert_string_equal(s.said, "");
    mull_delivery *both[] = {&q->delivery, &second};
    for (size_t i = 0; i < 2; i++) {
        mull_port_delivered(q->port, q->consumer, both[i]);
        assert_told(&s, "it delivered a message that isn't new");
        mull_port_answer(q->port, both[i]->ticket, 0, NULL);
        assert_told(&s, "it answered what it wasn't asked");
    }
    mull_port_lost(q->port, second.ticket, NULL);
    assert_int_equal(q->releases, 1);
    mull_port_lost(q->port, second.ticket, NULL);
    assert_told(&s, "it lost a message that it never delivered");
    q->releases = 0;
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
    scripted_transport *q = &s->scripted_transport;
    if (!q->closes) {
        scripted_later(q, deliver_late, s);
        return;
    }
    scripted_deliver(q);
    assert_told(s, "it delivered a message after it was told to close");
    assert_int_equal(q->settling, 0);
    assert_int_equal(q->closes, 1);
    scripted_closed(q);
}

static void nothing_is_taken_from_one_that_closes(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    scripted_later(&s.scripted_transport, deliver_late, &s);
    mull_engine_close(s.engine, NULL, NULL);
    assert_int_equal(s.scripted_transport.closes, 0);
    assert_int_equal(s.scripted_transport.releases, 0);
    decide_fixture_close(&s.decide_fixture);
}

static void only_its_own_subscriptions_have_a_state(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    scripted_transport *q = &s.scripted_transport;
    scripted_begin_call(&s);
    const mull_ticket wrong[] = {0, q->delivery.ticket, 1000};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        mull_port_source(q->port, wrong[i], MULL_SOURCE_REFUSED, NULL, "why");
        assert_told(&s, "it speaks of a subscription that isn't one of its own");
    }
    mull_port_source(q->port, q->consumer, MULL_SOURCE_ENDED, NULL, NULL);
    assert_told(&s, "it ended a subscription without being asked to");
    settle_well(&s);
    scripted_stage_close(&s);
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
    mull_ticket ticket = s.scripted_transport.asking;
    assert_true(ticket != 0);
    s.scripted_transport.asking = 0;
    mull_port_depth(s.scripted_transport.port, ticket, 0, NULL, NULL);
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
        cmocka_unit_test(a_delivery_without_its_size_is_let_be),
        cmocka_unit_test(what_was_found_is_read_by_its_size),
        cmocka_unit_test(an_answer_that_nobody_asked_for_is_let_be),
        cmocka_unit_test(only_what_was_delivered_can_be_lost),
        cmocka_unit_test(what_was_released_is_over),
        cmocka_unit_test(nor_is_one_that_waits_for_memory_new),
        cmocka_unit_test(nothing_is_taken_from_one_that_closes),
        cmocka_unit_test(only_its_own_subscriptions_have_a_state),
        cmocka_unit_test(healths_that_are_none_are_let_be),
        cmocka_unit_test(a_depth_that_is_missing_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
