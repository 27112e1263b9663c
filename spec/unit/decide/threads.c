/* threads.c: threads decide, and come and go, while another reloads; so do validators. The two
 * policies differ in every field of a verdict, so that one mixed from both would show. Run under
 * TSan, too.
 */
#include <pthread.h>
#include <sched.h>

#include "fake_language.h"

enum { DECIDERS = 3, RELOADS = 200, SETTLE_EVERY = 10 };

typedef struct stage {
    counting_allocator counting_allocator;
    fake fake;
    mull_policy *policy;
    char names[2][33]; /* of the two generations, the first loaded first */
    atomic_int stop;
    struct seen {
        atomic_long verdicts[2]; /* of each generation */
    } seen[DECIDERS];
    atomic_long mixed;
} stage;

typedef struct actor {
    stage *stage;
    size_t number;
} actor;

static int same(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* whole: every field of the verdict is the one that letter 'a' or 'b' gives. */
static int whole(const mull_verdict *v, int b, int fails)
{
    if (!same(v->rule.file, b ? "b.lua" : "a.lua") || !same(v->rule.scope, b ? "host" : "bus") ||
        v->rule.line != (b ? FAKE_LINE_B : FAKE_LINE_A))
        return 0;
    if (!fails)
        return v->action == (b ? MULL_DISCARD : MULL_DEAD_LETTER) && v->delay_ms == 0 &&
               same(v->queue, b ? NULL : "queue-a") && same(v->note, b ? "note-b" : NULL);
    return v->action == (b ? MULL_REDELIVER : MULL_RETRY) && v->delay_ms == (b ? 300000 : 200) &&
           v->tier == (b ? MULL_TIER_REDELIVER : MULL_TIER_RETRY) && v->of == (b ? 7 : 4);
}

/* look decides once, and gives the number of the generation that it saw; -1: a mix of both. */
static int look(stage *s, mull_decider *decider, int fails)
{
    mull_error error = error_of(fails ? "Fails" : "Ends");
    mull_failure failure = MULL_INIT(mull_failure);
    mull_verdict verdict = MULL_INIT(mull_verdict);
    failure.error = &error;
    if (mull_decide(decider, &failure, &verdict))
        return -1;
    int second = same(verdict.generation, s->names[1]);
    if (!second && !same(verdict.generation, s->names[0]))
        return -1;
    return whole(&verdict, second, fails) ? second : -1;
}

static void *decide_on(void *data)
{
    actor *a = data;
    mull_decider *decider;
    if (mull_decider_new(&decider, a->stage->policy))
        return data; /* not NULL: it failed */
    for (int turn = 0; !a->stage->stop; turn++) {
        int generation = look(a->stage, decider, turn % 2);
        if (generation < 0)
            a->stage->mixed++;
        else
            a->stage->seen[a->number].verdicts[generation]++;
        sched_yield();
    }
    mull_decider_free(decider);
    return NULL;
}

static void *come_and_go(void *data)
{
    stage *s = data;
    while (!s->stop) {
        mull_decider *decider;
        if (mull_decider_new(&decider, s->policy))
            return data; /* not NULL: it failed */
        s->mixed += look(s, decider, 1) < 0;
        mull__generation *kept = mull__policy_current(s->policy);
        s->mixed += !mull__generation_name(kept)[0];
        mull__generation_unref(kept);
        mull_decider_free(decider);
        sched_yield();
    }
    return NULL;
}

/* wait_until_seen returns when each decider has decided twice more by this generation: from then
 * on no decision that began before the reload is under way. */
static void wait_until_seen(stage *s, int generation)
{
    for (size_t i = 0; i < DECIDERS; i++) {
        long before = s->seen[i].verdicts[generation];
        while (s->seen[i].verdicts[generation] < before + 2)
            sched_yield();
    }
}

static void play(const char *first, const char *second)
{
    static stage s;
    pthread_t threads[DECIDERS], other;
    actor actors[DECIDERS];
    memset(&s, 0, sizeof s);
    assert_int_equal(fake_load(&s.policy, &s.fake, &s.counting_allocator, second, NULL, NULL), 0);
    mull_policy_generation(s.policy, s.names[1]);
    assert_int_equal(mull_policy_reload(s.policy, first, 0), 0);
    mull_policy_generation(s.policy, s.names[0]);
    for (size_t i = 0; i < DECIDERS; i++) {
        actors[i] = (actor){&s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, decide_on, &actors[i]), 0);
    }
    assert_int_equal(pthread_create(&other, NULL, come_and_go, &s), 0);
    for (int i = 1; i <= RELOADS; i++) {
        assert_int_equal(mull_policy_reload(s.policy, i % 2 ? second : first, 0), 0);
        if (i % SETTLE_EVERY <= 1)
            wait_until_seen(&s, i % 2);
    }
    s.stop = 1;
    void *wrong;
    for (size_t i = 0; i < DECIDERS; i++) {
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
        assert_true(s.seen[i].verdicts[0] > 0 && s.seen[i].verdicts[1] > 0);
    }
    assert_int_equal(pthread_join(other, &wrong), 0);
    assert_null(wrong);
    assert_int_equal(s.mixed, 0);
    mull_policy_free(s.policy);
    assert_int_equal(s.fake.states, 0);
    assert_int_equal(s.fake.sources, 0);
    assert_int_equal(s.counting_allocator.out, 0);
}

static void no_verdict_is_mixed(void **state)
{
    (void)state;
    play("a", "b");
}

static void nor_where_deciders_have_states(void **state)
{
    (void)state;
    play("a+", "b+");
}

/* ---- Vetoes ---------------------------------------------------------------------------------- */

enum { VETOED_RELOADS = 8000, VETOES = 2 };

typedef struct dispute {
    stage stage;
    atomic_int failed;
    atomic_long used, refused; /* how often the policy in force suited the validator */
} dispute;

/* refuse_b has something against tables that don't retry. */
static int refuse_b(void *data, const mull__table *table, mull_problem_fn problem,
                    void *problem_data)
{
    const mull__rule *rule = mull__rule_at(mull__effective_settings_of(table, NULL, NULL).rules, 0);
    (void)data;
    if (rule->retry.attempts != 0)
        return 0;
    problem(rule->source.file, rule->source.line, "this rule doesn't retry", problem_data);
    return MULL_EREFUSED;
}

static void *use_and_leave(void *data)
{
    dispute *d = data;
    mull__report report = {0};
    mull__reload_validator validator = {.check = refuse_b};
    while (!d->stage.stop) {
        int status =
            mull__policy_add_validator(d->stage.policy, &validator, mull__report_add, &report);
        d->failed += status != 0 && status != MULL_EREFUSED;
        if (status == 0) {
            char name[33];
            mull_policy_generation(d->stage.policy, name);
            d->failed += !same(name, d->stage.names[0]);
            d->used++;
        } else {
            d->refused++;
        }
        mull__policy_remove_validator(d->stage.policy, &validator);
    }
    return NULL;
}

/* keep_asking holds the lock that publishing waits for. */
static void *keep_asking(void *data)
{
    dispute *d = data;
    while (!d->stage.stop)
        d->failed += mull_policy_rules(d->stage.policy) != 3;
    return NULL;
}

/* A validator's word holds from the moment at which it is asked to that at which what it let pass
 * is in force, and from its coming to its leaving. */
static void what_a_veto_refuses_is_never_in_force_with_it(void **state)
{
    (void)state;
    static dispute d;
    stage *s = &d.stage;
    pthread_t using[VETOES], asking;
    assert_int_equal(fake_load(&s->policy, &s->fake, &s->counting_allocator, "a", NULL, NULL), 0);
    mull_policy_generation(s->policy, s->names[0]);
    for (int i = 0; i < VETOES; i++)
        assert_int_equal(pthread_create(&using[i], NULL, use_and_leave, &d), 0);
    assert_int_equal(pthread_create(&asking, NULL, keep_asking, &d), 0);
    long published = 0;
    for (int i = 0; i < VETOED_RELOADS || !published || published == i || !d.used || !d.refused;
         i++) {
        int status = mull_policy_reload(s->policy, "b", 0);
        assert_true(status == 0 || status == MULL_EREFUSED);
        published += status == 0;
        assert_true(mull_policy_reload(s->policy, "a", 0) >= 0);
    }
    s->stop = 1;
    for (int i = 0; i < VETOES; i++)
        pthread_join(using[i], NULL);
    pthread_join(asking, NULL);
    assert_int_equal(d.failed, 0);
    mull_policy_free(s->policy);
    assert_int_equal(s->counting_allocator.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_verdict_is_mixed),
        cmocka_unit_test(nor_where_deciders_have_states),
        cmocka_unit_test(what_a_veto_refuses_is_never_in_force_with_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
