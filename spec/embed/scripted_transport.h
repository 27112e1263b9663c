/* scripted_transport.h: what the tests of transports' calls share: a transport that answers nothing
 * by itself, since the test does in its place, and an engine on it, on a test's clock, whose one
 * consumer keeps the call of its handler. */
#ifndef SCRIPTED_TRANSPORT_H
#define SCRIPTED_TRANSPORT_H

#include "decide_fixture.h"
#include "mulligan/transport.h"

/* ---- A transport ----------------------------------------------------------------------------- */

/* scripted_transport is a transport that answers nothing by itself: the test does, in its place. */
typedef struct scripted_transport {
    mull_port *port;
    mull_subscription *subscription;
    mull_delivery delivery;
    void *publishing, *asking;
    int settling, releases, closes;
} scripted_transport;

static inline int scripted_open(void **self, mull_port *port, const char *url,
                                mull_abilities *abilities, char *why, size_t why_size)
{
    scripted_transport *q = mull_port_data(port);
    (void)url;
    (void)why;
    (void)why_size;
    q->port = port;
    *abilities = (mull_abilities){.can_retry = 1, .can_delay = 1};
    *self = q;
    return 0;
}

static inline int scripted_subscribe(void *self, mull_subscription *subscription, const char *queue)
{
    (void)queue;
    ((scripted_transport *)self)->subscription = subscription;
    return 0;
}

static inline void scripted_credit(void *self, mull_subscription *subscription, uint32_t deliveries)
{
    (void)self;
    (void)subscription;
    (void)deliveries;
}

static inline int scripted_publish(void *self, const mull_outgoing *message, void *ticket)
{
    (void)message;
    ((scripted_transport *)self)->publishing = ticket;
    return 0;
}

static inline void scripted_settle(void *self, mull_delivery *delivery,
                                   const mull_settlement *settlement)
{
    (void)delivery;
    (void)settlement;
    ((scripted_transport *)self)->settling = 1;
}

static inline int scripted_depth(void *self, const char *queue, void *ticket)
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

static inline void scripted_close(void *self)
{
    ((scripted_transport *)self)->closes++;
}

static const mull_transport_ops scripted_ops = {
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "scripted",
    .open = scripted_open,
    .subscribe = scripted_subscribe,
    .credit = scripted_credit,
    .publish = scripted_publish,
    .settle = scripted_settle,
    .depth = scripted_depth,
    .release = scripted_release,
    .close = scripted_close,
};

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
    char said[128]; /* the last line of its log */
} stage;

static inline int64_t scripted_now(void *data)
{
    return ((stage *)data)->now_ms;
}

static inline void scripted_log(mull_level level, const char *text, void *data)
{
    stage *s = data;
    (void)level;
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

static inline void scripted_make_delivery(scripted_transport *q)
{
    q->delivery = (mull_delivery){.message = MULL_INIT(mull_message)};
    q->delivery.message.deliveries = 1;
    q->delivery.message.id = "m";
    q->delivery.subscription = q->subscription;
}

static inline void scripted_stage_open_with(stage *s, mull_allocator allocator)
{
    *s = (stage){.now_ms = 1, .allocator = allocator};
    decide_fixture_open(&s->decide_fixture);
    s->engine = scripted_engine(s);
    assert_int_equal(mull_engine_scheme(s->engine, &scripted_ops, &s->scripted_transport), 0);
    assert_int_equal(mull_engine_transport(s->engine, "t", "scripted:"), 0);
    const mull_consumer_options consumer = test_engine_consumer(scripted_keep_call, s);
    assert_int_equal(mull_consumer_add(s->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(s->engine), 0);
    scripted_make_delivery(&s->scripted_transport);
}

static inline void scripted_stage_open(stage *s)
{
    scripted_stage_open_with(s, (mull_allocator){0});
}

/* scripted_answer answers what a closing engine waits for; until then its loop runs within
 * mull_engine_close, so that this has to be a timer of it. */
static inline void scripted_answer(void *data)
{
    stage *s = data;
    if (s->scripted_transport.settling)
        mull_port_settled(s->scripted_transport.port, &s->scripted_transport.delivery, 0);
    s->scripted_transport.settling = 0;
    if (s->scripted_transport.closes) {
        s->scripted_transport.closes = 0;
        mull_port_closed(s->scripted_transport.port);
        return;
    }
    assert_non_null(mull_port_after(s->scripted_transport.port, 0, scripted_answer, s));
}

static inline void scripted_close_engine(stage *s)
{
    if (!s->engine)
        return;
    if (s->call)
        mull_done(s->engine, s->call, NULL);
    if (s->scripted_transport.publishing)
        mull_port_published(s->scripted_transport.port, s->scripted_transport.publishing, 0);
    if (s->scripted_transport.asking)
        mull_port_depth(s->scripted_transport.port, s->scripted_transport.asking, MULL_EIO, NULL);
    assert_non_null(mull_port_after(s->scripted_transport.port, 0, scripted_answer, s));
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
    mull_port_delivered(s->scripted_transport.port, &s->scripted_transport.delivery);
    mull_engine_turn(s->engine);
    assert_true(s->call != 0);
}

#endif
