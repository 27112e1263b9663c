/* internal_policy_memory.c: as policy_memory.c, but each block of a state of Lua is a request of
 * its own, which may be refused. There are thousands of them, so some are tried, by chance; all
 * with MULL_EVERY=1. */
#include "policy_lives.h"

#include "each_block.h"

enum { LIVES = 40 / SLOWNESS, RELOADS = 20 / SLOWNESS };

static void a_text_is_loaded(void **state)
{
    (void)state;
    load_without_memory(0, LIVES);
}

static void a_file_is_loaded(void **state)
{
    (void)state;
    load_without_memory(1, LIVES);
}

static void a_matcher_without_memory_is_skipped(void **state)
{
    (void)state;
    decide_without_memory(LIVES);
}

static void a_text_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(0, RELOADS);
}

static void a_file_is_reloaded(void **state)
{
    (void)state;
    reload_without_memory(1, RELOADS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_is_loaded),
        cmocka_unit_test(a_file_is_loaded),
        cmocka_unit_test(a_matcher_without_memory_is_skipped),
        cmocka_unit_test(a_text_is_reloaded),
        cmocka_unit_test(a_file_is_reloaded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
