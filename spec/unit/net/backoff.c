/* backoff.c: how long a link waits: doubled, cut by chance, within its bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "net/backoff.h"

static void test_doubles_up_to_the_longest(void **state)
{
    (void)state;
    static const int64_t whole[] = {100, 200, 400, 800, 1000, 1000, 1000};
    int64_t least[7], most[7];
    for (uint64_t seed = 1; seed <= 500; seed++) {
        mull__backoff backoff;
        mull__backoff_init(&backoff, 100, 1000, seed);
        for (int i = 0; i < 7; i++) {
            int64_t wait = mull__backoff_next(&backoff);
            assert_in_range(wait, whole[i] / 2, whole[i]);
            least[i] = seed == 1 || wait < least[i] ? wait : least[i];
            most[i] = seed == 1 || wait > most[i] ? wait : most[i];
        }
    }
    for (int i = 0; i < 7; i++) { /* chance uses all of its room */
        assert_in_range(least[i], whole[i] / 2, whole[i] * 55 / 100);
        assert_in_range(most[i], whole[i] * 95 / 100, whole[i]);
    }
}

static void test_reset_begins_anew(void **state)
{
    (void)state;
    mull__backoff backoff;
    mull__backoff_init(&backoff, 10, 100000, 7);
    for (int i = 0; i < 10; i++)
        mull__backoff_next(&backoff);
    mull__backoff_reset(&backoff);
    assert_in_range(mull__backoff_next(&backoff), 5, 10);
    assert_in_range(mull__backoff_next(&backoff), 10, 20);
}

static void test_the_same_seed_waits_the_same(void **state)
{
    (void)state;
    mull__backoff one, same, other;
    int differ = 0;
    mull__backoff_init(&one, 1000, 100000, 3);
    mull__backoff_init(&same, 1000, 100000, 3);
    mull__backoff_init(&other, 1000, 100000, 4);
    for (int i = 0; i < 10; i++) {
        int64_t wait = mull__backoff_next(&one);
        assert_int_equal(wait, mull__backoff_next(&same));
        differ += wait != mull__backoff_next(&other);
    }
    assert_true(differ > 5);
}

static void test_bounds_that_are_odd(void **state)
{
    (void)state;
    static const int64_t odd[][4] = {
        /* first, longest; least and most wait */
        {0, 0, 0, 1},
        {-5, -7, 0, 1},
        {1, 1, 0, 1},
        {50, 10, 25, 50}, /* the longest is no shorter than the first */
        {INT64_MAX, INT64_MAX, INT64_MAX / 2, INT64_MAX},
        {INT64_MAX / 2 + 1, INT64_MAX, INT64_MAX / 4, INT64_MAX},
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        mull__backoff backoff;
        mull__backoff_init(&backoff, odd[i][0], odd[i][1], i + 1);
        for (int n = 0; n < 100; n++) {
            int64_t wait = mull__backoff_next(&backoff);
            assert_true(wait >= odd[i][2] && wait <= odd[i][3]);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_doubles_up_to_the_longest),
        cmocka_unit_test(test_reset_begins_anew),
        cmocka_unit_test(test_the_same_seed_waits_the_same),
        cmocka_unit_test(test_bounds_that_are_odd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
