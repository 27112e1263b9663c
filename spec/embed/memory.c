/* memory.c: an engine on memory: whose n-th request for memory is refused, for every n: once, for a
 * while, and for good until it is had again, or never is. Nothing crashes, nothing is left in
 * memory; what was published comes to exactly one end once there is memory, what its handler sent
 * is there exactly once where it succeeded; and where there never is any, a stop and a close end
 * all the same. */
#include "roster.h"

#include <unistd.h>

static const char policy_text[] =
    "local policy = require 'mulligan.policy'\n"
    "policy.bus():on('Passing'):retry(3, '1s')\n"
    "policy.bus():on('Slow'):redeliver(1, '1m')\n"
    "policy.bus():on('Dropped'):discard()\n"
    "policy.bus():on('HandlerTimeoutError'):retry(100, '1s', 'constant'):then_redeliver(100)\n"
    "policy.consumer('Dead'):dead_letter_queue('nowhere')\n";

typedef struct life {
    rig rig;
    roster book;
} life;

static int set_up(life *l, purse *p)
{
    mull_engine_options options = MULL_INIT(mull_engine_options);
    options.policy = l->rig.policy;
    options.clock = &l->rig.clock;
    options.allocator = purse_allocator(p);
    int made = roster_set_up(&l->book, &options, "memory:", 30000);
    l->rig.engine = l->book.engine;
    return made;
}

/* pass lets time pass, and handlers go on with what they could not do before. */
static void pass(life *l, int64_t ms)
{
    enum { STEP_MS = 5000 };
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        roster_go_on(&l->book);
        rig_advance(&l->rig, STEP_MS);
    }
}

static void on_depth(int status, const mull_depth *depth, void *data)
{
    assert_int_equal(status, 0);
    *(mull_depth *)data = *depth;
}

/* stop_with_one stops while a handler just stands, whose message is given back. */
static void stop_with_one(life *l, purse *p)
{
    one *kept = &l->book.all[KEPT];
    roster_publish(&l->book, kept);
    pass(l, 5000);
    mull_stop(l->rig.engine);
    pass(l, 30000);
    assert_int_equal(l->book.stopped, 1);
    int was_short = p->fail_at && p->asked >= p->fail_at;
    p->fail_at = 0;
    mull_depth depth = {0};
    assert_int_equal(mull_queue_depth(l->rig.engine, "t", "q", on_depth, &depth), 0);
    mull_engine_turn(l->rig.engine);
    assert_int_equal(depth.ready + depth.claimed, kept->safe);
    if (!was_short)
        assert_int_equal(depth.ready, kept->safe);
}

/* end is how a life ends: with memory again, or without by a stop and a close, or a close alone. */
typedef enum end { HEALED, STOPPED, CLOSED } end;

static void live(life *l, purse *p, end how)
{
    int plenty = p->fail_at == 0;
    roster_publish_most(&l->book);
    pass(l, 300000);
    if (how == HEALED && p->fail_for == FOR_GOOD && p->asked >= p->fail_at)
        p->fail_at = 0;
    pass(l, 900000);
    if (plenty)
        roster_assert_planned(&l->book);
    if (how == HEALED) {
        roster_assert_ended(&l->book);
        stop_with_one(l, p);
    } else if (how == STOPPED) {
        mull_stop(l->rig.engine);
        pass(l, 30000);
        assert_int_equal(l->book.stopped, 1);
    }
}

/* live_through runs the engine's whole life. 0: it could not be set up. */
static int live_through(purse *p, mull_policy *policy, end how)
{
    life l = {.rig = {.clock = {rig_now, rig_wall, &l.rig}, .policy = policy}};
    roster_open(&l.book);
    int made = set_up(&l, p);
    if (made)
        live(&l, p, how);
    if (l.rig.engine) {
        mull_engine_close(l.rig.engine, roster_on_closed, &l.book);
        assert_int_equal(l.book.closed, 1);
    }
    roster_assert_once(&l.book);
    assert_int_equal(p->out, 0);
    return made;
}

static void fail_each(long length, end how)
{
    mull_policy *policy = rig_policy(policy_text);
    purse p = {0};
    int lives = 0;
    assert_true(live_through(&p, policy, how));
    for (long at = 1;; at++) {
        p = (purse){.fail_at = at, .fail_for = length};
        lives += live_through(&p, policy, how);
        if (p.asked < at)
            break; /* nothing was refused */
    }
    print_message("%d lives\n", lives);
    assert_true(lives > 100);
    mull_policy_free(policy);
}

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_each(1, HEALED);
}

static void memory_is_short_for_a_while(void **state)
{
    (void)state;
    fail_each(40, HEALED);
}

static void memory_is_had_again_at_last(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, HEALED);
}

static void without_memory_a_stop_ends(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, STOPPED);
}

static void without_memory_a_close_ends(void **state)
{
    (void)state;
    fail_each(FOR_GOOD, CLOSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(memory_is_short_for_a_while),
        cmocka_unit_test(memory_is_had_again_at_last),
        cmocka_unit_test(without_memory_a_stop_ends),
        cmocka_unit_test(without_memory_a_close_ends),
    };
    alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
