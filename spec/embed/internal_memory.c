/* internal_memory.c: as memory.c, but each block of a state of Lua is a request of its own, which
 * may be refused. Of a load there are thousands, so where one is in the middle, some are tried, by
 * chance; all with MULL_EVERY=1. See engine_lives.h. */
#include "engine_lives.h"

#include <unistd.h>

#include "each_block.h"

static const plan functions = {.policy = FUNCTIONS, .owns_policy = 1, .set_up = 1};
static const plan reloaded = {
    .policy = FUNCTIONS, .later = "\n\n" FUNCTIONS, .owns_policy = 1, .set_up = 1};

enum { STEP = 8 * SLOWNESS, STEP_OF_LOADS = 400 * SLOWNESS };

static void the_nth_block_fails(void **state)
{
    (void)state;
    fail_some(&functions, STEP, 1, HEALED);
}

static void the_nth_block_fails_twice(void **state)
{
    (void)state;
    fail_some(&functions, STEP, 2, HEALED);
}

static void blocks_are_had_again_at_last(void **state)
{
    (void)state;
    fail_some(&functions, STEP, FOR_GOOD, HEALED);
    assert_true(skipped > 0);
}

static void a_reload_in_the_middle_fails(void **state)
{
    (void)state;
    fail_some(&reloaded, STEP_OF_LOADS, 2, HEALED);
    assert_true(kept_old > 0);
}

static void a_reload_without_memory_and_a_stop(void **state)
{
    (void)state;
    fail_some(&reloaded, STEP_OF_LOADS, FOR_GOOD, STOPPED);
    assert_true(kept_old > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_block_fails),
        cmocka_unit_test(the_nth_block_fails_twice),
        cmocka_unit_test(blocks_are_had_again_at_last),
        cmocka_unit_test(a_reload_in_the_middle_fails),
        cmocka_unit_test(a_reload_without_memory_and_a_stop),
    };
    if (!getenv("MULL_EVERY"))
        alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
