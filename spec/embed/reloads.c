/* reloads.c: a policy is reloaded 300 times while threads decide by it.
 *
 *   main       reloads, see reload_load.h
 *   deciders   four threads, each with one decider    every verdict is wholly of one generation: of
 *   visitor    makes a decider, asks it, frees it     the one that it names, which may be in force
 *   idler      a decider that nobody asks             holds no more than one seat that is old
 *
 * reloads_engine.c does the same to an engine. */
#include "reload_load.h"

#include <pthread.h>
#include <unistd.h>

enum { DECIDERS = STAGE_DECIDERS - 1 };

typedef struct actor {
    stage *stage;
    mull_decider *decider;
    atomic_long decided[2]; /* verdicts, by text */
    pthread_t thread;
} actor;

typedef struct play {
    stage stage;
    actor actors[DECIDERS];
    pthread_t visitor;
    atomic_long visits;
} play;

/* be_decider decides as often as it can, in what time the thread that reloads leaves to it. */
static void *be_decider(void *data)
{
    actor *a = data;
    stage *s = a->stage;
    oracle o;
    if (nice(10) == -1 || open_oracle(&o) != 0) {
        blame(s, "no oracle");
        return NULL;
    }
    for (size_t turn = 0; !s->stop && !s->wrong; turn++) {
        long number = look(s, a->decider, turn, &o);
        if (number >= 0)
            a->decided[number % 2]++;
    }
    close_oracle(&o);
    return NULL;
}

/* be_visitor comes once a generation. One decider in four is never asked. */
static void *be_visitor(void *data)
{
    play *p = data;
    stage *s = &p->stage;
    oracle o;
    if (open_oracle(&o) != 0) {
        blame(s, "no oracle");
        return NULL;
    }
    for (size_t turn = 0; !s->stop && !s->wrong; turn++) {
        mull_decider *decider;
        sem_wait(&s->due);
        if (mull_decider_new(&decider, s->policy) != 0)
            blame(s, "no decider");
        else if (turn % 4 != 0)
            look(s, decider, turn, &o);
        mull_decider_free(decider);
        p->visits++;
    }
    close_oracle(&o);
    return NULL;
}

static void meet(void *data)
{
    play *p = data;
    stage *s = &p->stage;
    for (size_t i = 0; i < DECIDERS; i++) {
        const atomic_long *decided = &p->actors[i].decided[s->done % 2];
        wait_for(s, decided, *decided + 2);
    }
    long visits = p->visits;
    sem_post(&s->due);
    wait_for(s, &p->visits, visits + 1);
}

static void start_threads(play *p)
{
    for (size_t i = 0; i < DECIDERS; i++) {
        actor *a = &p->actors[i];
        a->stage = &p->stage;
        a->decider = p->stage.deciders[i];
        assert_int_equal(pthread_create(&a->thread, NULL, be_decider, a), 0);
    }
    assert_int_equal(pthread_create(&p->visitor, NULL, be_visitor, p), 0);
}

static void join_threads(play *p)
{
    p->stage.stop = 1;
    sem_post(&p->stage.due);
    for (size_t i = 0; i < DECIDERS; i++)
        assert_int_equal(pthread_join(p->actors[i].thread, NULL), 0);
    assert_int_equal(pthread_join(p->visitor, NULL), 0);
}

static void reloads_mix_nothing_and_leave_nothing(void **state)
{
    (void)state;
    static play p;
    stage_open(&p.stage, STAGE_DECIDERS, 3);
    start_threads(&p);
    reload_often(&p.stage, meet, &p);
    join_threads(&p);
    assert_nothing_wrong(&p.stage);
    for (size_t i = 0; i < DECIDERS; i++)
        assert_true(p.actors[i].decided[0] > 0 && p.actors[i].decided[1] > 0);
    stage_close(&p.stage);
}

/* the_two_differ_in_every_verdict is what makes a mixed one show. */
static void the_two_differ_in_every_verdict(void **state)
{
    (void)state;
    oracle o;
    assert_int_equal(open_oracle(&o), 0);
    for (size_t n = 0; n < FACTS; n++) {
        mull_error error;
        mull_message message;
        mull_failure failure;
        set_failure(&failure, n, &error, &message);
        mull_verdict a = MULL_INIT(mull_verdict), b = MULL_INIT(mull_verdict);
        assert_int_equal(mull_decide(o.deciders[0], &failure, &a), 0);
        assert_int_equal(mull_decide(o.deciders[1], &failure, &b), 0);
        assert_int_not_equal(a.action, b.action);
        assert_true(a.reason != b.reason || a.tier != b.tier);
        assert_true(!same(a.queue, b.queue) || (!a.queue && !b.queue));
        assert_true(!same(a.note, b.note) || (!a.note && !b.note));
        assert_true(a.delay_ms != b.delay_ms || (a.delay_ms == 0 && b.delay_ms == 0));
        assert_int_not_equal(a.rule.line, b.rule.line);
        assert_false(same(a.rule.scope, b.rule.scope));
    }
    close_oracle(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_two_differ_in_every_verdict),
        cmocka_unit_test(reloads_mix_nothing_and_leave_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
