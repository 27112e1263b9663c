/* own_answers.c: what a transport of the program's own may say of a message, and of its queues:
 * that a body is lost, and that all depths which are asked for in one turn are of one moment. */
#include "scripted_transport.h"

/* ---- A body is lost -------------------------------------------------------------------------- */

/* told is the last settlement, and what was heard of it. */
static struct {
    mull_settle_kind kind;
    char queue[32], error_type[64], reason[32], message[128];
    size_t body_size;
    int events;
} told;

static void settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                   mull_ticket ticket)
{
    scripted_settle(self, delivery, settlement, ticket);
    told.kind = settlement->kind;
    snprintf(told.queue, sizeof told.queue, "%s", settlement->queue);
    if (settlement->kind == MULL_SETTLE_DEAD_LETTER) {
        snprintf(told.error_type, sizeof told.error_type, "%s", settlement->error_type);
        snprintf(told.reason, sizeof told.reason, "%s", settlement->reason);
    }
    for (size_t i = 0; i < settlement->our_count; i++)
        if (strcmp(settlement->ours[i].name, "mulligan-error-message") == 0)
            snprintf(told.message, sizeof told.message, "%s", settlement->ours[i].value);
}

/* look_counting: what is handed out once more had an owner that died. */
static int look_counting(const char *url, const char *queue, mull_abilities *floor, char *why,
                         size_t why_size)
{
    floor->deliveries = MULL_COUNTS_DEATHS;
    return scripted_look(url, queue, floor, why, why_size);
}

static void on_event(const mull_event *event, void *data)
{
    (void)data;
    if (event->kind != MULL_EVENT_DECIDED)
        return;
    told.events++;
    told.body_size = event->failure->message->body_size;
}

static void open_with(stage *s, const mull_transport_ops *ops, size_t consumers)
{
    scripted_stage_open_on(s, ops, consumers, on_event, (mull_allocator){0});
}

/* lose_body delivers a message whose body is lost. */
static void lose_body(mull_header *headers, size_t count, int64_t deliveries)
{
    mull_transport_ops ops = scripted_ops;
    ops.look = look_counting;
    ops.settle = settle;
    memset(&told, 0, sizeof told);
    stage s;
    open_with(&s, &ops, 1);
    mull_message *message = &s.scripted_transport.message;
    message->body_size = MULL_BODY_MISSING;
    message->headers = headers;
    message->header_count = count;
    message->deliveries = deliveries;
    scripted_deliver(&s.scripted_transport);
    mull_engine_turn(s.engine);
    assert_int_equal(s.call, 0);
    assert_true(s.scripted_transport.settling);
    assert_int_equal(told.kind, MULL_SETTLE_DEAD_LETTER);
    assert_string_equal(told.queue, "error");
    assert_string_equal(told.error_type, "MessageDeserializationError");
    assert_string_equal(told.reason, "unrecoverable");
    assert_string_equal(told.message, "the body is missing: the transport has lost it");
    scripted_settled(&s.scripted_transport, 0, NULL);
    mull_engine_turn(s.engine);
    assert_int_equal(told.events, 1);
    assert_int_equal(told.body_size, 0);
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(s.engine, &counts), 0);
    assert_int_equal(counts.dead_lettered, 1);
    scripted_stage_close(&s);
}

static void a_message_without_its_body_is_a_dead_letter(void **state)
{
    (void)state;
    lose_body(NULL, 0, 1);
    lose_body(NULL, 0, 1000); /* too often handed out as well */
    mull_header due = {.name = "mulligan-due", .value = "2999-01-01T00:00:00.000Z"};
    lose_body(&due, 1, 1); /* on its way, with a delay in parts */
}

static void a_stop_gives_it_back(void **state)
{
    (void)state;
    mull_transport_ops ops = scripted_ops;
    ops.settle = settle;
    stage s;
    open_with(&s, &ops, 1);
    mull_stop(s.engine);
    mull_engine_turn(s.engine);
    s.scripted_transport.message.body_size = MULL_BODY_MISSING;
    scripted_deliver(&s.scripted_transport);
    assert_int_equal(told.kind, MULL_SETTLE_GIVE_BACK);
    scripted_stage_close(&s);
}

/* Its calls and deliveries together would overflow, and a failure that can't be judged would be
 * called again for ever. */
static void a_count_beyond_all_numbers_is_judged(void **state)
{
    (void)state;
    mull_transport_ops ops = scripted_ops;
    ops.look = look_counting;
    ops.settle = settle;
    memset(&told, 0, sizeof told);
    stage s;
    open_with(&s, &ops, 1);
    mull_header calls = {.name = "mulligan-calls", .value = "5"};
    mull_message *message = &s.scripted_transport.message;
    message->headers = &calls;
    message->header_count = 1;
    message->deliveries = INT64_MAX;
    scripted_deliver(&s.scripted_transport);
    mull_engine_turn(s.engine);
    assert_true(s.scripted_transport.settling);
    assert_int_equal(told.kind, MULL_SETTLE_DEAD_LETTER);
    assert_string_equal(told.error_type, "HandlerCrashError");
    scripted_settled(&s.scripted_transport, 0, NULL);
    mull_engine_turn(s.engine);
    assert_int_equal(told.events, 1);
    scripted_stage_close(&s);
}

static int64_t seen_deliveries;

static void see_deliveries(mull_engine *engine, mull_call call, const mull_message *message,
                           void *data)
{
    (void)data;
    seen_deliveries = message->deliveries;
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

/* mull_message_copy leaves 0. */
static void a_count_of_what_counts_nothing_is_1(void **state)
{
    static const int64_t counts[] = {0, 1, 2, -1, INT64_MAX};
    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        stage s;
        open_with(&s, &scripted_ops, 0);
        mull_consumer_options consumer = test_engine_consumer(see_deliveries, &s);
        assert_int_equal(mull_consumer_add(s.engine, &consumer), 0);
        mull_engine_turn(s.engine);
        s.scripted_transport.message.deliveries = counts[i];
        seen_deliveries = 0;
        scripted_deliver(&s.scripted_transport);
        mull_engine_turn(s.engine);
        assert_int_equal(seen_deliveries, 1);
        scripted_stage_close(&s);
    }
}

/* ---- Depths ---------------------------------------------------------------------------------- */

enum { QUESTIONS = 16 };

static struct {
    mull_ticket tickets[QUESTIONS];
    int open, total;
} asked;

static int depth(void *self, const char *queue, mull_ticket ticket)
{
    (void)self;
    (void)queue;
    assert_true(asked.open < QUESTIONS);
    asked.tickets[asked.open++] = ticket;
    asked.total++;
    return 0;
}

static int look_at_once(const char *url, const char *queue, mull_abilities *floor, char *why,
                        size_t why_size)
{
    floor->counts_at_once = 1;
    return scripted_look(url, queue, floor, why, why_size);
}

/* answer_round answers all questions that are open; how many these were. */
static int answer_round(stage *s)
{
    static const mull_depth none = {.next_due_ms = INT64_MAX};
    mull_engine_turn(s->engine);
    mull_ticket tickets[QUESTIONS]; /* the last answer may ask anew */
    int count = asked.open;
    memcpy(tickets, asked.tickets, sizeof tickets);
    asked.open = 0;
    for (int i = 0; i < count; i++)
        mull_port_depth(s->scripted_transport.port, tickets[i], 0, &none, NULL);
    return count;
}

/* ask_until_empty gives how many questions three consumers of two queues take to be sure. */
static int ask_until_empty(int at_once)
{
    mull_transport_ops ops = scripted_ops;
    ops.depth = depth;
    if (at_once)
        ops.look = look_at_once;
    memset(&asked, 0, sizeof asked);
    stage s;
    open_with(&s, &ops, 3);
    assert_int_equal(mull_stop_when_empty(s.engine), 0);
    while (answer_round(&s) > 0)
        ;
    assert_string_equal(s.said, "stopped");
    scripted_stage_close(&s);
    return asked.total;
}

static void each_queue_is_asked_for_once_a_round(void **state)
{
    (void)state;
    assert_int_equal(ask_until_empty(0), 4);
    assert_int_equal(ask_until_empty(1), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_without_its_body_is_a_dead_letter),
        cmocka_unit_test(a_stop_gives_it_back),
        cmocka_unit_test(a_count_beyond_all_numbers_is_judged),
        cmocka_unit_test(a_count_of_what_counts_nothing_is_1),
        cmocka_unit_test(each_queue_is_asked_for_once_a_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
