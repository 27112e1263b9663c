/* forks.c: a process that forks while it reloads. In the child, a decider from before decides on,
 * by what it had; and a child that has nothing of its parent's begins anew. */
#include "test_engine.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 40, RELOADS = 10, DECISIONS = 200, WATCHDOG_S = 60 };

static const char *const texts[] = {
    "require('mulligan.policy').bus():on('T'):retry(3, '100ms')",
    "require('mulligan.policy').bus():on('T'):dead_letter('slow')",
};

/* decides_well says whether all verdicts are of one of the two policies. */
static int decides_well(mull_decider *decider)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "T";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    failure.flags = MULL_HAS_CHANCE;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (uint64_t n = 0; n < DECISIONS; n++) {
        failure.chance = n;
        if (mull_decide(decider, &failure, &verdict) != 0)
            return 0;
        int retries = verdict.action == MULL_RETRY && !verdict.queue;
        int parks = verdict.action == MULL_DEAD_LETTER && strcmp(verdict.queue, "slow") == 0;
        if (!retries && !parks)
            return 0;
    }
    return 1;
}

/* begins_anew: a policy, a decider and an engine of a child's own. */
static int begins_anew(void)
{
    mull_policy *policy;
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = texts[0];
    mull_decider *decider;
    if (mull_policy_load(&policy, &options) != 0 || mull_decider_new(&decider, policy) != 0)
        return 0;
    mull_engine *engine = NULL;
    mull_engine_options engine_options = MULL_INIT(mull_engine_options);
    engine_options.policy = policy;
    int well = decides_well(decider) && mull_policy_reload(policy, texts[1], 0) == 0 &&
               mull_engine_new(&engine, &engine_options) == 0 &&
               mull_engine_transport(engine, "t", "memory:") == 0 &&
               mull_stop_when_empty(engine) == 0 && mull_engine_run(engine) == 0;
    mull_engine_close(engine, NULL, NULL);
    mull_decider_free(decider);
    mull_policy_free(policy);
    return well;
}

static int well_in_child(pid_t child)
{
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

typedef struct reloader {
    mull_policy *policy;
    atomic_int stop;
    atomic_long reloads;
} reloader;

static void *reload(void *data)
{
    reloader *r = data;
    while (!atomic_load(&r->stop))
        if (mull_policy_reload(r->policy, texts[(atomic_load(&r->reloads) + 1) % 2], 0) == 0)
            atomic_fetch_add(&r->reloads, 1);
    return NULL;
}

static void a_decider_decides_on_in_a_child(void **state)
{
    (void)state;
    reloader r = {.policy = test_engine_policy(texts[0])};
    mull_decider *decider;
    assert_int_equal(mull_decider_new(&decider, r.policy), 0);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, reload, &r), 0);
    for (int i = 0; i < FORKS || atomic_load(&r.reloads) < RELOADS; i++) {
        assert_true(decides_well(decider));
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            alarm(WATCHDOG_S);
            _exit(decides_well(decider) ? 0 : 1);
        }
        assert_true(well_in_child(child));
    }
    atomic_store(&r.stop, 1);
    pthread_join(thread, NULL);
    mull_decider_free(decider);
    mull_policy_free(r.policy);
}

static void a_child_begins_anew(void **state)
{
    (void)state;
    mull_policy *policy = test_engine_policy(texts[0]);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        alarm(WATCHDOG_S);
        _exit(begins_anew() ? 0 : 1);
    }
    assert_true(well_in_child(child));
    mull_policy_free(policy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_begins_anew),
        cmocka_unit_test(a_decider_decides_on_in_a_child),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
