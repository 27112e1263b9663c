/* decide.c: the policy, its generations and deciders, on one thread: who is freed when,
 * what a refused reload leaves behind, and memory that runs out at every step. */
#include <errno.h>

#include "base/utf8.h"
#include "decide/policy.h"
#include "fake_language.h"

typedef struct test_engine {
    counting_allocator counting_allocator;
    fake fake;
    mull_policy *policy;
    int loaded, refused, matcher_failed, override_failed;
    mull_decider *again; /* decides inside of the event; NULL: nobody does */
    int status_of_again;
    const char *around_again[2]; /* what is loaded before that, and after; NULL: nothing */
    char text[128], generation[33];
    int line;
} test_engine;

static void load_around(test_engine *r, const mull_event *event, int n)
{
    if (event->failure && r->around_again[n])
        assert_int_equal(mull_policy_reload(r->policy, r->around_again[n], 0), 0);
}

/* take_event also asks back, as an embedder may: no lock is held. */
static void take_event(const mull_event *event, void *data)
{
    test_engine *r = data;
    r->loaded += event->kind == MULL_EVENT_POLICY_LOADED;
    r->refused += event->kind == MULL_EVENT_POLICY_REFUSED;
    r->matcher_failed += event->kind == MULL_EVENT_MATCHER_FAILED;
    r->override_failed += event->kind == MULL_EVENT_OVERRIDE_FAILED;
    snprintf(r->text, sizeof r->text, "%s", event->text ? event->text : "");
    snprintf(r->generation, sizeof r->generation, "%s", event->generation);
    r->line = event->rule ? event->rule->line : 0;
    char name[33];
    mull_policy_generation(r->policy, name);
    assert_string_equal(name, event->generation);
    load_around(r, event, 0);
    if (r->again && event->failure) {
        mull_verdict verdict = MULL_INIT(mull_verdict);
        r->status_of_again = mull_decide(r->again, event->failure, &verdict);
    }
    load_around(r, event, 1);
}

static void test_engine_init(test_engine *r, const char *text)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(fake_load(&r->policy, &r->fake, &r->counting_allocator, text, take_event, r),
                     0);
}

static mull_decider *test_engine_init_with_decider(test_engine *r, const char *text)
{
    mull_decider *decider;
    test_engine_init(r, text);
    assert_int_equal(mull_decider_new(&decider, r->policy), 0);
    return decider;
}

static void test_engine_done(test_engine *r)
{
    mull_policy_free(r->policy);
    assert_int_equal(r->fake.states, 0);
    assert_int_equal(r->fake.sources, 0);
    assert_int_equal(r->fake.closed, 1);
    assert_int_equal(r->counting_allocator.out, 0);
}

static int reload(test_engine *r, const char *text)
{
    return mull_policy_reload(r->policy, text, strlen(text));
}

static mull_verdict decide(mull_decider *decider, const char *type)
{
    mull_error error = error_of(type);
    mull_failure failure = MULL_INIT(mull_failure);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    failure.error = &error;
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    return verdict;
}

/* ---- What mull_decide takes ------------------------------------------------------------------ */

static void wrong_failures(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "a");
    mull_error error = error_of("Fails");
    mull_message message = MULL_INIT(mull_message);
    mull_failure right = MULL_INIT(mull_failure);
    right.error = &error;
    right.message = &message;
    mull_verdict v = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(d, &right, &v), 0);
#define WRONG(field, value)                                                                        \
    do {                                                                                           \
        mull_failure f = right;                                                                    \
        f.field = value;                                                                           \
        assert_int_equal(mull_decide(d, &f, &v), MULL_EINVAL);                                     \
    } while (0)
    WRONG(size, 0);
    WRONG(size, sizeof f - 1);
    WRONG(error, NULL);
    WRONG(attempt, -1);
    WRONG(redeliveries, -1);
    WRONG(calls, -1);
    WRONG(deliveries, -1);
    WRONG(age_ms, -1);
#undef WRONG
    error.type = "";
    assert_int_equal(mull_decide(d, &right, &v), MULL_EINVAL);
    error.type = NULL;
    assert_int_equal(mull_decide(d, &right, &v), MULL_EINVAL);
    error = (mull_error){.type = "Fails"};
    assert_int_equal(mull_decide(d, &right, &v), MULL_EINVAL);
    error = error_of("Fails");
    message.size = 4;
    assert_int_equal(mull_decide(d, &right, &v), MULL_EINVAL);
    message.size = sizeof message;
    v.size = sizeof v - 1;
    assert_int_equal(mull_decide(d, &right, &v), MULL_EINVAL);
    assert_int_equal(mull_decide(d, &right, NULL), MULL_EINVAL);
    assert_int_equal(mull_decide(d, NULL, &v), MULL_EINVAL);
    assert_int_equal(mull_decide(NULL, &right, &v), MULL_EINVAL);
    v.size = sizeof v;
    assert_int_equal(mull_decide(d, &right, &v), 0);
    mull_decider_free(d);
    assert_int_equal(mull_decider_new(&d, NULL), MULL_EINVAL);
    assert_null(d);
    assert_int_equal(mull_decider_new(NULL, r.policy), MULL_EINVAL);
    mull_decider_free(NULL);
    mull_policy_free(NULL);
    test_engine_done(&r);
}

static void defaults_are_filled_in(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "a");
    mull_verdict v = decide(d, "Fails");
    assert_int_equal(v.action, MULL_RETRY);
    assert_int_equal(v.step, 1);
    assert_int_equal(v.of, 4);
    assert_int_equal(v.delay_ms, 200);
    assert_int_equal(v.size, sizeof v);
    char name[33];
    mull_policy_generation(r.policy, name);
    assert_string_equal(v.generation, name);
    assert_int_equal(mull_policy_rules(r.policy), 3);
    mull_decider_free(d);
    test_engine_done(&r);
}

/* ---- Reloads --------------------------------------------------------------------------------- */

static void reloads(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    char first[33], second[33];
    mull_policy_generation(r.policy, first);
    mull_decider *d;
    assert_int_equal(mull_decider_new(&d, r.policy), 0);
    assert_int_equal(decide(d, "Ends").action, MULL_DEAD_LETTER);
    assert_int_equal(reload(&r, "a"), 1);
    assert_int_equal(r.loaded + r.refused, 0);
    assert_int_equal(reload(&r, "b"), 0);
    assert_int_equal(r.loaded, 1);
    mull_policy_generation(r.policy, second);
    assert_string_not_equal(first, second);
    char loaded[sizeof r.text];
    snprintf(loaded, sizeof loaded, "policy.lua: 3 rules, generation %s", second);
    assert_string_equal(r.text, loaded);
    assert_string_equal(r.generation, second);
    mull_verdict v = decide(d, "Ends");
    assert_int_equal(v.action, MULL_DISCARD);
    assert_string_equal(v.generation, second);
    assert_int_equal(reload(&r, "!"), MULL_EPOLICY);
    assert_int_equal(r.refused, 1);
    assert_string_equal(r.generation, second);
    assert_string_equal(r.text, "fake.lua:3: a mistake");
    assert_int_equal(reload(&r, "!!!"), MULL_EPOLICY);
    assert_string_equal(r.text, "fake.lua:3: a mistake (and 2 more)");
    assert_int_equal(decide(d, "Ends").action, MULL_DISCARD);
    assert_int_equal(reload(&r, "a"), 0);
    mull_policy_generation(r.policy, second);
    assert_string_equal(first, second);
    assert_int_equal(decide(d, "Ends").action, MULL_DEAD_LETTER);
    assert_int_equal(mull_policy_reload(NULL, "a", 1), MULL_EINVAL);
    mull_decider_free(d);
    test_engine_done(&r);
}

static void a_text_without_a_size_is_measured(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    assert_int_equal(mull_policy_reload(r.policy, "a", 0), 1);
    assert_int_equal(mull_policy_reload(r.policy, "bb", 0), 0);
    assert_int_equal(mull_policy_reload(r.policy, "bb", 1), 0);
    test_engine_done(&r);
}

static void load_again(void *data)
{
    test_engine *r = data;
    mull_decider *decider;
    assert_int_equal(mull_policy_reload(r->policy, "b", 1), MULL_ESTATE);
    assert_int_equal(mull_decider_new(&decider, r->policy), MULL_ESTATE);
    assert_null(decider);
}

static void a_load_out_of_a_load_is_refused(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    r.fake.on_compile = load_again;
    r.fake.on_compile_data = &r;
    assert_int_equal(reload(&r, "?"), MULL_EPOLICY);
    assert_int_equal(r.refused, 1);
    assert_int_equal(reload(&r, "b"), 0);
    test_engine_done(&r);
}

/* At most one old decider state waits with each decider, and one that never decides keeps two at
 * most. */
static void seats_come_and_go(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "f");
    mull_decider *d, *idle;
    assert_int_equal(mull_decider_new(&d, r.policy), 0);
    assert_int_equal(mull_decider_new(&idle, r.policy), 0);
    assert_int_equal(r.fake.states, 2);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(reload(&r, i % 2 ? "f" : "f, changed"), 0);
        assert_int_equal(r.fake.states, 4);
        assert_int_equal(r.fake.sources, i ? 3 : 2); /* in force, before, and the idle one's */
        assert_int_equal(decide(d, "Fails").action, MULL_RETRY);
        assert_int_equal(r.fake.states, 4);
    }
    assert_int_equal(reload(&r, "a"), 0);
    assert_int_equal(r.fake.states, 2); /* a table without functions needs none */
    assert_int_equal(decide(d, "Fails").action, MULL_RETRY);
    mull_decider_free(d);
    assert_int_equal(r.fake.states, 1);
    mull_decider_free(idle);
    test_engine_done(&r);
}

static void a_verdict_lives_until_the_next_call(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "a");
    mull_verdict v = decide(d, "Ends");
    for (int i = 0; i < 5; i++)
        assert_int_equal(reload(&r, i % 2 ? "a" : "b"), 0);
    assert_string_equal(v.queue, "queue-a"); /* ASan sees it if the reloads freed it */
    assert_string_equal(v.rule.file, "a.lua");
    mull_decider_free(d);
    test_engine_done(&r);
}

static void a_generation_may_outlive_the_holder(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "f");
    mull_verdict v = decide(d, "Fails");
    mull__generation *kept = mull__generation_ref(mull__decider_generation(d));
    assert_int_equal(reload(&r, "b"), 0);
    decide(d, "Fails");
    assert_int_equal(reload(&r, "a"), 0);
    mull_decider_free(d);
    mull_policy_free(r.policy);
    assert_int_equal(r.fake.closed, 0);
    assert_string_equal(v.rule.file, "a.lua");
    assert_string_equal(v.generation, mull__generation_name(kept));
    assert_int_equal(mull__generation_table(kept)->rule_count, 3);
    mull__generation_unref(kept);
    assert_int_equal(r.fake.closed, 1);
    assert_int_equal(r.counting_allocator.out, 0);
}

static void a_report_is_utf8_however_long(void **state)
{
    (void)state;
    mull__report report = {0};
    char text[2000] = "x", why[700];
    for (size_t i = 1; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xC3\xA9", 3);
    mull__report_add(NULL, 0, text, &report);
    mull__report_say(&report, MULL_EPOLICY, why, sizeof why);
    assert_int_equal(strlen(why), sizeof why - 1);
    for (size_t size = sizeof why; size > sizeof why - 4; size--) {
        mull__report_say(&report, MULL_EPOLICY, why, size);
        assert_true(mull__utf8_valid(why));
    }
    assert_true(mull__utf8_valid(report.first));
    report = (mull__report){0};
    mull__report_say(&report, MULL_ENOMEM, why, sizeof why);
    assert_string_equal(why, "out of memory");
}

/* ---- Functions ------------------------------------------------------------------------------- */

static void functions(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "f");
    assert_int_equal(decide(d, "Fails").rule.line, FAKE_LINE_A);
    assert_int_equal(r.fake.matched, 1);
    assert_int_equal(r.matcher_failed, 0);
    mull_verdict v =
        decide(d, "Ends"); /* its matcher raises: skipped, told, decided all the same */
    assert_int_equal(v.rule.line, 3);
    assert_int_equal(v.reason, MULL_REASON_RULE);
    assert_int_equal(r.matcher_failed, 1);
    assert_int_equal(r.line, FAKE_LINE_A);
    assert_string_equal(r.text, "attempt to index a nil value");
    assert_string_equal(r.generation, v.generation);
    mull_decider_free(d);
    test_engine_done(&r);
}

static void overrides(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "a^");
    assert_int_equal(decide(d, "Fails").action, MULL_RETRY); /* it has no answer */
    r.fake.answer = (mull__answer){.given = 1, .action = MULL_DEAD_LETTER, .queue = "found"};
    mull_verdict v = decide(d, "Fails");
    assert_string_equal(v.queue, "found-Fails");
    assert_int_equal(v.reason, MULL_REASON_OVERRIDE);
    assert_int_equal(v.rule.line, FAKE_LINE_A);
    r.fake.override_raises = 1;
    v = decide(d, "Fails");
    assert_int_equal(v.action, MULL_RETRY);
    assert_int_equal(v.reason, MULL_REASON_NONE);
    assert_int_equal(r.override_failed, 1);
    assert_string_equal(r.text, "an override raises");
    assert_string_equal(r.generation, v.generation);
    mull_decider_free(d);
    test_engine_done(&r);
}

/* Flags that force chance to an end are not for embedders, as all that mulligan.h doesn't know. */
static void chance_is_not_forced_from_outside(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "j");
    mull_error error = error_of("Fails");
    mull_failure failure = failure_of(&error);
    failure.chance = 4711;
    mull_verdict v = MULL_INIT(mull_verdict), forced = v;
    assert_int_equal(mull_decide(d, &failure, &v), 0);
    const uint32_t ends[] = {MULL__JITTER_LOW, MULL__JITTER_HIGH};
    for (size_t i = 0; i < COUNT(ends); i++) {
        failure.flags = MULL_HAS_CHANCE | ends[i];
        assert_int_equal(mull_decide(d, &failure, &forced), MULL_EINVAL);
    }
    assert_true(v.delay_ms > 0 && v.delay_ms < 400);
    mull_decider_free(d);
    test_engine_done(&r);
}

static void a_decider_is_not_asked_out_of_its_own_event(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "f");
    r.again = d;
    assert_int_equal(decide(d, "Ends").rule.line, 3);
    assert_int_equal(r.status_of_again, MULL_ESTATE);
    r.again = NULL;
    assert_int_equal(decide(d, "Ends").rule.line, 3); /* afterwards it decides as ever */
    mull_decider_free(d);
    test_engine_done(&r);
}

static void a_reload_out_of_a_decision_leaves_what_that_decides_by(void **state)
{
    (void)state;
    test_engine r;
    mull_decider *d = test_engine_init_with_decider(&r, "f");
    r.again = d;
    char first[33];
    mull_policy_generation(r.policy, first);
    r.around_again[0] = "f1";
    r.around_again[1] = "f2";
    mull_verdict v = decide(d, "Ends");
    r.around_again[0] = r.around_again[1] = NULL;
    r.again = NULL;
    assert_int_equal(r.status_of_again, MULL_ESTATE);
    assert_int_equal(v.rule.line, 3);
    assert_string_equal(v.rule.file, "policy.lua");
    assert_string_equal(v.generation, first);
    assert_string_not_equal(decide(d, "Fails").generation, first);
    mull_decider_free(d);
    test_engine_done(&r);
}

/* ---- Vetoes ---------------------------------------------------------------------------------- */

/* leaver has nothing against any table; when asked, its problem makes another leave. */
typedef struct leaver {
    mull_policy *policy;
    mull__reload_validator other;
    int asked;
} leaver;

static int let_other_leave(void *data, const mull__table *table, mull_problem_fn problem,
                           void *problem_data)
{
    leaver *l = data;
    (void)table, (void)problem, (void)problem_data;
    l->asked++;
    mull__policy_remove_validator(l->policy, &l->other);
    assert_int_equal(pthread_mutex_trylock(&l->policy->validating), EBUSY); /* still locked */
    return 0;
}

static int never_asked(void *data, const mull__table *table, mull_problem_fn problem,
                       void *problem_data)
{
    (void)data, (void)table, (void)problem, (void)problem_data;
    return MULL_EREFUSED;
}

static int has_nothing_against(void *data, const mull__table *table, mull_problem_fn problem,
                               void *problem_data)
{
    (void)data, (void)table, (void)problem, (void)problem_data;
    return 0;
}

static void a_veto_may_go_while_another_is_asked(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    leaver l = {.policy = r.policy, .other.check = has_nothing_against};
    mull__reload_validator validator = {.check = has_nothing_against, .data = &l};
    assert_int_equal(mull__policy_add_validator(r.policy, &validator, NULL, NULL), 0);
    assert_int_equal(mull__policy_add_validator(r.policy, &l.other, NULL, NULL), 0);
    validator.check = let_other_leave;
    l.other.check = never_asked;
    assert_int_equal(reload(&r, "b"), 0);
    assert_int_equal(l.asked, 1);
    mull__policy_remove_validator(r.policy, &validator);
    assert_int_equal(reload(&r, "a"), 0);
    assert_int_equal(l.asked, 1);
    test_engine_done(&r);
}

static void an_impure_policy_is_refused_as_a_whole(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    mull_decider *d[3];
    for (size_t i = 0; i < COUNT(d); i++)
        assert_int_equal(mull_decider_new(&d[i], r.policy), 0);
    assert_int_equal(reload(&r, "i"), MULL_EPOLICY); /* the second decider's state fails */
    assert_int_equal(r.refused, 1);
    assert_int_equal(r.fake.states, 0);
    for (size_t i = 0; i < COUNT(d); i++)
        assert_string_equal(decide(d[i], "Ends").queue, "queue-a");
    assert_int_equal(reload(&r, "b"), 0); /* and later reloads work */
    for (size_t i = 0; i < COUNT(d); i++)
        mull_decider_free(d[i]);
    assert_int_equal(reload(&r, "i"), 0);
    assert_int_equal(mull_decider_new(&d[0], r.policy), 0);
    assert_int_equal(mull_decider_new(&d[1], r.policy), MULL_EPOLICY);
    assert_null(d[1]);
    mull_decider_free(d[0]);
    test_engine_done(&r);
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* life loads, decides, reloads and decides; the first step that fails ends it. The verdict before a
 * failed reload is the verdict after it. */
static int life(counting_allocator *p)
{
    fake f;
    mull_policy *policy;
    mull_decider *one = NULL, *two = NULL;
    int status = fake_load(&policy, &f, p, "f", NULL, NULL);
    if (status) {
        assert_null(policy);
        assert_int_equal(f.closed, 1);
        return status;
    }
    status = mull_decider_new(&one, policy);
    if (status == 0)
        status = mull_decider_new(&two, policy);
    if (status == 0) {
        long asked = p->asked;
        assert_int_equal(decide(one, "Ends").rule.line, 3);
        assert_int_equal(p->asked, asked);
        status = mull_policy_reload(policy, "f, changed", 0);
        mull_verdict v = decide(two, "Fails");
        char name[33];
        mull_policy_generation(policy, name);
        assert_string_equal(v.generation, name);
        assert_int_equal(v.rule.line, FAKE_LINE_A);
        if (status == 0)
            status = mull_policy_reload(policy, "b", 0);
    }
    mull_decider_free(two);
    mull_decider_free(one);
    mull_policy_free(policy);
    assert_int_equal(f.closed, 1);
    assert_int_equal(f.states, 0);
    return status;
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    int status = MULL_ENOMEM;
    long n = 0;
    while (status) {
        counting_allocator p = {.fail_at = ++n};
        status = life(&p);
        assert_true(status == 0 || status == MULL_ENOMEM);
        assert_int_equal(p.out, 0);
    }
    assert_true(n > 25); /* there were as many to fail */
}

/* ---- Words ----------------------------------------------------------------------------------- */

static void words(void **state)
{
    (void)state;
    assert_string_equal(mull_version(), MULL_VERSION);
    assert_string_equal(mull_strerror(MULL_ENOMEM), "out of memory");
    assert_string_equal(mull_strerror(0), "no error");
    assert_string_equal(mull_strerror(MULL_E_LAST), "unknown error code");
    assert_string_equal(mull_strerror(77), "unknown error code");
    assert_string_equal(mull_action_name(MULL_DEAD_LETTER), "dead_letter");
    assert_string_equal(mull_reason_name(MULL_REASON_MAX_AGE), "max_age");
    assert_null(mull_reason_name(MULL_REASON_NONE));
    assert_null(mull_reason_name(MULL_REASON_LAST));
    assert_string_equal(mull_tier_name(MULL_TIER_RETRY), "retry");
    assert_null(mull_tier_name(MULL_TIER_NONE));
    assert_string_equal(mull_fallback_name(MULL_NO_DELAY), "no_delay");
    assert_null(mull_fallback_name(MULL_FALLBACK_NONE));
    assert_string_equal(mull_event_name(MULL_EVENT_POLICY_REFUSED), "policy_refused");
    assert_null(mull_event_name((mull_event_kind)99));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_failures),
        cmocka_unit_test(defaults_are_filled_in),
        cmocka_unit_test(reloads),
        cmocka_unit_test(a_text_without_a_size_is_measured),
        cmocka_unit_test(a_load_out_of_a_load_is_refused),
        cmocka_unit_test(seats_come_and_go),
        cmocka_unit_test(a_verdict_lives_until_the_next_call),
        cmocka_unit_test(a_generation_may_outlive_the_holder),
        cmocka_unit_test(a_report_is_utf8_however_long),
        cmocka_unit_test(functions),
        cmocka_unit_test(overrides),
        cmocka_unit_test(chance_is_not_forced_from_outside),
        cmocka_unit_test(a_decider_is_not_asked_out_of_its_own_event),
        cmocka_unit_test(a_reload_out_of_a_decision_leaves_what_that_decides_by),
        cmocka_unit_test(a_veto_may_go_while_another_is_asked),
        cmocka_unit_test(an_impure_policy_is_refused_as_a_whole),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
