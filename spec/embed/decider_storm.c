/* decider_storm.c: eight threads decide while another reloads.
 *
 *   main      goes from north.lua to south.lua and back, by text there and by file back
 *   deciders  eight threads, each with one decider, half of them by names and half by ids; half of
 *             their failures meet table matchers, half functions; every verdict is in every field
 *             the one that its generation gives
 *   namer     has new names interned, and decides by them and the old ones
 *   idlers    deciders that nobody asks, which hold one old seat each and no more
 *
 * The first test shows that the two policies differ in every field. Then all goes on until there
 * were MULL_DECISIONS decisions and MULL_RELOADS reloads. */
#include "counting_allocator.h"
#include "policy_folder.h"
#include "test_engine.h"
#include "verdicts.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

/* Under a sanitizer all takes many times as long. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
enum { RELOADS = 100, DECISIONS = 400000 };
#else
enum { RELOADS = 250, DECISIONS = 1250000 };
#endif

enum { DECIDERS = 8, IDLERS = 2, NAMES = 1000, WATCHDOG_S = 300 };

/* ---- The two policies ------------------------------------------------------------------------ */

/* In both, each rule is written twice: for a type that begins with Table, whose matcher is compiled
 * to C, and for one that begins with Function. */
static const char north[] =
    "local policy = require 'mulligan.policy'\n"
    "local matchers = {\n"
    "    Table = { status = 503, region = policy.contains 'nor' },\n"
    "    Function = function(err, ctx)\n"
    "        return err.status == 503 and ctx.message.headers.tenant == 'acme'\n"
    "    end,\n"
    "}\n"
    "local bus = policy.bus()\n"
    "bus:dead_letter_queue('north-rest')\n"
    "bus:max_age('1h')\n"
    "bus:max_deliveries(5)\n"
    "local mine, own = policy.consumer('Special'), policy.consumer('Overridden')\n"
    "for _, kind in ipairs { 'Table', 'Function' } do\n"
    "    local matcher = matchers[kind]\n"
    "    bus:on(kind .. 'Due', matcher):retry { attempts = 4, delay = '200ms', jitter = 0.5 }\n"
    "    bus:on(kind .. 'Later', matcher):redeliver(6, '1s')\n"
    "    bus:on(kind .. 'Spent', matcher):retry(2):then_dead_letter('north-spent')\n"
    "    bus:on(kind .. 'Dropped', matcher):discard('north-note')\n"
    "    bus:on(kind .. 'Stuck', matcher):redeliver(2, '2s')\n"
    "    bus:on(kind .. 'Held', matcher):redeliver(9, '3s')\n"
    "    bus:on(kind .. 'Old', matcher):redeliver():then_discard('north-old')\n"
    "    bus:on(kind .. 'Often', matcher):retry()\n"
    "    bus:on_cause(kind .. 'Root', matcher):redeliver(5, '4s')\n"
    "    mine:on(kind .. 'Due', matcher):retry(7, '9ms')\n"
    "    own:on(kind .. 'Due', matcher):retry(1)\n"
    "end\n"
    "own:override(function(failure)\n"
    "    return policy.dead_letter('north-' .. failure.message.headers.tenant)\n"
    "end)\n";

static const char south[] =
    "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n"
    "local policy = require 'mulligan.policy'\n"
    "local matchers = {\n"
    "    Table = policy.all({ status = policy.between(500, 599) }, policy.ctx { calls = "
    "policy.at_least(1) }),\n"
    "    Function = function(err, ctx)\n"
    "        return err.status >= 500 and ctx.message.size == 4\n"
    "    end,\n"
    "}\n"
    "local host = policy.host()\n"
    "host:dead_letter_queue('south-rest')\n"
    "local lane, own = policy.transport('lane'), policy.consumer('Overridden')\n"
    "for _, kind in ipairs { 'Table', 'Function' } do\n"
    "    local matcher = matchers[kind]\n"
    "    for _, name in ipairs { 'Due', 'Later', 'Spent', 'Dropped', 'Stuck', 'Held', 'Old', "
    "'Often', 'Root' } do\n"
    "        policy.errors { [kind .. name] = kind .. name .. 'Kind' }\n"
    "    end\n"
    "    host:on(kind .. 'DueKind', matcher):redeliver(7, '5m')\n"
    "    host:on(kind .. 'LaterKind', matcher):retry(3, '7ms')\n"
    "    host:on(kind .. 'SpentKind', matcher):retry(9, '1s')\n"
    "    host:unrecoverable(kind .. 'DroppedKind', matcher)\n"
    "    host:on(kind .. 'StuckKind', matcher):retry(8, '11ms')\n"
    "    host:on(kind .. 'HeldKind', matcher):retry(8, '12ms')\n"
    "    host:on(kind .. 'OldKind', matcher):redeliver(4, '13s')\n"
    "    host:on(kind .. 'OftenKind', matcher):redeliver(4, '14s')\n"
    "    host:on_cause(kind .. 'RootKind', matcher):discard('south-cause')\n"
    "    lane:on(kind .. 'DueKind', matcher):discard('south-lane')\n"
    "    own:on(kind .. 'DueKind', matcher):dead_letter('south-own')\n"
    "end\n"
    "host:default():discard('south-default')\n"
    "own:override(function(failure)\n"
    "    return policy.retry(#failure.message.headers.tenant .. 'ms')\n"
    "end)\n";

/* What policy.lua says; which of the two is its number. */
static const char *const mains[] = {"require 'north'\n", "require 'south'\n"};

/* ---- Failures -------------------------------------------------------------------------------- */

typedef struct facts {
    const char *type, *cause, *consumer, *transport; /* the types' ends */
    int64_t attempt, redeliveries, deliveries, age_ms;
    uint32_t flags;
} facts;

static const facts all_facts[] = {
    {.type = "Due", .attempt = 2},
    {.type = "Later", .attempt = 2},
    {.type = "Spent", .attempt = 6, .redeliveries = 9},
    {.type = "Dropped"},
    {.type = "Stuck", .flags = MULL_CANNOT_DELAY},
    {.type = "Held", .flags = MULL_CANNOT_RETRY},
    {.type = "Old", .age_ms = 7200000},
    {.type = "Often", .deliveries = 10},
    {.type = "Leaf", .cause = "Root"},
    {.type = "Due", .consumer = "Special", .transport = "lane", .attempt = 3},
    {.type = "Due", .consumer = "Overridden"},
    {.type = "Unknown"},
};

enum { KINDS = 2, FACTS = sizeof all_facts / sizeof *all_facts, CASES = KINDS * FACTS };

enum { UNKNOWN = CASES - 1 }; /* the case of a type that no rule is for */

/* asked is a failure with all that it refers to. */
typedef struct asked {
    char type[32], cause_type[32];
    mull_error error, cause;
    mull_message message;
    mull_failure failure;
} asked;

/* ask_for fills in a case: the even ones meet table matchers, the odd ones functions. */
static void ask_for(asked *a, size_t number)
{
    static const mull_field fields[] = {
        {"status", {.kind = MULL_INTEGER, .as.integer = 503}},
        {"region", {.kind = MULL_STRING, .as.string = "north"}},
    };
    static const mull_header headers[] = {{"tenant", "acme"}};
    const facts *f = &all_facts[number / KINDS];
    const char *kind = number % KINDS == 0 ? "Table" : "Function";
    snprintf(a->type, sizeof a->type, "%s%s", kind, f->type);
    snprintf(a->cause_type, sizeof a->cause_type, "%s%s", kind, f->cause ? f->cause : "");
    a->cause = MULL_INIT(mull_error);
    a->cause.type = a->cause_type;
    a->cause.fields = fields;
    a->cause.field_count = sizeof fields / sizeof *fields;
    a->error = a->cause;
    a->error.type = a->type;
    a->error.cause = f->cause ? &a->cause : NULL;
    a->message = MULL_INIT(mull_message);
    a->message.id = "id";
    a->message.headers = headers;
    a->message.header_count = 1;
    a->message.body_size = 4;
    a->failure = (mull_failure){
        .size = sizeof a->failure,
        .error = &a->error,
        .message = &a->message,
        .consumer = f->consumer ? f->consumer : "Worker",
        .transport = f->transport ? f->transport : "road",
        .attempt = f->attempt,
        .redeliveries = f->redeliveries,
        .deliveries = f->deliveries,
        .age_ms = f->age_ms,
        .flags = f->flags,
    };
}

/* identify puts ids in the place of the names, which are wrong from then on. */
static int identify(asked *a, mull_policy *policy)
{
    mull_failure *f = &a->failure;
    int status = mull_type_intern(&f->type, policy, a->type);
    if (status == 0)
        status = mull_site_intern(&f->site, policy, f->consumer, f->transport);
    a->error.type = "Nothing";
    f->consumer = f->transport = "nobody";
    return status;
}

/* ---- The stage ------------------------------------------------------------------------------- */

typedef struct actor {
    struct stage *stage;
    mull_decider *decider;
    pthread_t thread;
    atomic_long decided; /* by it alone, so that it costs no other thread anything */
    long by_number[2];
} actor;

typedef struct stage {
    folder folder;
    counting_allocator counting_allocator;
    mull_policy *policy;
    kept whole[2][CASES]; /* what the two policies give */
    actor actors[DECIDERS];
    mull_decider *namer;
    pthread_t naming;
    long named; /* different names */
    mull_decider *idlers[IDLERS];
    long reloads, decisions;
    atomic_long begun, done; /* reloads; an even one is of the first policy */
    atomic_int stop, problems;
    _Atomic(const char *) wrong; /* NULL: nothing is */
} stage;

static void count_problem(const char *file, int line, const char *text, void *data)
{
    ((stage *)data)->problems++;
    test_engine_problem(file, line, text, data);
}

static void count_event(const mull_event *event, void *data)
{
    if (event->kind != MULL_EVENT_POLICY_LOADED)
        ((stage *)data)->problems++;
}

static int load(mull_policy **policy, stage *s, counting_allocator *p)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.path = s->folder.main;
    options.problem = count_problem;
    options.event = count_event;
    options.data = s;
    options.allocator = counting_allocator_ops(p);
    return mull_policy_load(policy, &options);
}

/* learn what each policy gives, where nobody reloads. */
static void learn(stage *s)
{
    for (int number = 0; number < 2; number++) {
        static counting_allocator plenty;
        mull_policy *policy;
        mull_decider *decider;
        folder_write(&s->folder, "policy.lua", mains[number]);
        assert_int_equal(load(&policy, s, &plenty), 0);
        assert_int_equal(mull_decider_new(&decider, policy), 0);
        for (size_t i = 0; i < CASES; i++) {
            asked a;
            mull_verdict verdict = MULL_INIT(mull_verdict);
            ask_for(&a, i);
            assert_int_equal(mull_decide(decider, &a.failure, &verdict), 0);
            keep(&s->whole[number][i], &verdict);
        }
        mull_decider_free(decider);
        mull_policy_free(policy);
    }
}

static long wanted(const char *name, long otherwise)
{
    const char *given = getenv(name);
    return given ? atol(given) : otherwise;
}

static void stage_open(stage *s)
{
    *s = (stage){.reloads = wanted("MULL_RELOADS", RELOADS),
                 .decisions = wanted("MULL_DECISIONS", DECISIONS)};
    folder_open(&s->folder);
    folder_write(&s->folder, "north.lua", north);
    folder_write(&s->folder, "south.lua", south);
    learn(s);
    folder_write(&s->folder, "policy.lua", mains[0]);
    assert_int_equal(load(&s->policy, s, &s->counting_allocator), 0);
}

static void make_deciders(stage *s)
{
    for (size_t i = 0; i < DECIDERS; i++) {
        s->actors[i].stage = s;
        assert_int_equal(mull_decider_new(&s->actors[i].decider, s->policy), 0);
    }
    assert_int_equal(mull_decider_new(&s->namer, s->policy), 0);
}

static void make_idlers(stage *s)
{
    for (size_t i = 0; i < IDLERS; i++)
        assert_int_equal(mull_decider_new(&s->idlers[i], s->policy), 0);
}

static void stage_close(stage *s)
{
    for (size_t i = 0; i < DECIDERS; i++)
        mull_decider_free(s->actors[i].decider);
    mull_decider_free(s->namer);
    for (size_t i = 0; i < IDLERS; i++)
        mull_decider_free(s->idlers[i]);
    mull_policy_free(s->policy);
    folder_close(&s->folder);
    assert_int_equal(s->problems, 0);
    assert_int_equal(s->counting_allocator.out, 0);
    assert_int_equal(s->counting_allocator.bytes, 0);
}

/* ---- Deciding -------------------------------------------------------------------------------- */

/* number_of gives the number of the policy that a verdict is wholly of; -1: it is of none. */
static int number_of(const stage *s, size_t i, const mull_verdict *verdict)
{
    int number = !same(verdict->generation, s->whole[0][i].verdict.generation);
    return differences(verdict, &s->whole[number][i].verdict) == 0 ? number : -1;
}

/* look decides a case, and gives what number_of does. */
static int look(stage *s, mull_decider *decider, const asked *a, size_t i)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int number = mull_decide(decider, &a->failure, &verdict) ? -1 : number_of(s, i, &verdict);
    if (number < 0)
        s->wrong = "a verdict is not wholly of one policy";
    return number;
}

/* look_closely: besides, no policy may decide that was replaced before the call. To see that orders
 * this thread behind the one that reloads, and would hide what mull_decide forgets to order from
 * ThreadSanitizer; so most decisions are made without. */
static int look_closely(stage *s, mull_decider *decider, const asked *a, size_t i)
{
    long before = atomic_load(&s->done);
    int number = look(s, decider, a, i);
    if (number >= 0 && atomic_load(&s->begun) == before && number != before % 2)
        s->wrong = "a verdict is of a policy that was replaced before";
    return number;
}

/* be_decider decides in what time the thread that reloads leaves to it. */
static void *be_decider(void *data)
{
    enum { CLOSELY_EVERY = 64 };
    actor *me = data;
    stage *s = me->stage;
    asked cases[CASES];
    for (size_t i = 0; i < CASES; i++) {
        ask_for(&cases[i], i);
        if ((me - s->actors) % 2 && identify(&cases[i], s->policy) != 0)
            s->wrong = "a name has no id";
    }
    if (nice(10) == -1)
        s->wrong = "a thread could not be made nice";
    for (long turn = me - s->actors; !s->stop && !s->wrong; turn++) {
        size_t i = (size_t)turn % CASES;
        int number = turn % CLOSELY_EVERY == 0 ? look_closely(s, me->decider, &cases[i], i)
                                               : look(s, me->decider, &cases[i], i);
        if (number >= 0)
            me->by_number[number]++;
        atomic_store_explicit(&me->decided, me->decided + 1, memory_order_relaxed);
    }
    return NULL;
}

/* be_namer has so many names interned as there were reloads, and asks for the old ones again and
 * again: each has the id that it ever had, and no rule is for it. */
static void *be_namer(void *data)
{
    stage *s = data;
    static mull_type ids[NAMES];
    if (nice(10) == -1)
        s->wrong = "a thread could not be made nice";
    for (long turn = 0; !s->stop && !s->wrong; turn++) {
        long due = atomic_load_explicit(&s->done, memory_order_relaxed) % NAMES;
        long n = s->named <= due ? s->named++ : turn % s->named;
        asked a;
        ask_for(&a, UNKNOWN);
        snprintf(a.type, sizeof a.type, "Unknown-%ld", n);
        if (identify(&a, s->policy) != 0 || (ids[n] && ids[n] != a.failure.type))
            s->wrong = "a name has no id, or another than before";
        ids[n] = a.failure.type;
        look(s, s->namer, &a, UNKNOWN);
    }
    return NULL;
}

static long decided(const stage *s)
{
    long sum = 0;
    for (size_t i = 0; i < DECIDERS; i++)
        sum += atomic_load_explicit(&s->actors[i].decided, memory_order_relaxed);
    return sum;
}

/* ---- Reloading ------------------------------------------------------------------------------- */

/* swap takes the other policy: the first by its file, the second by text. */
static void swap(stage *s)
{
    long next = atomic_fetch_add(&s->begun, 1) + 1;
    const char *text = next % 2 ? mains[1] : NULL;
    assert_int_equal(mull_policy_reload(s->policy, text, 0), 0);
    s->done = next;
}

/* ask_all moves all but the idlers on, and lets them decide every case. */
static void ask_all(stage *s)
{
    for (size_t i = 0; i < DECIDERS * CASES; i++) {
        asked a;
        ask_for(&a, i % CASES);
        assert_int_equal(look(s, s->actors[i / CASES].decider, &a, i % CASES), s->done % 2);
    }
    asked a; /* what the namer's functions left is gone with its seat */
    ask_for(&a, UNKNOWN);
    assert_int_equal(look(s, s->namer, &a, UNKNOWN), s->done % 2);
}

/* held_bytes is what policy and deciders hold when all is as full as it ever is: a seat at work,
 * and an old one, or a fresh one, beside it. The first policy is in force then. */
static long held_bytes(stage *s)
{
    for (int i = 0; i < 4; i++) {
        swap(s);
        ask_all(s);
    }
    if (s->done % 2) {
        swap(s);
        ask_all(s);
    }
    return s->counting_allocator.bytes;
}

static int64_t seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec;
}

/* reload_on spreads the reloads over the decisions, and gives the most bytes that were held after
 * one. */
static long reload_on(stage *s)
{
    long most = 0;
    for (long i = 1; i <= s->reloads && !s->wrong; i++) {
        swap(s);
        if (s->counting_allocator.bytes > most)
            most = s->counting_allocator.bytes;
        long due = s->decisions / s->reloads * i;
        for (int64_t since = seconds(); decided(s) < due && !s->wrong; sched_yield())
            if (seconds() > since + WATCHDOG_S)
                fail_msg("those who decide stand still");
    }
    return most;
}

/* ---- Tests ----------------------------------------------------------------------------------- */

static stage s;

/* The two differ in every field where tables match, and where functions do; and in action, reason,
 * rule and generation in nearly every case. */
static void the_two_differ_in_every_field(void **state)
{
    (void)state;
    stage_open(&s);
    unsigned found[KINDS] = {0};
    for (size_t i = 0; i < CASES; i++) {
        unsigned here = differences(&s.whole[0][i].verdict, &s.whole[1][i].verdict);
        found[i % KINDS] |= here;
        assert_true(__builtin_popcount(here) >= 6);
    }
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t field = 0; field < VERDICT_FIELDS; field++)
            if (!(found[kind] >> field & 1))
                fail_msg("%s is the same in both", verdict_field_names[field]);
    stage_close(&s);
}

static void start(stage *on)
{
    for (size_t i = 0; i < DECIDERS; i++) {
        actor *a = &on->actors[i];
        assert_int_equal(pthread_create(&a->thread, NULL, be_decider, a), 0);
    }
    assert_int_equal(pthread_create(&on->naming, NULL, be_namer, on), 0);
}

static void join(stage *on)
{
    on->stop = 1;
    for (size_t i = 0; i < DECIDERS; i++)
        assert_int_equal(pthread_join(on->actors[i].thread, NULL), 0);
    assert_int_equal(pthread_join(on->naming, NULL), 0);
}

static void no_verdict_is_mixed_and_nothing_is_left(void **state)
{
    (void)state;
    stage_open(&s);
    make_deciders(&s);
    make_idlers(&s);
    long before = held_bytes(&s);
    start(&s);
    long most = reload_on(&s);
    join(&s);
    assert_string_equal(s.wrong ? s.wrong : "", "");
    for (size_t i = 0; i < DECIDERS; i++)
        assert_true(s.actors[i].by_number[0] > 0 && s.actors[i].by_number[1] > 0);
    assert_true(s.named > 1);
    long after = held_bytes(&s);
    print_message("%ld decisions, %ld reloads; %ld bytes before, %ld after, %ld at most\n",
                  decided(&s), s.reloads, before, after, most);
    assert_in_range(after, before - before / 20, before + before / 20); /* names stay */
    assert_true(most < 3 * before); /* what functions leave is collected now and then */
    stage_close(&s);
}

/* A decider that nobody asks holds the seat that it had and the fresh one that waits for it,
 * through however many reloads; one that is asked now and then, its seat and the old one. */
static void idle_deciders_hold_one_seat_more(void **state)
{
    (void)state;
    enum { ASK_EVERY = 10 };
    stage_open(&s);
    long policy = s.counting_allocator.bytes;
    make_idlers(&s);
    long seat = (s.counting_allocator.bytes - policy) / IDLERS;
    long most = 2 * policy + 2 * IDLERS * seat; /* two generations at most, and two seats each */
    for (long i = 1; i <= s.reloads; i++) {
        asked a;
        swap(&s);
        ask_for(&a, 0);
        if (i % ASK_EVERY == 0)
            assert_int_equal(look(&s, s.idlers[0], &a, 0), s.done % 2);
        /* What the one's calls leave is collected now and then; a third seat would be a quarter. */
        assert_in_range(s.counting_allocator.bytes, policy + (2 * IDLERS - 1) * seat,
                        most + most / 10);
    }
    print_message("%ld bytes for a policy, %ld for a seat, %ld at the end\n", policy, seat,
                  (long)s.counting_allocator.bytes);
    stage_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_differ_in_every_field),
        cmocka_unit_test(idle_deciders_hold_one_seat_more),
        cmocka_unit_test(no_verdict_is_mixed_and_nothing_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
