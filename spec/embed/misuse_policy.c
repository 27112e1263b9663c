/* misuse_policy.c: a policy that is freed before its deciders and engines. */
#include "decide_fixture.h"

#include <pthread.h>

static void a_policy_that_is_freed_lives_until_its_last_decider_is_gone(void **state)
{
    (void)state;
    counting_allocator p = {0};
    decide_fixture d;
    decide_fixture_open_with(&d, decide_fixture_policy, counting_allocator_ops(&p));
    mull_decider *other;
    assert_int_equal(mull_decider_new(&other, d.policy), 0);
    mull_policy_free(d.policy);
    assert_string_equal(decide_fixture_note_for(&d, "Plain"), "plain");
    mull_decider_free(other);
    assert_string_equal(decide_fixture_note_for(&d, "Function"), "function");
    mull_decider_free(d.decider);
    assert_int_equal(p.out, 0);
}

/* A reload left a fresh seat in the slot of one decider, and the other took its own. */
static void reloaded_before_it_is_freed_it_leaves_nothing_either(void **state)
{
    (void)state;
    counting_allocator p = {0};
    decide_fixture d;
    decide_fixture_open_with(&d, decide_fixture_policy, counting_allocator_ops(&p));
    mull_decider *idle;
    assert_int_equal(mull_decider_new(&idle, d.policy), 0);
    assert_int_equal(mull_policy_reload(d.policy,
                                        "require('mulligan.policy').bus():on('Plain', "
                                        "function() return true end):discard('new')",
                                        0),
                     0);
    assert_string_equal(decide_fixture_note_for(&d, "Plain"), "new");
    mull_policy_free(d.policy);
    assert_string_equal(decide_fixture_note_for(&d, "Plain"), "new");
    mull_decider_free(d.decider);
    mull_failure failure = d.failure;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    assert_int_equal(mull_decide(idle, &failure, &verdict), 0);
    assert_string_equal(verdict.note, "new");
    mull_decider_free(idle);
    assert_int_equal(p.out, 0);
}

enum { ENDS = 8 };

typedef struct ending {
    mull_decider *decider;
    pthread_barrier_t *all;
} ending;

static void *end_decider(void *data)
{
    ending *e = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "Function";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    pthread_barrier_wait(e->all);
    int status = mull_decide(e->decider, &failure, &verdict);
    mull_decider_free(e->decider);
    return (void *)(intptr_t)status;
}

static void deciders_and_policy_may_end_all_at_once(void **state)
{
    (void)state;
    counting_allocator p = {0};
    decide_fixture d;
    decide_fixture_open_with(&d, decide_fixture_policy, counting_allocator_ops(&p));
    mull_decider_free(d.decider);
    pthread_barrier_t all;
    pthread_barrier_init(&all, NULL, ENDS + 1);
    pthread_t threads[ENDS];
    ending endings[ENDS];
    for (int i = 0; i < ENDS; i++) {
        endings[i].all = &all;
        assert_int_equal(mull_decider_new(&endings[i].decider, d.policy), 0);
    }
    for (int i = 0; i < ENDS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, end_decider, &endings[i]), 0);
    pthread_barrier_wait(&all);
    mull_policy_free(d.policy);
    for (int i = 0; i < ENDS; i++) {
        void *status;
        assert_int_equal(pthread_join(threads[i], &status), 0);
        assert_int_equal((intptr_t)status, 0);
    }
    pthread_barrier_destroy(&all);
    assert_int_equal(p.out, 0);
}

static void end_badly(mull_engine *engine, mull_call call, const mull_message *message, void *data)
{
    const mull_error *error = data;
    (void)message;
    mull_done(engine, call, error);
}

static void an_engine_goes_on_by_a_policy_that_is_freed(void **state)
{
    (void)state;
    test_engine r;
    mull_error error = MULL_INIT(mull_error);
    error.type = "Plain";
    test_engine_open(&r, decide_fixture_policy, "memory:", NULL);
    mull_policy_free(r.policy);
    r.policy = NULL;
    mull_consumer_options consumer = test_engine_consumer(end_badly, &error);
    assert_int_equal(mull_consumer_add(r.engine, &consumer), 0);
    assert_int_equal(mull_engine_start(r.engine), 0);
    assert_int_equal(test_engine_publish(&r, "q", NULL), 0);
    test_engine_advance(&r, 0);
    assert_int_equal(test_engine_counts(&r).discarded, 1);
    test_engine_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_policy_that_is_freed_lives_until_its_last_decider_is_gone),
        cmocka_unit_test(reloaded_before_it_is_freed_it_leaves_nothing_either),
        cmocka_unit_test(deciders_and_policy_may_end_all_at_once),
        cmocka_unit_test(an_engine_goes_on_by_a_policy_that_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
