/* misuse_threads.c: one decider on two threads. A build with MULL_CHECKS answers the second; in
 * others it is a race, of which nothing can be said. */
#include "decide_fixture.h"

#include <pthread.h>
#include <semaphore.h>

#if defined(MULL__CHECKS)

/* A function that prints stops its decision in the log function, for as long as the test likes. */
typedef struct pause_at {
    sem_t is_inside, may_leave;
    mull_decider *decider;
    int pauses;
} pause_at;

static void pause_in_log(mull_level level, const char *text, void *data)
{
    pause_at *p = data;
    (void)level;
    (void)text;
    if (!p->pauses)
        return;
    sem_post(&p->is_inside);
    while (sem_wait(&p->may_leave) != 0)
        continue;
}

static int decide_once(mull_decider *decider, mull_verdict *verdict)
{
    mull_error error = MULL_INIT(mull_error);
    error.type = "Printed";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    return mull_decide(decider, &failure, verdict);
}

static void *decide_apart(void *data)
{
    mull_verdict verdict = MULL_INIT(mull_verdict);
    int status = decide_once(data, &verdict);
    return (void *)(intptr_t)(status ? status : (int)verdict.action);
}

static void the_second_thread_is_answered(void **state)
{
    (void)state;
    pause_at p = {.pauses = 1};
    sem_init(&p.is_inside, 0, 0);
    sem_init(&p.may_leave, 0, 0);
    mull_policy_options options = MULL_INIT(mull_policy_options);
    options.text = "require('mulligan.policy').bus():on('Printed', function() print('x') "
                   "return true end):discard()";
    options.log = pause_in_log;
    options.data = &p;
    mull_policy *policy;
    assert_int_equal(mull_policy_load(&policy, &options), 0);
    assert_int_equal(mull_decider_new(&p.decider, policy), 0);
    pthread_t first;
    assert_int_equal(pthread_create(&first, NULL, decide_apart, p.decider), 0);
    while (sem_wait(&p.is_inside) != 0)
        continue;
    mull_verdict verdict, before;
    memset(&before, 0x5a, sizeof before);
    before.size = sizeof before;
    verdict = before;
    assert_int_equal(decide_once(p.decider, &verdict), MULL_ESTATE);
    assert_memory_equal(&verdict, &before, sizeof before);
    p.pauses = 0;
    sem_post(&p.may_leave);
    void *action;
    assert_int_equal(pthread_join(first, &action), 0);
    assert_int_equal((intptr_t)action, MULL_DISCARD);
    assert_int_equal(decide_once(p.decider, &verdict), 0);
    assert_int_equal(verdict.action, MULL_DISCARD);
    mull_decider_free(p.decider);
    mull_policy_free(policy);
    sem_destroy(&p.is_inside);
    sem_destroy(&p.may_leave);
}

/* ---- In each other's way --------------------------------------------------------------------- */

enum { THREADS = 2, ROUNDS = 2000 };

typedef struct crowd {
    mull_decider *decider;
    int decided, answered, other;
} crowd;

/* decide_often has a function decide, whose Lua state no two threads can be in. */
static void *decide_often(void *data)
{
    crowd *c = data;
    mull_error error = MULL_INIT(mull_error);
    error.type = "Function";
    mull_failure failure = MULL_INIT(mull_failure);
    failure.error = &error;
    mull_verdict verdict = MULL_INIT(mull_verdict);
    for (int i = 0; i < ROUNDS; i++) {
        int status = mull_decide(c->decider, &failure, &verdict);
        c->decided += status == 0 && verdict.action == MULL_DISCARD;
        c->answered += status == MULL_ESTATE;
        c->other += status != 0 && status != MULL_ESTATE;
    }
    return NULL;
}

static void two_threads_get_a_verdict_or_are_answered(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    pthread_t threads[THREADS];
    crowd crowds[THREADS];
    for (int i = 0; i < THREADS; i++) {
        crowds[i] = (crowd){.decider = d.decider};
        assert_int_equal(pthread_create(&threads[i], NULL, decide_often, &crowds[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(crowds[i].decided + crowds[i].answered, ROUNDS);
        assert_int_equal(crowds[i].other, 0);
    }
    decide_fixture_close(&d);
}

#endif

/* ---- One after the other --------------------------------------------------------------------- */

static void *decide_once_there(void *data)
{
    decide_fixture *d = data;
    assert_string_equal(decide_fixture_note_for(d, "Function"), "function");
    return NULL;
}

static void a_decider_may_be_handed_from_thread_to_thread(void **state)
{
    (void)state;
    decide_fixture d;
    decide_fixture_open(&d);
    for (int i = 0; i < 5; i++) {
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, decide_once_there, &d), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_string_equal(decide_fixture_note_for(&d, "Plain"), "plain");
    }
    decide_fixture_close(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#if defined(MULL__CHECKS)
        cmocka_unit_test(the_second_thread_is_answered),
        cmocka_unit_test(two_threads_get_a_verdict_or_are_answered),
#endif
        cmocka_unit_test(a_decider_may_be_handed_from_thread_to_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
