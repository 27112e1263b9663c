/* delay.c: delays and what follows from counters, at their edges. */
#include <stdio.h>

#include "fixtures.h"
#include "policy/delay.h"

#define DAY_MS (INT64_C(24) * 3600 * 1000)

/* ---- Computed delays ------------------------------------------------------------------------- */

static int64_t exponential(int64_t base_ms, double factor, int64_t step)
{
    return mull__delay(&(mull__tier_config){.on = 1,
                                            .attempts = MULL_UNLIMITED,
                                            .base_ms = base_ms,
                                            .backoff = MULL__EXPONENTIAL,
                                            .factor = factor,
                                            .max_delay_ms = 365 * DAY_MS},
                       step);
}

static void rounding(void **state)
{
    (void)state;
    assert_int_equal(exponential(200, 2, 1), 200);
    assert_int_equal(exponential(200, 2, 8), 25600);
    assert_int_equal(exponential(100, 1.1, 2), 110);  /* 110.00000000000001 in doubles */
    assert_int_equal(exponential(100, 1.1, 3), 121);  /* 121.00000000000001 */
    assert_int_equal(exponential(100, 1.1, 4), 134);  /* 133.1 */
    assert_int_equal(exponential(10, 1.15, 2), 12);   /* 11.5 */
    assert_int_equal(exponential(1, 1.000001, 2), 2); /* any excess counts that isn't an error */
    assert_int_equal(exponential(7, 1, 1000000), 7);
    assert_int_equal(exponential(0, 1e300, 1000), 0);
    /* Large ones too: 200 * 1.5^40 is 2211466464.18..., whatever a relative error would say. */
    assert_int_equal(exponential(200, 1.5, 41), 2211466465);
}

static void saturation(void **state)
{
    (void)state;
    const int64_t steps[] = {60, 64, 65, 1000, INT32_MAX, INT64_MAX - 1, INT64_MAX};
    mull__tier_config tier = {.on = 1, .base_ms = 200, .factor = 2, .max_delay_ms = 30000};
    for (size_t i = 0; i < COUNT(steps); i++) {
        tier.backoff = MULL__EXPONENTIAL;
        assert_int_equal(mull__delay(&tier, steps[i]), 30000);
        tier.backoff = MULL__CONSTANT;
        assert_int_equal(mull__delay(&tier, steps[i]), 200);
    }
    tier.backoff = MULL__LINEAR;
    assert_int_equal(mull__delay(&tier, 149), 29800);
    assert_int_equal(mull__delay(&tier, 150), 30000);
    assert_int_equal(mull__delay(&tier, 151), 30000);
    assert_int_equal(mull__delay(&tier, INT64_MAX), 30000);
    tier.base_ms = 40000;
    assert_int_equal(mull__delay(&tier, 1), 30000);
    tier.max_delay_ms = MULL__NO_CAP;
    assert_int_equal(mull__delay(&tier, INT64_MAX), 365 * DAY_MS);
    tier.backoff = MULL__EXPONENTIAL;
    tier.factor = 1e308;
    assert_int_equal(mull__delay(&tier, 3), 365 * DAY_MS);
    tier.max_delay_ms = 0;
    assert_int_equal(mull__delay(&tier, 3), 0);
}

static void lists(void **state)
{
    (void)state;
    const int64_t delays[] = {100, 365 * DAY_MS, 0};
    mull__tier_config tier = {
        .on = 1, .attempts = 3, .delays = delays, .delay_count = 3, .max_delay_ms = MULL__NO_CAP};
    assert_int_equal(mull__delay(&tier, 1), 100);
    assert_int_equal(mull__delay(&tier, 2), 365 * DAY_MS);
    assert_int_equal(mull__delay(&tier, 3), 0);
    tier.max_delay_ms = 2000;
    assert_int_equal(mull__delay(&tier, 2), 2000);
}

/* ---- Jitter ---------------------------------------------------------------------------------- */

static mull__ms_range span(int64_t delay_ms, double jitter, int64_t cap_ms)
{
    return mull__jitter_ms_range(&(mull__tier_config){.jitter = jitter, .max_delay_ms = cap_ms},
                                 delay_ms);
}

#define SPANS(delay, jitter, cap, low, high)                                                       \
    do {                                                                                           \
        mull__ms_range s = span(delay, jitter, cap);                                               \
        assert_int_equal(s.low_ms, low);                                                           \
        assert_int_equal(s.high_ms, high);                                                         \
    } while (0)

static void spans(void **state)
{
    (void)state;
    SPANS(200, 0.25, 30000, 150, 250);
    SPANS(30000, 0.25, 30000, 22500, 30000);
    SPANS(25000, 0.25, 30000, 18750, 30000);
    SPANS(10, 0.25, 30000, 8, 12);    /* whole milliseconds inside [7.5, 12.5] */
    SPANS(100, 0.29, 30000, 71, 129); /* 100 * 0.29 is 28.999999999999996 in doubles */
    SPANS(1, 0.25, 30000, 1, 1);
    SPANS(200, 1, 30000, 0, 400);
    SPANS(200, 0, 30000, 200, 200);
    SPANS(0, 1, 30000, 0, 0);
    SPANS(365 * DAY_MS, 1, MULL__NO_CAP, 0, 2 * 365 * DAY_MS);
}

static void draws(void **state)
{
    (void)state;
    mull__ms_range four = {7, 10};
    assert_int_equal(mull__draw_jitter(four.low_ms, mull__range_size(four), 0), 7);
    assert_int_equal(mull__draw_jitter(four.low_ms, mull__range_size(four), UINT64_C(1) << 62), 8);
    assert_int_equal(
        mull__draw_jitter(four.low_ms, mull__range_size(four), (UINT64_C(1) << 62) - 1), 7);
    assert_int_equal(mull__draw_jitter(four.low_ms, mull__range_size(four), UINT64_MAX), 10);
    mull__ms_range wide = {0, 2 * 365 * DAY_MS};
    assert_int_equal(mull__draw_jitter(wide.low_ms, mull__range_size(wide), UINT64_MAX),
                     2 * 365 * DAY_MS);
    assert_int_equal(mull__draw_jitter(wide.low_ms, mull__range_size(wide), UINT64_C(1) << 63),
                     365 * DAY_MS);
    assert_int_equal(mull__draw_jitter(5, 1, UINT64_MAX), 5);
}

/* ---- Through a verdict ----------------------------------------------------------------------- */

/* one_rule is a table with a default rule of these tiers. */
static mull__table *one_rule(mull__tier_config retry, mull__tier_config redeliver,
                             mull__plain_settings settings)
{
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 1);
    rule.retry = retry;
    rule.redeliver = redeliver;
    rule.queue = "parked";
    mull__plain_scope bus = {
        .kind = MULL__BUS, .rules = &rule, .rule_count = 1, .settings = settings};
    return new_table(&(mull__plain){NULL, 0, &bus, 1, 0});
}

static const mull__tier_config off = {0};
static const mull__tier_config retry_3 = RETRY(3);
static const mull__tier_config redeliver_3 = REDELIVER(3);

static void jitter_has_all_the_facts_and_no_more(void **state)
{
    (void)state;
    mull__tier_config wide = {.on = 1,
                              .attempts = 1000,
                              .base_ms = 100 * DAY_MS,
                              .max_delay_ms = 365 * DAY_MS,
                              .jitter = 1};
    mull__table *table = one_rule(wide, wide, (mull__plain_settings){0});
    mull_error error = error_of("Any");
    const mull_failure base = failure_of(&error);
    int64_t delay_ms = judge(table, &base).delay_ms;
    assert_int_equal(judge(table, &base).delay_ms, delay_ms);
    mull_failure f = base;
#define OTHER(change)                                                                              \
    f = base;                                                                                      \
    change;                                                                                        \
    assert_int_not_equal(judge(table, &f).delay_ms, delay_ms)
    OTHER(f.chance = 1);
    OTHER(f.seed = 1);
    OTHER(f.consumer = "Payments");
    OTHER(f.redeliveries = 1);
    OTHER(f.attempt = 2);
    OTHER(f.attempt = 1001); /* a redelivery, with the same step */
#undef OTHER
    f = base;
    mull_error alike = error_of("Else");
    mull_message message = MULL_INIT(mull_message);
    message.id = "m";
    f.error = &alike;
    f.message = &message;
    f.transport = "orders";
    f.calls = 9;
    f.deliveries = 4;
    f.age_ms = 77;
    assert_int_equal(judge(table, &f).delay_ms, delay_ms);
    f.flags |= MULL_NO_JITTER;
    assert_int_equal(judge(table, &f).delay_ms, 100 * DAY_MS);
    mull__table_free(table);
}

/* Every value of a small span comes up, about as often: chi-squared with 100 degrees of freedom
 * stays under 160 in all but 1 of 8,000 tries, and the tries are always the same. */
static void jitter_is_uniform(void **state)
{
    (void)state;
    mull__tier_config tier = retry_3;
    tier.jitter = 0.25;
    mull__table *table = one_rule(tier, off, (mull__plain_settings){0});
    mull_error error = error_of("Any");
    mull_failure f = failure_of(&error);
    enum { EACH = 200 };
    int seen[101] = {0};
    for (f.chance = 0; f.chance < 101 * EACH; f.chance++) {
        int64_t ms = judge(table, &f).delay_ms;
        assert_in_range(ms, 150, 250);
        seen[ms - 150]++;
    }
    double chi = 0;
    for (int i = 0; i < 101; i++)
        chi += (double)((seen[i] - EACH) * (seen[i] - EACH)) / EACH;
    assert_true(chi < 160);
    mull__table_free(table);
}

static void unlimited(void **state)
{
    (void)state;
    mull__tier_config tier = redeliver_3;
    tier.attempts = MULL_UNLIMITED;
    mull__table *table = one_rule(retry_3, tier, (mull__plain_settings){0});
    mull_error error = error_of("Any");
    mull_failure f = failure_of(&error);
    f.attempt = 4;
    f.redeliveries = INT64_MAX;
    f.calls = INT64_MAX;
    mull_verdict v = judge(table, &f);
    assert_int_equal(v.action, MULL_REDELIVER);
    assert_int_equal(v.step, INT64_MAX);
    assert_int_equal(v.of, MULL_UNLIMITED);
    assert_int_equal(v.delay_ms, 3600000);
    mull__table_free(table);
}

static void huge_counters(void **state)
{
    (void)state;
    mull__table *table = one_rule(retry_3, redeliver_3, (mull__plain_settings){0});
    mull_error error = error_of("Any");
    mull_failure f = failure_of(&error);
    f.attempt = f.redeliveries = f.calls = f.age_ms = INT64_MAX;
    mull_verdict v = judge(table, &f);
    assert_int_equal(v.action, MULL_DEAD_LETTER);
    assert_int_equal(v.reason, MULL_REASON_EXHAUSTED);
    assert_string_equal(v.queue, "parked");
    f.deliveries = INT64_MAX;
    assert_int_equal(judge(table, &f).reason, MULL_REASON_MAX_DELIVERIES);
    mull__table_free(table);
    table =
        one_rule(retry_3, redeliver_3,
                 (mull__plain_settings){.max_deliveries = MULL__OFF, .max_attempts = MULL__OFF});
    assert_int_equal(judge(table, &f).reason, MULL_REASON_EXHAUSTED);
    mull__table_free(table);
}

/* Both limits and a transport that can do nothing: the order in which they come. */
static void limits_come_before_the_fallback(void **state)
{
    (void)state;
    mull__table *table =
        one_rule(retry_3, redeliver_3,
                 (mull__plain_settings){.max_attempts = 6, .has_max_age = 1, .max_age_ms = 1000});
    mull_error error = error_of("Any");
    mull_failure f = failure_of(&error);
    f.flags |= MULL_CANNOT_RETRY | MULL_CANNOT_DELAY;
    mull_verdict v = judge(table, &f);
    assert_int_equal(v.reason, MULL_REASON_FALLBACK);
    assert_int_equal(v.fallback, MULL_NO_RETRY);
    assert_string_equal(v.queue, "error");
    assert_int_equal(v.rule.line, 1);
    assert_int_equal(v.tier, MULL_TIER_NONE);
    assert_int_equal(v.step, 0);
    assert_int_equal(v.of, 0);
    f.attempt = 4;
    assert_int_equal(judge(table, &f).fallback, MULL_NO_DELAY);
    f.age_ms = 1000;
    assert_int_equal(judge(table, &f).fallback, MULL_NO_DELAY);
    f.age_ms = 1001;
    v = judge(table, &f);
    assert_int_equal(v.reason, MULL_REASON_MAX_AGE);
    assert_int_equal(v.fallback, MULL_FALLBACK_NONE);
    assert_string_equal(v.queue, "parked");
    f.calls = 6;
    assert_int_equal(judge(table, &f).reason, MULL_REASON_MAX_ATTEMPTS);
    f.redeliveries = 3;
    assert_int_equal(judge(table, &f).reason, MULL_REASON_EXHAUSTED);
    f.attempt = 3;
    assert_int_equal(judge(table, &f).reason, MULL_REASON_MAX_ATTEMPTS);
    f.calls = 5;
    assert_int_equal(judge(table, &f).fallback, MULL_NO_RETRY); /* age doesn't stop a retry */
    mull__table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rounding),
        cmocka_unit_test(saturation),
        cmocka_unit_test(lists),
        cmocka_unit_test(spans),
        cmocka_unit_test(draws),
        cmocka_unit_test(jitter_has_all_the_facts_and_no_more),
        cmocka_unit_test(jitter_is_uniform),
        cmocka_unit_test(unlimited),
        cmocka_unit_test(huge_counters),
        cmocka_unit_test(limits_come_before_the_fallback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
