/* slots.c: what an engine makes of what a transport answers from within a slot: it keeps the
 * answer, and takes it on its next turn. Answers that come later, twice or never: seam.c. */
#include "counting_allocator.h"
#include "seam_stage.h"

/* at_once is what the slots answer, `times` times each. */
static struct {
    int times, status;
    const char *why;
    int closes;                 /* `close` is answered so, too */
    counting_allocator *memory; /* has none for the copy of an answer */
    int settlements;            /* asked so far, */
    char queue[32];             /* and where to */
} at_once;

/* end_call has a message handled: well, or so that it becomes a dead letter in "rest". */
static void end_call(stage *s, int well)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "Other";
    scripted_begin_call(s);
    assert_int_equal(mull_done(s->engine, s->call, well ? NULL : &error), 0);
    s->call = 0;
}

/* ---- Slots that answer ----------------------------------------------------------------------- */

static void answer_at_once(scripted_transport *q, mull_ticket ticket)
{
    for (int i = 0; i < at_once.times; i++) {
        if (at_once.memory)
            at_once.memory->fail_at = at_once.memory->asked + 1;
        mull_port_answer(q->port, ticket, at_once.status, at_once.why);
    }
}

static int at_once_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    scripted_transport *q = self;
    int status = scripted_publish(self, outgoing, ticket);
    answer_at_once(q, ticket);
    return status;
}

static void at_once_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                           mull_ticket ticket)
{
    scripted_transport *q = self;
    scripted_settle(self, delivery, settlement, ticket);
    at_once.settlements++;
    snprintf(at_once.queue, sizeof at_once.queue, "%s", settlement->queue);
    answer_at_once(q, ticket);
    assert_int_equal(q->releases, 0);
}

static int at_once_depth(void *self, const char *queue, mull_ticket ticket)
{
    scripted_transport *q = self;
    int status = scripted_depth(self, queue, ticket);
    for (int i = 0; i < at_once.times; i++) {
        mull_depth depth = no_messages;
        mull_port_depth(q->port, ticket, at_once.status, &depth, at_once.why);
        depth.ready = 1; /* which was copied */
    }
    return status;
}

static void at_once_unsubscribe(void *self, void *subscription)
{
    scripted_transport *q = self;
    (void)subscription;
    mull_port_source(q->port, q->consumer, MULL_SOURCE_ENDED, NULL, NULL);
}

static void at_once_close(void *self, int64_t drain_ms)
{
    scripted_transport *q = self;
    scripted_close(self, drain_ms);
    if (at_once.closes)
        scripted_closed(q);
}

static mull_transport_ops at_once_ops(void)
{
    mull_transport_ops ops = scripted_ops;
    ops.publish = at_once_publish;
    ops.settle = at_once_settle;
    ops.depth = at_once_depth;
    ops.unsubscribe = at_once_unsubscribe;
    ops.close = at_once_close;
    return ops;
}

static void open_in(stage *s, int times, mull_allocator allocator)
{
    static mull_transport_ops ops; /* borrowed until the engine is closed */
    ops = at_once_ops();
    memset(&at_once, 0, sizeof at_once);
    at_once.times = times;
    scripted_stage_open_on(s, &ops, 1, NULL, allocator);
}

static void open_at_once(stage *s, int times)
{
    open_in(s, times, (mull_allocator){0});
}

/* close_at_once: all tickets were answered, and `close` answers itself. */
static void close_at_once(stage *s)
{
    at_once.closes = 1;
    mull_engine_close(s->engine, NULL, NULL);
    decide_fixture_close(&s->decide_fixture);
}

/* ---- Answers --------------------------------------------------------------------------------- */

static void a_slot_that_answers_is_heard_on_the_next_turn(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(publish(&s, &told), 0);
    assert_int_equal(told.count, 0);
    mull_engine_turn(s.engine); /* without mull_port_working */
    assert_int_equal(told.count, 1);
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), 0);
    assert_int_equal(told.count, 1);
    mull_engine_turn(s.engine);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.status, 0);
    end_call(&s, 1);
    mull_engine_turn(s.engine);
    assert_int_equal(q->releases, 1);
    assert_int_equal(counts_of(&s).done, 1);
    assert_int_equal(s.now_ms, 1);
    mull_port_answer(q->port, q->settling, 0, NULL); /* and later */
    assert_misused(&s);
    mull_port_answer(q->port, q->publishing, 0, NULL);
    assert_misused(&s);
    mull_port_depth(q->port, q->asking, 0, &no_messages, NULL);
    assert_misused(&s);
    assert_int_equal(told.count, 2);
    close_at_once(&s);
}

static void a_slot_answers_once(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 2);
    assert_int_equal(publish(&s, &told), 0);
    assert_misused(&s);
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), 0);
    assert_misused(&s);
    mull_engine_turn(s.engine);
    assert_int_equal(told.count, 2);
    end_call(&s, 1);
    mull_engine_turn(s.engine);
    assert_misused(&s);
    assert_int_equal(s.scripted_transport.releases, 1);
    close_at_once(&s);
}

static void what_a_slot_answered_waits_for_its_turn(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(publish(&s, &told), 0);
    mull_port_answer(q->port, q->publishing, 0, NULL); /* once more before it is taken */
    assert_misused(&s);
    assert_int_equal(told.count, 0);
    mull_engine_turn(s.engine);
    assert_int_equal(told.count, 1);
    close_at_once(&s);
}

static void an_error_from_a_slot_keeps_its_reason(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    char why[] = "no route";
    open_at_once(&s, 1);
    at_once.status = MULL_EIO;
    at_once.why = why;
    assert_int_equal(publish(&s, &told), 0);
    memset(why, 'x', sizeof why - 1);
    mull_engine_turn(s.engine);
    assert_int_equal(told.status, MULL_EIO);
    assert_string_equal(s.said, "transport t: a message isn't published: no route");
    end_call(&s, 1);
    mull_engine_turn(s.engine);
    assert_said(&s, "message m isn't settled (xxxxxxxx); trying again");
    advance(&s, 99);
    assert_int_equal(at_once.settlements, 1);
    at_once.status = 0;
    advance(&s, 1);
    assert_int_equal(at_once.settlements, 2);
    assert_int_equal(s.scripted_transport.releases, 1);
    close_at_once(&s);
}

static void what_a_slot_refuses_is_settled_elsewhere(void **state)
{
    (void)state;
    stage s;
    open_at_once(&s, 1);
    at_once.status = MULL_EREFUSED;
    end_call(&s, 0);
    mull_engine_turn(s.engine);
    assert_int_equal(at_once.settlements, 2);
    assert_string_equal(at_once.queue, "error");
    assert_said(&s, "message m is parked");
    close_at_once(&s);
}

static void without_memory_an_answer_has_no_reason(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    counting_allocator memory = {0};
    open_in(&s, 1, counting_allocator_ops(&memory));
    at_once.memory = &memory;
    at_once.status = MULL_EREFUSED;
    at_once.why = "too big";
    assert_int_equal(publish(&s, &told), 0);
    int lines = s.lines;
    mull_engine_turn(s.engine);
    assert_int_equal(told.status, MULL_EREFUSED);
    assert_int_equal(s.lines, lines);
    close_at_once(&s);
    assert_int_equal(memory.out, 0);
}

/* ---- What comes in between ------------------------------------------------------------------- */

static mull_port *lost_on;
static mull_ticket lost;

static void lose(void *data)
{
    (void)data;
    mull_port_lost(lost_on, lost, "gone");
}

/* lose_settle answers, and before that is taken the claim is gone. */
static void lose_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                        mull_ticket ticket)
{
    scripted_transport *q = self;
    at_once_settle(self, delivery, settlement, ticket);
    lost_on = q->port;
    lost = delivery->ticket;
    scripted_later(q, lose, NULL);
}

static void what_is_lost_before_its_answer_is_taken_is_released_once(void **state)
{
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        stage s;
        mull_transport_ops ops = at_once_ops();
        ops.settle = lose_settle;
        memset(&at_once, 0, sizeof at_once);
        at_once.times = 1;
        at_once.status = fails ? MULL_EIO : 0;
        scripted_stage_open_on(&s, &ops, 1, NULL, (mull_allocator){0});
        end_call(&s, 1);
        advance(&s, MINUTE_MS);
        assert_int_equal(s.scripted_transport.releases, 1);
        assert_int_equal(at_once.settlements, 1);
        assert_int_equal(counts_of(&s).done, !fails);
        close_at_once(&s);
    }
}

static void a_stop_takes_what_slots_answered(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 1);
    scripted_transport *q = &s.scripted_transport;
    end_call(&s, 1);
    assert_int_equal(publish(&s, &told), 0);
    mull_stop(s.engine);
    mull_engine_turn(s.engine);
    assert_string_equal(s.said, "stopped");
    assert_int_equal(told.count, 1);
    assert_int_equal(q->releases, 1);
    close_at_once(&s);
}

/* What a slot answered is told before its engine is gone, and in it a `close` that answers. */
static void a_close_takes_what_slots_answered(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(publish(&s, &told), 0);
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), 0);
    scripted_deliver(q);
    close_at_once(&s);
    assert_int_equal(told.count, 2);
    assert_int_equal(told.status, 0);
    assert_int_equal(q->releases, 1); /* given back */
}

/* What is left when `close` answers went with the transport. */
static void a_close_that_answers_releases_nothing_after(void **state)
{
    (void)state;
    stage s;
    open_at_once(&s, 1);
    at_once.status = MULL_EREFUSED;
    end_call(&s, 0);
    mull_engine_turn(s.engine);
    assert_said(&s, "message m is parked");
    close_at_once(&s);
    assert_int_equal(s.scripted_transport.releases, 0);
}

static void a_subscription_ends_within_its_slot(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_at_once(&s, 1);
    assert_int_equal(mull_consumer_remove(s.engine, "C", on_published, &told), 0);
    assert_int_equal(told.count, 0);
    mull_engine_turn(s.engine);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.status, 0);
    assert_string_equal(s.said, "consumer 'C' is removed");
    close_at_once(&s);
}

/* ---- Without depths -------------------------------------------------------------------------- */

static void depth_may_be_missing(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    mull_transport_ops ops = scripted_ops;
    ops.depth = NULL; /* whatever `look` says */
    scripted_stage_open_on(&s, &ops, 1, NULL, (mull_allocator){0});
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), MULL_EREFUSED);
    mull_stop_when_empty(s.engine);
    advance(&s, MINUTE_MS);
    assert_string_equal(s.said, "stopped");
    assert_int_equal(told.count, 0);
    scripted_stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slot_that_answers_is_heard_on_the_next_turn),
        cmocka_unit_test(a_slot_answers_once),
        cmocka_unit_test(what_a_slot_answered_waits_for_its_turn),
        cmocka_unit_test(an_error_from_a_slot_keeps_its_reason),
        cmocka_unit_test(what_a_slot_refuses_is_settled_elsewhere),
        cmocka_unit_test(without_memory_an_answer_has_no_reason),
        cmocka_unit_test(what_is_lost_before_its_answer_is_taken_is_released_once),
        cmocka_unit_test(a_stop_takes_what_slots_answered),
        cmocka_unit_test(a_close_takes_what_slots_answered),
        cmocka_unit_test(a_close_that_answers_releases_nothing_after),
        cmocka_unit_test(a_subscription_ends_within_its_slot),
        cmocka_unit_test(depth_may_be_missing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
