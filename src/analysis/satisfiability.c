/* satisfiability.c: see satisfiability.h. */
#include "satisfiability.h"

#include <string.h>

#include "policy/field_match.h"

/* ---- Facts ----------------------------------------------------------------------------------- */

static int is_count(int fact)
{
    return (fact >= MULL__ATTEMPT && fact <= MULL__AGE) || fact == MULL__MESSAGE_SIZE;
}

static int is_text(int fact)
{
    return fact != MULL__NO_ATTRIBUTE && fact != MULL__ERROR_FIELD && !is_count(fact);
}

static int always_there(int fact)
{
    return is_count(fact) || fact == MULL__ERROR_TYPE_NAME || fact == MULL__ERROR_MESSAGE ||
           fact == MULL__ERROR_STACK;
}

static int64_t least_count(int fact)
{
    return fact == MULL__ATTEMPT || fact == MULL__DELIVERIES || fact == MULL__CALLS;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* passes: a pattern that can't be tried to its end may. */
static int passes(const mull__condition *value, const mull_value *given, int64_t *effort)
{
    enum { MOST_STEPS = 100000, STEP_NS = 5, LITERAL_NS = 4, BYTES = 16 /* in one nanosecond */ };
    const mull__condition *inner = value;
    int64_t steps = MOST_STEPS;
    while (inner->kind == MULL__NOT)
        inner = inner->inner;
    const char *text = given && given->kind == MULL_STRING ? given->as.string : "";
    int64_t text_ns = (int64_t)strlen(text) / BYTES;
    *effort -= 15 + (LITERAL_NS + text_ns) * (int64_t)(1 + inner->literal_count);
    if (*effort <= 0)
        return 0;
    int answer = mull__condition_passes(value, given, &steps) != 0;
    *effort -= STEP_NS * (MOST_STEPS - steps);
    return answer;
}

/* can_be: a fact may have a literal as its value. */
static int can_be(int fact, const mull_value *literal)
{
    double number = literal->kind == MULL_NUMBER ? literal->as.number : -1;
    if (is_text(fact))
        return literal->kind == MULL_STRING;
    if (!is_count(fact))
        return 1;
    if (literal->kind == MULL_INTEGER)
        return literal->as.integer >= least_count(fact);
    return number >= (double)least_count(fact) && number < 0x1p63 &&
           number == (double)(int64_t)number;
}

static int none_can_be(int fact, const mull__condition *value)
{
    for (size_t i = 0; i < value->literal_count; i++)
        if (can_be(fact, &value->literals[i]))
            return 0;
    return 1;
}

/* no_count_in: the least whole number that isn't below the range is above it. */
static int no_count_in(int fact, const mull__condition *value, int64_t *effort)
{
    const mull__condition up_to_high = {.kind = MULL__BETWEEN, .high = value->high};
    mull_value least = {.kind = MULL_INTEGER, .as.integer = least_count(fact)};
    double low = value->low.kind == MULL_NUMBER ? value->low.as.number : 0;
    if (low > (double)least.as.integer && low < 0x1p53)
        least.as.integer = (int64_t)low + ((double)(int64_t)low < low);
    return value->high.kind != MULL_NIL && !passes(&up_to_high, &least, effort);
}

/* decides: whatever a fact is, a test for a value passes, or with `passing` 0 it never does. */
static int decides(int fact, const mull__condition *value, int passing, int64_t *effort)
{
    const mull_value least = {.kind = MULL_INTEGER, .as.integer = least_count(fact)};
    if (fact == MULL__NO_ATTRIBUTE)
        return passes(value, NULL, effort) == passing;
    switch (value->kind) {
    case MULL__ONE_OF:
        return !passing && none_can_be(fact, value);
    case MULL__BETWEEN:
        if (passing)
            return is_count(fact) && value->high.kind == MULL_NIL && passes(value, &least, effort);
        return is_text(fact) || (is_count(fact) && no_count_in(fact, value, effort));
    case MULL__CONTAINS:
    case MULL__MATCHES:
        return !passing && is_count(fact);
    case MULL__PRESENT:
        return passing && always_there(fact);
    case MULL__ABSENT:
        return !passing && always_there(fact);
    case MULL__NOT:
        return decides(fact, value->inner, !passing, effort);
    }
    return 0;
}

static int same_text(const char *a, const char *b, int64_t *effort)
{
    size_t at = 0;
    while (a != b && a[at] && a[at] == b[at])
        at++;
    *effort -= 2 + (int64_t)at;
    return a == b || a[at] == b[at];
}

static int same_literal(const mull_value *a, const mull_value *b, int64_t *effort)
{
    const mull__condition value = {.kind = MULL__ONE_OF, .literals = a, .literal_count = 1};
    return a->kind == MULL_NIL || b->kind == MULL_NIL ? a->kind == b->kind
                                                      : passes(&value, b, effort);
}

static int same_value(const mull__condition *a, const mull__condition *b, int64_t *effort)
{
    if (a->kind != b->kind || a->literal_count != b->literal_count)
        return 0;
    for (size_t i = 0; i < a->literal_count; i++)
        if (!same_literal(&a->literals[i], &b->literals[i], effort))
            return 0;
    return same_literal(&a->low, &b->low, effort) && same_literal(&a->high, &b->high, effort) &&
           same_text(a->text, b->text, effort) &&
           (!a->inner || same_value(a->inner, b->inner, effort));
}

/* ---- Two tests of one fact ------------------------------------------------------------------- */

static int same_subject(const mull__field_test *a, const mull__field_test *b, int64_t *effort)
{
    return a->subject == b->subject && same_text(a->name, b->name, effort);
}

static int same_test(const mull__field_test *a, const mull__field_test *b, int64_t *effort)
{
    return same_subject(a, b, effort) && same_value(&a->value, &b->value, effort);
}

/* apart: two ranges have no number in common. If they have one, the greater of their lows is. */
static int apart(const mull__condition *a, const mull__condition *b, int64_t *effort)
{
    return (a->low.kind != MULL_NIL || b->low.kind != MULL_NIL) &&
           !(a->low.kind != MULL_NIL && passes(b, &a->low, effort)) &&
           !(b->low.kind != MULL_NIL && passes(a, &b->low, effort));
}

/* rules_out: no value is `a` and `b`, as far as is seen from `a`. */
static int rules_out(const mull__condition *a, const mull__condition *b, int64_t *effort)
{
    switch (a->kind) {
    case MULL__ONE_OF:
        for (size_t i = 0; i < a->literal_count; i++)
            if (passes(b, &a->literals[i], effort))
                return 0;
        return 1;
    case MULL__ABSENT:
        return !passes(b, NULL, effort);
    case MULL__BETWEEN:
        return b->kind == MULL__CONTAINS || b->kind == MULL__MATCHES ||
               (b->kind == MULL__BETWEEN && apart(a, b, effort));
    case MULL__NOT:
        return same_value(a->inner, b, effort);
    default:
        return 0;
    }
}

static int clash(const mull__field_test *a, const mull__field_test *b, int64_t *effort)
{
    return same_subject(a, b, effort) &&
           (rules_out(&a->value, &b->value, effort) || rules_out(&b->value, &a->value, effort));
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* gather adds tests that all must pass for a matcher to, up to so many, and gives how many there
 * are then. */
enum { MOST_TESTS = 32 };

static size_t gather(const mull__field_test *tests[MOST_TESTS], size_t count,
                     const mull__matcher *matcher, int64_t *effort)
{
    *effort -= 5;
    for (size_t i = 0; i < matcher->test_count && count < MOST_TESTS; i++)
        tests[count++] = &matcher->tests[i];
    size_t parts = matcher->kind == MULL__MATCH_ALL ? matcher->part_count : 0;
    for (size_t i = 0; i < parts && count<MOST_TESTS && * effort> 0; i++)
        count = gather(tests, count, &matcher->parts[i], effort);
    return count;
}

static int contradicts_itself(const mull__matcher *matcher, int64_t *effort)
{
    const mull__field_test *tests[MOST_TESTS];
    size_t count = gather(tests, 0, matcher, effort);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (clash(tests[i], tests[j], effort))
                return 1;
    return 0;
}

/* is_certain: a matcher always passes, or raises; with `passing` 0 it never passes. Of each part no
 * more than one answer is asked for, or nests would take time by their depth's power of two. */
static int is_certain(const mull__matcher *matcher, int passing, int64_t *effort)
{
    int of_part = matcher->kind == MULL__MATCH_NONE ? !passing : passing;
    int one_is_enough = matcher->kind == MULL__MATCH_ANY ? passing : !passing;
    *effort -= 10;
    if (matcher->kind == MULL__MATCH_ALWAYS || matcher->kind == MULL__MATCH_FUNCTION)
        return passing && matcher->kind == MULL__MATCH_ALWAYS;
    for (size_t i = 0; i < matcher->test_count; i++) {
        const mull__field_test *test = &matcher->tests[i];
        if (decides((int)test->attribute, &test->value, passing, effort) == one_is_enough)
            return one_is_enough;
    }
    for (size_t i = 0; i < matcher->part_count; i++)
        if (is_certain(&matcher->parts[i], of_part, effort) == one_is_enough)
            return one_is_enough;
    int all_must_pass = matcher->kind == MULL__MATCH_TESTS || matcher->kind == MULL__MATCH_ALL;
    return !one_is_enough || (all_must_pass && contradicts_itself(matcher, effort));
}

int mull__never_passes(const mull__matcher *matcher, int64_t *effort)
{
    return is_certain(matcher, 0, effort) && *effort > 0;
}

static int same_matcher(const mull__matcher *a, const mull__matcher *b, int64_t *effort)
{
    *effort -= 10;
    if (a->kind != b->kind || a->test_count != b->test_count || a->part_count != b->part_count ||
        (a->kind == MULL__MATCH_FUNCTION && a->function != b->function))
        return 0;
    for (size_t i = 0; i < a->test_count; i++)
        if (!same_test(&a->tests[i], &b->tests[i], effort))
            return 0;
    for (size_t i = 0; i < a->part_count; i++)
        if (!same_matcher(&a->parts[i], &b->parts[i], effort))
            return 0;
    return 1;
}

/* ---- One matcher behind another -------------------------------------------------------------- */

/* has_pattern: how it ends depends on the steps that are left. */
static int has_pattern(const mull__condition *value)
{
    return value->kind == MULL__MATCHES || (value->kind == MULL__NOT && has_pattern(value->inner));
}

static int all_pass(const mull__condition *literals, const mull__condition *wide, int64_t *effort)
{
    for (size_t i = 0; i < literals->literal_count; i++)
        if (!passes(wide, &literals->literals[i], effort))
            return 0;
    return 1;
}

/* is_within: an end of a range, if it has one there, is in the wide one, which else has none. */
static int is_within(const mull_value *end, const mull__condition *wide, const mull_value *wide_end,
                     int64_t *effort)
{
    return end->kind == MULL_NIL ? wide_end->kind == MULL_NIL : passes(wide, end, effort);
}

/* implies: what passes `narrow` passes `wide`. */
static int implies(const mull__condition *narrow, const mull__condition *wide, int64_t *effort)
{
    if (same_value(narrow, wide, effort))
        return 1;
    if (narrow->kind == MULL__ONE_OF)
        return !has_pattern(wide) && all_pass(narrow, wide, effort);
    return narrow->kind == MULL__BETWEEN && wide->kind == MULL__BETWEEN &&
           is_within(&narrow->low, wide, &wide->low, effort) &&
           is_within(&narrow->high, wide, &wide->high, effort);
}

static int asks_for(const mull__matcher *matcher, const mull__field_test *test, int64_t *effort)
{
    for (size_t i = 0; i < matcher->test_count; i++)
        if (same_subject(&matcher->tests[i], test, effort) &&
            implies(&matcher->tests[i].value, &test->value, effort))
            return 1;
    return 0;
}

/* The tests of `narrow` ask for what those of `wide` do, each for itself. A pattern costs steps, of
 * which the one may have too few left where the other has enough. */
int mull__covers(const mull__matcher *wide, const mull__matcher *narrow, int64_t *effort)
{
    int covers = wide->kind == MULL__MATCH_TESTS && narrow->kind == MULL__MATCH_TESTS;
    if (wide->kind == MULL__MATCH_ALWAYS || same_matcher(wide, narrow, effort))
        return *effort > 0;
    for (size_t i = 0; i < wide->test_count && covers; i++)
        covers = asks_for(narrow, &wide->tests[i], effort);
    return covers && *effort > 0;
}
