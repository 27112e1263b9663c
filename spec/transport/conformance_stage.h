/* conformance_stage.h: what the cases of conformance.c stand on: an engine, its transport, a clock.
 *
 *   case ── put, settle, wait ──> engine ── ops of the suite ──> ops of the transport
 *     ^                             ^            │                       │
 *     │                             └────────────┼── mull_port_... ──────┘
 *     └── what is out: kept by `settle` <────────┘
 *
 * Each message's handler succeeds at once, so that the engine asks for its settlement, which is
 * kept unanswered. What a case asks in its place goes with the ticket of a message that the engine
 * publishes for that: its answer is the settlement's.
 */
#ifndef MULLIGAN_CONFORMANCE_STAGE_H
#define MULLIGAN_CONFORMANCE_STAGE_H

#include <mulligan/conformance.h>

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    OUT_MAX = 64,
    CONCURRENCY = 16,
    PREFETCH = 1,
    SECOND_MS = 1000,
    PATIENCE_MS = 10 * SECOND_MS,
    CONNECT_MS = 60 * SECOND_MS,
    TRIES = 10
};

#define QUEUE "conformance"
#define NEXT  "conformance-next"
#define DEAD  "conformance-dead"

static const char scheme[] = "conformance";
static const int64_t begin_ms = INT64_C(1700000000000);

/* ---- The stage ------------------------------------------------------------------------------- */

/* held is a delivery that is out, whose settlement the engine waits for. */
typedef struct held {
    mull_delivery *delivery;
    mull_ticket ticket;
    int64_t wall_ms; /* when it came */
} held;

typedef struct stage {
    const mull_conformance_options *options;
    const mull_transport_ops *ops;
    char url[2048], prefixed[2048 + sizeof scheme];
    mull_abilities can;
    mull_policy *policy;
    mull_engine *engine;
    mull_port *port;
    void *self;
    mull_clock clock;
    _Atomic int64_t passed_ms; /* by a test's clock */

    held out[OUT_MAX]; /* in the order in which they came */
    size_t out_count;
    mull_delivery *abandoned[OUT_MAX]; /* released when closing begins */
    size_t abandoned_count;
    held ending[OUT_MAX]; /* acknowledged just before these are released */
    size_t ending_count;
    mull_settlement ack; /* of these */

    void *subscription; /* the last one */
    uint32_t most, limit;
    int ignore_hold;

    const mull_settlement *instead; /* of the next message that is published */
    mull_delivery *of;

    int was_up, expects_trouble;
    char complaint[256]; /* the first error in the engine's log */
    char text[768];
} stage;

static stage *on_stage; /* the ops have no other way to it: their data is the transport's own */

static int fail(stage *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (!s->text[0])
        vsnprintf(s->text, sizeof s->text, format, arguments);
    va_end(arguments);
    return 0;
}

#define EXPECT(condition, ...)                                                                     \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return fail(s, __VA_ARGS__);                                                           \
    } while (0)

/* TRY is for what says itself why it failed. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        if (!(call))                                                                               \
            return 0;                                                                              \
    } while (0)

/* ---- The ops of the suite -------------------------------------------------------------------- */

static int suite_look(const char *url, const char *queue, mull_abilities *floor, char *why,
                      size_t why_size)
{
    return on_stage->ops->look(url + sizeof scheme, queue, floor, why, why_size);
}

static int suite_open(void **self, mull_port *port, const char *url, char *why, size_t why_size)
{
    on_stage->port = port;
    int status = on_stage->ops->open(self, port, url + sizeof scheme, why, why_size);
    on_stage->self = status == 0 ? *self : NULL;
    return status;
}

static int suite_subscribe(void *self, mull_ticket consumer, const mull_source *source,
                           void **subscription)
{
    on_stage->most = source->most;
    int status = on_stage->ops->subscribe(self, consumer, source, subscription);
    on_stage->subscription = status == 0 ? *subscription : NULL;
    return status;
}

static void suite_credit(void *self, void *subscription, uint32_t deliveries)
{
    stage *s = on_stage;
    uint32_t most = s->limit < s->most ? s->limit : s->most; /* what is settled here stays out */
    s->ops->credit(self, subscription, deliveries ? most : 0);
}

static void suite_unsubscribe(void *self, void *subscription)
{
    if (subscription == on_stage->subscription)
        on_stage->subscription = NULL;
    on_stage->ops->unsubscribe(self, subscription);
}

static int suite_publish(void *self, const mull_outgoing *outgoing, mull_ticket ticket)
{
    stage *s = on_stage;
    if (!s->instead)
        return s->ops->publish(self, outgoing, ticket);
    const mull_settlement *instead = s->instead;
    s->instead = NULL;
    s->ops->settle(self, s->of, instead, ticket);
    return 0;
}

static void suite_settle(void *self, mull_delivery *delivery, const mull_settlement *settlement,
                         mull_ticket ticket)
{
    stage *s = on_stage;
    if (s->out_count == OUT_MAX) {
        s->ops->settle(self, delivery, settlement, ticket);
        fail(s, "more messages came than were published");
        return;
    }
    s->out[s->out_count++] = (held){delivery, ticket, mull_port_wall(s->port)};
}

static int suite_depth(void *self, const char *queue, mull_ticket ticket)
{
    return on_stage->ops->depth(self, queue, ticket);
}

static void suite_release(void *self, mull_delivery *delivery)
{
    for (size_t i = 0; i < on_stage->abandoned_count; i++)
        if (on_stage->abandoned[i] == delivery)
            return;
    on_stage->ops->release(self, delivery);
}

static void suite_close(void *self, int64_t drain_ms)
{
    stage *s = on_stage;
    for (size_t i = 0; i < s->ending_count; i++)
        s->ops->settle(self, s->ending[i].delivery, &s->ack, s->ending[i].ticket);
    for (size_t i = 0; i < s->abandoned_count; i++)
        s->ops->release(self, s->abandoned[i]); /* `close` may be the transport's end */
    s->abandoned_count = s->ending_count = 0;
    s->ops->close(self, drain_ms);
    s->self = NULL;
}

static void suite_hold(void *self, void *subscription)
{
    if (!on_stage->ignore_hold)
        on_stage->ops->hold(self, subscription);
}

static void suite_flush(void *self)
{
    if (on_stage->ops->flush)
        on_stage->ops->flush(self);
}

static mull_transport_ops suite_ops = {
    .size = sizeof(mull_transport_ops),
    .version = MULL_TRANSPORT_VERSION,
    .scheme = scheme,
    .look = suite_look,
    .open = suite_open,
    .subscribe = suite_subscribe,
    .credit = suite_credit,
    .unsubscribe = suite_unsubscribe,
    .publish = suite_publish,
    .settle = suite_settle,
    .release = suite_release,
    .close = suite_close,
    .flush = suite_flush,
};

/* ---- Time ------------------------------------------------------------------------------------ */

static int64_t read_clock(clockid_t which)
{
    struct timespec time;
    clock_gettime(which, &time);
    return (int64_t)time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

static int64_t monotonic_ms(void *data)
{
    stage *s = data;
    return s->options->real_time ? read_clock(CLOCK_MONOTONIC) : 1 + atomic_load(&s->passed_ms);
}

static int64_t wall_ms(void *data)
{
    stage *s = data;
    return s->options->real_time ? read_clock(CLOCK_REALTIME)
                                 : begin_ms + atomic_load(&s->passed_ms);
}

/* pass lets so much time go by. */
static void pass(stage *s, int64_t ms)
{
    const struct timespec nap = {.tv_nsec = 1000000};
    int64_t now_ms = monotonic_ms(s), target_ms = now_ms + ms;
    for (int64_t next_ms; (next_ms = mull_engine_turn(s->engine)), now_ms < target_ms;) {
        if (s->options->real_time)
            nanosleep(&nap, NULL);
        else if (next_ms > now_ms)
            atomic_fetch_add(&s->passed_ms, (next_ms < target_ms ? next_ms : target_ms) - now_ms);
        now_ms = monotonic_ms(s);
    }
}

/* came waits until so many messages are out, and no longer. */
static int came(stage *s, size_t count)
{
    mull_engine_turn(s->engine);
    for (int64_t ms = 0; s->out_count < count && ms < PATIENCE_MS; ms += 10)
        pass(s, 10);
    EXPECT(s->out_count >= count, "%zu of %zu messages came", s->out_count, count);
    return 1;
}

/* out_are says whether just so many are out, and no more come. */
static int out_are(stage *s, size_t count)
{
    TRY(came(s, count));
    pass(s, s->options->real_time ? 500 : SECOND_MS);
    EXPECT(s->out_count == count, "%zu messages are out where %zu should be", s->out_count, count);
    return 1;
}

/* ---- Opening and closing --------------------------------------------------------------------- */

/* on_log keeps the first error: what a transport may not do is logged as one. That it isn't up yet
 * is no error. */
static void on_log(mull_level level, const char *text, void *data)
{
    stage *s = data;
    if (level == MULL_ERROR_LEVEL && s->was_up && !s->expects_trouble && !s->complaint[0])
        snprintf(s->complaint, sizeof s->complaint, "%s", text);
}

static void on_problem(const char *file, int line, const char *text, void *data)
{
    (void)file;
    (void)line;
    fail(data, "%s", text);
}

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)message;
    (void)data;
    mull_done(engine, call, NULL);
}

/* read_queue adds a consumer. */
static int read_queue(stage *s, const char *name, const char *queue)
{
    mull_consumer_options consumer = MULL_INIT(mull_consumer_options);
    consumer.name = name;
    consumer.transport = "t";
    consumer.queue = queue;
    consumer.handler = handle;
    consumer.concurrency = CONCURRENCY;
    consumer.prefetch = PREFETCH;
    int status = mull_consumer_add(s->engine, &consumer);
    EXPECT(status == 0, "no consumer can be added: %s", mull_strerror(status));
    return 1;
}

static mull_health health_of(stage *s, char *why, size_t size)
{
    mull_snapshot *snapshot = NULL;
    mull_health health = MULL_DOWN;
    if (mull_engine_snapshot(s->engine, &snapshot) == 0) {
        health = snapshot->transports[0]->health;
        snprintf(why, size, "%s",
                 snapshot->transports[0]->why ? snapshot->transports[0]->why : "no reason given");
    }
    mull_snapshot_free(snapshot);
    return health;
}

/* is_up waits until the transport is. */
static int is_up(stage *s)
{
    char why[256] = "";
    mull_engine_turn(s->engine);
    for (int64_t ms = 0; health_of(s, why, sizeof why) != MULL_UP; ms += 100) {
        EXPECT(ms < CONNECT_MS, "it isn't up after %d s: %s", CONNECT_MS / SECOND_MS, why);
        pass(s, 100);
    }
    s->was_up = 1;
    return 1;
}

/* is_read waits until the subscription of a consumer is ready. */
static int is_read(stage *s, const char *consumer)
{
    mull_why_not why = MULL_WHY_QUEUE_WAITING;
    for (int64_t ms = 0; ms < PATIENCE_MS && why == MULL_WHY_QUEUE_WAITING; ms += 10) {
        pass(s, 10);
        mull_consumer_why_not(s->engine, consumer, &why);
    }
    EXPECT(why != MULL_WHY_QUEUE_WAITING && why != MULL_WHY_QUEUE_REFUSED,
           "the queue isn't read: %s", mull_why_not_name(why));
    return 1;
}

/* is waits until the transport is so. */
static int is(stage *s, mull_health health)
{
    char why[256] = "";
    for (int64_t ms = 0; ms < CONNECT_MS; ms += 100) {
        if (health_of(s, why, sizeof why) == health)
            return 1;
        pass(s, 100);
    }
    return fail(s, "it doesn't say that it is %s", mull_health_name(health));
}

static int new_engine(stage *s)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = s->policy;
    options.clock = &s->clock;
    options.log = on_log;
    options.problem = on_problem;
    options.data = s;
    options.seed = 1;
    suite_ops.hold = s->ops->hold ? suite_hold : NULL;
    suite_ops.depth = s->ops->depth ? suite_depth : NULL;
    int status = mull_engine_new(&s->engine, &options);
    if (status == 0)
        status = mull_engine_scheme(s->engine, &suite_ops, s->options->ops_data);
    if (status == 0)
        status = mull_engine_transport(s->engine, "t", s->prefixed);
    EXPECT(status == 0, "it can't be opened: %s", mull_strerror(status));
    return 1;
}

/* begin opens the place and reads QUEUE with at most this credit. */
static int begin(stage *s, uint32_t limit)
{
    s->limit = limit;
    TRY(new_engine(s));
    TRY(read_queue(s, "C", QUEUE));
    int status = mull_engine_start(s->engine);
    EXPECT(status == 0, "it doesn't start: %s", mull_strerror(status));
    TRY(is_up(s));
    return is_read(s, "C");
}

/* leave closes it with all that is out, unsettled. */
static void leave(stage *s)
{
    held out[OUT_MAX];
    size_t count = s->out_count;
    memcpy(out, s->out, sizeof out);
    s->out_count = 0;
    s->limit = 0;
    if (s->self && s->subscription)
        s->ops->credit(s->self, s->subscription, 0);
    for (size_t i = 0; i < count; i++) {
        s->abandoned[s->abandoned_count++] = out[i].delivery;
        mull_port_answer(s->port, out[i].ticket, MULL_ELOST, NULL);
    }
    mull_engine_close(s->engine, NULL, NULL);
    s->engine = NULL;
    s->was_up = 0;
    s->subscription = NULL;
    s->out_count = 0;
}

static int begin_again(stage *s, uint32_t limit)
{
    leave(s);
    return begin(s, limit);
}

static void limit_to(stage *s, uint32_t limit)
{
    s->limit = limit;
    s->ops->credit(s->self, s->subscription, limit);
    if (s->ops->flush)
        s->ops->flush(s->self);
}

/* ---- Asking ---------------------------------------------------------------------------------- */

/* told is an answer, and how often it came. */
typedef struct told {
    int count, status;
    mull_depth depth;
} told;

static void on_told(int status, void *data)
{
    told *t = data;
    t->count++;
    t->status = status;
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    on_told(status, data);
    ((told *)data)->depth = *depth;
}

/* wait_for gives the status of an answer; an engine ends what is never answered after a minute. */
static int wait_for(stage *s, const told *t)
{
    for (int64_t ms = 0; t->count == 0 && ms < 2 * CONNECT_MS; ms += 10)
        pass(s, 10);
    return t->count == 0 ? MULL_EIO : t->status;
}

static mull_message message_of(const char *queue, const char *id)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    message.id = id;
    return message;
}

static int put_message(stage *s, const mull_message *message, int64_t delay_ms)
{
    told t = {0};
    int status = mull_publish(s->engine, "t", message, delay_ms, on_told, &t);
    if (status == 0)
        status = wait_for(s, &t);
    EXPECT(status == 0, "a message can't be published: %s", mull_strerror(status));
    return 1;
}

/* put publishes a message for each letter. */
static int put(stage *s, const char *queue, const char *letters)
{
    for (; *letters; letters++) {
        const char id[] = {*letters, 0};
        const mull_message message = message_of(queue, id);
        TRY(put_message(s, &message, 0));
    }
    return 1;
}

static mull_settlement settlement_of(mull_settle_kind kind, const char *queue)
{
    mull_settlement settlement = MULL_INIT(mull_settlement);
    settlement.kind = kind;
    settlement.queue = queue;
    settlement.id = "given";
    settlement.consumer = "C";
    settlement.as_it_came = kind == MULL_SETTLE_GIVE_BACK;
    return settlement;
}

static int ask_settle(stage *s, const held *h, const mull_settlement *settlement)
{
    const mull_message carrier = message_of(QUEUE, "carrier");
    told t = {0};
    s->instead = settlement;
    s->of = h->delivery;
    int status = mull_publish(s->engine, "t", &carrier, 0, on_told, &t);
    status = status ? status : wait_for(s, &t);
    s->instead = NULL;
    return status;
}

/* try_settle settles a delivery, which is not out any more, and gives the answer. What fails is
 * asked again, as the engine does. */
static int try_settle(stage *s, size_t at, const mull_settlement *settlement)
{
    held h = s->out[at];
    int status = ask_settle(s, &h, settlement);
    for (int tries = 1; tries < TRIES && status && status != MULL_ELOST && status != MULL_EREFUSED;
         tries++) {
        pass(s, SECOND_MS);
        status = ask_settle(s, &h, settlement);
    }
    if ((status != 0 && status != MULL_ELOST) || settlement->kind == MULL_SETTLE_NOTE)
        return status;
    memmove(&s->out[at], &s->out[at + 1], (--s->out_count - at) * sizeof h);
    mull_port_answer(s->port, h.ticket, status, NULL);
    mull_engine_turn(s->engine);
    return status;
}

static int settle_as(stage *s, size_t at, const mull_settlement *settlement)
{
    int status = try_settle(s, at, settlement);
    EXPECT(status == 0, "a settlement isn't carried out: %s", mull_strerror(status));
    return 1;
}

static int settle(stage *s, size_t at, mull_settle_kind kind)
{
    const mull_settlement settlement = settlement_of(kind, QUEUE);
    return settle_as(s, at, &settlement);
}

static int ask_depth(stage *s, const char *queue, mull_depth *depth)
{
    told t = {0};
    int status = mull_queue_depth(s->engine, "t", queue, on_depth, &t);
    if (status == 0)
        status = wait_for(s, &t);
    EXPECT(status == 0, "no depth is told: %s", mull_strerror(status));
    *depth = t.depth;
    return 1;
}

/* counted holds a depth against numbers, where it is exact. */
static int counted(stage *s, const char *queue, uint64_t ready, uint64_t delayed, uint64_t claimed)
{
    mull_depth depth;
    if (s->can.depth != MULL_DEPTH_EXACT)
        return 1;
    TRY(ask_depth(s, queue, &depth));
    EXPECT(depth.ready == ready && depth.delayed == delayed && depth.claimed == claimed,
           "%s has %llu ready, %llu delayed, %llu claimed; not %llu, %llu, %llu", queue,
           (unsigned long long)depth.ready, (unsigned long long)depth.delayed,
           (unsigned long long)depth.claimed, (unsigned long long)ready,
           (unsigned long long)delayed, (unsigned long long)claimed);
    return 1;
}

/* ---- Looking at messages --------------------------------------------------------------------- */

static const mull_message *at(const stage *s, size_t index)
{
    return s->out[index].delivery->message;
}

static int same(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static const char *header(const mull_message *message, const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < message->header_count; i++)
        if (strcmp(message->headers[i].name, name) == 0)
            value = message->headers[i].value;
    return value;
}

/* ids_are compares the ids of what is out, a letter each. */
static int ids_are(stage *s, const char *letters)
{
    char ids[OUT_MAX + 1] = "";
    TRY(came(s, strlen(letters)));
    for (size_t i = 0; i < s->out_count; i++)
        ids[i] = at(s, i)->id ? at(s, i)->id[0] : '-';
    EXPECT(strcmp(ids, letters) == 0, "messages came as %s, not as %s", ids, letters);
    return 1;
}

/* delivered_as holds the count of a message against what `deliveries` promises: `owners` had it,
 * and it was handed out `times`. Where nothing is counted, nobody looks at it. */
static int delivered_as(stage *s, const mull_message *message, int64_t owners, int64_t times)
{
    int64_t count = message->deliveries;
    int64_t least = s->can.deliveries == MULL_COUNTS_DEATHS ? owners : 1;
    int64_t most = s->can.deliveries == MULL_COUNTS_HANDOUTS ? times : owners;
    if (s->can.deliveries == MULL_COUNTS_NOTHING)
        return 1;
    EXPECT(count >= least && count <= most, "deliveries is %lld, not %lld to %lld",
           (long long)count, (long long)least, (long long)most);
    return 1;
}

/* was_on_time holds a message's coming against when it was due. */
static int was_on_time(stage *s, const held *h, int64_t due_ms)
{
    int64_t step_ms = s->can.delay_step_ms > 1 ? s->can.delay_step_ms : 1;
    int64_t late_ms = h->wall_ms - due_ms;
    EXPECT(late_ms >= 0, "a message came %lld ms early", (long long)-late_ms);
    EXPECT(late_ms <= step_ms + (s->options->real_time ? PATIENCE_MS : 0),
           "a message came %lld ms late", (long long)late_ms);
    return 1;
}

/* ---- A message with everything --------------------------------------------------------------- */

static const mull_header foreign[] = {{"plain", "value"},
                                      {"empty", ""},
                                      {"na\xc3\xafve", "\xe6\x9d\xb1 \"'\\ \xf0\x9f\x98\x80"},
                                      {"mulligan", "not one of ours"},
                                      {"replaced", "1"},
                                      {"mulligan-old", "1"}};
static const mull_header ours[] = {
    {"mulligan-new", "2"}, {"mulligan-text", "\"\xc3\xa9\""}, {"replaced", "2"}};

static mull_message full_message(const char *queue)
{
    static char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    mull_message message = message_of(queue, "m");
    message.type = "Type";
    message.key = "k\"'";
    message.body = bytes;
    message.body_size = sizeof bytes;
    message.headers = foreign;
    message.header_count = sizeof foreign / sizeof *foreign;
    return message;
}

static int has_headers(stage *s, const mull_message *message, const mull_header *headers,
                       size_t count)
{
    for (size_t i = 0; i < count; i++)
        EXPECT(same(header(message, headers[i].name), headers[i].value),
               "the header '%s' isn't as it was", headers[i].name);
    return 1;
}

/* is_full holds all but the headers against full_message. */
static int is_full(stage *s, const mull_message *message)
{
    const mull_message full = full_message(QUEUE);
    EXPECT(same(message->id, full.id), "the id isn't as it was");
    EXPECT(same(message->type, full.type), "the type isn't as it was");
    EXPECT(same(message->key, full.key), "the key isn't as it was");
    EXPECT(message->body_size == full.body_size &&
               memcmp(message->body, full.body, full.body_size) == 0,
           "the body isn't as it was");
    return 1;
}

/* is_copy holds a copy against full_message with `ours`. */
static int is_copy(stage *s, const mull_message *copy)
{
    const size_t foreign_count = sizeof foreign / sizeof *foreign - 2;
    const size_t our_count = sizeof ours / sizeof *ours;
    TRY(is_full(s, copy));
    TRY(has_headers(s, copy, foreign, foreign_count));
    TRY(has_headers(s, copy, ours, our_count));
    EXPECT(!header(copy, "mulligan-old"), "a header of ours is there that was replaced");
    EXPECT(copy->header_count == foreign_count + our_count, "a copy has headers more than once");
    return delivered_as(s, copy, 1, 1);
}

/* full_came puts full_message on the queue, and it comes. */
static int full_came(stage *s)
{
    const mull_message full = full_message(QUEUE);
    TRY(put_message(s, &full, 0));
    return came(s, 1);
}

/* add_ours has a settlement's copy come with `ours`. */
static void add_ours(mull_settlement *settlement)
{
    settlement->ours = ours;
    settlement->our_count = sizeof ours / sizeof *ours;
}

#endif
