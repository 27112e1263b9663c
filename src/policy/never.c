/* never.c: see never.h. */
#include "never.h"

#include <string.h>

#include "fact.h"
#include "value.h"

/* ---- Facts ----------------------------------------------------------------------------------- */

static int is_count(int fact)
{
    return (fact >= MULL__ATTEMPT && fact <= MULL__AGE) || fact == MULL__MESSAGE_SIZE;
}

static int is_text(int fact)
{
    return fact != MULL__NO_FACT && fact != MULL__ERROR_FIELD && !is_count(fact);
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
static int passes(const mull__plain_value *value, const mull_value *given)
{
    int64_t steps = 100000;
    return mull__value_passes(value, given, &steps) != 0;
}

static int is_whole(const mull_value *value)
{
    if (value->kind == MULL_INTEGER)
        return 1;
    double number = value->kind == MULL_NUMBER ? value->as.number : 0.5;
    return number >= -0x1p63 && number < 0x1p63 && number == (double)(int64_t)number;
}

/* from_least is what every count is in. */
static mull__plain_value from_least(int fact)
{
    return (mull__plain_value){.kind = MULL__BETWEEN,
                               .low = {.kind = MULL_INTEGER, .as.integer = least_count(fact)}};
}

/* can_be: a fact may have a literal as its value. */
static int can_be(int fact, const mull_value *literal)
{
    mull__plain_value counts = from_least(fact);
    if (is_text(fact))
        return literal->kind == MULL_STRING;
    return !is_count(fact) || (is_whole(literal) && passes(&counts, literal));
}

static int none_can_be(int fact, const mull__plain_value *value)
{
    for (size_t i = 0; i < value->literal_count; i++)
        if (can_be(fact, &value->literals[i]))
            return 0;
    return 1;
}

/* no_count_in: every whole number from the least on is over `high`, or below `low` as well. */
static int no_count_in(int fact, const mull__plain_value *value)
{
    const mull_value least = {.kind = MULL_INTEGER, .as.integer = least_count(fact)};
    mull__plain_value up_to_high = {.kind = MULL__BETWEEN, .high = value->high};
    if (value->high.kind != MULL_NIL && !passes(&up_to_high, &least))
        return 1;
    if (value->low.kind != MULL_NUMBER || value->high.kind == MULL_NIL ||
        value->low.as.number < 0 || value->low.as.number >= 0x1p53)
        return 0;
    int64_t whole = (int64_t)value->low.as.number;
    const mull_value next = {.kind = MULL_INTEGER,
                             .as.integer = whole + ((double)whole < value->low.as.number)};
    return !passes(&up_to_high, &next);
}

static int always(int fact, const mull__plain_value *value);

static int never(int fact, const mull__plain_value *value)
{
    if (fact == MULL__NO_FACT)
        return !passes(value, NULL);
    switch (value->kind) {
    case MULL__ONE_OF:
        return none_can_be(fact, value);
    case MULL__BETWEEN:
        return is_text(fact) || (is_count(fact) && no_count_in(fact, value));
    case MULL__CONTAINS:
    case MULL__MATCHES:
        return is_count(fact);
    case MULL__ABSENT:
        return always_there(fact);
    case MULL__NOT:
        return always(fact, value->inner);
    case MULL__PRESENT:
        break;
    }
    return 0;
}

static int always(int fact, const mull__plain_value *value)
{
    const mull_value least = {.kind = MULL_INTEGER, .as.integer = least_count(fact)};
    if (fact == MULL__NO_FACT)
        return passes(value, NULL);
    switch (value->kind) {
    case MULL__BETWEEN:
        return is_count(fact) && value->high.kind == MULL_NIL && passes(value, &least);
    case MULL__PRESENT:
        return always_there(fact);
    case MULL__NOT:
        return never(fact, value->inner);
    case MULL__ONE_OF:
    case MULL__CONTAINS:
    case MULL__MATCHES:
    case MULL__ABSENT:
        break;
    }
    return 0;
}

static int same_literal(const mull_value *a, const mull_value *b)
{
    const mull__plain_value value = {.kind = MULL__ONE_OF, .literals = a, .literal_count = 1};
    return a->kind == MULL_NIL || b->kind == MULL_NIL ? a->kind == b->kind : passes(&value, b);
}

static int same_value(const mull__plain_value *a, const mull__plain_value *b)
{
    if (a->kind != b->kind || a->literal_count != b->literal_count)
        return 0;
    for (size_t i = 0; i < a->literal_count; i++)
        if (!same_literal(&a->literals[i], &b->literals[i]))
            return 0;
    switch (a->kind) {
    case MULL__BETWEEN:
        return same_literal(&a->low, &b->low) && same_literal(&a->high, &b->high);
    case MULL__CONTAINS:
    case MULL__MATCHES:
        return strcmp(a->text, b->text) == 0;
    case MULL__NOT:
        return same_value(a->inner, b->inner);
    case MULL__ONE_OF:
    case MULL__PRESENT:
    case MULL__ABSENT:
        break;
    }
    return 1;
}

/* ---- Two tests of one fact ------------------------------------------------------------------- */

static int same_subject(const mull__plain_test *a, const mull__plain_test *b)
{
    return a->subject == b->subject && strcmp(a->name, b->name) == 0;
}

static int same_test(const mull__plain_test *a, const mull__plain_test *b)
{
    return same_subject(a, b) && same_value(&a->value, &b->value);
}

/* apart: two ranges have no number in common. If they have one, the greater of their lows is. */
static int apart(const mull__plain_value *a, const mull__plain_value *b)
{
    int has_low = a->low.kind != MULL_NIL || b->low.kind != MULL_NIL;
    return has_low && !(a->low.kind != MULL_NIL && passes(b, &a->low)) &&
           !(b->low.kind != MULL_NIL && passes(a, &b->low));
}

static int is_for_texts(const mull__plain_value *value)
{
    return value->kind == MULL__CONTAINS || value->kind == MULL__MATCHES;
}

/* rules_out: no value is `a` and `b`, as far as is seen from `a`. */
static int rules_out(const mull__plain_value *a, const mull__plain_value *b)
{
    switch (a->kind) {
    case MULL__ONE_OF:
        for (size_t i = 0; i < a->literal_count; i++)
            if (passes(b, &a->literals[i]))
                return 0;
        return 1;
    case MULL__ABSENT:
        return !passes(b, NULL);
    case MULL__BETWEEN:
        return is_for_texts(b) || (b->kind == MULL__BETWEEN && apart(a, b));
    case MULL__NOT:
        return same_value(a->inner, b);
    case MULL__CONTAINS:
    case MULL__MATCHES:
    case MULL__PRESENT:
        break;
    }
    return 0;
}

static int clash(const mull__plain_test *a, const mull__plain_test *b)
{
    return same_subject(a, b) &&
           (rules_out(&a->value, &b->value) || rules_out(&b->value, &a->value));
}

/* ---- Matchers -------------------------------------------------------------------------------- */

/* bundle is tests that all must pass for a matcher to. */
enum { BUNDLE = 32 };

typedef struct bundle {
    const mull__plain_test *tests[BUNDLE];
    size_t count;
} bundle;

static void gather(bundle *b, const mull__plain_matcher *matcher)
{
    for (size_t i = 0; i < matcher->test_count && b->count < BUNDLE; i++)
        b->tests[b->count++] = &matcher->tests[i];
    if (matcher->kind == MULL__MATCH_ALL)
        for (size_t i = 0; i < matcher->part_count; i++)
            gather(b, &matcher->parts[i]);
}

static int contradicts_itself(const mull__plain_matcher *matcher)
{
    bundle b = {.count = 0};
    gather(&b, matcher);
    for (size_t i = 0; i < b.count; i++)
        for (size_t j = 0; j < i; j++)
            if (clash(b.tests[i], b.tests[j]))
                return 1;
    return 0;
}

static int some_test_never(const mull__plain_matcher *matcher)
{
    for (size_t i = 0; i < matcher->test_count; i++)
        if (never((int)matcher->tests[i].fact, &matcher->tests[i].value))
            return 1;
    return 0;
}

static size_t count_never(const mull__plain_matcher *matcher)
{
    size_t count = 0;
    for (size_t i = 0; i < matcher->part_count; i++)
        count += mull__never_passes(&matcher->parts[i]) != 0;
    return count;
}

/* never_loses: it passes, or raises. */
static int never_loses(const mull__plain_matcher *matcher)
{
    size_t passing = 0;
    for (size_t i = 0; i < matcher->test_count; i++)
        passing += always((int)matcher->tests[i].fact, &matcher->tests[i].value) != 0;
    for (size_t i = 0; i < matcher->part_count; i++)
        passing += never_loses(&matcher->parts[i]) != 0;
    switch (matcher->kind) {
    case MULL__MATCH_TESTS:
        return passing == matcher->test_count;
    case MULL__MATCH_ALL:
        return passing == matcher->part_count;
    case MULL__MATCH_ANY:
        return passing > 0;
    case MULL__MATCH_NONE:
        return count_never(matcher) == matcher->part_count;
    case MULL__MATCH_ALWAYS:
        return 1;
    case MULL__MATCH_FUNCTION:
        break;
    }
    return 0;
}

static int some_part_never_loses(const mull__plain_matcher *matcher)
{
    for (size_t i = 0; i < matcher->part_count; i++)
        if (never_loses(&matcher->parts[i]))
            return 1;
    return 0;
}

int mull__never_passes(const mull__plain_matcher *matcher)
{
    switch (matcher->kind) {
    case MULL__MATCH_TESTS:
        return some_test_never(matcher) || contradicts_itself(matcher);
    case MULL__MATCH_ALL:
        return count_never(matcher) > 0 || contradicts_itself(matcher);
    case MULL__MATCH_ANY:
        return count_never(matcher) == matcher->part_count;
    case MULL__MATCH_NONE:
        return some_part_never_loses(matcher);
    case MULL__MATCH_ALWAYS:
    case MULL__MATCH_FUNCTION:
        break;
    }
    return 0;
}

int mull__same_matcher(const mull__plain_matcher *a, const mull__plain_matcher *b)
{
    if (a->kind != b->kind || a->test_count != b->test_count || a->part_count != b->part_count ||
        (a->kind == MULL__MATCH_FUNCTION && a->function != b->function))
        return 0;
    for (size_t i = 0; i < a->test_count; i++)
        if (!same_test(&a->tests[i], &b->tests[i]))
            return 0;
    for (size_t i = 0; i < a->part_count; i++)
        if (!mull__same_matcher(&a->parts[i], &b->parts[i]))
            return 0;
    return 1;
}

/* ---- One matcher behind another -------------------------------------------------------------- */

/* has_pattern: how it ends depends on the steps that are left. */
static int has_pattern(const mull__plain_value *value)
{
    return value->kind == MULL__MATCHES || (value->kind == MULL__NOT && has_pattern(value->inner));
}

static int all_pass(const mull__plain_value *literals, const mull__plain_value *wide)
{
    for (size_t i = 0; i < literals->literal_count; i++)
        if (!passes(wide, &literals->literals[i]))
            return 0;
    return 1;
}

/* is_within: a range has its end on a side where the wide one has one, and not beyond it. */
static int is_within(const mull__plain_value *narrow, const mull__plain_value *wide)
{
    const mull__plain_value from = {.kind = MULL__BETWEEN, .low = wide->low};
    const mull__plain_value to = {.kind = MULL__BETWEEN, .high = wide->high};
    int low = narrow->low.kind != MULL_NIL && passes(&from, &narrow->low);
    int high = narrow->high.kind != MULL_NIL && passes(&to, &narrow->high);
    return (low || wide->low.kind == MULL_NIL) && (high || wide->high.kind == MULL_NIL);
}

/* implies: what passes `narrow` passes `wide`. */
static int implies(const mull__plain_value *narrow, const mull__plain_value *wide)
{
    if (same_value(narrow, wide))
        return 1;
    if (narrow->kind == MULL__ONE_OF)
        return !has_pattern(wide) && all_pass(narrow, wide);
    return narrow->kind == MULL__BETWEEN && wide->kind == MULL__BETWEEN && is_within(narrow, wide);
}

static int asks_for(const mull__plain_matcher *matcher, const mull__plain_test *test)
{
    for (size_t i = 0; i < matcher->test_count; i++)
        if (same_subject(&matcher->tests[i], test) &&
            implies(&matcher->tests[i].value, &test->value))
            return 1;
    return 0;
}

/* covers: the tests of `narrow` ask for what those of `wide` do, each for itself. A pattern costs
 * steps, of which the one may have too few left where the other has enough. */
int mull__covers(const mull__plain_matcher *wide, const mull__plain_matcher *narrow)
{
    if (wide->kind == MULL__MATCH_ALWAYS || mull__same_matcher(wide, narrow))
        return 1;
    if (wide->kind != MULL__MATCH_TESTS || narrow->kind != MULL__MATCH_TESTS)
        return 0;
    for (size_t i = 0; i < wide->test_count; i++)
        if (!asks_for(narrow, &wide->tests[i]))
            return 0;
    return 1;
}
