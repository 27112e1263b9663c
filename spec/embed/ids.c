/* ids.c: names interned in a policy: random policies decide random failures by names and by ids,
 * and everything that comes of it has to be the same, before and after reloads. MULL_IDS says how
 * many policies; the seed is printed. */
#include <pthread.h>
#include <sched.h>

#include "counting_allocator.h"
#include "sample.h"
#include "test_engine.h"
#include "verdicts.h"

enum { POLICIES = 120 / SLOWNESS, FAILURES = 60, TRACE = 4096 };

/* ---- Policies -------------------------------------------------------------------------------- */

static const char *const types[] = {
    "T",
    "Dead",
    "Database",
    "Deadlock",
    "ConnectReset01",
    "ConnectionTimedOut01",
    "Error",
    "MessageDeserializationError",
    "Unheard",
};
static const char *const places[] = {"payments", "mail", "a-consumer-with-a-long-name", "ship"};
enum { TYPES = sizeof types / sizeof *types, RULED = 7 };
enum { PLACES = sizeof places / sizeof *places, SCOPED = 3 };

/* CROWD is many scopes of a kind. */
enum { CROWD = 18 };

typedef struct script {
    char text[16384];
    size_t length;
    sample *chance;
} script;

static size_t pick(sample *chance, size_t count)
{
    return (size_t)(sample_random(chance) % count);
}

static void add(script *s, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    s->length +=
        (size_t)vsnprintf(s->text + s->length, sizeof s->text - s->length, format, arguments);
    va_end(arguments);
    assert_true(s->length < sizeof s->text);
}

static void add_rule(script *s)
{
    static const char *const matchers[] = {
        "",
        "",
        ", { status = 503 }",
        ", { status = 503, region = 'eu' }",
        ", policy.ctx { consumer = 'mail' }",
        ", policy.ctx { transport = 'mail' }",
        ", function(err) return err.type == 'Dead' or err.status == 503 end",
        ", function(err, ctx) return ctx.consumer == 'payments' or err.cause end",
        ", function(err, ctx) error(err.type .. tostring(ctx.transport)) end",
        (", function(err) local all = '' while err do all, err = all .. err.type .. ' ', err.cause "
         "end error(all) end"),
    };
    static const char *const chains[] = {
        ":retry(3)",
        ":retry(2, '1s'):then_redeliver(2)",
        ":redeliver()",
        ":dead_letter('parked')",
        ":discard('note')",
        ":retry(12):then_redeliver { '1s', '5s' }",
        ":retry { hint = 'after' }",
    };
    const char *matcher = matchers[pick(s->chance, sizeof matchers / sizeof *matchers)];
    const char *chain = chains[pick(s->chance, sizeof chains / sizeof *chains)];
    add(s, "scope:%s('%s'%s)%s\n", pick(s->chance, 6) ? "on" : "on_cause",
        types[pick(s->chance, RULED)], matcher, chain);
}

static void add_scope(script *s, const char *kind, const char *name)
{
    add(s, "scope = policy.%s(%s%s%s)\n", kind, name ? "'" : "", name ? name : "", name ? "'" : "");
    for (size_t left = pick(s->chance, 5); left > 0; left--)
        add_rule(s);
    if (!pick(s->chance, 4))
        add(s, "scope:unrecoverable('%s')\n", types[pick(s->chance, RULED)]);
    if (!pick(s->chance, 4))
        add(s, "scope:max_attempts(%zu)\n", 1 + pick(s->chance, 6));
    if (!pick(s->chance, 6))
        add(s, "scope:override(function(failure) if failure.error.type == 'T' then return "
               "policy.discard(failure.consumer) end end)\n");
}

static const char *random_policy(script *s, sample *chance)
{
    s->length = 0;
    s->chance = chance;
    add(s, "local policy = require 'mulligan.policy'\nlocal scope\n");
    if (pick(chance, 2))
        add(s, "policy.errors { Deadlock = 'Database', Dead = 'T' }\n");
    add_scope(s, "bus", NULL);
    if (pick(chance, 2))
        add_scope(s, "host", NULL);
    for (size_t i = 0; i < SCOPED; i++) {
        if (pick(chance, 2))
            add_scope(s, "consumer", places[i]);
        if (pick(chance, 2))
            add_scope(s, "transport", places[i]);
    }
    if (!pick(chance, 4))
        add(s,
            "for i = 1, %d do policy.consumer('c' .. i):default():retry()\n"
            "policy.transport('t' .. i):max_deliveries(i) end\n",
            CROWD);
    return s->text;
}

/* ---- Failures -------------------------------------------------------------------------------- */

/* plight is a failure with what it points to. */
typedef struct plight {
    mull_failure failure;
    mull_error error, cause;
    mull_field fields[2];
    const char *lineage[2];
    mull_message message;
    const char *consumer, *transport;
} plight;

static const char *random_place(sample *chance)
{
    size_t place = pick(chance, PLACES + 1);
    return place == PLACES ? NULL : places[place];
}

static void random_error(plight *p, sample *chance)
{
    p->error = (mull_error){.size = sizeof p->error, .type = types[pick(chance, TYPES)]};
    p->fields[0] =
        (mull_field){"status", {.kind = MULL_INTEGER, .as.integer = pick(chance, 2) ? 503 : 500}};
    p->fields[1] = (mull_field){"region", {.kind = MULL_STRING, .as.string = "eu"}};
    p->error.fields = p->fields;
    p->error.field_count = pick(chance, 3);
    p->lineage[0] = types[pick(chance, TYPES)];
    p->lineage[1] = types[pick(chance, TYPES)];
    p->error.lineage = p->lineage;
    p->error.lineage_count = pick(chance, 4) ? 0 : pick(chance, 3);
    p->cause = (mull_error){.size = sizeof p->cause, .type = types[pick(chance, TYPES)]};
    p->error.cause = pick(chance, 3) ? NULL : &p->cause;
    p->cause.cause = pick(chance, 2) ? NULL : &p->error;
}

static void random_failure(plight *p, sample *chance)
{
    memset(p, 0, sizeof *p);
    random_error(p, chance);
    p->message = (mull_message){.size = sizeof p->message, .id = "m-1", .type = "Placed"};
    p->consumer = random_place(chance);
    p->transport = random_place(chance);
    p->failure = (mull_failure){
        .size = sizeof p->failure,
        .error = &p->error,
        .message = pick(chance, 2) ? &p->message : NULL,
        .consumer = p->consumer,
        .transport = p->transport,
        .attempt = (int64_t)pick(chance, 6),
        .redeliveries = (int64_t)pick(chance, 4),
        .calls = (int64_t)pick(chance, 8),
        .deliveries = (int64_t)pick(chance, 24),
        .age_ms = (int64_t)pick(chance, 3) * 1000,
        .chance = sample_random(chance) << 32 ^ sample_random(chance),
        .seed = pick(chance, 2) ? 0 : sample_random(chance),
        .flags = pick(chance, 5) ? MULL_HAS_CHANCE : (uint32_t)pick(chance, 16),
    };
}

/* ---- Beside each other ----------------------------------------------------------------------- */

/* stage is a policy with a decider that decides by names, and one by ids. */
typedef struct stage {
    mull_policy *policy;
    mull_decider *by_names, *by_ids;
    char trace[2][TRACE]; /* what the events of each said */
    int at;               /* whose are told */
    long decided, briefly, told;
} stage;

static const char *or_none(const char *text)
{
    return text ? text : "-";
}

static void hear(const mull_event *event, void *data)
{
    stage *s = data;
    if (!event->failure)
        return;
    const mull_failure *f = event->failure;
    char *trace = s->trace[s->at];
    size_t length = strlen(trace);
    snprintf(trace + length, TRACE - length, "%s %s %s %s %s\n", mull_event_name(event->kind),
             f->error->type, or_none(f->consumer), or_none(f->transport), or_none(event->text));
    s->told++;
}

static void stage_open(stage *s, const char *text)
{
    memset(s, 0, sizeof *s);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.problem = test_engine_problem;
    options.event = hear;
    options.data = s;
    assert_int_equal(mull_policy_load(&s->policy, &options), 0);
    assert_int_equal(mull_decider_new(&s->by_names, s->policy), 0);
    assert_int_equal(mull_decider_new(&s->by_ids, s->policy), 0);
}

static void stage_close(stage *s)
{
    mull_decider_free(s->by_names);
    mull_decider_free(s->by_ids);
    mull_policy_free(s->policy);
}

static mull_verdict decide(stage *s, int by_ids, const mull_failure *failure)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    s->at = by_ids;
    s->trace[by_ids][0] = '\0';
    int status = mull_decide(by_ids ? s->by_ids : s->by_names, failure, &verdict);
    assert_int_equal(status, 0);
    return verdict;
}

/* with_ids puts ids in the place of some names, of both mostly; the names are wrong then. */
static void with_ids(stage *s, plight *p, sample *chance)
{
    mull_failure *f = &p->failure;
    size_t which = pick(chance, 6);
    if (which != 0) {
        assert_int_equal(mull_type_intern(&f->type, s->policy, p->error.type), 0);
        p->error.type = pick(chance, 2) ? NULL : "wrong";
    }
    if (which != 1) {
        assert_int_equal(mull_site_intern(&f->site, s->policy, p->consumer, p->transport), 0);
        f->consumer = f->transport = "wrong";
    }
    if (f->type && !p->error.field_count && !p->error.lineage_count && !p->error.cause) {
        f->error = NULL;
        s->briefly++;
    }
}

static void compare(stage *s, sample *chance)
{
    plight p;
    random_failure(&p, chance);
    mull_verdict by_names = decide(s, 0, &p.failure);
    with_ids(s, &p, chance);
    mull_verdict by_ids = decide(s, 1, &p.failure);
    assert_same(&by_names, &by_ids);
    assert_string_equal(s->trace[0], s->trace[1]);
    by_ids = decide(s, 1, &p.failure); /* once more: the same failure, the same verdict */
    assert_same(&by_names, &by_ids);
    s->decided++;
}

static void all_is_the_same_by_names_and_by_ids(void **state)
{
    (void)state;
    sample chance = sample_of(1);
    const char *given = getenv("MULL_IDS");
    long policies = given ? atol(given) : POLICIES;
    static script text;
    static stage s;
    stage_open(&s, random_policy(&text, &chance));
    for (long i = 0; i < policies; i++) {
        for (int j = 0; j < FAILURES; j++)
            compare(&s, &chance);
        assert_true(mull_policy_reload(s.policy, random_policy(&text, &chance), 0) >= 0);
    }
    print_message("%ld failures, %ld of them without an error, %ld events\n", s.decided, s.briefly,
                  s.told);
    assert_true(policies < POLICIES || (s.briefly > s.decided / 50 && s.told > s.decided / 50));
    stage_close(&s);
}

/* ---- Many pairs ------------------------------------------------------------------------------ */

enum { MANY_TYPES = 24, MANY_SITES = 12 };

static const char many[] = "local policy = require 'mulligan.policy'\n"
                           "for i = 1, 24, 2 do policy.bus():on('T' .. i):retry(i, i .. 's') end\n"
                           "for i = 1, 12, 3 do policy.consumer('C' .. i):default():retry(i)\n"
                           "policy.consumer('C' .. i):on('T' .. i):retry(i, i .. 'm') end\n";

static void a_pair_is_never_taken_for_another(void **state)
{
    (void)state;
    static stage s;
    stage_open(&s, many);
    sample chance = sample_of(1);
    for (int i = 0; i < 4000; i++) {
        char type[8], consumer[8];
        snprintf(type, sizeof type, "T%zu", pick(&chance, MANY_TYPES));
        snprintf(consumer, sizeof consumer, "C%zu", pick(&chance, MANY_SITES));
        plight p;
        random_failure(&p, &chance);
        p.error = (mull_error){.size = sizeof p.error, .type = type};
        p.failure.consumer = consumer;
        mull_verdict by_names = decide(&s, 0, &p.failure);
        assert_int_equal(mull_type_intern(&p.failure.type, s.policy, type), 0);
        assert_int_equal(mull_site_intern(&p.failure.site, s.policy, consumer, p.failure.transport),
                         0);
        p.failure.error = NULL;
        mull_verdict by_ids = decide(&s, 1, &p.failure);
        assert_same(&by_names, &by_ids);
    }
    stage_close(&s);
}

/* ---- Up a lineage ---------------------------------------------------------------------------- */

static const char family[] =
    "local policy = require 'mulligan.policy'\n"
    "policy.errors { Child = 'Parent', Parent = 'Grand', Lost = 'Gone' }\n"
    "local bus = policy.bus()\n"
    "bus:on('Parent'):retry(1)\nbus:on('Grand'):retry(2)\nbus:default():retry(3)\n"
    "local odd = policy.consumer('odd')\n"
    "odd:on('Grand', { status = 503 }):retry(4)\nodd:default():retry(5)\n"
    "local causes = policy.consumer('causes')\n"
    "causes:on_cause('Grand'):retry(6)\ncauses:default():retry(7)\n"
    "policy.consumer('lost'):unrecoverable('Gone')\n";

/* retries_of decides by ids, twice: the second time by what was remembered. */
static int64_t retries_of(stage *s, const char *type, const char *consumer, const mull_error *error)
{
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = error;
    failure.flags = MULL_HAS_CHANCE;
    failure.attempt = failure.calls = failure.deliveries = 1;
    assert_int_equal(mull_type_intern(&failure.type, s->policy, type), 0);
    assert_int_equal(mull_site_intern(&failure.site, s->policy, consumer, NULL), 0);
    int64_t of = decide(s, 1, &failure).of;
    assert_int_equal(decide(s, 1, &failure).of, of);
    return of;
}

static void the_nearest_rule_up_the_lineage_decides(void **state)
{
    (void)state;
    static stage s;
    stage_open(&s, family);
    const mull_field status = {"status", {.kind = MULL_INTEGER, .as.integer = 503}};
    const mull_error cause = {.size = sizeof cause, .type = "Child"};
    const mull_error fields = {.size = sizeof fields, .fields = &status, .field_count = 1};
    const mull_error caused = {.size = sizeof caused, .cause = &cause};
    assert_int_equal(retries_of(&s, "Child", NULL, NULL), 1);
    assert_int_equal(retries_of(&s, "Grand", NULL, NULL), 2);
    assert_int_equal(retries_of(&s, "Other", NULL, &caused), 3);
    assert_int_equal(retries_of(&s, "Error", NULL, NULL), 3);
    assert_int_equal(retries_of(&s, "Child", "odd", NULL), 5);
    assert_int_equal(retries_of(&s, "Child", "odd", &fields), 4);
    assert_int_equal(retries_of(&s, "Other", "odd", &fields), 5);
    assert_int_equal(retries_of(&s, "Child", "causes", NULL), 7);
    assert_int_equal(retries_of(&s, "Child", "causes", &caused), 6);
    assert_int_equal(retries_of(&s, "Lost", NULL, NULL), 3);
    assert_int_equal(retries_of(&s, "Lost", "lost", NULL), 0);
    stage_close(&s);
}

/* ---- What an id is --------------------------------------------------------------------------- */

static mull_type type_of(mull_policy *policy, const char *name)
{
    mull_type type;
    assert_int_equal(mull_type_intern(&type, policy, name), 0);
    assert_int_not_equal(type, 0);
    return type;
}

static mull_site site_of(mull_policy *policy, const char *consumer, const char *transport)
{
    mull_site site;
    assert_int_equal(mull_site_intern(&site, policy, consumer, transport), 0);
    assert_int_not_equal(site, 0);
    return site;
}

static void the_same_name_has_the_same_id(void **state)
{
    (void)state;
    static const char *const sites[][2] = {
        {"a", NULL},  {NULL, "a"}, {"a", "a"}, {"", NULL}, {NULL, ""}, {"", ""},
        {NULL, NULL}, {"a", ""},   {"", "a"},  {"ab", ""}, {"a", "b"},
    };
    enum { SITES = sizeof sites / sizeof *sites };
    mull_policy *policy = test_engine_policy("");
    mull_type first = type_of(policy, "T"), second = type_of(policy, "t");
    mull_site ids[SITES];
    assert_int_not_equal(first, second);
    for (size_t i = 0; i < SITES; i++) {
        ids[i] = site_of(policy, sites[i][0], sites[i][1]);
        for (size_t j = 0; j < i; j++)
            assert_int_not_equal(ids[i], ids[j]);
    }
    assert_int_equal(mull_policy_reload(policy, "-- another", 0), 0);
    assert_int_equal(mull_policy_reload(policy, "a mistake", 0), MULL_EPOLICY);
    char name[] = "T";
    assert_int_equal(type_of(policy, name), first);
    for (size_t i = 0; i < SITES; i++)
        assert_int_equal(site_of(policy, sites[i][0], sites[i][1]), ids[i]);
    mull_policy_free(policy);
}

static void what_is_no_name_is_refused(void **state)
{
    (void)state;
    static char lengthy[65536 + 2];
    memset(lengthy, 'x', sizeof lengthy - 1);
    mull_policy *policy = test_engine_policy("");
    uint32_t id = 7;
    assert_int_equal(mull_type_intern(NULL, policy, "T"), MULL_EINVAL);
    assert_int_equal(mull_site_intern(NULL, policy, "c", NULL), MULL_EINVAL);
    assert_int_equal(mull_type_intern(&id, policy, NULL), MULL_EINVAL);
    assert_int_equal(id, 0);
    assert_int_equal(mull_type_intern(&id, policy, ""), MULL_EINVAL);
    assert_int_equal(mull_type_intern(&id, NULL, "T"), MULL_EINVAL);
    assert_int_equal(mull_site_intern(&id, NULL, "c", "t"), MULL_EINVAL);
    id = 7;
    assert_int_equal(mull_type_intern(&id, policy, lengthy), MULL_ETOOBIG);
    assert_int_equal(id, 0);
    assert_int_equal(mull_site_intern(&id, policy, lengthy, NULL), MULL_ETOOBIG);
    assert_int_equal(mull_site_intern(&id, policy, NULL, lengthy), MULL_ETOOBIG);
    assert_int_equal(mull_type_intern(&id, policy, lengthy + 1), 0);
    assert_int_equal(mull_site_intern(&id, policy, lengthy + 1, lengthy + 1), 0);
    mull_policy_free(policy);
}

static void there_are_65535_at_most(void **state)
{
    (void)state;
    mull_policy *policy = test_engine_policy("");
    char name[16];
    uint32_t id;
    for (int i = 1; i <= 65535; i++) {
        snprintf(name, sizeof name, "T%d", i);
        assert_int_equal(mull_type_intern(&id, policy, name), 0);
        assert_int_equal(mull_site_intern(&id, policy, NULL, name), 0);
    }
    assert_int_equal(mull_type_intern(&id, policy, "T65536"), MULL_ETOOBIG);
    assert_int_equal(id, 0);
    assert_int_equal(mull_site_intern(&id, policy, NULL, "T65536"), MULL_ETOOBIG);
    assert_int_equal(mull_type_intern(&id, policy, "T65535"), 0);
    assert_int_not_equal(id, 0);
    mull_policy_free(policy);
}

static void an_id_that_was_never_given_is_refused(void **state)
{
    (void)state;
    static stage s;
    stage_open(&s, "local policy = require 'mulligan.policy'\npolicy.bus():on('T'):retry()\n");
    mull_type type = type_of(s.policy, "T");
    mull_site site = site_of(s.policy, "c", NULL);
    mull_error error = {.size = sizeof error, .type = "T"};
    const uint32_t flags[] = {MULL_HAS_CHANCE, 0, MULL_NO_JITTER};
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        const mull_failure wrong[] = {
            {.type = type + 1, .site = site},
            {.type = type + 1},
            {.type = UINT32_MAX},
            {.type = type, .site = site + 1},
            {.error = &error, .site = 99},
            {.type = type, .site = UINT32_MAX},
        };
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            mull_failure failure = wrong[j];
            failure.size = sizeof failure;
            failure.attempt = failure.calls = failure.deliveries = 1;
            failure.flags = flags[i];
            mull_verdict verdict = MULL_INIT(mull_verdict), before = verdict;
            assert_int_equal(mull_decide(s.by_ids, &failure, &verdict), MULL_EINVAL);
            assert_memory_equal(&verdict, &before, sizeof verdict);
        }
    }
    stage_close(&s);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static mull_policy *counted_policy(counting_allocator *p, const char *text)
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = text;
    options.allocator = counting_allocator_ops(p);
    mull_policy *policy = NULL;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    return policy;
}

/* interned tries to intern with the `nth` request for memory refused. */
static int interned(counting_allocator *p, mull_policy *policy, int site, const char *name,
                    long nth)
{
    uint32_t id = 7;
    p->asked = 0;
    p->fail_at = nth;
    int status =
        site ? mull_site_intern(&id, policy, name, name) : mull_type_intern(&id, policy, name);
    p->fail_at = 0;
    assert_int_equal(status == 0, id != 0);
    return status;
}

static const char crowded[] = "local policy = require 'mulligan.policy'\n"
                              "for i = 0, 40 do policy.consumer('n' .. i):default():retry()\n"
                              "policy.transport('n' .. i):max_deliveries(3) end\n";

static void without_memory_nothing_changes(void **state)
{
    (void)state;
    counting_allocator p = {0};
    mull_policy *policy = counted_policy(&p, crowded);
    for (int i = 0; i < 40; i++)
        for (int site = 0; site < 2; site++) {
            char name[16];
            snprintf(name, sizeof name, "n%d", i);
            long bytes, nth = 1;
            int status;
            do {
                bytes = p.out;
                status = interned(&p, policy, site, name, nth++);
                assert_true(status == 0 || status == MULL_ENOMEM);
                assert_true(status == 0 || p.out <= bytes + 2); /* longer arrays, at the most */
            } while (status);
            assert_true(nth > 2);
            uint32_t id;
            assert_int_equal(site ? mull_site_intern(&id, policy, name, name)
                                  : mull_type_intern(&id, policy, name),
                             0);
            assert_int_equal(id, i + 1);
        }
    mull_policy_free(policy);
    assert_int_equal(p.out, 0);
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { DECIDING = 3, NAMES = 400 / SLOWNESS, RELOADS = 60 / SLOWNESS };

typedef struct crew {
    mull_policy *policy;
    atomic_int wrong, stop;
    atomic_uint newest; /* the number of the name that was interned last, by this id: */
    atomic_uint ids[NAMES + 1];
    atomic_long decided;
} crew;

/* Each type is a step longer than the one before in its first retry, whatever the policy. */
static void policy_text(char *text, size_t size, int round)
{
    snprintf(text, size,
             "local policy = require 'mulligan.policy' -- %d\nlocal bus = policy.bus()\n"
             "for i = 1, %d do bus:on('N' .. i):retry { attempts = %d, delay = policy.seconds(i), "
             "jitter = 0, max_delay = '1h' } end\n",
             round, NAMES, 2 + round % 2);
}

static void *decide_by_ids(void *data)
{
    crew *c = data;
    mull_decider *decider;
    if (mull_decider_new(&decider, c->policy))
        return data; /* not NULL: it failed */
    for (unsigned turn = 0; !c->stop; turn++) {
        unsigned newest = c->newest, number = newest ? 1 + turn % newest : 0;
        if (!number) {
            sched_yield();
            continue;
        }
        mull_failure failure = MULL_INIT(mull_failure);
        mull_verdict verdict = MULL_INIT(mull_verdict);
        failure.type = c->ids[number];
        failure.site = 1 + turn % 2;
        failure.attempt = failure.calls = failure.deliveries = 1;
        failure.flags = MULL_HAS_CHANCE;
        if (mull_decide(decider, &failure, &verdict) || verdict.action != MULL_RETRY ||
            verdict.delay_ms != 1000 * (int64_t)number || verdict.of < 2 || verdict.of > 3)
            c->wrong++;
        c->decided++;
    }
    mull_decider_free(decider);
    return NULL;
}

static void *intern_names(void *data)
{
    crew *c = data;
    for (unsigned i = 1; i <= NAMES; i++) {
        char name[16];
        mull_type id;
        mull_site site;
        snprintf(name, sizeof name, "N%u", i);
        if (mull_type_intern(&id, c->policy, name) ||
            mull_site_intern(&site, c->policy, name, NULL))
            return data; /* not NULL: it failed */
        c->ids[i] = id;
        c->newest = i;
        sched_yield();
    }
    return NULL;
}

static void reload_often(crew *c)
{
    char text[512];
    for (int i = 1; i <= RELOADS; i++) {
        policy_text(text, sizeof text, i);
        assert_int_equal(mull_policy_reload(c->policy, text, 0), 0);
    }
}

static void threads_intern_decide_and_reload_at_once(void **state)
{
    (void)state;
    static crew c;
    char text[512];
    counting_allocator p = {0};
    policy_text(text, sizeof text, 0);
    c.policy = counted_policy(&p, text);
    site_of(c.policy, "c", "t");
    site_of(c.policy, NULL, "t");
    pthread_t deciding[DECIDING], interning;
    for (int i = 0; i < DECIDING; i++)
        assert_int_equal(pthread_create(&deciding[i], NULL, decide_by_ids, &c), 0);
    assert_int_equal(pthread_create(&interning, NULL, intern_names, &c), 0);
    reload_often(&c);
    void *wrong;
    assert_int_equal(pthread_join(interning, &wrong), 0);
    assert_null(wrong);
    long before = c.decided;
    while (c.decided < before + 2 * NAMES) /* all of them, by the last generation */
        sched_yield();
    c.stop = 1;
    for (int i = 0; i < DECIDING; i++) {
        assert_int_equal(pthread_join(deciding[i], &wrong), 0);
        assert_null(wrong);
    }
    assert_int_equal(c.wrong, 0);
    mull_policy_free(c.policy);
    assert_int_equal(p.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_is_the_same_by_names_and_by_ids),
        cmocka_unit_test(a_pair_is_never_taken_for_another),
        cmocka_unit_test(the_nearest_rule_up_the_lineage_decides),
        cmocka_unit_test(the_same_name_has_the_same_id),
        cmocka_unit_test(what_is_no_name_is_refused),
        cmocka_unit_test(there_are_65535_at_most),
        cmocka_unit_test(an_id_that_was_never_given_is_refused),
        cmocka_unit_test(without_memory_nothing_changes),
        cmocka_unit_test(threads_intern_decide_and_reload_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
