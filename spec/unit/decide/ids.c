/* ids.c: what interned names mean in generations that aren't in force, or never come to
 * be: a decider that hasn't moved on finds every id, and a reload that has no memory for them
 * changes nothing. */
#include "decide/policy.h"
#include "fake_language.h"

typedef struct test_engine {
    counting_allocator counting_allocator;
    fake fake;
    mull_policy *policy;
    mull_decider *decider;
} test_engine;

static void test_engine_init(test_engine *r, const char *text)
{
    memset(r, 0, sizeof *r);
    assert_int_equal(fake_load(&r->policy, &r->fake, &r->counting_allocator, text, NULL, NULL), 0);
    assert_int_equal(mull_decider_new(&r->decider, r->policy), 0);
}

static void test_engine_done(test_engine *r)
{
    mull_decider_free(r->decider);
    mull_policy_free(r->policy);
    assert_int_equal(r->counting_allocator.out, 0);
}

static mull_failure failure_by_ids(test_engine *r, const char *type, const char *consumer)
{
    mull_failure failure = MULL_INIT(mull_failure);
    failure.attempt = failure.calls = failure.deliveries = 1;
    failure.flags = MULL_HAS_CHANCE;
    assert_int_equal(mull_type_intern(&failure.type, r->policy, type), 0);
    assert_int_equal(mull_site_intern(&failure.site, r->policy, consumer, NULL), 0);
    return failure;
}

static void assert_line(mull_verdict verdict, int line)
{
    assert_int_equal(verdict.rule.line, line);
}

static mull_verdict decide(test_engine *r, const mull_failure *failure)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(r->decider, failure, &verdict), 0);
    return verdict;
}

static void a_decider_that_has_not_moved_on_finds_every_id(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    const mull_failure before = failure_by_ids(&r, "Fails", "before");
    assert_line(decide(&r, &before), FAKE_LINE_A);
    assert_int_equal(mull_policy_reload(r.policy, "b", 0), 0);
    for (int i = 0; i < 40; i++) { /* arrays grow meanwhile */
        char consumer[16];
        snprintf(consumer, sizeof consumer, "c%d", i);
        const mull_failure after = failure_by_ids(&r, i % 2 ? "Ends" : "Fails", consumer);
        mull_verdict verdict = MULL_INIT(mull_verdict);
        assert_int_equal(mull__decide_current(r.decider, &after, &verdict), 0);
        assert_line(verdict, FAKE_LINE_A);
    }
    const mull_failure after = failure_by_ids(&r, "Ends", "c7");
    assert_line(decide(&r, &after), FAKE_LINE_B);
    assert_line(decide(&r, &before), FAKE_LINE_B);
    test_engine_done(&r);
}

/* A decider state that somebody keeps, keeps its generation: that one goes on to resolve ids. */
static void a_generation_that_is_kept_is_no_trouble(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a");
    mull__decider_state *kept = mull__decider_state_ref(r.decider);
    assert_int_equal(mull_policy_reload(r.policy, "b", 0), 0);
    const mull_failure failure = failure_by_ids(&r, "Fails", NULL);
    assert_line(decide(&r, &failure), FAKE_LINE_B);
    const uint32_t *number = mull__resolved_type(kept->resolved, failure.type);
    assert_non_null(number);
    assert_true(*number < kept->table->type_count);
    assert_string_equal(kept->table->types[*number].name, "Fails");
    mull__decider_state_unref(kept);
    const mull_failure later = failure_by_ids(&r, "Ends", NULL);
    assert_line(decide(&r, &later), FAKE_LINE_B);
    test_engine_done(&r);
}

static void a_reload_without_memory_leaves_every_id_as_it_was(void **state)
{
    (void)state;
    test_engine r;
    test_engine_init(&r, "a+");
    mull_failure failures[20];
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        failures[i] = failure_by_ids(&r, i % 3 ? name : "Fails", name);
    }
    long nth = 0;
    int status;
    do {
        for (int i = 0; i < 20; i++) /* those of which no rule is, are of Error's */
            assert_line(decide(&r, &failures[i]), i % 3 ? 3 : FAKE_LINE_A);
        r.counting_allocator.fail_at = r.counting_allocator.asked + ++nth;
        status = mull_policy_reload(r.policy, "b+", 0);
        r.counting_allocator.fail_at = 0;
        assert_true(status == 0 || status == MULL_ENOMEM);
    } while (status);
    assert_true(nth > 8);
    for (int i = 0; i < 20; i++)
        assert_line(decide(&r, &failures[i]), i % 3 ? 3 : FAKE_LINE_B);
    test_engine_done(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_decider_that_has_not_moved_on_finds_every_id),
        cmocka_unit_test(a_generation_that_is_kept_is_no_trouble),
        cmocka_unit_test(a_reload_without_memory_leaves_every_id_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
