/* until_empty.c: an engine that is to stop once its queues are empty, on a transport that can't say
 * whether they are; and what an engine needs to start. */
#include "scripted_transport.h"

enum { MINUTE_MS = 60000 };

typedef struct wait {
    stage stage;
    mull_transport_ops ops;
    char problem[256];
    int asked;
} wait;

static mull_ticket subscribed[3];
static size_t subscriptions;

static int keep_consumer(void *self, mull_ticket consumer, const mull_source *source,
                         void **subscription)
{
    subscribed[subscriptions++] = consumer;
    return scripted_subscribe(self, consumer, source, subscription);
}

static void end_later(void *self, void *subscription)
{
    (void)self;
    (void)subscription;
}

static int refuse_depth(void *self, const char *queue, mull_ticket ticket)
{
    (void)self;
    (void)queue;
    (void)ticket;
    return MULL_EIO;
}

static void keep_problem(const char *file, int line, const char *text, void *data)
{
    wait *w = data; /* it begins with the stage */
    assert_null(file);
    assert_int_equal(line, 0);
    snprintf(w->problem, sizeof w->problem, "%s", text);
}

/* open_wait waits for empty queues by the answers of `depth`. */
static void open_wait(wait *w, int (*depth)(void *self, const char *queue, mull_ticket ticket))
{
    *w = (wait){.stage = {.now_ms = 1}, .ops = scripted_ops};
    stage *s = &w->stage;
    w->ops.depth = depth;
    w->ops.subscribe = keep_consumer;
    w->ops.unsubscribe = end_later;
    subscriptions = 0;
    scripted_make_message(&s->scripted_transport);
    decide_fixture_open(&s->decide_fixture);
    mull_engine_options options = scripted_engine_options(s);
    options.problem = keep_problem;
    assert_int_equal(mull_engine_new(&s->engine, &options), 0);
    assert_int_equal(mull_engine_scheme(s->engine, &w->ops, &s->scripted_transport), 0);
    assert_int_equal(mull_engine_transport(s->engine, "t", "scripted:"), 0);
    const mull_consumer_options consumer = test_engine_consumer(scripted_keep_call, s);
    assert_int_equal(mull_consumer_add(s->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(s->engine), 0);
    assert_int_equal(mull_stop_when_empty(s->engine), 0);
}

/* pass_with lets time go by, in which each question for a depth is answered so. */
static void pass_with(wait *w, int64_t ms, int status, const mull_depth *depth)
{
    stage *s = &w->stage;
    for (int64_t end_ms = s->now_ms + ms; s->now_ms < end_ms; s->now_ms += 10) {
        mull_engine_turn(s->engine);
        mull_ticket ticket = s->scripted_transport.asking;
        s->scripted_transport.asking = 0;
        if (!ticket)
            continue;
        w->asked++;
        mull_port_depth(s->scripted_transport.port, ticket, status, depth, NULL);
    }
    mull_engine_turn(s->engine);
}

static void pass(wait *w, int64_t ms, int status)
{
    const mull_depth some = {.claimed = 1, .next_due_ms = INT64_MAX};
    pass_with(w, ms, status, &some);
}

static const char given_up[] =
    "transport 't': for 60 s it could not say how many messages are in the queue 'q': "
    "the transport could not carry it out";

static void a_minute_of_errors_ends_it(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    pass(&w, MINUTE_MS - 1000, MULL_EIO);
    assert_in_range(w.asked, 10, 30);
    assert_int_equal(mull_engine_status(w.stage.engine), 0);
    assert_string_equal(w.problem, "");
    pass(&w, 1100, MULL_EIO);
    assert_int_equal(mull_engine_status(w.stage.engine), MULL_EIO);
    assert_string_equal(w.problem, given_up);
    assert_string_equal(w.stage.said, "stopped");
    scripted_stage_close(&w.stage);
}

static void one_that_refuses_to_answer_does_as_well(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, refuse_depth);
    pass(&w, MINUTE_MS - 1000, 0);
    assert_int_equal(mull_engine_status(w.stage.engine), 0);
    pass(&w, 1100, 0);
    assert_int_equal(mull_engine_status(w.stage.engine), MULL_EIO);
    assert_string_equal(w.problem, given_up);
    scripted_stage_close(&w.stage);
}

static void an_answer_between_them_begins_the_minute_anew(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    for (int i = 0; i < 10; i++) {
        pass(&w, MINUTE_MS - 5000, MULL_EIO);
        pass(&w, 5100, 0);
        assert_int_equal(mull_engine_status(w.stage.engine), 0);
    }
    scripted_stage_close(&w.stage);
}

static void one_that_is_down_is_waited_out(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    mull_port_state(w.stage.scripted_transport.port, MULL_DOWN, "no network");
    pass(&w, 10 * MINUTE_MS, MULL_EIO);
    assert_int_equal(mull_engine_status(w.stage.engine), 0);
    assert_non_null(strstr(w.stage.said, "is down"));
    mull_port_state(w.stage.scripted_transport.port, MULL_UP, NULL);
    pass(&w, MINUTE_MS - 6000, MULL_EIO);
    assert_non_null(strstr(w.stage.said, "can't say how many messages are in the queue"));
    assert_int_equal(mull_engine_status(w.stage.engine), 0);
    pass(&w, 7000, MULL_EIO);
    assert_int_equal(mull_engine_status(w.stage.engine), MULL_EIO);
    scripted_stage_close(&w.stage);
}

/* ---- A refused queue ------------------------------------------------------------------------- */

/* A new subscription may be granted what the old one was refused. */
static void a_refused_queue_is_waited_for_while_it_is_subscribed_anew(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    stage *s = &w.stage;
    mull_port *port = s->scripted_transport.port;
    const mull_depth none = {.next_due_ms = INT64_MAX};
    mull_port_source(port, subscribed[0], MULL_SOURCE_REFUSED, NULL, "no such queue");
    assert_int_equal(mull_consumer_concurrency(s->engine, "C", 100), 0);
    pass_with(&w, MINUTE_MS / 2, 0, &none);
    assert_int_equal(mull_engine_status(s->engine), 0);
    assert_null(strstr(s->said, "stopped"));
    mull_port_source(port, subscribed[0], MULL_SOURCE_ENDED, NULL, NULL);
    mull_engine_turn(s->engine);
    assert_int_equal(subscriptions, 2);
    mull_port_source(port, subscribed[1], MULL_SOURCE_READY, NULL, NULL);
    pass_with(&w, MINUTE_MS, 0, &none);
    assert_int_equal(mull_engine_status(s->engine), 0);
    assert_string_equal(s->said, "stopped");
    scripted_stage_close(s);
}

/* ---- What is parked ------------------------------------------------------------------------- */

static void add_consumer(stage *s, const char *name)
{
    mull_consumer_options consumer = test_engine_consumer(scripted_keep_call, s);
    consumer.name = name;
    assert_int_equal(mull_consumer_add(s->engine, &consumer), 0);
}

/* park has the message of the only consumer parked. */
static void park(stage *s)
{
    static const mull_error oops = {.size = sizeof oops, .type = "Oops"};
    scripted_begin_call(s);
    assert_int_equal(mull_done(s->engine, s->call, &oops), 0);
    s->call = 0;
    while (mull_engine_turn(s->engine), s->scripted_transport.settling)
        scripted_settled(&s->scripted_transport, MULL_EREFUSED, "no such queue");
    assert_non_null(strstr(s->said, "message m is parked"));
}

static const mull_depth two_claimed = {.claimed = 2, .next_due_ms = INT64_MAX};

/* remove_first removes "C", which lets go of what it parked. */
static void remove_first(wait *w)
{
    stage *s = &w->stage;
    pass_with(w, 10, 0, &two_claimed); /* an open question would name its consumer */
    assert_int_equal(mull_consumer_remove(s->engine, "C", NULL, NULL), 0);
    mull_engine_turn(s->engine);
    mull_port_source(s->scripted_transport.port, subscribed[0], MULL_SOURCE_ENDED, NULL, NULL);
    mull_engine_turn(s->engine);
    assert_string_equal(s->said, "consumer 'C' is removed");
}

static const char one_parked[] = "1 message(s) are parked, since their transport never settles "
                                 "them; the log says why";

static void assert_stopped_short(wait *w, const char *problem)
{
    assert_int_equal(mull_engine_status(w->stage.engine), MULL_EREFUSED);
    assert_string_equal(w->problem, problem);
    scripted_stage_close(&w->stage);
}

static void what_a_removed_consumer_parked_is_not_waited_for(void **state)
{
    (void)state;
    for (int another_before = 0; another_before < 2; another_before++) {
        wait w;
        open_wait(&w, scripted_depth);
        stage *s = &w.stage;
        park(s);
        if (another_before)
            add_consumer(s, "D");
        remove_first(&w);
        if (!another_before)
            add_consumer(s, "D");
        pass_with(&w, MINUTE_MS, 0, &two_claimed);
        assert_int_equal(mull_engine_status(s->engine), 0);
        pass(&w, MINUTE_MS, 0);
        assert_stopped_short(&w, one_parked);
    }
}

static void nor_is_what_was_parked_before_a_new_subscription(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    stage *s = &w.stage;
    park(s);
    assert_int_equal(mull_consumer_concurrency(s->engine, "C", 100), 0);
    mull_engine_turn(s->engine);
    mull_port_source(s->scripted_transport.port, subscribed[0], MULL_SOURCE_ENDED, NULL, NULL);
    mull_engine_turn(s->engine);
    assert_int_equal(subscriptions, 2);
    pass(&w, MINUTE_MS, 0);
    assert_stopped_short(&w, one_parked);
}

static void what_is_claimed_beside_it_no_more_is_forgotten(void **state)
{
    (void)state;
    wait w;
    open_wait(&w, scripted_depth);
    stage *s = &w.stage;
    park(s);
    add_consumer(s, "D");
    remove_first(&w);
    const mull_depth none = {.next_due_ms = INT64_MAX};
    pass_with(&w, MINUTE_MS, 0, &none);
    assert_int_equal(mull_engine_status(s->engine), 0);
    assert_string_equal(w.problem, "");
    assert_string_equal(s->said, "stopped");
    scripted_stage_close(s);
}

/* ---- Starts ---------------------------------------------------------------------------------- */

static void without_a_transport_it_does_not_start(void **state)
{
    (void)state;
    wait w = {.stage = {.now_ms = 1}};
    stage *s = &w.stage;
    decide_fixture_open(&s->decide_fixture);
    mull_engine_options options = scripted_engine_options(s);
    options.problem = keep_problem;
    assert_int_equal(mull_engine_new(&s->engine, &options), 0);
    assert_int_equal(mull_engine_start(s->engine), MULL_EINVAL);
    assert_string_equal(w.problem, "the engine has no transport, so it can neither take nor send "
                                   "messages; add one before the start, and a consumer for each "
                                   "queue that it is to read");
    assert_int_equal(mull_engine_transport(s->engine, "t", "memory:"), 0);
    assert_int_equal(mull_engine_start(s->engine), 0);
    assert_string_equal(s->said, "there is no consumer, so no messages are taken");
    mull_engine_close(s->engine, NULL, NULL);
    decide_fixture_close(&s->decide_fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_of_errors_ends_it),
        cmocka_unit_test(one_that_refuses_to_answer_does_as_well),
        cmocka_unit_test(an_answer_between_them_begins_the_minute_anew),
        cmocka_unit_test(one_that_is_down_is_waited_out),
        cmocka_unit_test(a_refused_queue_is_waited_for_while_it_is_subscribed_anew),
        cmocka_unit_test(what_a_removed_consumer_parked_is_not_waited_for),
        cmocka_unit_test(nor_is_what_was_parked_before_a_new_subscription),
        cmocka_unit_test(what_is_claimed_beside_it_no_more_is_forgotten),
        cmocka_unit_test(without_a_transport_it_does_not_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
