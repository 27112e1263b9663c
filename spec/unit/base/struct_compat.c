/* struct_compat.c: how structs of other releases are read and written, shown on a struct that
 * grew: those of mulligan.h haven't yet. */
#include "base/struct_compat.h"

#include "fixtures.h"

/* first and now are a struct in its first release and in this one. */
typedef struct first {
    size_t size;
    int64_t a;
    int32_t b; /* behind which there is room for another */
} first;

typedef struct now {
    size_t size;
    int64_t a;
    int32_t b, filler;
    int64_t c;
} now;

enum { LEAST = MULL__SIZE_TO(now, b) };

static void a_field_does_not_hide_in_a_gap(void **state)
{
    (void)state;
    assert_int_equal(LEAST, sizeof(first));
    assert_true(offsetof(now, c) >= LEAST);
}

static void the_least_sizes_are_those_of_the_first_release(void **state)
{
    (void)state;
    const size_t sizes[][2] = {
        {MULL__MESSAGE_LEAST, sizeof(mull_message)},
        {MULL__ERROR_LEAST, sizeof(mull_error)},
        {MULL__FAILURE_LEAST, sizeof(mull_failure)},
        {MULL__VERDICT_LEAST, sizeof(mull_verdict)},
        {MULL__POLICY_OPTIONS_LEAST, sizeof(mull_policy_options)},
        {MULL__ENGINE_OPTIONS_LEAST, sizeof(mull_engine_options)},
        {MULL__CONSUMER_OPTIONS_LEAST, sizeof(mull_consumer_options)},
        {MULL__COUNTS_LEAST, sizeof(mull_counts)},
    };
    /* As long as there is only one release. From the second on the left column stays as it is. */
    for (size_t i = 0; i < COUNT(sizes); i++)
        assert_int_equal(sizes[i][0], sizes[i][1]);
}

static void what_an_older_one_lacks_is_zero(void **state)
{
    (void)state;
    first given = {.size = sizeof given, .a = 1, .b = 2};
    now own;
    memset(&own, 0x5a, sizeof own);
    assert_true(mull__struct_copy_in(&own, sizeof own, LEAST, &given));
    assert_int_equal(own.size, sizeof own);
    assert_int_equal(own.a, 1);
    assert_int_equal(own.b, 2);
    assert_int_equal(own.c, 0);
}

static void what_a_newer_one_has_besides_is_left(void **state)
{
    (void)state;
    now given = {.size = sizeof given, .a = 1, .b = 2, .c = 3};
    first own[2];
    memset(own, 0x5a, sizeof own);
    assert_true(mull__struct_copy_in(own, sizeof *own, sizeof *own, &given));
    assert_int_equal(own[0].size, sizeof *own);
    assert_int_equal(own[0].b, 2);
    assert_int_equal(own[1].size, SIZE_MAX / 255 * 0x5a);
}

static void an_older_one_gets_what_it_has_room_for(void **state)
{
    (void)state;
    const now own = {.size = sizeof own, .a = 1, .b = 2, .c = 3};
    first given[2] = {{.size = sizeof *given}, {.size = 4711}};
    assert_true(mull__struct_copy_out(given, LEAST, &own, sizeof own));
    assert_int_equal(given[0].size, sizeof *given);
    assert_int_equal(given[0].a, 1);
    assert_int_equal(given[0].b, 2);
    assert_int_equal(given[1].size, 4711);
}

static void a_newer_one_keeps_what_is_beyond(void **state)
{
    (void)state;
    const first own = {.size = sizeof own, .a = 1, .b = 2};
    now given = {.size = sizeof given, .c = 3};
    assert_true(mull__struct_copy_out(&given, LEAST, &own, sizeof own));
    assert_int_equal(given.size, sizeof given);
    assert_int_equal(given.a, 1);
    assert_int_equal(given.c, 3);
}

static void what_is_too_small_is_neither_read_nor_written(void **state)
{
    (void)state;
    now own = {.size = sizeof own, .a = 7};
    const size_t small[] = {0, 1, LEAST - 1};
    for (size_t i = 0; i < COUNT(small); i++) {
        first given = {.size = small[i], .a = 1};
        assert_false(mull__struct_copy_in(&own, sizeof own, LEAST, &given));
        assert_int_equal(own.a, 7);
        assert_false(mull__struct_copy_out(&given, LEAST, &own, sizeof own));
        assert_int_equal(given.a, 1);
    }
    assert_false(mull__struct_copy_in(&own, sizeof own, LEAST, NULL));
    assert_false(mull__struct_copy_out(NULL, LEAST, &own, sizeof own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_field_does_not_hide_in_a_gap),
        cmocka_unit_test(the_least_sizes_are_those_of_the_first_release),
        cmocka_unit_test(what_an_older_one_lacks_is_zero),
        cmocka_unit_test(what_a_newer_one_has_besides_is_left),
        cmocka_unit_test(an_older_one_gets_what_it_has_room_for),
        cmocka_unit_test(a_newer_one_keeps_what_is_beyond),
        cmocka_unit_test(what_is_too_small_is_neither_read_nor_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
