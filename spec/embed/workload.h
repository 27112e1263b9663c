/* workload.h: messages of every kind, the handlers that work on them however short memory is, and
 * the book of what became of each: for tests in which nothing may get lost. */
#ifndef SPEC_WORKLOAD_H
#define SPEC_WORKLOAD_H

#include "counting_allocator.h"
#include "test_engine.h"

/* one is a message, and what became of it. */
typedef struct one {
    const char *id;
    int taken, safe, refused;          /* by publish */
    int done, dropped, buried, sequel; /* its ends, and what its handler sent */
} one;

/* work is a call that isn't ended yet: for want of memory, or since its handler just stands. */
typedef struct work {
    mull_call call; /* 0: none */
    const char *type;
    one *of;
    int sent, stands;
} work;

/* The last of the messages is "kept", whose handler never ends by itself. */
enum { MESSAGES = 8, KEPT = MESSAGES - 1, WORKS = 8 };

typedef struct workload {
    mull_engine *engine;
    one all[MESSAGES];
    work works[WORKS];
    int stopped, closed;
} workload;

static inline one *workload_find(workload *l, const char *id)
{
    for (int i = 0; i < MESSAGES; i++)
        if (strcmp(l->all[i].id, id) == 0)
            return &l->all[i];
    fail_msg("a message %s was never published", id);
    return NULL;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* workload_error: each one is large, so that a copy of it takes much. */
static inline mull_error workload_error(const char *type)
{
    static char stack[8000];
    static const mull_field fields[] = {{"code", {.kind = MULL_INTEGER, .as.integer = 7}},
                                        {"text", {.kind = MULL_STRING, .as.string = "value"}}};
    memset(stack, 's', sizeof stack - 1);
    mull_error error = MULL_INIT(mull_error);
    error.type = type;
    error.stack = stack;
    error.fields = fields;
    error.field_count = 2;
    return error;
}

/* workload_work does what is left of a call; what finds no memory is tried again later. */
static inline void workload_work(workload *l, work *w)
{
    mull_message out = MULL_INIT(mull_message);
    out.queue = "sequels";
    out.id = w->of->id;
    if (w->stands)
        return;
    int status = w->sent ? 0 : mull_send(l->engine, w->call, &out, 0);
    if (status == MULL_ENOMEM)
        return;
    assert_int_equal(status, 0);
    w->sent = 1;
    mull_error error = workload_error(w->type ? w->type : "-");
    status = mull_done(l->engine, w->call, w->type ? &error : NULL);
    if (status == MULL_ENOMEM && w->type)
        return;
    assert_int_equal(status, 0);
    w->of->done += !w->type;
    w->call = 0;
}

static inline void workload_go_on(workload *l)
{
    for (int i = 0; i < WORKS; i++)
        if (l->works[i].call)
            workload_work(l, &l->works[i]);
}

static inline const char *workload_type(const mull_message *message)
{
    switch (message->id[0]) {
    case 'p':
        return message->attempt < 3 ? "Passing" : NULL;
    case 's':
        return message->redeliveries == 0 ? "Slow" : NULL;
    case 'd':
        return strcmp(message->id, "dropped") == 0 ? "Dropped" : "Deadly";
    default:
        return NULL;
    }
}

/* workload_assert_whole: nothing of what was published is missing. */
static inline void workload_assert_whole(const mull_message *message)
{
    int tenants = 0;
    for (size_t i = 0; i < message->header_count; i++)
        tenants += strcmp(message->headers[i].name, "tenant") == 0 &&
                   strcmp(message->headers[i].value, "acme") == 0;
    assert_int_equal(tenants, 1);
    assert_string_equal(message->type, "Kind");
    assert_string_equal(message->key, "key");
    assert_int_equal(message->body_size, 4);
    assert_memory_equal(message->body, "body", 4);
}

static inline void workload_handle(mull_engine *engine, mull_call call, const mull_message *message,
                                   void *data)
{
    (void)engine;
    workload *l = data;
    workload_assert_whole(message);
    work *w = l->works;
    while (w < l->works + WORKS && w->call)
        w++;
    assert_true(w < l->works + WORKS);
    *w = (work){.call = call, .type = workload_type(message), .of = workload_find(l, message->id)};
    w->stands = strcmp(message->id, "kept") == 0 ||
                (strcmp(message->id, "late") == 0 && message->attempt == 1);
    workload_work(l, w);
}

static inline void workload_cancel(mull_engine *engine, mull_call call, void *data)
{
    workload *l = data;
    for (int i = 0; i < WORKS; i++)
        if (l->works[i].call == call)
            l->works[i].call = 0;
    assert_int_equal(mull_done(engine, call, NULL), MULL_EDONE);
}

static inline void workload_take_sequel(mull_engine *engine, mull_call call,
                                        const mull_message *message, void *data)
{
    workload_find(data, message->id)->sequel++;
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

static inline void workload_take_dead(mull_engine *engine, mull_call call,
                                      const mull_message *message, void *data)
{
    workload_assert_whole(message);
    workload_find(data, message->id)->buried++;
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

/* ---- Setting up ------------------------------------------------------------------------------ */

static inline void workload_on_stopped(void *data)
{
    ((workload *)data)->stopped++;
}

static inline void workload_on_closed(void *data)
{
    ((workload *)data)->closed++;
}

static inline void workload_on_event(const mull_event *event, void *data)
{
    if (event->kind == MULL_EVENT_DECIDED && event->verdict->action == MULL_DISCARD)
        workload_find(data, event->failure->message->id)->dropped++;
}

static inline int workload_consume(workload *l, const char *name, const char *queue,
                                   mull_handler handler, int64_t timeout_ms)
{
    mull_consumer_options options = test_engine_consumer(handler, l);
    options.name = name;
    options.queue = queue;
    options.cancel = workload_cancel;
    options.concurrency = 3;
    options.timeout_ms = timeout_ms;
    return mull_consumer_add(l->engine, &options);
}

static inline void workload_open(workload *l)
{
    static const char *const ids[MESSAGES] = {"good", "passing", "slow", "deadly",
                                              "late", "dropped", "easy", "kept"};
    *l = (workload){0};
    for (int i = 0; i < MESSAGES; i++)
        l->all[i].id = ids[i];
}

/* workload_set_up makes and starts the engine. What it fails for is memory. */
static inline int workload_set_up(workload *l, mull_engine_options *options, const char *url,
                                  int64_t timeout_ms)
{
    options->stopped = workload_on_stopped;
    options->event = workload_on_event;
    options->data = l;
    options->seed = 1;
    l->engine = (mull_engine *)l; /* to be NULL where there is none */
    int status = mull_engine_new(&l->engine, options);
    if (status != 0)
        assert_null(l->engine);
    if (status == 0)
        status = mull_engine_transport(l->engine, "t", url);
    if (status == 0)
        status = workload_consume(l, "C", "q", workload_handle, timeout_ms);
    if (status == 0)
        status = workload_consume(l, "Sequels", "sequels", workload_take_sequel, MULL_NEVER);
    if (status == 0)
        status = workload_consume(l, "Dead", "error", workload_take_dead, MULL_NEVER);
    if (status == 0)
        status = mull_engine_start(l->engine);
    assert_true(status == 0 || status == MULL_ENOMEM);
    return status == 0;
}

/* ---- Publishing ------------------------------------------------------------------------------ */

static inline void workload_on_published(int status, void *data)
{
    one *of = data;
    assert_true(status == 0 || status == MULL_ENOMEM);
    of->safe += status == 0;
    of->refused += status != 0;
}

static inline void workload_publish(workload *l, one *of)
{
    const mull_header headers[] = {{"mulligan-calls", "no number"}, {"tenant", "acme"}};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = of->id;
    message.type = "Kind";
    message.key = "key";
    message.body = "body";
    message.body_size = 4;
    message.headers = headers;
    message.header_count = 2;
    int status = mull_publish(l->engine, "t", &message, 0, workload_on_published, of);
    assert_true(status == 0 || status == MULL_ENOMEM);
    of->taken = status == 0;
}

/* workload_publish_most publishes all but the one that is kept. */
static inline void workload_publish_most(workload *l)
{
    for (int i = 0; i < KEPT; i++)
        workload_publish(l, &l->all[i]);
}

/* ---- The book -------------------------------------------------------------------------------- */

static inline int workload_ends(const one *of)
{
    return of->done + of->dropped + of->buried;
}

static inline mull_counts workload_counts(const workload *l)
{
    mull_counts counts = MULL_INIT(mull_counts);
    assert_int_equal(mull_engine_counts(l->engine, &counts), 0);
    return counts;
}

/* workload_assert_ended: each of those published has come to exactly one end. */
static inline void workload_assert_ended(const workload *l)
{
    uint64_t done = 0, dropped = 0, buried = 0;
    for (int i = 0; i < KEPT; i++) {
        const one *of = &l->all[i];
        assert_int_equal(of->safe + of->refused, of->taken);
        assert_int_equal(workload_ends(of), of->safe);
        assert_int_equal(of->sequel, of->done);
        done += (uint64_t)(of->done + of->sequel + of->buried);
        dropped += (uint64_t)of->dropped;
        buried += (uint64_t)of->buried;
    }
    mull_counts counts = workload_counts(l);
    assert_int_equal(counts.done, done);
    assert_int_equal(counts.discarded, dropped);
    assert_int_equal(counts.dead_lettered, buried);
}

/* workload_assert_planned: ... and to the one meant for it. */
static inline void workload_assert_planned(workload *l)
{
    static const char *const done[] = {"good", "passing", "slow", "late", "easy"};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++)
        assert_int_equal(workload_find(l, done[i])->done, 1);
    assert_int_equal(workload_find(l, "dropped")->dropped, 1);
    assert_int_equal(workload_find(l, "deadly")->buried, 1);
    mull_counts counts = workload_counts(l);
    assert_int_equal(counts.retried, 3);
    assert_int_equal(counts.redelivered, 1);
}

/* workload_assert_once: none of them ended twice. */
static inline void workload_assert_once(const workload *l)
{
    for (int i = 0; i < MESSAGES; i++)
        assert_in_range(workload_ends(&l->all[i]), 0, 1);
}

#endif
