/* scripted_transport.h: what the tests of transports' calls share: a transport that answers nothing
 * by itself, since the test does in its place, and an engine on it, on a test's clock, whose one
 * consumer keeps the call of its handler. */
#ifndef SCRIPTED_TRANSPORT_H
#define SCRIPTED_TRANSPORT_H

#include "decide_fixture.h"
#include "mulligan/transport.h"

/* ---- A transport ----------------------------------------------------------------------------- */

/* scripted_transport is a transport that answers nothing by itself: the test does, in its place. A
 * ticket of 0: nothing is to be answered. */
typedef struct scripted_transport {
    mull_port *port;
    mull_ticket consumer; /* the last that subscribed */
    mull_message message;
    mull_delivery delivery;
    mull_ticket publishing, asking, settling;
    mull_timer *timer; /* scripted_later's */
    int releases, closes;
} scripted_transport;

static inline int scripted_look(const char *url, const char *queue, mull_abilities *floor,
                                char *why, size_t why_size)
{
    (void)url;
    (void)queue;
    (void)why;
    (void)why_size;
    floor->can_retry = floor->can_delay = 1;
    floor->depth = MULL_DEPTH_EXACT;
    return 0;
}

static inline int scripted_open(void **self, mull_port *port, const char *url, char *why,
                                size_t why_size)
{
    scripted_transport *q = mull_port_data(port);
    (void)url;
    (void)why;
    (void)why_size;
    q->port = port;
    mull_port_state(port, MULL_UP, NULL);
    *self = q;
    return 0;
}

static inline int scripted_subscribe(void *self, mull_ticket consumer, const mull_source *source,
                                     void **subscription)
{
    scripted_transport *q = self;
    (void)source;
    q->consumer = consumer;
    *subscription = q;
    mull_port_source(q->port, consumer, MULL_SOURCE_READY, NULL, NULL);
    return 0;
}

static inline void scripted_credit(void *self, void *subscription, uint32_t deliveries)
{
    (void)self;
    (void)subscription;
    (void)deliveries;
}

static inline void scripted_unsubscribe(void *self, void *subscription)
{
    scripted_transport *q = self;
    (void)subscription;
    mull_port_log(q->port, MULL_ERROR_LEVEL, "no test unsubscribes");
}

static inline int scripted_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    (void)outgoing;
    ((scripted_transport *)self)->publishing = ticket;
    return 0;
}

static inline void scripted_settle(void *self, mull_delivery *delivery,
                                   const mull_settlement *settlement, mull_ticket ticket)
{
    (void)delivery;
    (void)settlement;
    ((scripted_transport *)self)->settling = ticket;
}

static inline int scripted_depth(void *self, const char *queue, mull_ticket ticket)
{
    (void)queue;
    ((scripted_transport *)self)->asking = ticket;
    return 0;
}

static inline void scripted_release(void *self, mull_delivery *delivery)
{
    (void)delivery;
    ((scripted_transport *)self)->releases++;
}

static inline void scripted_close(void *self, int64_t drain_ms)
{
    (void)drain_ms;
    ((scripted_transport *)self)->closes++;
}

static const mull_transport_ops scripted_ops = {
    MULL_TRANSPORT_OPS(scripted),
    .depth = scripted_depth,
};

/* scripted_deliver hands out its message anew. */
static inline void scripted_deliver(scripted_transport *q)
{
    q->delivery = (mull_delivery){.size = sizeof q->delivery, .message = &q->message};
    mull_port_delivered(q->port, q->consumer, &q->delivery);
}

/* scripted_settled answers the settlement that is asked. */
static inline void scripted_settled(scripted_transport *q, int status, const char *why)
{
    mull_ticket ticket = q->settling;
    assert_true(ticket != 0);
    q->settling = 0;
    mull_port_answer(q->port, ticket, status, why);
}

/* scripted_later has `fire` called on the loop's next turn: mull_engine_close runs the loop. */
static inline void scripted_later(scripted_transport *q, void (*fire)(void *data), void *data)
{
    mull_port_timer_free(q->port, q->timer);
    q->timer = mull_port_timer_new(q->port, fire, data);
    assert_non_null(q->timer);
    mull_port_timer_set(q->port, q->timer, 0);
}

static inline void scripted_closed(scripted_transport *q)
{
    mull_port_timer_free(q->port, q->timer);
    q->timer = NULL;
    q->closes = 0;
    mull_port_closed(q->port);
}

/* ---- All that a call may need ---------------------------------------------------------------- */

typedef struct stage {
    decide_fixture decide_fixture;
    scripted_transport scripted_transport;
    int64_t now_ms;
    mull_clock clock;
    mull_engine *engine;
    mull_allocator allocator;
    mull_call call;
    int answers, refused, fired, closed;
    char said[256]; /* the last line of its log */
    int lines;
} stage;

static inline int64_t scripted_now(void *data)
{
    return ((stage *)data)->now_ms;
}

static inline void scripted_log(mull_level level, const char *text, void *data)
{
    stage *s = data;
    (void)level;
    s->lines++;
    snprintf(s->said, sizeof s->said, "%s", text);
}

static inline void scripted_keep_call(mull_engine *engine, mull_call call,
                                      const mull_message *message, void *data)
{
    (void)engine;
    (void)message;
    ((stage *)data)->call = call;
}

static inline mull_engine_options scripted_engine_options(stage *s)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    s->clock = (mull_clock){scripted_now, scripted_now, s};
    options.policy = s->decide_fixture.policy;
    options.clock = &s->clock;
    options.log = scripted_log;
    options.data = s;
    options.seed = 1;
    options.allocator = s->allocator;
    return options;
}

static inline mull_engine *scripted_engine(stage *s)
{
    const mull_engine_options options = scripted_engine_options(s);
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    return engine;
}

static inline void scripted_make_message(scripted_transport *q)
{
    q->message = MULL_INIT(mull_message);
    q->message.deliveries = 1;
    q->message.id = "m";
}

/* scripted_stage_open_on starts an engine on a transport with up to three consumers, the first and
 * the last of which share a queue. */
static inline void scripted_stage_open_on(stage *s, const mull_transport_ops *ops, size_t consumers,
                                          mull_event_fn event, mull_allocator allocator)
{
    static const char *const names[] = {"C", "D", "E"}, *const queues[] = {"q", "r", "q"};
    *s = (stage){.now_ms = 1, .allocator = allocator};
    decide_fixture_open(&s->decide_fixture);
    mull_engine_options options = scripted_engine_options(s);
    options.event = event;
    assert_int_equal(mull_engine_new(&s->engine, &options), 0);
    assert_int_equal(mull_engine_scheme(s->engine, ops, &s->scripted_transport), 0);
    assert_int_equal(mull_engine_transport(s->engine, "t", "scripted:"), 0);
    mull_consumer_options consumer = test_engine_consumer(scripted_keep_call, s);
    for (size_t i = 0; i < consumers; i++) {
        consumer.name = names[i];
        consumer.queue = queues[i];
        assert_int_equal(mull_consumer_add(s->engine, &consumer), 0);
    }
    assert_int_equal(mull_engine_start(s->engine), 0);
    scripted_make_message(&s->scripted_transport);
}

static inline void scripted_stage_open_with(stage *s, mull_allocator allocator)
{
    scripted_stage_open_on(s, &scripted_ops, 1, NULL, allocator);
}

static inline void scripted_stage_open(stage *s)
{
    scripted_stage_open_with(s, (mull_allocator){0});
}

/* scripted_answer answers what a closing engine waits for. */
static inline void scripted_answer(void *data)
{
    scripted_transport *q = data;
    if (q->settling)
        scripted_settled(q, 0, NULL);
    if (q->closes)
        scripted_closed(q);
    else
        scripted_later(q, scripted_answer, q);
}

static inline void scripted_close_engine(stage *s)
{
    scripted_transport *q = &s->scripted_transport;
    if (!s->engine)
        return;
    if (s->call)
        mull_done(s->engine, s->call, NULL);
    if (q->publishing)
        mull_port_answer(q->port, q->publishing, 0, NULL);
    if (q->asking)
        mull_port_depth(q->port, q->asking, MULL_EIO, NULL, NULL);
    scripted_later(q, scripted_answer, q);
    mull_engine_close(s->engine, NULL, NULL);
    s->engine = NULL;
}

static inline void scripted_stage_close(stage *s)
{
    scripted_close_engine(s);
    decide_fixture_close(&s->decide_fixture);
}

static inline void scripted_begin_call(stage *s)
{
    if (s->call)
        return;
    scripted_deliver(&s->scripted_transport);
    mull_engine_turn(s->engine);
    assert_true(s->call != 0);
}

#endif
