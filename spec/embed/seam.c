/* seam.c: what an engine does with a transport that answers late, twice, never or badly, that isn't
 * up, or that can't read a queue. Each case answers by hand, in the transport's place. */
#include "counting_allocator.h"
#include "seam_stage.h"

enum { GRACE_MS = 10000, DRAIN_MS = 5000 };

/* asked is what the transport of a test was asked. */
static struct {
    mull_settle_kind kind; /* the last settlement's */
    char queue[32];
    int settlements;
    mull_ticket consumers[3];
    size_t consumer_count;
    uint32_t credits[3];
    int anything, flushes, up;
} asked;

static void open_on(stage *s, const mull_transport_ops *ops, size_t consumers)
{
    memset(&asked, 0, sizeof asked);
    scripted_stage_open_on(s, ops, consumers, NULL, (mull_allocator){0});
}

/* end_call has a message handled well, whose settlement is then the transport's to answer. */
static void end_call(stage *s)
{
    scripted_begin_call(s);
    assert_int_equal(mull_done(s->engine, s->call, NULL), 0);
    s->call = 0;
    mull_engine_turn(s->engine);
}

/* take_ticket takes a question out of the transport's hands, so that only the test answers it. */
static mull_ticket take_ticket(mull_ticket *from)
{
    mull_ticket ticket = *from;
    assert_true(ticket != 0);
    *from = 0;
    return ticket;
}

/* ---- Tickets --------------------------------------------------------------------------------- */

static void a_settlement_is_answered_once(void **state)
{
    (void)state;
    stage s;
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    end_call(&s);
    mull_ticket first = take_ticket(&q->settling);
    mull_port_answer(q->port, first, MULL_EIO, "no route");
    assert_said(&s, "message m isn't settled (no route); trying again");
    mull_port_answer(q->port, first, 0, NULL); /* of a try that failed */
    assert_misused(&s);
    assert_int_equal(q->releases, 0);
    advance(&s, 1000);
    mull_ticket second = take_ticket(&q->settling);
    assert_true(second != first);
    mull_port_answer(q->port, first, 0, NULL);
    assert_misused(&s);
    mull_port_answer(q->port, second, 0, NULL);
    assert_int_equal(q->releases, 1);
    mull_port_answer(q->port, second, MULL_ELOST, NULL);
    assert_misused(&s);
    assert_int_equal(counts_of(&s).done, 1);
    scripted_stage_close(&s);
}

static void a_message_that_is_published_is_answered_once(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(publish(&s, &told), 0);
    mull_ticket ticket = take_ticket(&q->publishing);
    mull_port_depth(q->port, ticket, 0, &no_messages, NULL); /* another kind of answer */
    assert_misused(&s);
    assert_int_equal(told.count, 0);
    mull_port_answer(q->port, ticket, MULL_EREFUSED, "too big");
    assert_int_equal(told.status, MULL_EREFUSED);
    mull_port_answer(q->port, ticket, 0, NULL);
    assert_misused(&s);
    assert_int_equal(told.count, 1);
    scripted_stage_close(&s);
}

static void a_depth_is_answered_once(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), 0);
    mull_ticket ticket = take_ticket(&q->asking);
    mull_port_answer(q->port, ticket, 0, NULL);
    assert_misused(&s);
    assert_int_equal(told.count, 0);
    mull_port_depth(q->port, ticket, 0, &no_messages, NULL);
    mull_port_depth(q->port, ticket, 0, &no_messages, NULL);
    assert_misused(&s);
    assert_int_equal(told.count, 1);
    assert_int_equal(told.status, 0);
    scripted_stage_close(&s);
}

static void no_ticket_is_given_twice(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    mull_ticket last = 0;
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(publish(&s, &told), 0);
        mull_ticket ticket = take_ticket(&q->publishing);
        assert_true(ticket > last);
        last = ticket;
        mull_port_answer(q->port, ticket, 0, NULL);
    }
    assert_int_equal(told.count, 100);
    scripted_deliver(q);
    assert_true(q->delivery.ticket > last);
    scripted_stage_close(&s);
}

/* ---- No answer ------------------------------------------------------------------------------- */

static void what_is_never_answered_ends_after_a_minute(void **state)
{
    (void)state;
    stage s;
    answers published = {0}, counted = {0};
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(publish(&s, &published), 0);
    mull_ticket message = take_ticket(&q->publishing);
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &counted), 0);
    mull_ticket depth = take_ticket(&q->asking);
    advance(&s, MINUTE_MS - 1);
    assert_int_equal(published.count + counted.count, 0);
    advance(&s, 1);
    assert_int_equal(published.count, 1);
    assert_int_equal(published.status, MULL_EIO);
    assert_int_equal(counted.count, 1);
    assert_int_equal(counted.status, MULL_EIO);
    mull_port_answer(q->port, message, 0, NULL);
    assert_misused(&s);
    mull_port_depth(q->port, depth, 0, &no_messages, NULL);
    assert_misused(&s);
    assert_int_equal(published.count + counted.count, 2);
    scripted_stage_close(&s);
}

static void a_settlement_that_is_never_answered_is_waited_for(void **state)
{
    (void)state;
    stage s;
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    end_call(&s);
    int lines = s.lines;
    advance(&s, MINUTE_MS - 1);
    assert_int_equal(s.lines, lines);
    advance(&s, 1);
    assert_said(&s, "transport t has not said for 60 s whether message m is settled");
    assert_int_equal(s.lines, ++lines);
    advance(&s, 10 * MINUTE_MS); /* told once */
    assert_int_equal(s.lines, lines);
    scripted_settled(q, 0, NULL);
    assert_int_equal(q->releases, 1);
    assert_int_equal(counts_of(&s).done, 1);
    scripted_stage_close(&s);
}

static void nor_does_a_stop_wait_for_it_beyond_its_grace(void **state)
{
    (void)state;
    stage s;
    answers counted = {0};
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &counted), 0);
    end_call(&s);
    mull_ticket ticket = take_ticket(&q->settling);
    mull_stop(s.engine);
    advance(&s, GRACE_MS - 1);
    assert_string_equal(s.said, "stopping");
    advance(&s, DRAIN_MS + 1);
    assert_string_equal(s.said, "stopped");
    assert_int_equal(counts_of(&s).done, 0);
    assert_int_equal(q->releases, 0); /* the transport may be reading it still */
    mull_port_answer(q->port, ticket, 0, NULL);
    assert_string_equal(s.said, "stopped"); /* it was asked */
    mull_port_answer(q->port, ticket, 0, NULL);
    assert_misused(&s);
    assert_int_equal(counts_of(&s).done, 0);
    scripted_stage_close(&s);
}

/* ---- Refused --------------------------------------------------------------------------------- */

static void keep_settlement(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                            mull_ticket ticket)
{
    scripted_settle(self, delivery, settlement, ticket);
    asked.settlements++;
    asked.kind = settlement->kind;
    snprintf(asked.queue, sizeof asked.queue, "%s", settlement->queue);
}

/* open_refused: the settlement of a message was refused, by which the policy sends it to the
 * dead-letter queue "rest". */
static void open_refused(stage *s)
{
    static mull_transport_ops ops; /* borrowed until the engine is closed */
    mull_error error = MULL_INIT(mull_error);
    ops = scripted_ops;
    ops.settle = keep_settlement;
    error.type = "Other";
    open_on(s, &ops, 1);
    scripted_begin_call(s);
    assert_int_equal(mull_done(s->engine, s->call, &error), 0);
    s->call = 0;
    mull_engine_turn(s->engine);
    assert_int_equal(asked.kind, MULL_SETTLE_DEAD_LETTER);
    assert_string_equal(asked.queue, "rest");
    scripted_settled(&s->scripted_transport, MULL_EREFUSED, "no such queue");
    mull_engine_turn(s->engine);
}

static void what_is_refused_goes_to_the_default_dead_letter_queue(void **state)
{
    (void)state;
    stage s;
    open_refused(&s);
    scripted_transport *q = &s.scripted_transport;
    assert_said(&s, "message m can't be settled as decided (no such queue)");
    assert_int_equal(asked.kind, MULL_SETTLE_DEAD_LETTER);
    assert_string_equal(asked.queue, "error");
    assert_int_equal(q->releases, 0);
    scripted_settled(q, 0, NULL);
    mull_engine_turn(s.engine);
    assert_int_equal(asked.settlements, 2);
    assert_int_equal(q->releases, 1);
    assert_int_equal(counts_of(&s).dead_lettered, 1);
    scripted_stage_close(&s);
}

static void what_is_refused_there_too_is_parked_and_its_consumer_goes_on(void **state)
{
    (void)state;
    stage s;
    open_refused(&s);
    scripted_transport *q = &s.scripted_transport;
    int lines = s.lines;
    scripted_settled(q, MULL_EREFUSED, "too big");
    advance(&s, 10 * MINUTE_MS);
    assert_said(&s, "message m is parked");
    assert_said(&s, "too big");
    assert_int_equal(s.lines, lines + 1);
    assert_int_equal(asked.settlements, 2);
    assert_int_equal(q->releases, 0);
    assert_int_equal(counts_of(&s).dead_lettered, 0);
    mull_snapshot *snapshot;
    assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
    assert_int_equal(snapshot->transports[0]->parked, 1);
    assert_int_equal(snapshot->transports[0]->claimed, 0);
    mull_snapshot_free(snapshot);
    mull_delivery next = {.size = sizeof next, .message = &q->message};
    mull_port_delivered(q->port, q->consumer, &next);
    mull_engine_turn(s.engine);
    assert_true(s.call != 0);
    assert_int_equal(mull_done(s.engine, s.call, NULL), 0);
    s.call = 0;
    mull_engine_turn(s.engine);
    scripted_settled(q, 0, NULL);
    assert_int_equal(q->releases, 1);
    assert_int_equal(counts_of(&s).done, 1);
    scripted_stage_close(&s);
    assert_int_equal(q->releases, 2);
}

/* ---- Deliveries ------------------------------------------------------------------------------ */

static void keep_id(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                    mull_ticket ticket)
{
    snprintf(asked.queue, sizeof asked.queue, "%s", delivery->message->id);
    scripted_settle(self, delivery, settlement, ticket);
}

static void what_finds_no_memory_keeps_its_turn(void **state)
{
    (void)state;
    mull_transport_ops ops = scripted_ops;
    ops.settle = keep_id;
    counting_allocator memory = {0};
    stage s;
    scripted_stage_open_on(&s, &ops, 1, NULL, counting_allocator_ops(&memory));
    scripted_transport *q = &s.scripted_transport;
    static const char *const ids[] = {"a", "b", "c", "d"};
    mull_message messages[4];
    mull_delivery deliveries[4];
    memory.fail_at = memory.asked + 1;
    memory.fail_for = 2;
    for (int i = 0; i < 4; i++) {
        messages[i] = q->message;
        messages[i].id = ids[i];
        deliveries[i] = (mull_delivery){.size = sizeof *deliveries, .message = &messages[i]};
        mull_port_delivered(q->port, q->consumer, &deliveries[i]);
    }
    for (int i = 0; i < 4; i++) {
        advance(&s, 1000);
        assert_true(s.call != 0);
        assert_int_equal(mull_done(s.engine, s.call, NULL), 0);
        s.call = 0;
        mull_engine_turn(s.engine);
        assert_string_equal(asked.queue, ids[i]);
        scripted_settled(q, 0, NULL);
    }
    scripted_stage_close(&s);
}

/* ---- Sources --------------------------------------------------------------------------------- */

static int subscribe_waiting(void *self, mull_ticket consumer, const mull_source *source,
                             void **subscription)
{
    (void)self;
    assert_true(source->most >= 1);
    *subscription = &asked.credits[asked.consumer_count];
    asked.consumers[asked.consumer_count++] = consumer;
    return 0;
}

static void keep_credit(void *self, void *subscription, uint32_t deliveries)
{
    (void)self;
    *(uint32_t *)subscription = deliveries;
}

static mull_transport_ops waiting_ops(void)
{
    mull_transport_ops ops = scripted_ops;
    ops.subscribe = subscribe_waiting;
    ops.credit = keep_credit;
    return ops;
}

static void a_consumer_gets_credit_once_its_queue_is_read(void **state)
{
    (void)state;
    const mull_transport_ops ops = waiting_ops();
    stage s;
    open_on(&s, &ops, 1);
    scripted_transport *q = &s.scripted_transport;
    mull_engine_turn(s.engine);
    assert_int_equal(asked.credits[0], 0);
    int lines = s.lines;
    for (int i = 0; i < 2; i++) /* told once */
        mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_WAITING, NULL, "no leader");
    assert_string_equal(s.said, "consumer 'C' waits for its queue 'q': no leader");
    assert_int_equal(s.lines, lines + 1);
    mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_READY, NULL, NULL);
    mull_engine_turn(s.engine);
    assert_true(asked.credits[0] > 0);
    mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_WAITING, NULL, "no leader");
    mull_engine_turn(s.engine);
    assert_int_equal(asked.credits[0], 0);
    scripted_stage_close(&s);
}

static void one_that_is_refused_stops_its_consumer_alone(void **state)
{
    (void)state;
    const mull_transport_ops ops = waiting_ops();
    stage s;
    open_on(&s, &ops, 2);
    scripted_transport *q = &s.scripted_transport;
    for (size_t i = 0; i < 2; i++)
        mull_port_source(q->port, asked.consumers[i], MULL_SOURCE_READY, NULL, NULL);
    mull_engine_turn(s.engine);
    assert_true(asked.credits[0] > 0);
    int lines = s.lines;
    mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_REFUSED, NULL, "no permission");
    assert_string_equal(s.said, "consumer 'C' can't read the queue 'q': no permission");
    mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_REFUSED, NULL, "no permission");
    advance(&s, 10 * MINUTE_MS);
    assert_int_equal(s.lines, lines + 1);
    assert_int_equal(asked.credits[0], 0);
    assert_true(asked.credits[1] > 0);
    assert_int_equal(mull_engine_status(s.engine), 0);
    q->consumer = asked.consumers[1];
    scripted_begin_call(&s); /* the other one's */
    mull_port_source(q->port, asked.consumers[0], MULL_SOURCE_READY, NULL, NULL);
    mull_engine_turn(s.engine);
    assert_true(asked.credits[0] > 0);
    scripted_stage_close(&s);
}

/* find reads two queues, of which the second can do what is `found`. */
static void find(stage *s, mull_abilities found)
{
    static mull_transport_ops ops; /* borrowed until the engine is closed */
    ops = waiting_ops();
    open_on(s, &ops, 2);
    mull_port *port = s->scripted_transport.port;
    mull_port_source(port, asked.consumers[0], MULL_SOURCE_READY, NULL, NULL);
    mull_port_source(port, asked.consumers[1], MULL_SOURCE_READY, &found, NULL);
    mull_engine_turn(s->engine);
    assert_true(asked.credits[0] > 0);
}

static void less_than_was_promised_is_refused(void **state)
{
    (void)state;
    mull_abilities promised = MULL_INIT(mull_abilities);
    assert_int_equal(scripted_look("scripted:", "r", &promised, NULL, 0), 0);
    mull_abilities less[] = {promised, promised, promised, promised, promised, promised};
    less[0].can_retry = 0;
    less[1].can_delay = 0;
    less[2].longest_delay_ms = MINUTE_MS;
    less[3].claim_timeout_ms = MINUTE_MS;
    less[4].depth = MULL_DEPTH_ROUGH;
    less[5].delay_step_ms = 1000;
    for (size_t i = 0; i < sizeof less / sizeof *less; i++) {
        stage s;
        find(&s, less[i]);
        assert_said(&s, "consumer 'D' can't read the queue 'r': ");
        assert_int_equal(s.lines, 1);
        assert_int_equal(asked.credits[1], 0);
        scripted_stage_close(&s);
    }
}

static void as_much_or_more_is_not(void **state)
{
    (void)state;
    mull_abilities promised = MULL_INIT(mull_abilities);
    assert_int_equal(scripted_look("scripted:", "r", &promised, NULL, 0), 0);
    mull_abilities enough[] = {promised, promised};
    enough[1].can_note = enough[1].settles_whole = enough[1].counts_at_once = 1;
    enough[1].deliveries = MULL_COUNTS_DEATHS;
    for (size_t i = 0; i < sizeof enough / sizeof *enough; i++) {
        stage s;
        find(&s, enough[i]);
        assert_int_equal(s.lines, 0);
        assert_true(asked.credits[1] > 0);
        scripted_stage_close(&s);
    }
}

/* ---- Health ---------------------------------------------------------------------------------- */

static int open_down(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    scripted_transport *q = mull_port_data(port);
    (void)url;
    (void)why;
    (void)why_size;
    q->port = port;
    *self = q;
    return 0;
}

static int publish_unless_down(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    return asked.up ? scripted_publish(self, outgoing, ticket) : MULL_EDOWN;
}

static int depth_unless_down(void *self, const char *queue, mull_ticket ticket)
{
    return asked.up ? scripted_depth(self, queue, ticket) : MULL_EDOWN;
}

static void become(stage *s, mull_health health)
{
    asked.up = health == MULL_UP;
    mull_port_state(s->scripted_transport.port, health, "connection refused");
}

static void one_that_is_down_says_so_at_once(void **state)
{
    (void)state;
    mull_transport_ops ops = scripted_ops;
    ops.open = open_down; /* and it isn't said that it is up */
    ops.publish = publish_unless_down;
    ops.depth = depth_unless_down;
    stage s;
    answers told = {0};
    open_on(&s, &ops, 1);
    scripted_transport *q = &s.scripted_transport;
    assert_string_equal(s.said, "transport t isn't up yet; it is waited for");
    for (int i = 0; i < 2; i++) {
        assert_int_equal(publish(&s, &told), MULL_EDOWN);
        assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), MULL_EDOWN);
        become(&s, MULL_UP);
        assert_int_equal(publish(&s, &told), 0);
        mull_port_answer(q->port, take_ticket(&q->publishing), 0, NULL);
        assert_int_equal(told.count, i + 1);
        become(&s, MULL_DOWN);
        assert_string_equal(s.said, "transport t is down: connection refused");
    }
    assert_string_equal(mull_strerror(MULL_EDOWN), "the transport is down");
    become(&s, MULL_UP);
    assert_string_equal(s.said, "transport t is up again");
    assert_int_equal(mull_engine_status(s.engine), 0);
    scripted_stage_close(&s);
}

static void a_reason_is_told_when_it_changes(void **state)
{
    (void)state;
    stage s;
    open_on(&s, &scripted_ops, 1);
    mull_port *port = s.scripted_transport.port;
    for (int i = 0; i < 3; i++)
        mull_port_state(port, MULL_DOWN, "connection refused");
    assert_int_equal(s.lines, 1);
    mull_port_state(port, MULL_DOWN, "no such host");
    assert_string_equal(s.said, "transport t is down: no such host");
    assert_int_equal(s.lines, 2);
    scripted_stage_close(&s);
}

/* assert_why says what a snapshot has to say of why the consumer isn't called, and since when. */
static void assert_why(stage *s, mull_why_not why, const char *text, int64_t since_ms)
{
    mull_snapshot *snapshot;
    mull_engine_turn(s->engine);
    s->now_ms += MINUTE_MS;
    mull_engine_turn(s->engine);
    assert_int_equal(mull_engine_snapshot(s->engine, &snapshot), 0);
    const mull_consumer_snapshot *c = snapshot->consumers[0];
    assert_int_equal(c->why_not, why);
    assert_int_equal(c->why_not_since_ms, since_ms);
    if (text)
        assert_string_equal(c->why_not_text, text);
    else
        assert_null(c->why_not_text);
    mull_snapshot_free(snapshot);
}

static void a_snapshot_says_why_a_consumer_is_not_called(void **state)
{
    (void)state;
    stage s;
    open_on(&s, &scripted_ops, 1);
    mull_port *port = s.scripted_transport.port;
    mull_ticket consumer = s.scripted_transport.consumer;
    assert_why(&s, MULL_WHY_NOTHING_THERE, NULL, 1);
    int64_t began_ms = s.now_ms;
    mull_port_state(port, MULL_DOWN, "connection refused");
    assert_why(&s, MULL_WHY_TRANSPORT_DOWN, "connection refused", began_ms);
    mull_port_state(port, MULL_DOWN, "no such host"); /* another reason for the same */
    assert_why(&s, MULL_WHY_TRANSPORT_DOWN, "no such host", began_ms);
    mull_snapshot *snapshot;
    assert_int_equal(mull_engine_snapshot(s.engine, &snapshot), 0);
    assert_int_equal(snapshot->transports[0]->health, MULL_DOWN);
    assert_string_equal(snapshot->transports[0]->why, "no such host");
    assert_int_equal(snapshot->transports[0]->since_ms, began_ms);
    mull_snapshot_free(snapshot);

    began_ms = s.now_ms;
    mull_port_source(port, consumer, MULL_SOURCE_WAITING, NULL, "no leader");
    mull_port_state(port, MULL_UP, NULL);
    assert_why(&s, MULL_WHY_QUEUE_WAITING, "no leader", began_ms);
    began_ms = s.now_ms;
    mull_port_source(port, consumer, MULL_SOURCE_REFUSED, NULL, "no permission");
    assert_why(&s, MULL_WHY_QUEUE_REFUSED, "no permission", began_ms);
    scripted_stage_close(&s);
}

static void the_log_says_why_nothing_is_published_or_counted(void **state)
{
    (void)state;
    stage s;
    answers told = {0};
    open_on(&s, &scripted_ops, 1);
    scripted_transport *q = &s.scripted_transport;
    mull_engine_turn(s.engine);
    int lines = s.lines;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(publish(&s, &told), 0);
        mull_port_answer(q->port, take_ticket(&q->publishing), MULL_EIO, "no room");
        assert_string_equal(s.said, "transport t: a message isn't published: no room");
    }
    assert_int_equal(s.lines, lines + 1);
    for (int i = 0; i < 2; i++) { /* one that succeeds lets it be told anew */
        assert_int_equal(mull_queue_depth(s.engine, "t", "q", on_depth, &told), 0);
        mull_port_depth(q->port, take_ticket(&q->asking), MULL_EIO, NULL, "no \xff leader");
        assert_string_equal(s.said,
                            "transport t: the messages of a queue aren't counted: no ? leader");
        assert_int_equal(publish(&s, &told), 0);
        mull_port_answer(q->port, take_ticket(&q->publishing), 0, NULL);
    }
    assert_int_equal(s.lines, lines + 3);
    assert_int_equal(publish(&s, &told), 0);
    mull_port_answer(q->port, take_ticket(&q->publishing), MULL_EIO, NULL);
    assert_int_equal(s.lines, lines + 3);
    scripted_stage_close(&s);
}

/* ---- Flushes --------------------------------------------------------------------------------- */

static int asked_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    asked.anything++;
    return scripted_publish(self, outgoing, ticket);
}

static void asked_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                         mull_ticket ticket)
{
    asked.anything++;
    scripted_settle(self, delivery, settlement, ticket);
}

static void asked_credit(void *self, void *subscription, uint32_t deliveries)
{
    (void)self;
    (void)subscription;
    (void)deliveries;
    asked.anything++;
}

static void count_flush(void *self)
{
    (void)self;
    asked.flushes++;
    asked.anything = 0;
}

static void each_turn_that_asks_ends_in_one_flush(void **state)
{
    (void)state;
    mull_transport_ops ops = scripted_ops;
    ops.publish = asked_publish;
    ops.settle = asked_settle;
    ops.credit = asked_credit;
    ops.flush = count_flush;
    stage s;
    answers told = {0};
    open_on(&s, &ops, 1);
    scripted_transport *q = &s.scripted_transport;
    mull_engine_turn(s.engine);
    assert_int_equal(asked.flushes, 1); /* subscribe, credit */
    assert_int_equal(asked.anything, 0);
    advance(&s, MINUTE_MS);
    assert_int_equal(asked.flushes, 1);
    assert_int_equal(publish(&s, &told), 0);
    mull_ticket ticket = take_ticket(&q->publishing);
    assert_int_equal(publish(&s, &told), 0);
    assert_int_equal(asked.anything, 2);
    mull_engine_turn(s.engine);
    assert_int_equal(asked.flushes, 2);
    mull_port_answer(q->port, ticket, 0, NULL);
    mull_engine_turn(s.engine);
    assert_int_equal(asked.flushes, 2);
    end_call(&s);
    assert_true(q->settling != 0);
    assert_true(asked.flushes > 2);
    assert_int_equal(asked.anything, 0); /* nothing was asked behind the last flush */
    scripted_stage_close(&s);
}

/* ---- A timer as the next turn ---------------------------------------------------------------- */

typedef struct tick {
    mull_port *port;
    mull_timer *timer;
    int setting, fired;
} tick;

static void tick_set(tick *t)
{
    t->setting = 1;
    mull_port_timer_set(t->port, t->timer, 0);
    t->setting = 0;
}

static void tick_fired(void *data)
{
    tick *t = data;
    assert_int_equal(t->setting, 0);
    if (++t->fired < 3)
        tick_set(t);
    else
        mull_port_timer_free(t->port, t->timer);
}

static void a_timer_of_0_fires_later_and_may_free_itself(void **state)
{
    (void)state;
    stage s;
    scripted_stage_open(&s);
    tick t = {.port = s.scripted_transport.port};
    t.timer = mull_port_timer_new(t.port, tick_fired, &t);
    assert_non_null(t.timer);
    tick_set(&t);
    assert_int_equal(t.fired, 0);
    mull_engine_turn(s.engine); /* without mull_port_working */
    assert_int_equal(t.fired, 3);
    assert_int_equal(s.now_ms, 1);
    scripted_stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_settlement_is_answered_once),
        cmocka_unit_test(a_message_that_is_published_is_answered_once),
        cmocka_unit_test(a_depth_is_answered_once),
        cmocka_unit_test(no_ticket_is_given_twice),
        cmocka_unit_test(what_is_never_answered_ends_after_a_minute),
        cmocka_unit_test(a_settlement_that_is_never_answered_is_waited_for),
        cmocka_unit_test(nor_does_a_stop_wait_for_it_beyond_its_grace),
        cmocka_unit_test(what_is_refused_goes_to_the_default_dead_letter_queue),
        cmocka_unit_test(what_is_refused_there_too_is_parked_and_its_consumer_goes_on),
        cmocka_unit_test(what_finds_no_memory_keeps_its_turn),
        cmocka_unit_test(a_consumer_gets_credit_once_its_queue_is_read),
        cmocka_unit_test(one_that_is_refused_stops_its_consumer_alone),
        cmocka_unit_test(less_than_was_promised_is_refused),
        cmocka_unit_test(as_much_or_more_is_not),
        cmocka_unit_test(one_that_is_down_says_so_at_once),
        cmocka_unit_test(a_reason_is_told_when_it_changes),
        cmocka_unit_test(a_snapshot_says_why_a_consumer_is_not_called),
        cmocka_unit_test(the_log_says_why_nothing_is_published_or_counted),
        cmocka_unit_test(each_turn_that_asks_ends_in_one_flush),
        cmocka_unit_test(a_timer_of_0_fires_later_and_may_free_itself),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
