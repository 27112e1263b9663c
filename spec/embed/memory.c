/* memory.c: an engine on memory: whose n-th request for memory is refused, for every n: once, for a
 * while, and for good until it is had again, or never is; its policy's requests, too, where that
 * has functions and is reloaded in the middle. Each block of a state of Lua is a request: of these
 * some are tried, by chance; all with MULL_EVERY=1. See engine_lives.h. */
#include "engine_lives.h"

#include <unistd.h>

/* Memory isn't shared among threads here: under ThreadSanitizer, some n will do. */
#if defined(__SANITIZE_THREAD__)
enum { STEP = 8 };
#else
enum { STEP = 1 };
#endif
enum { STEP_OF_CALLS = 8 * SLOWNESS, STEP_OF_LOADS = 100 * SLOWNESS };
enum { TWICE = 2 }; /* also after Lua has collected its garbage for it, and asks again */

static const plan tables = {.policy = RULES("", "", "")};
static const plan functions = {.policy = FUNCTIONS, .later = "\n\n" FUNCTIONS, .owns_policy = 1};
static const plan called = {.policy = FUNCTIONS, .owns_policy = 1, .set_up = 1};
#define LIMITED                                                                                    \
    LIMITS("'key'", "c:rate_limit { after = 1, ramp = '1m' }\n"                                    \
                    "c:limit { rate = '10/s', burst = 3 }\n")
static const plan limited = {.policy = LIMITED};
static const plan limited_anew = {.policy = LIMITED,
                                  .later = LIMITS("policy.header('tenant')", "")};
static const plan watched = {
    .policy = RULES("", "", ""), .later = "\n\n" RULES("", "", ""), .is_file = 1, .owns_policy = 1};

static void the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_some(&tables, STEP, 1, HEALED);
}

static void memory_is_short_for_a_while(void **state)
{
    (void)state;
    fail_some(&tables, STEP, 40, HEALED);
}

static void memory_is_had_again_at_last(void **state)
{
    (void)state;
    fail_some(&tables, STEP, FOR_GOOD, HEALED);
}

static void without_memory_a_stop_ends(void **state)
{
    (void)state;
    fail_some(&tables, STEP, FOR_GOOD, STOPPED);
}

static void without_memory_a_close_ends(void **state)
{
    (void)state;
    fail_some(&tables, STEP, FOR_GOOD, CLOSED);
}

static void with_limits_the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_some(&limited_anew, STEP, 1, HEALED);
}

static void with_limits_memory_is_short_for_a_while(void **state)
{
    (void)state;
    fail_some(&limited, STEP, 40, HEALED);
}

static void with_limits_memory_is_had_again_at_last(void **state)
{
    (void)state;
    fail_some(&limited_anew, STEP, FOR_GOOD, HEALED);
}

static void with_limits_a_stop_ends_without_memory(void **state)
{
    (void)state;
    fail_some(&limited_anew, STEP, FOR_GOOD, STOPPED);
}

static void with_functions_the_nth_allocation_fails(void **state)
{
    (void)state;
    fail_some(&functions, STEP_OF_LOADS, TWICE, HEALED);
    assert_true(kept_old > 0);
}

static void with_functions_memory_is_had_again_at_last(void **state)
{
    (void)state;
    fail_some(&functions, STEP_OF_LOADS, FOR_GOOD, HEALED);
}

static void a_changed_file_is_reloaded_though_the_nth_fails(void **state)
{
    (void)state;
    fail_some(&watched, STEP_OF_LOADS, TWICE, HEALED);
    assert_true(kept_old > 0);
}

static void a_changed_file_is_reloaded_when_memory_is_had_again(void **state)
{
    (void)state;
    int lives = fail_some(&watched, STEP_OF_LOADS, FOR_GOOD, HEALED);
    assert_in_range(kept_old, 1, 2 * lives); /* a refusal is told once, however often it is tried */
}

static void with_functions_a_stop_ends_without_memory(void **state)
{
    (void)state;
    fail_some(&functions, STEP_OF_LOADS, FOR_GOOD, STOPPED);
}

static void called_functions_find_none_once(void **state)
{
    (void)state;
    fail_some(&called, STEP_OF_CALLS, 1, HEALED);
}

static void called_functions_find_none_twice(void **state)
{
    (void)state;
    do
        fail_some(&called, STEP_OF_CALLS, TWICE, HEALED);
    while (skipped == 0); /* few requests make a call fail: a sample may miss them all */
}

static void called_functions_have_memory_again_at_last(void **state)
{
    (void)state;
    fail_some(&called, STEP_OF_CALLS, FOR_GOOD, HEALED);
    assert_true(skipped > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails),
        cmocka_unit_test(memory_is_short_for_a_while),
        cmocka_unit_test(memory_is_had_again_at_last),
        cmocka_unit_test(without_memory_a_stop_ends),
        cmocka_unit_test(without_memory_a_close_ends),
        cmocka_unit_test(with_limits_the_nth_allocation_fails),
        cmocka_unit_test(with_limits_memory_is_short_for_a_while),
        cmocka_unit_test(with_limits_memory_is_had_again_at_last),
        cmocka_unit_test(with_limits_a_stop_ends_without_memory),
        cmocka_unit_test(with_functions_the_nth_allocation_fails),
        cmocka_unit_test(with_functions_memory_is_had_again_at_last),
        cmocka_unit_test(with_functions_a_stop_ends_without_memory),
        cmocka_unit_test(a_changed_file_is_reloaded_though_the_nth_fails),
        cmocka_unit_test(a_changed_file_is_reloaded_when_memory_is_had_again),
        cmocka_unit_test(called_functions_find_none_once),
        cmocka_unit_test(called_functions_find_none_twice),
        cmocka_unit_test(called_functions_have_memory_again_at_last),
    };
    if (!getenv("MULL_EVERY"))
        alarm(240); /* a watchdog */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
