/* memory.c: an engine on memory: whose n-th request for memory is refused, for every n: once, for a
 * while, and for good until it is had again, or never is. Nothing crashes, nothing is left in
 * memory; what was published comes to exactly one end once there is memory, what its handler sent
 * is there exactly once where it succeeded; and where there never is any, a stop and a close end
 * all the same. */
#include "purse.h"
#include "rig.h"

#include <unistd.h>

#define FOR_GOOD (1L << 40)

static const char policy_text[] =
    "local policy = require 'mulligan.policy'\n"
    "policy.bus():on('Passing'):retry(3, '1s')\n"
    "policy.bus():on('Slow'):redeliver(1, '1m')\n"
    "policy.bus():on('Dropped'):discard()\n"
    "policy.bus():on('HandlerTimeoutError'):retry(100, '1s', 'constant'):then_redeliver(100)\n"
    "policy.consumer('Dead'):dead_letter_queue('nowhere')\n";

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

enum { MESSAGES = 8, LAST = MESSAGES - 1, WORKS = 8 };

typedef struct life {
    rig rig;
    one all[MESSAGES];
    work works[WORKS];
    int stopped, closed;
} life;

static one *find(life *l, const char *id)
{
    for (int i = 0; i < MESSAGES; i++)
        if (strcmp(l->all[i].id, id) == 0)
            return &l->all[i];
    fail_msg("a message %s was never published", id);
    return NULL;
}

/* ---- Handlers -------------------------------------------------------------------------------- */

/* error_of: each one is large, so that a copy of it takes much. */
static mull_error error_of(const char *type)
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

/* go_on does what is left of a call; what finds no memory is tried again later. */
static void go_on(life *l, work *w)
{
    mull_message out = MULL_INIT(mull_message);
    out.queue = "sequels";
    out.id = w->of->id;
    if (w->stands)
        return;
    if (!w->sent) {
        int status = mull_send(l->rig.engine, w->call, &out, 0);
        if (status == MULL_ENOMEM)
            return;
        assert_int_equal(status, 0);
        w->sent = 1;
    }
    mull_error error = error_of(w->type ? w->type : "-");
    int status = mull_done(l->rig.engine, w->call, w->type ? &error : NULL);
    if (status == MULL_ENOMEM && w->type)
        return;
    assert_int_equal(status, 0);
    w->of->done += !w->type;
    w->call = 0;
}

static const char *type_for(const mull_message *message)
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

static void handle(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    (void)engine;
    life *l = data;
    work *w = l->works;
    while (w->call)
        w++;
    assert_true(w < l->works + WORKS);
    *w = (work){.call = call, .type = type_for(message), .of = find(l, message->id)};
    w->stands = strcmp(message->id, "kept") == 0 ||
                (strcmp(message->id, "late") == 0 && message->attempt == 1);
    go_on(l, w);
}

static void cancel(mull_engine *engine, mull_call call, void *data)
{
    life *l = data;
    work *w = l->works;
    while (w->call != call)
        w++;
    w->call = 0;
    assert_int_equal(mull_done(engine, call, NULL), MULL_EDONE);
}

static void take_sequel(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    find(data, message->id)->sequel++;
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

static void take_dead(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    find(data, message->id)->buried++;
    assert_int_equal(mull_done(engine, call, NULL), 0);
}

/* ---- A life ---------------------------------------------------------------------------------- */

static void on_stopped(void *data)
{
    ((life *)data)->stopped++;
}

static void on_closed(void *data)
{
    ((life *)data)->closed++;
}

static void on_event(const mull_event *event, void *data)
{
    if (event->kind == MULL_EVENT_DECIDED && event->verdict->action == MULL_DISCARD)
        find(data, event->failure->message->id)->dropped++;
}

static int consume(life *l, const char *name, const char *queue, mull_handler handler)
{
    mull_consumer_options options = rig_consumer(handler, l);
    options.name = name;
    options.queue = queue;
    options.cancel = cancel;
    options.concurrency = 3;
    return mull_engine_consumer(l->rig.engine, &options) == 0;
}

static int set_up(life *l, purse *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->rig.policy;
    options.clock = &l->rig.clock;
    options.stopped = on_stopped;
    options.event = on_event;
    options.data = l;
    options.seed = 1;
    options.allocator = purse_allocator(p);
    int status = mull_engine_new(&l->rig.engine, &options);
    assert_true(status == 0 || status == MULL_ENOMEM);
    return status == 0 && mull_engine_transport(l->rig.engine, "t", "memory:") == 0 &&
           consume(l, "C", "q", handle) && consume(l, "Sequels", "sequels", take_sequel) &&
           consume(l, "Dead", "error", take_dead) && mull_engine_start(l->rig.engine) == 0;
}

static void on_published(int status, void *data)
{
    one *of = data;
    of->safe += status == 0;
    of->refused += status != 0;
}

static void publish(life *l, one *of)
{
    const mull_header headers[] = {{"mulligan-calls", "no number"}, {"tenant", "acme"}};
    mull_message message = MULL_INIT(mull_message);
    message.queue = "q";
    message.id = of->id;
    message.body = "body";
    message.body_size = 4;
    message.headers = headers;
    message.header_count = 2;
    int status = mull_publish(l->rig.engine, "t", &message, 0, on_published, of);
    assert_true(status == 0 || status == MULL_ENOMEM);
    of->taken = status == 0;
}

/* pass lets time pass, and handlers go on with what they could not do before. */
static void pass(life *l, int64_t ms)
{
    enum { STEP_MS = 5000 };
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        for (int i = 0; i < WORKS; i++)
            if (l->works[i].call)
                go_on(l, &l->works[i]);
        rig_advance(&l->rig, STEP_MS);
    }
}

static int ends_of(const one *of)
{
    return of->done + of->dropped + of->buried;
}

static void assert_ended(const life *l)
{
    uint64_t done = 0, dropped = 0, buried = 0;
    for (int i = 0; i < LAST; i++) {
        const one *of = &l->all[i];
        assert_int_equal(of->safe + of->refused, of->taken);
        assert_int_equal(ends_of(of), of->safe);
        assert_int_equal(of->sequel, of->done);
        done += (uint64_t)(of->done + of->sequel + of->buried);
        dropped += (uint64_t)of->dropped;
        buried += (uint64_t)of->buried;
    }
    mull_counts counts = rig_counts(&l->rig);
    assert_int_equal(counts.done, done);
    assert_int_equal(counts.discarded, dropped);
    assert_int_equal(counts.dead_lettered, buried);
}

/* assert_planned: with all the memory that it wants, each of them comes to the end meant for it. */
static void assert_planned(life *l)
{
    static const char *const done[] = {"good", "passing", "slow", "late", "easy"};
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++)
        assert_int_equal(find(l, done[i])->done, 1);
    assert_int_equal(find(l, "dropped")->dropped, 1);
    assert_int_equal(find(l, "deadly")->buried, 1);
    mull_counts counts = rig_counts(&l->rig);
    assert_int_equal(counts.retried, 3);
    assert_int_equal(counts.redelivered, 1);
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    *(mull_depth *)data = *depth;
}

/* stop_with_one stops while a handler just stands, whose message is given back. */
static void stop_with_one(life *l, purse *p)
{
    one *kept = &l->all[LAST];
    publish(l, kept);
    pass(l, 5000);
    mull_stop(l->rig.engine);
    pass(l, 30000);
    assert_int_equal(l->stopped, 1);
    int was_short = p->fail_at && p->asked >= p->fail_at;
    p->fail_at = 0;
    mull_depth depth = {0};
    assert_int_equal(mull_queue_depth(l->rig.engine, "t", "q", on_depth, &depth), 0);
    mull_engine_turn(l->rig.engine);
    assert_int_equal(depth.ready + depth.claimed, kept->safe);
    if (!was_short)
        assert_int_equal(depth.ready, kept->safe);
}

/* end is how a life ends: with memory again, or without by a stop and a close, or a close alone. */
typedef enum end { HEALED, STOPPED, CLOSED } end;

static void live(life *l, purse *p, end how)
{
    int plenty = p->fail_at == 0;
    for (int i = 0; i < LAST; i++)
        publish(l, &l->all[i]);
    pass(l, 300000);
    if (how == HEALED && p->fail_for == FOR_GOOD && p->asked >= p->fail_at)
        p->fail_at = 0;
    pass(l, 900000);
    if (plenty)
        assert_planned(l);
    if (how == HEALED) {
        assert_ended(l);
        stop_with_one(l, p);
    } else if (how == STOPPED) {
        mull_stop(l->rig.engine);
        pass(l, 30000);
        assert_int_equal(l->stopped, 1);
    }
}

/* live_through runs the engine's whole life. 0: it could not be set up. */
static int live_through(purse *p, mull_policy *policy, end how)
{
    life l = {.all = {{.id = "good"},
                      {.id = "passing"},
                      {.id = "slow"},
                      {.id = "deadly"},
                      {.id = "late"},
                      {.id = "dropped"},
                      {.id = "easy"},
                      {.id = "kept"}}};
    l.rig = (rig){.clock = {rig_now, rig_wall, &l.rig}, .policy = policy};
    int made = set_up(&l, p);
    if (made)
        live(&l, p, how);
    if (l.rig.engine) {
        mull_engine_close(l.rig.engine, on_closed, &l);
        assert_int_equal(l.closed, 1);
    }
    for (int i = 0; i < MESSAGES; i++)
        assert_in_range(ends_of(&l.all[i]), 0, 1);
    assert_int_equal(p->out, 0);
    return made;
}

static void fail_each(long length, end how)
{
    mull_policy *policy = rig_policy(policy_text);
    purse p = {0};
    int lives = 0;
    assert_true(live_through(&p, policy, how));
    for (long at = 1;; at++) {
        p = (purse){.fail_at = at, .fail_for = length};
        lives += live_through(&p, policy, how);
        if (p.asked < at)
            break; /* nothing was refused */
    }
    print_message("%d lives\n", lives);
    assert_true(lives > 100);
    mull_policy_free(policy);
}

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_each(1, HEALED);
}

static void memory_is_short_for_a_while(void **state)
{
    (void)state;
    fail_each(40, HEALED);
}

static void memory_is_had_again_at_last(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, HEALED);
}

static void without_memory_a_stop_ends(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, STOPPED);
}

static void without_memory_a_close_ends(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(memory_is_short_for_a_while),
        cmocka_unit_test(memory_is_had_again_at_last),
        cmocka_unit_test(without_memory_a_stop_ends),
        cmocka_unit_test(without_memory_a_close_ends),
    };
    alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
