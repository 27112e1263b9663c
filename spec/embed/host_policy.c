/* host_policy.c: a policy and its host policy, as an embedder gives the two: what each is called, a
 * text in the place of a file, and deciders on several threads that call functions of both. */
#include "decide_fixture.h"

#include <pthread.h>

static const char OWN[] = "local policy = require 'mulligan.policy'\n"
                          "policy.consumer('Mail'):on('A', function(err)\n"
                          "    return err:is('Parent')\n"
                          "end):discard('own')\n"
                          "policy.errors { A = 'Child' }\n";
static const char HOST[] = "local policy = require 'mulligan.policy'\n"
                           "policy.errors { Child = 'Parent' }\n"
                           "policy.host():on('Parent', function(err)\n"
                           "    return err:is('Child') and err.type == 'A'\n"
                           "end):discard('host')\n";

static void on_problem(const char *file, int line, const char *text, void *data)
{
    snprintf(data, 256, "%s:%d: %s", file ? file : "-", line, text);
}

static int load(mull_policy **policy, const char *own, const char *path, const char *host,
                char problem[256])
{
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = own;
    options.host_path = path;
    options.host_text = host;
    options.problem = on_problem;
    options.data = problem;
    problem[0] = 0;
    return mull_policy_load(policy, &options);
}

/* decide gives the verdict on an A of a consumer, which may be NULL. */
static mull_verdict decide(mull_decider *decider, const char *consumer)
{
    mull_error error = MULL_INIT(mull_error);
    mull_failure failure = MULL_INIT(mull_failure);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    error.type = "A";
    failure.error = &error;
    failure.consumer = consumer;
    assert_int_equal(mull_decide(decider, &failure, &verdict), 0);
    return verdict;
}

static void each_rule_has_the_name_of_its_file(void **state)
{
    (void)state;
    static const char *const paths[][2] = {{NULL, "host.lua"},
                                           {"/etc/mulligan/", "host.lua"},
                                           {"/etc/mulligan/shared.lua", "shared.lua"},
                                           {"etc/policy.lua", "etc/policy.lua"}};
    char problem[256], first[33] = "", generation[33];
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        mull_policy *policy;
        mull_decider *decider;
        assert_int_equal(load(&policy, OWN, paths[i][0], HOST, problem), 0);
        assert_int_equal(mull_decider_new(&decider, policy), 0);
        mull_verdict verdict = decide(decider, NULL);
        assert_string_equal(verdict.note, "host");
        assert_string_equal(verdict.rule.file, paths[i][1]);
        assert_int_equal(verdict.rule.line, 3);
        assert_string_equal(verdict.rule.scope, "host");
        verdict = decide(decider, "Mail");
        assert_string_equal(verdict.note, "own");
        assert_string_equal(verdict.rule.file, "policy.lua");
        mull_policy_generation(policy, generation);
        if (first[0])
            assert_string_equal(generation, first);
        memcpy(first, generation, sizeof first);
        mull_decider_free(decider);
        mull_policy_free(policy);
    }
}

static void a_text_with_its_size_may_go_on(void **state)
{
    (void)state;
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = OWN;
    options.host_text = "-- nothing and then rubbish(";
    options.host_text_size = strlen("-- nothing");
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    assert_int_equal(mull_policy_rules(policy), 1);
    mull_policy_free(policy);
}

static void its_mistakes_name_it(void **state)
{
    (void)state;
    char problem[256];
    mull_policy *policy;
    assert_int_equal(load(&policy, OWN, "etc/shared.lua", "\nx = ", problem), MULL_EPOLICY);
    assert_null(policy);
    assert_string_equal(problem, "shared.lua:2: unexpected symbol near <eof>");
    assert_int_equal(load(&policy, OWN, "/nowhere/host.lua", NULL, problem), MULL_EPOLICY);
    assert_string_equal(problem, "host.lua:0: there is no file /nowhere/host.lua");
}

static void another_text_leaves_the_host_be(void **state)
{
    (void)state;
    char problem[256];
    mull_policy *policy;
    mull_decider *decider;
    assert_int_equal(load(&policy, OWN, NULL, HOST, problem), 0);
    assert_int_equal(mull_decider_new(&decider, policy), 0);
    assert_int_equal(mull_policy_reload(policy, NULL, 0), 1);
    assert_int_equal(mull_policy_reload(policy,
                                        "local policy = require 'mulligan.policy'\n"
                                        "policy.errors { A = 'Child' }\n"
                                        "policy.consumer('Mail'):default():discard('new')",
                                        0),
                     0);
    assert_string_equal(decide(decider, NULL).note, "host");
    assert_string_equal(decide(decider, "Mail").note, "new");
    assert_int_equal(mull_policy_reload(policy, "require('mulligan.policy').host()", 0),
                     MULL_EPOLICY);
    assert_string_equal(decide(decider, "Mail").note, "new");
    mull_decider_free(decider);
    mull_policy_free(policy);
}

enum { THREADS = 4, ROUNDS = 2000 };

static void *decide_on_a_thread(void *data)
{
    mull_decider *decider;
    assert_int_equal(mull_decider_new(&decider, data), 0);
    for (int i = 0; i < ROUNDS; i++) {
        assert_string_equal(decide(decider, NULL).note, "host");
        assert_string_equal(decide(decider, "Mail").note, "own");
    }
    mull_decider_free(decider);
    return NULL;
}

static void threads_call_functions_of_both(void **state)
{
    (void)state;
    char problem[256], other[sizeof OWN + 2];
    mull_policy *policy;
    pthread_t threads[THREADS];
    assert_int_equal(load(&policy, OWN, NULL, HOST, problem), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, decide_on_a_thread, policy), 0);
    for (int i = 0; i < 20; i++) {
        snprintf(other, sizeof other, "%s%s", OWN, i % 2 ? " " : "");
        assert_in_range(mull_policy_reload(policy, other, 0), 0, 1);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rule_has_the_name_of_its_file),
        cmocka_unit_test(a_text_with_its_size_may_go_on),
        cmocka_unit_test(its_mistakes_name_it),
        cmocka_unit_test(another_text_leaves_the_host_be),
        cmocka_unit_test(threads_call_functions_of_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
