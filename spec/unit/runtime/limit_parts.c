/* limit_parts.c: what limits are made of, each alone: the count of a rate_limit, the pace of a
 * limit, the values of a `per`. What they do together is held against a model in spec/limits; here
 * is what that can't reach: fine rates, many values, no memory. */
#include "base/alloc.h"
#include "runtime/call_limit.h"
#include "runtime/limit_values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "counting_allocator.h"

/* ---- The pace of a limit --------------------------------------------------------------------- */

/* calls_in counts the calls that begin in so many milliseconds, as many as may. */
static int calls_in(const mull__call_limit *limit, int64_t span_ms)
{
    mull__pace pace = {0};
    int count = 0;
    for (int64_t now_ms = 1000; now_ms < 1000 + span_ms; now_ms++)
        while (mull__pace_ready(&pace, limit) <= now_ms) {
            mull__pace_took(&pace, limit, now_ms);
            count++;
        }
    return count;
}

static void a_pace_is_kept_where_a_millisecond_has_many_calls(void **state)
{
    (void)state;
    const mull__call_limit fine = {.count = 5000, .unit_ms = 1000, .burst = 1};
    assert_in_range(calls_in(&fine, 1000), 5000, 5005);
    const mull__call_limit between = {.count = 300, .unit_ms = 1000, .burst = 1};
    assert_in_range(calls_in(&between, 10000), 3000, 3001);
    const mull__call_limit odd = {.count = 3, .unit_ms = 1000, .burst = 1};
    assert_int_equal(calls_in(&odd, 10000), 30);
    const mull__call_limit rare = {.count = 1, .unit_ms = 3600000, .burst = 2};
    assert_int_equal(calls_in(&rare, 3599999), 2);
}

static void a_burst_beyond_all_time_is_no_overflow(void **state)
{
    (void)state;
    const mull__call_limit limit = {.count = 1, .unit_ms = 3600000, .burst = INT64_MAX};
    mull__pace pace = {0};
    for (int i = 0; i < 1000; i++) {
        assert_true(mull__pace_ready(&pace, &limit) <= 1000);
        mull__pace_took(&pace, &limit, 1000);
    }
}

/* Else a reload to a smaller burst would hold all calls up for years. */
static void a_reload_puts_no_call_off_for_longer_than_the_new_pace(void **state)
{
    (void)state;
    const mull__call_limit before = {.count = 1, .unit_ms = 3600000, .burst = 1000000};
    const mull__call_limit now = {.count = 2, .unit_ms = 1000, .burst = 3};
    mull__pace pace = {0};
    for (int i = 0; i < 1000000; i++)
        mull__pace_took(&pace, &before, 5000);
    mull__pace_renew(&pace, &now, 5000);
    assert_int_equal(mull__pace_ready(&pace, &now), 5500);
    mull__pace fresh = {0};
    mull__pace_renew(&fresh, &now, 5000);
    assert_int_equal(fresh.even_ns, 0);
}

static void what_may_be_called_soon_is_a_second_of_the_pace(void **state)
{
    (void)state;
    const mull__call_limit limit = {.count = 20, .unit_ms = 1000, .burst = 1};
    mull__pace pace = {0};
    assert_int_equal(mull__pace_soon(&pace, &limit, 5000, 1000), 21);
    assert_int_equal(mull__pace_soon(&pace, &limit, 5000, 3), 3);
    for (int i = 0; i < 40; i++)
        mull__pace_took(&pace, &limit, 5000);
    assert_int_equal(mull__pace_soon(&pace, &limit, 5000, 1000), 0);
}

/* ---- Values ---------------------------------------------------------------------------------- */

static mull__limit_state *add(mull__limit_values *values, const mull_allocator *allocator, int i)
{
    char name[32];
    snprintf(name, sizeof name, "value %d", i);
    return mull__value_add(values, allocator, name);
}

static void the_value_that_failed_longest_ago_is_dropped_first(void **state)
{
    (void)state;
    const mull_allocator allocator = mull__allocator_or_default((mull_allocator){0});
    mull__limit_values values;
    mull__values_init(&values);
    for (int i = 0; i <= MULL__VALUES_LIMITED; i++)
        mull__value_touch(&values, add(&values, &allocator, i), 1);
    mull__value_touch(&values, mull__value_find(&values, "value 0"), 1);
    mull__limit_state *first = mull__value_too_many(&values);
    assert_string_equal(first->value, "value 1");
    mull__value_drop(&values, &allocator, first);
    assert_null(mull__value_too_many(&values));
    assert_null(mull__value_find(&values, "value 1"));
    assert_non_null(mull__value_find(&values, "value 0"));
    for (int i = 0; i <= MULL__VALUES_COUNTED; i++)
        add(&values, &allocator, MULL__VALUES_LIMITED + 1 + i);
    assert_string_equal(mull__value_too_many(&values)->value, "value 10001");
    mull__values_free(&values, &allocator);
}

static void a_value_without_memory_is_not_there(void **state)
{
    (void)state;
    for (size_t fails = 1; fails < 8; fails++) {
        counting_allocator counts = {.fail_at = (long)fails};
        const mull_allocator allocator = counting_allocator_ops(&counts);
        mull__limit_values values;
        mull__values_init(&values);
        for (int i = 0; i < 3; i++) {
            mull__limit_state *made = add(&values, &allocator, i);
            char name[32];
            snprintf(name, sizeof name, "value %d", i);
            assert_ptr_equal(mull__value_find(&values, name), made);
        }
        mull__values_free(&values, &allocator);
        assert_int_equal(counts.out, 0);
    }
}

/* ---- The count of a rate_limit --------------------------------------------------------------- */

static int starts_after(const mull__rate_limit *limit, const mull_allocator *allocator, int most)
{
    mull__rate rate = {.allocator = allocator};
    int count = 0;
    mull__rate_change change = MULL__RATE_SAME;
    while (change == MULL__RATE_SAME && ++count <= most)
        change = mull__rate_ended(
            &rate, limit,
            &(mull__rate_call){.now_ms = 10 * count, .message = (uint64_t)count, .failed = 1});
    mull__rate_free(&rate);
    return count;
}

/* What can't be noted isn't counted: a limit begins later, never sooner. */
static void without_memory_a_limit_begins_later(void **state)
{
    (void)state;
    const mull__rate_limit row = {.after = 3, .messages = 2, .within_ms = 1000, .wait_ms = 1};
    const mull__rate_limit ratio = {
        .after = MULL__OFF, .ratio = 1, .least = 3, .window_ms = 1000, .messages = 2, .wait_ms = 1};
    const mull__rate_limit *const limits[] = {&row, &ratio};
    for (size_t i = 0; i < 2; i++)
        for (size_t fails = 1; fails < 6; fails++) {
            counting_allocator counts = {.fail_at = (long)fails};
            const mull_allocator allocator = counting_allocator_ops(&counts);
            assert_in_range(starts_after(limits[i], &allocator, 20), 3, 6);
            assert_int_equal(counts.out, 0);
        }
}

static mull__rate_change fail_at(mull__rate *rate, const mull__rate_limit *limit, int64_t now_ms)
{
    const mull__rate_call call = {.now_ms = now_ms, .message = (uint64_t)now_ms, .failed = 1};
    return mull__rate_ended(rate, limit, &call);
}

/* A failure that found memory for its moment alone isn't counted: the success that comes next isn't
 * told, and no later row begins with that moment. */
static void what_is_half_noted_is_in_no_row(void **state)
{
    (void)state;
    const mull__rate_limit limit = {.after = 3, .messages = 2, .within_ms = 1000, .wait_ms = 1};
    counting_allocator counts = {.fail_at = 2};
    const mull_allocator allocator = counting_allocator_ops(&counts);
    mull__rate rate = {.allocator = &allocator};
    assert_int_equal(fail_at(&rate, &limit, 10), MULL__RATE_SAME);
    assert_int_equal(rate.row, 0);
    assert_int_equal(fail_at(&rate, &limit, 20), MULL__RATE_SAME);
    assert_int_equal(fail_at(&rate, &limit, 30), MULL__RATE_SAME);
    assert_int_equal(fail_at(&rate, &limit, 40), MULL__RATE_STARTS);
    mull__rate_free(&rate);
    assert_int_equal(counts.out, 0);
}

static void a_window_of_many_calls_takes_little_memory(void **state)
{
    (void)state;
    counting_allocator counts = {0};
    const mull_allocator allocator = counting_allocator_ops(&counts);
    const mull__rate_limit limit = {.after = MULL__OFF,
                                    .ratio = 1,
                                    .least = 20,
                                    .window_ms = 3600000,
                                    .messages = 1,
                                    .wait_ms = 1};
    mull__rate rate = {.allocator = &allocator};
    for (int64_t i = 0; i < 10000000; i += 7)
        mull__rate_ended(&rate, &limit, &(mull__rate_call){.now_ms = i});
    assert_in_range(rate.window_end - rate.window_first, 990, 1001);
    assert_in_range(rate.window_room, 1000, 4096);
    mull__rate_free(&rate);
    assert_int_equal(counts.out, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pace_is_kept_where_a_millisecond_has_many_calls),
        cmocka_unit_test(a_burst_beyond_all_time_is_no_overflow),
        cmocka_unit_test(a_reload_puts_no_call_off_for_longer_than_the_new_pace),
        cmocka_unit_test(what_may_be_called_soon_is_a_second_of_the_pace),
        cmocka_unit_test(the_value_that_failed_longest_ago_is_dropped_first),
        cmocka_unit_test(a_value_without_memory_is_not_there),
        cmocka_unit_test(without_memory_a_limit_begins_later),
        cmocka_unit_test(what_is_half_noted_is_in_no_row),
        cmocka_unit_test(a_window_of_many_calls_takes_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
