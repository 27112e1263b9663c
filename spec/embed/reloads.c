/* reloads.c: a policy is reloaded a thousand times while everything decides by it. Its two texts
 * differ in every verdict; between them come texts that don't load.
 *
 *   main        reloads: a, b, a, broken, b, ...      counts before and after each
 *   deciders    four threads, each with one decider   every verdict is wholly of one generation:
 *   visitor     makes a decider, asks it, frees it    the one that it names, and no older or newer
 *   engine      messages that fail, several consumers one than can be in force
 *
 * What a whole verdict is, is asked of two policies that are never reloaded, one of each text.
 * MULL_RELOADS sets how many reloads; 100. */
#include "purse.h"
#include "rig.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

enum {
    DECIDERS = 4,
    IDLERS = 1,
    WORKERS = 3,
    IN_FLIGHT = 24,   /* messages at a time, most of them waiting for something */
    BROKEN_EVERY = 7, /* reloads */
    MEET_EVERY = 50,
    WATCHDOG_S = 120,
};

/* ---- The two policies ------------------------------------------------------------------------ */

/* Collectors read all queues of dead letters, and lose what they can't read themselves. */
#define COLLECTORS                                                                                 \
    "for _, queue in ipairs { 'a-rest', 'a-field', 'a-short', 'a-function', 'b-rest',"             \
    " 'b-function' } do\n"                                                                         \
    "    local collector = policy.consumer('of ' .. queue)\n"                                      \
    "    collector:default():discard()\n"                                                          \
    "    collector:dead_letter_queue('lost')\n"                                                    \
    "end\n"

static const char *const collected[] = {"a-rest",     "a-field", "a-short",
                                        "a-function", "b-rest",  "b-function"};

static const char text_a[] =
    "local policy = require 'mulligan.policy'\n" COLLECTORS "policy.errors { Leaf = 'StemA' }\n"
    "local bus = policy.bus()\n"
    "bus:dead_letter_queue('a-rest')\n"
    "bus:max_deliveries(5)\n"
    "bus:max_age('1h')\n"
    "bus:on('StemA'):retry { attempts = 4, delay = '200ms', jitter = 0.5 }\n"
    "bus:on('Field', { status = 503 }):dead_letter('a-field')\n"
    "bus:on('Function', function(err, ctx)\n"
    "    return err.status == 503 and ctx.message.headers.tenant == 'one'\n"
    "end):retry(2, '2ms'):then_dead_letter('a-function')\n"
    "bus:on('Cause', function(err) return err.cause:is('StemA') end):redeliver(6, '1s')\n"
    "bus:on('Spent'):retry(2):then_dead_letter('a-spent')\n"
    "bus:on('Old'):redeliver():then_discard('a-old')\n"
    "bus:on('Short'):retry(1, '1ms'):then_redeliver { '1ms' }:then_dead_letter('a-short')\n"
    "bus:on('NoDelay'):redeliver()\n";

static const char text_b[] =
    "local policy = require 'mulligan.policy'\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n" COLLECTORS
    "policy.errors { Leaf = 'StemB' }\n"
    "local host = policy.host()\n"
    "host:dead_letter_queue('b-rest')\n"
    "host:max_attempts(5)\n"
    "host:on('StemB'):redeliver(7, '5m')\n"
    "host:on('Field', { status = 503 }):retry(1, '3ms'):then_dead_letter()\n"
    "host:on('Function', function(err, ctx)\n"
    "    return err.status >= 500 and ctx.message.size == 4\n"
    "end):dead_letter('b-function')\n"
    "host:on('Cause', function(err) return err.cause:is('StemB') end):discard('b-cause')\n"
    "host:on('Spent'):retry(9, '1s'):then_discard('b-spent')\n"
    "host:on('Old'):retry(3, '50ms')\n"
    "host:on('Short'):redeliver { '2ms', '1ms' }:then_discard('b-short')\n"
    "host:on('Often'):redeliver(3, '7s')\n"
    "host:on('MessageDeserializationError'):retry(1, '11s')\n"
    "host:on('NoDelay'):discard('b-no-delay')\n"
    "host:default():discard('b-default')\n";

static const char *const texts[] = {text_a, text_b};

/* The last one gives other rules in each state of Lua that runs it: what # finds in a table with
 * holes depends on where its strings were hashed to. */
static const char *const broken_texts[] = {
    "local policy = require 'mulligan.policy'\npolicy.bus(:default():discard()\n",
    "require('mulligan.policy').bus():default():rety(3)\n",
    "local policy = require 'mulligan.policy'\n"
    "policy.bus():on('Leaf', function() end):discard()\n"
    "policy.bus():on('Leaf', { status = {} }):discard()\n",
    "require('mulligan.policy').bus():default():discard()\nerror('no')\n",
    "local policy, found = require 'mulligan.policy', ''\n"
    "for i = 1, 60 do\n"
    "    local t = {}\n"
    "    for k = 1, 8 do t[i .. '-' .. k] = 1 end\n"
    "    for k = 1, 3 do t[i .. '-' .. k] = nil end\n"
    "    for _, k in ipairs { 2, 1, 4 } do t[k] = 1 end\n"
    "    found = found .. #t\n"
    "end\n"
    "policy.bus():on('Leaf', function() return true end):dead_letter(found)\n",
};

/* ---- Verdicts that are whole ----------------------------------------------------------------- */

/* oracle decides by both texts; each thread has one. */
typedef struct oracle {
    mull_policy *policies[2];
    mull_decider *deciders[2];
    char names[2][33];
} oracle;

static int open_oracle(oracle *o)
{
    *o = (oracle){0};
    for (size_t i = 0; i < 2; i++) {
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.text = texts[i];
        options.problem = rig_problem;
        int status = mull_policy_load(&o->policies[i], &options);
        if (status == 0)
            status = mull_decider_new(&o->deciders[i], o->policies[i]);
        if (status)
            return status;
        mull_policy_generation(o->policies[i], o->names[i]);
    }
    return 0;
}

static void close_oracle(oracle *o)
{
    for (size_t i = 0; i < 2; i++) {
        mull_decider_free(o->deciders[i]);
        mull_policy_free(o->policies[i]);
    }
}

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int same_verdict(const mull_verdict *a, const mull_verdict *b)
{
    return a->action == b->action && a->reason == b->reason && a->tier == b->tier &&
           a->fallback == b->fallback && a->delay_ms == b->delay_ms && a->step == b->step &&
           a->of == b->of && same(a->queue, b->queue) && same(a->note, b->note) &&
           same(a->rule.file, b->rule.file) && a->rule.line == b->rule.line &&
           same(a->rule.scope, b->rule.scope) && same(a->rule.type, b->rule.type) &&
           same(a->generation, b->generation);
}

/* generation_of is 0 or 1 where the verdict is wholly what that text says, else -1. */
static int generation_of(const oracle *o, const mull_failure *failure, const mull_verdict *verdict)
{
    int number = same(verdict->generation, o->names[1]);
    mull_verdict whole = MULL_INIT(mull_verdict);
    if (mull_decide(o->deciders[number], failure, &whole) != 0)
        return -1;
    return same_verdict(verdict, &whole) ? number : -1;
}

/* ---- Failures -------------------------------------------------------------------------------- */

typedef struct facts {
    const char *type;
    int64_t attempt, redeliveries, deliveries, age_ms;
    uint32_t flags;
} facts;

static const facts all_facts[] = {
    {.type = "Leaf"},
    {.type = "Field"},
    {.type = "Function"},
    {.type = "Cause"},
    {.type = "Spent", .attempt = 6},
    {.type = "Old", .age_ms = 7200000},
    {.type = "Short"},
    {.type = "Often", .deliveries = 10},
    {.type = "MessageDeserializationError"},
    {.type = "NoDelay", .flags = MULL_CANNOT_DELAY},
    {.type = "Unknown"},
};

enum { FACTS = sizeof all_facts / sizeof *all_facts };

static const mull_field fields[] = {{"status", {.kind = MULL_INTEGER, .as.integer = 503}}};
static const mull_header headers[] = {{"tenant", "one"}};
static const mull_error leaf = {.size = sizeof leaf, .type = "Leaf"};

static mull_error error_of(const char *type)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = type;
    error.fields = fields;
    error.field_count = 1;
    error.cause = &leaf;
    return error;
}

static mull_message message_to(const char *queue, const char *id)
{
    mull_message message = MULL_INIT(mull_message);
    message.queue = queue;
    message.id = id;
    message.headers = headers;
    message.header_count = 1;
    message.body = "body";
    message.body_size = 4;
    return message;
}

/* set_failure fills in the n-th failure, which refers to the error and the message. */
static void set_failure(mull_failure *failure, size_t n, mull_error *error, mull_message *message)
{
    const facts *f = &all_facts[n % FACTS];
    *error = error_of(f->type);
    *message = message_to(NULL, "id");
    *failure = (mull_failure){
        .size = sizeof *failure,
        .error = error,
        .message = message,
        .consumer = "Worker",
        .attempt = f->attempt,
        .redeliveries = f->redeliveries,
        .deliveries = f->deliveries,
        .age_ms = f->age_ms,
        .flags = f->flags,
    };
}

/* ask decides on the n-th failure; `generation` is as generation_of gives it. */
static int ask(mull_decider *decider, size_t n, const oracle *o, int *generation)
{
    mull_error error;
    mull_message message;
    mull_failure failure;
    set_failure(&failure, n, &error, &message);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int status = mull_decide(decider, &failure, &verdict);
    *generation = status ? -1 : generation_of(o, &failure, &verdict);
    return status;
}

/* ---- The stage ------------------------------------------------------------------------------- */

/* Generation n of those published is of text n % 2. One that `begun` counts may be in force, one
 * that `done` counts is, unless a later one is. */
typedef struct stage {
    purse purse, engine_purse;
    mull_policy *policy;
    atomic_long begun, done;
    atomic_int stop;
    atomic_long sure;             /* verdicts while only one generation could be in force */
    atomic_long visits, messages; /* verdicts that the engine told */
    atomic_long loaded, refused, other_events, problems;
    atomic_long wrong;
    _Atomic(const char *) first_wrong;
} stage;

static void blame(stage *s, const char *what)
{
    if (atomic_fetch_add(&s->wrong, 1) == 0)
        atomic_store(&s->first_wrong, what);
}

/* give_way lets the thread that reloads have its core: whatever decides takes the rest. */
static void give_way(stage *s)
{
    if (nice(10) == -1)
        blame(s, "nice");
}

/* check_window: a verdict of `generation` came to be after `done` was `before`, and before now. */
static void check_window(stage *s, int generation, long before)
{
    int sure = s->begun == before;
    s->sure += sure;
    if (generation < 0)
        blame(s, "a verdict is not wholly of one generation");
    else if (sure && generation != before % 2)
        blame(s, "a verdict is not of the generation in force");
}

/* look decides on the n-th of the facts and gives the generation that did; -1: blamed. */
static int look(stage *s, mull_decider *decider, size_t n, const oracle *o)
{
    long before = s->done;
    int generation;
    if (ask(decider, n, o, &generation) != 0) {
        blame(s, "mull_decide failed");
        return -1;
    }
    check_window(s, generation, before);
    return generation;
}

typedef struct actor {
    stage *stage;
    mull_decider *decider;
    atomic_long decided[2]; /* verdicts, by generation */
    pthread_t thread;
} actor;

static void *be_decider(void *data)
{
    actor *a = data;
    stage *s = a->stage;
    oracle o;
    give_way(s);
    if (open_oracle(&o) != 0)
        blame(s, "no oracle");
    for (size_t turn = 0; !s->stop && !s->wrong; turn++) {
        int generation = look(s, a->decider, turn, &o);
        if (generation >= 0)
            a->decided[generation]++;
    }
    close_oracle(&o);
    return NULL;
}

static void *be_visitor(void *data)
{
    stage *s = data;
    oracle o;
    give_way(s);
    if (open_oracle(&o) != 0)
        blame(s, "no oracle");
    for (size_t turn = 0; !s->stop && !s->wrong; turn++) {
        mull_decider *decider;
        if (mull_decider_new(&decider, s->policy) != 0)
            blame(s, "no decider");
        else if (turn % 4 != 0) /* one in four is never asked */
            look(s, decider, turn, &o);
        mull_decider_free(decider);
        s->visits++;
    }
    close_oracle(&o);
    return NULL;
}

/* ---- The engine ------------------------------------------------------------------------------ */

/* plant is an engine on a thread of its own. So many messages are under way: each that ends is
 * followed by another in its place. */
typedef struct plant {
    stage *stage;
    mull_engine *engine;
    oracle oracle;
    pthread_t thread;
    long published, letters, kinds[4];
    long ended_at[IN_FLIGHT]; /* what `done` was when a place's last call was ended */
} plant;

/* publish puts a message on its way whose id begins with its place. */
static void publish(plant *p, long place)
{
    static const char *const queues[WORKERS] = {"work-0", "work-1", "work-2"};
    char id[48];
    snprintf(id, sizeof id, "%ld-%ld", place, p->published);
    mull_message message = message_to(queues[p->published % WORKERS], id);
    if (mull_publish(p->engine, "t", &message, 0, NULL, NULL) != 0)
        blame(p->stage, "a message couldn't be published");
    p->published++;
}

static long place_of(const mull_message *message)
{
    return strtol(message->id, NULL, 10);
}

static void follow(plant *p, long place)
{
    if (p->stage->stop)
        mull_stop_when_empty(p->engine);
    else
        publish(p, place);
}

static void work(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    static const char *const types[] = {NULL, "Field", "Short", "Function", "Unknown"};
    plant *p = data;
    long place = place_of(message);
    const char *type = types[strtol(strchr(message->id, '-') + 1, NULL, 10) % 5];
    mull_error error = error_of(type ? type : "none");
    p->ended_at[place] = p->stage->done;
    if (mull_done(engine, call, type ? &error : NULL) != 0)
        blame(p->stage, "a call couldn't be ended");
    if (!type)
        follow(p, place);
}

/* on_event: a verdict came to be between the end of its call and now. */
static void on_event(const mull_event *event, void *data)
{
    plant *p = data;
    if (event->kind != MULL_EVENT_DECIDED) {
        blame(p->stage, "an event of the engine's that isn't about a verdict");
        return;
    }
    const mull_verdict *verdict = event->verdict;
    long place = place_of(event->failure->message);
    check_window(p->stage, generation_of(&p->oracle, event->failure, verdict), p->ended_at[place]);
    if (!same(event->generation, verdict->generation))
        blame(p->stage, "an event of another generation than its verdict");
    p->kinds[verdict->action]++;
    p->stage->messages++;
    if (verdict->action == MULL_DEAD_LETTER || verdict->action == MULL_DISCARD)
        follow(p, place);
}

static const char *header(const mull_message *message, const char *name)
{
    for (size_t i = 0; i < message->header_count; i++)
        if (strcmp(message->headers[i].name, name) == 0)
            return message->headers[i].value;
    return NULL;
}

/* read_letter: all that a dead letter says of its verdict is of the generation that it names. */
static void read_letter(mull_engine *engine, mull_call call, const mull_message *message,
                        void *data)
{
    plant *p = data;
    const char *type = header(message, "mulligan-error-type");
    const char *named = header(message, "mulligan-generation");
    int number = named && strcmp(named, p->oracle.names[1]) == 0;
    mull_error error = error_of(type ? type : "none");
    mull_message original = message_to(header(message, "mulligan-queue"), message->id);
    mull_failure failure = MULL_INIT(mull_failure);
    mull_verdict whole = MULL_INIT(mull_verdict);
    failure.error = &error;
    failure.message = &original;
    failure.consumer = header(message, "mulligan-consumer");
    failure.transport = "t";
    failure.attempt = failure.redeliveries = 1000; /* a dead letter has none left */
    if (!same(named, p->oracle.names[number]) ||
        mull_decide(p->oracle.deciders[number], &failure, &whole) != 0)
        blame(p->stage, "a dead letter without a known generation");
    char rule[64] = "";
    if (whole.rule.file)
        snprintf(rule, sizeof rule, "%s:%d", whole.rule.file, whole.rule.line);
    const char *told = header(message, "mulligan-rule");
    if (whole.action != MULL_DEAD_LETTER || !same(whole.queue, message->queue) ||
        !same(told ? told : "", rule) ||
        !same(header(message, "mulligan-reason"), mull_reason_name(whole.reason)))
        blame(p->stage, "a dead letter is not wholly of one generation");
    p->letters++;
    mull_done(engine, call, NULL);
}

static int add_consumer(plant *p, const char *name, const char *queue, mull_handler handler)
{
    mull_consumer_options options = MULL_INIT(mull_consumer_options);
    options.name = name;
    options.transport = "t";
    options.queue = queue;
    options.handler = handler;
    options.data = p;
    options.concurrency = 4;
    return mull_engine_consumer(p->engine, &options);
}

static int add_consumers(plant *p)
{
    int status = add_consumer(p, "Worker-0", "work-0", work);
    status |= add_consumer(p, "Worker-1", "work-1", work);
    status |= add_consumer(p, "Worker-2", "work-2", work);
    for (size_t i = 0; i < sizeof collected / sizeof *collected; i++) {
        char name[32];
        snprintf(name, sizeof name, "of %s", collected[i]);
        status |= add_consumer(p, name, collected[i], read_letter);
    }
    return status;
}

static int open_plant(plant *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = p->stage->policy;
    options.problem = rig_problem;
    options.event = on_event;
    options.data = p;
    options.allocator = purse_allocator(&p->stage->engine_purse);
    int status = open_oracle(&p->oracle);
    if (status == 0)
        status = mull_engine_new(&p->engine, &options);
    if (status == 0)
        status = mull_engine_transport(p->engine, "t", "memory:");
    return status ? status : add_consumers(p);
}

static void *be_engine(void *data)
{
    plant *p = data;
    stage *s = p->stage;
    give_way(s);
    if (open_plant(p) != 0) {
        blame(s, "no engine");
        return NULL;
    }
    for (long place = 0; place < IN_FLIGHT; place++)
        publish(p, place);
    if (mull_engine_run(p->engine) != 0)
        blame(s, "the engine doesn't run");
    mull_counts counts = MULL_INIT(mull_counts);
    mull_engine_counts(p->engine, &counts);
    if ((long)(counts.done + counts.dead_lettered + counts.discarded) != p->published + p->letters)
        blame(s, "not every message came to its end");
    if ((long)counts.dead_lettered != p->letters)
        blame(s, "not every dead letter was read");
    mull_engine_close(p->engine, NULL, NULL);
    close_oracle(&p->oracle);
    return NULL;
}

/* ---- Reloading ------------------------------------------------------------------------------- */

static void count_problem(const char *file, int line, const char *text, void *data)
{
    stage *s = data;
    (void)file, (void)line;
    s->problems += *text != 0;
}

static void count_event(const mull_event *event, void *data)
{
    stage *s = data;
    if (event->kind == MULL_EVENT_POLICY_LOADED)
        s->loaded++;
    else if (event->kind == MULL_EVENT_POLICY_REFUSED)
        s->refused++;
    else
        s->other_events++;
}

/* swap publishes the next generation. */
static void swap(stage *s)
{
    long next = atomic_fetch_add(&s->begun, 1) + 1;
    assert_int_equal(mull_policy_reload(s->policy, texts[next % 2], 0), 0);
    s->done = next;
}

static void try_broken(stage *s, size_t which)
{
    char before[33], after[33];
    mull_policy_generation(s->policy, before);
    long problems = s->problems, refused = s->refused;
    const char *text = broken_texts[which % (sizeof broken_texts / sizeof *broken_texts)];
    assert_int_equal(mull_policy_reload(s->policy, text, 0), MULL_EPOLICY);
    assert_true(s->problems > problems);
    assert_int_equal(s->refused, refused + 1);
    mull_policy_generation(s->policy, after);
    assert_string_equal(before, after);
}

static void try_the_same(stage *s)
{
    long told = s->loaded + s->refused;
    assert_int_equal(mull_policy_reload(s->policy, texts[s->done % 2], 0), 1);
    assert_int_equal(s->loaded + s->refused, told);
}

static int64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

/* wait_past returns when the counter is `much` past what it was. */
static void wait_past(stage *s, atomic_long *counter, long much)
{
    long from = *counter;
    for (int64_t since = seconds(); *counter < from + much && !s->wrong; sched_yield())
        if (seconds() > since + WATCHDOG_S)
            fail_msg("a thread that decides stands still");
}

/* play is what the threads share, and the threads. */
typedef struct play {
    stage stage;
    actor actors[DECIDERS];
    mull_decider *idlers[IDLERS];
    plant plant;
    pthread_t visitor;
} play;

/* meet waits until each thread has met the generation in force. */
static void meet(play *p)
{
    stage *s = &p->stage;
    for (size_t i = 0; i < DECIDERS; i++)
        wait_past(s, &p->actors[i].decided[s->done % 2], 2);
    wait_past(s, &s->visits, 1);
    wait_past(s, &s->messages, 1);
}

static long reloads_wanted(void)
{
    const char *wanted = getenv("MULL_RELOADS");
    return wanted ? atol(wanted) : 100;
}

/* reload_often begins and ends with the first text in force. */
static void reload_often(play *p)
{
    stage *s = &p->stage;
    size_t broken = 0;
    for (long i = 1, all = reloads_wanted(); i <= all && !s->wrong; i++) {
        swap(s);
        if (i % BROKEN_EVERY == 0) {
            try_broken(s, broken++);
            try_the_same(s);
        }
        if (i % MEET_EVERY <= 1)
            meet(p);
    }
    if (s->done % 2 != 0)
        swap(s);
}

/* ---- The play -------------------------------------------------------------------------------- */

static void load(play *p)
{
    stage *s = &p->stage;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = texts[0];
    options.problem = count_problem;
    options.event = count_event;
    options.data = s;
    options.allocator = purse_allocator(&s->purse);
    assert_int_equal(mull_policy_load(&s->policy, &options), 0);
    for (size_t i = 0; i < DECIDERS; i++) {
        p->actors[i].stage = s;
        assert_int_equal(mull_decider_new(&p->actors[i].decider, s->policy), 0);
    }
    for (size_t i = 0; i < IDLERS; i++)
        assert_int_equal(mull_decider_new(&p->idlers[i], s->policy), 0);
}

/* ask_all lets each decider that is used take its fresh seat. */
static void ask_all(play *p, const oracle *o)
{
    for (size_t i = 0; i < DECIDERS; i++) {
        int generation;
        assert_int_equal(ask(p->actors[i].decider, 0, o, &generation), 0);
        assert_int_equal(generation, p->stage.done % 2);
    }
}

/* live_bytes is what the policy and its deciders hold when all is as full as it ever is: a seat at
 * work, and an old or a fresh one beside it. */
static long live_bytes(play *p, const oracle *o)
{
    for (int i = 0; i < 4; i++) {
        swap(&p->stage);
        ask_all(p, o);
    }
    return p->stage.purse.bytes;
}

static void start_threads(play *p)
{
    p->plant.stage = &p->stage;
    for (size_t i = 0; i < DECIDERS; i++)
        assert_int_equal(pthread_create(&p->actors[i].thread, NULL, be_decider, &p->actors[i]), 0);
    assert_int_equal(pthread_create(&p->visitor, NULL, be_visitor, &p->stage), 0);
    assert_int_equal(pthread_create(&p->plant.thread, NULL, be_engine, &p->plant), 0);
}

static void join_threads(play *p)
{
    p->stage.stop = 1;
    for (size_t i = 0; i < DECIDERS; i++)
        assert_int_equal(pthread_join(p->actors[i].thread, NULL), 0);
    assert_int_equal(pthread_join(p->visitor, NULL), 0);
    assert_int_equal(pthread_join(p->plant.thread, NULL), 0);
}

static void report(const play *p)
{
    const stage *s = &p->stage;
    const long *kinds = p->plant.kinds;
    print_message("%ld reloads, %ld refused; %ld verdicts of deciders and messages where only one "
                  "generation could be in force, %ld visits\n",
                  s->loaded, s->refused, s->sure, s->visits);
    print_message("%ld messages: %ld retries, %ld redeliveries, %ld dead letters, %ld discarded\n",
                  p->plant.published, kinds[MULL_RETRY], kinds[MULL_REDELIVER],
                  kinds[MULL_DEAD_LETTER], kinds[MULL_DISCARD]);
}

static void let_go(play *p)
{
    for (size_t i = 0; i < DECIDERS; i++)
        mull_decider_free(p->actors[i].decider);
    for (size_t i = 0; i < IDLERS; i++)
        mull_decider_free(p->idlers[i]);
    mull_policy_free(p->stage.policy);
}

static void a_thousand_reloads_mix_nothing_and_leave_nothing(void **state)
{
    (void)state;
    static play p;
    oracle o;
    assert_int_equal(open_oracle(&o), 0);
    load(&p);
    long before = live_bytes(&p, &o);
    start_threads(&p);
    reload_often(&p);
    join_threads(&p);
    report(&p);
    assert_string_equal(p.stage.wrong ? p.stage.first_wrong : "", "");
    assert_true(p.stage.sure > 0);
    for (size_t i = 0; i < DECIDERS; i++)
        assert_true(p.actors[i].decided[0] > 0 && p.actors[i].decided[1] > 0);
    for (size_t i = 0; i < 4; i++)
        assert_true(p.plant.kinds[i] > 0);
    assert_int_equal(p.stage.other_events, 0);
    assert_int_equal(p.stage.loaded, p.stage.done);
    long after = live_bytes(&p, &o);
    print_message("%ld bytes before, %ld after\n", before, after);
    assert_in_range(after, before - before / 20, before + before / 20);
    let_go(&p);
    close_oracle(&o);
    assert_int_equal(p.stage.purse.out, 0);
    assert_int_equal(p.stage.purse.bytes, 0);
    assert_int_equal(p.stage.engine_purse.out, 0);
}

/* the_two_differ_in_every_verdict is what makes a mixed one show. */
static void the_two_differ_in_every_verdict(void **state)
{
    (void)state;
    oracle o;
    assert_int_equal(open_oracle(&o), 0);
    for (size_t n = 0; n < FACTS; n++) {
        mull_error error;
        mull_message message;
        mull_failure failure;
        set_failure(&failure, n, &error, &message);
        mull_verdict a = MULL_INIT(mull_verdict), b = MULL_INIT(mull_verdict);
        assert_int_equal(mull_decide(o.deciders[0], &failure, &a), 0);
        assert_int_equal(mull_decide(o.deciders[1], &failure, &b), 0);
        assert_int_not_equal(a.action, b.action);
        assert_true(a.reason != b.reason || a.tier != b.tier || a.queue != b.queue);
        assert_true(!same(a.queue, b.queue) || (!a.queue && !b.queue));
        assert_true(!same(a.note, b.note) || (!a.note && !b.note));
        assert_true(a.delay_ms != b.delay_ms || (a.delay_ms == 0 && b.delay_ms == 0));
        assert_int_not_equal(a.rule.line, b.rule.line);
        assert_false(same(a.rule.scope, b.rule.scope));
        assert_false(same(a.generation, b.generation));
    }
    close_oracle(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_differ_in_every_verdict),
        cmocka_unit_test(a_thousand_reloads_mix_nothing_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
