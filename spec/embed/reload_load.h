/* reload_load.h: what the tests of reloads under load share: two policies that differ in every
 * verdict, texts that don't load, what a whole verdict is, and the thread that reloads.
 *
 *   a, b, a, b, a, b, a, broken, a again, b, ...    each has a number in it, and so its own name
 *
 * A verdict is whole if it is, in all that it says, what a policy gives that has the same rules and
 * is never reloaded. MULL_RELOADS sets how many reloads there are, over both tests. */
#ifndef RELOAD_LOAD_H
#define RELOAD_LOAD_H

#include "counting_allocator.h"
#include "test_engine.h"
#include "verdicts.h"

#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

enum { BROKEN_EVERY = 7, MEET_EVERY = 50, WATCHDOG_S = 300, STAGE_DECIDERS = 5 };

/* Under a sanitizer a load takes several times as long. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RELOADS = 400 };
#else
enum { RELOADS = 1000 };
#endif

/* ---- The two policies ------------------------------------------------------------------------ */

/* Collectors read all queues of dead letters, and lose what they can't read themselves. */
#define COLLECTORS                                                                                 \
    "for _, queue in ipairs { 'a-rest', 'a-field', 'a-short', 'a-function', 'b-rest',"             \
    " 'b-function' } do\n"                                                                         \
    "    local collector = policy.consumer('of ' .. queue)\n"                                      \
    "    collector:default():discard()\n"                                                          \
    "    collector:dead_letter_queue('lost')\n"                                                    \
    "end\n"

/* Where dead letters go in the two policies. */
static const char *const letter_queues[] = {"a-rest",     "a-field", "a-short",
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
    "bus:on('NoDelay'):redeliver()\n"
    "bus:notify(function(event) return event.verdict and event.verdict.queue end)\n"
    "policy.consumer('Overridden'):override(function(failure)\n"
    "    return policy.dead_letter('a-' .. failure.message.headers.tenant)\n"
    "end)\n";

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
    "host:default():discard('b-default')\n"
    "host:notify(function(event) return event.verdict and event.verdict.note end)\n"
    "policy.consumer('Overridden'):override(function(failure)\n"
    "    return policy.retry(#failure.message.headers.tenant .. 'ms')\n"
    "end)\n";

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
} oracle;

static inline int open_oracle(oracle *o)
{
    *o = (oracle){0};
    for (size_t i = 0; i < 2; i++) {
        mull_policy_options options = MULL_INIT(mull_policy_options);
        options.text = texts[i];
        options.problem = test_engine_problem;
        int status = mull_policy_load(&o->policies[i], &options);
        if (status == 0)
            status = mull_decider_new(&o->deciders[i], o->policies[i]);
        if (status)
            return status;
    }
    return 0;
}

static inline void close_oracle(oracle *o)
{
    for (size_t i = 0; i < 2; i++) {
        mull_decider_free(o->deciders[i]);
        mull_policy_free(o->policies[i]);
    }
}

/* same_verdict compares all but the generations' names. */
static inline int same_verdict(const mull_verdict *a, const mull_verdict *b)
{
    mull_verdict of_b = *a;
    of_b.generation = b->generation;
    return differences(&of_b, b) == 0;
}

/* ---- Failures -------------------------------------------------------------------------------- */

typedef struct facts {
    const char *type, *consumer; /* NULL: "Worker" */
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
    {.type = "Leaf", .consumer = "Overridden"},
};

enum { FACTS = sizeof all_facts / sizeof *all_facts };

static const mull_field fields[] = {{"status", {.kind = MULL_INTEGER, .as.integer = 503}}};
static const mull_header headers[] = {{"tenant", "one"}};
static const mull_error leaf = {.size = sizeof leaf, .type = "Leaf"};

static inline mull_error error_of(const char *type)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = type;
    error.fields = fields;
    error.field_count = 1;
    error.cause = &leaf;
    return error;
}

static inline mull_message message_to(const char *queue, const char *id)
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
static inline void set_failure(mull_failure *failure, size_t n, mull_error *error,
                               mull_message *message)
{
    const facts *f = &all_facts[n % FACTS];
    *error = error_of(f->type);
    *message = message_to(NULL, "id");
    *failure = (mull_failure){
        .size = sizeof *failure,
        .error = error,
        .message = message,
        .consumer = f->consumer ? f->consumer : "Worker",
        .attempt = f->attempt,
        .redeliveries = f->redeliveries,
        .deliveries = f->deliveries,
        .age_ms = f->age_ms,
        .flags = f->flags,
    };
}

/* ---- The stage ------------------------------------------------------------------------------- */

/* stage is a policy, deciders, and what went wrong. Generations are numbered: an even one is of the
 * first text. One that `begun` counts may be in force; one that `done` counts is, unless a later
 * one is. */
typedef struct stage {
    counting_allocator counting_allocator;
    mull_policy *policy;
    mull_decider *deciders[STAGE_DECIDERS];
    size_t decider_count;
    oracle oracle;
    char (*names)[33]; /* of all generations that there will be */
    long reloads;
    long bytes; /* live, before the reloads */
    atomic_long begun, done;
    sem_t due; /* posted for each generation */
    atomic_int stop;
    atomic_long loaded, refused, other_events, problems;
    atomic_long checked, wrong;
    _Atomic(const char *) first_wrong;
} stage;

static inline void blame(stage *s, const char *what)
{
    if (atomic_fetch_add(&s->wrong, 1) == 0)
        atomic_store(&s->first_wrong, what);
}

/* number_of gives the number of a generation from `oldest` on; -1: it can't be in force yet, or no
 * more. */
static inline long number_of(const stage *s, const char *name, long oldest)
{
    for (long number = s->begun; number >= oldest; number--)
        if (same(name, s->names[number]))
            return number;
    return -1;
}

/* check_verdict: it came to be after `done` was `before`, and before now. It gives the number of
 * its generation; -1: blamed. */
static inline long check_verdict(stage *s, const oracle *o, long before,
                                 const mull_failure *failure, const mull_verdict *verdict)
{
    long number = number_of(s, verdict->generation, before);
    mull_verdict whole = MULL_INIT(mull_verdict);
    s->checked++;
    if (number < 0)
        blame(s, "a verdict is of a generation that is not in force");
    else if (mull_decide(o->deciders[number % 2], failure, &whole) != 0 ||
             !same_verdict(verdict, &whole))
        blame(s, "a verdict is not wholly of the generation that it names");
    else
        return number;
    return -1;
}

/* look decides on the n-th failure; as check_verdict. */
static inline long look(stage *s, mull_decider *decider, size_t n, const oracle *o)
{
    mull_error error;
    mull_message message;
    mull_failure failure;
    set_failure(&failure, n, &error, &message);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    long before = s->done;
    if (mull_decide(decider, &failure, &verdict) == 0)
        return check_verdict(s, o, before, &failure, &verdict);
    blame(s, "mull_decide failed");
    return -1;
}

/* ---- Reloading ------------------------------------------------------------------------------- */

static inline void count_problem(const char *file, int line, const char *text, void *data)
{
    stage *s = data;
    (void)file, (void)line;
    s->problems += *text != 0;
}

static inline void count_event(const mull_event *event, void *data)
{
    stage *s = data;
    if (event->kind == MULL_EVENT_POLICY_LOADED)
        s->loaded++;
    else if (event->kind == MULL_EVENT_POLICY_REFUSED)
        s->refused++;
    else
        s->other_events++;
}

/* text_of is the text of a generation: its number is in it, so that its name is its own. */
static inline const char *text_of(long number)
{
    static char text[4096];
    int length = snprintf(text, sizeof text, "%s-- %ld\n", texts[number % 2], number);
    assert_in_range(length, 1, sizeof text - 1);
    return text;
}

/* swap publishes the next generation. */
static inline void swap(stage *s)
{
    long next = atomic_fetch_add(&s->begun, 1) + 1;
    assert_int_equal(mull_policy_reload(s->policy, text_of(next), 0), 0);
    s->done = next;
    sem_post(&s->due);
}

static inline void try_broken(stage *s, size_t which)
{
    char name[33];
    long problems = s->problems, refused = s->refused;
    const char *text = broken_texts[which % (sizeof broken_texts / sizeof *broken_texts)];
    assert_int_equal(mull_policy_reload(s->policy, text, 0), MULL_EPOLICY);
    assert_true(s->problems > problems);
    assert_int_equal(s->refused, refused + 1);
    mull_policy_generation(s->policy, name);
    assert_string_equal(name, s->names[s->done]);
}

static inline void try_the_same(stage *s)
{
    long told = s->loaded + s->refused;
    assert_int_equal(mull_policy_reload(s->policy, text_of(s->done), 0), 1);
    assert_int_equal(s->loaded + s->refused, told);
}

static inline int64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

/* wait_for returns when the counter has reached `value`. */
static inline void wait_for(const stage *s, const atomic_long *counter, long value)
{
    for (int64_t since = seconds(); *counter < value && !s->wrong; sched_yield())
        if (seconds() > since + WATCHDOG_S)
            fail_msg("a thread that decides stands still");
}

/* reload_often begins and ends with the first text in force. Now and then `meet` waits until all
 * that decide have met the generation in force. */
static inline void reload_often(stage *s, void (*meet)(void *data), void *data)
{
    size_t broken = 0;
    for (long i = 1; i <= s->reloads && !s->wrong; i++) {
        swap(s);
        if (i % BROKEN_EVERY == 0) {
            try_broken(s, broken++);
            try_the_same(s);
        }
        if (i % MEET_EVERY <= 1)
            meet(data);
    }
    if (s->done % 2 != 0)
        swap(s);
}

/* ---- Before and after ------------------------------------------------------------------------ */

enum { MEASURED = 4 }; /* reloads that a measurement takes */

/* live_bytes is what the policy and its deciders hold when all is as full as it ever is: a seat at
 * work, and an old or a fresh one beside it. The last decider is never used. */
static inline long live_bytes(stage *s)
{
    for (int i = 0; i < MEASURED; i++) {
        swap(s);
        for (size_t k = 0; k + 1 < s->decider_count; k++)
            assert_int_equal(look(s, s->deciders[k], 0, &s->oracle), s->done);
    }
    return s->counting_allocator.bytes;
}

/* name_all loads each generation once, elsewhere: a name depends on nothing but the text. */
static inline void name_all(stage *s)
{
    long last = s->reloads + 1 + 2 * MEASURED;
    mull_policy *elsewhere = test_engine_policy("");
    s->names = calloc((size_t)last + 1, sizeof *s->names);
    assert_non_null(s->names);
    for (long number = 0; number <= last; number++) {
        assert_int_equal(mull_policy_reload(elsewhere, text_of(number), 0), 0);
        mull_policy_generation(elsewhere, s->names[number]);
    }
    mull_policy_free(elsewhere);
}

/* stage_open prepares a share of the reloads that are wanted, in tenths. */
static inline void stage_open(stage *s, size_t deciders, long tenths)
{
    const char *wanted = getenv("MULL_RELOADS");
    long all = wanted ? atol(wanted) : RELOADS;
    *s = (stage){.decider_count = deciders, .reloads = all * tenths / 10};
    assert_int_equal(sem_init(&s->due, 0, 0), 0);
    assert_int_equal(open_oracle(&s->oracle), 0);
    name_all(s);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text_of(0);
    options.problem = count_problem;
    options.event = count_event;
    options.data = s;
    options.allocator = counting_allocator_ops(&s->counting_allocator);
    assert_int_equal(mull_policy_load(&s->policy, &options), 0);
    for (size_t i = 0; i < deciders; i++)
        assert_int_equal(mull_decider_new(&s->deciders[i], s->policy), 0);
    s->bytes = live_bytes(s);
}

static inline void assert_nothing_wrong(const stage *s)
{
    assert_string_equal(s->wrong ? s->first_wrong : "", "");
}

/* stage_close says whether memory is what it was: with the same generation in
 * force, and in the end. */
static inline void stage_close(stage *s)
{
    print_message("%ld reloads, %ld refused, %ld verdicts\n", s->loaded, s->refused, s->checked);
    assert_int_equal(s->other_events, 0);
    assert_int_equal(s->loaded, s->done);
    long bytes = live_bytes(s);
    print_message("%ld live bytes before, %ld after\n", s->bytes, bytes);
    assert_in_range(bytes, s->bytes - s->bytes / 20, s->bytes + s->bytes / 20);
    for (size_t i = 0; i < s->decider_count; i++)
        mull_decider_free(s->deciders[i]);
    mull_policy_free(s->policy);
    close_oracle(&s->oracle);
    sem_destroy(&s->due);
    free(s->names);
    assert_int_equal(s->counting_allocator.out, 0);
    assert_int_equal(s->counting_allocator.bytes, 0);
}

#endif
