/* copy.c: see copy.h. Each copy_... stands beside its measure_.... */
#include "copy.h"

#include <string.h>

#include "delay.h"
#include "fact.h"
#include "value.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static size_t on_boundary(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

void mull__measure_things(mull__size *size, size_t count, size_t bytes)
{
    size->things += on_boundary(count * bytes);
}

void *mull__take(mull__room *room, size_t count, size_t bytes)
{
    void *memory = room->things;
    room->things += on_boundary(count * bytes);
    return memory;
}

/* ---- Text ------------------------------------------------------------------------------------ */

void mull__measure_text(mull__size *size, const char *text)
{
    size->text += text ? strlen(text) + 1 : 0;
}

const char *mull__copy_text(mull__room *room, const char *text)
{
    if (!text)
        return NULL;
    size_t bytes = strlen(text) + 1;
    char *copy = memcpy(room->text, text, bytes);
    room->text += bytes;
    return copy;
}

const char *mull__copy_file(mull__room *room, const char *file)
{
    if (!file || !room->last_file || strcmp(file, room->last_file) != 0)
        room->last_file = mull__copy_text(room, file);
    return room->last_file;
}

/* ---- Values of tests ------------------------------------------------------------------------- */

static void measure_value(mull__size *size, const mull__plain_value *value)
{
    if (value->kind == MULL__ONE_OF) {
        mull__measure_things(size, value->literal_count, sizeof *value->literals);
        for (size_t i = 0; i < value->literal_count; i++)
            if (value->literals[i].kind == MULL_STRING)
                mull__measure_text(size, value->literals[i].as.string);
    }
    mull__measure_text(size, value->text);
    if (value->kind == MULL__NOT) {
        mull__measure_things(size, 1, sizeof *value->inner);
        measure_value(size, value->inner);
    }
}

static const mull_value *copy_literals(mull__room *room, const mull__plain_value *plain)
{
    mull_value *literals = mull__take(room, plain->literal_count, sizeof *literals);
    for (size_t i = 0; i < plain->literal_count; i++) {
        literals[i] = plain->literals[i];
        if (literals[i].kind == MULL_STRING)
            literals[i].as.string = mull__copy_text(room, literals[i].as.string);
    }
    return literals;
}

static mull__plain_value copy_value(mull__room *room, const mull__plain_value *plain)
{
    mull__plain_value value = {.kind = plain->kind};
    if (plain->kind == MULL__ONE_OF) {
        value.literals = copy_literals(room, plain);
        value.literal_count = plain->literal_count;
    }
    if (plain->kind == MULL__BETWEEN) {
        value.low = plain->low;
        value.high = plain->high;
    }
    value.text = mull__copy_text(room, plain->text);
    if (plain->kind == MULL__NOT) {
        mull__plain_value *inner = mull__take(room, 1, sizeof *inner);
        *inner = copy_value(room, plain->inner);
        value.inner = inner;
    }
    return value;
}

/* ---- Matchers -------------------------------------------------------------------------------- */

static int has_parts(mull__matcher_kind kind)
{
    return kind == MULL__MATCH_ALL || kind == MULL__MATCH_ANY || kind == MULL__MATCH_NONE;
}

/* are_equalities: each test is for a field of the error to equal one literal. */
static int are_equalities(const mull__plain_test *tests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (mull__fact_named(tests[i].subject, tests[i].name) != MULL__ERROR_FIELD ||
            tests[i].value.kind != MULL__ONE_OF || tests[i].value.literal_count != 1)
            return 0;
    return 1;
}

void mull__measure_matcher(mull__size *size, const mull__plain_matcher *matcher)
{
    if (matcher->kind == MULL__MATCH_TESTS) {
        mull__measure_things(size, matcher->test_count, sizeof *matcher->tests);
        for (size_t i = 0; i < matcher->test_count; i++) {
            mull__measure_text(size, matcher->tests[i].name);
            measure_value(size, &matcher->tests[i].value);
        }
        if (are_equalities(matcher->tests, matcher->test_count))
            mull__measure_things(size, matcher->test_count, sizeof *matcher->equals);
    } else if (has_parts(matcher->kind)) {
        mull__measure_things(size, matcher->part_count, sizeof *matcher->parts);
        for (size_t i = 0; i < matcher->part_count; i++)
            mull__measure_matcher(size, &matcher->parts[i]);
    }
}

static const mull__plain_test *copy_tests(mull__room *room, const mull__plain_matcher *plain)
{
    mull__plain_test *tests = mull__take(room, plain->test_count, sizeof *tests);
    for (size_t i = 0; i < plain->test_count; i++) {
        const mull__plain_test *test = &plain->tests[i];
        tests[i] = (mull__plain_test){
            .subject = test->subject,
            .name = mull__copy_text(room, test->name),
            .value = copy_value(room, &test->value),
            .fact = mull__fact_named(test->subject, test->name),
        };
    }
    return tests;
}

/* equalities are what tests come down to that were copied. */
static const mull__equality *equalities(mull__room *room, const mull__plain_test *tests,
                                        size_t count)
{
    mull__equality *wanted = mull__take(room, count, sizeof *wanted);
    for (size_t i = 0; i < count; i++) {
        wanted[i] = mull__equality_of(tests[i].name, tests[i].value.literals);
        wanted[i].is_last = i + 1 == count;
    }
    return wanted;
}

mull__plain_matcher mull__copy_matcher(mull__room *room, const mull__plain_matcher *plain)
{
    mull__plain_matcher matcher = {.kind = plain->kind};
    if (plain->kind == MULL__MATCH_FUNCTION) {
        matcher.function = plain->function;
    } else if (plain->kind == MULL__MATCH_TESTS) {
        matcher.tests = copy_tests(room, plain);
        matcher.test_count = plain->test_count;
        if (are_equalities(plain->tests, plain->test_count))
            matcher.equals = equalities(room, matcher.tests, matcher.test_count);
    } else if (has_parts(plain->kind)) {
        mull__plain_matcher *parts = mull__take(room, plain->part_count, sizeof *parts);
        for (size_t i = 0; i < plain->part_count; i++)
            parts[i] = mull__copy_matcher(room, &plain->parts[i]);
        matcher.parts = parts;
        matcher.part_count = plain->part_count;
    }
    return matcher;
}

/* ---- Tiers ----------------------------------------------------------------------------------- */

/* delays_of is how many delays a tier names; one that is off has none. */
static size_t delays_of(const mull__plain_tier *tier)
{
    return tier->on && tier->delays ? tier->delay_count : 0;
}

void mull__measure_tier(mull__size *size, const mull__plain_tier *tier)
{
    mull__measure_things(size, delays_of(tier), sizeof *tier->delays);
    if (tier->on)
        mull__measure_text(size, tier->hint);
    mull__measure_things(size, (size_t)mull__ahead(tier), sizeof *tier->lots);
}

mull__plain_tier mull__copy_tier(mull__room *room, const mull__plain_tier *plain)
{
    if (!plain->on)
        return (mull__plain_tier){0};
    mull__plain_tier tier = *plain;
    tier.on = 1;
    tier.delays = NULL;
    tier.delay_count = delays_of(plain);
    if (tier.delay_count) {
        int64_t *delays = mull__take(room, tier.delay_count, sizeof *delays);
        memcpy(delays, plain->delays, tier.delay_count * sizeof *delays);
        tier.delays = delays;
    }
    tier.hint = mull__copy_text(room, plain->hint);
    tier.lot_count = mull__ahead(plain);
    mull__lot *lots = mull__take(room, (size_t)tier.lot_count, sizeof *lots);
    for (int64_t step = 1; step <= tier.lot_count; step++) {
        mull__span span = mull__tier_span(plain, step);
        lots[step - 1] = (mull__lot){span.low_ms, mull__choices(span), {step, tier.attempts}};
    }
    tier.lots = lots;
    return tier;
}
