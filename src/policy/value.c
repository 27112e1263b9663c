/* value.c: see value.h. */
#include "value.h"

#include <string.h>

#include "base/pattern.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

enum { BELOW = -1, EQUAL = 0, ABOVE = 1, NO_ORDER = 2 };

/* integer_to compares without rounding: 2^53 + 1 is no double. */
static int integer_to(int64_t integer, double number)
{
    if (number >= 0x1p63)
        return BELOW;
    if (number < -0x1p63)
        return ABOVE;
    if (number != number)
        return NO_ORDER;
    int64_t whole = (int64_t)number; /* towards zero */
    double rest = number - (double)whole;
    if (integer != whole)
        return integer < whole ? BELOW : ABOVE;
    if (rest > 0)
        return BELOW;
    return rest < 0 ? ABOVE : EQUAL;
}

static int double_to(double a, double b)
{
    if (a < b)
        return BELOW;
    if (a > b)
        return ABOVE;
    return a == b ? EQUAL : NO_ORDER;
}

static int opposite(int order)
{
    return order == NO_ORDER ? NO_ORDER : -order;
}

/* number_to says how two numbers stand to each other, each an integer or a double. */
static int number_to(const mull_value *a, const mull_value *b)
{
    if (a->kind == MULL_INTEGER && b->kind == MULL_INTEGER)
        return (a->as.integer > b->as.integer) - (a->as.integer < b->as.integer);
    if (a->kind == MULL_INTEGER)
        return integer_to(a->as.integer, b->as.number);
    if (b->kind == MULL_INTEGER)
        return opposite(integer_to(b->as.integer, a->as.number));
    return double_to(a->as.number, b->as.number);
}

static int is_number(const mull_value *value)
{
    return value->kind == MULL_INTEGER || value->kind == MULL_NUMBER;
}

static int between(const mull__plain_value *wanted, const mull_value *given)
{
    if (!is_number(given))
        return 0;
    if (wanted->low.kind != MULL_NIL) {
        int order = number_to(given, &wanted->low);
        if (order != ABOVE && order != EQUAL)
            return 0;
    }
    if (wanted->high.kind == MULL_NIL)
        return 1;
    int order = number_to(given, &wanted->high);
    return order == BELOW || order == EQUAL;
}

/* ---- Literals -------------------------------------------------------------------------------- */

int mull__number_equals(const mull_value *a, const mull_value *b)
{
    return is_number(a) && is_number(b) && number_to(a, b) == EQUAL;
}

static int one_of(const mull__plain_value *wanted, const mull_value *given)
{
    for (size_t i = 0; i < wanted->literal_count; i++)
        if (mull__value_equals(&wanted->literals[i], given))
            return 1;
    return 0;
}

/* ---- Texts ----------------------------------------------------------------------------------- */

/* contains: strstr takes time by the product of both lengths on some machines. */
static int contains(const char *text, const char *part)
{
    enum { FEW = 64 };
    size_t size = strlen(part);
    return (size <= FEW ? strstr(text, part) : memmem(text, strlen(text), part, size)) != NULL;
}

/* found: the pattern was checked, so that nothing can be wrong but that it takes too long. */
static int found(const char *text, const char *pattern, int64_t *steps)
{
    mull__pattern_match match;
    mull__pattern_steps budget = {.left = *steps};
    int is_there =
        mull__pattern_find(&match, text, strlen(text), 0, pattern, strlen(pattern), &budget);
    *steps = budget.left;
    return is_there;
}

/* ---- All of them ----------------------------------------------------------------------------- */

/* passes_there is for a field that is there. */
static int passes_there(const mull__plain_value *wanted, const mull_value *given, int64_t *steps)
{
    switch (wanted->kind) {
    case MULL__ONE_OF:
        return one_of(wanted, given);
    case MULL__BETWEEN:
        return between(wanted, given);
    case MULL__CONTAINS:
        return given->kind == MULL_STRING && contains(given->as.string, wanted->text);
    case MULL__MATCHES:
        return given->kind == MULL_STRING ? found(given->as.string, wanted->text, steps) : 0;
    case MULL__PRESENT:
        return 1;
    case MULL__ABSENT:
    case MULL__NOT:
        break;
    }
    return 0;
}

int mull__value_passes(const mull__plain_value *wanted, const mull_value *given, int64_t *steps)
{
    int turned = 0;
    for (; wanted->kind == MULL__NOT; wanted = wanted->inner)
        turned = !turned;
    int answer = given ? passes_there(wanted, given, steps) : wanted->kind == MULL__ABSENT;
    return answer < 0 ? answer : answer != turned;
}
