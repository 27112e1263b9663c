/* value.c: see value.h. */
#include "value.h"

#include <string.h>

#include "base/pattern.h"
#include "base/rare.h"
#include "fact.h"

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

/* found: the pattern was checked, so that nothing can be wrong but that it takes too long. */
static int found(const char *text, const char *pattern, int64_t *steps)
{
    mull__pattern_match match;
    return mull__pattern_find(&match, text, strlen(text), 0, pattern, strlen(pattern), steps);
}

/* ---- Equalities ------------------------------------------------------------------------------
 *
 * What most matchers come down to, and so on the way of many decisions. Names and texts are mostly
 * short: those are compared without a call, so that how many instructions it takes doesn't depend
 * on where texts lie, as strlen's and strcmp's do, and no register has to be saved. */

static mull__short_text shorten(const char *text)
{
    mull__short_text shorter = {.first = *text};
    size_t size = strlen(text) + 1;
    if (size > MULL__SHORT)
        return shorter;
    memcpy(shorter.bytes + MULL__SHORT - size, text, size);
    shorter.size = size;
    return shorter;
}

mull__equality mull__equality_of(const char *name, const mull_value *value)
{
    return (mull__equality){
        .is_last = 1,
        .name = shorten(name),
        .text = shorten(value->kind == MULL_STRING ? value->as.string : ""),
        .whole_name = name,
        .value = *value,
    };
}

/* UNSURE: too long, or of a kind that is compared elsewhere. */
enum { OTHER, SAME, UNSURE };

/* goes_on_as is for two texts that begin alike. It jumps to the second of so many bytes and goes on
 * to the NUL. What is given differs at its own NUL at the latest: nothing behind that is read. */
static MULL__IN_PLACE int goes_on_as(const char *given, const mull__short_text *wanted)
{
#define BYTE(left)                                                                                 \
    case (left) + 1:                                                                               \
        if (given[wanted->size - (left)] != wanted->bytes[MULL__SHORT - (left)])                   \
            return OTHER;                                                                          \
        __attribute__((fallthrough))

    switch (wanted->size) {
        BYTE(15);
        BYTE(14);
        BYTE(13);
        BYTE(12);
        BYTE(11);
        BYTE(10);
        BYTE(9);
        BYTE(8);
        BYTE(7);
        BYTE(6);
        BYTE(5);
        BYTE(4);
        BYTE(3);
        BYTE(2);
        BYTE(1);
    case 1:
        return SAME;
    case 0:
        return UNSURE;
    default:
        __builtin_unreachable();
    }
#undef BYTE
}

static MULL__IN_PLACE int is_text(const char *given, char first, const mull__short_text *wanted)
{
    return given && *given == first ? goes_on_as(given, wanted) : OTHER;
}

/* equal_each is for all kinds and lengths. */
static MULL__APART int equal_each(const mull__equality *wanted, const mull_field *fields,
                                  const mull_field *end)
{
    do {
        const mull_field *field = mull__field_in(fields, end, wanted->whole_name);
        if (!field || !mull__value_equals(&wanted->value, &field->value))
            return 0;
    } while (!wanted++->is_last);
    return 1;
}

int mull__equals_all(const mull__equality *wanted, const mull_error *error)
{
    const mull_field *fields = error->fields, *end = mull__fields_end(error);
    if (fields == end)
        return 0;
    do {
        const mull_field *field = fields;
        const char initial = wanted->name.first; /* here, so that it isn't read for each field */
        int answer;
        while ((answer = is_text(field->name, initial, &wanted->name)) == OTHER)
            if (++field == end)
                return 0;
        const mull_value *given = &field->value;
        if (answer == UNSURE || given->kind != wanted->value.kind)
            return equal_each(wanted, fields, end); /* 503 equals 503.0 */
        if (given->kind == MULL_INTEGER)
            answer = given->as.integer == wanted->value.as.integer;
        else if (given->kind == MULL_STRING)
            answer = is_text(given->as.string, wanted->text.first, &wanted->text);
        else if (given->kind == MULL_BOOLEAN)
            answer = !given->as.boolean == !wanted->value.as.boolean;
        else
            answer = UNSURE;
        if (answer != SAME)
            return answer == UNSURE && equal_each(wanted, fields, end);
    } while (!wanted++->is_last);
    return 1;
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
        return given->kind == MULL_STRING && strstr(given->as.string, wanted->text) != NULL;
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
