/* jitter.c: every kind of jitter, hints, and where a tier may wait to: at their edges, and
 * at random beside a straight reading of the language. */
#include <math.h>
#include <stdio.h>

#include "base/rand.h"
#include "fixtures.h"
#include "policy/delay.h"

#define DAY_MS  (INT64_C(24) * 3600 * 1000)
#define YEAR_MS (365 * DAY_MS)

/* ---- Ways to ask ----------------------------------------------------------------------------- */

static mull__tier_config tier_of(mull__jitter_kind kind, int64_t base_ms, int64_t cap_ms)
{
    return (mull__tier_config){.on = 1,
                               .attempts = 1000,
                               .base_ms = base_ms,
                               .max_delay_ms = cap_ms,
                               .jitter = 0.5,
                               .jitter_kind = kind};
}

static mull_error hinting(mull_field *field, mull_value value)
{
    *field = (mull_field){"retry_after", value};
    mull_error error = error_of("Any");
    error.fields = field;
    error.field_count = 1;
    return error;
}

#define INTEGER(n) ((mull_value){.kind = MULL_INTEGER, .as.integer = (n)})
#define NUMBER(n)  ((mull_value){.kind = MULL_NUMBER, .as.number = (n)})
#define STRING(s)  ((mull_value){.kind = MULL_STRING, .as.string = (s)})

/* wait_by is what a retry waits at a step: `flags` may force chance to an end. */
static int64_t wait_by(const mull__tier_config *tier, int64_t step, uint64_t chance, uint32_t flags,
                       const mull_error *error)
{
    static const mull_error plain = {.size = sizeof plain, .type = "Any"};
    const mull__jitter_inputs inputs = {
        .chance = chance, .flags = flags, .tier = MULL_TIER_RETRY, .step = step};
    return mull__tier_delay(tier, &inputs, error ? error : &plain);
}

static int64_t low(const mull__tier_config *tier, int64_t step)
{
    return wait_by(tier, step, 0, MULL__JITTER_LOW, NULL);
}

static int64_t high(const mull__tier_config *tier, int64_t step)
{
    return wait_by(tier, step, 0, MULL__JITTER_HIGH, NULL);
}

static int64_t hinted(const mull__tier_config *tier, mull_value value, uint32_t flags)
{
    mull_field field;
    const mull_error error = hinting(&field, value);
    return wait_by(tier, 1, 0, flags, &error);
}

/* ---- Kinds ----------------------------------------------------------------------------------- */

static void full(void **state)
{
    (void)state;
    mull__tier_config tier = tier_of(MULL__JITTER_FULL, 100, 30000);
    tier.backoff = MULL__LINEAR;
    assert_int_equal(low(&tier, 3), 0);
    assert_int_equal(high(&tier, 3), 300);
    int64_t least = 300, most = 0;
    for (uint64_t chance = 0; chance < 5000; chance++) {
        int64_t ms = wait_by(&tier, 3, chance, 0, NULL);
        assert_in_range(ms, 0, 300);
        least = ms < least ? ms : least;
        most = ms > most ? ms : most;
    }
    assert_int_equal(least, 0);
    assert_int_equal(most, 300);
    assert_int_equal(wait_by(&tier, 3, 1, MULL_NO_JITTER, NULL), 300);
}

static void decorrelated_at_its_ends(void **state)
{
    (void)state;
    mull__tier_config tier = tier_of(MULL__JITTER_DECORRELATED, 100, 5000);
    tier.backoff = MULL__EXPONENTIAL; /* as a retry's default has it; it says nothing here */
    tier.factor = 2;
    const int64_t highs[] = {300, 900, 2700, 5000, 5000};
    for (int64_t step = 1; step <= 5; step++) {
        assert_int_equal(low(&tier, step), 100);
        assert_int_equal(high(&tier, step), highs[step - 1]);
        assert_int_equal(wait_by(&tier, step, 7, MULL_NO_JITTER, NULL), 100);
    }
    tier.max_delay_ms = 60; /* below the delay */
    assert_int_equal(low(&tier, 2), 60);
    assert_int_equal(high(&tier, 2), 60);
    tier.max_delay_ms = MULL__NO_CAP;
    assert_int_equal(high(&tier, 1000), YEAR_MS);
    tier.base_ms = 0;
    assert_int_equal(high(&tier, 1000), 0);
}

/* Each step is drawn from what the one before waited, as a message has waited it: never more than
 * three times as long, though over all chances it may be far longer. */
static void decorrelated_remembers(void **state)
{
    (void)state;
    const mull__tier_config tier = tier_of(MULL__JITTER_DECORRELATED, 100, 100000);
    const mull_error error = error_of("Any");
    int grew = 0, shrank = 0;
    for (uint64_t chance = 0; chance < 2000; chance++) {
        for (int redelivers = 0; redelivers < 2; redelivers++) {
            int64_t before = 100;
            for (int64_t step = 1; step <= 8; step++) {
                const mull__jitter_inputs inputs = {.chance = chance,
                                                    .tier = redelivers ? MULL_TIER_REDELIVER
                                                                       : MULL_TIER_RETRY,
                                                    .redeliveries = redelivers ? step - 1 : 4,
                                                    .step = step};
                int64_t ms = mull__tier_delay(&tier, &inputs, &error);
                assert_in_range(ms, 100, before * 3 < 100000 ? before * 3 : 100000);
                grew += ms > before;
                shrank += ms < before;
                before = ms;
            }
        }
    }
    assert_true(grew > 1000 && shrank > 1000);
}

static void decorrelated_without_end(void **state)
{
    (void)state;
    const mull__tier_config tier = tier_of(MULL__JITTER_DECORRELATED, 1, MULL__NO_CAP);
    const int64_t steps[] = {1000, 1001, 1000000, INT64_MAX - 1, INT64_MAX};
    for (size_t i = 0; i < COUNT(steps); i++) {
        assert_in_range(wait_by(&tier, steps[i], 1, 0, NULL), 1, YEAR_MS);
        assert_int_equal(low(&tier, steps[i]), 1);
        assert_int_equal(high(&tier, steps[i]), YEAR_MS);
        assert_int_equal(mull__tier_ms_range(&tier, steps[i]).high_ms, YEAR_MS);
    }
    /* Other steps, other draws: beyond the memory, too. */
    assert_int_not_equal(wait_by(&tier, INT64_MAX, 1, 0, NULL),
                         wait_by(&tier, INT64_MAX - 1, 1, 0, NULL));
}

/* ---- Hints ----------------------------------------------------------------------------------- */

static void a_hint_is_the_least_there_is(void **state)
{
    (void)state;
    mull__tier_config tier = tier_of(MULL__JITTER_FRACTION, 1000, 60000);
    tier.jitter = 0;
    tier.hint = "retry_after";
    assert_int_equal(hinted(&tier, INTEGER(2), 0), 2000);
    assert_int_equal(hinted(&tier, INTEGER(0), 0), 1000); /* the longer of the two */
    assert_int_equal(hinted(&tier, NUMBER(-0.0), 0), 1000);
    assert_int_equal(hinted(&tier, NUMBER(1.5), 0), 1500);
    assert_int_equal(hinted(&tier, NUMBER(1.0001), 0), 1001); /* rounded up */
    assert_int_equal(hinted(&tier, NUMBER(1.1), 0), 1100);    /* 1100.0000000000002 in doubles */
    assert_int_equal(hinted(&tier, INTEGER(60), 0), 60000);
    assert_int_equal(hinted(&tier, INTEGER(61), 0), 60000);
    assert_int_equal(hinted(&tier, INTEGER(INT64_MAX), 0), 60000);
    assert_int_equal(hinted(&tier, NUMBER(60.5), 0), 60000);
    assert_int_equal(hinted(&tier, NUMBER(HUGE_VAL), 0), 60000);
    assert_int_equal(hinted(&tier, NUMBER(1e308), 0), 60000);
    tier.max_delay_ms = MULL__NO_CAP;
    assert_int_equal(hinted(&tier, INTEGER(INT64_MAX), 0), YEAR_MS);
    assert_int_equal(hinted(&tier, NUMBER(HUGE_VAL), 0), YEAR_MS);
}

static void no_hint_is_as_if_none_was_named(void **state)
{
    (void)state;
    mull__tier_config tier = tier_of(MULL__JITTER_FRACTION, 1000, 60000);
    tier.hint = "retry_after";
    const mull_value none[] = {
        INTEGER(-1),        NUMBER(-0.5),        NUMBER((double)NAN),
        NUMBER(-HUGE_VAL),  STRING("5"),         {.kind = MULL_BOOLEAN, .as.boolean = 1},
        {.kind = MULL_NIL}, {.kind = MULL_LIST},
    };
    for (size_t i = 0; i < COUNT(none); i++) {
        assert_int_equal(hinted(&tier, none[i], MULL__JITTER_LOW), 500);
        assert_int_equal(hinted(&tier, none[i], MULL__JITTER_HIGH), 1500);
    }
    assert_int_equal(low(&tier, 1), 500); /* the error has no such field */
    assert_int_equal(hinted(&tier, INTEGER(1), MULL__JITTER_LOW), 1000);
    /* The first field of a name counts; every error's own texts are none. */
    mull_field fields[] = {
        {"retry_after", STRING("soon")}, {"retry_after", INTEGER(9)}, {"message", INTEGER(9)}};
    mull_error error = error_of("Any");
    error.fields = fields;
    error.field_count = 3;
    assert_int_equal(wait_by(&tier, 1, 0, MULL__JITTER_LOW, &error), 500);
    tier.hint = "message";
    assert_int_equal(wait_by(&tier, 1, 0, MULL__JITTER_LOW, &error), 500);
}

static void to_a_hint_jitter_only_adds(void **state)
{
    (void)state;
    mull__tier_config tier = tier_of(MULL__JITTER_FRACTION, 1000, 10000);
    tier.hint = "retry_after";
#define HINTED(value, at_low, at_high, without)                                                    \
    do {                                                                                           \
        assert_int_equal(hinted(&tier, value, MULL__JITTER_LOW), at_low);                          \
        assert_int_equal(hinted(&tier, value, MULL__JITTER_HIGH), at_high);                        \
        assert_int_equal(hinted(&tier, value, MULL_NO_JITTER), without);                           \
    } while (0)
    HINTED(INTEGER(4), 4000, 6000, 4000);
    HINTED(INTEGER(0), 1000, 1500, 1000);
    HINTED(INTEGER(9), 9000, 10000, 9000);
    HINTED(INTEGER(99), 10000, 10000, 10000);
    tier.jitter_kind = MULL__JITTER_FULL;
    HINTED(INTEGER(4), 4000, 4000, 4000);
    HINTED(INTEGER(0), 1000, 1000, 1000);
    tier.jitter_kind = MULL__JITTER_DECORRELATED;
    HINTED(INTEGER(4), 4000, 4000, 4000);
    HINTED(INTEGER(0), 1000, 1000, 1000);
    tier.jitter_kind = MULL__JITTER_FRACTION;
    tier.max_delay_ms = MULL__NO_CAP;
    HINTED(NUMBER(HUGE_VAL), YEAR_MS, YEAR_MS + YEAR_MS / 2, YEAR_MS);
#undef HINTED
}

/* ---- Through a verdict ----------------------------------------------------------------------- */

static void verdicts_wait_so(void **state)
{
    (void)state;
    mull__plain_rule rule = DEAD_LETTER_RULE("Error", 1);
    rule.retry = tier_of(MULL__JITTER_DECORRELATED, 100, 100000);
    rule.retry.attempts = 2;
    rule.redeliver = tier_of(MULL__JITTER_FULL, 100, 100000);
    rule.redeliver.hint = "retry_after";
    mull__plain_scope bus = {.kind = MULL__BUS, .rules = &rule, .rule_count = 1};
    mull__table *table = new_table(&(mull__plain){NULL, 0, &bus, 1, 0});
    mull_field field;
    mull_error error = hinting(&field, INTEGER(7));
    mull_failure f = failure_of(&error);
    f.attempt = 2;
    f.flags |= MULL__JITTER_HIGH;
    assert_int_equal(judge(table, &f).delay_ms, 900); /* this tier names no hint */
    f.attempt = 3;
    f.redeliveries = 5;
    assert_int_equal(judge(table, &f).delay_ms, 7000);
    field.name = "other";
    assert_int_equal(judge(table, &f).delay_ms, 100);
    mull__table_free(table);
}

/* ---- At random ------------------------------------------------------------------------------- */

static uint64_t below(mull__rand *rand, uint64_t n)
{
    return mull__rand_next(rand) % n;
}

/* naive_delay is the delay before hint and jitter, by the words of the language. */
static long double naive_delay(const mull__tier_config *tier, int64_t step)
{
    long double ms = (long double)tier->base_ms, cap = (long double)tier->max_delay_ms;
    if (tier->delays)
        ms = (long double)tier->delays[step - 1];
    else if (tier->jitter_kind == MULL__JITTER_DECORRELATED || tier->backoff == MULL__CONSTANT)
        ms += 0;
    else if (tier->backoff == MULL__LINEAR)
        ms *= (long double)step;
    else
        for (int64_t k = 1; k < step; k++)
            ms *= tier->factor;
    return ms < cap ? ceill(ms - 1e-6L) : cap;
}

/* naive_span is where the delay may be, hinted (from 0) or not (-1). */
static void naive_span(const mull__tier_config *tier, int64_t step, long double hint_ms,
                       long double *least, long double *most)
{
    long double d = naive_delay(tier, step), cap = (long double)tier->max_delay_ms;
    if (hint_ms > cap)
        hint_ms = cap;
    if (hint_ms > d)
        d = hint_ms;
    *least = *most = d;
    if (tier->jitter_kind == MULL__JITTER_FRACTION) {
        *most = d * (1 + tier->jitter);
        if (hint_ms < 0)
            *least = d * (1 - tier->jitter);
    } else if (hint_ms < 0 && tier->jitter_kind == MULL__JITTER_FULL) {
        *least = 0;
    } else if (hint_ms < 0) {
        for (int64_t k = 1; k <= step && *most < cap; k++)
            *most *= 3;
    }
    if (*most > cap)
        *most = cap;
}

static mull__tier_config random_tier(mull__rand *rand, int64_t *delays)
{
    static const double factors[] = {1, 1.5, 2, 3};
    mull__tier_config tier = {
        .on = 1,
        .attempts = 1 + (int64_t)below(rand, 6),
        .base_ms = (int64_t)below(rand, 2000),
        .backoff = (mull__backoff)below(rand, 3),
        .factor = factors[below(rand, COUNT(factors))],
        .max_delay_ms = 1 + (int64_t)below(rand, 20000),
        .jitter_kind = (mull__jitter_kind)below(rand, 3),
        .jitter = (double)below(rand, 5) / 4,
        .hint = below(rand, 2) ? "retry_after" : NULL,
    };
    if (tier.jitter_kind != MULL__JITTER_DECORRELATED && below(rand, 3) == 0) {
        for (int64_t i = 0; i < tier.attempts; i++)
            delays[i] = (int64_t)below(rand, 30000);
        tier.delays = delays;
        tier.delay_count = (size_t)tier.attempts;
    }
    return tier;
}

/* check_step: every wait of a step is where the naive reading has it, its forced ends are the whole
 * milliseconds at the ends of that, and mull__tier_ms_range is all of it. */
static void check_step(mull__rand *rand, const mull__tier_config *tier, int64_t step)
{
    const mull__ms_range all = mull__tier_ms_range(tier, step);
    int64_t lowest = INT64_MAX, highest = -1;
    const int64_t hints[] = {-1, 0, (int64_t)below(rand, 30), 1000000};
    for (size_t i = 0; i < COUNT(hints); i++) {
        mull_field field;
        const mull_error error = hinting(&field, INTEGER(hints[i]));
        long double least, most;
        naive_span(tier, step, tier->hint && hints[i] >= 0 ? (long double)hints[i] * 1000 : -1,
                   &least, &most);
        int64_t at_low = wait_by(tier, step, 0, MULL__JITTER_LOW, &error);
        int64_t at_high = wait_by(tier, step, 0, MULL__JITTER_HIGH, &error);
        assert_true(fabsl((long double)at_low - ceill(least - 1e-6L)) < 0.5L);
        assert_true(fabsl((long double)at_high - floorl(most + 1e-6L)) < 0.5L);
        int64_t drawn = wait_by(tier, step, mull__rand_next(rand), 0, &error);
        assert_true(drawn >= at_low && drawn <= at_high);
        lowest = at_low < lowest ? at_low : lowest;
        highest = at_high > highest ? at_high : highest;
    }
    assert_int_equal(all.low_ms, lowest);
    assert_int_equal(all.high_ms, highest);
}

static void as_a_straight_reading(void **state)
{
    (void)state;
    mull__rand rand;
    mull__rand_init(&rand, 4711);
    for (int i = 0; i < 20000; i++) {
        int64_t delays[6], sum = 0;
        const mull__tier_config tier = random_tier(&rand, delays);
        for (int64_t step = 1; step <= tier.attempts; step++) {
            check_step(&rand, &tier, step);
            sum += mull__tier_ms_range(&tier, step).high_ms;
        }
        assert_int_equal(mull__longest_retry_round(&tier), sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full),
        cmocka_unit_test(decorrelated_at_its_ends),
        cmocka_unit_test(decorrelated_remembers),
        cmocka_unit_test(decorrelated_without_end),
        cmocka_unit_test(a_hint_is_the_least_there_is),
        cmocka_unit_test(no_hint_is_as_if_none_was_named),
        cmocka_unit_test(to_a_hint_jitter_only_adds),
        cmocka_unit_test(verdicts_wait_so),
        cmocka_unit_test(as_a_straight_reading),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
