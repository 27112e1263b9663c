/* quay.h: what the tests of transports' calls share: a transport that answers nothing by itself,
 * since the test does in its place, and an engine on it, on a test's clock, whose one consumer
 * keeps the call of its handler. */
#ifndef QUAY_H
#define QUAY_H

#include "desk.h"
#include "mulligan/transport.h"

/* ---- A transport ----------------------------------------------------------------------------- */

/* quay is a transport that answers nothing by itself: the test does, in its place. */
typedef struct quay {
    mull_port *port;
    mull_subscription *subscription;
    mull_delivery delivery;
    void *publishing, *asking;
    int settling, releases, closes;
} quay;

static inline int quay_open(void **self, mull_port *port, const char *url,
                            mull_abilities *abilities, char *why, size_t why_size)
{
    quay *q = mull_port_data(port);
    (void)url;
    (void)why;
    (void)why_size;
    q->port = port;
    *abilities = (mull_abilities){.can_retry = 1, .can_delay = 1};
    *self = q;
    return 0;
}

static inline int quay_subscribe(void *self, mull_subscription *subscription, const char *queue)
{
    (void)queue;
    ((quay *)self)->subscription = subscription;
    return 0;
}

static inline void quay_credit(void *self, mull_subscription *subscription, uint32_t deliveries)
{
    (void)self;
    (void)subscription;
    (void)deliveries;
}

static inline int quay_publish(void *self, const mull_outgoing *message, void *ticket)
{
    (void)message;
    ((quay *)self)->publishing = ticket;
    return 0;
}

static inline void quay_settle(void *self, mull_delivery *delivery,
                               const mull_settlement *settlement)
{
    (void)delivery;
    (void)settlement;
    ((quay *)self)->settling = 1;
}

static inline int quay_depth(void *self, const char *queue, void *ticket)
{
    (void)queue;
    ((quay *)self)->asking = ticket;
    return 0;
}

static inline void quay_release(void *self, mull_delivery *delivery)
{
    (void)delivery;
    ((quay *)self)->releases++;
}

static inline void quay_close(void *self)
{
    ((quay *)self)->closes++;
}

static const mull_transport_ops quay_ops = {
    .version = MULL_TRANSPORT_VERSION,
    .scheme = "quay",
    .open = quay_open,
    .subscribe = quay_subscribe,
    .credit = quay_credit,
    .publish = quay_publish,
    .settle = quay_settle,
    .depth = quay_depth,
    .release = quay_release,
    .close = quay_close,
};

/* ---- All that a call may need ---------------------------------------------------------------- */

typedef struct stage {
    desk desk;
    quay quay;
    int64_t now_ms;
    mull_clock clock;
    mull_engine *engine;
    mull_allocator allocator;
    mull_call call;
    int answers, refused, fired, closed;
    char said[128]; /* the last line of its log */
} stage;

static inline int64_t quay_now(void *data)
{
    return ((stage *)data)->now_ms;
}

static inline void quay_log(mull_level level, const char *text, void *data)
{
    stage *s = data;
    (void)level;
    snprintf(s->said, sizeof s->said, "%s", text);
}

static inline void quay_keep_call(mull_engine *engine, mull_call call, const mull_message *message,
                                  void *data)
{
    (void)engine;
    (void)message;
    ((stage *)data)->call = call;
}

static inline mull_engine_options quay_engine_options(stage *s)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    s->clock = (mull_clock){quay_now, quay_now, s};
    options.policy = s->desk.policy;
    options.clock = &s->clock;
    options.log = quay_log;
    options.data = s;
    options.seed = 1;
    options.allocator = s->allocator;
    return options;
}

static inline mull_engine *quay_engine(stage *s)
{
    const mull_engine_options options = quay_engine_options(s);
    mull_engine *engine;
    assert_int_equal(mull_engine_new(&engine, &options), 0);
    return engine;
}

static inline void quay_make_delivery(quay *q)
{
    q->delivery = (mull_delivery){.message = MULL_INIT(mull_message)};
    q->delivery.message.deliveries = 1;
    q->delivery.message.id = "m";
    q->delivery.subscription = q->subscription;
}

static inline void quay_stage_open_with(stage *s, mull_allocator allocator)
{
    *s = (stage){.now_ms = 1, .allocator = allocator};
    desk_open(&s->desk);
    s->engine = quay_engine(s);
    assert_int_equal(mull_engine_scheme(s->engine, &quay_ops, &s->quay), 0);
    assert_int_equal(mull_engine_transport(s->engine, "t", "quay:"), 0);
    const mull_consumer_options consumer = rig_consumer(quay_keep_call, s);
    assert_int_equal(mull_engine_consumer(s->engine, &consumer), 0);
    assert_int_equal(mull_engine_start(s->engine), 0);
    quay_make_delivery(&s->quay);
}

static inline void quay_stage_open(stage *s)
{
    quay_stage_open_with(s, (mull_allocator){0});
}

/* quay_answer answers what a closing engine waits for; until then its loop runs within
 * mull_engine_close, so that this has to be a timer of it. */
static inline void quay_answer(void *data)
{
    stage *s = data;
    if (s->quay.settling)
        mull_port_settled(s->quay.port, &s->quay.delivery, 0);
    s->quay.settling = 0;
    if (s->quay.closes) {
        s->quay.closes = 0;
        mull_port_closed(s->quay.port);
        return;
    }
    assert_non_null(mull_port_after(s->quay.port, 0, quay_answer, s));
}

static inline void quay_close_engine(stage *s)
{
    if (!s->engine)
        return;
    if (s->call)
        mull_done(s->engine, s->call, NULL);
    if (s->quay.publishing)
        mull_port_published(s->quay.port, s->quay.publishing, 0);
    if (s->quay.asking)
        mull_port_depth(s->quay.port, s->quay.asking, MULL_EIO, NULL);
    assert_non_null(mull_port_after(s->quay.port, 0, quay_answer, s));
    mull_engine_close(s->engine, NULL, NULL);
    s->engine = NULL;
}

static inline void quay_stage_close(stage *s)
{
    quay_close_engine(s);
    desk_close(&s->desk);
}

static inline void quay_begin_call(stage *s)
{
    if (s->call)
        return;
    mull_port_delivered(s->quay.port, &s->quay.delivery);
    mull_engine_turn(s->engine);
    assert_true(s->call != 0);
}

#endif
